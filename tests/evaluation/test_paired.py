"""Arms on the same ticks: only changed verdicts are judged, far enough apart from each other."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from tests.cases import cases
from tests.later import Later
from tests.worlds.arm_trades import shows_no_gaps
from tests.worlds.observed import START, plain_tick, quiet_ticks
from torra.evaluation.observations import ArmObservation
from torra.evaluation.outcomes import RoundTripCosts, outcomes
from torra.evaluation.paired import ForwardReturns, flip_result, flips, flips_exhibit, sides
from torra.evaluation.power import LARGER

stats = Later("scipy.stats")

UP = ForwardReturns(0.9, -1.1)


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def arm(verdicts, name="full"):
    ticks = quiet_ticks(len(verdicts))
    given = zip(ticks, verdicts, strict=True)
    return ArmObservation(name, tuple(replace(tick, verdict=word) for tick, word in given), ())


@cases(
    ("verdict", "control", "worth"),
    [
        ("BUY", "HOLD", 0.9),
        ("HOLD", "BUY", -0.9),
        ("SELL", "HOLD", -1.1),
        ("BUY", "SELL", 2.0),
        ("SELL", "BUY", -2.0),
    ],
)
def test_a_flip_is_worth_its_outcome_less_the_controls(
    verdict: str, control: str, worth: float
) -> None:
    one, other = arm([verdict]), arm([control], "l1")
    ticks, (flip,) = flips(one, other, {one.ticks[0].key: UP})
    assert (ticks, flip.verdict, flip.control) == (1, verdict, control)
    assert flip.worth == pytest.approx(worth)


def test_the_same_verdict_is_no_flip_whatever_came_after() -> None:
    one, other = arm(["BUY", "HOLD"]), arm(["BUY", "HOLD"], "l1")
    assert flips(one, other, {tick.key: UP for tick in one.ticks}) == (2, ())


def test_ticks_of_one_arm_alone_are_not_compared() -> None:
    one, other = arm(["BUY"] * 5), arm(["HOLD"] * 3, "l1")
    ticks, found = flips(one, other, {tick.key: UP for tick in one.ticks}, horizon=1)
    assert (ticks, len(found)) == (3, 3)


def test_flips_nearer_than_the_horizon_count_once() -> None:
    one, other = arm(["BUY"] * 40), arm(["HOLD"] * 40, "l1")
    known = {tick.key: UP for tick in one.ticks if tick.key != one.ticks[0].key}
    ticks, found = flips(one, other, known, horizon=16)
    assert (ticks, len(found)) == (40, 40)
    assert [n for n, flip in enumerate(found) if flip.apart] == [1, 17, 33]
    assert found[0].worth is None


def counted_of(flipped, hours=30):
    """Return the closes, in hours, of the flips that count among M15 and H1 of one symbol."""
    ticks = [
        *quiet_ticks(4 * hours),
        *(plain_tick(START + timedelta(hours=n), "H1") for n in range(hours)),
    ]
    said = [replace(t, verdict="BUY" if flipped(t) else "HOLD") for t in ticks]
    one, other = ArmObservation("full", tuple(said), ()), ArmObservation("l1", tuple(ticks), ())
    _, found = flips(one, other, {tick.key: UP for tick in ticks}, horizon=4)
    return [
        (flip.key[1], (flip.close_time - START) / timedelta(hours=1))
        for flip in found
        if flip.apart
    ]


def test_outcomes_of_two_timeframes_that_overlap_count_once() -> None:
    """An M15 flip is over after an hour, an H1 flip after four: neither falls into the other."""
    assert counted_of(lambda t: t.timeframe == "H1")[:3] == [("H1", 0), ("H1", 4), ("H1", 8)]
    first = counted_of(lambda t: t.timeframe == "H1" or t.close_time >= START + timedelta(hours=2))
    assert first[:3] == [("H1", 0), ("M15", 4), ("M15", 5)]
    apart = [at for _, at in first]
    assert all(later - before >= 1 for before, later in pairwise(apart))


def test_a_gap_keeps_an_outcome_open() -> None:
    ticks = [*quiet_ticks(3), plain_tick(START + timedelta(hours=48), "H1")]
    ticks += [replace(t, bar_time=t.bar_time + timedelta(hours=47, minutes=15),
                      close_time=t.close_time + timedelta(hours=47, minutes=15))
              for t in quiet_ticks(9)]  # fmt: skip
    said = [replace(t, verdict="BUY") for t in ticks]
    known = {tick.key: UP for tick in ticks}
    _, found = flips(
        ArmObservation("full", tuple(said), ()), ArmObservation("l1", tuple(ticks), ()), known, 4
    )
    hours = [(flip.close_time - START) / timedelta(hours=1) for flip in found if flip.apart]
    assert hours == [0.0, 47.5, 48.5]


def test_the_outcomes_of_bars_are_those_of_the_verdicts() -> None:
    ticks = quiet_ticks(3)
    index = pd.DatetimeIndex([tick.close_time for tick in ticks])
    frame = pd.DataFrame({"open": [100.0, 102.0, 103.0], "close": [101.5, 102.5, 104.0]}, index)
    told = outcomes(ticks, {("XAUUSD", "M15"): frame}, {"XAUUSD": RoundTripCosts(0.2)}, (2, 16))
    near = sides(ticks, told, 2)
    assert near[ticks[0].key] == pytest.approx((2.3, -2.7))
    assert sides(ticks, told, 16)[ticks[0].key] == (None, None)
    assert near[ticks[0].key].worth("HOLD") == 0.0


@cache
def apart(count):
    return arm(["BUY"] * count), arm(["HOLD"] * count, "l1")


def with_worth(values, horizon=1):
    one, other = apart(len(values))
    known = {t.key: ForwardReturns(v, -v) for t, v in zip(one.ticks, values, strict=True)}
    return flip_result(one, other, known, rng(), horizon)


@pytest.mark.journey
def test_the_test_of_flips_is_the_exact_sign_test() -> None:
    found = with_worth([0.5] * 14 + [-0.4] * 4 + [0.0] * 3)
    assert (found.wins, found.losses, found.counted) == (14, 4, 21)
    assert found.p == pytest.approx(stats.binomtest(14, 18).pvalue)
    assert found.worth.mean == pytest.approx((14 * 0.5 - 4 * 0.4) / 21)


@pytest.mark.journey
def test_flips_by_coin_are_claimed_as_seldom_as_the_level_says() -> None:
    coins = [with_worth(np.random.default_rng(seed).normal(size=60)) for seed in range(200)]
    assert sum(found.p <= 0.05 for found in coins) <= 19
    assert sum(found.worth.p <= 0.05 for found in coins) <= 19


def test_the_exhibit_names_who_changed_for_better_and_for_worse() -> None:
    good, bad = with_worth([0.5] * 40 + [-0.5] * 5), with_worth([-0.5] * 40 + [0.5] * 5)
    none = with_worth([0.5, -0.5] * 20)
    found = flips_exhibit(
        [replace(good, arm="full"), replace(bad, arm="budget"), replace(none, arm="placebo")]
    )
    shows_no_gaps(found)
    assert "The changes of full paid beyond chance." in found.says
    assert "The changes of budget cost beyond chance." in found.says
    assert f"194 discordant ticks; there are 45 discordant ticks, which is too few.{LARGER}" in (
        found.says
    )
    assert found.enough, "what is claimed beyond chance is not called too few to tell"
    assert found.figures["full.holm"] >= found.figures["full.p"]
    dots, sums = found.plots
    assert (dots.kind, sums.kind) == ("dots", "step")
    assert sums.lines[0].points[-1][1] == pytest.approx(17.5)

"""Days side by side: the market's part falls out, and an arm must beat its placebos."""

from __future__ import annotations

import numpy as np
import pytest

from tests.worlds.arm_trades import arm_of, coin, shows_no_gaps
from torra.evaluation.observations import ArmObservation
from torra.evaluation.paired_days import (
    day_result,
    days_exhibit,
    placebo_result,
    placebos_exhibit,
)


def rng() -> np.random.Generator:
    return np.random.default_rng(13)


def noise(seed, count, spread=0.2):
    return np.random.default_rng(seed).normal(0.0, spread, count)


MARKET = coin(1, 600)
"""Results that every arm shares: 150 days of four trades."""


def test_the_difference_is_that_of_the_days_in_per_cent_of_the_capital() -> None:
    one, other = arm_of([1.0] * 200), arm_of([0.5] * 200, "l1")
    found = day_result(one, [other], rng())
    assert found.days.n == 51  # the last tick closes one trade later
    assert found.total == pytest.approx(100.0)  # a trade's R is 1 % of the capital
    assert found.days.mean == pytest.approx(100 / 51)
    assert found.days.low is None  # days all alike leave nothing to chance to measure


def test_what_the_market_does_to_both_falls_out() -> None:
    one = arm_of(MARKET + 0.1 + noise(2, 600))
    other = arm_of(MARKET, "l1")
    found = day_result(one, [other], rng())
    assert found.days.low > 0
    alone = day_result(one, [ArmObservation("nothing", other.ticks, ())], rng())
    assert alone.days.high - alone.days.low > 4 * (found.days.high - found.days.low)


def test_days_in_a_week_resemble_each_other() -> None:
    month = MARKET[:100]
    assert day_result(arm_of(month), [arm_of(-month, "l1")], rng()).days.block == 5


def test_the_exhibit_says_who_did_better_and_what_it_takes() -> None:
    arms = [arm_of(MARKET + shift + noise(3, 600), str(shift)) for shift in (0.2, -0.2, 0.0)]
    found = days_exhibit([day_result(arm, [arm_of(MARKET, "l1")], rng()) for arm in arms])
    shows_no_gaps(found)
    assert "0.2 did better than l1 beyond chance." in found.says
    assert "-0.2 did worse than l1 beyond chance." in found.says
    assert "0.0 did" not in found.says
    assert "151 days are likely to show" in found.says


def placebos(spread=0.2):
    kinds = enumerate(("shuffled", "flipped", "random"))
    return [arm_of(MARKET + noise(20 + n, 600, spread), kind) for n, kind in kinds]


def test_an_arm_that_adds_something_beats_its_placebos() -> None:
    found = placebo_result(arm_of(MARKET + 0.2, "full"), placebos(), rng())
    assert found.beaten is True
    assert placebos_exhibit([found]).says.startswith("full beat every placebo beyond chance.")


def test_an_arm_that_does_what_they_do_does_not() -> None:
    those = placebos()
    beaten = [
        placebo_result(arm_of(MARKET + noise(seed, 600), "full"), those, rng()).beaten
        for seed in range(40, 60)
    ]
    assert sum(beaten) <= 2


def test_better_than_their_mean_but_not_than_the_best_is_not_enough() -> None:
    lucky = arm_of(MARKET + 0.5, "lucky")
    found = placebo_result(arm_of(MARKET + 0.3, "full"), [*placebos(), lucky], rng())
    assert found.days.days.low > 0
    assert found.beaten is False
    shows_no_gaps(placebos_exhibit([found]))


def test_arms_without_placebos_of_their_own_are_named() -> None:
    mine = placebo_result(arm_of(MARKET + 0.2, "full"), placebos(), rng())
    other = placebo_result(arm_of(MARKET, "budget"), [], rng())
    told = placebos_exhibit([mine, other]).says
    assert told.startswith("full beat every placebo")
    assert told.endswith("No placebo of its own: budget.")


def test_an_arm_without_days_is_no_crash() -> None:
    nothing = ArmObservation("full", (), (), capital=0.0)
    shows_no_gaps(days_exhibit([day_result(nothing, [nothing], rng())]))
    shows_no_gaps(placebos_exhibit([placebo_result(nothing, [nothing], rng())]))

"""The gate's worth: a gate that knows is told from one that vetoes by lot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.cases import cases
from tests.worlds.arm_trades import shows_no_gaps, trade
from tests.worlds.observed import quiet_ticks
from torra.evaluation.gate_value import (
    GatedSignal,
    VetoResult,
    gate_exhibit,
    gate_value,
    signals_of,
    stratified,
)
from torra.evaluation.observations import ArmObservation


def rng() -> np.random.Generator:
    return np.random.default_rng(17)


def market(seed, count=800):
    """Results, and for each a margin and a volatility that say something about it."""
    draw = np.random.default_rng(seed)
    margin, volatility = draw.uniform(0.5, 1.0, count), draw.uniform(0.001, 0.004, count)
    r = np.where(draw.random(count) < 0.2 + 0.2 * margin, 2.0, -1.0)
    return r, margin, volatility


def seen(r, margin, volatility, vetoed):
    rows = zip(r, margin, volatility, vetoed, strict=True)
    return tuple(GatedSignal(float(a), float(b), float(c), bool(d)) for a, b, c, d in rows)


def by_lot(seed, rate=0.1):
    r, margin, volatility = market(seed)
    vetoed = np.random.default_rng([seed, 1]).random(len(r)) < rate
    return seen(r, margin, volatility, vetoed)


def knowing(seed, rate=0.1):
    """A gate that sees a loss coming every third time."""
    r, margin, volatility = market(seed)
    draw = np.random.default_rng([seed, 2])
    vetoed = draw.random(len(r)) < np.where((r < 0) & (draw.random(len(r)) < 0.33), 0.4, rate / 2)
    return seen(r, margin, volatility, vetoed)


def test_by_hand() -> None:
    signals = seen([-1.0, -1.2, 2.0, 0.5, -1.0], [0.6] * 5, [0.002] * 5, [1, 1, 1, 0, 0])
    found = gate_value("full", signals, rng())
    assert (found.vetoed, found.passed, found.rate) == (3, 2, 0.6)
    assert (found.avoided, found.forgone) == pytest.approx((2.2, 2.0))
    assert found.net == pytest.approx(0.2)
    assert found.worth.mean == pytest.approx(0.2 / 3)
    assert found.by_lot == pytest.approx(-3 * (-0.7 / 5))
    assert found.matched == pytest.approx(-0.25 - (-0.2 / 3))


def test_a_gate_that_knows_is_told_from_the_lot() -> None:
    found = gate_value("full", knowing(1), rng())
    assert found.p < 0.01
    assert found.interval.low > 0
    assert found.net > found.by_lot + 20
    assert "this one differs beyond chance" in gate_exhibit([found]).says


@pytest.mark.journey
def test_a_gate_by_lot_is_called_better_as_seldom_as_the_level_says() -> None:
    found = [gate_value("full", by_lot(seed)[:300], rng()) for seed in range(40)]
    assert sum(one.p <= 0.05 for one in found) <= 7
    assert sum(one.interval.low > 0 for one in found) <= 5
    assert np.mean([one.net - one.by_lot for one in found]) == pytest.approx(0.0, abs=3.0)


def test_against_the_lot_it_does_not_matter_whether_all_signals_won() -> None:
    signals = by_lot(4)[:300]
    lifted = [replace(signal, r=signal.r + 3.0) for signal in signals]
    one, other = (gate_value("full", those, rng()) for those in (signals, lifted))
    assert one.p == other.p > 0.05
    assert other.net < -2 * other.vetoed


def test_a_gate_that_only_vetoes_weak_signals_is_matched_with_weak_ones() -> None:
    """It avoids more than a lot over all signals would, and nothing against its like."""
    _, margin, volatility = market(5, 6_000)
    r = np.where(np.random.default_rng(55).random(6_000) < 0.8 * margin - 0.2, 2.0, -1.0)
    weak = margin <= np.quantile(margin, 1 / 3)
    vetoed = weak & (np.random.default_rng(6).random(len(r)) < 0.3)
    signals = seen(r, margin, volatility, vetoed)
    assert r[~vetoed].mean() - r[vetoed].mean() > 0.3
    found = gate_value("full", signals, rng())
    assert found.matched < 0.15
    assert found.compared == found.vetoed


def test_strata_are_made_where_there_is_enough_of_both() -> None:
    many = stratified(knowing(1))
    assert {signal.stratum for signal in many} == set(range(6))
    few = stratified(by_lot(1)[:100])
    assert {signal.stratum for signal in few} == {0}


@pytest.mark.parametrize(
    ("rate", "alarm", "word"),
    [(0.0, True, "sleeps"), (0.1, False, ""), (0.24, False, ""), (0.6, True, "blocks")],
)
def test_a_veto_rate_outside_the_band_is_an_alarm(rate: float, alarm: bool, word: str) -> None:
    found = gate_value("full", by_lot(3, rate), rng())
    assert found.alarm is alarm
    assert ("Alarm" in gate_exhibit([found]).says) is alarm
    assert word in gate_exhibit([found]).says


def test_few_signals_are_no_alarm() -> None:
    assert not gate_value("full", by_lot(3, 0.0)[:20], rng()).alarm


def test_signals_are_joined_with_their_ticks() -> None:
    first, second, third, unseen = (
        replace(tick, l1_consensus=consensus, atr=2.0, multiplier=multiplier)
        for tick, consensus, multiplier in zip(
            quiet_ticks(4), (0.6, -0.7, 0.8, 0.9), (1.0, 0.5, 0.2, 1.0), strict=True
        )
    )
    trades = (
        trade(second.close_time, -1.0, decided=second.close_time),
        trade(unseen.close_time, 2.0, decided=unseen.close_time),
    )
    arm = ArmObservation("full", (first, second, third), trades)
    vetoed = (VetoResult(third.key, "BUY"), VetoResult(first.key, "BUY", 2.0))
    found = signals_of(arm, (*vetoed, VetoResult(unseen.key, "SELL", 1.0)))
    assert found == (
        GatedSignal(2.0, 0.6, 0.02, vetoed=True),
        GatedSignal(-1.0, 0.7, 0.02, vetoed=False, attenuated=True),
        GatedSignal(None, 0.8, 0.02, vetoed=True),
    )
    value = gate_value("full", found, rng())
    assert (value.vetoed, value.known, value.attenuated) == (2, 1, 1)


@cases(
    "signals",
    [
        (),
        (GatedSignal(None, 0.5, 0.1, vetoed=True),),
        (GatedSignal(1.0, 0.5, 0.1, vetoed=True),),
        (GatedSignal(1.0, 0.5, 0.1, vetoed=False),) * 5,
        tuple(GatedSignal(-1.0, 0.5, 0.1, vetoed=n % 2 == 0) for n in range(100)),
    ],
    ids=["none", "unknown", "one", "never", "alike"],
)
def test_too_little_is_said_to_be_too_little(signals: tuple[Any, ...]) -> None:
    found = gate_value("full", signals, rng())
    shows_no_gaps(gate_exhibit([found]))
    assert found.p is None
    assert not gate_exhibit([found]).enough

"""Repetition: what varies within a tick against what varies between ticks, and flipped verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from agents.contracts import VECTORS
from tests.worlds.observed import quiet_ticks
from torra.evaluation.observations import AgentOpinion, TickObservation
from torra.evaluation.opinion_table import DESK
from torra.evaluation.repetition import (
    CRITERION,
    Flips,
    flips,
    furthest,
    repetition_exhibit,
    spread_of,
    spreads,
)

FOCUS = (1.0, 1.0, 1.0, 1.0)


def repeated(
    ticks: int, runs: int, within: float, between: float, seed: int = 1
) -> list[list[TickObservation]]:
    """Runs of ticks; the desk says what its one analyst says."""
    rng = np.random.default_rng(seed)
    found = []
    for tick in quiet_ticks(ticks):
        centre = rng.normal(0, between, 4)
        said = [np.clip(centre + rng.normal(0, within, 4), -0.3, 0.3) for _ in range(runs)]
        found.append(
            [
                replace(
                    tick,
                    adjustments=tuple(row),
                    opinions=(AgentOpinion("technical", "analyst", tuple(row), FOCUS, 1.0),),
                    verdict="BUY" if row[0] > 0.1 else "HOLD",
                )
                for row in (one.tolist() for one in said)
            ]
        )
    return found


def test_a_steady_agent_is_steady_and_a_noisy_one_noise() -> None:
    steady = spreads(repeated(40, 5, within=0.01, between=0.1), np.random.default_rng(0))
    noisy = spreads(repeated(40, 5, within=0.1, between=0.01), np.random.default_rng(0))
    assert [(one.agent, one.vector) for one in steady[:4]] == [(DESK, v) for v in VECTORS]
    assert {one.agent for one in steady} == {DESK, "technical"}
    for one in steady:
        assert one.within == pytest.approx(0.01, rel=0.2)
        assert one.between == pytest.approx(0.1, rel=0.4)
        assert one.icc is not None and one.icc > 0.95 and one.noise is False
        assert one.interval and one.interval.low < one.icc < one.interval.high
        assert one.kept == 1.0 and one.furthest is not None and one.furthest < CRITERION
    assert all(one.noise and one.icc is not None and one.icc < 0.2 for one in noisy)
    shown = repetition_exhibit(repeated(40, 5, within=0.1, between=0.01))
    assert "noise source: desk and technical" in shown.says and "not within" in shown.says
    assert shown.enough and shown.figures["furthest"] == furthest(noisy)


def test_the_coefficient_is_that_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(4)
    table = rng.normal(size=(7, 1)) + rng.normal(size=(7, 4))
    found = spread_of("a", "momentum", list(table))
    grand, means = table.mean(), table.mean(axis=1)
    above = 4 * ((means - grand) ** 2).sum() / 6
    inside = ((table - means[:, None]) ** 2).sum() / 21
    assert found.within == pytest.approx(inside**0.5)
    assert found.between == pytest.approx(max(0, (above - inside) / 4) ** 0.5)
    assert found.icc == pytest.approx((above - inside) / (above + 3 * inside))
    assert (found.ticks, found.runs) == (7, 28)


def test_unequal_numbers_of_runs_are_allowed() -> None:
    values = [np.array([0.1, 0.2]), np.array([0.5, 0.6, 0.7]), np.array([0.9]), np.empty(0)]
    found = spread_of("a", "momentum", values, np.random.default_rng(1))
    assert (found.ticks, found.runs) == (2, 5)
    assert found.icc is not None and 0.8 < found.icc < 1.0
    assert found.furthest == pytest.approx(0.1)
    assert found.kept == 0.5
    assert found.interval is None  # two ticks say nothing of their own spread


def test_one_that_always_says_the_same_is_no_noise() -> None:
    found = spread_of("a", "momentum", [np.zeros(3), np.zeros(3)])
    assert (found.within, found.between, found.icc, found.noise) == (0.0, 0.0, None, False)


def test_flips_are_pairs_of_runs_that_differ() -> None:
    (tick,) = quiet_ticks(1)
    runs = [
        [replace(tick, verdict=verdict) for verdict in told]
        for told in (("BUY", "BUY", "HOLD"), ("HOLD", "HOLD"), ("SELL",))
    ]
    assert flips(runs) == Flips(ticks=2, changed=1, pairs=4, flipped=2)
    assert flips(runs).rate == 0.5


def test_what_was_asked_once_says_nothing() -> None:
    cases: list[list[list[TickObservation]]] = [[], [[]], [[tick] for tick in quiet_ticks(3)]]
    for runs in cases:
        shown = repetition_exhibit(runs, np.random.default_rng(1))
        assert not shown.enough and shown.rows == () and "asked twice" in shown.says
        assert shown.figures["flip_rate"] is None
    few = repetition_exhibit(repeated(3, 2, 0.01, 0.1))
    assert not few.enough and "few" in few.says

"""Confidence words: mapped to what came true, checked out of sample, and None when too few."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cases import cases
from tests.later import Later
from tests.worlds.markets import market, saying
from torra.evaluation.calibration import (
    LEAST,
    PRIOR,
    WORDS,
    Calls,
    brier,
    calibrated_trust,
    calibration,
    calibration_exhibit,
    calls_of,
    mapped,
    pool_adjacent,
)
from torra.evaluation.observations import TickObservation
from torra.evaluation.outcomes import Outcomes

optimize = Later("scipy.optimize")

CHANCES = {"low": 0.5, "medium": 0.6, "high": 0.75}


def told(count: int, chances: dict[str, float]) -> tuple[tuple[TickObservation, ...], Outcomes]:
    """An analyst whose words hit with these chances, on the next bar."""
    ticks, known = market(count)
    rng = np.random.default_rng(6)
    words = rng.choice(WORDS, count).tolist()
    right = rng.random(count) < np.array([chances[word] for word in words])
    lean = np.sign(known.forward[:, 0]) * np.where(right, 1.0, -1.0)
    return saying(ticks, "analyst", np.repeat(0.1 * lean[:, None], 4, axis=1), words), known


def test_the_words_are_mapped_to_what_came_true() -> None:
    ticks, known = told(3000, CHANCES)
    found = calibration(ticks, known, horizon=1)
    assert found.n == 3000
    for word in found.words:
        assert word.mapped == pytest.approx(CHANCES[word.word], abs=0.04)
        assert word.interval and word.interval.low < CHANCES[word.word] < word.interval.high
    assert found.brier is not None and found.coin == 0.25 and found.brier < 0.24
    table = calibrated_trust(found)
    assert table is not None and table["high"] == pytest.approx(0.5, abs=0.08)
    assert table["low"] < 0.08
    shown = calibration_exhibit([found])
    assert "better than a coin" in shown.says and shown.enough
    assert shown.plots[0].diagonal and [len(line.points) for line in shown.plots[0].lines] == [3, 3]


def test_words_the_wrong_way_round_are_pooled() -> None:
    ticks, known = told(1500, {"low": 0.6, "medium": 0.5, "high": 0.4})
    found = calibration(ticks, known, horizon=1)
    chances = [word.mapped for word in found.words]
    assert chances[0] == chances[1] == chances[2]
    table = calibrated_trust(found)
    assert table is not None and max(table.values()) < 0.05


def test_what_was_learnt_is_judged_on_what_came_later() -> None:
    """Words that were worth something in the first half and the opposite in the second."""
    count = 2000
    hits = np.tile([1.0, 1.0, 1.0, 0.0], count // 4)
    hits[count // 2 :] = 1.0 - hits[count // 2 :]
    ticks, known = market(count)
    lean = np.sign(known.forward[:, 0]) * (2 * hits - 1)
    ticks = saying(ticks, "analyst", np.repeat(0.1 * lean[:, None], 4, axis=1))
    found = calibration(ticks, known, horizon=1)
    ((chance, later),) = found.held_out
    assert chance == pytest.approx(0.74, abs=0.01) and later.rate == pytest.approx(0.25, abs=0.01)
    assert later.n == count // 2 - 2  # what overlaps with the first half is left out
    assert found.brier is not None and found.brier > 0.4
    assert "worse than a coin" in calibration_exhibit([found]).says


def test_noise_is_no_better_than_a_coin() -> None:
    ticks, known = told(1500, dict.fromkeys(WORDS, 0.5))
    found = calibration(ticks, known, horizon=1)
    assert found.brier is not None and found.brier == pytest.approx(0.25, abs=0.003)
    assert "not to be told from a coin" in calibration_exhibit([found]).says


def test_too_few_calls_have_no_rate() -> None:
    ticks, known = told(120, CHANCES)
    found = calibration(ticks, known, horizon=1)
    assert any(word.n < LEAST for word in found.words)
    assert calibrated_trust(found) is None
    few = calibration(ticks[:30], Outcomes((1,), *[known.forward[:30, :1]] * 3), horizon=1)
    assert {word.mapped for word in few.words} == {None}
    shown = calibration_exhibit([few])
    assert "none may be used" in shown.says and not shown.enough
    nobody = calibration((), Outcomes((4,), *[np.empty((0, 1))] * 3))
    assert nobody.n == 0 and nobody.brier is None
    assert calibration_exhibit([nobody]).plots == () and calibration_exhibit([]).rows == ()


@pytest.mark.journey
@cases("seed", range(5))
def test_pooling_is_isotonic_regression(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, weights = rng.normal(size=12), rng.uniform(0.5, 9, 12)
    expected = optimize.isotonic_regression(values, weights=weights).x
    assert pool_adjacent(values.tolist(), weights.tolist()) == pytest.approx(expected)


def test_the_prior_pulls_to_even_odds() -> None:
    hits = np.array([1.0] * 40 + [0.0] * 20)
    calls = Calls(np.full(60, 2), hits, np.arange(60))
    low, medium, high = mapped(calls)
    assert (low.mapped, medium.mapped) == (None, None)
    assert high.mapped == pytest.approx((40 + PRIOR / 2) / (60 + PRIOR))
    assert high.trust == pytest.approx(2 * 50 / 80 - 1)


def test_intervals_count_a_tick_once_a_horizon() -> None:
    hits = np.array([1.0, 0.0] * 200)
    once = Calls(np.zeros(400, dtype=int), hits, np.arange(400))
    twice = Calls(np.zeros(400, dtype=int), hits, np.arange(400) // 2)
    wide = [mapped(calls, h)[0].interval for calls, h in ((once, 1), (twice, 1), (once, 4))]
    spans = [one.high - one.low for one in wide if one]
    assert spans[0] < spans[1] < spans[2]


def test_a_call_needs_a_lean_and_a_move() -> None:
    ticks, known = market(10)
    said = np.zeros((10, 4))
    said[:5] = 0.1
    forward = known.forward.copy()
    forward[0, 0] = 0.0
    forward[1, 0] = np.nan
    ticks = saying(ticks, "analyst", said)
    calls = calls_of(ticks, Outcomes(known.horizons, *[forward] * 3), ["analyst"], 1)
    assert calls.hit.tolist() == (forward[2:5, 0] > 0).tolist()
    assert calls.moment.tolist() == [2, 3, 4]


def test_briers_score() -> None:
    assert brier(np.array([0.8, 0.3]), np.array([1.0, 0.0])) == pytest.approx((0.04 + 0.09) / 2)
    assert brier(np.empty(0), np.empty(0)) is None

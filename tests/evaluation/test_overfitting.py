"""The probability of backtest overfitting, against a plain loop and on planted cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from torra.evaluation.overfitting import overfitting, overfitting_exhibit


def plainly(results: np.ndarray, parts: int) -> tuple[float, float]:
    """The paper's steps, one at a time: PBO and share of losses."""
    cut = np.array_split(results, parts)
    logits, lost = [], []
    for chosen in combinations(range(parts), parts // 2):
        inside = np.concatenate([cut[part] for part in chosen])
        outside = np.concatenate([cut[part] for part in range(parts) if part not in chosen])
        best = int(np.argmax(inside.mean(axis=0) / inside.std(axis=0, ddof=1)))
        ratios = outside.mean(axis=0) / outside.std(axis=0, ddof=1)
        share = (np.sum(ratios < ratios[best]) + 1) / (results.shape[1] + 1)
        logits.append(math.log(share / (1 - share)))
        lost.append(ratios[best] < 0)
    return float(np.mean(np.array(logits) <= 0)), float(np.mean(lost))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_papers_procedure(seed: int) -> None:
    results = np.random.default_rng(seed).normal(0.02, 1.0, (63, 7))
    found = overfitting(results, 6)
    assert (found.probability, found.loss) == pytest.approx(plainly(results, 6))
    assert found.ways == 20


def test_configurations_that_are_alike_overfit_half_of_the_time(
    scaled: Callable[..., int],
) -> None:
    count = scaled(1000, 60)
    found = [
        overfitting(np.random.default_rng(seed).normal(size=(120, 12))) for seed in range(count)
    ]
    shares = [one.probability for one in found if one.probability is not None]
    assert np.mean(shares) == pytest.approx(0.5, abs=4 * 0.3 / math.sqrt(count))
    assert np.mean([one.inside - one.outside for one in found]) > 0.1


def test_a_configuration_that_is_truly_better_is_no_luck() -> None:
    results = np.random.default_rng(1).normal(size=(200, 12))
    results[:, 4] += 0.8
    found = overfitting(results)
    assert (found.probability, found.loss) == (0.0, 0.0)
    assert "0 % of 252 ways" in overfitting_exhibit(found).says


def test_what_was_best_because_it_was_fitted_to_a_half_is_found_out() -> None:
    """Each configuration is good in one part of the history alone."""
    results = np.random.default_rng(2).normal(size=(200, 10)) - 0.1
    for part in range(10):
        results[20 * part : 20 * part + 20, part] += 2.0
    found = overfitting(results)
    assert found.probability is not None and found.probability > 0.9


@pytest.mark.parametrize("shape", [(39, 5), (400, 1), (0, 3), (400, 0)], ids=str)
def test_too_little_to_cut_is_said(shape: tuple[int, int]) -> None:
    found = overfitting(np.zeros(shape))
    assert found.probability is None
    shown = overfitting_exhibit(found)
    assert not shown.enough and "too little" in shown.says


def test_one_that_never_trades_has_the_ratio_nought() -> None:
    results = np.random.default_rng(3).normal(size=(200, 3)) - 0.5
    results[:, 1] = 0.0
    found = overfitting(results)
    assert (found.probability, found.inside, found.outside) == (0.0, 0.0, 0.0)
    assert overfitting(np.zeros((80, 4))).probability is None


def test_an_odd_number_of_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="even"):
        overfitting(np.zeros((80, 4)), 7)

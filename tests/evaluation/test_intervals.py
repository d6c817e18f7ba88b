"""Intervals: equal to scipy's arithmetic where there is one, and as wide as they claim to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cases import cases
from tests.conftest import Scale
from tests.later import Later
from torra.evaluation import intervals
from torra.evaluation.intervals import (
    LEAST_BLOCKS,
    LEAST_VALUES,
    Interval,
    binomial_tail,
    block_length,
    mean_of,
    normal_quantile,
    share_difference,
    sign_test,
    standard_error,
    student_quantile,
    student_tail,
    wilson,
)

stats = Later("scipy.stats")


@cases(("hits", "size"), [(0, 7), (3, 10), (10, 10), (41, 100), (1, 5_000)])
def test_wilson_is_scipys(hits: int, size: int) -> None:
    found = wilson(hits, size)
    theirs = stats.binomtest(hits, size).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_an_empty_sample_has_no_share() -> None:
    assert wilson(0, 0) is None
    assert share_difference(0, 0, 1, 2) is None
    assert sign_test(0, 0) is None


def test_the_difference_of_two_shares_is_newcombes_example() -> None:
    found = share_difference(56, 70, 48, 80)  # Newcombe 1998, table II (a), method 10
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@pytest.mark.journey
@pytest.mark.parametrize(("least", "size", "share"), [(0, 5, 0.5), (7, 9, 0.5), (30, 900, 0.025)])
def test_the_binomial_tail_is_scipys(least: int, size: int, share: float) -> None:
    assert binomial_tail(least, size, share) == pytest.approx(
        stats.binom.sf(least - 1, size, share), rel=1e-9
    )


@cases(("wins", "losses"), [(11, 2), (2, 11), (5, 5), (0, 8), (410, 350)])
def test_the_sign_test_is_scipys(wins: int, losses: int) -> None:
    assert sign_test(wins, losses) == pytest.approx(
        stats.binomtest(wins, wins + losses).pvalue, rel=1e-9
    )


@pytest.mark.journey
@pytest.mark.parametrize("freedom", [0.7, 1, 2.5, 9, 60, 4_000])
@pytest.mark.parametrize("t", [0.0, 0.3, 1.96, 8.0])
def test_students_t_is_scipys(t: float, freedom: float) -> None:
    assert student_tail(t, freedom) == pytest.approx(stats.t.sf(t, freedom), rel=1e-9)


@pytest.mark.parametrize("freedom", [1, 4, 30.5])
def test_a_quantile_of_students_t_is_scipys(freedom: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)
    assert normal_quantile(0.975) == pytest.approx(stats.norm.ppf(0.975))


def test_blocks_of_one_give_the_textbook_error_and_test() -> None:
    sample = np.random.default_rng(1).normal(0.2, 1.0, 40)
    assert standard_error(sample, 1) == pytest.approx(stats.sem(sample), rel=1e-12)
    few = mean_of(sample[:3], np.random.default_rng(1))
    assert few.low is None  # three results are three blocks


@pytest.mark.parametrize(("size", "horizon", "block"), [(0, 1, 1), (30, 1, 3), (1_000, 16, 16)])
def test_a_block_is_never_shorter_than_the_horizon(size: int, horizon: int, block: int) -> None:
    assert block_length(size, horizon) == block


@cases(
    "values",
    [[], [0.4], [1.0, -1.0], [2.0] * 50, [0.1 + 0.2] * 400, [float("nan"), float("inf")]],
    ids=["none", "one", "two", "alike", "alike-but-for-rounding", "not-finite"],
)
def test_a_sample_that_tells_nothing_has_no_interval(values: list[Any]) -> None:
    found = mean_of(values, np.random.default_rng(2))
    assert found.low is found.high is found.p is found.se is None


def test_five_blocks_are_enough_and_fewer_are_not() -> None:
    sample = np.random.default_rng(3).normal(size=20 * LEAST_BLOCKS)
    assert mean_of(sample, np.random.default_rng(3), horizon=20).low is not None
    assert mean_of(sample[1:], np.random.default_rng(3), horizon=20).low is None


def test_fewer_than_20_values_have_no_interval_and_no_p() -> None:
    sample = np.random.default_rng(7).normal(size=LEAST_VALUES)
    assert mean_of(sample, np.random.default_rng(7)).low is not None
    few = mean_of(sample[1:], np.random.default_rng(7))
    assert few.low is few.high is few.p is None
    assert few.se is not None


@pytest.mark.parametrize(("low", "high"), [(-0.1, 0.9), (0.1, 1.1)], ids=["below", "above"])
def test_an_interval_never_ends_beyond_the_values(
    monkeypatch: pytest.MonkeyPatch, low: float, high: float
) -> None:
    values = np.linspace(0.0, 1.0, 25)
    assert mean_of(values, np.random.default_rng(7)).low is not None
    monkeypatch.setattr(intervals, "_studentised", lambda *_: Interval(low, high))
    found = mean_of(values, np.random.default_rng(7))
    assert found.low is found.high is found.p is None
    assert found.se is not None


def test_the_same_seed_gives_the_same_interval_and_scale_only_scales() -> None:
    sample = np.random.default_rng(4).standard_t(3, size=300)
    one, same = (mean_of(sample, np.random.default_rng(5)) for _ in range(2))
    large = mean_of(100 * sample, np.random.default_rng(5))
    assert one == same
    assert (large.low, large.high, large.p) == pytest.approx((100 * one.low, 100 * one.high, one.p))


def test_of_many_ordinary_results_the_interval_and_p_are_the_textbooks() -> None:
    sample = np.random.default_rng(8).normal(0.03, 1.0, 3_000)
    found = mean_of(sample, np.random.default_rng(8), resamples=6_000)
    freedom = len(sample) / found.block - 1
    reach = stats.t.ppf(0.975, freedom) * found.se
    assert found.high - found.low == pytest.approx(2 * reach, rel=0.06)
    assert found.p == pytest.approx(2 * stats.t.sf(found.mean / found.se, freedom), rel=1e-9)


def test_the_interval_reaches_further_on_the_side_of_the_tail() -> None:
    """What rarely happens may have been missed: a lottery may be worth more, a bet on it less."""
    lottery = np.random.default_rng(9).exponential(size=100)
    found = mean_of(lottery, np.random.default_rng(9))
    assert found.high - found.mean > 1.2 * (found.mean - found.low)
    sold = mean_of(-lottery, np.random.default_rng(9))
    assert sold.mean - sold.low > 1.2 * (sold.high - sold.mean)


def test_neighbours_that_resemble_each_other_make_the_interval_wider() -> None:
    sample = np.repeat(np.random.default_rng(6).normal(size=100), 8)
    alone, blocks = (mean_of(sample, np.random.default_rng(6), horizon=h) for h in (1, 32))
    assert blocks.se > 1.5 * standard_error(sample, 1)
    assert blocks.high - blocks.low > alone.high - alone.low


def test_an_interval_of_a_mean_holds_the_truth_as_often_as_it_says(scaled: Scale) -> None:
    """Studentised it misses about one in twenty; the percentile interval misses twice as often."""
    runs, missed = scaled(4_000, 300), 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        sample = np.where(rng.random(60) < 1 / 3, 2.0, -1.0)
        found = mean_of(sample, rng, resamples=400)
        missed += not found.low <= 0 <= found.high
    assert stats.binom.cdf(missed, runs, 0.05) > 1e-4
    assert stats.binom.sf(missed - 1, runs, 0.055) > 1e-4

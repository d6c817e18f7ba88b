"""Sums of whole arrays against math.fsum, to the last bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torra.market.exact_sums import exact_sum, two_sum

FAR_APART = st.floats(-1e9, 1e9, allow_nan=False, allow_subnormal=False)
SCORES = st.integers(-(10**8), 10**8).map(lambda number: number / 1e8)


def sums(terms: np.ndarray) -> list[float]:
    return exact_sum(list(terms)).tolist()


def fsums(terms: np.ndarray) -> list[float]:
    return [math.fsum(column) for column in terms.T.tolist()]


@given(st.lists(FAR_APART | SCORES, min_size=1, max_size=7))
def test_a_sum_is_the_exactly_rounded_one(values: list[float]) -> None:
    terms = np.array(values)[:, None]
    assert sums(terms) == fsums(terms)


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_weighted_scores_and_of_what_cancels(seed: int, scaled: Callable[..., int]) -> None:
    rng = np.random.default_rng(seed)
    count = scaled(400_000)
    scores = np.round(rng.uniform(-1, 1, (5, count)), 8) * rng.uniform(0, 3, (5, 1))
    assert sums(scores) == fsums(scores)
    wide = rng.normal(size=(6, count)) * 10.0 ** rng.integers(-30, 30, (6, count))
    wide[3] = -wide[0]
    wide[4] = -wide[1] * (1 + 2.0**-52)
    assert sums(wide) == fsums(wide)


def test_halfway_between_two_doubles() -> None:
    """1 + half a last place, and a speck that decides it: the plain sum cannot see the speck."""
    half, speck = 2.0**-53, 2.0**-120
    terms = np.array([[1.0, half, 0.0], [1.0, half, speck], [1.0, half, -speck]]).T
    assert sums(terms) == fsums(terms) == [1.0, 1.0 + 2 * half, 1.0]
    assert ((terms[0] + terms[1]) + terms[2]).tolist() != fsums(terms)


def test_what_is_unknown_stays_unknown() -> None:
    assert np.isnan(exact_sum([np.array([math.nan]), np.array([1.0]), np.array([2.0])])).all()


@given(FAR_APART, FAR_APART)
def test_nothing_is_lost_between_sum_and_error(one: float, other: float) -> None:
    parts = two_sum(np.array([one]), np.array([other]))
    assert sum(Fraction(float(part[0])) for part in parts) == Fraction(one) + Fraction(other)

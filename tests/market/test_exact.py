"""Whole arrays are rounded and summed to the last bit as `round` and `math.fsum` do of a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torra.market.exact import exact_sum, rounded, two_sum

DECIMALS = st.integers(0, 22)
HALVES = st.builds(
    lambda whole, decimals: ((whole + 0.5) / 10**decimals, decimals),
    st.integers(-(10**7), 10**7),
    DECIMALS,
)
BESIDE_HALVES = st.builds(
    lambda half, way: (float(np.nextafter(half[0], way)), half[1]),
    HALVES,
    st.sampled_from((-math.inf, math.inf)),
)
ANY = st.tuples(st.floats(allow_nan=False, allow_infinity=False), DECIMALS)
NUMBERS = st.lists(st.one_of(HALVES, BESIDE_HALVES, ANY), min_size=1, max_size=20)


def at_once(numbers: list[tuple[float, int]]) -> list[float]:
    """Return numbers rounded together, each to its own decimals."""
    return [float(rounded(np.array([value]), decimals)[0]) + 0.0 for value, decimals in numbers]


@settings(max_examples=60, deadline=None)
@given(NUMBERS)
def test_numbers_are_rounded_as_each_would_be_alone(numbers: list[tuple[float, int]]) -> None:
    alone = [round(value, decimals) + 0.0 for value, decimals in numbers]
    assert list(map(repr, at_once(numbers))) == list(map(repr, alone))


# --- columns ---


@pytest.mark.parametrize("decimals", [2, 4, 8])
def test_rounding_next_to_every_tie(decimals: int, scaled: Callable[..., int]) -> None:
    """A tie and the doubles on both sides of it: few ties are doubles, so most fall to one side."""
    rng = np.random.default_rng(decimals)
    halves = rng.integers(-(10**decimals), 10**decimals, scaled(100_000)) + 0.5
    ties = halves / 10**decimals
    near = np.concatenate([np.nextafter(ties, -9), ties, np.nextafter(ties, 9), [0.5, 2.5, 0.125]])
    assert rounded(near, decimals).tolist() == [round(value, decimals) for value in near.tolist()]


def test_scaling_first_would_round_otherwise() -> None:
    """np.round multiplies first, which makes ties of what are none."""
    values = np.round(np.arange(1, 2000) * 0.005, 3)
    assert np.round(values, 2).tolist() != [round(value, 2) for value in values.tolist()]
    assert rounded(values, 2).tolist() == [round(value, 2) for value in values.tolist()]


def test_a_column_keeps_what_is_not_finite_or_has_no_fraction() -> None:
    column = np.array([math.nan, math.inf, 1e300, 2.0**53, 1.005])
    found = rounded(column, 2)
    assert np.isnan(found[0]) and found[1:].tolist() == [math.inf, 1e300, 2.0**53, 1.0]


# --- sums ---


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

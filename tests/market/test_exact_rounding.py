"""Many numbers are rounded at once, and each is what `round` makes of it alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torra.market.exact_rounding import rounded

DECIMALS = st.integers(0, 8)
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


@pytest.mark.parametrize(
    ("value", "decimals"),
    [(0.5, 0), (1.5, 0), (2.675, 2), (1.005, 2), (0.285, 2), (-0.00001, 4), (1e300, 4), (2e9, 2)],
)
def test_halves_and_large_numbers_are_rounded_as_alone(value: float, decimals: int) -> None:
    assert repr(at_once([(value, decimals)])[0]) == repr(round(value, decimals) + 0.0)


def test_what_is_not_finite_stays_as_it_is() -> None:
    found = at_once([(1.239, 2), (math.nan, 4), (math.inf, 3), (-math.inf, 0)])
    assert list(map(repr, found)) == ["1.24", "nan", "inf", "-inf"]


# --- columns ---


@given(st.floats(-1e6, 1e6, allow_nan=False))
def test_a_column_is_rounded_as_python_does(value: float) -> None:
    assert rounded(np.array([value]), 8).tolist() == [round(value, 8)]


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


def test_every_power_of_ten_is_exact() -> None:
    """The power of floats may be one off in the last place, and so would be what it scales."""
    assert at_once([(0.1, decimals) for decimals in range(23)]) == [
        round(0.1, decimals) for decimals in range(23)
    ]

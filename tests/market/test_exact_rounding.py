"""Many numbers are rounded at once, and each is what `round` makes of it alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torra.market.exact_rounding import rounded

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

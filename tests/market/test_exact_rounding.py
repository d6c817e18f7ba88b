"""Many numbers are rounded at once, and each is what `round` makes of it alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torra.market.exact_rounding import Rounding

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
    values, decimals = zip(*numbers, strict=True)
    return Rounding(decimals).of(values)


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

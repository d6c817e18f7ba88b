"""Rounds many numbers at once, and gives what `round` gives of each: a column, or a row.

A product of floats lies on the same side of what is half way between two integers as the exact one,
or on it: rounding keeps the order. So the integer nearest to a number times its power of ten is the
right one, and over that power it is the float nearest to the decimal number. Where the product lies
half way, or has no fraction left, `round` itself is asked. What is not finite stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WHOLE: Final = 2.0**52
"""Product from which on a float has no fraction."""


def rounded(values: Array, decimals: int) -> Array:
    """Return a column of values rounded to so many decimals, 0 to 22."""
    found, doubtful = _nearest(values, np.float64(10**decimals))
    found[doubtful] = [round(value, decimals) for value in values[doubtful].tolist()]
    return found


class Rounding:
    """The decimals, 0 to 22 each, to which a row of numbers is rounded."""

    __slots__ = ("_decimals", "_scales")

    def __init__(self, decimals: Sequence[int]) -> None:
        self._decimals = tuple(decimals)
        # Powers of whole numbers: those of floats may be one off in the last place.
        self._scales = np.array([float(10**one) for one in self._decimals])

    def of(self, values: Sequence[float]) -> list[float]:
        """Return the numbers of a row rounded, none of them -0.0."""
        found, doubtful = _nearest(np.array(values, dtype=np.float64), self._scales)
        for place in doubtful.tolist():
            found[place] = round(float(values[place]), self._decimals[place])
        numbers: list[float] = (found + 0.0).tolist()
        return numbers


def _nearest(values: Array, scales: Array | np.float64) -> tuple[Array, NDArray[np.intp]]:
    """Return values rounded, and the places at which `round` has to be asked."""
    with np.errstate(invalid="ignore", over="ignore"):
        products = values * scales
        nearest = np.rint(products)
        doubtful = (np.abs(products - nearest) == 0.5) | (np.abs(products) >= WHOLE)
        return nearest / scales, np.flatnonzero(doubtful)

"""Rounds many numbers at once, each to its own decimals, and gives what `round` gives of it.

A product of floats lies on the same side of what is half way between two integers as the exact one,
or on it: rounding keeps the order. So the integer nearest to a number times its power of ten is the
right one, and over that power it is the float nearest to the decimal number. Where the product lies
half way, or has no fraction left, `round` itself is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

WHOLE: Final = 2.0**52
"""Product from which on a float has no fraction."""


class Rounding:
    """The decimals, 0 to 22 each, to which a row of numbers is rounded."""

    __slots__ = ("_decimals", "_scales")

    def __init__(self, decimals: Sequence[int]) -> None:
        self._decimals = tuple(decimals)
        self._scales = 10.0 ** np.array(self._decimals)

    def of(self, values: Sequence[float]) -> list[float]:
        """Return the numbers of a row rounded, none of them -0.0; what is not finite stays."""
        numbers = np.array(values, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            products = numbers * self._scales
            nearest = np.rint(products)
            sure = (np.abs(products - nearest) < 0.5) & (np.abs(products) < WHOLE)
            found: list[float] = (nearest / self._scales + 0.0).tolist()
        for place in np.flatnonzero(~sure).tolist():
            value = float(numbers[place])
            known = math.isfinite(value)
            found[place] = round(value, self._decimals[place]) + 0.0 if known else value
        return found

"""Rounds a column of numbers at once, and gives what `round` gives of each.

A product of floats lies on the same side of what is half way between two integers as the exact one,
or on it: rounding keeps the order. So the integer nearest to a number times its power of ten is the
right one, and over that power it is the float nearest to the decimal number. Where the product lies
half way, or has no fraction left, `round` itself is asked. What is not finite stays.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WHOLE: Final = 2.0**52
"""Product from which on a float has no fraction."""


def rounded(values: Array, decimals: int) -> Array:
    """Return a column of values rounded to so many decimals, 0 to 22."""
    scale = np.float64(10**decimals)
    with np.errstate(invalid="ignore", over="ignore"):
        products = values * scale
        nearest = np.rint(products)
        doubtful = (np.abs(products - nearest) == 0.5) | (np.abs(products) >= WHOLE)
        column = nearest / scale
    column[doubtful] = [round(value, decimals) for value in values[doubtful].tolist()]
    return column

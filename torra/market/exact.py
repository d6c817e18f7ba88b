"""Rounds and sums whole arrays, to the last bit as `round` and `math.fsum` do of each number.

A pass over a long history must do to a hundred thousand numbers at once what the brain does to each
(torra.verdict.sentiment_rules). NaN in gives NaN out. Numbers that are summed must be far from
overflow. Pure.

A product of floats lies on the same side of what is half way between two integers as the exact one,
or on it: rounding keeps the order. So the integer nearest to a number times its power of ten is the
right one, and over that power it is the float nearest to the decimal number. Where the product lies
half way, or has no fraction left, `round` itself is asked. What is not finite stays.

Of a sum error-free transformations are made: the sum of two doubles and its error are two doubles
again (Knuth). Where two stages of errors leave a doubt about the last bit, `math.fsum` itself
decides for that element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


def exact_sum(terms: Sequence[Array]) -> Array:
    """Return the exactly rounded sum of the terms, element by element, as `math.fsum` would.

    Each stage's errors are added up with errors of their own. Where the latter are not all zero and
    could reach a quarter of the result's last place, the element is summed by `math.fsum`.
    """
    total, *more = terms
    errors: list[Array] = []
    for term in more:
        total, error = two_sum(total, term)
        errors.append(error)
    if not errors:
        return total.copy()
    rest, lost = errors[0], np.zeros_like(total)
    for error in errors[1:]:
        rest, left = two_sum(rest, error)
        lost += np.abs(left)
    total, rest = two_sum(total, rest)
    doubtful = (lost > 0.0) & (np.abs(rest) + 2.0 * lost >= np.spacing(np.abs(total)) / 4.0)
    for at in np.flatnonzero(doubtful):
        total[at] = math.fsum(float(term[at]) for term in terms)
    return total


def two_sum(one: Array, other: Array) -> tuple[Array, Array]:
    """Return the sum as a double and its error; together they are exact (Knuth)."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)

"""Sums and rounds whole arrays, to the last bit as `math.fsum` and `round` do.

The brain adds exactly rounded and rounds to 1e-8 (torra.verdict.sentiment_rules). A pass over a
long history must do the same to a hundred thousand numbers at once. Error-free transformations do
it: the sum of two doubles and its error are two doubles again (Knuth), and so are a product and its
error (Dekker, by Veltkamp's split). Where two stages of errors leave a doubt about the last bit,
`math.fsum` itself decides for that element.

Pure. NaN in gives NaN out. Numbers must be far from overflow, and their products far from
underflow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SPLIT: Final = 134_217_729.0
"""2 ** 27 + 1: multiplying by it splits a double into two halves of 26 bits (Veltkamp)."""


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


def rounded(values: Array, decimals: int) -> Array:
    """Return values rounded to so many decimals as Python's `round` does it.

    That is the decimal number nearest to the exact value of the double, a tie to the even one, and
    the double nearest to that. |value| x 10 ** decimals must stay below 2 ** 52.
    """
    scale = float(10**decimals)
    # This product is rounded, so `whole` may be one off: the loop below puts it right.
    whole = np.rint(values * scale)
    product, error = two_product(values, np.full_like(values, 2.0 * scale))
    apart = product - 2.0 * whole  # exact: the two are near each other, or whole is 0
    near = np.nonzero(np.abs(apart) >= 1.0)  # a half away or farther: hardly ever one
    for side in (1.0, -1.0):
        past, beyond, found = side * apart[near], side * error[near], whole[near]
        further = (past > 1.0) | ((past == 1.0) & (beyond > 0.0))
        tie = (past == 1.0) & (beyond == 0.0) & (found % 2.0 != 0.0)
        whole[near] = np.where(further | tie, found + side, found)
    return np.asarray(whole / scale, dtype=np.float64)


def two_sum(one: Array, other: Array) -> tuple[Array, Array]:
    """Return the sum as a double and its error; together they are exact (Knuth)."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)


def two_product(one: Array, other: Array) -> tuple[Array, Array]:
    """Return the product as a double and its error; together they are exact (Dekker)."""
    product = one * other
    (high, low), (top, rest) = _halves(one), _halves(other)
    return product, low * rest - (((product - high * top) - low * top) - high * rest)


def _halves(values: Array) -> tuple[Array, Array]:
    spread = SPLIT * values
    high = spread - (spread - values)
    return high, values - high

"""Sums whole arrays, to the last bit as `math.fsum` does.

The brain adds exactly rounded (torra.verdict.sentiment_rules). A pass over a long history must do
the same to a hundred thousand numbers at once. Error-free transformations do it: the sum of two
doubles and its error are two doubles again (Knuth). Where two stages of errors leave a doubt about
the last bit, `math.fsum` itself decides for that element.

Pure. NaN in gives NaN out. Numbers must be far from overflow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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

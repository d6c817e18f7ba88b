"""The Shapley value: what one of several is worth in all the coalitions that it can join.

With n names, and v(S) the worth of a coalition (Shapley 1953):

    phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! x (v(S and i) - v(S))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Coalition = frozenset[str]


def coalitions(names: Sequence[str]) -> list[Coalition]:
    """Return every subset of the names, the empty one first."""
    sizes = range(len(names) + 1)
    return [frozenset(chosen) for size in sizes for chosen in combinations(names, size)]


def shapley(values: dict[Coalition, Floats], names: Sequence[str], name: str) -> Floats:
    """Return, per tick, the marginal value of `name` averaged over all orders of joining.

    Each coalition S without it counts |S|! (n - |S| - 1)! / n! (Shapley 1953).
    """
    others = [other for other in names if other != name]
    size = len(names)
    total = np.zeros_like(values[frozenset()])
    for coalition in coalitions(others):
        first = len(coalition)
        weight = math.factorial(first) * math.factorial(size - first - 1) / math.factorial(size)
        total = total + weight * (values[coalition | {name}] - values[coalition])
    return total

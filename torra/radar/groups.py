"""Which streams move together, by the correlation of their closes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torra.evidence.companion_readings import correlation

CLOSES: Final = 250
"""Closes over which two streams are compared."""

TOGETHER: Final = 0.7
"""Size of a correlation from which two streams are one move."""


class Closes(NamedTuple):
    """The closes of a stream: open times in microseconds since 1970, oldest first."""

    symbol: str
    step: timedelta
    times: NDArray[np.int64]
    closes: NDArray[np.float64]


def groups(streams: Mapping[str, Closes]) -> dict[str, tuple[str, ...]]:
    """Return for each stream the others of its group, by name.

    Two are of one group that are of one symbol, or of one timeframe with |r| of at least TOGETHER;
    and so is whoever is of one with either.
    """
    group = {name: {name} for name in streams}
    for (one, left), (other, right) in combinations(streams.items(), 2):
        if group[one] is not group[other] and _together(left, right):
            group[one] |= group[other]
            for name in group[other]:
                group[name] = group[one]
    return {name: tuple(sorted(those - {name})) for name, those in group.items()}


def _together(left: Closes, right: Closes) -> bool:
    if left.symbol == right.symbol:
        return True
    if left.step != right.step:
        return False
    r = correlation(left.times, left.closes, right.times, right.closes, left.step, CLOSES - 1)
    return r is not None and abs(r) >= TOGETHER

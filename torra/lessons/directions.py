"""Cosines between vectors that come out the same to the last bit, whatever else lies beside them.

A sum of products depends in its last bits on the order in which a BLAS adds, and so on threads and
on how many rows there are. Each vector is therefore turned into whole numbers on a grid: products
and sums of those are exact in single precision, in any order. A cosine is then one division.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from torra.lessons.columns import Column

GRID: Final = 2048
"""Length of a vector on the grid. Its square, 2 ** 22, leaves room below 2 ** 24, up to which
single precision knows every whole number: no partial sum of products is larger (Cauchy-Schwarz).
"""


Point = NDArray[np.float32]
"""A vector on the grid."""


class Directions:
    """Vectors of one width, of which only the direction counts."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._points = Column(np.float32, width)
        self._lengths = Column(np.float64)

    def point(self, vector: Sequence[float] | None) -> Point:
        """Return a vector on the grid; raises ValueError for one of another width."""
        if vector is not None and len(vector) != self._width:
            raise ValueError(f"a vector of {len(vector)} numbers among those of {self._width}")
        return on_grid(vector, self._width)

    def append(self, point: Point) -> None:
        """Add a row."""
        self._points.append(point)
        self._lengths.append(_length(point))

    def cosines(self, vector: Sequence[float] | None, rows: slice) -> NDArray[np.float64]:
        """Return the cosine of each row with a vector; 0 where one of both has no direction."""
        point = self.point(vector)
        # Row by row: a product of a matrix wakes the threads of a BLAS, and where others work on
        # the same cores it waits for them, for milliseconds.
        products: NDArray[np.float64] = np.vecdot(self._points.rows[rows], point).astype(np.float64)
        return products / np.maximum(self._lengths.rows[rows] * _length(point), 1.0)


def on_grid(vector: Sequence[float] | None, width: int) -> Point:
    """Return a vector as whole numbers, about GRID long; zeros for one that has no direction."""
    if vector is None:
        return np.zeros(width, np.float32)
    values = [float(value) for value in vector]
    length = math.hypot(*values)
    if not math.isfinite(length) or length == 0.0:
        return np.zeros(width, np.float32)
    return np.rint(np.array(values) / length * GRID).astype(np.float32)


def _length(point: Point) -> float:
    return math.sqrt(float(point @ point))

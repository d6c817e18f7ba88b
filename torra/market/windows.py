"""Means, extremes and deviations of sliding windows, each the same whatever came before its window.

A running sum keeps in its last digits where it began. Here the values of a window are put together
in one order that depends on its length alone, so the newest 750 bars give every number of the whole
history to the last bit. All of it is done on whole columns: no step depends on the one before.

A column is as long as the values, NaN before the first window is full. Values are taken as finite;
a NaN is in the windows that hold it and in no other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def mean(values: Array, length: int) -> Array:
    """Return the mean of the newest `length` values.

    They are added as pairs, pairs of pairs and so on, as the binary digits of `length` ask for.
    """
    count = len(values) - length + 1
    total, block, taken, size = np.zeros(count), values, 0, 1
    while taken < length:
        if length & size:
            total = total + block[taken : taken + count]
            taken += size
        block, size = block[:-size] + block[size:], 2 * size
    return late(total / length, len(values))


def highest(values: Array, length: int) -> Array:
    """Return the highest of the newest `length` values."""
    return late(extremes(values, length, np.maximum), len(values))


def lowest(values: Array, length: int) -> Array:
    """Return the lowest of the newest `length` values."""
    return late(extremes(values, length, np.minimum), len(values))


def extremes(values: Array, length: int, pick: Callable[[Array, Array], Array]) -> Array:
    """Return the extreme of every full window, oldest first; `pick` is np.maximum or np.minimum.

    Pairs of pairs make windows of 2, 4, 8 bars; two of them that overlap make the last.
    """
    size = 1
    while 2 * size <= length:
        values, size = pick(values[:-size], values[size:]), 2 * size
    rest = length - size
    return pick(values[:-rest], values[rest:]) if rest else values


def standard_deviation(values: Array, means: Array, length: int) -> Array:
    """Return the population standard deviation of the newest `length` values about their means."""
    return np.sqrt(_deviation(values, means, length, np.square))


def mean_deviation(values: Array, means: Array, length: int) -> Array:
    """Return the mean absolute deviation of the newest `length` values about their means."""
    return _deviation(values, means, length, np.abs)


def _deviation(values: Array, means: Array, length: int, measure: np.ufunc) -> Array:
    """Return the mean of what `measure` makes of the distances from the mean, oldest value first.

    `means` is the column of the windows' means.
    """
    middle = means[length - 1 :]
    total, distances = np.zeros_like(middle), np.empty_like(middle)
    for place in range(length):
        np.subtract(values[place : place + len(middle)], middle, out=distances)
        measure(distances, out=distances)
        total += distances
    return late(total / length, len(values))


def before(values: Array, bars: int) -> Array:
    """Return the values `bars` bars ago; NaN where there were none."""
    return late(values[:-bars], len(values))


def late(values: Array, length: int) -> Array:
    """Return values that begin late as a column of `length` rows, NaN before them."""
    column = np.empty(length)
    column[: length - len(values)] = np.nan
    column[length - len(values) :] = values
    return column

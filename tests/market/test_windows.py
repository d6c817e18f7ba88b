"""Means, extremes and deviations of windows: right, and the same whatever came before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from torra.market import windows

Array = np.ndarray
LENGTHS = (1, 2, 3, 5, 14, 20, 52, 200)

COLUMNS: dict[str, Callable[[Array, int], Array]] = {
    "mean": windows.mean,
    "highest": windows.highest,
    "lowest": windows.lowest,
    "deviation": lambda x, n: windows.standard_deviation(x, windows.mean(x, n), n),
    "mean deviation": lambda x, n: windows.mean_deviation(x, windows.mean(x, n), n),
}
PLAIN: dict[str, Callable[[Array], Array]] = {
    "mean": lambda w: w.mean(axis=1),
    "highest": lambda w: w.max(axis=1),
    "lowest": lambda w: w.min(axis=1),
    "deviation": lambda w: w.std(axis=1),
    "mean deviation": lambda w: np.abs(w - w.mean(axis=1, keepdims=True)).mean(axis=1),
}


def values(count: int = 900) -> Array:
    return 1000.0 + np.random.default_rng(4).normal(size=count).cumsum()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_that_of_every_window_alone(name: str) -> None:
    series = values()
    for length in LENGTHS:
        found = COLUMNS[name](series, length)
        assert len(found) == len(series) and np.isnan(found[: length - 1]).all()
        want = PLAIN[name](sliding_window_view(series, length))
        np.testing.assert_allclose(found[length - 1 :], want, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("name", COLUMNS)
def test_what_came_before_a_window_changes_not_a_bit_of_it(name: str) -> None:
    series = values()
    other = np.concatenate([np.full(301, 1e9 / 7.0), series[333:]])
    for length in LENGTHS:
        one, two = COLUMNS[name](series, length), COLUMNS[name](other, length)
        np.testing.assert_array_equal(one[333 + length :], two[301 + length :])


def test_a_window_without_a_full_length_has_no_value() -> None:
    assert np.isnan(windows.before(values(5), 5)).all()
    np.testing.assert_array_equal(windows.before(np.array([1.0, 2.0, 3.0]), 1), [np.nan, 1.0, 2.0])

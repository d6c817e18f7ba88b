"""Price series for tests: shipped samples, random walks with every trap, mirror images."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from tests import ROOT

SAMPLE_DATA = ROOT / "sample_data"
SAMPLES = ("BTCUSD_M15", "BTCUSD_H1", "EURUSD_H1")
GRID = 2.0**-6
"""Walks move on this grid: sums and differences of their prices are exact."""


def sample(name: str) -> pd.DataFrame:
    """Return a shipped series as a feed hands it over."""
    return _read(name).copy()


@cache
def _read(name: str) -> pd.DataFrame:
    bars = pd.read_csv(SAMPLE_DATA / f"{name}.csv", index_col="time", parse_dates=True)
    return bars.astype(float)


def walk(count: int, seed: int, *, flat: tuple[int, int] = (0, 0)) -> pd.DataFrame:
    """Return a random walk on M15 with gaps, spikes, doji, equal prices and bars without volume.

    Nothing moves in the bars from `flat[0]` to `flat[1]`.
    """
    chance = np.random.default_rng(seed)
    steps = chance.normal(chance.choice([-0.02, 0.0, 0.02]), 1.0, count)
    steps *= chance.choice([0.2, 1.0, 6.0], count, p=[0.3, 0.6, 0.1])
    moving = np.ones(count)
    moving[slice(*flat)] = 0.0
    close = 1000.0 + np.cumsum(np.round(steps / GRID) * GRID * moving)
    gaps = np.round(chance.normal(0.0, 0.5, count) / GRID) * GRID * (chance.random(count) < 0.1)
    opened = np.concatenate([[1000.0], close[:-1]]) + gaps * moving
    wicks = np.round(chance.exponential(0.6, (2, count)) / GRID) * GRID * moving
    high, low = np.maximum(opened, close) + wicks[0], np.minimum(opened, close) - wicks[1]
    volume = chance.integers(0, 5000, count) * (chance.random(count) < 0.8)
    time = pd.date_range("2024-03-04", periods=count, freq="15min", tz="UTC", name="time")
    columns = {"open": opened, "high": high, "low": low, "close": close, "volume": volume * 1.0}
    return pd.DataFrame(columns, index=time)


def times_of(frame: pd.DataFrame | pd.Series) -> pd.DatetimeIndex:
    """Return the index of a series in time."""
    assert isinstance(frame.index, pd.DatetimeIndex)
    return frame.index


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield the rows, named by column and "Index"."""
    yield from frame.itertuples()


def row_of(values: pd.Series[Any]) -> dict[str, Any]:
    """Return one row by column, as a tick reads it."""
    return {str(name): value for name, value in values.to_dict().items()}


def mirrored(bars: pd.DataFrame, axis: float = 2048.0) -> pd.DataFrame:
    """Return the bars upside down: every price p becomes axis - p."""
    turned = axis - bars[["open", "low", "high", "close"]]
    turned.columns = pd.Index(["open", "high", "low", "close"])
    return turned.assign(volume=bars["volume"])


def times(bars: pd.DataFrame, *, price: float = 1.0, volume: float = 1.0) -> pd.DataFrame:
    """Return the bars with prices and volumes multiplied."""
    return bars * [price, price, price, price, volume]

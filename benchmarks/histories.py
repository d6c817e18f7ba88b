"""Bars for benchmarks: the shipped samples, and longer ones made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from torra.clock import duration
from torra.config import ROOT
from torra.replay.shards.history import load

SEED: Final = 7
STIRRED: Final = 2e-4
"""Standard deviation of what a bar's prices are moved by, as a share of them, added up."""

PRICES: Final = ("open", "high", "low", "close")


def shipped(symbol: str, timeframe: str) -> pd.DataFrame:
    """Return the bars of a shipped sample."""
    file = str(ROOT / "sample_data" / f"{symbol}_{timeframe}.csv")
    return load(Path("nowhere"), symbol, [file]).frames[timeframe]


def stirred(symbol: str, timeframe: str, bars: int, decimals: int) -> pd.DataFrame:
    """Return so many bars: the sample over and over, moved so that no stretch is twice the same."""
    frame, names = shipped(symbol, timeframe), list(PRICES)
    long = pd.concat([frame] * (bars // len(frame) + 1)).iloc[:bars]
    rng = np.random.default_rng(SEED)
    moved = np.exp(np.cumsum(rng.normal(0.0, STIRRED, bars)))
    long[names] = long[names].mul(moved, axis=0).round(decimals)
    long["high"], long["low"] = long[names].max(axis=1), long[names].min(axis=1)
    long.index = pd.date_range(
        frame.index[0].floor("h"), periods=bars, freq=duration(timeframe), name=frame.index.name
    )
    return long

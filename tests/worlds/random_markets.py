"""Markets in which nothing can be known, made of a seed: what honest statistics are tried on."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.random import PCG64, Generator

from torra.replay.shards.history import History

STEPS = 12
"""Moves inside a bar: they make its high and low."""

PRICE, MOVE, SPREAD = 2000.0, 2.0, 0.25
"""Where the walk begins, the standard deviation of a bar, and what a trade costs; gold's sizes."""


def random_walk(bars: int, seed: int) -> History:
    """Return M15 bars of a random walk without drift, called XAUUSD, two decimals."""
    rng = Generator(PCG64([seed, 515]))
    steps = rng.normal(0.0, MOVE / np.sqrt(STEPS), (bars, STEPS))
    inside = PRICE + np.cumsum(steps.ravel()).reshape(bars, STEPS)
    opens = np.concatenate([[PRICE], inside[:-1, -1]])
    whole = np.column_stack([opens, inside]).round(2)
    time = pd.date_range("2024-01-01", periods=bars, freq="15min", tz="UTC", name="time")
    columns = {
        "open": whole[:, 0],
        "high": whole.max(axis=1),
        "low": whole.min(axis=1),
        "close": whole[:, -1],
        "volume": rng.integers(50, 500, bars).astype(float),
    }
    return History("XAUUSD", {"M15": pd.DataFrame(columns, index=time)}, {"M15": "a random walk"})

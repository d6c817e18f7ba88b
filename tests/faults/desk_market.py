"""The market of the desk machine: three symbols that swing up and down, and a feed that can stall.

The walk is the same in every run, so that a sequence of steps means the same every time; scores of
the same bars are worked out once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from torra.clock import duration
from torra.config import SYMBOLS
from torra.market.longer_bars import aggregate
from torra.tick import bar_window

OPENING = datetime(2026, 2, 11, 8, 2, tzinfo=UTC)
"""When the desk's first life begins, two minutes after a close."""

BEFORE = 230
"""Bars of each timeframe that are known by then: a few more than a tick needs."""

AFTER = 1_600
QUARTER = timedelta(minutes=15)
SWING, REACH = 9.0, 2.5
"""Bars from one top to the next, and how far it is down from there, in steps of a bar."""

PRICES = {"XAUUSD": (2000.0, 0.0012), "EURUSD": (1.1, 0.0009), "BTCUSD": (60_000.0, 0.0025)}
"""Where each symbol begins, and how far it goes in a bar."""


@functools.cache
def frames(symbol: str) -> Mapping[str, pd.DataFrame]:
    """Return the bars of a symbol by timeframe."""
    price, step = PRICES[symbol]
    rng = np.random.default_rng(sorted(PRICES).index(symbol) + 8)
    bars = 4 * BEFORE + AFTER
    phase = np.cumsum(2 * np.pi / rng.uniform(0.6 * SWING, 1.6 * SWING, bars))
    walk = np.cumsum(rng.normal(0.0, 0.5, bars)) + REACH * np.sin(phase)
    close = price * np.exp(walk * step)
    opened = np.concatenate([[price], close[:-1]])
    reach = np.abs(rng.normal(0.0, step, (2, bars))) * price
    table = {
        "open": opened,
        "high": np.maximum(opened, close) + reach[0],
        "low": np.minimum(opened, close) - reach[1],
        "close": close,
    }
    first = pd.Timestamp(OPENING).floor("15min") - 4 * BEFORE * pd.Timedelta(minutes=15)
    index = pd.date_range(first, periods=bars, freq="15min", name="time").as_unit("ns")
    frame = pd.DataFrame(table, index=index).round(SYMBOLS[symbol].digits)
    frame["volume"] = 100.0
    return {"M15": frame.iloc[3 * BEFORE :], "H1": aggregate(frame, "M15", "H1")}


class Feed:
    """The bars of every symbol as they close; `stalled` names symbols whose newest do not come."""

    def __init__(self) -> None:
        self.stalled: dict[str, datetime] = {}

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` bars closed at `as_of`, oldest first."""
        frame = frames(symbol)[timeframe]
        end = min(as_of, self.stalled.get(symbol, as_of)) - duration(timeframe)
        upto = frame.index.searchsorted(pd.Timestamp(end), side="right")
        return frame.iloc[max(0, upto - (limit or upto)) : upto]

    def period(self) -> None:
        """Return None: this is no replay."""
        return


def price_at(symbol: str, moment: datetime) -> float:
    """Return the close of the newest M15 bar."""
    first, closes = _closes(symbol)
    return closes[(moment - first) // QUARTER - 1]


@functools.cache
def _closes(symbol: str) -> tuple[datetime, list[float]]:
    """Return the open time of the first M15 bar, and the close of each."""
    frame = frames(symbol)["M15"]
    return frame.index[0].to_pydatetime(), frame["close"].tolist()


def remember_scores(patch: pytest.MonkeyPatch) -> None:
    """Score the same bars once for all examples: the same frame always gives the same row."""
    known: dict[tuple[Any, ...], Any] = {}
    score = bar_window.last_row

    def remembered(frame: pd.DataFrame) -> Any:
        last = frame.iloc[-1]
        key = (len(frame), frame.index[0], frame.index[-1], float(last.close), float(last.high))
        if key not in known:
            known[key] = score(frame)
        return known[key]

    patch.setattr(bar_window, "last_row", remembered)

"""What every reader of bars does with a frame, and the feeds of frames and of stored bars.

`FrameFeed` is for a file on the command line, and for tests: nothing is read, and nothing can fail
but a stream that is not there, which is a ConfigError.

`StoredFeed` is that of an instance whose bars were imported. The database is handed in as a
callable, so that this module knows nothing of SQLite. What the callable raises (StoreUnavailable)
passes through; an empty frame is left to the door, which calls it too short.

MetaTrader counts a spread in points, the last decimal with which it quotes the symbol, and writes
every price with all of its decimals. So the text of the prices tells the point (`decimals_of`),
whatever the desk believes of the symbol. Where it does not tell it, nothing is guessed: there are
no spreads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.clock import duration
from torra.errors import ConfigError
from torra.feeds.limited import LiveFeed
from torra.feeds.protocol import COLUMNS
from torra.market.broker_clock import Seconds, ServerClock, offsets_used, shown
from torra.market.spreads import SPREAD

MIN_SHARE: Final = 0.25
"""Share of prices that must have all decimals: a program that rewrote a file may have dropped the
last zeros, and of a symbol that moves by quarters half of its prices end with one.
"""

MIN_PRICES: Final = 100
"""Prices without which a file of a program that nobody knows tells nothing."""

MOST_DECIMALS: Final = 8
"""What MetaTrader quotes with at most; more are binary fractions written out."""


class FrameFeed(LiveFeed):
    """Bars by timeframe, of one symbol."""

    def __init__(self, frames: Mapping[str, pd.DataFrame]) -> None:
        self._frames = frames

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` bars closed at `as_of`, oldest first; all when it is None."""
        if timeframe not in self._frames:
            raise ConfigError(f"no bars of {symbol} {timeframe} were given")
        frame = self._frames[timeframe]
        return newest_of(frame[frame.index <= pd.Timestamp(as_of - duration(timeframe))], limit)


class StoredFeed(LiveFeed):
    """Bars as they were imported, read by `load` (`Database.load_bars`).

    They are those of one `instance`, or without one of any symbol: each under the name that it was
    imported by.
    """

    def __init__(self, load: Callable[..., pd.DataFrame], instance: str = "") -> None:
        self._load = load
        self._instance = instance

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` stored bars closed at `as_of`, oldest first."""
        name = self._instance or symbol
        frame = self._load(name, timeframe, as_of=as_of, limit=limit)
        if self._instance or len(frame) or symbol == symbol.upper():
            return frame
        # `torra import` stores what is no instance's under its name in capitals.
        return self._load(symbol.upper(), timeframe, as_of=as_of, limit=limit)


def newest_of(frame: pd.DataFrame, limit: int | None) -> pd.DataFrame:
    """Return the newest `limit` bars of a frame, all when it is None."""
    # Not [-limit:], which is everything for a limit of 0.
    return frame if limit is None else frame.iloc[max(0, len(frame) - limit) :]


def broker_name(symbols: Mapping[str, str], symbol: str) -> str:
    """Return what a broker calls a symbol; raises ConfigError for one that a channel lacks."""
    if symbol not in symbols:
        raise ConfigError(f"the channel brings no bars of {symbol}; it brings {', '.join(symbols)}")
    return symbols[symbol]


def in_utc(
    wall: Seconds, values: npt.NDArray[np.float64], clock: ServerClock
) -> tuple[pd.DataFrame, str]:
    """Return bars with spreads at their times in UTC, and the fault of a time that cannot be.

    `wall` are seconds of the server's wall clock. With a fault the frame means nothing.
    """
    index = clock.to_utc_index(wall)
    frame = pd.DataFrame(values, index=index.rename("time"), columns=[*COLUMNS, SPREAD])
    if fault := clock_fault(wall, index, clock):
        return frame, fault
    stamps = pd.DatetimeIndex((wall * 1_000_000).view("M8[us]"))
    frame.attrs["clock"] = clock.name
    frame.attrs["utc_offsets"] = offsets_used(stamps, index)
    return frame, ""


def clock_fault(wall: Seconds, index: pd.DatetimeIndex, clock: ServerClock) -> str:
    """Return the sentence about a wall time that the clock never shows; "" where each exists."""
    if not index.hasnans:
        return ""
    first = shown(int(wall[index.isna()][0]))
    return f"{first} does not exist on a server of {clock.name}: set server_clock"


def decimals_of(prices: Sequence[str], *, terminal: bool) -> int | None:
    """Return with how many decimals a symbol is quoted, by the texts of its prices.

    `terminal` says that MetaTrader wrote them, so that few will do. None where they do not tell.
    """
    if not prices or (len(prices) < MIN_PRICES and not terminal):
        return None
    behind = [len(price.strip().partition(".")[2]) for price in prices]
    most = max(behind)
    enough = behind.count(most) >= MIN_SHARE * len(behind)
    return most if enough and most <= MOST_DECIMALS else None


def in_price(points: npt.NDArray[np.float64], decimals: int | None) -> npt.NDArray[np.float64]:
    """Return spreads in units of the price; NaN for all where the point is not known."""
    if decimals is None:
        return np.full(len(points), np.nan)
    # Rounded: 28 points of 0.01 are 0.28 and no 0.28000000000000003.
    return np.round(points / 10.0**decimals, decimals)

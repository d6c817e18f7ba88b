"""Bars in memory: what every reader of bars does with a frame, and a frame as a feed.

The feed is for a file on the command line, and for tests: nothing is read, and nothing can fail but
a stream that is not there, which is a ConfigError.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.clock import duration
from torra.errors import ConfigError
from torra.feeds.protocol import COLUMNS
from torra.market.broker_clock import Seconds, ServerClock, offsets_used, shown
from torra.market.spreads import SPREAD


class FrameFeed:
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

    def period(self) -> None:
        """Return None: a file is no replay."""
        return


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

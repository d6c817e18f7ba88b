"""Bars that are already in memory, as a feed: a file on the command line, a test.

Nothing is read and nothing can fail but a stream that is not there, which is a ConfigError.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import pandas as pd

from torra.clock import duration
from torra.errors import ConfigError


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
        closed = frame[frame.index <= pd.Timestamp(as_of - duration(timeframe))]
        return closed if limit is None else closed.iloc[-limit:]

    def period(self) -> None:
        """Return None: a file is no replay."""
        return

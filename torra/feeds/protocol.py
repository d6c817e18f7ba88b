"""The interface of every feed, and the columns that bars have everywhere in Torra.

A feed hands over raw bars that are closed at `as_of`; it repairs nothing and fills no gap. The door
(`torra.feeds.door`) decides, once, whether the bars can be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Protocol

import pandas as pd

from torra.clock import duration, iso
from torra.config import Profile
from torra.errors import DataUnavailable
from torra.evidence.flow_readings import NO_FLOW, FlowThen
from torra.market.closed_hours import closed_weekends

FRESH_BARS: Final = 2
"""A bar that closed more than this many bars ago is too old for a tick."""

COLUMNS: Final = ("open", "high", "low", "close", "volume")
"""What every bar has; beside them a frame may have `spread` (torra.market.spreads)."""

SERVER_CLOCK: Final = "server_clock"
"""Reason of DataUnavailable: the server's clock is not the one of desk.json."""

NO_FILE: Final = "no_file"
NO_BARS: Final = "no_bars"
"""Reasons of DataUnavailable: the source has nothing of a symbol, by its files or its terminal."""


class Feed(Protocol):
    """A source of closed bars."""

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` bars closed at `as_of`, oldest first; all when it is None.

        The index is the bar's open time in UTC, named "time"; the columns are open, high, low,
        close, volume, and where the feed knows it the spread in units of the price. Raises
        ConfigError for a stream that the feed does not have and DataUnavailable when the source
        cannot be read.
        """
        ...

    def period(self) -> tuple[datetime, datetime] | None:
        """Return the first and last moment of a feed that replays the past; None for a live one."""
        ...


class FlowFeed(Protocol):
    """A source of the order flow of closed bars; a feed may be one, too."""

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        """Return what is known of bars by their open times, oldest first; never raises.

        The status is about the last of them. Rows of other bars may come along.
        """
        ...


TakeFlow = Callable[[], FlowThen]
"""Returns what has been read of the order flow that was asked for; never raises."""


def no_flow() -> FlowThen:
    """Return that there is no order flow."""
    return NO_FLOW


def stream_state(feed: Feed, symbol: str, timeframe: str, now: datetime, profile: Profile) -> str:
    """Say in one sentence what keeps a stream from being ticked now; empty when nothing does."""
    try:
        newest = feed.bars(symbol, timeframe, now, 1)
    except DataUnavailable as error:
        return error.detail
    if not len(newest):
        return f"no bars; bring some: torra import FILE --symbol {symbol} --timeframe {timeframe}"
    close = newest.index[-1].to_pydatetime() + duration(timeframe)
    weekends = closed_weekends(profile, symbol, close, now)
    if now - close - weekends <= FRESH_BARS * duration(timeframe):
        return ""
    return (
        f"the newest bar closed {iso(close)}, {(now - close).days} days ago; a tick comes with the "
        "next bar that is imported while it is fresh"
    )

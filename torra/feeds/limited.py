"""A time limit around a feed that may not answer, such as files on a share.

DataUnavailable (`no_answer`) is raised instead of waiting on. So a tick that asks ends in time, is
tried again like any whose bar is late, and leaves its reason on record. Everything else is the
feed's own. Order flow is read beside the ticks (torra.feeds.limited_flow).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

import pandas as pd

from torra.errors import DataUnavailable
from torra.evidence.flow_readings import NO_FLOW, FlowThen
from torra.feeds.protocol import Feed, FlowSource, TakeFlow, no_flow
from torra.time_limit import TimeLimit

NO_ANSWER: Final = "no_answer"
"""Reason of DataUnavailable."""


class LimitedFeed:
    """A feed whose reading has a time limit."""

    def __init__(self, feed: Feed, limit: TimeLimit, flow: FlowSource | None = None) -> None:
        """Take a feed and its limit; the order flow beside it has a limit of its own."""
        self._feed = feed
        self._limit = limit
        self._flow = flow

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the feed's bars; raises DataUnavailable when they do not come in time."""
        try:
            return self._limit.run(partial(self._feed.bars, symbol, timeframe, as_of, limit))
        except TimeoutError as error:
            raise DataUnavailable(
                NO_ANSWER, f"{error.filename}: {error.strerror}: look at its disk or share"
            ) from error

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        """Return the order flow, where there is any."""
        return NO_FLOW if self._flow is None else self._flow.flow(symbol, timeframe, times)

    def begin_flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> TakeFlow:
        """Begin to read the order flow beside a tick, which takes it later."""
        return no_flow if self._flow is None else self._flow.begin(symbol, timeframe, times)

    def period(self) -> tuple[datetime, datetime] | None:
        """Return the feed's period."""
        return self._feed.period()

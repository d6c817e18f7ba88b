"""A time limit around a feed that may not answer, such as files on a share.

DataUnavailable (`no_answer`) is raised instead of waiting on. So a tick that asks ends in time, is
tried again like any whose bar is late, and leaves its reason on record. Everything else is the
feed's own. Order flow beside the bars has a shorter limit, and what it lacks is a status.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

import pandas as pd

from torra.errors import DataUnavailable
from torra.evidence.flow_readings import NO_FLOW, FlowThen
from torra.evidence.news_digest import NewsStatus
from torra.feeds.protocol import Feed, FlowFeed
from torra.time_limit import TimeLimit

NO_ANSWER: Final = "no_answer"
"""Reason of DataUnavailable."""

FLOW_SECONDS: Final = 1.0
"""Real seconds that a tick may wait for the order flow, once: then no more until it answers."""

log = logging.getLogger("torra")


class LimitedFeed:
    """A feed whose reading has a time limit."""

    def __init__(self, feed: Feed, limit: TimeLimit, flow: FlowFeed | None = None) -> None:
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

    def period(self) -> tuple[datetime, datetime] | None:
        """Return the feed's period."""
        return self._feed.period()


class LimitedFlow:
    """A source of order flow that no tick waits for, and that never raises.

    Bars never wait behind it: its limit is not theirs.
    """

    def __init__(self, flow: FlowFeed, limit: TimeLimit) -> None:
        self._flow = flow
        self._limit = limit

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        """Return the order flow; of what does not come in time the status says so."""
        try:
            return self._limit.run(partial(self._flow.flow, symbol, timeframe, times))
        except TimeoutError:
            return FlowThen({}, str(NewsStatus.UNREACHABLE))
        except Exception:
            log.exception("order flow of %s %s", symbol, timeframe)
            return FlowThen({}, str(NewsStatus.BROKEN))

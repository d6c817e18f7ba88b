"""A time limit around a feed that may not answer, such as files on a share.

DataUnavailable (`no_answer`) is raised instead of waiting on. So a tick that asks ends in time, is
tried again like any whose bar is late, and leaves its reason on record. Everything else is the
feed's own.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Final

import pandas as pd

from torra.errors import DataUnavailable
from torra.feeds.protocol import Feed
from torra.time_limit import TimeLimit

NO_ANSWER: Final = "no_answer"
"""Reason of DataUnavailable."""


class LimitedFeed:
    """A feed whose reading has a time limit."""

    def __init__(self, feed: Feed, limit: TimeLimit) -> None:
        self._feed = feed
        self._limit = limit

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

    def period(self) -> tuple[datetime, datetime] | None:
        """Return the feed's period."""
        return self._feed.period()

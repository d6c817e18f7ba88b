"""Old texts go: calls of models and of tools, headlines, streams, ledger rows, a few at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from instance_database import Database
from torra.clock import Clock
from torra.config import LONGEST_NEWS_HOURS
from torra.store import ledger as ledger_table
from torra.store import news as news_table
from torra.store import streams as stream_table
from torra.store import tool_calls as tool_table

ROWS: Final = 200
"""Rows of one transaction: the longest that a tick waits to write."""

SECONDS: Final = 1.0
"""Real seconds after which the rest waits for the next time."""

KEEP_NEWS: Final = timedelta(hours=LONGEST_NEWS_HOURS) + timedelta(days=2)
"""Younger headlines stay, however short texts are kept: a tick may still use them."""


KEEP_TOOL_CALLS: Final = timedelta(days=30)
"""How long the audit of tools is kept, however short or long texts are."""


def prune(database: Database, clock: Clock, keep: timedelta, goes_on: Callable[[], bool]) -> int:
    """Remove what is older than `keep`, for SECONDS at most; raises StoreUnavailable.

    Returns how many rows of calls, pictures, headlines, streams and tool calls went.
    """
    end, gone = clock.monotonic() + SECONDS, 0
    now = clock.real_now()
    before, news = now - keep, now - max(keep, KEEP_NEWS)
    while goes_on() and clock.monotonic() < end:
        rows = database.prune(before, limit=ROWS)
        rows += news_table.prune_news(database, news, limit=ROWS)
        rows += stream_table.prune_streams(database, before, limit=ROWS)
        rows += tool_table.prune_tool_calls(database, now - KEEP_TOOL_CALLS, limit=ROWS)
        gone += rows
        if not rows:
            ledger_table.prune_ledger(database, before)
            break
    return gone

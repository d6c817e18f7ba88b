"""The rows of closes that are too old for a tick: each says why, and many are written at a time.

A desk that was off for weeks owes thousands of rows before its first tick. They are written in
transactions of ROWS, so that the desk's other ticks wait for none of them long, and the feed is
asked once per timeframe instead of once per bar. A close that is written off is never run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final

from instance_database import Database, TickKey
from torra.clock import duration
from torra.config import Instance
from torra.errors import DataUnavailable
from torra.feeds.protocol import Feed

MISSED: Final = ("missed", "the desk came too late for this bar")
NO_BAR: Final = ("no_bar", "the feed brought no bar for this close")
FEED_FAULT: Final = "feed_fault"
"""Reason of a close whose feed raised what no feed may raise."""

ROWS: Final = 500
"""Rows of one transaction: some hundredths of a second."""

Reason = tuple[str, str]
"""A word, and a sentence."""

log = logging.getLogger("torra")


def missing_bar_reason(instance: Instance, feed: Feed, key: TickKey) -> Reason | None:
    """Return why the feed does not bring a bar; None when it does. Never raises."""
    as_of = key.close_time
    times = _bar_times(instance, feed, key.timeframe, as_of, 1)
    if isinstance(times, set):
        return None if key.bar_time in times else NO_BAR
    return times


def mark_missed(
    database: Database,
    instance: Instance,
    feed: Feed,
    keys: Sequence[TickKey],
    *,
    known: Mapping[TickKey, Reason],
    goes_on: Callable[[], bool] = lambda: True,
) -> dict[TickKey, Reason]:
    """Record why ticks are not run; return what was recorded, oldest first.

    `known` holds the reasons of ticks that failed before. Stops between two transactions when
    `goes_on` returns False: what is left is still owed. Raises StoreUnavailable.
    """
    reasons = {**_reasons(instance, feed, [key for key in keys if key not in known]), **known}
    done: dict[TickKey, Reason] = {}
    for start in range(0, len(keys), ROWS):
        if not goes_on():
            break
        part = {key: reasons[key] for key in keys[start : start + ROWS]}
        database.skip_ticks(part)
        done.update(part)
    return done


def _reasons(instance: Instance, feed: Feed, keys: Sequence[TickKey]) -> dict[TickKey, Reason]:
    """Return MISSED for the bars that the feed has, and for the others why it has not."""
    reasons: dict[TickKey, Reason] = {}
    # groupby joins neighbours only, and `those[-1]` must be the newest.
    ordered = sorted(keys, key=lambda key: (key.timeframe, key.bar_time))
    for timeframe, group in groupby(ordered, key=lambda key: key.timeframe):
        those, step = list(group), duration(timeframe)
        newest = those[-1].bar_time
        count = (newest - those[0].bar_time) // step + 1
        times = _bar_times(instance, feed, timeframe, newest + step, count)
        for key in those:
            if isinstance(times, set):
                reasons[key] = MISSED if key.bar_time in times else NO_BAR
            else:
                reasons[key] = times
    return reasons


def _bar_times(
    instance: Instance, feed: Feed, timeframe: str, as_of: datetime, count: int
) -> set[datetime] | Reason:
    """Return the newest bar times that a feed has, or the reason why it has none."""
    try:
        frame = feed.bars(instance.symbol, timeframe, as_of, count)
        # A feed may bring more than it is asked for.
        return {time.to_pydatetime() for time in frame.index[-count:]}
    except DataUnavailable as error:
        return error.reason, error.detail
    except Exception as error:  # one feed must not end the wakes of its instance
        log.exception("the feed of %s %s", instance.id, timeframe)
        return FEED_FAULT, f"{type(error).__name__}: {error}"

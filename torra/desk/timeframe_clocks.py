"""The look at an instance's timeframes: whether the bars that are stored are all of one clock.

Every bar that a tick has read is stored, whichever feed it came from, so one look at the store does
for all feeds. Bars that were imported under a wrong clock stand beside a live feed's too. The desk
looks once a day at the last weeks and keeps an alarm for each instance that is shifted, which ends
by itself when its bars are mended; `torra doctor` looks at everything that is stored. Nothing here
stops a tick. A database that fails raises StoreUnavailable.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from instance_database import Database
from torra.clock import EPOCH
from torra.config import Instance
from torra.market.clock_shifts import ClockShift, shifted
from torra.store import bars as bar_table

ALARM: Final = "CLOCK_SHIFT"
"""Kind of the alarm that tells an instance whose timeframes are of different clocks."""

LAST_WEEKS: Final = timedelta(weeks=5)
"""How far the daily look goes back: a month of D1, and every bar that matters to the next ticks."""

REMEDY: Final = (
    "import the bars whose clock was wrong again: torra import FILE --symbol {} --timeframe T "
    "--clock CLOCK --revise"
)

log = logging.getLogger("torra")


def record_timeframe_clocks(
    database: Database, instances: Iterable[Instance], now: datetime
) -> int:
    """Raise or end the alarm of each instance by its last weeks; return how many are shifted."""
    count = 0
    for instance in instances:
        key = f"{ALARM} {instance.id}"
        rows = shifts(database, instance, since=now - LAST_WEEKS, now=now)
        if not rows:
            database.end_alarm(key)
            continue
        count += 1
        lines = "; ".join(one.line for one in rows)
        if database.raise_alarm(key, ALARM, f"{instance.id}: {lines}"):
            log.error("%s: %s; %s", instance.id, lines, REMEDY.format(instance.id))
    return count


def shifts(
    database: Database, instance: Instance, *, since: datetime = EPOCH, now: datetime
) -> list[ClockShift]:
    """Return the timeframes of an instance that are of different clocks, by its stored bars."""
    names = instance.timeframes
    if len(names) < 2:
        return []
    frames = {
        name: bar_table.closes(database, instance.id, name, since=since, as_of=now)
        for name in names
    }
    return shifted(frames)

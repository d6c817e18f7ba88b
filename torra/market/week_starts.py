"""Judges the clock of a file by itself: a market's week begins at one hour of the day.

Currencies begin on Sunday at 17:00 in New York, metals at 18:00, and they do so all the year. Read
under a clock with another rule of daylight saving, the first bar of the week moves by an hour: on
gold of 2024 and 2025 in 5 of 67 weeks for an EET export that was read as new_york+7, in 18 of 67
for a server of new_york+7 that was read as UTC.

Nothing is said of a market without weekends, of one that closes for long each day, for it opens by
its own city's clock, of bars longer than an hour, of a month or less, and where no clock makes the
week stand still. So a clock that is wrong by the same hours all the year is not seen here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from torra.clock import duration
from torra.market.broker_clock import NEW_YORK, USUAL, ServerClock

WEEKEND: Final = timedelta(hours=30)
"""A pause as long as this is a weekend; no holiday within a week is."""

FEWEST_WEEKS: Final = 5
"""Weekends below which nothing is said."""

WITH_WEEKENDS: Final = 0.5
"""Share of the weeks that must have one: a market that never closes has holes now and then."""

ROUND_THE_CLOCK: Final = 0.9
"""Share of the time between weekends that has bars, from which a market goes on day and night.

Currencies and metals have 0.95 and more, an index with the hours of its exchange 0.25 to 0.6.
"""

LONGEST: Final = timedelta(hours=1)
"""Bars longer than this do not tell the hour of their first trade."""

TRIED: Final = (*USUAL, "+02:00", "+03:00")
"""Clocks under which the week may stand still, the most frequent at brokers first."""

OPENINGS: Final = frozenset(((6, 17), (6, 18)))
"""Weekday and hour in New York at which most markets of a broker begin: Sunday."""

BETTER: Final = 4
"""A clock is named that leaves at most one of so many moved weeks."""

WEEK: Final = timedelta(weeks=1)
MICROSECOND: Final = timedelta(microseconds=1)

Opening = tuple[int, int]
"""Weekday (0 is Monday) and hour in New York."""


@dataclass(frozen=True, slots=True)
class MovingWeeks:
    """Weeks whose first bar moves under a clock.

    `hours` are the hours of the day in New York with their number of weeks, the commonest first;
    `better` the clocks under which they would stand still.
    """

    clock: str
    hours: tuple[tuple[int, int], ...]
    better: tuple[str, ...]

    @property
    def line(self) -> str:
        """What moves, and what would make it stand still, in a sentence."""
        told = ", ".join(f"{hour:02}:00 in {count}" for hour, count in self.hours)
        weeks = sum(count for _, count in self.hours)
        return (
            f"read as {self.clock}, the first bar of a week moves: of {weeks} weeks it is at "
            f"{told} in New York; read as {' or '.join(self.better)} it stands still"
        )


def moving(bars: pd.DataFrame, timeframe: str, clock: str) -> MovingWeeks | None:
    """Return how the first bar of the week moves under the clock that bars were read with.

    None where it stands still, and where nothing can be said. Raises ConfigError for an unknown
    clock.
    """
    step = duration(timeframe)
    starts = _starts(pd.DatetimeIndex(bars.index), step) if step <= LONGEST else []
    if len(starts) < FEWEST_WEEKS:
        return None
    used = ServerClock.parse(clock)
    moved, openings = _moved(starts)
    if not moved:
        return None
    walls = np.array([used.from_utc(start) for start in starts], dtype=np.int64)
    found = {}
    for name in TRIED:
        times = ServerClock.parse(name).to_utc_index(walls)
        if times.hasnans:  # a time that this clock never shows
            continue
        left, others = _moved(list(times.to_pydatetime()))
        if BETTER * left <= moved:
            found[name] = (left, others.most_common(1)[0][0] not in OPENINGS)
    # The fewest moved weeks, and of these the clocks under which the market opens as most do.
    best = min(found.values(), default=None)
    better = tuple(name for name, rank in found.items() if rank == best)
    hours: Counter[int] = Counter()
    for (_, hour), count in openings.items():
        hours[hour] += count
    return MovingWeeks(clock, tuple(hours.most_common()), better) if better else None


def _starts(index: pd.DatetimeIndex, step: timedelta) -> list[datetime]:
    """Return the first bar after each weekend.

    None for a market that goes on through them, and for one that does not go on day and night.
    """
    if len(index) < FEWEST_WEEKS:
        return []
    times = index.as_unit("us").asi8
    gaps = np.diff(times)
    pauses = np.flatnonzero(gaps >= WEEKEND // MICROSECOND)
    within = gaps[gaps < WEEKEND // MICROSECOND]
    if len(within) * (step // MICROSECOND) < ROUND_THE_CLOCK * float(within.sum()):
        return []
    weeks = float(times[-1] - times[0]) / (WEEK // MICROSECOND)
    if len(pauses) < WITH_WEEKENDS * weeks:
        return []
    return list(index[pauses + 1].to_pydatetime())


def _moved(starts: Sequence[datetime]) -> tuple[int, Counter[Opening]]:
    """Return how many weeks do not begin at the usual hour of the day, and how many begin when."""
    new_york = ZoneInfo(NEW_YORK)
    local = [start.astimezone(new_york) for start in starts]
    hours = Counter(start.hour for start in local)
    return len(starts) - max(hours.values()), Counter((at.weekday(), at.hour) for at in local)

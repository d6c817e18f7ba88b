"""Judges the clock of a file by itself: a market's week begins at one hour of the day.

Most markets stand still in New York: currencies begin on Sunday at 17:00 there, metals, oil and
indices at 18:00. Some stand still on the server: a broker in Athens opens at 00:00 of its own clock
all the year. Two clocks are compared only on the weeks that they read differently. The hour of the
other weeks is the measure: the clock that puts more of the differing weeks at it is the better one.
A late opening after a holiday counts for neither.

A clock fits if most weeks begin at the measure and no other clock is better. A clock with daylight
saving fits by the hour of New York or by that of its own server. A fixed offset fits by the first
alone: any file of a server that stands still would fit it otherwise. Where two clocks fit, both are
named and neither is wrong.

No clock is judged for a market without weekends, for one that closes for long each day, because it
opens by its own city's clock, and by fewer than five weeks. Bars longer than an hour tell no hour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.clock import EPOCH, duration
from torra.market.broker_clock import NEW_YORK, USUAL, Seconds, ServerClock

HOUR: Final = 3_600
"""Seconds."""

WEEKEND: Final = 30 * HOUR
"""Seconds. A pause as long as this is a weekend; no holiday within a week is."""

FEWEST_WEEKS: Final = 5
"""Weekends below which no clock is judged."""

WITH_WEEKENDS: Final = 0.8
"""Share of the weeks with bars that must end so: a market that never closes has holes at times."""

ROUND_THE_CLOCK: Final = 0.9
"""Share of the time between weekends that has bars, from which a market goes on day and night.

Currencies and metals have 0.95 and more, an index with the hours of its exchange 0.25 to 0.6.
"""

LONGEST: Final = timedelta(hours=1)
"""Bars longer than this do not tell the hour of their first trade."""

TRIED: Final = (*USUAL, "+02:00", "+03:00", "-05:00", NEW_YORK)
"""Clocks that are compared, the most frequent at brokers first."""

DAY: Final = 24
WEEK: Final = 7 * DAY
"""Hours. An hour of the week counts from Monday at 00:00."""

OPENINGS: Final = (6 * DAY + 17, 6 * DAY + 18)
"""Hours of New York's week at which most markets of a broker begin: Sunday at 17:00 and 18:00."""

CLOSINGS: Final = (4 * DAY + 15, 5 * DAY)
"""Hours of New York's week between which the last bar of one opens: Friday from 15:00 on.

A file in UTC without Sunday's bars begins at Monday 00:00, as one of new_york+7 does. It ends
earlier, if it is read as that.
"""

CLEAR_WEEKS: Final = 2
"""Weeks by which a clock must be better than another one."""

FIT: Final = 0.5
"""Share of all weeks that begin when a clock lets them. Holidays take up to a quarter."""

MOST_HOURS: Final = 3
"""Hours that a sentence lists."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WeekLook:
    """When the weeks of a file begin.

    `hours` are hours of the day in New York with their number of weeks, the commonest first.
    `fits` says whether the clock can be right, `others` which other clocks can and differ.
    """

    clock: str
    hours: tuple[tuple[int, int], ...]
    fits: bool = True
    others: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """What does not fit, and which clocks do; empty where no other clock is better."""
        if self.fits or not self.others:
            return ""
        return f"{self._begin}, which does not fit the clock {self.clock}; {self._others} fits."

    @property
    def note(self) -> str:
        """The hour at which weeks begin, and other clocks that fit; empty beside a warning."""
        if self.warning:
            return ""
        return f"{self._begin}; {self._others} fits as well." if self.others else f"{self._begin}."

    @property
    def _begin(self) -> str:
        (hour, weeks), *more = self.hours[:MOST_HOURS]
        rest = "".join(f", {hour:02}:00 ({count})" for hour, count in more)
        total = sum(count for _, count in self.hours)
        return f"Its weeks begin in New York at {hour:02}:00 ({weeks} of {total}){rest}"

    @property
    def _others(self) -> str:
        return " or ".join(self.others)


@dataclass(frozen=True, slots=True)
class _Reading:
    """First bars of weeks under a clock: their moments, hours of the week in New York and there."""

    moments: pd.DatetimeIndex
    new_york: Seconds
    server: Seconds
    saves_daylight: bool

    def count(self, weeks: Flags) -> int:
        """Return how many of some weeks begin when the others do; without others, as most do."""
        usual = np.isin(self.new_york, OPENINGS)
        measure = usual & ~weeks if (usual & ~weeks).any() else usual
        if not measure.any():
            return 0
        begin = self.new_york == _commonest(self.new_york[measure])
        still = [begin]
        if self.saves_daylight:
            still.append(self.server == _commonest(self.server[measure & begin]))
        return max(int(np.count_nonzero(one & weeks)) for one in still)


def look(bars: pd.DataFrame, timeframe: str, clock: str) -> WeekLook | None:
    """Return when weeks begin in bars that were read under a clock, and whether it fits.

    None where there are no weeks. Raises ConfigError for an unknown clock.
    """
    server = ServerClock.parse(clock)
    times = pd.DatetimeIndex(bars.index).as_unit("us").asi8 // 1_000_000
    pauses = _weekends(times, timeframe)
    if not len(pauses):
        return None
    first, last = (
        np.array([server.from_utc(EPOCH + timedelta(seconds=at)) for at in some.tolist()])
        for some in (times[pauses + 1], times[pauses])
    )
    reading = _reading(server, first)
    hours = tuple(Counter((reading.new_york % DAY).tolist()).most_common())
    if not _can_judge(times, pauses, timeframe):
        return WeekLook(clock, hours)
    readings = {**_readings(first, last), clock: reading}
    names = [name for name, reading in readings.items() if _fits(reading, readings.values())]
    others = (name for name in names if (readings[name].moments != reading.moments).any())
    return WeekLook(clock, hours, clock in names, tuple(others))


def _weekends(times: Seconds, timeframe: str) -> Seconds:
    """Return the places of the last bars before weekends; none for a market that has few."""
    pauses: Seconds = np.flatnonzero(np.diff(times) >= WEEKEND)
    if duration(timeframe) > LONGEST or not len(pauses):
        return pauses[:0]
    weeks = len(np.unique(times // (WEEK * HOUR)))  # they begin on Thursdays, as 1970 did
    return pauses if len(pauses) >= WITH_WEEKENDS * (weeks - 1) else pauses[:0]


def _can_judge(times: Seconds, pauses: Seconds, timeframe: str) -> bool:
    """Return whether there are enough weeks, of a market that goes on day and night."""
    gaps = np.delete(np.diff(times), pauses)
    traded = len(gaps) * duration(timeframe).total_seconds()
    return len(pauses) >= FEWEST_WEEKS and bool(traded >= ROUND_THE_CLOCK * gaps.sum())


def _readings(first: Seconds, last: Seconds) -> dict[str, _Reading]:
    """Return weeks by the clocks that may be theirs: they know each time, and weeks end in time."""
    readings = {}
    weekends = pd.to_timedelta(first - last, unit="s")
    for name in TRIED:
        reading = _reading(ServerClock.parse(name), first)
        if reading.moments.hasnans:
            continue
        if CLOSINGS[0] <= _commonest(_new_york(reading.moments - weekends)) < CLOSINGS[1]:
            readings[name] = reading
    return readings


def _reading(clock: ServerClock, walls: Seconds) -> _Reading:
    moments = clock.to_utc_index(walls)
    begin = EPOCH + timedelta(seconds=int(walls[0]))
    year = [begin + timedelta(weeks=weeks) for weeks in range(0, 52, 13)]
    return _Reading(
        moments,
        _new_york(moments),
        walls // HOUR % WEEK,
        len(set(map(clock.offset_at, year))) > 1,
    )


def _new_york(moments: pd.DatetimeIndex) -> Seconds:
    """Return hours of New York's week."""
    local = moments.tz_convert(NEW_YORK)
    return np.asarray(local.day_of_week * DAY + local.hour)


def _fits(reading: _Reading, others: Iterable[_Reading]) -> bool:
    """Return whether most weeks stand still under a clock, and none of the others beats it."""
    weeks = len(reading.moments)
    return reading.count(np.ones(weeks, dtype=np.bool_)) >= FIT * weeks and not any(
        other.count(differing) >= reading.count(differing) + CLEAR_WEEKS
        for other in others
        for differing in [np.asarray(other.moments != reading.moments)]
    )


def _commonest(hours: Seconds) -> int:
    return int(Counter(hours.tolist()).most_common(1)[0][0])

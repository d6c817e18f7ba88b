"""The broker's wall clock: MetaTrader 5 stamps bars with it, Torra stores UTC.

A clock is "utc", a fixed offset such as "+03:00", a zone of the tz database such as "Europe/Athens"
or "EET", or "new_york+7". The last one is the usual one: New York's wall clock plus 7 hours, which
follows the daylight saving dates of the USA and ends the trading day at midnight. Times of the
server are "wall seconds": what its clock shows, counted from 1970 as if it were UTC. All zones come
from zoneinfo; nothing here reads the clock or the zone of the host.

A clock with daylight saving time jumps twice a year (new_york+7: on a Sunday at 09:00).

- In spring one hour is never shown. A time in it means that the clock is the wrong one: it is
  refused, never moved.
- In autumn one hour comes twice. Of times in a row, oldest first, those from the first step
  backwards or repetition on are the second hour (winter time); an hour that is there once is read
  as the first (summer time), like a single time.

An unknown name raises ConfigError. The callers decide what a wrong time means: a mistake of a
person, or bars that cannot be used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.clock import EPOCH, iso
from torra.errors import ConfigError

UTC_CLOCK: Final = "utc"
UTC_NAMES: Final = ("UTC", "GMT", "Z")
"""What people write for it, in any case."""

NEW_YORK: Final = "America/New_York"
SERVER_AHEAD: Final = timedelta(hours=7)
"""Server time minus New York's at most brokers, so that the trading day ends at midnight."""

USUAL: Final = ("new_york+7", "Europe/Athens", "Europe/London", "Europe/Moscow", UTC_CLOCK)
"""Clocks that brokers are known to use, the most frequent first."""

KNOWN: Final = "utc, new_york+7, an offset such as +03:00 or a zone such as Europe/Athens"
"""The names of clocks, for every message and help that asks for one."""

OFFSET: Final = re.compile(r"([+-])(0\d|1[0-4]):([0-5]\d)")
ZONE: Final = re.compile(r"(?!Factory$)[A-Z][A-Za-z0-9_+-]{1,30}(/[A-Z][A-Za-z0-9_+-]{0,30}){0,2}")
"""Form of a zone's name. The host's own have small letters (localtime, posixrules, right/...).

Factory is the zone of a computer that has none.
"""

QUARTER: Final = timedelta(minutes=15)
"""Every zone's offset is a multiple of it; a reported one, which may be seconds off, is rounded."""

FULL_DAY: Final = 86_400
LONGEST_JUMP: Final = 10_800
"""Seconds; no clock is set back by more than this."""

EXTREMES: Final = (-62_000_000_000, 253_000_000_000)
"""Wall seconds of the years 5 and 9987; what lies beyond has the offset of these."""

Seconds = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The clock of a broker's server: the wall clock of `zone` (None: UTC) plus `ahead`."""

    name: str
    zone: ZoneInfo | None = None
    ahead: timedelta = timedelta(0)

    @classmethod
    def parse(cls, name: str) -> ServerClock:
        """Return the clock of a name; raises ConfigError naming the forms that there are."""
        if name.upper() in UTC_NAMES:
            return cls(UTC_CLOCK)
        if name == "new_york+7":
            return cls(name, ZoneInfo(NEW_YORK), SERVER_AHEAD)
        if OFFSET.fullmatch(name):
            return cls(name, None, ahead_of(name))
        zone = _zone(name)
        if zone is None:
            near = [zone for zone in _names() if zone.casefold() == name.casefold()]
            raise ConfigError(f"unknown clock {name!r}: use {' or '.join(near) or KNOWN}")
        return cls(name, zone)

    def offset_at(self, moment: datetime) -> timedelta:
        """Return how far the server is ahead of UTC at a moment."""
        wall = moment.astimezone(UTC if self.zone is None else self.zone)
        return (wall.utcoffset() or timedelta(0)) + self.ahead

    def from_utc(self, moment: datetime) -> int:
        """Return the wall seconds that the server shows at a moment, fractions cut off."""
        return (moment + self.offset_at(moment) - EPOCH) // timedelta(seconds=1)

    def to_utc(self, wall: int) -> datetime:
        """Return the moment at which the server shows these wall seconds, the first of two.

        Raises ValueError for a time that the server never shows.
        """
        first, second = self._offsets(wall)
        if first < second:
            raise ValueError(f"{shown(wall)} does not exist on a server of {self.name}")
        return EPOCH + timedelta(seconds=wall - first)

    def shown_twice(self, wall: int) -> bool:
        """Return whether the server shows these wall seconds twice."""
        first, second = self._offsets(wall)
        return first > second

    def all_shown_twice(self, wall: Seconds) -> npt.NDArray[np.bool_]:
        """Return of each of some wall seconds whether the server shows it twice."""
        first, second = self._all_offsets(wall)
        twice: npt.NDArray[np.bool_] = first > second
        return twice

    def to_utc_index(self, wall: Seconds) -> pd.DatetimeIndex:
        """Return the moments of wall seconds, in their order, in UTC with microseconds.

        What the server never shows is NaT. Of an hour that comes twice see the module's text.
        """
        first, second = self._all_offsets(wall)
        again = _second_time(wall, first > second)
        moments = wall - np.where(again, second, first)
        times = (moments * 1_000_000).view("M8[us]")
        # The offset grows over a time that the server never shows.
        times[first < second] = np.datetime64("NaT")
        return pd.DatetimeIndex(times).tz_localize(UTC)

    def _offsets(self, wall: int) -> tuple[int, int]:
        """Return both readings of a wall time's offset, seconds; they differ where the clock jumps.

        The first is the larger where the time is shown twice and the smaller where it never is.
        """
        # datetime ends at the years 1 and 9999, and a broken bar may lie anywhere.
        within = min(max(wall, EXTREMES[0]), EXTREMES[1])
        local = EPOCH.replace(tzinfo=self.zone or UTC) + timedelta(seconds=within) - self.ahead
        first, second = (
            (local.replace(fold=fold).utcoffset() or timedelta(0)) + self.ahead for fold in (0, 1)
        )
        return int(first.total_seconds()), int(second.total_seconds())

    def _all_offsets(self, wall: Seconds) -> tuple[Seconds, Seconds]:
        """Return what `_offsets` does for many times at once."""
        # zoneinfo takes one time at a call: ask for the ends of each day, and for single times only
        # in the few days in which the clock jumps.
        days, place = np.unique(wall // FULL_DAY, return_inverse=True)
        starts = [self._offsets(int(day) * FULL_DAY)[0] for day in days]
        ends = [self._offsets((int(day) + 1) * FULL_DAY)[1] for day in days]
        first, second = (np.array(side, dtype=np.int64)[place] for side in (starts, ends))
        for at in np.flatnonzero(first != second):
            first[at], second[at] = self._offsets(int(wall[at]))
        return first, second


def detect(offset_seconds: int, at: datetime) -> list[str]:
    """Return the names of the clocks that are this far ahead of UTC at a moment.

    The usual ones come first, the fixed offset last; an offset beyond 14 hours has none.
    """
    offset = _whole(offset_seconds)
    names = [name for name in USUAL if ServerClock.parse(name).offset_at(at) == offset]
    fixed = offset_text(offset)
    return [*names, fixed] if offset and OFFSET.fullmatch(fixed) else names


def check(clock: ServerClock, offset_seconds: int, at: datetime) -> str:
    """Say in a sentence how a reported offset differs from the clock's; empty when it does not."""
    offset, expected = _whole(offset_seconds), clock.offset_at(at)
    if offset == expected:
        return ""
    remedy = " or ".join([*detect(offset_seconds, at), "another clock"])
    return (
        f"MT5 says that its server is {offset_text(offset)} from UTC, but {clock.name} was "
        f"{offset_text(expected)} at {iso(at.replace(microsecond=0))}: if the clock of MT5's "
        f"computer is right, set server_clock to {remedy}"
    )


def ahead_of(zone: str) -> timedelta:
    """Return how far a zone written as "+03:00", "Z" or "" is ahead of UTC."""
    if zone in ("Z", ""):
        return timedelta(0)
    sign = -1 if zone[0] == "-" else 1
    return sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))


def offsets_used(wall: pd.DatetimeIndex, utc: pd.DatetimeIndex) -> tuple[str, ...]:
    """Return how far wall times were ahead of their moments, as text, ascending, each once."""
    ahead = wall.as_unit("us").asi8 - utc.as_unit("us").asi8
    return tuple(
        offset_text(timedelta(microseconds=offset)) for offset in sorted(set(ahead.tolist()))
    )


def offset_text(offset: timedelta) -> str:
    """Write an offset as "+03:00"."""
    minutes = offset // timedelta(minutes=1)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def shown(wall: int) -> str:
    """Write wall seconds as the server shows them: 2026-03-08 09:15:00."""
    return (EPOCH.replace(tzinfo=None) + timedelta(seconds=wall)).isoformat(" ")


def _whole(offset_seconds: int) -> timedelta:
    return round(timedelta(seconds=offset_seconds) / QUARTER) * QUARTER


@cache
def _names() -> list[str]:
    """Return the names that may be misspelled in small and capital letters."""
    return sorted({USUAL[0], *filter(ZONE.fullmatch, available_timezones())})


def _zone(name: str) -> ZoneInfo | None:
    if not ZONE.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        return None


def _second_time(wall: Seconds, twice: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which times are the second showing: those after a step back in their hour."""
    steps = np.diff(wall)
    back, start = np.zeros(len(wall), dtype=np.int64), np.ones(len(wall), dtype=np.bool_)
    back[1:] = np.cumsum(steps <= 0)
    # A far step means another autumn: its steps back count for themselves.
    start[1:] = ~twice[:-1] | (np.abs(steps) > LONGEST_JUMP)
    first = np.maximum.accumulate(np.where(start, np.arange(len(wall)), 0))
    again: npt.NDArray[np.bool_] = twice & (back > back[first])
    return again

"""The marks of an axis: where they stand and what is written at them, at round numbers or times.

A scale maps its values to 0 (left or below) to 1. Times are seconds since 1970, with marks at full
minutes, hours, days, months or years of UTC. Pure functions; every finite range has a scale, one of
length 0 too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from torra.exhibits import numbers

TICKS: Final = 6
"""Marks that an axis of numbers has at most, about."""

TIMES: Final = 8
"""Marks that an axis of time has at most, about; a phone shows every other."""

DAY: Final = 86_400.0
ROUND_SECONDS: Final = (60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
                        1_209_600)  # fmt: skip
"""Steps of minutes, hours, days and weeks."""

ROUND_MONTHS: Final = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12_000)
MONTH: Final = 30.4 * DAY
EARLIEST: Final = datetime(1, 1, 1, tzinfo=UTC).timestamp()
LATEST: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The range of times that can be written."""

MARGIN: Final = 0.04
"""Free space above and below a line, as a share of the range."""

Tick = tuple[float, str]
"""Value and word."""


@dataclass(frozen=True, slots=True)
class AxisScale:
    """A range and its marks."""

    low: float
    high: float
    ticks: tuple[Tick, ...]

    def place(self, value: float) -> float:
        """Return where a value lies, 0 to 1."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def of_numbers(values: Sequence[float], *, zero: bool = False, margin: float = MARGIN) -> AxisScale:
    """Return a scale for numbers; it includes zero if asked to, or if zero is near."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    room = high - low
    if zero or (low > 0 and low < room / 3):
        low = min(low, 0.0)
    if zero or (high < 0 and -high < room / 3):
        high = max(high, 0.0)
    # a range as narrow as a float's rounding has no distinct marks
    if high <= low or (high - low) < 1e-9 * max(abs(low), abs(high)):
        pad = abs(low) * 0.1 or 1.0
        low, high = low - pad, high + pad
    pad = (high - low) * margin
    # a zero at the edge stays the edge: bars and areas stand on it
    low = low - pad if low else low
    high = high + pad if high else high
    step = _round_step((high - low) / TICKS)
    # 1e-9: rounding must not lose the mark at either edge
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = ((count * step, numbers.tick(count * step, step)) for count in range(first, last + 1))
    return AxisScale(low, high, tuple(ticks))


def of_times(begin: float, end: float) -> AxisScale:
    """Return a scale for seconds since 1970."""
    if end <= begin:
        begin, end = begin - 1800.0, begin + 1800.0
    room = end - begin
    seconds = next((step for step in ROUND_SECONDS if room / step <= TIMES), None)
    if seconds:
        counts = range(math.floor(begin / seconds), math.floor(end / seconds) + 1)
        times = [float(count * seconds) for count in counts if begin <= count * seconds <= end]
        return AxisScale(begin, end, tuple((at, _clock(at, seconds)) for at in times))
    step = next((m for m in ROUND_MONTHS if room / (m * MONTH) <= TIMES), ROUND_MONTHS[-1])
    marks = [at for at in _months(begin, end, step) if begin <= at <= end]
    return AxisScale(begin, end, tuple((at, _date(at, step)) for at in marks))


def moment(seconds: float) -> datetime:
    """Return seconds since 1970 as a UTC time; beyond years 1 to 9999 the first or the last one."""
    known = min(LATEST, max(EARLIEST, seconds))
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=known)


def written(seconds: float) -> str:
    """Write seconds since 1970 as 2021-12-01 10:15 UTC."""
    return f"{moment(seconds):%Y-%m-%d %H:%M} UTC"


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is no smaller."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * part for part in (1, 2, 5, 10) if power * part >= least * (1 - 1e-9))


def _clock(at: float, step: int) -> str:
    when = moment(at)
    if step < DAY and at % DAY:
        return when.strftime("%H:%M")
    return f"{when.day} {when.strftime('%b')}"


def _months(begin: float, end: float, step: int) -> Iterator[float]:
    start, stop = moment(begin), moment(end)
    count = (start.year * 12 + start.month - 1) // step * step
    while count <= stop.year * 12 + stop.month - 1:
        # there is no year 0
        if count >= 12:
            yield datetime(count // 12, count % 12 + 1, 1, tzinfo=UTC).timestamp()
        count += step


def _date(at: float, step: int) -> str:
    return moment(at).strftime("%Y" if step % 12 == 0 else "%Y-%m")

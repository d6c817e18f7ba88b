"""Holds two timeframes of a symbol against each other: whether their times are of one clock.

A bar of the longer timeframe and the last bar of the shorter within it end with the same price. A
clock that is wrong for one of the two moves its bars by whole hours, and then they agree at that
lag and not where they stand. On the shipped BTCUSD (M15 and H1) and on gold of 2024 and 2025 the
share of equal closes is 1.000 at lag 0 and 0.000 to 0.002 at 1, 2 and 3 h; on seven other pairs of
real exports it was 1.000 and 0.000 to 0.014. Of two brokers closes are never equal. Then returns
are compared: with a spread, another noise and bars missing, those of each week correlate 0.99 and
more where the clocks are one, and at H1 0.62 and less at a lag of 1, 2 or 3 h.

Lags are tried in quarters of an hour. A file that gives the ends of its bars is off by one bar, so
that whole hours are tried with a bar more and less, too.

Weeks are looked at one by one, because a wrong rule of daylight saving moves two to five weeks of a
year only. A lag is told where the bars do not fit as they stand and do fit there; bars that fit
nowhere, such as those of two different markets, are not judged, and neither are a few bars. Only
closes are read. Nothing here raises for frames of the feeds' shape: a UTC index of open times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.clock import EPOCH, duration
from torra.market.broker_clock import FULL_DAY

EQUAL_SHARE: Final = 0.5
"""Share of equal closes from which two timeframes agree; measured are 1.000 and at most 0.014."""

FARTHER: Final = 0.3
"""By so much the share at a lag must exceed that at none: closes of a quiet market repeat."""

CHANCE: Final = 2.5
"""The same in roots of the number of closes: of a hundred lags some fit a few closes by chance."""

SAME_PRICE: Final = 1e-9
"""Two closes are equal when they differ by no more than this share: a file may round them."""

FEWEST_CLOSES: Final = 8
"""Pairs of closes below which nothing is said."""

FEWEST_RETURNS: Final = 24
"""Pairs of returns below which nothing is said; a day of H1."""

SPELL: Final = 30
"""Pairs of closes from which a week is judged for itself: a week of H4 in a market with weekends.

Weeks with fewer are judged together with those that follow.
"""

LOWEST_FIT: Final = 0.8
"""Correlation of returns from which a lag fits; two brokers have 0.99."""

CLEARER: Final = 4.0
"""The share of the variance that a lag leaves open must be this much below that of no lag.

At H4 and one hour wrong, three quarters of each return are still common to both.
"""

FARTHEST: Final = timedelta(hours=14)
"""No clock is farther than this from UTC."""

FINEST: Final = timedelta(minutes=15)
"""Step between two clocks that are tried: some zones have quarters of an hour."""

FIRST_SUNDAY: Final = 3
"""Day of 1970-01-04. Clocks jump on Sundays, so a week begins with one."""

Times = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Columns = tuple[Times, Values]
"""Closing times in seconds since 1970, ascending, and the closes."""


@dataclass(frozen=True, slots=True)
class ClockShift:
    """Two timeframes that are not of one clock.

    `lags` are the hours by which the times of `longer` are later than those of `shorter` (below 0:
    earlier), each with its number of weeks, the commonest first. `weeks` is how many were compared,
    `first` the day on which the first shifted one begins.
    """

    shorter: str
    longer: str
    lags: tuple[tuple[float, int], ...]
    weeks: int
    first: datetime

    @property
    def hours(self) -> float:
        """The commonest lag."""
        return self.lags[0][0]

    @property
    def line(self) -> str:
        """What is shifted by how much, in a clause."""
        (hours, weeks), *others = self.lags
        more = "".join(f", {_shift_text(lag)} in {count}" for lag, count in others)
        bar = duration(self.shorter) / timedelta(hours=1)
        ends = "; one of the two may give the ends of its bars" if abs(hours) == bar else ""
        return (
            f"the times of {self.longer} are {_shift_text(hours)} than those of {self.shorter} in "
            f"{weeks} of {self.weeks} weeks{more}, from {self.first:%Y-%m-%d} on: moved by that, "
            f"its closes fit, and as they stand they do not{ends}"
        )


def shifted(frames: Mapping[str, pd.DataFrame]) -> list[ClockShift]:
    """Return the pairs of timeframes of one symbol whose times are of different clocks.

    `frames` are bars by timeframe, of which `close` is read.
    """
    columns = {name: _columns(frame, name) for name, frame in frames.items() if len(frame)}
    names = sorted(columns, key=duration)
    shifts = (_compared(columns, *pair) for pair in combinations(names, 2))
    return [shift for shift in shifts if shift is not None]


def _compared(columns: Mapping[str, Columns], shorter: str, longer: str) -> ClockShift | None:
    """Return how two timeframes are shifted, None where they are not or nobody can tell."""
    short, (times, closes) = columns[shorter], columns[longer]
    there = _at(short, times)
    both = np.isfinite(there)
    equal = _equal(closes, there)
    lags = tuple(_lags(duration(shorter), duration(longer)))
    hours: Counter[float] = Counter()
    compared, first = 0, None
    for weeks, spell in _spells(times, both):
        compared += weeks
        if equal[spell & both].mean() >= EQUAL_SHARE:
            continue
        own = times[spell], closes[spell]
        lag = _by_closes(short, own, lags) or _by_returns(short, own, lags)
        if lag is not None:
            hours[lag / 3_600] += weeks
            first = int(own[0][0]) if first is None else first
    if first is None:
        return None
    opened = EPOCH + timedelta(seconds=first) - duration(longer)
    return ClockShift(shorter, longer, tuple(hours.most_common()), compared, opened)


def _by_closes(short: Columns, own: Columns, lags: Iterable[int]) -> int | None:
    """Return the lag (seconds) at which most closes are equal; None where no lag fits."""
    best, most = None, 0.0
    farther = max(FARTHER, CHANCE / np.sqrt(len(own[0])))
    here = _share_equal(short, own, 0) or 0.0
    for lag in lags:
        share = _share_equal(short, own, lag)
        if share is not None and share >= max(EQUAL_SHARE, here + farther) and share > most:
            best, most = lag, share
    return best


def _share_equal(short: Columns, own: Columns, lag: int) -> float | None:
    """Return the share of equal closes at a lag (seconds); None for too few bars."""
    times, closes = own
    partners = _at(short, times - lag)
    both = np.isfinite(partners)
    if np.count_nonzero(both) < FEWEST_CLOSES:
        return None
    return float(_equal(closes, partners)[both].mean())


def _by_returns(short: Columns, own: Columns, lags: Iterable[int]) -> int | None:
    """Return the lag (seconds) at which returns fit far better than at none; None without one."""
    times, closes = own
    returns = np.diff(np.log(closes))
    fits = {
        lag: _correlation(returns, np.diff(np.log(_at(short, times - lag)))) for lag in (0, *lags)
    }
    here = fits.pop(0)
    best = max(fits, key=lambda lag: fits[lag])
    if fits[best] < LOWEST_FIT or CLEARER * (1.0 - fits[best]) > 1.0 - here:
        return None
    return best


def _correlation(one: Values, other: Values) -> float:
    """Return the correlation of what is there in both; 0 where there is too little of it."""
    both = np.isfinite(one) & np.isfinite(other)
    if np.count_nonzero(both) < FEWEST_RETURNS:
        return 0.0
    first, second = one[both] - one[both].mean(), other[both] - other[both].mean()
    spread = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / spread if spread > 0.0 else 0.0


def _spells(times: Times, both: Flags) -> Iterator[tuple[int, Flags]]:
    """Yield spells of weeks as flags of their bars, each with its number of weeks.

    `both` says which bars have a partner. What is left at the end is judged with what is there.
    """
    # A close at midnight belongs to the day that it ends.
    weeks = ((times - 1) // FULL_DAY - FIRST_SUNDAY) // 7
    names, counts = np.unique(weeks[both], return_counts=True)
    begin, total = 0, 0
    for at, pairs in enumerate(counts.tolist(), start=1):
        total += pairs
        if total >= SPELL or at == len(names):
            spell: Flags = (weeks >= names[begin]) & (weeks <= names[at - 1])
            yield at - begin, spell
            begin, total = at, 0


def _lags(shorter: timedelta, longer: timedelta) -> Iterator[int]:
    """Yield the lags that are tried, in seconds, the shortest first; 0 is none of them.

    A clock is wrong by quarters of an hour. A file that names the ends of its bars is off by one
    bar more, in either timeframe or in both.
    """
    clocks = range(0, _seconds(FARTHEST) + 1, _seconds(max(shorter, FINEST)))
    bars = (_seconds(shorter), _seconds(longer), _seconds(longer - shorter))
    hours = range(0, _seconds(FARTHEST) + 1, 3_600)
    lags = {
        *clocks,
        *(abs(hour + sign * bar) for hour in hours for bar in bars for sign in (-1, 1)),
    }
    for lag in sorted(lags):
        if 0 < lag <= _seconds(FARTHEST):
            yield lag
            yield -lag


def _seconds(span: timedelta) -> int:
    return span // timedelta(seconds=1)


def _columns(frame: pd.DataFrame, timeframe: str) -> Columns:
    index = pd.DatetimeIndex(frame.index).as_unit("us")
    times: Times = index.asi8 // 1_000_000 + _seconds(duration(timeframe))
    return times, frame["close"].to_numpy(dtype=np.float64)


def _at(columns: Columns, wanted: Times) -> Values:
    """Return the closes at closing times; NaN where no bar closes then."""
    times, closes = columns
    place = np.minimum(np.searchsorted(times, wanted), len(times) - 1)
    matched: Values = np.where(times[place] == wanted, closes[place], np.nan)
    return matched


def _equal(one: Values, other: Values) -> Flags:
    same: Flags = np.abs(one - other) <= SAME_PRICE * np.abs(one)
    return same


def _shift_text(hours: float) -> str:
    size = abs(hours)
    amount = f"{size:g} h" if (2 * size).is_integer() else f"{60 * size:.0f} min"
    return f"{amount} {'later' if hours > 0 else 'earlier'}"

"""What a tick reads of the companions of its symbol: other symbols of the same feed, never traded.

`read` makes the block `companion` of an `OutsideView`, of bars of the tick's own timeframe that
were closed at `as_of`. Of each companion by its own name, t its newest bar:

    change_1, _5, _20   100 * (close[t] / close[t - n] - 1), n of its own bars back, whatever gap
                        lies between them
    percentile          100 * (below + equal / 2) / m: the rank of close[t] among the closes of its
                        m newest bars, itself included; m is READ_BARS, and None below LEAST_RANKED
    correlation         Pearson, of the last CORRELATED pairs of one-bar log returns
                        log(close[i] / close[i - 1]): of the companion and of the symbol, at those
                        times at which both have a bar and both have the bar one timeframe before;
                        None of fewer pairs, and where one of the two does not move

A companion counts where its newest bar closes at `as_of`. One that is late, that could not be read
or was refused has None for all of it, and a word that says why (`Lack`). Nothing later than `as_of`
is looked at, whatever is handed in. Pure functions; torra.feeds.companions reads the bars.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agents.features import ROWS
from torra.clock import EPOCH, duration
from torra.evidence.outside_numbers import deviations, rank_of
from torra.evidence.outside_readings import OutsideView, SeriesValue
from torra.market.bar_view import BarView

READ_BARS: Final = 250
"""Newest bars of a companion that are read."""

LEAST_RANKED: Final = 100
"""Fewer closes give no rank."""

CORRELATED: Final = 60
"""Pairs of returns of a correlation."""

CHANGES: Final = (1, 5, 20)
"""Bars over which a change is read."""

LATE_BARS: Final = 2
"""A newest bar that closed more than this many bars ago is not late any more: none come."""

BLOCK: Final = "companion"
AVAILABLE: Final = "available"
MICROSECOND: Final = timedelta(microseconds=1)

NUMBERS: Final = [name.rpartition(".")[2] for name in ROWS if name.startswith(f"{BLOCK}.")]
"""What is read of each companion, after its name."""

Times = NDArray[np.int64]
Closes = NDArray[np.float64]


class Lack(StrEnum):
    """Why nothing is known of a companion."""

    MISSING = "missing"
    UNREAD = "unread"
    LATE = "late"
    STALE = "stale"
    CLOCK = "clock"
    BROKEN = "broken"


class CompanionBars(NamedTuple):
    """The bars of a companion: open times in microseconds since 1970 in UTC, ascending; closes.

    `lack` says why they cannot be used, `detail` in a sentence; without a lack they can be.
    """

    symbol: str
    times: Times = np.empty(0, dtype=np.int64)
    closes: Closes = np.empty(0, dtype=np.float64)
    lack: str = ""
    detail: str = ""

    def closed(self, as_of: datetime, step: timedelta) -> CompanionBars:
        """Return the newest READ_BARS of them that were closed at a moment."""
        end = int(np.searchsorted(self.times, micros(as_of - step), side="right"))
        start = max(0, end - READ_BARS)
        return self._replace(times=self.times[start:end], closes=self.closes[start:end])

    def closed_at(self, step: timedelta) -> datetime | None:
        """Return when the newest bar closed; None without one."""
        return EPOCH + int(self.times[-1]) * MICROSECOND + step if len(self.times) else None


class Companions(Protocol):
    """The companions of an instance, as a tick asks for them."""

    def begin(self, timeframe: str, as_of: datetime) -> None:
        """Begin to read what closes at `as_of`, beside the tick; returns at once."""
        ...

    def known(self, timeframe: str, as_of: datetime, bars: BarView) -> OutsideView:
        """Return what is known of them; `bars` are the symbol's own. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class CompanionsThen:
    """Companions whose bars are all there: those of a replay, by name and timeframe."""

    symbols: Mapping[str, str]
    bars: Mapping[tuple[str, str], CompanionBars]

    def begin(self, timeframe: str, as_of: datetime) -> None:
        """Do nothing: everything has been read."""

    def known(self, timeframe: str, as_of: datetime, bars: BarView) -> OutsideView:
        """Return what was known at `as_of`."""
        companions = {
            name: self.bars.get((name, timeframe), CompanionBars(symbol, lack=Lack.MISSING))
            for name, symbol in self.symbols.items()
        }
        return read(companions, timeframe, as_of, bars)


def read(
    companions: Mapping[str, CompanionBars], timeframe: str, as_of: datetime, own: BarView
) -> OutsideView:
    """Return what is known of companions at `as_of`, beside the symbol's own bars."""
    step = duration(timeframe)
    closes = np.array(own.newest("close", len(own)), dtype=np.float64)
    numbers: dict[str, float | str | None] = {}
    newest: dict[str, SeriesValue] = {}
    lacks: dict[str, str] = {}
    for name, companion in companions.items():
        label, bars = f"{BLOCK}.{name}", companion.closed(as_of, step)
        lacks[label] = str(bars.lack or age(bars, as_of, step))
        ids = [f"{label}.{number}" for number in NUMBERS]
        numbers |= dict.fromkeys(ids)
        if not lacks[label]:
            changes = (change(bars.closes, count) for count in CHANGES)
            together = correlation(bars.times, bars.closes, own.times, closes, step)
            values = (*changes, percentile(bars.closes), together)
            numbers |= zip(ids, values, strict=True)
        if closed := bars.closed_at(step):
            newest[label] = SeriesValue(
                float(bars.closes[-1]), closed, closed, bars.symbol, stale=bool(lacks[label])
            )
    words = AVAILABLE if "" in lacks.values() else ", ".join(dict.fromkeys(lacks.values()))
    statuses = {BLOCK: words, **{label: lack for label, lack in lacks.items() if lack}}
    return OutsideView(numbers, statuses, newest) if companions else OutsideView()


def change(closes: Closes, bars: int) -> float | None:
    """Return the change of the newest close in percent of the one so many bars before."""
    if len(closes) <= bars:
        return None
    return 100.0 * (float(closes[-1]) / float(closes[-1 - bars]) - 1.0)


def percentile(closes: Closes) -> float | None:
    """Return the rank of the newest close among all of them, of 100; None of too few."""
    values = closes.tolist()
    return rank_of(values[-1], values) if len(values) >= LEAST_RANKED else None


def correlation(
    times: Times,
    closes: Closes,
    own_times: Times,
    own_closes: Closes,
    step: timedelta,
    count: int = CORRELATED,
) -> float | None:
    """Return Pearson's correlation of the last `count` common one-bar log returns, or None."""
    common, here, there = np.intersect1d(times, own_times, assume_unique=True, return_indices=True)
    pairs = np.flatnonzero(np.diff(common) == step // MICROSECOND)[-count:]
    if len(pairs) < count:
        return None
    moves = [
        (logs[pairs + 1] - logs[pairs])
        for logs in (np.log(closes[here]), np.log(own_closes[there]))
    ]
    xs, ys = (returns.tolist() for returns in moves)
    # Equal numbers have no variance, whatever the rounding of their mean makes of it.
    if min(xs) == max(xs) or min(ys) == max(ys):
        return None
    xx, yy, xy = deviations(xs, ys)
    scale = math.sqrt(xx) * math.sqrt(yy)
    return max(-1.0, min(1.0, xy / scale)) if scale > 0.0 else None


def age(bars: CompanionBars, as_of: datetime, step: timedelta) -> str:
    """Return why bars that are sound do not count, "" where the newest closes at the moment."""
    if not len(bars.times):
        return Lack.MISSING
    behind = (micros(as_of - step) - int(bars.times[-1])) / (step // MICROSECOND)
    return "" if behind == 0.0 else Lack.LATE if behind <= LATE_BARS else Lack.STALE


def micros(moment: datetime) -> int:
    """Return microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND

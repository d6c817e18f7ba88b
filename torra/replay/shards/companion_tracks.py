"""The companions of a replay: the closes of their bars, as values that any worker can hold.

A track is one companion on one timeframe. It comes from the bars that the desk has stored, each as
its newest revision says, and counts from the close of each bar. A companion without stored bars has
an empty track: it is `missing`, as it is for a live tick. `of_desk` finds them; nothing here asks a
feed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import pandas as pd
from numpy.random import Generator

from instance_database import Database
from torra.clock import EPOCH, duration
from torra.config import Instance
from torra.evidence.companion_readings import READ_BARS, CompanionBars, CompanionsThen, micros
from torra.store import bars as bar_table

CLOSED_DAYS: Final = timedelta(days=14)
THIN: Final = 4
"""What is read before a replay covers READ_BARS of a market that is open a quarter of all time, and
so many days of holidays beside.
"""


@dataclass(frozen=True, slots=True)
class CompanionTrack:
    """A companion on a timeframe: open times in microseconds since 1970, ascending, and closes."""

    name: str
    symbol: str
    timeframe: str
    times: tuple[int, ...]
    closes: tuple[float, ...]

    @property
    def label(self) -> str:
        """What a person is told that it is."""
        return f"companion {self.name} {self.timeframe}"

    def reaches(self, moment: datetime) -> bool:
        """Tell whether its first bar, which it must have, was closed at a moment."""
        return self.times[0] <= micros(moment - duration(self.timeframe))

    def older(self, shift: timedelta) -> CompanionTrack:
        """Return it with every bar so much later: at each moment it is as it was before."""
        moved = micros(EPOCH + shift)
        return replace(self, times=tuple(time + moved for time in self.times))

    def other_future(self, as_of: datetime, rng: Generator) -> CompanionTrack:
        """Return it with other closes for all bars that were not closed at a moment."""
        last = micros(as_of - duration(self.timeframe))
        closes = (
            close if time <= last else float(rng.uniform(1.0, 1e6))
            for time, close in zip(self.times, self.closes, strict=True)
        )
        return replace(self, closes=tuple(closes))


def known(tracks: Iterable[CompanionTrack]) -> CompanionsThen | None:
    """Return tracks as a tick asks for them; None where there is none."""
    bars = {
        (one.name, one.timeframe): CompanionBars(
            one.symbol, np.array(one.times, dtype=np.int64), np.array(one.closes)
        )
        for one in tracks
    }
    symbols = {name: found.symbol for (name, _), found in bars.items()}
    return CompanionsThen(symbols, bars) if bars else None


def of_desk(
    database: Database,
    instance: Instance,
    timeframes: Iterable[str],
    begin: datetime,
    end: datetime,
    before: timedelta,
) -> tuple[CompanionTrack, ...]:
    """Return what a desk has stored of an instance's companions for a replay, each by timeframe.

    Bars reach `before` farther back than a tick at `begin` looks.
    """
    found = []
    for name, symbol in instance.companions.items():
        for timeframe in timeframes:
            reach = before + THIN * READ_BARS * duration(timeframe) + CLOSED_DAYS
            closes = _closes(database, instance, symbol, timeframe, begin - reach, end)
            times = pd.DatetimeIndex(closes.index).as_unit("us").asi8.tolist()
            values = closes["close"].tolist()
            found.append(CompanionTrack(name, symbol, timeframe, tuple(times), tuple(values)))
    return tuple(found)


def _closes(
    database: Database,
    instance: Instance,
    symbol: str,
    timeframe: str,
    since: datetime,
    end: datetime,
) -> pd.DataFrame:
    """Return stored closes: those that the desk read, and imported ones where it read none."""
    streams = instance.companion_streams(symbol)
    closes = pd.concat(
        [bar_table.closes(database, name, timeframe, since=since, as_of=end) for name in streams]
    )
    # The desk's own come first in the row, so of two closes of one time it is theirs that stays.
    return closes[~closes.index.duplicated()].sort_index()


def instance_with(instances: Iterable[Instance], symbol: str) -> Instance | None:
    """Return the instance whose companions a replay of a symbol reads; None where it has none.

    That is the one of this very name, else the first that trades the symbol and has companions.
    """
    every = [one for one in instances if symbol in (one.id, one.symbol)]
    itself = [one for one in every if one.id == symbol]
    return next((one for one in itself or every if one.companions), None)

"""The companions of an instance, read beside its ticks (torra.feeds.close_reader).

`CompanionReader` reads through a feed of its own and the same door as all bars. A companion whose
bar has not come yet is read again until the wait of its tick is over. Then the bars are handed over
to be stored: the tick has them, or goes on without. What goes wrong is a word in the tick's record
(torra.evidence.companion_readings.Lack); nothing is raised.

A terminal of the MetaTrader5 package answers one question after the other, whoever asks: there a
companion that is slow holds up the desk's own questions for as long as the terminal takes to answer
for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from torra.clock import duration
from torra.config import Instance
from torra.errors import ConfigError, DataUnavailable
from torra.evidence.companion_readings import (
    READ_BARS,
    CompanionBars,
    Lack,
    age,
    micros,
    read,
)
from torra.evidence.outside_readings import OutsideView
from torra.feeds import door
from torra.feeds.close_reader import WAIT, CloseReader, Reading
from torra.feeds.door import BarsRefused
from torra.feeds.limited import NO_ANSWER
from torra.feeds.protocol import NO_BARS, NO_FILE, SERVER_CLOCK, Feed
from torra.market.bar_view import BarView
from torra.words.ticks import STATUSES

LACKS: Final = {
    NO_FILE: Lack.MISSING,
    NO_BARS: Lack.MISSING,
    NO_ANSWER: Lack.UNREAD,
    SERVER_CLOCK: Lack.CLOCK,
    BarsRefused.TOO_SHORT: Lack.MISSING,
    BarsRefused.FUTURE: Lack.CLOCK,
    BarsRefused.OFF_GRID: Lack.CLOCK,
    BarsRefused.NO_TIME_ZONE: Lack.CLOCK,
}
"""What a reason of DataUnavailable means for a companion; every other one is `broken`."""

UNREAD: Final = "it was not read in time"

Keep = Callable[[str, str, pd.DataFrame], object]
"""Stores the bars of a companion: symbol, timeframe, checked frame."""

log = logging.getLogger("torra")


class CompanionReading(NamedTuple):
    """What was last read of a companion on a timeframe, for the close `as_of`.

    `frame` has the whole bars, where they passed the door and somebody looks at them.
    """

    name: str
    timeframe: str
    bars: CompanionBars
    as_of: datetime
    frame: pd.DataFrame | None = None

    @property
    def lack(self) -> str:
        """Why it does not count, "" where it does."""
        return str(self.bars.lack or age(self.bars, self.as_of, duration(self.timeframe)))

    @property
    def says(self) -> str:
        """That in words, with the detail that the feed or the door gave; "" where it counts."""
        words = STATUSES[self.lack].word if self.lack in STATUSES else ""
        return f"{words}: {self.bars.detail}" if self.bars.detail else words

    @property
    def closed(self) -> datetime | None:
        """When its newest bar closed; None without one."""
        return self.bars.closed_at(duration(self.timeframe))


@dataclass(slots=True)
class CompanionsAtClose(Reading):
    """The companions at one close of a timeframe: what was read of each, and the checked bars."""

    timeframe: str
    as_of: datetime
    bars: dict[str, CompanionBars] = field(default_factory=dict)
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)

    def has_closed(self, name: str) -> bool:
        """Return whether the newest bar of a companion is the one that closes at `as_of`."""
        bars = self.bars.get(name)
        if bars is None or bars.lack or not len(bars.times):
            return False
        return int(bars.times[-1]) == micros(self.as_of - duration(self.timeframe))


class CompanionReader(CloseReader[CompanionsAtClose]):
    """The companions of an instance, read through `feed` (torra.evidence.Companions).

    `keep` stores what was read, None where nothing is to be. `wait` is in real seconds.
    """

    def __init__(
        self, instance: Instance, feed: Feed, keep: Keep | None = None, *, wait: float = WAIT
    ) -> None:
        super().__init__(f"companions {instance.id}", wait)
        self._symbols = dict(instance.companions)
        self._feed = feed
        self._keep = keep
        self._readings: dict[tuple[str, str], CompanionReading] = {}

    # --- what a tick asks -------------------------------------------------------------------------

    def begin(self, timeframe: str, as_of: datetime) -> None:
        """Begin to read the bars that close at `as_of`."""
        self._begin(timeframe, CompanionsAtClose(timeframe, as_of))

    def known(self, timeframe: str, as_of: datetime, bars: BarView) -> OutsideView:
        """Return what has been read by now, or comes within what is left of the wait."""
        unread = {
            name: CompanionBars(symbol, lack=Lack.UNREAD, detail=UNREAD)
            for name, symbol in self._symbols.items()
        }
        try:
            return read(unread | self._taken(timeframe, as_of), timeframe, as_of, bars)
        except Exception as error:
            log.exception("%s cannot be read", self.name)
            broken = CompanionBars("", lack=Lack.BROKEN, detail=str(error))
            return read(dict.fromkeys(unread, broken), timeframe, as_of, bars)

    def _taken(self, timeframe: str, as_of: datetime) -> dict[str, CompanionBars]:
        with self._state:
            reading = self._newest.get(timeframe)
            if reading is None or reading.as_of != as_of:
                return {}
            if not reading.complete:
                self._wait(reading)
            return dict(reading.bars)

    def look(self, timeframe: str, as_of: datetime) -> list[CompanionReading]:
        """Read each companion now, in the caller's thread: for a check, not for a tick."""
        readings = []
        for name, symbol in self._symbols.items():
            bars, frame = fetch(self._feed, symbol, timeframe, as_of)
            readings.append(CompanionReading(name, timeframe, bars, as_of, frame))
        return readings

    def readings(self) -> list[CompanionReading]:
        """Return what was last read of each companion on each timeframe, for people."""
        with self._state:
            readings = list(self._readings.values())
        return sorted(readings, key=lambda item: (item.name, duration(item.timeframe)))

    # --- what the thread does ---------------------------------------------------------------------

    def _read(self, reading: CompanionsAtClose) -> bool:
        """Read the companions whose bar has not come; return whether none is waited for."""
        timeframe, as_of = reading.timeframe, reading.as_of
        for name, symbol in self._symbols.items():
            if reading.has_closed(name):
                continue
            bars, frame = fetch(self._feed, symbol, timeframe, as_of)
            with self._state:
                reading.bars[name] = bars
                self._readings[name, timeframe] = CompanionReading(name, timeframe, bars, as_of)
            if frame is not None:
                reading.frames[symbol] = frame
        return all(bars.lack or reading.has_closed(name) for name, bars in reading.bars.items())

    def _completed(self, reading: CompanionsAtClose) -> None:
        """Hand the bars over to be stored."""
        for symbol, frame in reading.frames.items():
            if self._keep is None or self.ending:
                return
            try:
                self._keep(symbol, reading.timeframe, frame)
            except Exception as error:  # noqa: BLE001 - the next close brings these bars again
                log.warning("bars of the companion %s are not stored: %s", symbol, error)


def fetch(
    feed: Feed, symbol: str, timeframe: str, as_of: datetime
) -> tuple[CompanionBars, pd.DataFrame | None]:
    """Return a companion's newest bars at a moment, and the frame that passed the door; no raise.

    How old they may be is not the door's to say here: one bar too late is late already.
    """
    try:
        raw = feed.bars(symbol, timeframe, as_of, READ_BARS)
        frame = door.check(raw, timeframe, as_of=as_of, minimum=1, max_age_bars=float("inf"))
    except DataUnavailable as error:
        lack, detail = LACKS.get(error.reason, Lack.BROKEN), error.detail
    except ConfigError as error:
        lack, detail = Lack.MISSING, str(error)
    except Exception as error:  # noqa: BLE001 - a feed of somebody else may raise anything
        lack, detail = Lack.BROKEN, f"the feed raised {type(error).__name__}"
    else:
        index = pd.DatetimeIndex(frame.index).as_unit("us")
        closes = frame["close"].to_numpy(dtype=np.float64)
        return CompanionBars(symbol, index.asi8, closes), frame
    return CompanionBars(symbol, lack=lack, detail=detail), None

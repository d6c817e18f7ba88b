"""The companions of an instance, read beside its ticks: no tick waits for what does not come.

A tick begins a reading when it looks at its own bars, and takes what has been read when its own
work is done. `CompanionReader` reads on a thread of its own, through a feed of its own and the same
door as all bars. A feed that hangs holds up that thread and nothing else.

All bars of a close are written at about the same moment, so a companion's may come a little after
the tick's own. The tick waits for it PATIENCE at most, all timeframes of a close together, and not
at all where nothing is to be hoped for: while the last reading was slow or has not come back, of a
companion whose bar had not come either when it was looked for again after the close before, and of
one for which ticks waited VAIN times in a row until a first look finds its bar again.

A terminal of the MetaTrader5 package answers one question after the other, whoever asks: there a
companion that is slow holds up the desk's own questions for as long as the terminal takes to answer
for it. `rest` makes that rare: from SLOW on all companions are left alone for so long, those of the
same reading that were not asked for yet among them.

AFTERWARDS, when the ticks of the close have been decided or wait for answers, the thread looks once
more and hands the bars over to be stored. What goes wrong is a word in the tick's record
(torra.evidence.companion_readings.Lack); nothing is raised.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
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
from torra.feeds.door import BarsRefused
from torra.feeds.limited import NO_ANSWER
from torra.feeds.protocol import NO_BARS, NO_FILE, SERVER_CLOCK, Feed
from torra.market.bar_view import BarView
from torra.words.ticks import STATUSES

PATIENCE: Final = 0.1
"""Real seconds that the ticks of a close wait for their companions, all together."""

POLL: Final = 0.02
"""Real seconds between two looks for a bar that is about to come."""

AFTERWARDS: Final = 2.0
"""Real seconds after a reading at which the companions are looked at again and stored."""

SLOW: Final = 1.0
"""Real seconds from which on a reading is slow enough to let companions rest."""

REST: Final = 600.0
"""Real seconds of such a rest."""

VAIN: Final = 3
"""Waits for a companion in a row that brought nothing; ticks wait for it no more after these."""

LONGEST: Final = 3.0
"""Real seconds after which a bar is no longer looked for, should no tick take what was read."""

CLOSE_SECONDS: Final = 0.5
"""Longest wait of a close for the thread; one that hangs at a dead drive is left behind."""

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
RESTING: Final = "the terminal was slow to answer for it and is left alone for a while"

Keep = Callable[[str, str, pd.DataFrame], object]
"""Stores the bars of a companion: symbol, timeframe, checked frame."""

log = logging.getLogger("torra")


class CompanionReading(NamedTuple):
    """What was last read of a companion on a timeframe, for the close `as_of`."""

    name: str
    timeframe: str
    bars: CompanionBars
    as_of: datetime

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
class _Reading:
    """The companions at one close of a timeframe.

    `passed` says that each has been read once, `complete` that nothing more is hoped for, `over`
    that nobody waits for it any more.
    """

    timeframe: str
    as_of: datetime
    found: dict[str, CompanionBars] = field(default_factory=dict)
    passed: bool = False
    complete: bool = False
    over: bool = False


class CompanionReader:
    """The companions of an instance, read through `feed` (torra.evidence.Companions).

    `keep` stores what was read, None where nothing is to be. `patience`, `afterwards` and `rest`
    are in real seconds. The thread starts with the first reading; `close` ends it.
    """

    def __init__(
        self,
        instance: Instance,
        feed: Feed,
        keep: Keep | None = None,
        *,
        patience: float = PATIENCE,
        afterwards: float = AFTERWARDS,
        rest: float = 0.0,
    ) -> None:
        self._symbols = dict(instance.companions)
        self._who = instance.id
        self._feed = feed
        self._keep = keep
        self._patience = patience
        self._afterwards = afterwards
        self._rest = rest
        self._rested = 0.0
        self._state = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._wanted: _Reading | None = None
        self._newest: dict[str, _Reading] = {}
        self._owed: dict[str, datetime] = {}
        self._look_at = 0.0
        self._quick = True
        self._prompt: dict[tuple[str, str], bool] = {}
        self._vain: Counter[tuple[str, str]] = Counter()
        self._waited: tuple[datetime | None, float] = (None, 0.0)
        self._told: dict[tuple[str, str], CompanionReading] = {}

    # --- what a tick asks -------------------------------------------------------------------------

    def begin(self, timeframe: str, as_of: datetime) -> None:
        """Begin to read the bars that close at `as_of`."""
        with self._state:
            if self._ended:
                return
            before = self._newest.get(timeframe)
            if before is not None:
                before.over = True
            if self._resting:
                return
            self._wanted = self._newest[timeframe] = _Reading(timeframe, as_of)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name=f"companions {self._who}", daemon=True
                )
                self._thread.start()
            self._state.notify_all()

    def known(self, timeframe: str, as_of: datetime, bars: BarView) -> OutsideView:
        """Return what has been read by now, or comes within what is left of the patience."""
        why = RESTING if self._resting else UNREAD
        found = {
            name: CompanionBars(symbol, lack=Lack.UNREAD, detail=why)
            for name, symbol in self._symbols.items()
        }
        try:
            return read(found | self._taken(timeframe, as_of), timeframe, as_of, bars)
        except Exception as error:
            log.exception("the companions of %s cannot be read", self._who)
            broken = CompanionBars("", lack=Lack.BROKEN, detail=str(error))
            return read(dict.fromkeys(found, broken), timeframe, as_of, bars)

    def _taken(self, timeframe: str, as_of: datetime) -> dict[str, CompanionBars]:
        with self._state:
            reading = self._newest.get(timeframe)
            if reading is None or reading.as_of != as_of:
                return {}
            left = self._patience - (self._waited[1] if self._waited[0] == as_of else 0.0)
            if not reading.complete and self._quick and left > 0.0:
                spent = self._wait(reading, left)
                self._waited = (as_of, self._patience - left + spent)
                # The next tick does not wait for a thread that did not come back for this one.
                self._quick = reading.passed
                self._vain.update((name, timeframe) for name in self._late(reading))
            reading.over = True
            self._state.notify_all()
            return dict(reading.found)

    def _wait(self, reading: _Reading, seconds: float) -> float:
        """Wait until a reading is complete, so many seconds at most; return how long it took."""
        begun = monotonic()
        self._state.wait_for(lambda: reading.complete or self._ended, seconds)
        return monotonic() - begun

    def look(self, timeframe: str, as_of: datetime) -> list[CompanionReading]:
        """Read each companion now, in the caller's thread: for a check, not for a tick."""
        return [
            CompanionReading(name, timeframe, fetch(self._feed, symbol, timeframe, as_of)[0], as_of)
            for name, symbol in self._symbols.items()
        ]

    def told(self) -> list[CompanionReading]:
        """Return what was last read of each companion on each timeframe, for people."""
        with self._state:
            return sorted(self._told.values(), key=lambda one: (one.name, duration(one.timeframe)))

    def close(self) -> None:
        """End the thread for good."""
        with self._state:
            self._ended = True
            self._state.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(CLOSE_SECONDS)

    # --- what the thread does ---------------------------------------------------------------------

    def _work(self) -> None:
        while (reading := self._next()) is not None or not self._ended:
            try:
                if reading is None:
                    self._look_again()
                else:
                    self._read(reading)
            except Exception:
                log.exception("the companions of %s", self._who)

    def _next(self) -> _Reading | None:
        """Return the next reading; None when it is time to look again, and at the end."""
        with self._state:
            while self._wanted is None and not self._ended:
                left = self._look_at - monotonic() if self._owed else None
                if left is not None and left <= 0.0:
                    break
                self._state.wait(left)
            reading, self._wanted = self._wanted, None
            return None if self._ended else reading

    def _read(self, reading: _Reading) -> None:
        """Read all companions, and those that are about to come until somebody takes them."""
        begun = monotonic()
        self._fetch(reading, list(self._symbols))
        with self._state:
            self._quick = monotonic() - begun <= self._patience
            reading.passed = True
        while monotonic() - begun < LONGEST and (awaited := self._awaited(reading)):
            self._fetch(reading, awaited)
        with self._state:
            reading.complete = True
            self._owed[reading.timeframe] = reading.as_of
            self._look_at = monotonic() + self._afterwards
            self._state.notify_all()

    def _late(self, reading: _Reading) -> list[str]:
        """Return the companions whose bar may be expected and is not there."""
        return [
            name
            for name, bars in reading.found.items()
            if not bars.lack
            and not _closes_at(bars, reading)
            and self._prompt.get((name, reading.timeframe))
            and self._vain[name, reading.timeframe] < VAIN
        ]

    @property
    def _resting(self) -> bool:
        """Whether companions are left alone for now."""
        return monotonic() < self._rested

    def _rest_if_slow(self, begun: float) -> None:
        """Let companions rest after a reading that began so long ago."""
        if monotonic() - begun > SLOW:
            self._rested = monotonic() + self._rest

    def _awaited(self, reading: _Reading) -> list[str]:
        """Wait a moment and return the companions whose bar may come yet; none once it is over."""

        def over() -> bool:
            return reading.over or self._ended or self._wanted is not None

        with self._state:
            late = self._late(reading)
            if late:
                self._state.wait_for(over, POLL)
            return [] if over() else late

    def _fetch(self, reading: _Reading, names: list[str]) -> None:
        begun = monotonic()
        for name in names:
            if self._resting:  # since this one was asked for, or the one before was slow
                return
            bars, _ = fetch(self._feed, self._symbols[name], reading.timeframe, reading.as_of)
            self._rest_if_slow(begun)
            self._take_in(name, reading, bars)

    def _take_in(
        self, name: str, reading: _Reading, bars: CompanionBars, *, again: bool = False
    ) -> None:
        with self._state:
            reading.found[name] = bars
            key = name, reading.timeframe
            self._told[key] = CompanionReading(name, reading.timeframe, bars, reading.as_of)
            if _closes_at(bars, reading):
                self._prompt[key] = True
                if not again:
                    del self._vain[key]

    def _look_again(self) -> None:
        """Look at what a close brought in the end, and hand it over to be stored."""
        if self._resting:
            self._owed.clear()
        for timeframe, as_of in [*self._owed.items()]:
            begun, frames = monotonic(), dict[str, pd.DataFrame]()
            for name, symbol in self._symbols.items():
                if self._wanted is not None or self._ended or self._resting:
                    return  # a tick comes first; what is owed stays owed
                bars, frame = fetch(self._feed, symbol, timeframe, as_of)
                self._rest_if_slow(begun)
                again = _Reading(timeframe, as_of)
                self._take_in(name, again, bars, again=True)
                self._prompt[name, timeframe] = _closes_at(bars, again)
                if frame is not None:
                    frames[symbol] = frame
            with self._state:
                self._quick = monotonic() - begun <= self._patience
                if self._owed.get(timeframe) == as_of:
                    del self._owed[timeframe]
            for symbol, frame in frames.items():
                self._store(symbol, timeframe, frame)

    def _store(self, symbol: str, timeframe: str, frame: pd.DataFrame) -> None:
        if self._keep is None or self._ended:
            return
        try:
            self._keep(symbol, timeframe, frame)
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
    except DataUnavailable as why:
        lack = LACKS.get(why.reason, Lack.BROKEN)
        return CompanionBars(symbol, lack=lack, detail=why.detail), None
    except ConfigError as why:
        return CompanionBars(symbol, lack=Lack.MISSING, detail=str(why)), None
    except Exception as error:  # noqa: BLE001 - a feed of somebody else may raise anything
        detail = f"the feed raised {type(error).__name__}"
        return CompanionBars(symbol, lack=Lack.BROKEN, detail=detail), None
    index = pd.DatetimeIndex(frame.index).as_unit("us")
    closes = frame["close"].to_numpy(dtype=np.float64)
    return CompanionBars(symbol, index.asi8, closes), frame


def _closes_at(bars: CompanionBars, reading: _Reading) -> bool:
    """Tell whether the newest bar is the one that closes with a reading."""
    if bars.lack or not len(bars.times):
        return False
    return int(bars.times[-1]) == micros(reading.as_of - duration(reading.timeframe))

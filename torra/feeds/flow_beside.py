"""The order flow of an instance, read beside its ticks: no tick waits for what does not come.

A tick begins a reading when its own bars are there, and takes what has been read when it needs it.
A reading has a thread of its own; a source that hangs holds up that thread and nothing else, and is
not asked again before it has answered.

The Expert Advisor writes order flow a moment after the bars, so a tick waits for the row of its bar
PATIENCE at most, all timeframes of a close together, and not at all where nothing is to be hoped
for: where the row of the bar before did not come in time. The reading goes on for so long without
the tick, so that a row which comes in time again is waited for again.

A terminal of the MetaTrader5 package answers one question after the other, whoever asks: there a
slow answer holds up the desk's own questions. `rest` leaves its ticks alone for so long after one
that took SLOW.

What does not come is a status, and the rows are those that came last. An answer that is no order
flow (`fault`) is `broken`, which is logged once for each stream. Nothing is raised.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import Final

from torra.clock import duration
from torra.evidence.flow_readings import FlowRow, FlowThen
from torra.evidence.news_digest import NewsStatus
from torra.feeds.companions import LONGEST, PATIENCE, POLL, SLOW
from torra.feeds.protocol import FlowFeed, TakeFlow
from torra.time_limit import SHARE_SECONDS

NEEDED: Final = ("ticks", "up", "down")
WHOLE: Final = (*NEEDED, "levels", "events")
AMOUNTS: Final = (
    *("spread_mean", "spread_widest"),
    *("bid_volume", "ask_volume", "imbalance", "slippage"),
)
"""The numbers of a row: those that it needs, whole ones, and distances and volumes."""

MOST: Final = 2**63 - 1
"""The largest whole number that the store keeps."""

log = logging.getLogger("torra")


@dataclass(slots=True)
class _Reading:
    """The order flow of some bars: `over` says that nobody waits for it any more."""

    stream: tuple[str, str]
    times: Sequence[datetime]
    begun: float = field(default_factory=monotonic)
    answer: FlowThen | None = None
    complete: bool = False
    over: bool = False


class LimitedFlow:
    """A source of order flow that no tick waits for for long, and that never raises.

    `patience` and `rest` are in real seconds. Threads may share one.
    """

    def __init__(self, flow: FlowFeed, *, patience: float = PATIENCE, rest: float = 0.0) -> None:
        self._flow = flow
        self._patience = patience
        self._rest = rest
        self._rested = 0.0
        self._state = threading.Condition()
        self._newest: dict[tuple[str, str], _Reading] = {}
        self._known: dict[tuple[str, str], FlowThen] = {}
        self._prompt: dict[tuple[str, str], bool] = {}
        self._trouble: dict[tuple[str, str], str] = {}
        self._waited: tuple[datetime | None, float] = (None, 0.0)

    def begin(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> TakeFlow:
        """Begin to read the order flow of bars; what comes back takes what has been read."""
        return partial(self._taken, (symbol, timeframe), self._begun(symbol, timeframe, times))

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        """Ask for the order flow and wait for the answer: for a check, not for a tick."""
        reading = self._begun(symbol, timeframe, times)
        with self._state:
            if reading is not None:
                self._state.wait_for(lambda: reading.answer is not None, SHARE_SECONDS)
                reading.over = True
            return self._answer((symbol, timeframe), reading)

    def _begun(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> _Reading | None:
        """Return a reading that has begun; None while one is not answered, and during a rest."""
        with self._state:
            if monotonic() < self._rested or any(
                one.answer is None for one in self._newest.values()
            ):
                return None
            reading = _Reading((symbol, timeframe), times)
            if (before := self._newest.get(reading.stream)) is not None:
                before.over = True
            self._newest[reading.stream] = reading
        name = f"order flow {symbol} {timeframe}"
        try:
            threading.Thread(target=self._read, args=[reading], name=name, daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads
            log.warning("%s is not read: %s", name, error)
            reading.answer = FlowThen({}, str(NewsStatus.UNREACHABLE))
            reading.complete = True
        return reading

    def _taken(self, stream: tuple[str, str], reading: _Reading | None) -> FlowThen:
        """Return what has been read by now, or comes within what is left of the patience."""
        with self._state:
            if reading is not None and not reading.complete and self._prompt.get(stream, True):
                self._wait(reading)
            if reading is not None:
                reading.over = True
            return self._answer(stream, reading)

    def _wait(self, reading: _Reading) -> None:
        """Wait for a reading; the next tick does not wait where that was in vain."""
        close = reading.times[-1] + duration(reading.stream[1])
        spent = self._waited[1] if self._waited[0] == close else 0.0
        begun = monotonic()
        self._state.wait_for(lambda: reading.complete, max(0.0, self._patience - spent))
        self._waited = close, spent + monotonic() - begun
        self._prompt[reading.stream] = reading.complete

    def _answer(self, stream: tuple[str, str], reading: _Reading | None) -> FlowThen:
        if reading is not None and reading.answer is not None:
            return reading.answer
        known = self._known.get(stream, FlowThen({}))
        return known._replace(status=str(NewsStatus.UNREACHABLE))

    # --- what the thread does ---------------------------------------------------------------------

    def _read(self, reading: _Reading) -> None:
        """Ask until the row is there or is not hoped for any more."""
        while True:
            asked = monotonic()
            answer = self._asked(reading)
            with self._state:
                if monotonic() - asked > SLOW:
                    self._let_rest(reading, monotonic() - asked)
                reading.answer = self._known[reading.stream] = answer
                spent = monotonic() - reading.begun
                in_time = not reading.over or spent <= self._patience
                hoped = answer.status == NewsStatus.NOT_YET
                if not hoped or not in_time or spent > LONGEST:
                    reading.complete = True
                    self._prompt[reading.stream] = in_time and not hoped
                    self._state.notify_all()
                    return
                self._state.notify_all()
                self._state.wait(POLL)

    def _let_rest(self, reading: _Reading, seconds: float) -> None:
        if self._rest:
            self._rested = monotonic() + self._rest
            log.warning(
                "order flow of %s %s took %.1f s: the terminal is not asked for ticks for %g min",
                *reading.stream, seconds, self._rest / 60,
            )  # fmt: skip

    def _asked(self, reading: _Reading) -> FlowThen:
        try:
            answer = self._flow.flow(*reading.stream, reading.times)
            wrong = fault(answer)
        except Exception as error:  # noqa: BLE001 - a source of somebody else may raise anything
            wrong = f"the source raised {type(error).__name__}: {error}"
        before = self._trouble.get(reading.stream, "")
        self._trouble[reading.stream] = wrong
        if not wrong:
            return answer
        if wrong != before:
            log.warning("order flow of %s %s cannot be used: %s", *reading.stream, wrong)
        return FlowThen({}, str(NewsStatus.BROKEN))


def fault(answer: object) -> str:
    """Return what keeps an answer from being order flow, "" where nothing does."""
    if not isinstance(answer, FlowThen):
        return f"it is no FlowThen but {type(answer).__name__}"
    if not isinstance(answer.rows, Mapping):
        return f"its rows are no mapping but {type(answer.rows).__name__}"
    if not isinstance(answer.status, str) or not isinstance(answer.source, str):
        return "its status and its source have to be texts"
    for time, row in answer.rows.items():
        if wrong := _fault_of(time, row):
            return f"the row of {time}: {wrong}"
    return ""


def _fault_of(time: object, row: object) -> str:
    if not isinstance(time, datetime) or time.utcoffset() != timedelta(0):
        return "its time is not in UTC"
    if not isinstance(row, FlowRow):
        return f"it is no FlowRow but {type(row).__name__}"
    if row.bar_time != time:
        return f"it is of another bar, {row.bar_time}"
    for name in WHOLE:
        if not _whole(getattr(row, name), name not in NEEDED):
            return f"{name} is no whole number of 0 or more"
    for name in AMOUNTS:
        if not _finite(getattr(row, name)):
            return f"{name} is no finite number"
    return ""


def _whole(value: object, optional: bool) -> bool:
    if value is None:
        return optional
    return type(value) is int and 0 <= value <= MOST


def _finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (type(value) is int and abs(value) <= MOST)

"""What stands between a tick and a source that may not answer, such as files on a share.

Bars have a time limit: DataUnavailable (`no_answer`) is raised instead of waiting on. So a tick
that asks ends in time, is tried again like any whose bar is late, and leaves its reason on record.
Everything else is the feed's own.

Order flow is read beside the ticks (torra.feeds.close_reader). The Expert Advisor writes it a
moment after the bars, so a row that is not there yet is read again until the wait of its tick is
over. What does not come is a status, and the rows are those that came last. An answer that is no
order flow (`fault`) is `broken`, which is logged once for each stream. Nothing is raised.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import pandas as pd

from torra.errors import DataUnavailable
from torra.evidence.flow_readings import NO_FLOW, FlowRow, FlowThen
from torra.evidence.news_digest import NewsStatus
from torra.feeds.close_reader import WAIT, CloseReader, Reading
from torra.feeds.protocol import Feed, FlowFeed, TakeFlow, no_flow
from torra.time_limit import SHARE_SECONDS, TimeLimit

NO_ANSWER: Final = "no_answer"
"""Reason of DataUnavailable."""

NEEDED: Final = ("ticks", "up", "down")
WHOLE: Final = (*NEEDED, "levels", "events")
"""The numbers of a row that it needs, and the whole ones; others are distances and volumes."""

MOST: Final = 2**63 - 1
"""The largest whole number that the store keeps."""

log = logging.getLogger("torra")


Stream = tuple[str, str]


@dataclass(slots=True)
class FlowReading(Reading):
    """The order flow of some bars of a symbol on a timeframe."""

    stream: Stream
    times: Sequence[datetime]
    answer: FlowThen | None = None


class LimitedFlow(CloseReader[FlowReading]):
    """A source of order flow that no tick waits for for long, and that never raises.

    Threads may share one.
    """

    def __init__(self, flow: FlowFeed, *, wait: float = WAIT) -> None:
        super().__init__("order flow", wait)
        self._flow = flow
        self._known: dict[Stream, FlowThen] = {}
        self._faults: dict[Stream, str] = {}

    def begin(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> TakeFlow:
        """Begin to read the order flow of bars; what comes back takes what has been read."""
        stream = symbol, timeframe
        return partial(self._taken, stream, self._begin(stream, FlowReading(stream, times)))

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        """Ask for the order flow and wait for the answer: for a check, not for a tick."""
        stream = symbol, timeframe
        reading = self._begin(stream, FlowReading(stream, times))
        with self._state:
            if reading is not None:
                self._state.wait_for(lambda: reading.answer is not None, SHARE_SECONDS)
            return self._answer(stream, reading)

    def _taken(self, stream: Stream, reading: FlowReading | None) -> FlowThen:
        """Return what has been read by now, or comes within what is left of the wait."""
        with self._state:
            if reading is not None and not reading.complete:
                self._wait(reading)
            return self._answer(stream, reading)

    def _answer(self, stream: Stream, reading: FlowReading | None) -> FlowThen:
        if reading is not None and reading.answer is not None:
            return reading.answer
        known = self._known.get(stream, FlowThen({}))
        return known._replace(status=str(NewsStatus.UNREACHABLE))

    def _read(self, reading: FlowReading) -> bool:
        answer = self._ask(reading)
        with self._state:
            reading.answer = self._known[reading.stream] = answer
            self._state.notify_all()
        return answer.status != NewsStatus.NOT_YET

    def _ask(self, reading: FlowReading) -> FlowThen:
        try:
            answer = self._flow.flow(*reading.stream, reading.times)
            wrong = fault(answer)
        except Exception as error:  # noqa: BLE001 - a source of somebody else may raise anything
            wrong = f"the source raised {type(error).__name__}: {error}"
        before = self._faults.get(reading.stream, "")
        self._faults[reading.stream] = wrong
        if not wrong:
            return answer
        if wrong != before:
            log.warning("order flow of %s %s cannot be used: %s", *reading.stream, wrong)
        return FlowThen({}, str(NewsStatus.BROKEN))


class LiveFeed:
    """A feed of the present, perhaps with order flow beside its bars."""

    _flow: LimitedFlow | None = None

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        """Return the order flow, where there is any."""
        return NO_FLOW if self._flow is None else self._flow.flow(symbol, timeframe, times)

    def begin_flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> TakeFlow:
        """Begin to read the order flow beside a tick, which takes it later."""
        return no_flow if self._flow is None else self._flow.begin(symbol, timeframe, times)

    def period(self) -> tuple[datetime, datetime] | None:
        """Return None: the feed lives in real time."""
        return None


class LimitedFeed(LiveFeed):
    """A feed whose reading has a time limit; the order flow beside it has a limit of its own."""

    def __init__(self, feed: Feed, limit: TimeLimit, flow: LimitedFlow | None = None) -> None:
        self._feed, self._limit, self._flow = feed, limit, flow

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the feed's bars; raises DataUnavailable when they do not come in time."""
        try:
            return self._limit.run(partial(self._feed.bars, symbol, timeframe, as_of, limit))
        except TimeoutError as error:
            raise DataUnavailable(
                NO_ANSWER, f"{error.filename}: {error.strerror}: look at its disk or share"
            ) from error

    def period(self) -> tuple[datetime, datetime] | None:
        """Return the feed's period."""
        return self._feed.period()


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
    for name, value in zip(row._fields[1:], row[1:], strict=True):
        if not _is_sound(name, value):
            whole = name in WHOLE
            return f"{name} is no {'whole number of 0 or more' if whole else 'finite number'}"
    return ""


def _is_sound(name: str, value: object) -> bool:
    if value is None:
        return name not in NEEDED
    if name in WHOLE:
        return type(value) is int and 0 <= value <= MOST
    if isinstance(value, float):
        return math.isfinite(value)
    return type(value) is int and abs(value) <= MOST

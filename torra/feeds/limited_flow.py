"""The order flow of an instance, read beside its ticks (torra.feeds.close_reader).

The Expert Advisor writes order flow a moment after the bars, so a row that is not there yet is read
again until the wait of its tick is over. What does not come is a status, and the rows are those
that came last. An answer that is no order flow (`fault`) is `broken`, which is logged once for each
stream. Nothing is raised.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from torra.evidence.flow_readings import FlowRow, FlowThen
from torra.evidence.news_digest import NewsStatus
from torra.feeds.close_reader import WAIT, CloseReader, Reading
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

"""The bars that a tick sees: live through feed and door, or one pass over a whole history.

Both windows answer the same questions (`Window`), so a replayed tick and a live one are the same
code. `LiveWindow` computes L1 on the last 750 bars. `HistoryWindow` scores the whole frame once and
looks rows up; the rows are the same, because every indicator is causal and settles within 750 bars
(docs/scores.md). Bars that cannot be used raise DataUnavailable with their reason.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

import technical_calculator
from ath_calculator import Records
from instance_database import Database
from torra.bridges.paper import Bar
from torra.clock import duration, iso
from torra.config import Instance
from torra.errors import DataUnavailable
from torra.evidence.flow_readings import NO_FLOW, FlowThen
from torra.evidence.outside_numbers import Closes
from torra.feeds import door
from torra.feeds.protocol import Feed, TakeFlow
from torra.market import spreads
from torra.market.bar_view import BarArrays, BarView
from torra.market.spreads import SpreadView
from torra.store import bars as bar_table
from torra.store import flow as flow_table

DAY: Final = timedelta(days=1)
PRICES: Final = ("open", "high", "low", "close")
"""The columns that the paper bridge reads."""


class Window(Protocol):
    """What a tick may know about bars; everything is closed at `as_of`."""

    def bars(self, timeframe: str, as_of: datetime) -> BarView:
        """Return the newest checked bars, 750 at most."""
        ...

    def keep(self, timeframe: str, bars: BarView) -> None:
        """Store what is new in them; called inside a transaction. A history is stored already."""
        del timeframe, bars

    def l1_row(self, timeframe: str, as_of: datetime, bars: BarView) -> Mapping[str, float]:
        """Return the score_frame row of the newest bar."""
        ...

    def records(self, timeframe: str, as_of: datetime) -> Records:
        """Return the highest and the lowest price of the stream so far, and since when."""
        ...

    def spreads(self, bars: BarView, *, by_hour: bool = False) -> SpreadView:
        """Return what is known of the spreads of such bars, `by_hour` also of their hour."""
        return spreads.spread_view(bars.spreads, bars.times if by_hour else None)

    def path(self, timeframe: str, after: datetime, as_of: datetime) -> list[Bar]:
        """Return the bars that opened after `after`, oldest first, for the paper bridge."""
        ...

    def daily_closes(self, as_of: datetime, span: timedelta) -> Closes:
        """Return the closes of the whole days before that of `as_of`, as far back as `span`."""
        ...


class LiveWindow(Window):
    """The newest bars of a feed, checked at the door and stored."""

    def __init__(self, instance: Instance, feed: Feed, database: Database) -> None:
        self._instance = instance
        self._feed = feed
        self._database = database
        self._closes: tuple[tuple[date, timedelta, datetime | None] | None, Closes] = (None, ())
        self._flow: dict[str, FlowThen] = {}
        self._begun: dict[str, TakeFlow] = {}
        self._views: dict[str, tuple[datetime, BarView]] = {}

    def begin_flow(self, timeframe: str, times: Sequence[datetime]) -> None:
        """Let a feed that reads order flow beside the ticks begin; `flow` takes it."""
        begin = getattr(self._feed, "begin_flow", None)
        if begin is not None:
            self._begun[timeframe] = begin(self._instance.symbol, timeframe, times)

    def flow(self, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        """Return the order flow of bars by their open times; `keep` stores what is new of it.

        What was stored first stands, as in a replay. A feed that has none gives NO_FLOW.
        """
        take: TakeFlow | None = self._begun.pop(timeframe, None)
        if take is not None:
            flow = take()
        elif (brings := getattr(self._feed, "flow", None)) is not None:
            flow = brings(self._instance.symbol, timeframe, times)
        else:
            return NO_FLOW
        if flow.status == NO_FLOW.status:
            return flow
        self._flow[timeframe] = flow
        stored = flow_table.flow_rows(
            self._database, self._instance.id, timeframe, times[0], times[-1]
        )
        rows = {time: flow.rows[time] for time in times if time in flow.rows}
        rows |= {row.bar_time: row for row in stored}
        return flow._replace(rows=rows)

    def daily_closes(self, as_of: datetime, span: timedelta) -> Closes:
        """Return the closes of all stored bars; the same list as long as they are the same."""
        day = as_of.date()
        longest = max(self._instance.timeframes, key=duration)
        # A bar may come late: what was read before it does not stand for the day.
        key = day, span, bar_table.newest_bar(self._database, self._instance.id, longest)
        if self._closes[0] != key:
            first, last = day - span, day - DAY
            loaded = self._database.daily_closes(self._instance.id, longest, first, last)
            self._closes = key, self._closes[1] if loaded == self._closes[1] else loaded
        return self._closes[1]

    def bars(self, timeframe: str, as_of: datetime) -> BarView:
        """Fetch and check the newest bars; raises DataUnavailable."""
        limit = technical_calculator.HISTORY
        raw = self._feed.bars(self._instance.symbol, timeframe, as_of, limit)
        view = BarView.of(door.check(raw, timeframe, as_of=as_of))
        self._views[timeframe] = as_of, view
        return view

    def keep(self, timeframe: str, bars: BarView) -> None:
        """Store every bar that is new, and a new revision of any that has changed.

        Stores the order flow too that was read for this tick.
        """
        if (flow := self._flow.pop(timeframe, None)) is not None:
            known = [row for time, row in flow.rows.items() if time <= bars.last]
            flow_table.store_flow(self._database, self._instance.id, timeframe, known, flow.source)
        newest = bar_table.newest_bar(self._database, self._instance.id, timeframe)
        if newest is None or newest < bars.first:  # a hole would hide a high: take it all
            self._fill(timeframe, bars.last + duration(timeframe))
            return
        self._database.store_bars(self._instance.id, timeframe, bars.frame)

    def l1_row(self, timeframe: str, as_of: datetime, bars: BarView) -> Mapping[str, float]:
        """Score the bars and return the last row."""
        del timeframe, as_of
        return last_row(bars.frame)

    def records(self, timeframe: str, as_of: datetime) -> Records:
        """Return the records of all stored bars up to `as_of`: feed's and imported ones alike."""
        records = self._database.records(self._instance.id, timeframe, as_of=as_of)
        if records is None:
            raise DataUnavailable("too_short", "no bar is stored yet")
        return records

    def path(self, timeframe: str, after: datetime, as_of: datetime) -> list[Bar]:
        """Return the feed's bars since `after`, those that the tick has seen where it has them."""
        missing = (as_of - after) // duration(timeframe)
        moment, view = self._views.get(timeframe, (None, None))
        if view is not None and moment == as_of and missing < min(len(view), door.MIN_STEPS):
            count = max(0, missing)
            prices = zip(*(view.newest(name, count) for name in PRICES), strict=True)
            bars = zip(view.newest_times(count), prices, strict=True)
            return [Bar(time, *row) for time, row in bars if time > after]
        frame = self._feed.bars(self._instance.symbol, timeframe, as_of, missing)
        # A feed answers with the newest bars that it has; over a hole these reach back too far.
        frame = frame[frame.index > after]
        # sift, not check: one bad bar may not keep the paper bridge from the stops on the others.
        return list(as_bars(door.drop_invalid_bars(frame, timeframe, as_of=as_of)))

    def fill(self, as_of: datetime) -> int:
        """Store the feed's whole history up to `as_of`; return how many bars were new.

        Bars that the door would refuse are left out; the ticks that meet them say why.
        """
        return sum(self._fill(timeframe, as_of) for timeframe in self._instance.timeframes)

    def _fill(self, timeframe: str, as_of: datetime) -> int:
        frame = self._feed.bars(self._instance.symbol, timeframe, as_of, None)
        frame = door.drop_invalid_bars(frame, timeframe, as_of=as_of)
        return self._database.store_bars(self._instance.id, timeframe, frame) if len(frame) else 0


class HistoryWindow(Window):
    """A whole history scored in one pass; rows are looked up."""

    def __init__(
        self,
        frames: Mapping[str, pd.DataFrame],
        records: Callable[[str, datetime], Records] | None = None,
    ) -> None:
        """Score every history that is long and sound enough; the others are left out.

        `records` gives the records where a longer history than these frames is known.
        """
        self._longer = records
        self._longest = frames[max(frames, key=duration)] if frames else None
        self._closes: tuple[tuple[date, timedelta] | None, Closes] = (None, ())
        self._streams: dict[str, _Stream] = {}
        for name, frame in frames.items():
            # One timeframe may be too short to score; the others can still tick.
            with suppress(DataUnavailable):
                self._streams[name] = _Stream(name, frame)

    def daily_closes(self, as_of: datetime, span: timedelta) -> Closes:
        """Look the closes up; the same list for a whole day."""
        day = as_of.date()
        if self._closes[0] != (day, span):
            days, closes = self._daily
            first, last = bisect_left(days, day - span), bisect_left(days, day)
            chosen = list(zip(days[first:last], closes[first:last], strict=True))
            self._closes = (day, span), chosen
        return self._closes[1]

    @cached_property
    def _daily(self) -> tuple[list[date], list[float]]:
        """The days of the longest timeframe and the close of each one's last bar."""
        if self._longest is None:
            return [], []
        closes = self._longest["close"]
        days = pd.DatetimeIndex(closes.index).date
        by_day = dict(zip(days, closes.tolist(), strict=True))
        return [*by_day], [*by_day.values()]

    @property
    def times(self) -> Mapping[str, pd.DatetimeIndex]:
        """The bar times of every stream that can be looked up."""
        streams = self._streams.items()
        return {name: pd.DatetimeIndex(item.shelf.frame.index) for name, item in streams}

    def bars(self, timeframe: str, as_of: datetime) -> BarView:
        """Return the newest bars at `as_of`; raises DataUnavailable when the newest is missing."""
        stream = self._streams[timeframe]
        end = stream.position(as_of)
        return BarView(stream.shelf, max(0, end - technical_calculator.HISTORY), end)

    def l1_row(self, timeframe: str, as_of: datetime, bars: BarView) -> Mapping[str, float]:
        """Look the row up."""
        del bars
        stream = self._streams[timeframe]
        scores = stream.scores[stream.position(as_of) - 1]
        return dict(zip(stream.columns, scores.tolist(), strict=True))

    def records(self, timeframe: str, as_of: datetime) -> Records:
        """Look the running records up."""
        if self._longer is not None:
            return self._longer(timeframe, as_of)
        stream = self._streams[timeframe]
        at = stream.position(as_of) - 1
        return Records(float(stream.highest[at]), float(stream.lowest[at]), stream.shelf.moments[0])

    def path(self, timeframe: str, after: datetime, as_of: datetime) -> list[Bar]:
        """Return the bars between the two moments; none of a stream that has no history."""
        # The shortest timeframe may be without a history while a longer one ticks.
        stream = self._streams.get(timeframe)
        if stream is None:
            return []
        times = stream.shelf.moments
        first = bisect_right(times, after)
        end = bisect_right(times, as_of - duration(timeframe))
        return [Bar(times[at], *stream.prices[at]) for at in range(first, end)]


class _Stream:
    """One timeframe of a history: its bars, its scores and its running records."""

    def __init__(self, timeframe: str, frame: pd.DataFrame) -> None:
        self.timeframe = timeframe
        if not len(frame):
            raise DataUnavailable("too_short", "no bars")
        # Checked as of its own end: the past is never stale.
        end = frame.index[-1].to_pydatetime() + duration(timeframe)
        checked = door.check(frame, timeframe, as_of=end)
        self.shelf = BarArrays(checked)
        scored = technical_calculator.score_frame(checked)
        self.columns = list(scored.columns)
        self.scores = scored.to_numpy(dtype=float)
        self.highest = np.maximum.accumulate(checked["high"].to_numpy())
        self.lowest = np.minimum.accumulate(checked["low"].to_numpy())
        # Every tick of a replay looks here: a dict and plain lists spare it the pandas index.
        self._number = {time: at for at, time in enumerate(self.shelf.moments)}
        self.prices = list(zip(*(self.shelf.column(name).tolist() for name in PRICES), strict=True))

    def position(self, as_of: datetime) -> int:
        """Return how many bars are closed at `as_of`, the newest of them at that very moment."""
        bar_time = as_of - duration(self.timeframe)
        at = self._number.get(bar_time)
        if at is None:
            raise DataUnavailable("no_bar", f"the history has no bar at {iso(bar_time)}")
        return at + 1


def last_row(frame: pd.DataFrame) -> dict[str, float]:
    """Score a frame of bars and return its last row."""
    scored = technical_calculator.score_frame(frame)
    return dict(zip(scored.columns, scored.to_numpy(dtype=float)[-1].tolist(), strict=True))


def as_bars(frame: pd.DataFrame) -> Iterable[Bar]:
    """Return the bars of a frame as the paper bridge takes them."""
    columns: list[Any] = [frame[name].tolist() for name in PRICES]
    for time, *prices in zip(frame.index, *columns, strict=True):
        yield Bar(time.to_pydatetime(), *prices)

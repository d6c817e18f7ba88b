"""The streams of a desk as its pages show them: newest tick, age, skips since.

All streams are read together. A tick's record is read only once: it never changes after it was
stored, so a cut-down copy (`brief`) is kept by its key. Ages, waits and skips are read anew each
time. Raises StoreUnavailable when the database cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pydantic import JsonValue

from agents.contracts import AgentReport
from torra import clock as clocks
from torra.config import Instance, Profile
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.view.desk_values import NoBars, Skip, StreamStatus
from torra.dashboard.view.kept import LruCache
from torra.market.closed_hours import WEEK, closed_at_most
from torra.store import bars as bar_table
from torra.store import tick_queries
from torra.store.hosted import is_hosted
from torra.tick import sentence
from torra.tick.tick_record import Damaged, InstanceBefore, TickRecord, load
from torra.words.ticks import MEASURED

if TYPE_CHECKING:
    from instance_database import Database

Json = dict[str, JsonValue]
"""A document: times are ISO text with Z, numbers as stored, None for unknown."""

StreamKey = tuple[str, str]
"""Instance and timeframe."""

HISTORY: Final = 48
"""Ticks in the small consensus line of the overview, and bars in its small chart."""

CHARTED: Final = 8
"""Most instances that have a small chart each; of more the overview shows rows."""

STALE_AFTER: Final = 1.5
"""A stream is stale when its newest tick closed more than this many bars ago, unless a closed
market explains it: no bar is missing then, and none has been closed for so long without a tick.
"""

NO_BAR: Final = "no_bar"
"""Reason of a skipped close for which the feed brought no bar (torra.desk.schedule)."""

QUIET_WITHIN: Final = 4
"""Most bars since the newest close without a bar, while a desk is awake: it gives a close up after
two bars, looks again at the next, and may be late.
"""

SKIPS_COUNTED: Final = 5000
"""Most skipped closes since the newest tick that are counted."""

LISTED: Final = 40
"""Newest ticks of a stream that are listed with parts of their records."""

OWN: Final = ("thresholds", "gate", "denied", "events", "as_of")
"""Parts of its own record that a listed tick has besides its key columns; today's may differ."""

STREAMS_KEPT: Final = 512
"""Streams whose newest tick and history are kept."""

LISTS_KEPT: Final = 32
"""Streams whose list of ticks is kept: the symbol pages that people look at."""

READ: Final = frozenset(name for name, _ in MEASURED.values())
"""Features that the words of a veto name."""


def brief(record: TickRecord) -> TickRecord:
    """Return a record without what a glance does not need: texts, evidence, the debate's words."""
    debate = record.deliberation
    reports = tuple(AgentReport(one.agent_id, abstained=one.abstained) for one in debate.reports)
    less = {"reports": reports, "earlier": (), "calls": (), "stages": ()}
    return record.model_copy(
        update={
            # told here: what is kept of the record is too little for it
            "sentence": sentence.page_text(record),
            "features": tuple(item for item in record.features if item.id in READ),
            "deliberation": debate.model_copy(update=less),
            "news": record.news and record.news.model_copy(update={"items": ()}),
            **{name: {} for name in ("notes", "components", "memory")},
            **dict.fromkeys(("signals", "proposed", "calls"), ()),
            "before": InstanceBefore(),
        }
    )


class StreamReading:
    """Reader of the streams of one database, with a cache of their records."""

    def __init__(self, database: Database, profile: Callable[[Instance], Profile]) -> None:
        self._database = database
        self._profile = profile
        self._ticks: LruCache[TickRecord | Damaged | None] = LruCache(STREAMS_KEPT)
        self._histories: LruCache[list[float | None]] = LruCache(STREAMS_KEPT)
        self._lists: LruCache[list[ListedTick]] = LruCache(LISTS_KEPT)

    def read(
        self,
        instances: Sequence[Instance],
        clock: clocks.Clock,
        tallies: Mapping[StreamKey, tuple[int, int]],
    ) -> dict[StreamKey, StreamStatus]:
        """Return each stream's newest tick, history, ages, wait and skips."""
        now = clock.now()
        every = {(one.id, timeframe): one for one in instances for timeframe in one.timeframes}
        streams = list(every)
        newest = tick_queries.newest_of(self._database, streams)
        waits = {name: _wait(name, now, clock) for name in {timeframe for _, timeframe in streams}}
        return {
            stream: self._stream(
                one,
                stream[1],
                *newest[stream],
                now,
                tallies.get(stream, (0, 0))[1],
                # Another scorer asks when it likes: nobody knows when the next tick comes.
                None if is_hosted(one.id) else waits[stream[1]],
            )
            for stream, one in every.items()
        }

    def _stream(
        self,
        one: Instance,
        timeframe: str,
        key: str | None,
        newest: str | None,
        now: datetime,
        count: int,
        wait: float | None,
    ) -> StreamStatus:
        stream = (one.id, timeframe)
        step = clocks.duration(timeframe)
        tick = self.tick(key) if key else None
        last = key.rpartition("|")[2] if key else ""
        # most streams have skipped nothing since: no query for those
        behind = newest is not None and newest > last
        most = SKIPS_COUNTED if tick else HISTORY
        skips = tick_queries.skips_after(self._database, *stream, last, most) if behind else None
        quiet = _quiet(skips, now, step) if skips else None
        age = (now - clocks.parse(last) - step).total_seconds() if last else None
        late = age is None or age > STALE_AFTER * step.total_seconds()
        bar_age, missing, overdue = (
            self._bars(one, timeframe, last, now) if late else (None, False, False)
        )
        return StreamStatus(
            timeframe=timeframe,
            key=key,
            tick=None if isinstance(tick, Damaged) else tick,
            # by the count as well: a late tick joins the history and is not the newest
            history=self._histories.get((stream, key, count), lambda: self._history(stream)),
            next_in_seconds=wait,
            age_seconds=age,
            bar_age_seconds=bar_age,
            stale=overdue or (missing and tick is not None and not quiet),
            quiet=quiet,
            skipped=skip_of(skips) if skips else None,
            damaged=tick.reason if isinstance(tick, Damaged) else "",
        )

    def _bars(
        self, one: Instance, timeframe: str, last: str, now: datetime
    ) -> tuple[float | None, bool, bool]:
        """Return the seconds since the newest bar closed, whether one is missing, whether overdue.

        Missing is a bar, or the tick of a bar after `last`, the bar time of the newest tick. No bar
        is missing that the market of a week before had not either. Overdue is what no closed market
        can explain.
        """
        span = bar_table.bar_span(self._database, one.id, timeframe)
        if span is None:
            return None, True, False
        step, (first, newest) = clocks.duration(timeframe), map(clocks.parse, span)
        close, due = newest + step, now - (STALE_AFTER - 1) * step
        has = partial(bar_table.has_bar, self._database, one.id, timeframe)
        missing = first > close - WEEK or has(close - WEEK, due - WEEK - step)
        if last and not missing:
            missing = has(clocks.parse(last) + step, now - (STALE_AFTER + 1) * step)
        patience = closed_at_most(self._profile(one), one.symbol, step, close, now)
        age = now - close
        return age.total_seconds(), missing, age >= patience

    def tick(self, key: str) -> TickRecord | Damaged | None:
        """Return the parts of one tick that a glance needs."""

        def made() -> TickRecord | Damaged | None:
            stored = self._database.tick_without_calls(key)
            record = None if stored is None else load(key, stored)
            return brief(record) if isinstance(record, TickRecord) else record

        # Another scorer may ask again about a bar: then its tick is another one.
        return made() if is_hosted(key) else self._ticks.get(key, made)

    def listed(
        self, stream: StreamKey, limit: int, newest: str | None, count: int
    ) -> list[ListedTick]:
        """Return the newest ticks of a stream, the first LISTED with parts of their records.

        `newest` and `count` show whether a list that was read before is still right.
        """
        if is_hosted(stream[0]):
            return self._read_list(stream, limit)
        return self._lists.get(
            (stream, limit, newest, count), lambda: self._read_list(stream, limit)
        )

    def _read_list(self, stream: StreamKey, limit: int) -> list[ListedTick]:
        ticks = tick_queries.tick_summaries(self._database, *stream, limit)
        own = tick_queries.words_of(
            self._database, [str(tick["torra_key"]) for tick in ticks[:LISTED]], OWN
        )
        return [ListedTick.read({**tick, **own.get(str(tick["torra_key"]), {})}) for tick in ticks]

    def _history(self, stream: StreamKey) -> list[float | None]:
        return [
            row["consensus"]
            for row in tick_queries.consensus_history(self._database, *stream, HISTORY)
        ]


def skip_of(row: Mapping[str, Any]) -> Skip:
    """Return a skipped close by its row, or a run of them."""
    names = ("bar_time", "reason", "detail", "close_time", "count", "oldest")
    return Skip(**{name: row[name] for name in names if name in row})


def _wait(timeframe: str, now: datetime, clock: clocks.Clock) -> float:
    close = clocks.floor(now, timeframe) + clocks.duration(timeframe)
    return (clock.real_time_of(close) - clock.real_now()).total_seconds()


def _quiet(run: Mapping[str, Any], now: datetime, step: timedelta) -> NoBars | None:
    """Return the run of closes without a bar that a stream is in; None when it is in none."""
    if run["reason"] != NO_BAR or run["others"]:
        return None
    first, last = (clocks.parse(run[name]) + step for name in ("oldest", "bar_time"))
    if now - last > QUIET_WITHIN * step:
        return None  # nobody has looked for a bar for longer than a desk that is awake takes
    return NoBars(run["count"], clocks.iso(first), clocks.iso(last))

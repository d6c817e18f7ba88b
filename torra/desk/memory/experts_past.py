"""What a desk tells its ticks of the past of their seats (torra.evaluation.standing).

Each stream that asks has a book, counted from the desk's own journal: the newest KEPT ticks when
the desk starts, beside the ticks, and the tick before at each question. A tick that finds its book
being counted, or more than a few ticks behind, waits for nothing: it is told nothing, with a flag,
and the book is counted on beside it.

Calls count that the same provider answered: what rules got right says nothing of a model. Those of
the warm-up do not, nor do those of an earlier pass of the shipped sample, which would be the
future. Of the judge's chances all trades of the desk count, for a bin needs many.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from math import fsum
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter

from agents.contracts import BIASES, VECTORS, WINNERS, AgentReport
from agents.evidence import trust
from agents.registry import AGENTS
from instance_database import Database, TickKey
from torra.clock import duration, parse
from torra.config import Instance, Profile
from torra.desk.memory.shelves import FIRST_SECONDS, lap_of
from torra.evaluation.standing.past_calls import (
    SEATS,
    HitRates,
    PastTick,
    SeatCall,
    WinRateByBin,
)
from torra.evaluation.standing.track_record import (
    TOO_LATE,
    TrackRecord,
    TrackRecordOf,
    TrackRecordQuery,
    track_record,
    wanted,
)
from torra.feeds.protocol import Feed
from torra.lessons.lesson import LessonFacts
from torra.services import in_background
from torra.store import standings as standing_table
from torra.store.standings import WarmUps

KEPT: Final = 5_000
"""Newest ticks of a stream that are counted at a start: seven weeks of quarters of an hour."""

PAGE: Final = 250
"""Ticks that are read at a time while a book is counted."""

FEW: Final = 4
"""Ticks that a question itself takes in; a book that is further behind is counted beside it."""

WAIT: Final = 0.001
"""Real seconds that a tick waits for a book."""

WON: Final = "win"
"""Outcome of a lesson of a trade that won."""

REPORTS: Final = TypeAdapter(
    tuple[AgentReport, ...], config=ConfigDict(strict=True, allow_inf_nan=False)
)

DECIMALS: Final = 9

Lap = Callable[[datetime], int]
Ours = Callable[[datetime], bool]

log = logging.getLogger("torra")


class ExpertsPast:
    """The books of a desk."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock, self._making = threading.Lock(), threading.Lock()
        self._streams: dict[tuple[str, str, str, int], _Stream] = {}
        self._trades: dict[tuple[str, int], _Trades] = {}

    def of(self, profile: Profile, provider: str, feed: Feed) -> TrackRecordOf | None:
        """Return what tells an instance's ticks; None where its profile does not ask."""
        if not wanted(profile.agents):
            return None
        lap = lap_of(feed)

        def past(query: TrackRecordQuery) -> TrackRecord:
            try:
                return self._answer(query, *self._books_of(query, provider, lap))
            except Exception:
                log.exception("the past of the seats of %s cannot be told", query.instance)
                return TOO_LATE

        return past

    def prepare(
        self,
        setups: Iterable[tuple[Instance, Profile, str, Feed | None]],
        now: datetime,
        within: float = FIRST_SECONDS,
    ) -> None:
        """Count the books of some instances before their ticks ask; wait `within` s for each."""
        for instance, profile, provider, feed in setups:
            for timeframe in instance.timeframes if wanted(profile.agents) else ():
                query = TrackRecordQuery(instance.id, timeframe, "", now, 0.0)
                if thread := self._begin(*self._books_of(query, provider, lap_of(feed))):
                    thread.join(within)

    def books(self) -> list[tuple[str, HitRates]]:
        """Return the book of every stream that is counted, by its instance, in order."""
        with self._lock:
            books = [(one.instance, one.book) for one in self._streams.values() if one.filled]
        return sorted(books, key=lambda pair: (pair[0], duration(pair[1].timeframe)))

    def _books_of(
        self, query: TrackRecordQuery, provider: str, lap: Lap
    ) -> tuple[_Stream, _Trades]:
        now = lap(query.as_of)
        key = query.instance, query.timeframe, provider, now
        if (stream := self._streams.get(key)) is None:

            def this_pass(moment: datetime) -> bool:
                return lap(moment) == now

            stream = _Stream(self._database, *key[:3], this_pass)
            with self._making:
                # In a new dict, as a page may go through the old one; without the book of another
                # provider or of an earlier pass, which says nothing of what answers now.
                others = {at: one for at, one in self._streams.items() if at[:2] != key[:2]}
                self._streams = {**others, key: stream}
                trades = _Trades(self._database, provider, this_pass)
                self._trades.setdefault((provider, now), trades)
        return stream, self._trades[provider, now]

    def _answer(self, query: TrackRecordQuery, stream: _Stream, trades: _Trades) -> TrackRecord:
        if not self._lock.acquire(timeout=WAIT):
            return TOO_LATE
        try:
            if not stream.filled or stream.take(FEW) == FEW:
                self._begin(stream, trades)
                return TOO_LATE
            trades.take()
            if not stream.book.reach(query.as_of, query.close):
                return TOO_LATE  # an older tick than the newest: the book knows its future
            return track_record(stream.book, trades.chances, query)
        finally:
            self._lock.release()

    def _begin(self, stream: _Stream, trades: _Trades) -> threading.Thread | None:
        """Count a book on beside the ticks, and return who does."""
        if stream.filling:
            return None
        stream.filling, stream.filled = True, False
        try:
            return in_background("standing", partial(self._fill, stream, trades))
        except RuntimeError:  # the system has no thread left: the next tick tries again
            stream.filling = False
            return None

    def _fill(self, stream: _Stream, trades: _Trades) -> None:
        try:
            while not stream.filled:
                with self._lock:
                    if stream.take(PAGE) < PAGE:
                        trades.take()
                        stream.filled = True
        except Exception:
            log.exception("the past of %s could not be counted", stream.instance)
        finally:
            stream.filling = False


class _Stream:
    """The book of a stream: the calls of one provider in one pass of its feed."""

    def __init__(
        self, database: Database, instance: str, timeframe: str, provider: str, ours: Ours
    ) -> None:
        self.instance, self.filled, self.filling = instance, False, False
        self.book = HitRates(timeframe)
        self._database, self._provider, self._ours = database, provider, ours
        self._after = standing_table.close_before(database, instance, timeframe, KEPT)

    def take(self, limit: int) -> int:
        """Take in the ticks that were stored since, `limit` of them at most; return how many."""
        rows = standing_table.stream_calls(
            self._database, self.instance, self.book.timeframe, self._after, limit
        )
        warm_ups = WarmUps(self._database)
        for row in rows:
            self._after = parse(row["close_time"])
            if row["close"] is not None and self._ours(self._after):
                with_calls = row["provider"] == self._provider and not warm_ups.has(
                    self.instance, self.book.timeframe, self._after
                )
                self.book.take(past_tick(row, with_calls=with_calls))
        return len(rows)


class _Trades:
    """What came of the chances that the judge gave, with one provider in one pass."""

    def __init__(self, database: Database, provider: str, ours: Ours) -> None:
        self.chances = WinRateByBin()
        self._database, self._provider, self._ours = database, provider, ours
        self._read = (0, 0)

    def take(self) -> None:
        """Take in the trades that have ended since."""
        fresh = self._database.lessons_since(*self._read)
        self._read = fresh.facts, fresh.words_number
        for facts in (lesson.facts for lesson in fresh.lessons):
            key = TickKey(facts.instance, facts.timeframe, facts.bar_time)
            if (
                facts.kind == "trade"
                and self._ours(facts.known_at)
                and self._ours(facts.bar_time)
                and not WarmUps(self._database).has(*key[:2], key.close_time)
            ):
                self._note(key, facts)

    def _note(self, key: TickKey, facts: LessonFacts) -> None:
        provider, reports = standing_table.reports_of(self._database, key.text)
        if provider == self._provider:
            chance = chance_of(stored_reports(reports), facts.side)
            if chance is not None:
                self.chances.take(facts.known_at, chance, won=facts.outcome == WON)


def past_tick(row: Mapping[str, Any], *, with_calls: bool = True) -> PastTick:
    """Return a row of standings.stream_calls as a tick; without its calls unless `with_calls`."""
    calls = calls_of(stored_reports(row["reports"])) if with_calls else ()
    return PastTick(parse(row["close_time"]), row["close"], row["regime"] or "", calls)


# --- calls in reports -----------------------------------------------------------------------------


def calls_of(reports: Iterable[AgentReport]) -> tuple[SeatCall, ...]:
    """Return the calls of the seats of a swarm among the reports of a tick.

    An agent that this version does not know made none.
    """
    calls = []
    for report in reports:
        if report.agent_id not in SEATS or report.abstained or report.agent_id not in AGENTS:
            continue
        lean = (
            WINNERS[report.winner]
            if report.winner
            else _stance(report) or BIASES.get(report.bias, 0)
        )
        if lean:
            calls.append(SeatCall(report.agent_id, 1 if lean > 0 else -1, report.horizon))
    return tuple(calls)


def stored_reports(text: str) -> tuple[AgentReport, ...]:
    """Return the reports that a tick has stored as JSON; none where one of them is damaged."""
    try:
        return REPORTS.validate_json(text)
    except ValueError:
        return ()


def chance_of(reports: Iterable[AgentReport], side: str) -> float | None:
    """Return the chance that the judge gave a trade of a side, LONG or SHORT; None for none.

    A judge that took the other side, or none, gave this trade no chance.
    """
    for report in reports:
        if report.win_share is not None and report.winner == side:
            return report.win_share
    return None


def _stance(report: AgentReport) -> float:
    """Return which way an opinion's numbers lean, by focus and times its trust."""
    from torra.desk.journal_ticks import focus_of  # noqa: PLC0415 - a swarm's tick alone asks

    words = (
        weight * (report.adjustments.get(vector) or 0.0)
        for vector, weight in zip(VECTORS, focus_of(report.agent_id), strict=True)
    )
    return round(trust(report) * fsum(words), DECIMALS)

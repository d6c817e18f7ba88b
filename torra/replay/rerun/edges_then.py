"""The edges of a stored tick as they were: clock, bars, payer, route, news, lessons and others.

`run_tick` takes them in the place of the desk's own (torra_trader.Edges). Nothing here waits, costs
or sends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import pandas as pd

from agent_config import AgentSettings
from agents.contracts import CallBound, Completion, ModelUnavailable, Request, Submit
from agents.debate.deliberation import Deliberation
from agents.registry import Agent
from ath_calculator import Records
from instance_database import Database, TickKey
from torra.bridges.paper import Bar
from torra.clock import Simulated, parse
from torra.config import Instance
from torra.evidence.news_digest import NewsView
from torra.evidence.outside_numbers import Closes
from torra.lessons.lesson import Lesson
from torra.lessons.recall import Recall, RetrievedLesson, RetrievedLessons, note_text
from torra.market.bar_view import BarView
from torra.market.spreads import NO_SPREADS, SpreadView
from torra.outside.invented import headlines
from torra.replay.rerun.replay_store import JournalDatabase
from torra.store import lessons as lesson_table
from torra.store import news as news_table
from torra.store.replay_queries import StoredDebate
from torra.tick.bar_window import last_row
from torra.tick.degradation import DegradationLevel
from torra.tick.record import news_view
from torra.tick.tick_record import JournalRecord, LessonsRecord

LADDER: Final = "ladder:"
"""Prefix of the flag with the level of a tick whose profile could not pay for its whole desk."""

UNPAID: Final = "budget"
"""Flag of a tick on which nobody was asked, for no level of the ladder could be paid."""


class FrozenClock(Simulated):
    """The clock of a replay: it shows the time that was set, and real time stands still."""

    def monotonic(self) -> float:
        """Return always the same moment, so that no deadline passes."""
        return 0.0


class Then:
    """The bars of one tick as its record names them (torra.tick.bar_window.Window)."""

    def __init__(
        self,
        past: JournalDatabase,
        instance: Instance,
        record: JournalRecord,
        bars: pd.DataFrame,
    ) -> None:
        self._past = past
        self._instance = instance
        self._record = record
        self._bars = bars

    def bars(self, timeframe: str, as_of: datetime) -> BarView:
        """Return the bars of the record."""
        del timeframe, as_of
        return BarView.of(self._bars)

    def keep(self, timeframe: str, bars: BarView) -> None:
        """Store the newest bar: its close is the price of the memory context."""
        self._past.store_bars(self._instance.id, timeframe, bars.frame.iloc[-1:])

    def l1_row(self, timeframe: str, as_of: datetime, bars: BarView) -> Mapping[str, float]:
        """Score the bars and return the last row."""
        del timeframe, as_of
        return last_row(bars.frame)

    def records(self, timeframe: str, as_of: datetime) -> Records:
        """Return the records that the tick knew: of more history than its bars."""
        del timeframe, as_of
        told = self._record
        return Records(
            told.ath_price,
            told.low_price,
            parse(told.records_since) if told.records_since else None,
        )

    def spreads(self, bars: BarView, *, by_hour: bool = False) -> SpreadView:
        """Return the spreads that the tick saw, whatever is stored of them now."""
        del bars, by_hour
        return self._record.spreads or NO_SPREADS

    def daily_closes(self, as_of: datetime, span: timedelta) -> Closes:
        """Return none: the record has what was read from them."""
        del as_of, span
        return ()

    def path(self, timeframe: str, after: datetime, as_of: datetime) -> list[Bar]:
        """Return the bars that the paper bridge lived through at that tick."""
        del timeframe, after, as_of
        return [Bar(parse(time), *prices) for time, *prices in self._record.before.path]


class ThenPayer:
    """The payer of a replay (torra.tick.debate.Payer): the desk and the refusals of then."""

    def __init__(self, told: StoredDebate) -> None:
        self._told = told

    def degradation_level(
        self,
        settings: AgentSettings,
        agents: Mapping[str, Agent] | None = None,
        *,
        reserved_usd: float = 0.0,
    ) -> DegradationLevel:
        """Return the level on which the tick ran."""
        del agents, reserved_usd
        if UNPAID in self._told.flags and not self._told.words:
            return DegradationLevel(settings, settings.mode, calls_models=False)
        lower = [flag.removeprefix(LADDER) for flag in self._told.flags if flag.startswith(LADDER)]
        if not lower:
            return DegradationLevel(settings, settings.mode, calls_models=True)
        return DegradationLevel(
            settings.model_copy(update={"mode": lower[0]}), lower[0], calls_models=True
        )

    def purse(
        self,
        key: TickKey,
        settings: AgentSettings,
        submit: Submit,
        *,
        monotonic: Callable[[], float],
        deadline: float,
    ) -> ThenPurse:
        """Open a purse that holds no money: answers cost nothing."""
        del key, settings, monotonic, deadline
        return ThenPurse(self._told, submit)


class ThenPurse:
    """The purse of a replay (torra.tick.debate.TickPurse): it refuses what was refused then."""

    def __init__(self, told: StoredDebate, submit: Submit) -> None:
        self._told = told
        self._submit = submit

    def reserve(self, stage: str, bounds: Sequence[CallBound]) -> bool:
        """Grant a stage; ModelUnavailable, with the reason of then, for one that was refused.

        Otherwise an agent that abstains before it asks anybody would be heard in it.
        """
        del stage
        reason = self._told.refused([bound.role_id for bound in bounds], bounds[0].round)
        if reason:
            raise ModelUnavailable(reason, "refused then", again=None, billed=False)
        return True

    def submit(self, request: Request) -> Future[Completion]:
        """Ask the recorded provider."""
        return self._submit(request)

    def settled(self, deliberation: Deliberation) -> Deliberation:
        """Return the deliberation as it is."""
        return deliberation


class ThenRoute:
    """The route of a tick with a bridge to a broker: what came of it is read from the source."""

    def settle(self, instance: str) -> None:
        """Book nothing: the reports of then are booked."""

    def send(self, instance: str) -> None:
        """Send nothing."""

    def figures(self, instance: str) -> Mapping[str, Any]:
        """Return nothing: the record's exposure has what the broker said."""
        del instance
        return {}


T = TypeVar("T")


def always(value: T | None) -> Callable[..., T] | None:
    """Return a function that gives what the tick saw, whatever it is asked; None for nothing."""
    return None if value is None else lambda *_: value


def news_of_then(source: Database, record: JournalRecord) -> Callable[[datetime], NewsView] | None:
    """Return a function that gives the tick's own view of the news, for any moment."""
    news = record.news
    if news is None:
        return None
    names = [row.id for row in news.items]
    items = [*headlines(names)] or news_table.news_items(source, names)
    return lambda _: news_view(news, items)


def lessons_of_then(source: Database, record: JournalRecord) -> Recall | None:
    """Return a function that gives what the tick knew of earlier trades; None for nothing."""
    if record.lessons is None:
        return None
    lessons = lesson_table.lessons_by(source, [note.lesson for note in record.lessons.notes])
    found = recalled(record.lessons, lessons, parse(record.as_of))
    return lambda _: found


def recalled(record: LessonsRecord, lessons: Iterable[Lesson], as_of: datetime) -> RetrievedLessons:
    """Return what a record knew of earlier trades, its notes written anew from stored lessons.

    A lesson, or an author's words, that is not there any more raises KeyError.
    """
    known = {lesson.number: lesson for lesson in lessons}
    notes = []
    for note in record.notes:
        lesson = known[note.lesson]
        words = {words.author: words for words in lesson.words}[note.author]
        text = note_text(lesson.facts, words, as_of, record.numbers)
        notes.append(RetrievedLesson(lesson.number, words.author, note.score, note.ranks, text))
    return RetrievedLessons(
        record.numbers, tuple(notes), record.corpus, record.newest, record.digest, record.nearest,
        record.flags,
    )  # fmt: skip

"""The edges of a stored tick as they were: clock, bars, payer, route, news, lessons and others.

`run_tick` takes them in the place of the desk's own (torra_trader.Edges). Nothing here waits, costs
or sends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Any, Final

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
from torra.evaluation.standing.track_record import PastOf, TrackRecord
from torra.evidence.fair_value import Closes
from torra.evidence.news_digest import NewsView
from torra.evidence.outside_readings import ClosesOf, OutsideView
from torra.evidence.scheduled_events import EventView
from torra.lessons.recall import Recall, Recalled
from torra.market.bar_view import BarView
from torra.market.spreads import SpreadView
from torra.outside.invented import headlines
from torra.replay.rerun.replay_store import JournalDatabase
from torra.store.journal import StoredDebate
from torra.tick.bar_window import last_row
from torra.tick.ladder import Rung
from torra.tick.record import events_then, news_then, outside_then, spreads_then

LADDER: Final = "ladder:"
"""Prefix of the flag with the rung of a tick whose profile could not pay for its whole desk."""

UNPAID: Final = "budget"
"""Flag of a tick on which nobody was asked, for no rung of the ladder could be paid."""


class Still(Simulated):
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
        record: Mapping[str, Any],
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
        since = told["records_since"]
        return Records(float(told["ath_price"]), float(told["low_price"]), since and parse(since))

    def spreads(self, bars: BarView, *, by_hour: bool = False) -> SpreadView:
        """Return the spreads that the tick saw, whatever is stored of them now."""
        del bars, by_hour
        return spreads_then(self._record.get("spreads"))

    def daily_closes(self, as_of: datetime, span: timedelta) -> Closes:
        """Return none: the record has what was read from them."""
        del as_of, span
        return ()

    def path(self, timeframe: str, after: datetime, as_of: datetime) -> list[Bar]:
        """Return the bars that the paper bridge lived through at that tick."""
        del timeframe, after, as_of
        return [Bar(parse(time), *prices) for time, *prices in self._record["before"]["path"]]


class ThenPayer:
    """The payer of a replay (torra.tick.debate.Payer): the desk and the refusals of then."""

    def __init__(self, told: StoredDebate) -> None:
        self._told = told

    def rung(
        self,
        settings: AgentSettings,
        agents: Mapping[str, Agent] | None = None,
        *,
        beside: float = 0.0,
    ) -> Rung:
        """Return the rung on which the tick ran."""
        del agents, beside
        if UNPAID in self._told.flags and not self._told.words:
            return Rung(settings, settings.mode, asked=False)
        lower = [flag.removeprefix(LADDER) for flag in self._told.flags if flag.startswith(LADDER)]
        if not lower:
            return Rung(settings, settings.mode, asked=True)
        return Rung(settings.model_copy(update={"mode": lower[0]}), lower[0], asked=True)

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


def news_of_then(
    source: Database, record: Mapping[str, Any]
) -> Callable[[datetime], NewsView] | None:
    """Return a function that gives the tick's own view of the news, for any moment."""
    told = record.get("news")
    if told is None:
        return None
    names = [row["id"] for row in told["items"]]
    items = [*headlines(names)] or source.news_items(names)
    return lambda _: news_then(told, items)


def lessons_of_then(source: Database, record: Mapping[str, Any]) -> Recall | None:
    """Return a function that tells what the tick was told of earlier trades; None for nothing."""
    told = record.get("lessons")
    if told is None:
        return None
    lessons = source.lessons_by([note["lesson"] for note in told["notes"]])
    found = Recalled.of(told, lessons, parse(record["as_of"]))
    return lambda _: found


def standing_of_then(record: Mapping[str, Any]) -> PastOf | None:
    """Return a function that tells what the tick was told of its seats' past; None for nothing."""
    told = record.get("standing")
    return None if told is None else lambda _: TrackRecord.of(told)


def outside_of_then(
    record: Mapping[str, Any],
) -> Callable[[datetime, ClosesOf], OutsideView] | None:
    """Return a function that gives the tick's own view of the outside numbers."""
    told = record.get("outside")
    return None if told is None else lambda _as_of, _closes: outside_then(told)


def events_of_then(record: Mapping[str, Any]) -> Callable[[datetime, datetime], EventView] | None:
    """Return a function that gives the tick's own view of scheduled events."""
    told = record.get("events")
    return None if told is None else lambda _as_of, _now: events_then(told)

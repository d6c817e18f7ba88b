"""Runs journalled ticks again, exactly: same bars, same moment, same profile, same answers.

`replay` takes the ticks of an instance in the order in which they ran and puts each through the
very `run_tick`. Each has the bars that its record names (by range and revision, checked by their
hash), the clock of then, the profile that was applied then and the recorded provider. The result is
compared with the record: every score, agent, verdict, action, reason and signal. Real time stands
still, so a slow or busy machine changes no answer.

A tick whose bars, headlines or record are gone is reported and left out (headlines go when they are
old: Desk.prune); later ticks may then differ, because they remember it. A request that the journal
does not answer is a miss: the agent is skipped and the miss is counted. The source is only read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

import pandas as pd

from agent_config import AgentSettings
from agents.contracts import CallBound, Completion, ModelUnavailable, Request, SourceType, Submit
from agents.debate.deliberation import Deliberation
from agents.registry import Agent
from instance_database import Database, TickKey
from torra.bridges.paper import Bar
from torra.clock import Simulated, duration, parse
from torra.config import Instance, Profile
from torra.evidence.news_digest import NewsView
from torra.evidence.scheduled_events import EventView
from torra.market.bar_view import BarView
from torra.providers.recorded import History, RecordedProvider
from torra.replay.rerun.replay_store import JournalDatabase
from torra.store.connection import to_json
from torra.store.journal import StoredDebate, journal_history
from torra.tick.bar_window import as_bars, last_row
from torra.tick.debate import SHADOW
from torra.tick.ladder import Rung
from torra.tick.record import describe, events_then, news_then
from torra_trader import Edges, Outcome, run_tick

State = Literal["same", "different", "no_bars", "no_news", "no_record", "not_run"]

NOT_COMPARED: Final = frozenset(
    ("calls", "cost_usd", "elapsed_ms", "provider", "versions", "bars", "before", "desk")
)
"""Fields of a record that are no result: cost, time, provider, versions and inputs."""

NEEDED: Final = ("now", "before", "desk", "execution")
"""Fields of a record without which its tick cannot run again: records of older versions."""

LADDER: Final = "ladder:"
"""Prefix of the flag with the rung of a tick whose profile could not pay for its whole desk."""

REPORTED: Final = ("scores", "composite", "consensus", "verdict", "action", "reason", "signals")
"""Fields of the tick that ran again in `Comparison.as_json`."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One tick then and now.

    `differences` maps a field of the record to (then, now); `misses` counts the requests that the
    journal did not answer, by reason; `cost_usd` is what the answers cost then.
    """

    key: str
    state: State
    differences: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    answered: int = 0
    misses: Mapping[str, int] = field(default_factory=dict)
    cost_usd: float = 0.0
    record: Mapping[str, Any] | None = None
    detail: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values, with the present result of the tick."""
        record = self.record or {}
        return {
            "key": self.key,
            "state": self.state,
            "detail": self.detail,
            "differences": {name: list(pair) for name, pair in self.differences.items()},
            "answered": self.answered,
            "misses": dict(sorted(self.misses.items())),
            "cost_usd": self.cost_usd,
            **{name: record.get(name) for name in REPORTED},
        }


def replay(
    source: Database,
    into: Database,
    instance: Instance,
    *,
    limit: int | None = None,
    history: History | None = None,
) -> Iterator[Comparison]:
    """Run the newest `limit` journalled ticks of an instance (None: all) again in `into`.

    `into` may hold other instances, but no tick of this one (ValueError); it gets the state that
    the first of these ticks met. `history` answers instead of the source's journal; a stage that
    was refused then is refused again.
    """
    keys = source.journalled(instance.id, limit)
    past = JournalDatabase.at(into.path)
    try:
        begun = False
        for text in keys:
            record, at = source.journal_row(text)
            if any(name not in record for name in NEEDED):
                yield Comparison(text, "no_record", detail="stored by an older version")
                continue
            # The first tick that can run again sets the stage: older ones have no `before`.
            if not begun:
                past.begin(source, instance.id, text)
                begun = True
            profile = profile_then(source, instance.id, record, at)
            provider = RecordedProvider(history or journal_history(source, instance.id))
            yield _again(source, past, instance, record, profile, provider)
    finally:
        past.close()


def profile_then(source: Database, instance: str, record: Mapping[str, Any], at: str) -> Profile:
    """Return the profile with which a tick ran.

    It is found by its digest. A tick that was a record only, because a newer one had overtaken it,
    ran with execution off: its digest is that of a profile so changed. Without any the profile that
    was applied last before the tick was stored is taken, and the digests differ.
    """
    change = {"execution": record["execution"]}
    earlier: list[Profile] = []
    for row in source.profiles_of(instance):
        profile = Profile.model_validate_json(row["profile"]).model_copy(update=change)
        if record["profile"] in (row["digest"], profile.digest()):
            return profile
        earlier += [profile] if row["applied_at"] <= at else []
    return earlier[0] if earlier else Profile().model_copy(update=change)


def _again(
    source: Database,
    past: JournalDatabase,
    instance: Instance,
    record: Mapping[str, Any],
    profile: Profile,
    provider: RecordedProvider,
) -> Comparison:
    key = TickKey(instance.id, record["timeframe"], parse(record["bar_time"]))
    bars = _bars_then(source, key, record["bars"])
    if bars is None:
        return Comparison(key.text, "no_bars", detail="the stored bars are not those of the tick")
    gone = _headlines_gone(source, record)
    if gone:
        return Comparison(key.text, "no_news", detail=gone)
    clock = Still(parse(record["now"]))
    past.enter(record, clock, source)
    held = past.lease()
    told = source.debate_of(key.text)
    # Nobody was asked then (no provider): the recorded one would count misses.
    silent = record["source_type"] == SourceType.L1_ONLY and told is not None and not told.words
    edges = Edges(
        database=past,
        window=Then(source, past, instance, record, bars),
        submit=None if silent else provider.submit,
        provider=provider.name,
        clock=clock,
        epoch=held["epoch"] + 1 if held else 1,
        account=ThenPayer(told) if told else None,
        picture=lambda: source.picture(record["picture"]) if record.get("picture") else None,
        news=_news_then(source, record),
        events=_events_then(record),
        promoted=lambda: told is None or SHADOW not in told.flags,
    )
    outcome = run_tick(
        instance, key.timeframe, key.bar_time, clock.monotonic(), profile=profile, edges=edges
    )
    return _compared(record, outcome, provider)


def _news_then(
    source: Database, record: Mapping[str, Any]
) -> Callable[[datetime], NewsView] | None:
    """Return a function that gives the tick's own view of the news, for any moment."""
    told = record.get("news")
    if told is None:
        return None
    items = source.news_items([row["id"] for row in told["items"]])
    return lambda _: news_then(told, items)


def _headlines_gone(source: Database, record: Mapping[str, Any]) -> str:
    """Return how many of the headlines that a tick saw are not stored any more, "" for none."""
    seen = {row["id"] for row in (record.get("news") or {}).get("items", ())}
    gone = len(seen) - len(source.news_items(sorted(seen)))
    return f"{gone} of the {len(seen)} headlines that it saw are gone: too old" if gone else ""


def _events_then(record: Mapping[str, Any]) -> Callable[[datetime, datetime], EventView] | None:
    """Return a function that gives the tick's own view of scheduled events."""
    told = record.get("events")
    return None if told is None else lambda _as_of, _now: events_then(told)


class ThenPayer:
    """The payer of a replay (torra.tick.debate.Payer): the desk and the refusals of then."""

    def __init__(self, told: StoredDebate) -> None:
        self._told = told

    def rung(self, settings: AgentSettings, agents: Mapping[str, Agent] | None = None) -> Rung:
        """Return the rung on which the tick ran."""
        del agents
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


def _compared(
    record: Mapping[str, Any], outcome: Outcome, provider: RecordedProvider
) -> Comparison:
    told: dict[str, Any] = {"answered": provider.answered, "misses": dict(provider.misses)}
    cost = float(record["cost_usd"])
    if outcome.record is None:
        detail = f"{outcome.state}: {outcome.reason} {outcome.detail}".strip()
        return Comparison(outcome.key.text, "not_run", cost_usd=cost, detail=detail, **told)
    # Through JSON as the record went: tuples become lists, keys text.
    now = json.loads(to_json(outcome.record))
    names = sorted((record.keys() | now.keys()) - NOT_COMPARED)
    differences = {
        name: (record.get(name), now.get(name))
        for name in names
        if record.get(name) != now.get(name)
    }
    return Comparison(
        outcome.key.text,
        "different" if differences else "same",
        differences,
        cost_usd=cost,
        record=now,
        **told,
    )


def _bars_then(source: Database, key: TickKey, told: Mapping[str, Any]) -> pd.DataFrame | None:
    """Return the very bars that a tick saw; None when they are not there any more."""
    bars = source.bars_then(
        key.instance,
        key.timeframe,
        parse(told["from"]),
        parse(told["to"]),
        told["revision"] or 0,
    )
    same = len(bars) == told["count"] and describe(bars)["hash"] == told["hash"]
    return bars if same else None


class Still(Simulated):
    """The clock of a replay: it shows the time that was set, and real time stands still."""

    def monotonic(self) -> float:
        """Return always the same moment, so that no deadline passes."""
        return 0.0


class Then:
    """The bars of one tick as its record names them (torra.tick.bar_window.Window)."""

    def __init__(
        self,
        source: Database,
        past: JournalDatabase,
        instance: Instance,
        record: Mapping[str, Any],
        bars: pd.DataFrame,
    ) -> None:
        self._source = source
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

    def ath(self, timeframe: str, as_of: datetime) -> float:
        """Return the highest price that the tick knew: more history than its bars."""
        del timeframe, as_of
        return float(self._record["ath_price"])

    def path(self, timeframe: str, after: datetime, as_of: datetime) -> list[Bar]:
        """Return the bars that the paper bridge lived through at that tick.

        Those that it had lived through before, on a tick that failed afterwards, come first.
        """
        del as_of
        told = self._record["before"]
        path = [Bar(parse(time), *prices) for time, *prices in told["path"]]
        cursor = parse(told["paper_cursor"]) if told["paper_cursor"] else after
        if cursor > after:
            missing = self._source.load_bars(
                self._instance.id, timeframe, as_of=cursor + duration(timeframe)
            )
            path = [*as_bars(missing[missing.index > after]), *path]
        return path

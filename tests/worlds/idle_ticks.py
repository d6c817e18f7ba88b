"""Four ticks of a desk by which a setting shows whether it changes anything.

The desk opens where all agree (the first tick). On the second it is divided and unsure, one analyst
fails, and whoever judges takes no side and asks for a close. On the third all models fail. The last
reaches no threshold and has not earned its influence. The evidence has what every rule of the gate
reads: a losing streak, a position elsewhere, high volatility, panic, crowding, liquidations,
exhaustion, and events where the profile has a calendar. `came_to` yields what was asked, decided,
recorded and proposed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from agents.contracts import VECTORS, Completion, Feature, ModelUnavailable, Request, synchronous
from agents.registry import REVIEWER
from tests.doubles import scripted
from tests.worlds import desks, firm_ticks, remembering, swarm_ticks
from torra.clock import iso
from torra.config import Profile, Thresholds
from torra.desk.memory import reviews
from torra.evaluation.standing import track_record
from torra.evidence.feature_bundle import Bundle
from torra.evidence.news_digest import NewsStatus, NewsView
from torra.evidence.scheduled_events import EventView, ScheduledEvent, around
from torra.lessons.recall import RetrievedLesson, RetrievedLessons
from torra.providers.prices import PriceList
from torra.replay.rerun.edges_then import FrozenClock
from torra.store.memory import MemoryStore
from torra.tick.degradation import tick_worst_case
from torra.tick.edges import TickDeps
from torra_trader import run_tick

NONCE: Final = re.compile("[0-9a-f]{16}")
EVIDENCE: Final[Mapping[str, float | str]] = {
    "memory.losing_streak": 3.0,
    "memory.open_elsewhere": 1.0,
    "technical.volatility_percentile": 97.0,
    "macro.vix_rank": 97.0,
    "derivs.funding_rank": 3.0,
    "derivs.long_liquidations_rank": 99.5,
    "market.triage": "exhaustion",
    "news.score": 0.3,
    "micro.spread_percentile": 40.0,
    "flow.book_imbalance": 0.2,
    **{f"macro.number_{number}": 1.0 for number in range(40)},  # prompts that a cap has to cut
}
TICKS: Final = ("agreed", "divided", "down", "quiet")
FAILS: Final = {"firm": "sentiment", "full": "momentum", "swarm": "macro"}
"""Who does not answer where the desk is divided."""

KEYS: Final = [key for key in remembering.keys(8) if key.timeframe == "M15"][-len(TICKS) :]
PRICES: Final = PriceList()


def came_to(profile: Profile) -> Iterator[str]:
    """Yield what a profile comes to: beside the ticks, by tick, and what was proposed."""
    store = MemoryStore({remembering.BTC: profile}, remembering.ranges)
    proposals: list[dict[str, Any]] = []
    vars(store)["propose"] = lambda row: proposals.append(dict(row)) is None
    yield _text([_costs(profile), _review(profile)])
    for name, key in zip(TICKS, KEYS, strict=True):
        voice, clock = _Voice(name, profile), FrozenClock(desks.START)
        clock.set(key.close_time + timedelta(seconds=1))
        settings = profile
        if name == "quiet":
            settings = profile.model_copy(update={"thresholds": Thresholds(buy=0.95, sell=0.95)})
        outcome = run_tick(
            desks.BTC, key.timeframe, key.bar_time, clock.monotonic(), profile=settings,
            edges=_edges(store, profile, voice, clock, promoted=name != "quiet"),
        )  # fmt: skip
        assert outcome.record is not None and outcome.result is not None, name
        told_of = outcome.result.debated.deliberation.as_json()
        record = {k: v for k, v in outcome.record.items() if k not in ("profile", "versions")}
        yield _text([voice.asked(), _timeless(record), _timeless(told_of)])
    yield _text(proposals)


def differ(one: Profile, other: Iterable[str]) -> bool:
    """Tell whether a profile comes to something else; it runs no further than the difference."""
    return any(mine != theirs for mine, theirs in zip(came_to(one), other, strict=True))


class _Voice:
    """Answers as a tick wants it; replies of the rules are final and there at once."""

    def __init__(self, tick: str, profile: Profile) -> None:
        self._tick, self._mode = tick, profile.agents.mode
        self._final = profile.agents.provider == "rules"
        self._requests: list[Request] = []
        # A partial: the mark on a bound method would land on the function of every voice.
        self.submit = synchronous(partial(self._answer)) if self._final else self._answer

    def _answer(self, request: Request) -> Future[Completion]:
        self._requests.append(request)
        future: Future[Completion] = Future()
        if self._tick == "down" or (
            self._tick == "divided" and request.role.id == FAILS.get(self._mode)
        ):
            future.set_exception(ModelUnavailable("refused", "down"))
        else:
            text = json.dumps(self._reply(request))
            future.set_result(Completion(text, request.model, "scripted", final=self._final))
        return future

    def _reply(self, request: Request) -> dict[str, Any]:
        divided, role = self._tick == "divided", request.role
        if role.kind == "arbiter":
            return firm_ticks.judgement(request, **({"winner": "NONE"} if divided else {}))
        if role.kind == "judge":
            changes = {"side": "NONE", "falsifiers": [], "counter": "", "close": True}
            return swarm_ticks.decided(request, **(changes if divided else {}))
        if role.kind not in ("analyst", "researcher"):
            return scripted.honest(request)
        leads = role.id in ("technical", "liquidity")
        value = 0.2 if leads or not divided else -0.15
        value = -0.05 if role.id == "bear_researcher" else value
        # Of one alone: with more, which of them are asked again before a debate is full is chance.
        changes = {"confidence": "low"} if divided and leads else {}
        told_ = scripted.report(request, value=value, **changes)
        told_["adjustments"] = {v: value if v in role.focus else None for v in VECTORS}
        asked = request.schema["properties"]
        return told_ | {name: one for name, one in firm_ticks.AHEAD.items() if name in asked}

    def asked(self) -> list[Any]:
        return sorted(
            [
                one.role.id, one.role.tier, one.round, one.attempt, one.model, str(one.system),
                NONCE.sub("N", str(one.user)), one.max_output_tokens, one.limit_s,
                hashlib.sha256(one.picture or b"").hexdigest(),
            ]
            for one in self._requests
        )  # fmt: skip


def _edges(
    store: Any, profile: Profile, voice: _Voice, clock: FrozenClock, *, promoted: bool
) -> TickDeps:
    """Return the edges that a desk hands to the ticks of a profile."""
    agents = profile.agents
    book: Any = SimpleNamespace(
        hit_shares=lambda _: {"liquidity_hit_share": 0.7},
    )
    chances: Any = SimpleNamespace(win_shares=lambda _: {"win_share_4": 0.2})
    return TickDeps(
        database=store,
        window=remembering.window(),
        submit=voice.submit,
        provider=agents.provider,
        clock=clock,
        promoted=lambda: promoted,
        evidence=_with_evidence,
        events=_events if profile.events.calendar else None,
        news=(lambda _: NewsView(NewsStatus.EMPTY)) if agents.include_news else None,
        lessons=(lambda asked: _recalled(asked.notes, agents.memory.embedder))
        if agents.remembers()
        else None,
        standing=(lambda asked: track_record.track_record(book, chances, asked))
        if track_record.wanted(agents)
        else None,
    )


def _with_evidence(key: Any, bundle: Bundle, outside: Any) -> Bundle:
    del outside
    as_of = iso(key.close_time)
    more = {name: Feature(name, value, "", as_of) for name, value in EVIDENCE.items()}
    return replace(bundle, features={**bundle.features, **more})


def _events(as_of: Any, now: Any) -> EventView:
    times = (as_of - timedelta(minutes=20), as_of + timedelta(minutes=40))
    return around([ScheduledEvent(one, "USD", "high", "CPI") for one in times], ["USD"], as_of, now)


def _recalled(notes: int, embedder: str) -> RetrievedLessons:
    words = [RetrievedLesson(n, "rules", 1.0, {}, f"Trade {n} lost 1.0 R.") for n in range(1, 4)]
    numbers: dict[str, float | str | None] = {
        "side": "LONG",
        "similar": float(len(embedder)),
        "win_share": 0.4,
        "mean_r": 0.1,
    }
    return RetrievedLessons(numbers, tuple(words[:notes]), corpus=9, newest=3, digest="x")


def _costs(profile: Profile) -> list[Any]:
    """Return what the ceiling makes of a tick, and which share of it is for others."""
    most = tick_worst_case(PRICES, profile.agents, lambda _: False)
    agents = profile.agents
    return [
        most,
        bool(most) and most <= agents.max_api_cost_per_hour,
        bool(most) * agents.off_tick_share,
    ]


def _review(profile: Profile) -> Any:
    """Return what is asked about a closed trade; None for nothing."""
    lesson: Any = SimpleNamespace(
        facts=SimpleNamespace(kind="trade", sid="s", known_at=desks.START), words=()
    )
    asking: Any = SimpleNamespace(
        database=SimpleNamespace(value=lambda *_: 0, now=lambda: desks.START)
    )
    agents = profile.agents
    if reviews.refused(lesson, reviews.Paying("p", agents), asking):
        return None
    return agents.model(REVIEWER.id, REVIEWER.tier), agents.caps(REVIEWER.id, REVIEWER.tier)


def _timeless(value: Any) -> Any:
    """Return JSON values without how long anything took."""
    if isinstance(value, Mapping):
        return {name: _timeless(one) for name, one in value.items() if not name.endswith("_ms")}
    return [_timeless(one) for one in value] if isinstance(value, list | tuple) else value


def _text(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True)

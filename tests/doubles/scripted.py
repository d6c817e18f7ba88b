"""A provider that plays a script: per role a queue of replies, delays and failures.

The last entry of a queue repeats; a role without a queue gets honest replies. An entry is

    a dict or text          the reply
    an exception            the future carries it
    Raises(error)           submit itself raises
    NEVER                   a future that never completes
    Blocks(event)           submit does not return before the event is set
    Slow(seconds, entry)    the reply comes later, from another thread
    a function of Request   whatever it returns, of the above

`requests` is what was asked, in the order of asking.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final

from agent_config import AgentSettings, DebateSettings, GateSettings
from agent_framework import deliberate
from agents.contracts import (
    VECTORS,
    AgentReport,
    Ask,
    Completion,
    DebateContext,
    Evidence,
    Feature,
    Point,
    Request,
)
from agents.debate.deliberation import Deliberation
from agents.registry import Agent
from torra.providers.registry import Provider
from torra.providers.rules.provider import RulesProvider

NONCE: Final = "5eedfeed5eedfeed"
COST: Final = 0.001
NEVER: Final = object()


@dataclass(frozen=True)
class Raises:
    error: BaseException


@dataclass(frozen=True)
class Blocks:
    event: threading.Event


@dataclass(frozen=True)
class Slow:
    seconds: float
    entry: Any


class Scripted:
    """See the module. Also counts what it was asked.

    An error is given without its traceback: one that is raised again and again would keep the
    frames of each time, gigabytes in ten thousand cases.
    """

    name = "scripted"

    def __init__(self, script: Mapping[str, Any] | None = None) -> None:
        self.script = {
            role: list(entries) if isinstance(entries, list) else [entries]
            for role, entries in (script or {}).items()
        }
        self.requests: list[Request] = []
        self._lock = threading.Lock()

    def submit(self, request: Request) -> Future[Completion]:
        with self._lock:
            self.requests.append(request)
            queue = self.script.get(request.role.id, [honest])
            entry = queue.pop(0) if len(queue) > 1 else queue[0]
        return self._play(entry, request)

    def close(self) -> None:
        """A script holds nothing open."""

    def asked(self, role: str) -> list[Request]:
        return [request for request in self.requests if request.role.id == role]

    def _play(self, entry: Any, request: Request) -> Future[Completion]:
        if callable(entry):
            return self._play(entry(request), request)
        if isinstance(entry, Raises):
            raise entry.error.with_traceback(None)
        if isinstance(entry, Blocks):
            entry.event.wait()
            entry = honest(request)
        future: Future[Completion] = Future()
        if isinstance(entry, Slow):
            self._later(entry, request, future)
        elif isinstance(entry, BaseException):
            future.set_exception(entry.with_traceback(None))
        elif entry is not NEVER:
            future.set_result(completion(entry))
        return future

    def _later(self, entry: Slow, request: Request, future: Future[Completion]) -> None:
        def answer() -> None:
            inner = entry.entry(request) if callable(entry.entry) else entry.entry
            if isinstance(inner, BaseException):
                future.set_exception(inner.with_traceback(None))
            else:
                future.set_result(completion(inner))

        timer = threading.Timer(entry.seconds, answer)
        timer.daemon = True
        timer.start()


class Distant(RulesProvider):
    """The rules behind a line: their answers are not said to be there at once."""

    def submit(self, request: Request) -> Future[Completion]:
        return super().submit(request)


def completion(entry: Any) -> Any:
    if isinstance(entry, Completion):
        return entry
    text = entry if isinstance(entry, str) else json.dumps(entry)
    return Completion(text, "scripted-1", "scripted", 1000, 100, COST)


def honest(request: Request) -> dict[str, Any]:
    """A reply that fits the role's schema and cites what it was shown."""
    made: dict[str, Callable[[Request], dict[str, Any]]] = {
        "gate": ruling,
        "scorer": chart,
        "arbiter": judgement,
        "trader": thesis,
        "reader": regime,
        "judge": decision,
    }
    return made.get(request.role.kind, report)(request)


OWN_FIELDS: Final[Mapping[str, Any]] = {
    "rebuttals": [],
    "falsifiers": [],
    "ordinals": {
        "relevance": 2,
        "sentiment": 1,
        "price_impact": 2,
        "trend": 1,
        "investor_confidence": 1,
        "risk_profile_change": -1,
    },
    "horizon": "bars_16",
    "risks": ["RSI may turn from 61."],
}
"""Fields that only some reports have: a case, the news, those of a firm; others pass them over."""

SWARM_FIELDS: Final[Mapping[str, Any]] = {
    "anomaly": "none",
    "bias": "UP",
    "pattern": "none",
    "levels": [],
    "side": "LONG",
    "counter": "RSI at 61 may have run its course.",
    "win_share": 0.6,
    "close": False,
}
"""Fields that only a swarm's reports have."""


def report(request: Request | None = None, **changes: Any) -> dict[str, Any]:
    """A valid report; `value` sets every adjustment, other names replace fields.

    It has the fields that the request's schema asks for; without a request, those of every kind.
    """
    value = changes.pop("value", 0.1)
    own = _own_fields(request)
    cited = _cited(request)
    who = "technical analyst" if request is None else request.role.title
    return (
        own
        | {
            "symbol": "XAUUSD" if request is None else request.symbol,
            "claim": f"Momentum and trend agree at RSI 61, says the {who}.",
            "points_for": _points(request) if value else [],
            "points_against": [],
            "adjustments": dict.fromkeys(VECTORS, value),
            "confidence": "high",
            "evidence": cited,
            "flags": [],
            "abstained": False,
            "abstain_reason": "",
        }
        | changes
    )


def _own_fields(request: Request | None) -> dict[str, Any]:
    asked = OWN_FIELDS if request is None else request.schema.get("properties", {})
    more = {} if request is None else SWARM_FIELDS
    return {name: reply for name, reply in {**OWN_FIELDS, **more}.items() if name in asked}


def _cited(request: Request | None) -> list[dict[str, Any]]:
    shown = {} if request is None else dict(list(request.features.items())[:2])
    cited = [{"id": name, "value": feature.value} for name, feature in shown.items()]
    return cited or [{"id": "technical.rsi14", "value": 61.2}]


def _points(request: Request | None) -> list[dict[str, Any]]:
    """A point on a feature that may stand on either side, where one is shown."""
    features = {} if request is None else request.features
    known = (
        {"technical.rsi14": 61.2}
        if request is None
        else {
            name: features[name].value
            for name in ("technical.rsi14", "scores.momentum", "scores.structure")
            if name in features
        }
    )
    told = [{"id": name, "value": value} for name, value in known.items()][:1]
    return [one | {"says": "RSI is above 60", "why": "so buyers lead"} for one in told]


def reporting(**changes: Any) -> Callable[[Request], dict[str, Any]]:
    """An entry of a script: a valid report with these changes."""
    return lambda request: report(request, **changes)


def ruling(request: Request | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "symbol": "XAUUSD" if request is None else request.symbol,
        "multiplier": 1.0,
        "veto": False,
        "reason_code": "NONE",
        "confidence": "high",
        "reasoning": "Nothing to add.",
        "evidence": [],
    } | changes


def judgement(request: Request | None = None, **changes: Any) -> dict[str, Any]:
    """A valid judgement of an arbiter."""
    return {
        "symbol": "XAUUSD" if request is None else request.symbol,
        "winner": "LONG",
        "claim": "Long: RSI at 61 carries the bull's case.",
        "points_for": _points(request),
        "points_against": [],
        "weights": {"bull_researcher": 0.75, "bear_researcher": 0.5},
        "confidence": "high",
        "evidence": _cited(request),
        "horizon": "bars_16",
    } | changes


def thesis(request: Request | None = None, **changes: Any) -> dict[str, Any]:
    """A valid thesis of a trader that does not decline."""
    return {
        "symbol": "XAUUSD" if request is None else request.symbol,
        "claim": "Trade: RSI at 61 leads.",
        "points_for": _points(request),
        "points_against": [],
        "invalidation": [],
        "risks": ["RSI may turn from 61."],
        "horizon_bars": 16,
        "decline": False,
        "reason_code": "NONE",
        "confidence": "high",
        "evidence": _cited(request),
    } | changes


def regime(request: Request | None = None, **changes: Any) -> dict[str, Any]:
    """A valid reading of the regime that leaves the whole budget."""
    return {
        "symbol": "XAUUSD" if request is None else request.symbol,
        "regime": "trend_up",
        "bias": "UP",
        "budget_pct": 100,
        "first": "none",
        "claim": "A trend: RSI at 61.",
        "points_for": _points(request),
        "points_against": [],
        "confidence": "high",
        "evidence": _cited(request),
    } | changes


def decision(request: Request | None = None, **changes: Any) -> dict[str, Any]:
    """A valid decision of a judge that can be proved wrong; `value` sets every adjustment."""
    ends = changes.get("falsifiers")
    changes = {**SWARM_FIELDS, **OWN_FIELDS, **changes} if request is None else changes
    way = {"LONG": 1, "SHORT": -1}.get(changes.get("side", "LONG"), 0)
    features = {} if request is None else request.features
    close, atr = (features.get(f"technical.{name}") for name in ("close", "atr14"))
    level = 2000.0 if close is None or atr is None else close.value - way * atr.value
    end = {"close": "below" if way >= 0 else "above", "level": level, "what": "an ATR", "bars": 8}
    return report(
        request,
        **{"value": 0.1 * way, "points_against": _points(request)}
        | changes
        | {"falsifiers": [end] if ends is None else ends},
    )


def chart(request: Request | None = None, score: float = 0.5) -> dict[str, Any]:
    symbol = "XAUUSD" if request is None else request.symbol
    vectors = {vector: {"score": score, "note": "read"} for vector in VECTORS}
    return {"symbol": symbol, **vectors, "summary": "one model"}


FEATURES: Final[Mapping[str, float | str | None]] = {
    "component.mo_rsi": 0.56,
    "technical.rsi14": 61.2,
    "technical.adx14": 27.5,
    "technical.volatility_percentile": 40.0,
    "technical.close": 2034.55,
    "technical.kijun": None,
    "forecast.drift_pct": 0.12,
    "market.spread_atr": 0.08,
    "market.valid_bars": 750.0,
    "market.bar_age": 0.0,
    "market.session": "LONDON",
    "memory.markov_state": "BULLISH",
    "memory.state_duration": 3.0,
    "memory.next_bullish": 0.6,
    "memory.consensus_last": 0.31,
    "memory.trend_direction": "rising",
    "memory.losing_streak": 0.0,
    "memory.open_elsewhere": 0.0,
    "memory.position": "FLAT",
    "news.available": 0.0,
}
FULL_FEATURES: Final[Mapping[str, float | str | None]] = {
    **FEATURES,
    "technical.macd": 1.25,
    "technical.macd_signal": 0.75,
    "technical.macd_hist": 0.5,
    "technical.stoch_k": 71.5,
    "technical.stoch_d": 66.25,
    "technical.cci20": 88.5,
    "technical.plus_di": 28.5,
    "technical.minus_di": 16.25,
    "technical.atr14": 3.5,
    "technical.bb_lower": 2024.5,
    "technical.bb_mid": 2031.25,
    "technical.bb_upper": 2038.0,
    "technical.tenkan": 2033.0,
    "technical.kijun": 2030.5,
    "technical.span_a": 2028.25,
    "technical.span_b": 2026.5,
    "technical.support": 2029.0,
    "technical.resistance": 2040.5,
    "technical.support_distance_atr": 1.5857,
    "technical.resistance_distance_atr": 1.7,
    "technical.fib_382": 2033.25,
    "technical.fib_500": 2031.5,
    "technical.fib_618": 2029.75,
    "technical.trend_state": 1.0,
    "technical.bos": 0.0,
    "technical.volume_ratio": 1.2,
    "technical.gap_pct": 0.05,
    "component.kl_fibonacci": 0.1,
    "market.range_atr": 1.1,
    "market.regime": "trend_up",
    "market.triage": "volume_spike",
    "events.available": 1.0,
    "events.to_next_min": 95.0,
    "events.since_last_min": None,
    "news.available": 1.0,
    "news.items": 2.0,
    "news.score": 0.25,
    "news.macro_items": 1.0,
    "news.macro_score": 0.5,
    "news.geopolitical_items": 1.0,
    "news.geopolitical_score": -0.25,
    "news.item.1": "Fed holds rates, signals cuts",
    "news.item_score.1": 0.5,
    "news.item_weight.1": 0.9,
    "news.item_age_h.1": 0.5,
    "news.item_event.1": "macro",
    "news.item.2": "Talks stall at the border",
    "news.item_score.2": -0.25,
    "news.item_weight.2": 0.45,
    "news.item_age_h.2": 6.25,
    "news.item_event.2": "geopolitical",
    "sentiment.positioning_available": 0.0,
    "sentiment.news": 0.25,
    "sentiment.news_items": 2.0,
    "sentiment.up_bars": 0.65,
    "sentiment.up_volume": 0.58,
    "sentiment.streak": 3.0,
    "fundamentals.available": 0.0,
    "fundamentals.pe": None,
    "source.news": "available",
    "source.events": "available",
    "source.fundamentals": "off",
}
"""Evidence for every agent of the desk of eight."""

L1: Final = {"price_action": 0.42, "key_levels": -0.1, "momentum": 0.3, "structure": 0.0}
SWARM_FEATURES: Final[Mapping[str, float | str | None]] = {
    **FULL_FEATURES,
    "liquidity.vwap_atr": 0.5,
    "liquidity.sweep_high": 0.0,
    "liquidity.sweep_low": 1.0,
    "liquidity.delta20": 0.1,
    "micro.spread_percentile": 55.0,
    "micro.spread_jump": 1.1,
    "macro.us10y": 4.2,
    "geometry.channel_r2": 0.8,
    "geometry.compression": 0.4,
    "geometry.pattern_done": 0.0,
    "geometry.pattern.double_bottom": 1.0,
    "geometry.pattern.double_top": 0.0,
    "geometry.level.1": 2033.0,
    "geometry.level.2": 2040.5,
    "geometry.level.3": 2029.0,
    "geometry.level.4": None,
    "stakes.reward_r": 2.0,
    "stakes.cost_r": 0.08,
    "stakes.break_even": 0.36,
}
"""Evidence for every seat of a swarm."""

MEMORY: Final = {
    "current_markov_state": "BULLISH",
    "state_duration": 3,
    "recent_transitions": ["NEUTRAL→BULLISH", "BEARISH→NEUTRAL"],
    "next_probabilities": {"BULLISH": 0.6, "NEUTRAL": 0.4},
    "sentiment_trend": [0.11, 0.25, 0.31],
    "trend_direction": "rising",
    "open_positions": [{"direction": "LONG", "pnl": 45.2, "age_ticks": 8}],
    "recent_signals": ["HOLD", "HOLD", "BUY"],
}


def context(**changes: Any) -> DebateContext:
    """A tick with evidence; `features` replaces single values."""
    values = {**FEATURES, **changes.pop("features", {})}
    moment = "2021-12-01T10:15:00Z"
    given: dict[str, Any] = {
        "symbol": "XAUUSD",
        "timeframe": "M15",
        "bar_time": "2021-12-01T10:00:00Z",
        "as_of": moment,
        "scores": L1,
        "notes": {"price_action": "close above EMA20"},
        "features": {name: Feature(name, value, "", moment) for name, value in values.items()},
        "memory": MEMORY,
        "nonce": NONCE,
    }
    return DebateContext(**(given | changes))


def a_report(agent: str = "technical", value: float | None = 0.1, **changes: Any) -> AgentReport:
    """A report as the framework holds it."""
    given: dict[str, Any] = {
        "agent_id": agent,
        "adjustments": dict.fromkeys(VECTORS, value),
        "confidence": "high",
        "claim": "Momentum and trend agree at RSI 61.",
        "points_for": (Point("RSI is above 60", "technical.rsi14", 61.2, "so buyers lead", 1),),
        "evidence": (Evidence("technical.rsi14", 61.2),),
    }
    return AgentReport(**(given | changes))


def settings(gate: Mapping[str, Any] | None = None, **agents: Any) -> DebateSettings:
    return DebateSettings(agents=AgentSettings(**agents), gate=GateSettings(**(gate or {})))


AMPLE: Final = 60.0
"""Seconds of a debate in which nobody hangs: a busy machine may stand still for twenty."""


def abstaining(seat: Agent) -> Agent:
    """Return a seat that abstains without asking."""

    def analyze(context: DebateContext, ask: Ask) -> AgentReport:
        del context, ask
        return AgentReport.abstain(seat.role.id, "nothing to read")

    return replace(seat, analyze=analyze)


def debate(
    provider: Provider,
    *,
    seconds: float = AMPLE,
    about: DebateContext | None = None,
    config: DebateSettings | None = None,
    **more: Any,
) -> Deliberation:
    """Deliberate with a real clock and `seconds` until the deadline."""
    return deliberate(
        about or context(),
        config or settings(),
        provider.submit,
        monotonic=time.monotonic,
        deadline=time.monotonic() + seconds,
        **more,
    )


PATIENCE: Final = (0.8, 4.0, 20.0)
"""Seconds of a debate in which some hang: a machine that stands still leaves the others too few."""


def debate_hanging(
    hanging: Iterable[str], failed: AbstractSet[str], **how: Any
) -> tuple[Deliberation, Scripted]:
    """Debate while some never answer; anew with more time where others than `failed` were late."""
    for seconds in PATIENCE:
        provider = Scripted(dict.fromkeys(hanging, NEVER))
        record = debate(provider, seconds=seconds, **how)
        if record.failures.keys() == failed and "deadline" not in record.failures.values():
            break
    return record, provider


def all_finite(values: Sequence[float]) -> bool:
    return all(math.isfinite(value) for value in values)

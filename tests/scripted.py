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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from agent_config import AgentSettings, DebateSettings, GateSettings
from agent_framework import deliberate
from agents.contracts import (
    VECTORS,
    AgentReport,
    Completion,
    DebateContext,
    Evidence,
    Feature,
    Request,
)
from agents.deliberation import Deliberation

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
    """See the module. Also counts what it was asked."""

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
            raise entry.error
        if isinstance(entry, Blocks):
            entry.event.wait()
            entry = honest(request)
        future: Future[Completion] = Future()
        if isinstance(entry, Slow):
            self._later(entry, request, future)
        elif isinstance(entry, BaseException):
            future.set_exception(entry)
        elif entry is not NEVER:
            future.set_result(completion(entry))
        return future

    def _later(self, entry: Slow, request: Request, future: Future[Completion]) -> None:
        def answer() -> None:
            inner = entry.entry(request) if callable(entry.entry) else entry.entry
            if isinstance(inner, BaseException):
                future.set_exception(inner)
            else:
                future.set_result(completion(inner))

        timer = threading.Timer(entry.seconds, answer)
        timer.daemon = True
        timer.start()


def completion(entry: Any) -> Any:
    if isinstance(entry, Completion):
        return entry
    text = entry if isinstance(entry, str) else json.dumps(entry)
    return Completion(text, "scripted-1", "scripted", 1000, 100, COST)


def honest(request: Request) -> dict[str, Any]:
    """A reply that fits the role's schema and cites what it was shown."""
    if request.role.kind == "gate":
        return ruling(request)
    if request.role.kind == "scorer":
        return chart(request)
    return report(request)


def report(request: Request | None = None, **changes: Any) -> dict[str, Any]:
    """A valid report; `value` sets every adjustment, other names replace fields."""
    value = changes.pop("value", 0.1)
    cited = {} if request is None else dict(list(request.features.items())[:2])
    return {
        "symbol": "XAUUSD" if request is None else request.symbol,
        "adjustments": dict.fromkeys(VECTORS, value),
        "confidence": "high",
        "reasoning": "Momentum and trend agree.",
        "key_points": ["RSI above 60"],
        "evidence": [{"id": name, "value": feature.value} for name, feature in cited.items()]
        or [{"id": "technical.rsi14", "value": 61.2}],
        "flags": [],
        "abstained": False,
        "abstain_reason": "",
    } | changes


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
L1: Final = {"price_action": 0.42, "key_levels": -0.1, "momentum": 0.3, "structure": 0.0}
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
        "reasoning": "Momentum and trend agree.",
        "key_points": ("RSI above 60",),
        "evidence": (Evidence("technical.rsi14", 61.2),),
    }
    return AgentReport(**(given | changes))


def settings(gate: Mapping[str, Any] | None = None, **agents: Any) -> DebateSettings:
    return DebateSettings(agents=AgentSettings(**agents), gate=GateSettings(**(gate or {})))


def debate(
    provider: Scripted,
    *,
    seconds: float = 5.0,
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


def all_finite(values: Sequence[float]) -> bool:
    return all(math.isfinite(value) for value in values)

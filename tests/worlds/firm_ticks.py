"""Ticks of a firm whose manager and trader say what a test wants, and the pages of their desk.

`lived` runs a few closes of the sample on a desk of mode `firm` whose thresholds nearly everything
reaches, and returns its pages. Analysts and researchers lean to the side of the tick, the manager
weighs the bull 0.80 and the bear 0.40, and the trader writes a thesis, unless a script says
otherwise.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from agents.contracts import Request
from tests.doubles import scripted
from tests.worlds import desk_pages

CLAIM: Final = "Buyers hold the close above the mean, and RSI at 61 leaves them room."
RISK: Final = "The move may be spent before the session ends."
VERDICT: Final = "The bull's case rests on more facts than the bear's: RSI stands at 61."
FIRM: Final[Mapping[str, Any]] = {
    "execution": "approve",
    "thresholds": {"buy": 0.05, "sell": 0.95},
    "agents": {"mode": "firm", "influence": "full", "call_policy": "always"},
}
INSTANCE, TIMEFRAME, BAR = "BTCUSD", "M15", "2021-11-10T10:00:00Z"
"""The tick of the first close."""

AHEAD: Final[Mapping[str, Any]] = {"horizon": "bars_16", "risks": [RISK]}


def reply(request: Request, **changes: Any) -> dict[str, Any]:
    """A reply that fits what a seat of the firm is asked for."""
    own = {"judgement": judgement, "thesis": thesis}.get(_shape(request))
    if own is not None:
        return own(request, **changes)
    value = {"bull_researcher": 0.12, "bear_researcher": -0.05}.get(request.role.id, 0.2)
    told = scripted.report(request, value=value)
    asked = request.schema["properties"]
    return told | {name: one for name, one in AHEAD.items() if name in asked} | changes


def judgement(request: Request, **changes: Any) -> dict[str, Any]:
    """A manager's reply."""
    return {
        **_argued(request, VERDICT),
        "winner": "LONG",
        "weights": {"bull_researcher": 0.8, "bear_researcher": 0.4},
        "horizon": "bars_16",
    } | changes


def thesis(request: Request, **changes: Any) -> dict[str, Any]:
    """A trader's reply."""
    close = float(request.features["technical.close"].value or 0.0)
    ends = {"close": "below", "level": round(0.995 * close, 2), "what": "the last low", "bars": 12}
    return {
        **_argued(request, CLAIM),
        "invalidation": [ends],
        "risks": [RISK],
        "horizon_bars": 16,
        "decline": False,
        "reason_code": "NONE",
    } | changes


def declining(code: str = "HIGH_VOLATILITY") -> dict[str, Any]:
    """The script of a trader that declines."""
    return {"trader": lambda request: thesis(request, decline=True, reason_code=code)}


def lived(
    home: Path,
    script: Mapping[str, Any] | None = None,
    *,
    steps: int = 1,
    profile: Mapping[str, Any] | None = None,
) -> desk_pages.Pages:
    """Return the pages of a desk that lived through some closes."""
    voice = scripted.Scripted(dict.fromkeys(_ROLES, _answer) | dict(script or {}))
    return desk_pages.open_pages(home, profile=dict(profile or FIRM), steps=steps, provider=voice)


@cache
def record(case: str = "written") -> dict[str, Any]:
    """Return the stored record of one tick: written, declined, silent, alone (no manager)."""
    scripts: dict[str, dict[str, Any]] = {
        "written": {},
        "declined": declining(),
        "silent": {"trader": "no JSON"},
        "alone": {"research_manager": "no JSON"},
    }
    with tempfile.TemporaryDirectory() as folder:
        pages = lived(Path(folder), scripts[case])
        told = pages.json(f"/api/v1/symbol/{INSTANCE}/{TIMEFRAME}/{BAR}")
        pages.desk.close()
    return dict(told)


_ROLES: Final = (
    "technical", "sentiment", "news", "fundamental", "bull_researcher", "bear_researcher",
    "research_manager", "trader",
)  # fmt: skip


def _answer(request: Request) -> dict[str, Any]:
    return reply(request)


def _shape(request: Request) -> str:
    asked = request.schema["properties"]
    return "judgement" if "winner" in asked else "thesis" if "decline" in asked else ""


def _argued(request: Request, claim: str) -> dict[str, Any]:
    told = scripted.report(request)
    kept = ("symbol", "points_for", "points_against", "confidence", "evidence")
    return {name: told[name] for name in kept} | {"claim": claim}

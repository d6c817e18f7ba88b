"""The replies of the rules: what every seat's has, in the shape that a model would give it.

A horizon is fixed for some seats: what money and worth say is read in days, mood and news within a
session, oscillators and ticks in four bars. Everybody else goes by the regime: sixteen bars in a
trend, four in a range; where the hours are late, the session that ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agent_config import EXPERTS
from agents.contracts import VECTORS, Horizon, Request
from agents.features import Features, number
from torra.providers.rules.argument import Argument, capital
from torra.providers.rules.rule import trend_of, word

HORIZONS: Final[Mapping[str, Horizon]] = {
    "fundamental": "days",
    "sentiment": "session",
    "news": "session",
    "momentum": "bars_4",
    "microstructure": "bars_4",
    "macro": "days",
}
"""The time that a seat speaks for, whatever the regime."""

LATE: Final = {"CLOSED": 0.8, "Friday NEW_YORK": 0.9}
"""Factors of a size in late hours, by session or weekday and session: a gap may follow."""

TREND_FROM: Final = 0.5
"""Strength of the trend from which sixteen bars are spoken for, not four."""

DECIMALS: Final = 4
"""Adjustments are rounded to this many decimals."""

BIAS: Final = {1: "UP", -1: "DOWN", 0: "NEUTRAL"}

Reply = dict[str, Any]


def focus_of(request: Request) -> list[str]:
    """Return the vectors that a role may touch, in their order."""
    return [vector for vector in VECTORS if vector in request.role.focus]


def report(
    request: Request,
    argument: Argument,
    moves: Mapping[str, float],
    confidence: str,
    names: Iterable[str],
    abstained: str = "",
) -> Reply:
    """Return the reply of who moves scores; `abstained` says why it does not."""
    return {
        **argued(request, argument),
        "adjustments": dict.fromkeys(VECTORS) | dict(moves),
        "confidence": confidence,
        "evidence": cite(request, names),
        "flags": [],
        "abstained": bool(abstained),
        "abstain_reason": abstained,
    }


def argued(request: Request, argument: Argument) -> Reply:
    """Return the claim and the points of a reply."""
    for_it, against = (
        [
            citation(request, point.id) | {"says": capital(point.half), "why": point.why}
            for point in points
        ]
        for points in (argument.points_for, argument.points_against)
    )
    return {"claim": argument.claim, "points_for": for_it, "points_against": against}


def cite(request: Request, names: Iterable[str]) -> list[Reply]:
    """Return the citations of those features that are there, each with its value."""
    features = request.features
    return [
        {"id": name, "value": feature.value}
        for name in names
        if (feature := features.get(name))
        and (isinstance(feature.value, str) or number(features, name) is not None)
    ]


def citation(request: Request, name: str) -> Reply:
    """Return a feature as it is cited, with None for a value that is not there."""
    feature = request.features.get(name)
    return {"id": name, "value": feature and feature.value}


def level(value: float, levels: Mapping[str, float]) -> str:
    """Return the confidence whose least value a value reaches first, "low" below all of them."""
    return next((name for name, least in levels.items() if value >= least), "low")


def horizon(request: Request) -> Horizon:
    """Return the time that a report speaks for."""
    if request.role.id in HORIZONS:
        return HORIZONS[request.role.id]
    if late_factor(request.features) < 1.0:
        return "session"
    expert = request.role.id in EXPERTS
    return "bars_16" if trend_of(request.features, by_name=expert) >= TREND_FROM else "bars_4"


def late_factor(features: Features) -> float:
    """Return what late hours leave of a size, 1 where it is not late or nothing is known."""
    day, session = (word(features, f"market.{name}") for name in ("day_of_week", "session"))
    if not (day and session):
        return 1.0
    return LATE.get(session, LATE.get(f"{day} {session}", 1.0))

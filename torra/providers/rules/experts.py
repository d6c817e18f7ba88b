"""The rules in the seats of a swarm's experts: a report over the scores, a lean, what is odd.

An expert reads the table that `expert_readings` has for it, and moves the scores towards what that
says, never past it. `bias` is its side; without one, because the scores have said it already, the
way in which its evidence leans on the whole by `LEANS` or more.

An anomaly is named where the evidence has it, and what it was seen in is cited. A pattern is named
only where code found it, a level only as code has it. Where trading is dear for its hour, the
microstructure expert is sure of nothing.

Pure functions; nothing raises, and nobody else is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agents.arguments import CLAIM_WORDS, net_side
from agents.contracts import ANOMALIES, NO_ANOMALY, Feature, Request
from agents.swarm.anomalies import PATTERN, ROWS, patterns, shown_by
from torra.providers.rules.expert_readings import ANY, table_of
from torra.providers.rules.opinions import Reply, cite, focus, opinion
from torra.providers.rules.readings import (
    CLOSE,
    NAMED,
    RuleSignal,
    TrendStrength,
    mean_lean,
    number,
    readings,
    regime,
    word,
)

LEANS: Final = 0.1
"""Mean lean from which evidence leans at all."""

WORDS: Final[Mapping[int, str]] = {1: "UP", -1: "DOWN", 0: "NEUTRAL"}

TREND_IN: Final[Mapping[str, float]] = {
    "trend_up": 1.0,
    "trend_down": 1.0,
    "range": 0.0,
    "quiet": 0.0,
}
"""How much of a trend a regime is; a volatile one is half of it, as without a name."""

LEVELS: Final = 4
"""Levels that are named."""


def expert(request: Request) -> Reply:
    """Return what an expert finds; it abstains where its table reads nothing."""
    now, role = trend_of(request.features), request.role
    found = readings(request.features, now, (ANY,), table_of(role.id, request.features)).get(ANY)
    heard = dict.fromkeys(focus(request), found) if found else {}
    reply = opinion(request, now, heard, overlay=True)
    if reply["abstained"]:
        return reply | _named(request, NO_ANOMALY, 0)
    if role.id == "microstructure" and shown_by("fragile", request.features):
        reply["confidence"] = "low"
    side = net_side(reply["adjustments"], role.focus) or _lean(found or ())
    odd, seen_in = _odd(role.id, request.features)
    cited = {one["id"] for one in reply["evidence"]}
    reply["evidence"] += cite(request, (name for name in seen_in if name not in cited))
    if seen_in:
        reply["claim"] = _with_odd(reply["claim"], odd)
    return reply | _named(request, odd, side)


def _with_odd(claim: str, odd: str) -> str:
    """Return a claim that ends in what is odd; its last readings go where it would be too long."""
    body, ending = claim.removesuffix("."), f"; odd: {odd.replace('_', ' ')}."
    while len(f"{body}{ending}".split()) > CLAIM_WORDS and " and " in body:
        body = body.rpartition(" and ")[0]
    return f"{body}{ending}"


def _odd(expert: str, features: Mapping[str, Feature]) -> tuple[str, tuple[str, ...]]:
    """Return the anomaly of an expert that the evidence shows, and the features that show it."""
    shown = ((name, shown_by(name, features)) for name in ROWS if name in ANOMALIES[expert])
    return next((one for one in shown if one[1]), (NO_ANOMALY, ()))


def trend_of(features: Mapping[str, Feature]) -> TrendStrength:
    """Return how much of a trend there is: by ADX where it is shown, else by the regime's name."""
    known = regime(features)
    named = TREND_IN.get(word(features.get(NAMED)) or "")
    return known if known.adx is not None or named is None else TrendStrength(named, None)


def _lean(found: Sequence[RuleSignal]) -> int:
    """Return the side to which readings lean on the whole, 0 for neither."""
    mean = mean_lean(found)
    return 0 if abs(mean) < LEANS else 1 if mean > 0.0 else -1


def _named(request: Request, odd: str, side: int) -> dict[str, Any]:
    """Return what a finding has beside a report."""
    told: dict[str, Any] = {"anomaly": odd, "bias": WORDS[side]}
    if request.role.id != "geometry":
        return told
    return told | {"pattern": _pattern(request.features, side), "levels": _levels(request.features)}


# --- geometry -------------------------------------------------------------------------------------


def _pattern(features: Mapping[str, Feature], side: int) -> str:
    """Return the pattern of the expert's own side, else the only one."""
    leans = {name.removeprefix(PATTERN): way for name, way in patterns(features).items()}
    found = list(leans)
    backing = [name for name in found if leans[name] == side]
    if not backing and len(found) == 1:
        backing = found
    return backing[0] if backing else NO_ANOMALY


def _levels(features: Mapping[str, Feature]) -> list[float]:
    """Return the prices of the nearest levels, nearest first."""
    close = number(features.get(CLOSE))
    named = (features[name] for name in sorted(features) if name.startswith("geometry.level."))
    prices = dict.fromkeys(price for one in named if (price := number(one)) is not None)
    if close is None:
        return list(prices)[:LEVELS]
    return sorted(prices, key=lambda price: abs(price - close))[:LEVELS]

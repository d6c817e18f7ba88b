"""The rules in the trader's seat: the thesis of one opening, and when it is declined.

The thesis is what the common readings say for the opening's side: its strongest points, what speaks
against them, what may go wrong, and which closes would end it before its stop. `HOLDS` says for how
many bars it is meant, by the regime.

It is declined in two cases. A scheduled event comes so soon that the trade could not show anything
before it. Or the whole desk reads the other way: all analysts that take a side, at least `SEVERAL`
of them, push against the opening, and the research manager names the other side with high
confidence. Then the points for speak for declining.

The order's own features may all be missing: without a side there is nothing to argue for. Pure
functions; nothing raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agents.arguments import AGAINST, CLAIM_WORDS, FOR
from agents.contracts import VECTORS, WINNERS, Falsifier, GateReason, Request
from torra.providers.rules.ahead import THESIS_RISKS, risks
from torra.providers.rules.argument import Argument, falsifiers, strongest
from torra.providers.rules.opinions import cite, level, point_replies
from torra.providers.rules.others import judgement, sided
from torra.providers.rules.readings import (
    ADX,
    NAMED,
    RuleSignal,
    common_readings,
    number,
    regime,
    word,
)

HOLDS: Final[Mapping[str, int]] = {
    "trend_up": 32,
    "trend_down": 32,
    "range": 8,
    "quiet": 16,
    "volatile": 8,
}
HOLDS_ELSE: Final = 16
"""Bars that a thesis is meant for, by the regime; ours, by judgement."""

EVENT_MINUTES: Final = 45.0
"""Minutes to a scheduled event from which an opening is not declined for it; the gate's own window
is shorter, by default.
"""

NEAR_MINUTES: Final = 240.0
"""Minutes to a scheduled event below which it is named as a risk."""

SEVERAL: Final = 2
"""Analysts that must push against an opening, and none for it, before it is declined."""

CONFIDENCE: Final = (("high", 0.75), ("medium", 0.40))
"""Conviction in the opening from which a confidence is used."""

NO_ORDER: Final = "No order is described, so there is nothing to argue for."
BUYS: Final[Mapping[str, int]] = {"BUY": 1, "SELL": -1}
VERBS: Final[Mapping[int, str]] = {1: "Buy", -1: "Sell"}


def trader(request: Request) -> dict[str, Any]:
    """Return the thesis of the opening that the order describes, or why it is declined."""
    side = BUYS.get(word(request.features.get("order.side")) or "", 0)
    reason = _declines(request, side)
    declines = reason is not GateReason.NONE
    heard = common_readings(request.features, regime(request.features))
    argued = _argued(request, heard, side, reason)
    bars = HOLDS.get(word(request.features.get(NAMED)) or "", HOLDS_ELSE)
    ends = [] if declines else _endings(request, argued)
    at_risk = [] if declines else [*_event(request), *risks(request, heard, argued, THESIS_RISKS)]
    return {
        "symbol": request.symbol,
        "claim": argued.claim,
        "points_for": point_replies(request, argued.points_for),
        "points_against": point_replies(request, argued.points_against),
        "invalidation": [end._replace(bars=bars)._asdict() for end in ends],
        "risks": at_risk[:THESIS_RISKS],
        "horizon_bars": bars,
        "decline": declines,
        "reason_code": str(reason),
        "confidence": level(number(request.features.get("order.conviction")) or 0.0, CONFIDENCE),
        "evidence": cite(request, (*argued.reads(), ADX, NAMED)),
    }


def _declines(request: Request, side: int) -> GateReason:
    """Return why an opening is declined, NONE where it is not."""
    minutes = _minutes(request)
    if side and minutes is not None and minutes < EVENT_MINUTES:
        return GateReason.SCHEDULED_EVENT
    judged, takes = judgement(request), sided(request)
    sure = judged is not None and judged.confidence == "high"
    against = judged is not None and WINNERS.get(judged.winner, 0) == -side
    if side and sure and against and len(takes) >= SEVERAL and side not in takes:
        return GateReason.WEAK_CASE
    return GateReason.NONE


def _argued(
    request: Request, heard: Mapping[str, Sequence[RuleSignal]], side: int, reason: GateReason
) -> Argument:
    """Return the argument for an opening, or for declining it."""
    if not side:
        return Argument(0, NO_ORDER)
    way = side if reason is GateReason.NONE else -side
    found = strongest(request, heard, way, 0.0, FOR)
    against = strongest(request, heard, -way, 0.0, AGAINST)
    head = VERBS[side] if way == side else f"Not this {VERBS[side].lower()}"
    claim = f"{head}: {_why(request, [point.half for point in found], side, reason)}."
    return Argument(way, claim, tuple(found), tuple(against))


def _why(request: Request, halves: Sequence[str], side: int, reason: GateReason) -> str:
    """Return the reason of a claim: the two strongest points, or as many as fit."""
    if reason is GateReason.SCHEDULED_EVENT:
        return f"a scheduled event comes in {_minutes(request):.0f} minutes"
    if reason is GateReason.WEAK_CASE:
        takes, way = len(sided(request)), "down" if side > 0 else "up"
        return f"{takes} of {takes} analysts push {way}, and the manager is sure of it"
    if not halves:
        return f"the {len(VECTORS)} scores alone carry it"
    both = " and ".join(halves[:2])
    return both if len(both.split()) < CLAIM_WORDS else halves[0]


def _endings(request: Request, argued: Argument) -> list[Falsifier]:
    """Return the closes that would end a trade, none of them at its stop or beyond."""
    stop = number(request.features.get("order.stop"))
    found = falsifiers(request, argued)
    if stop is None:
        return found
    return [end for end in found if argued.side * (end.level - stop) > 0.0]


def _minutes(request: Request) -> float | None:
    """Return the minutes to the next scheduled event; None without one."""
    minutes = number(request.features.get("events.to_next_min"))
    return None if minutes is None or minutes < 0.0 else minutes


def _event(request: Request) -> list[str]:
    minutes = _minutes(request)
    if minutes is None or minutes >= NEAR_MINUTES:
        return []
    return [f"A scheduled event comes in {minutes:.0f} minutes."]

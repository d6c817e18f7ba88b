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

import math
from typing import Final

from agent_config import MANAGER_ID
from agents.arguments import AGAINST, CLAIM_WORDS, FOR
from agents.contracts import VECTORS, WINNERS, GateReason, Request
from torra.providers.rules.argument import (
    WAY,
    Argument,
    Reply,
    argued,
    cite,
    falsifiers,
    level,
    risks,
    top_points,
)
from torra.providers.rules.engine import ADX, EVENT, REGIME, SeatView, view_of

HOLDS: Final = {"trend_up": 32, "trend_down": 32, "range": 8, "quiet": 16, "volatile": 8}
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

CONFIDENCE: Final = {"high": 0.75, "medium": 0.40}
"""Conviction in the opening from which a confidence is used."""

THESIS_RISKS: Final = 3
"""Risks that a thesis names at most."""

BUYS: Final = {"BUY": 1, "SELL": -1}


def trader(request: Request) -> Reply:
    """Return the thesis of the opening that the order describes, or why it is declined."""
    view = view_of(request)
    name, numbers = view.words.get("order.side", ""), view.numbers
    side, minutes = BUYS.get(name, 0), numbers.get(EVENT, math.inf)
    if minutes < 0.0:  # one that is over is none
        minutes = math.inf
    reason = _declines(view, side, minutes)
    declines = reason is not GateReason.NONE
    way = -side if declines else side
    argument = Argument(0, "No order is described, so there is nothing to argue for.")
    if side:
        points, against = top_points(view, way, FOR), top_points(view, -way, AGAINST)
        head = f"Not this {name.lower()}" if declines else name.capitalize()
        why = _why(view, [point.half for point in points], side, reason, minutes)
        argument = Argument(way, f"{head}: {why}.", points, against)
    bars, stop = HOLDS.get(view.words.get(REGIME, ""), HOLDS_ELSE), numbers.get("order.stop")
    soon = [f"A scheduled event comes in {minutes:.0f} minutes."] if minutes < NEAR_MINUTES else []
    return {
        **argued(view, argument),
        "invalidation": [
            end | {"bars": bars}
            for end in falsifiers(view, way, argument.points_for)
            if not declines and (stop is None or side * (end["level"] - stop) > 0.0)
        ],
        "risks": [] if declines else [*soon, *risks(view, argument, THESIS_RISKS)][:THESIS_RISKS],
        "horizon_bars": bars,
        "decline": declines,
        "reason_code": str(reason),
        "confidence": level(numbers.get("order.conviction", 0.0), CONFIDENCE),
        "evidence": cite(view, (*argument.reads(), ADX, REGIME)),
    }


def _declines(view: SeatView, side: int, minutes: float) -> GateReason:
    """Return why an opening is declined, NONE where it is not."""
    if side and minutes < EVENT_MINUTES:
        return GateReason.SCHEDULED_EVENT
    takes = view.sided()
    against = any(
        report.confidence == "high" and WINNERS.get(report.winner, 0) == -side
        for report in view.request.reports
        if report.agent_id == MANAGER_ID and not report.abstained
    )
    if side and against and len(takes) >= SEVERAL and side not in takes:
        return GateReason.WEAK_CASE
    return GateReason.NONE


def _why(view: SeatView, halves: list[str], side: int, reason: GateReason, minutes: float) -> str:
    """Return the reason of a claim: the two strongest points, or as many as fit."""
    if reason is GateReason.SCHEDULED_EVENT:
        return f"a scheduled event comes in {minutes:.0f} minutes"
    if reason is GateReason.WEAK_CASE:
        count = len(view.sided())
        return f"{count} of {count} analysts push {WAY[-side]}, and the manager is sure of it"
    both = " and ".join(halves[:2]) or f"the {len(VECTORS)} scores alone carry it"
    return both if len(both.split()) < CLAIM_WORDS else halves[0]

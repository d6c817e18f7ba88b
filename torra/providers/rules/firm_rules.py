"""The rules in a firm's own seats: the research manager's judgement, and the trader's thesis.

The manager says which case stands, and how much of each:

    weight      of a case's citations that lean at all, the share that leans its way; a quarter less
                where no analyst that takes a side pushes its way, UNGROUNDED_WEIGHT of it where a
                citation is not true; 0 without a case
    strength    weight x trust x its mean adjustment, as a share of what a researcher may ask for
    margin      strength of bull less bear + PUSH x the analysts' mean push by trust
                + LESSONS x what similar trades came to

LONG or SHORT is named where the margin reaches WINS, that side's case is the stronger one and the
analysts do not pull the other way; else NONE, with the strongest point of each side (points for
are LONG's, points against SHORT's) and the closes that would decide.
Swap bull and bear, and turn every sign, and every number is the same and the winner the other.

The trader's thesis of one opening is what the common readings say for its side: the strongest
points, what speaks against them, what may go wrong, and which closes would end it before its stop.
`HOLDS` says for how many bars it is meant, by the regime.

An opening is declined in two cases. A scheduled event comes so soon that the trade could not show
anything before it. Or the whole desk reads the other way: all analysts that take a side, at least
`SEVERAL` of them, push against the opening, and the research manager names the other side with high
confidence. Then the points for speak for declining.

The order's own features may all be missing: without a side there is nothing to argue for. Pure
functions; nothing raises, and no prose is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from agent_config import MANAGER_ID, UNGROUNDED_WEIGHT
from agents.arguments import AGAINST, CLAIM_WORDS, FOR
from agents.contracts import RESEARCHER_BOUND, SIDES, VECTORS, WINNERS, GateReason, Request
from agents.evidence import SCORES
from agents.features import sides
from torra.providers.rules.argument import (
    WAY,
    WINNER,
    Argument,
    Reply,
    argued,
    cite,
    falsifiers,
    horizon,
    level,
    of_scores,
    preferring,
    risks,
    top_points,
    undecided,
)
from torra.providers.rules.engine import ADX, EVENT, LESSON_MEAN, REGIME, SeatView, side_of

PUSH: Final = 1.0
"""Weight of the analysts' mean push beside the difference of the two cases."""

LESSONS: Final = 0.25
"""Weight of what similar trades came to."""

WINS: Final = 0.15
"""Margin from which a winner is named."""

CLEAR_LEAD: Final = 0.01
"""Difference of the two cases below which neither is the stronger one."""

UNBACKED: Final = 0.75
"""Share of a case that holds where no analyst that takes a side pushes its way."""

SURE: Final = {"high": 0.40, "medium": WINS}
"""Margin from which a confidence in the winner is used."""

DECIMALS: Final = 2
"""Weights are rounded to this many decimals."""

CITED: Final = 4
"""Citations of each case that a judgement names."""

CASES: Final = {1: "bull's", -1: "bear's"}

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

CONVICTION: Final = {"high": 0.75, "medium": 0.40}
"""Conviction in the opening from which a confidence is used."""

THESIS_RISKS: Final = 3
"""Risks that a thesis names at most."""

BUYS: Final = {"BUY": 1, "SELL": -1}


def arbiter(request: Request) -> Reply:
    """Return the judgement: a winner or none, what each case weighs, and why."""
    view = SeatView(request)
    cited = {side: [item.id for item in view.cases[side].report.evidence] for side in CASES}
    weights = {side: _weight(view, side) for side in CASES}
    strength = {side: weights[side] * _share(view, side) for side in CASES}
    lead, pushed = strength[1] - strength[-1], view.mean_push()
    margin = lead + PUSH * pushed + LESSONS * (view.lessons() or 0.0)
    side = side_of(margin, WINS)
    if side * lead < CLEAR_LEAD or side * pushed < 0.0:
        side = 0
    case_words = _cases(strength, side or side_of(lead) or -1)
    push_words = _pushed(view.sided()) if any(strength.values()) else ""
    if side:
        points, against = (
            preferring(cited[way], top_points(view, way, FOR + AGAINST)) for way in (side, -side)
        )
        case = view.cases[side].report.adjustments
        points = points[:FOR] or of_scores(view, {v: case.get(v) or 0.0 for v in VECTORS}, side)
        claim = f"{WINNER[side].capitalize()}: {case_words}{push_words}."
        argument = Argument(side, claim, points, against[:AGAINST])
    else:
        both, lead_words = [*cited[1], *cited[-1]], f"a lead of {WINS:.2f}"
        argument = undecided(view, both, lead_words, f"No winner: {case_words}", push_words)
    names = (*cited[1][:CITED], *cited[-1][:CITED], ADX, REGIME, LESSON_MEAN, *SCORES.values())
    return {
        "winner": WINNER[side],
        **argued(view, argument),
        "weights": {name: weights[way] for name, way in SIDES.items()},
        "confidence": level(abs(margin), SURE) if side else "medium",
        "evidence": cite(view, dict.fromkeys(names)),
        "horizon": horizon(view),
    }


def _weight(view: SeatView, side: int) -> float:
    """Return how much of a case holds, 0 to 1."""
    case = view.cases[side]
    if not case.push:
        return 0.0
    # The market and the lessons are cited by both sides and speak for neither.
    leans = [
        leaning
        for citation in case.report.evidence
        if citation.id in view.features and not citation.id.startswith(("market.", "lessons."))
        if (leaning := sides(citation.id, view.features))
    ]
    share = sum(side in leaning for leaning in leans) / len(leans) if leans else 1.0
    takes = view.sided()
    if takes and side not in takes:
        share *= UNBACKED
    if "ungrounded" in case.report.flags:
        share *= UNGROUNDED_WEIGHT
    return round(share, DECIMALS)


def _share(view: SeatView, side: int) -> float:
    """Return what a case asks for by its trust, 0 to 1 of what a researcher may."""
    case = view.cases[side]
    return case.trust * max(0.0, side * case.push) / (RESEARCHER_BOUND * len(VECTORS))


def _cases(strength: Mapping[int, float], first: int) -> str:
    """Return what each case comes to, on the scale of the weights."""
    if not any(strength.values()):
        return f"neither of {len(CASES)} cases asks for more than the scores have"
    if abs(strength[1] - strength[-1]) < CLEAR_LEAD:
        return f"the {len(CASES)} cases come out even"
    return (
        f"the {CASES[first]} case comes to {strength[first]:.2f} of 1, "
        f"the {CASES[-first]} to {strength[-first]:.2f}"
    )


def _pushed(takes: list[int]) -> str:
    """Return how those analysts push that take a side, "" for none."""
    way = side_of(sum(takes))
    if not way:
        return f", and {len(takes)} analysts push both ways" if takes else ""
    who = f"{takes.count(way)} of {len(takes)} analysts push"
    if len(takes) == 1:
        who = "the one analyst that takes a side pushes"
    return f", and {who} {WAY[way]}"


# --- the trader -----------------------------------------------------------------------------------


def trader(request: Request) -> Reply:
    """Return the thesis of the opening that the order describes, or why it is declined."""
    view = SeatView(request)
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
        "confidence": level(numbers.get("order.conviction", 0.0), CONVICTION),
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

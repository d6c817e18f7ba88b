"""The rules in the research manager's seat: which case stands, and how much of each.

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

Pure functions; nothing raises, and no prose is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agent_config import UNGROUNDED_WEIGHT
from agents.arguments import AGAINST, FOR
from agents.contracts import RESEARCHER_BOUND, SIDES, VECTORS, AgentReport, Request
from agents.evidence import SCORES, trust
from agents.features import sides
from torra.providers.rules.argument import (
    WAY,
    Argument,
    ReaderView,
    of_scores,
    preferring,
    top_points,
    undecided,
)
from torra.providers.rules.peer_reports import LESSON_MEAN, case_of, lessons, mean_push, push, sided
from torra.providers.rules.replies import Reply, argued, cite, horizon, level
from torra.providers.rules.rule import ADX, REGIME, side_of
from torra.providers.rules.tables import common_signals

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

WINNER: Final = {1: "LONG", -1: "SHORT", 0: "NONE"}
CASES: Final = {1: "bull's", -1: "bear's"}


def arbiter(request: Request) -> Reply:
    """Return the judgement: a winner or none, what each case weighs, and why."""
    view = ReaderView(request, common_signals(request.features))
    cases = {side: case_of(request, side) for side in CASES}
    cited = {side: [c.id for c in case.evidence] if case else [] for side, case in cases.items()}
    weights = {side: _weight(request, case, side) for side, case in cases.items()}
    strength = {side: weights[side] * _share(case, side) for side, case in cases.items()}
    lead, pushed = strength[1] - strength[-1], mean_push(request)
    margin = lead + PUSH * pushed + LESSONS * (lessons(request) or 0.0)
    side = side_of(margin, WINS)
    if side * lead < CLEAR_LEAD or side * pushed < 0.0:
        side = 0
    case_words = _cases(strength, side or side_of(lead) or -1)
    push_words = _pushed(request, strength)
    case = cases[side] if side else None
    if case:
        points, against = (
            preferring(cited[way], top_points(view, way, FOR + AGAINST)) for way in (side, -side)
        )
        moves = {vector: case.adjustments.get(vector) or 0.0 for vector in VECTORS}
        claim = f"{WINNER[side].capitalize()}: {case_words}{push_words}."
        points = points[:FOR] or of_scores(request, moves, side)
        argument = Argument(side, claim, points, against[:AGAINST])
    else:
        argument = undecided(
            view,
            [*cited[1], *cited[-1]],
            f"a lead of {WINS:.2f}",
            f"No winner: {case_words}",
            push_words,
        )
    names = (*cited[1][:CITED], *cited[-1][:CITED], ADX, REGIME, LESSON_MEAN, *SCORES.values())
    return {
        "winner": WINNER[side],
        **argued(request, argument),
        "weights": {name: weights[way] for name, way in SIDES.items()},
        "confidence": level(abs(margin), SURE) if side else "medium",
        "evidence": cite(request, dict.fromkeys(names)),
        "horizon": horizon(request),
    }


def _weight(request: Request, case: AgentReport | None, side: int) -> float:
    """Return how much of a case holds, 0 to 1."""
    if case is None or not push(case):
        return 0.0
    # The market and the lessons are cited by both sides and speak for neither.
    leans = [
        leaning
        for citation in case.evidence
        if citation.id in request.features
        and not citation.id.startswith(("market.", "lessons."))
        and (leaning := sides(citation.id, request.features))
    ]
    share = sum(side in leaning for leaning in leans) / len(leans) if leans else 1.0
    takes = sided(request)
    if takes and side not in takes:
        share *= UNBACKED
    if "ungrounded" in case.flags:
        share *= UNGROUNDED_WEIGHT
    return round(share, DECIMALS)


def _share(case: AgentReport | None, side: int) -> float:
    """Return what a case asks for by its trust, 0 to 1 of what a researcher may."""
    if case is None:
        return 0.0
    return trust(case) * max(0.0, side * push(case)) / (RESEARCHER_BOUND * len(VECTORS))


# --- words ----------------------------------------------------------------------------------------


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


def _pushed(request: Request, strength: Mapping[int, float]) -> str:
    """Return how those analysts push that take a side, "" for none and without a case."""
    takes = sided(request)
    if not takes or not any(strength.values()):
        return ""
    way = side_of(sum(takes))
    if not way:
        return f", and {len(takes)} analysts push both ways"
    who = f"{takes.count(way)} of {len(takes)} analysts push"
    if len(takes) == 1:
        who = "the one analyst that takes a side pushes"
    return f", and {who} {WAY[way]}"

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
from agents.contracts import RESEARCHER_BOUND, SIDES, VECTORS, Request
from agents.evidence import SCORES
from agents.features import sides
from torra.providers.rules.argument import (
    WAY,
    WINNER,
    Argument,
    Reply,
    argued,
    cite,
    horizon,
    level,
    of_scores,
    preferring,
    top_points,
    undecided,
)
from torra.providers.rules.engine import ADX, LESSON_MEAN, REGIME, SeatView, side_of, view_of

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


def arbiter(request: Request) -> Reply:
    """Return the judgement: a winner or none, what each case weighs, and why."""
    view = view_of(request)
    cited = {
        side: [item.id for item in view.cases[side].report.evidence] if side in view.cases else []
        for side in CASES
    }
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
    case = view.cases.get(side)
    if case is None or not case.push:
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
    case = view.cases.get(side)
    if case is None:
        return 0.0
    return case.trust * max(0.0, side * case.push) / (RESEARCHER_BOUND * len(VECTORS))


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


def _pushed(takes: list[int]) -> str:
    """Return how those analysts push that take a side, "" for none."""
    way = side_of(sum(takes))
    if not way:
        return f", and {len(takes)} analysts push both ways" if takes else ""
    who = f"{takes.count(way)} of {len(takes)} analysts push"
    if len(takes) == 1:
        who = "the one analyst that takes a side pushes"
    return f", and {who} {WAY[way]}"

"""The rules in the research manager's seat: which case stands, and how much of each.

    stands      of a case's citations that lean at all, the share that leans its way; a quarter less
                where no analyst that takes a side pushes its way, UNGROUNDED_WEIGHT of it where a
                citation is not true; 0 without a case
    strength    stands x trust x its mean adjustment, as a share of what a researcher may ask for
    margin      strength of bull less bear + PUSH x the analysts' mean push by trust
                + LESSONS x what similar trades came to

LONG or SHORT is named where the margin reaches WINS, that side's case is the stronger one and the
analysts do not pull the other way; else NONE, with the strongest point of each side (points for
are LONG's, points against SHORT's) and the closes that would decide. A stand is the case's weight.
Swap bull and bear, and turn every sign, and every number is the same and the winner the other.

Pure functions; nothing raises, and no prose is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent_config import UNGROUNDED_WEIGHT
from agents.arguments import AGAINST, FOR
from agents.contracts import RESEARCHER_BOUND, SIDES, VECTORS, AgentReport, Request
from agents.evidence import trust
from agents.features import sides
from torra.providers.rules.ahead import horizon
from torra.providers.rules.argument import (
    RuleArgument,
    of_both_sides,
    of_scores,
    strongest,
    undecided,
)
from torra.providers.rules.opinions import cite, level, point_replies
from torra.providers.rules.others import (
    LESSON_MEAN,
    case_of,
    lessons,
    mean_push,
    push,
    sided,
)
from torra.providers.rules.readings import (
    ADX,
    NAMED,
    RuleSignal,
    common_readings,
    regime,
)

PUSH: Final = 1.0
"""Weight of the analysts' mean push beside the difference of the two cases."""

LESSONS: Final = 0.25
"""Weight of what similar trades came to."""

WINS: Final = 0.15
"""Margin from which a winner is named."""

LEAST_APART: Final = 0.01
"""Difference of the two cases below which neither is the stronger one."""

UNBACKED: Final = 0.75
"""Share of a case that stands where no analyst that takes a side pushes its way."""

SURE: Final = (("high", 0.40), ("medium", WINS))
"""Margin from which a confidence in the winner is used."""

UNDECIDED: Final = "medium"
"""Confidence that there is no winner."""

DECIMALS: Final = 2
"""Weights are rounded to this many decimals."""

SURROUNDINGS: Final = frozenset({"market", "lessons"})
"""Blocks that both sides cite and that speak for neither case."""

CITED: Final = 4
"""Citations of each case that a judgement names."""

NAMES: Final[Mapping[int, str]] = {1: "LONG", -1: "SHORT", 0: "NONE"}
SPOKEN: Final[Mapping[int, str]] = {1: "Long", -1: "Short"}
CASES: Final[Mapping[int, str]] = {1: "bull's", -1: "bear's"}


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the two cases come to, by side: how much of each stands, how strong each is."""

    stands: Mapping[int, float]
    strength: Mapping[int, float]
    margin: float

    @property
    def apart(self) -> float:
        """How much stronger the bull's case is than the bear's, -1 to +1."""
        return self.strength[1] - self.strength[-1]


def arbiter(request: Request) -> dict[str, Any]:
    """Return the judgement: a winner or none, what each case weighs, and why."""
    now = regime(request.features)
    weighed = weigh(request)
    side = winner(request, weighed)
    heard = common_readings(request.features, now)
    best = {} if side else of_both_sides(request, heard, _cited(request, *CASES))
    points_for, points_against = _points(request, heard, side) if side else ([best[1]], [best[-1]])
    return {
        "symbol": request.symbol,
        "winner": NAMES[side],
        "claim": _claim(request, weighed, side, best),
        "points_for": point_replies(request, points_for),
        "points_against": point_replies(request, points_against),
        "weights": {name: weighed.stands[way] for name, way in SIDES.items()},
        "confidence": level(abs(weighed.margin), SURE) if side else UNDECIDED,
        "evidence": _evidence(request),
        "horizon": horizon(request, now),
    }


def weigh(request: Request) -> Weighed:
    """Return what the two cases come to."""
    stands = {side: _stands(request, case_of(request, side), side) for side in CASES}
    strength = {side: stands[side] * _asked(case_of(request, side), side) for side in CASES}
    learnt = lessons(request) or 0.0
    margin = strength[1] - strength[-1] + PUSH * mean_push(request) + LESSONS * learnt
    return Weighed(stands, strength, margin)


def winner(request: Request, weighed: Weighed) -> int:
    """Return the side whose case clearly stands, 0 for neither."""
    if abs(weighed.margin) < WINS:
        return 0
    side = 1 if weighed.margin > 0.0 else -1
    stronger = side * weighed.apart >= LEAST_APART
    return side if stronger and side * mean_push(request) >= 0.0 else 0


def _stands(request: Request, case: AgentReport | None, side: int) -> float:
    """Return how much of a case stands, 0 to 1."""
    if case is None or not push(case):
        return 0.0
    leans = [found for one in case.evidence if (found := _leans(one.id, request))]
    share = sum(side in found for found in leans) / len(leans) if leans else 1.0
    takes = sided(request)
    if takes and side not in takes:
        share *= UNBACKED
    if "ungrounded" in case.flags:
        share *= UNGROUNDED_WEIGHT
    return round(share, DECIMALS)


def _leans(name: str, request: Request) -> tuple[int, ...]:
    feature = request.features.get(name)
    if feature is None or feature.block in SURROUNDINGS:
        return ()
    return sides(name, request.features)


def _asked(case: AgentReport | None, side: int) -> float:
    """Return what a case asks for by its trust, 0 to 1 of what a researcher may."""
    if case is None:
        return 0.0
    return trust(case) * max(0.0, side * push(case)) / (RESEARCHER_BOUND * len(VECTORS))


# --- words ----------------------------------------------------------------------------------------


def _claim(request: Request, weighed: Weighed, side: int, best: Mapping[int, RuleArgument]) -> str:
    """Return the winner and what each case comes to, or that there is none and what would decide.

    A case comes to its strength, on the scale of the weights.
    """
    pushed, strength = _pushed(sided(request)), weighed.strength
    ahead = side or (1 if weighed.apart > 0.0 else -1)
    cases = (
        f"the {CASES[ahead]} case comes to {strength[ahead]:.2f} of 1, "
        f"the {CASES[-ahead]} to {strength[-ahead]:.2f}"
    )
    if side:
        return f"{SPOKEN[side]}: {cases}{pushed}."
    if not any(strength.values()):
        cases, pushed = f"neither of {len(CASES)} cases asks for more than the scores have", ""
    elif abs(weighed.apart) < LEAST_APART:
        cases = f"the {len(CASES)} cases come out even"
    return undecided(request, best, f"a lead of {WINS:.2f}", f"No winner: {cases}", pushed)


def _pushed(takes: Sequence[int]) -> str:
    """Return how those analysts push that take a side, "" for none."""
    if not takes:
        return ""
    if not sum(takes):
        return f", and {len(takes)} analysts push both ways"
    way = 1 if sum(takes) > 0 else -1
    backing = sum(one == way for one in takes)
    where = "up" if way > 0 else "down"
    if len(takes) == 1:
        return f", and the one analyst that takes a side pushes {where}"
    return f", and {backing} of {len(takes)} analysts push {where}"


def _points(
    request: Request, heard: Mapping[str, Sequence[RuleSignal]], side: int
) -> tuple[list[RuleArgument], list[RuleArgument]]:
    """Return what speaks for the winner and against it, what the cases cite first."""
    most = FOR + AGAINST
    ordered = []
    for way in (side, -side):
        cited = _cited(request, way)
        points = strongest(request, heard, way, 0.0, most)
        ordered.append(sorted(points, key=lambda point: point.id not in cited))
    return ordered[0][:FOR] or _of_its_numbers(request, side), ordered[1][:AGAINST]


def _cited(request: Request, *sides: int) -> set[str]:
    """Return what the cases for these sides cite."""
    cases = (case_of(request, side) for side in sides)
    return {one.id for case in cases if case for one in case.evidence}


def _of_its_numbers(request: Request, side: int) -> list[RuleArgument]:
    """Return the score that the winning case finds furthest off: no reading leans its way."""
    case = case_of(request, side)
    asked = {} if case is None else case.adjustments
    moves = {vector: asked.get(vector) or 0.0 for vector in VECTORS}
    return of_scores(request, moves, side)


def _evidence(request: Request) -> list[dict[str, Any]]:
    """Return what both cases lead with, and what names the regime."""
    cases = (case_of(request, side) for side in CASES)
    led = (one.id for case in cases if case for one in case.evidence[:CITED])
    names = dict.fromkeys((*led, ADX, NAMED, LESSON_MEAN, *(f"scores.{name}" for name in VECTORS)))
    return cite(request, names)

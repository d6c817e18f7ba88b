"""The rules as a swarm's judge: which side, what speaks against it, and the chance of a win.

    lean        the experts' mean push by trust, -1 to +1
    consensus   (experts that back the side - experts that oppose it) / a swarm's experts, less
                `DISPUTE` for each conflict of the board, 0 at least; who abstained backs nothing
    adjustment  the experts' mean adjustment of a score by trust, of the judge's own bound, towards
                the side alone
    win_share   1 / (1 + reward_r) + EDGE x consensus

A side is taken where the lean reaches `TAKES`, more experts back it than oppose it, the board
names no other one, and the common readings do not pull the other way by `OPPOSED`. Most ticks have
none. The first term of the win share is the chance of a price that drifts nowhere to gain
`reward_r` before it loses 1 (a third at 2), so a trade that only some experts back does not earn
what it costs.

The counter is the strongest reading for the other side, and the falsifiers are closes that would
prove it. Where nothing else leans there, the score is named that has gone furthest. Without a side
points for are the strongest for higher prices, points against that for lower ones, and the claim
says which closes would decide. A
position is to be closed only where it stands against a side of which the judge is sure and that no
expert opposes.

Swap the sides, and every number is the same. Pure functions; nothing raises, and no prose is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from agent_config import EXPERTS
from agents.arguments import AGAINST, CLAIM_WORDS, FOR
from agents.contracts import ADJUSTMENT_BOUND, VECTORS, WINNERS, AgentReport, Request
from agents.evidence import trust
from torra.providers.rules.ahead import horizon
from torra.providers.rules.argument import (
    Argument,
    RuleArgument,
    falsifiers,
    of_both_sides,
    of_far_score,
    of_scores,
    strongest,
    undecided,
)
from torra.providers.rules.expert_readings import ANY, SWEEPS
from torra.providers.rules.judging import NAMES, SPOKEN
from torra.providers.rules.opinions import DECIMALS, cite, focus, level, point_replies
from torra.providers.rules.others import analysts, mean_push, push
from torra.providers.rules.readings import (
    ADX,
    NAMED,
    RuleSignal,
    common_readings,
    mean_lean,
    number,
    readings,
    regime,
    word,
)

TAKES: Final = 0.05
"""Lean from which a side is taken."""

OPPOSED: Final = 0.25
"""Mean lean of the common readings against a side from which it is not taken."""

EDGE: Final = 0.15
"""What a full consensus adds to the chance of a win."""

DISPUTE: Final = 0.25
"""What a conflict on the board takes from the consensus."""

REWARD_R: Final = 2.0
"""Reward in R where none is told: the desk's own target is twice as far as its stop."""

SURE: Final = (("high", 0.12), ("medium", 0.05))
"""Lean from which a confidence in the side is used; conflicts lower it."""

UNDECIDED: Final = "medium"
"""Confidence that there is no side."""

BOARD: Final = (
    *("board.lean", "board.dominant", "board.surest", "board.conflicts"),
    *("board.conflict_1", "board.settle_1", "board.long", "board.short"),
    *("stakes.reward_r", "stakes.break_even"),
)
"""What a decision cites of the board and of the stakes."""

SHARE_DECIMALS: Final = 4


@dataclass(frozen=True, slots=True)
class ExpertVotes:
    """What the experts come to: their lean, how many lean up and down, how many conflict."""

    lean: float
    up: int
    down: int
    count: int
    conflicts: int

    def backing(self, side: int) -> int:
        """Return how many experts lean to a side."""
        return self.up if side > 0 else self.down

    def consensus(self, side: int) -> float:
        """Return how far the experts agree on a side, 0 to 1."""
        if not side or not self.count:
            return 0.0
        balance = (self.backing(side) - self.backing(-side)) / max(self.count, len(EXPERTS))
        return max(0.0, balance - DISPUTE * self.conflicts)


def judge(request: Request) -> dict[str, Any]:
    """Return the decision: a side or none, its counter, what would prove it, and the chance."""
    now = regime(request.features)
    experts = _expert_votes(request)
    common = common_readings(request.features, now)
    extra = readings(request.features, now, (ANY,), SWEEPS)
    side = _side(request, experts, common)
    moves = {vector: _move(request, vector, side) for vector in focus(request)}
    confidence = _confidence(experts, side)
    said = _argued(request, {**common, **extra}, experts, moves, side)
    counter = said.points_against[0] if side and said.points_against else None
    return {
        "symbol": request.symbol,
        "claim": said.claim,
        "points_for": point_replies(request, said.points_for),
        "points_against": point_replies(request, said.points_against),
        "adjustments": dict.fromkeys(VECTORS) | moves,
        "confidence": confidence,
        "evidence": cite(request, dict.fromkeys((*said.reads(), *BOARD, *_scores(), ADX, NAMED))),
        "flags": [],
        "abstained": False,
        "abstain_reason": "",
        "side": NAMES[side],
        "counter": "" if counter is None else _sentence(counter),
        "falsifiers": [end._asdict() for end in falsifiers(request, said)] if side else [],
        "win_share": _win_share(request, experts.consensus(side)),
        "close": _closes(request, experts, side, confidence),
        "horizon": horizon(request, now),
    }


def _expert_votes(request: Request) -> ExpertVotes:
    reports = analysts(request)
    pushes = [push(one) for one in reports]
    return ExpertVotes(
        mean_push(request),
        sum(one > 0.0 for one in pushes),
        sum(one < 0.0 for one in pushes),
        len(reports),
        int(number(request.features.get("board.conflicts")) or 0.0),
    )


def _side(
    request: Request, experts: ExpertVotes, common: Mapping[str, Sequence[RuleSignal]]
) -> int:
    """Return the side that is taken, 0 for none."""
    if abs(experts.lean) < TAKES:
        return 0
    side = 1 if experts.lean > 0.0 else -1
    if experts.backing(side) <= experts.backing(-side):
        return 0
    dominant = word(request.features.get("board.dominant"))
    if dominant is not None and WINNERS.get(dominant, 0) == -side:
        return 0
    return 0 if side * mean_lean(chain.from_iterable(common.values())) <= -OPPOSED else side


def _move(request: Request, vector: str, side: int) -> float:
    """Return the adjustment of a score: what the experts ask for it, towards the side alone."""
    asked = [_asked(one, vector) for one in analysts(request)]
    found = [one for one in asked if one is not None]
    if not found or not side:
        return 0.0
    share = side * sum(found) / len(found) / ADJUSTMENT_BOUND
    return side * round(request.role.bound * max(0.0, share), DECIMALS) + 0.0


def _asked(report: AgentReport, vector: str) -> float | None:
    value = report.adjustments.get(vector)
    return None if value is None else trust(report) * value


def _confidence(experts: ExpertVotes, side: int) -> str:
    if not side:
        return UNDECIDED
    return level(abs(experts.lean) / (1.0 + experts.conflicts), SURE)


def _win_share(request: Request, consensus: float) -> float:
    reward = number(request.features.get("stakes.reward_r"))
    base = 1.0 / (1.0 + (REWARD_R if reward is None or reward <= 0.0 else reward))
    return round(min(1.0, base + EDGE * consensus), SHARE_DECIMALS)


def _closes(request: Request, experts: ExpertVotes, side: int, confidence: str) -> bool:
    """Tell whether an open position stands against a side that is sure and that none opposes."""
    held = WINNERS.get(word(request.features.get("memory.position")) or "", 0)
    alone = experts.backing(-side) == 0
    return bool(side) and held == -side and confidence == "high" and alone


# --- words ----------------------------------------------------------------------------------------


def _argued(
    request: Request,
    heard: Mapping[str, Sequence[RuleSignal]],
    experts: ExpertVotes,
    moves: Mapping[str, float],
    side: int,
) -> Argument:
    """Return the argument for a side and the one against it; without a side the best of each."""
    argued = {point.id for one in analysts(request) for point in one.points_for}
    if not side:
        best = of_both_sides(request, heard, argued)
        return Argument(0, _undecided(request, experts, best), (best[1],), (best[-1],))
    points = strongest(request, heard, side, 0.0, FOR) or of_scores(request, moves, side)
    ordered = sorted(points, key=lambda point: point.id not in argued)
    against = strongest(request, heard, -side, 0.0, AGAINST) or [of_far_score(request, -side)]
    way, count = "up" if side > 0 else "down", experts.count
    backing = experts.backing(side)
    lean = "leans" if backing == 1 else "lean"
    most = f"{SPOKEN[side]}: {backing} of {count} experts {lean} {way}"
    claim = f"{most}, and {ordered[0].half}."
    if len(claim.split()) > CLAIM_WORDS:
        claim = f"{most}."
    return Argument(side, claim, tuple(ordered), tuple(against))


def _undecided(request: Request, experts: ExpertVotes, best: Mapping[int, RuleArgument]) -> str:
    """Return how the experts lean, why no side is taken of it, and what would decide."""
    up, down = experts.up, experts.down
    lean = "leans" if up == 1 else "lean"
    leans = f"No side: of {experts.count} experts {up} {lean} up and {down} down"
    why = ", and the chart reads the other way"
    if abs(experts.lean) < TAKES:
        why = ", too softly to count"
    side = 1 if experts.lean > 0.0 else -1
    if experts.backing(side) <= experts.backing(-side):
        why = ""
    return undecided(request, best, f"a lean of {TAKES:.2f}", leans, why)


def _sentence(point: RuleArgument) -> str:
    """Return the counter: the point with its reason, where that is short enough."""
    half = f"{point.half[:1].upper()}{point.half[1:]}"
    whole = f"{half}, {point.why}."
    return whole if len(whole.split()) <= CLAIM_WORDS else f"{half}."


def _scores() -> list[str]:
    return [f"scores.{vector}" for vector in VECTORS]

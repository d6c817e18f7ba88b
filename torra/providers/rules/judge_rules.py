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

from collections.abc import Mapping
from typing import Final

from agent_config import EXPERTS, JUDGE_ID
from agents.arguments import AGAINST, FOR
from agents.contracts import ADJUSTMENT_BOUND, WINNERS, Request
from agents.evidence import SCORES
from agents.features import number
from torra.providers.rules.argument import (
    WAY,
    Argument,
    ReaderView,
    capital,
    falsifiers,
    fitting,
    of_far_score,
    of_scores,
    preferring,
    top_points,
    undecided,
    verb,
)
from torra.providers.rules.manager_rules import WINNER
from torra.providers.rules.peer_reports import analysts, mean_adjustment, mean_push, push, weighed
from torra.providers.rules.replies import DECIMALS, Reply, focus_of, horizon, level, report
from torra.providers.rules.rule import (
    ADX,
    REGIME,
    mean_lean,
    read,
    side_of,
    trend_of,
    word,
)
from torra.providers.rules.tables import TABLES, common_signals

TAKES: Final = 0.05
"""Lean from which a side is taken."""

OPPOSED: Final = 0.25
"""Mean lean of the common signals against a side from which it is not taken."""

EDGE: Final = 0.15
"""What a full consensus adds to the chance of a win."""

DISPUTE: Final = 0.25
"""What a conflict on the board takes from the consensus."""

REWARD_R: Final = 2.0
"""Reward in R where none is named: the desk's own target is twice as far as its stop."""

SURE: Final = {"high": 0.12, "medium": 0.05}
"""Lean from which a confidence in the side is used; conflicts lower it."""

BOARD: Final = (
    *("board.lean", "board.dominant", "board.surest", "board.conflicts"),
    *("board.conflict_1", "board.settle_1", "board.long", "board.short"),
    *("stakes.reward_r", "stakes.break_even"),
)
"""What a decision cites of the board and of the stakes."""


def judge(request: Request) -> Reply:
    """Return the decision: a side or none, its counter, what would prove it, and the chance."""
    features, role = request.features, request.role
    view = ReaderView(request, common_signals(features))
    votes = [side_of(push(peer)) for peer in analysts(request)]
    lean, conflicts = mean_push(request), int(number(features, "board.conflicts") or 0.0)
    side = _side(view, votes, side_of(lean, TAKES))
    words = weighed(request)
    wanted = {vector: mean_adjustment(words, vector) or 0.0 for vector in focus_of(request)}
    # what the experts ask for each score, towards the side alone
    moves = {
        vector: side * round(role.bound * max(0.0, side * value / ADJUSTMENT_BOUND), DECIMALS) + 0.0
        for vector, value in wanted.items()
    }
    sure = level(abs(lean) / (1.0 + conflicts), SURE) if side else "medium"
    argument = _argument(view, votes, lean, moves, side)
    counter = argument.points_against[0] if side else None
    balance = (votes.count(side) - votes.count(-side)) / max(len(votes), len(EXPERTS))
    edge = EDGE * max(0.0, balance - DISPUTE * conflicts) if side else 0.0
    reward = max(0.0, number(features, "stakes.reward_r") or 0.0) or REWARD_R
    position = WINNERS.get(word(features, "memory.position") or "", 0)
    names = dict.fromkeys((*argument.reads(), *BOARD, *SCORES.values(), ADX, REGIME))
    ends = falsifiers(features, side, argument.points_for) if side else []
    return {
        **report(request, argument, moves, sure, names),
        "side": WINNER[side],
        "counter": fitting(capital(counter.half), f", {counter.why}") if counter else "",
        "falsifiers": [end._asdict() for end in ends],
        "win_share": round(min(1.0, 1.0 / (1.0 + reward) + edge), DECIMALS),
        "close": side * position < 0 and sure == "high" and -side not in votes,
        "horizon": horizon(request),
    }


def _side(view: ReaderView, votes: list[int], side: int) -> int:
    """Return the side to which the experts lean; 0 where votes, board or chart are against it."""
    dominant = word(view.request.features, "board.dominant") or ""
    against = (
        votes.count(side) <= votes.count(-side)
        or WINNERS.get(dominant, 0) == -side
        or side * mean_lean(view.all()) <= -OPPOSED
    )
    return 0 if against else side


def _argument(
    view: ReaderView, votes: list[int], lean: float, moves: Mapping[str, float], side: int
) -> Argument:
    """Return the argument for a side and the one against it; without a side the best of each."""
    request, count = view.request, len(votes)
    cited = {point.id for peer in analysts(request) for point in peer.points_for}
    sweeps = read(TABLES[JUDGE_ID][""], request.features, trend_of(request.features))
    view = view._replace(signals={**view.signals, "": sweeps})
    if not side:
        up, down, way = votes.count(1), votes.count(-1), 1 if lean > 0.0 else -1
        why = ", and the chart reads the other way"
        if abs(lean) < TAKES:
            why = ", too softly to count"
        if votes.count(way) <= votes.count(-way):
            why = ""
        leans = f"No side: of {count} experts {up} {verb('lean', up)} up and {down} down"
        return undecided(view, cited, f"a lean of {TAKES:.2f}", leans, why)
    points = top_points(view, side, FOR) or of_scores(request, moves, side)
    points = preferring(cited, points)
    against = top_points(view, -side, AGAINST) or [of_far_score(request, -side)]
    backing = votes.count(side)
    who = f"{backing} of {count} experts {verb('lean', backing)} {WAY[side]}"
    claim = fitting(f"{WINNER[side].capitalize()}: {who}", f", and {points[0].half}")
    return Argument(side, claim, points, against)

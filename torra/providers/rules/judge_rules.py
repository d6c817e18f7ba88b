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
from torra.providers.rules.argument import (
    DECIMALS,
    WAY,
    WINNER,
    Argument,
    Reply,
    capital,
    falsifiers,
    fitting,
    horizon,
    level,
    of_far_score,
    of_scores,
    preferring,
    report,
    top_points,
    towards,
    undecided,
    verb,
)
from torra.providers.rules.engine import (
    ADX,
    REGIME,
    TABLES,
    SeatView,
    focus_of,
    mean_lean,
    read,
    side_of,
    view_of,
)

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
    view = view_of(request)
    numbers, words = view.numbers, view.words
    votes = [side_of(peer.push) for peer in view.analysts]
    lean, conflicts = view.mean_push(), int(numbers.get("board.conflicts", 0.0))
    side = side_of(lean, TAKES)
    if (
        votes.count(side) <= votes.count(-side)
        or WINNERS.get(words.get("board.dominant", ""), 0) == -side
        or side * mean_lean(view.all()) <= -OPPOSED
    ):
        side = 0
    # what the experts ask for each score, towards the side alone
    moves = {
        vector: towards(view, side, side * (view.mean_adjustment(vector) or 0.0) / ADJUSTMENT_BOUND)
        for vector in focus_of(view.role)
    }
    sure = level(abs(lean) / (1.0 + conflicts), SURE) if side else "medium"
    sweeps = read(TABLES[JUDGE_ID][""], numbers, view.trend)
    view = view._replace(signals={**view.signals, "": sweeps})
    argument = _argument(view, votes, lean, moves, side)
    counter = argument.points_against[0] if side else None
    balance = (votes.count(side) - votes.count(-side)) / max(len(votes), len(EXPERTS))
    edge = EDGE * max(0.0, balance - DISPUTE * conflicts) if side else 0.0
    reward = max(0.0, numbers.get("stakes.reward_r", 0.0)) or REWARD_R
    position = WINNERS.get(words.get("memory.position", ""), 0)
    names = dict.fromkeys((*argument.reads(), *BOARD, *SCORES.values(), ADX, REGIME))
    return {
        **report(view, argument, moves, sure, names),
        "side": WINNER[side],
        "counter": fitting(capital(counter.half), f", {counter.why}") if counter else "",
        "falsifiers": falsifiers(view, side, argument.points_for) if side else [],
        "win_share": round(min(1.0, 1.0 / (1.0 + reward) + edge), DECIMALS),
        "close": side * position < 0 and sure == "high" and -side not in votes,
        "horizon": horizon(view),
    }


def _argument(
    view: SeatView, votes: list[int], lean: float, moves: Mapping[str, float], side: int
) -> Argument:
    """Return the argument for a side and the one against it; without a side the best of each."""
    cited = {point.id for peer in view.analysts for point in peer.report.points_for}
    count, backing, up, down = len(votes), *(votes.count(way) for way in (side, 1, -1))
    if not side:
        why = ", and the chart reads the other way"
        if abs(lean) < TAKES:
            why = ", too softly to count"
        if (up <= down) if lean > 0.0 else (down <= up):
            why = ""
        leans = f"No side: of {count} experts {up} {verb('lean', up)} up and {down} down"
        return undecided(view, cited, f"a lean of {TAKES:.2f}", leans, why)
    points = preferring(cited, top_points(view, side, FOR) or of_scores(view, moves, side))
    against = top_points(view, -side, AGAINST) or [of_far_score(view, -side)]
    who = f"{backing} of {count} experts {verb('lean', backing)} {WAY[side]}"
    claim = fitting(f"{WINNER[side].capitalize()}: {who}", f", and {points[0].half}")
    return Argument(side, claim, points, against)

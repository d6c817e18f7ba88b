"""The rules in a swarm's own seats: the reader of the regime, and the judge.

The reader names the code's regime, but for two turns that ADX is late to see:

    range, quiet  ->  trend   a breakout bar: range and volume spiked, and it closed beyond a swing
    trend         ->  range   structure broke against it, and the swings go against it

`budget_pct` is 100 x the smallest of `DANGERS`, `ODD_SHARES` and the budgets of both regimes: all
of them see one storm, so they are not multiplied. `first` goes by the regime. The bias is how the
common readings lean on the whole, from `LEANS` on.

The judge says which side, what speaks against it, and the chance of a win:

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
says which closes would decide. A position is to be closed only where it stands against a side of
which the judge is sure and that no expert opposes.

Upside down every word is mirrored, and every number of the judge is the same. Pure functions;
nothing raises, and no prose is read.
"""

from __future__ import annotations

from typing import Final

from agent_config import EXPERTS, JUDGE_ID, REGIME_BUDGET
from agents.arguments import AGAINST, FOR
from agents.contracts import NO_ANOMALY, WINNERS, Request
from agents.evidence import SCORES
from agents.swarm.anomalies import BOS, TRIAGE
from torra.providers.rules.argument import (
    BIAS,
    DECIMALS,
    WAY,
    WINNER,
    Argument,
    Reply,
    argued,
    capital,
    cite,
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
    EVENT,
    REGIME,
    TABLES,
    VOLATILITY,
    Numbers,
    SeatView,
    focus_of,
    linear_factor,
    mean_lean,
    ramp,
    read,
    side_of,
)
from torra.providers.rules.gate_rules import ODD, WIDE

VOLUME: Final = "technical.volume_ratio"
SWINGS: Final = "technical.trend_state"

TRENDS: Final = {"trend_up": 1, "trend_down": -1}
UNKNOWN: Final = "range"
"""What a market is where code named nothing."""

LEANS: Final = 0.15
"""Mean lean of the common signals from which there is a bias."""

MACRO: Final = ("macro.", "companion.")
FIRST: Final = {"range": "liquidity", "volatile": "liquidity"}
"""Who goes first: in a trend macro, or geometry where nothing of macro is known; in a quiet market
nobody."""

INSIDE: Final = {"high": 0.6, "medium": 0.2}
"""How far inside its limits a regime lies, 0 to 1, from which a confidence is used."""

DANGERS: Final = {
    VOLATILITY: (80.0, 100.0, 0.6),
    "derivs.dvol_rank": (85.0, 100.0, 0.5),
    "macro.vix_rank": (85.0, 100.0, 0.5),
    EVENT: (180.0, 30.0, 0.5),
    "market.spread_atr": (WIDE, 2.0 * WIDE, 0.5),
}
"""Volatility, fear, an event that comes, a dear spread: up to the first value a budget is whole,
from the second on the share of the third is left. Ours, by judgement."""

ODD_SHARES: Final = {**ODD, "exhaustion": 0.7}
"""Factors of an odd bar."""

Regime = tuple[str, str, tuple[str, ...], str]
"""A regime, why in words, the features that say so, and how sure that is."""

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


def reader(request: Request) -> Reply:
    """Return the kind of market, the budget, who goes first, and which way it leans."""
    view = SeatView(request)
    code = view.words.get(REGIME, "")
    regime, why, reads, confidence = _turned(view, code) or _as_code_says(view, code)
    bias = side_of(mean_lean(view.all()), LEANS)
    factors = _factors(view)
    left = min(REGIME_BUDGET.get(name, 1.0) for name in (regime, code))
    budget = round(100.0 * min([left, *factors.values()]))
    cut = f", and {budget} % of an opening is left" if budget < 100 else ""
    points = (top_points(view, bias, FOR), top_points(view, -bias, AGAINST)) if bias else ()
    claim = f"{capital(regime).replace('_', ' ')}: {why}{cut}."
    first = FIRST.get(regime, NO_ANOMALY)
    if regime in TRENDS:
        first = "macro" if any(n.startswith(MACRO) for n in view.numbers) else "geometry"
    return {
        "regime": regime,
        "budget_pct": float(budget),
        "first": first,
        "bias": BIAS[bias],
        **argued(view, Argument(bias, claim, *points)),
        "confidence": confidence,
        "evidence": cite(
            view, dict.fromkeys((*reads, ADX, REGIME, *sorted(factors, key=factors.__getitem__)))
        ),
    }


def _turned(view: SeatView, code: str) -> Regime | None:
    """Return the regime to which the market has just turned; None where it has not."""
    broke, swings = (view.numbers.get(name, 0.0) for name in (BOS, SWINGS))
    way, flags = TRENDS.get(code, 0), view.words.get(TRIAGE, "").split()
    if code in ("range", "quiet") and "breakout" in flags and broke and VOLUME in view.numbers:
        name = "trend_up" if broke > 0.0 else "trend_down"
        volume = view.numbers[VOLUME]
        why = f"it broke out of its {code} on {volume:.1f} times the usual volume"
        return name, why, (TRIAGE, BOS, VOLUME), "medium"
    if broke * way < 0.0 and swings * way < 0.0:
        went, beyond = ("fell", "below the low") if way > 0 else ("rose", "above the high")
        why = f"the last 2 swings {went}, and the close is {beyond} of the newer"
        return "range", why, (BOS, SWINGS), "medium"
    return None


def _as_code_says(view: SeatView, code: str) -> Regime:
    name = code if code in REGIME_BUDGET else UNKNOWN
    adx, ranked = view.numbers.get(ADX), view.numbers.get(VOLATILITY)
    if name in ("volatile", "quiet") and ranked is not None:
        inside = ramp(ranked, 90.0, 100.0) if name == "volatile" else ramp(ranked, 25.0, 5.0)
        return (
            name,
            f"volatility ranks at {ranked:.0f} of 100",
            (VOLATILITY,),
            level(inside, INSIDE),
        )
    if adx is None:
        return name, "neither of 2 numbers that would say more is known", (), "low"
    inside = ramp(adx, 25.0, 40.0) if name in TRENDS else ramp(adx, 25.0, 12.0)
    why = f"ADX at {adx:.0f}" + ("" if name in TRENDS else " shows no trend")
    return name, why, (ADX,), level(inside, INSIDE)


def _factors(view: SeatView) -> dict[str, float]:
    """Return the features that lower a budget, each with the share that it leaves."""
    factors = {
        name: linear_factor(view.numbers[name], *danger)
        for name, danger in DANGERS.items()
        if view.numbers.get(name, -1.0) >= 0.0
    }
    flags = view.words.get(TRIAGE, "").split()
    factors[TRIAGE] = min((ODD_SHARES[flag] for flag in flags if flag in ODD_SHARES), default=1.0)
    return {name: factor for name, factor in factors.items() if factor < 1.0}


# --- the judge ------------------------------------------------------------------------------------


def judge(request: Request) -> Reply:
    """Return the decision: a side or none, its counter, what would prove it, and the chance."""
    view = SeatView(request)
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
        vector: towards(view, side, side * (view.mean_adjustment(vector) or 0.0))
        for vector in focus_of(view.role)
    }
    sure = level(abs(lean) / (1.0 + conflicts), SURE) if side else "medium"
    sweeps = read(TABLES[JUDGE_ID][""], numbers, view.trend)
    view = view.with_signals({**view.signals, "": sweeps})
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


def _argument(view: SeatView, votes: list[int], lean: float, moves: Numbers, side: int) -> Argument:
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

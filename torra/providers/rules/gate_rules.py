"""The rules at the risk gate: how far to trust the desk's adjustments now.

Each row of `ALWAYS` and `WHEN_PRESENT` looks at one danger and gives a factor in [0, 1]. Their
product is the multiplier; the row that lowers it most names the reason. The gate's own arithmetic
(assumed spread, thin or stale data, streaks, exposure) is not repeated here: it holds anyway, and
the framework takes the stricter of the two. A scheduled event vetoes there, and lowers the
multiplier here some hours before. The bar's own spread, where a feed knows it, counts here where it
is wider than the one that the profile assumes; a narrower one makes nothing larger.

A veto needs so many dangers at once that less than a quarter of the adjustments would be left, and
it names them. What cannot be seen is no danger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from agent_config import GateSettings
from agents.contracts import (
    ADJUSTMENT_BOUND,
    RESEARCHER_BOUND,
    SIDES,
    VECTORS,
    GateReason,
    Request,
)
from agents.swarm.anomalies import TRIAGE
from torra.providers.rules.argument import DECIMALS, Reply, capital, cite, late_factor
from torra.providers.rules.engine import EVENT, NOBODY, VOLATILITY, SeatView, linear_factor

SPREAD: Final = "spread.last_atr"

VETO_BELOW: Final = 0.25
"""Multiplier below which an opening is vetoed."""

NO_CUT: Final = 0.995
"""Multiplier from which nothing is cut that two decimals could show."""

VOLATILE: Final = 80.0
"""Percentile of volatility above which the factor falls, to 0.6 at 100."""

SHOWN_SHARE: Final = 0.0005
"""Least share that one decimal of a per cent shows."""

TRUSTED: Final = 0.60
"""Trust in the desk below which the factor falls, to 0.6 at half of it."""

ODD: Final = {"range_spike": 0.9, "gap": 0.9}
"""Factors of what is odd about the bar (torra.market.regime.triage); the gate's rules see to stale
data, and volume behind a move is no danger.
"""

WIDE: Final = GateSettings().max_spread_atr
"""ATR of the bar's own spread from which the factor falls from 1, to 0 at twice that.

The default limit of the assumed spread; which limit the profile has is not among the evidence.
"""

SESSIONS: Final = {
    "ASIA": "the Asian session",
    "LONDON": "the London session",
    "LONDON_NY_OVERLAP": "London and New York together",
    "NEW_YORK": "the New York session",
    "CLOSED": "the weekend",
}


class RiskFactor(NamedTuple):
    """One danger: its factor, in words, and the features that show it."""

    reason: GateReason
    factor: float
    words: str
    cites: tuple[str, ...] = ()


def gate(request: Request) -> Reply:
    """Return the ruling: multiplier 1, no veto and NONE when nothing speaks against the desk."""
    view = SeatView(request)
    always = [factor for look in ALWAYS if (factor := look(view))]
    known = always + [factor for look in WHEN_PRESENT if (factor := look(view))]
    dangers = sorted((f for f in known if f.factor < 1.0), key=lambda f: f.factor)
    multiplier = round(math.prod(f.factor for f in dangers), DECIMALS)
    done = f"Size cut to {multiplier:.2f}" if multiplier < NO_CUT else "No cut"
    reasons = [f.words for f in dangers or known] or ["there is nothing to judge by"]
    return {
        "multiplier": float(multiplier),
        "veto": multiplier < VETO_BELOW,
        "reason_code": str(dangers[0].reason if dangers else GateReason.NONE),
        "confidence": "low" if not known else "high" if len(always) == len(ALWAYS) else "medium",
        "reasoning": " ".join(f"{capital(part)}." for part in (done, *reasons)),
        "evidence": cite(view, dict.fromkeys(name for f in known for name in f.cites)),
    }


def _volatility(view: SeatView) -> RiskFactor | None:
    value = view.numbers.get(VOLATILITY)
    if value is None:
        return None
    rank = f"above {value:.0f}% of its past" if value >= 0.5 else "the lowest of its past"
    words = f"volatility is {rank}, and size is cut from {VOLATILE:.0f}% on"
    factor = linear_factor(value, VOLATILE, 100.0, 0.6)
    return RiskFactor(GateReason.HIGH_VOLATILITY, factor, words, (VOLATILITY,))


def _dispute(view: SeatView) -> RiskFactor | None:
    """Look for analysts and debate that pull apart; that bull and bear differ is their office.

    The factor is 0.5 where they flatly contradict each other.
    """
    pulls = [pull for vector in VECTORS if (pull := _pull(view, vector)) is not None]
    if not pulls:
        return None
    disputed = sum(pulls) / len(pulls)
    words = "analysts and the debate as a whole agree"
    if disputed >= SHOWN_SHARE:
        words = f"analysts and the debate differ by {disputed:.1%}, until they agree"
    return RiskFactor(GateReason.DISAGREEMENT, 1.0 - 0.5 * disputed, words)


def _pull(view: SeatView, vector: str) -> float | None:
    """Return 0 (same way) to 1 (flatly against each other) for one vector; None if unknown."""
    reports, debate = (
        [value for peer in peers if (value := peer.report.adjustments.get(vector)) is not None]
        for peers in (view.analysts, view.cases.values())
    )
    # One advocate alone always leans to its side: there is no balance to compare with.
    if not reports or len(debate) < len(SIDES):
        return None
    average = sum(reports) / len(reports) / ADJUSTMENT_BOUND
    shift = sum(debate) / len(debate) / RESEARCHER_BOUND
    return min(1.0, abs(average), abs(shift)) if average * shift < 0.0 else 0.0


def _weakness(view: SeatView) -> RiskFactor | None:
    """Look for a desk that does not believe itself.

    Of the researchers the surer one counts: by office, one of the two has no case.
    """
    analysts = [peer.trust for peer in view.analysts]
    cases = [case.trust for case in view.cases.values() if case is not NOBODY]
    count = len(view.request.reports)
    if not count:
        return None
    voices = [sum(analysts) / len(analysts)] if analysts else []
    voices += [max(cases)] if cases else []
    mean = sum(voices) / len(voices) if voices else 0.0
    words = (
        f"{len(analysts) + len(cases)} of {count} reports scored, with a mean trust of {mean:.2f}, "
        f"and size is cut below {TRUSTED:.2f}"
    )
    return RiskFactor(GateReason.WEAK_CASE, linear_factor(mean, TRUSTED, TRUSTED / 2.0, 0.6), words)


def _lateness(view: SeatView) -> RiskFactor | None:
    names = ("market.day_of_week", "market.session")
    day, session = (view.words.get(name) for name in names)
    if not (day and session):
        return None
    factor = late_factor(view)
    late = ", until the next session" if factor < 1.0 else ""
    words = f"{day}, {SESSIONS.get(session, session)}{late}"
    return RiskFactor(GateReason.SESSION_END, factor, words, names)


def _oddity(view: SeatView) -> RiskFactor | None:
    """Look for what is odd about the newest bar; a bar without a flag says nothing."""
    odd = [flag for flag in view.words.get(TRIAGE, "").split() if flag in ODD]
    if not odd:
        return None
    words = f"an odd bar: {', '.join(odd).replace('_', ' ')}"
    factor = min(ODD[flag] for flag in odd)
    return RiskFactor(GateReason.HIGH_VOLATILITY, factor, words, (TRIAGE,))


def _event(view: SeatView) -> RiskFactor | None:
    """Look for a scheduled event that comes within three hours."""
    minutes = view.numbers.get(EVENT, -1.0)
    if not 0.0 <= minutes < 180.0:
        return None
    factor = linear_factor(minutes, 180.0, 30.0, 0.8)
    words = f"a scheduled event in {minutes:.0f} minutes"
    return RiskFactor(GateReason.SCHEDULED_EVENT, factor, words, (EVENT,))


def _spread(view: SeatView) -> RiskFactor | None:
    """Look for a bar that was dearer to trade than the profile assumes."""
    # From the assumed one on where that is wider: its own limit let it pass.
    begin = max(view.numbers.get("market.spread_atr", 0.0), WIDE)
    own = view.numbers.get(SPREAD, 0.0)
    if own <= begin:
        return None
    words = f"the spread of the bar is {own:.2f} ATR, and size is cut from {begin:.2f} on"
    factor = linear_factor(own, begin, 2.0 * begin, 0.0)
    return RiskFactor(GateReason.WIDE_SPREAD, factor, words, (SPREAD,))


Look = Callable[[SeatView], RiskFactor | None]

ALWAYS: Final[tuple[Look, ...]] = (_volatility, _dispute, _weakness, _lateness)
"""The dangers that there is always something to say about."""

WHEN_PRESENT: Final[tuple[Look, ...]] = (_oddity, _event, _spread)
"""The dangers that are only mentioned when they are there."""

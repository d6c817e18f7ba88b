"""The rules provider's ruling at the risk gate: how far to trust the desk's adjustments now.

Each row of `CAUTIONS` and `OCCASIONS` looks at one danger and gives a factor in [0, 1]. Their
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent_config import GateSettings
from agents.contracts import (
    ADJUSTMENT_BOUND,
    RESEARCHER_BOUND,
    SIDES,
    VECTORS,
    GateReason,
    Request,
)
from agents.evidence import trust
from torra.providers.rules.others import opinions
from torra.providers.rules.readings import number, ramp, word

VETO_BELOW: Final = 0.25
"""Multiplier below which an opening is vetoed."""

NO_CUT: Final = 0.995
"""Multiplier from which nothing is cut that two decimals could show."""

DECIMALS: Final = 4
VOLATILE: Final = (80.0, 100.0)
"""Percentiles of volatility between which the factor falls from 1 to `VOLATILE_FACTOR`."""

VOLATILE_FACTOR: Final = 0.6
SHOWN_SHARE: Final = 0.0005
"""Least share that one decimal of a per cent shows."""

DISPUTED_FACTOR: Final = 0.5
"""Factor where analysts and researchers flatly contradict each other."""

TRUSTED: Final = (0.30, 0.60)
"""Trust in the desk between which the factor rises from `WEAK_FACTOR` to 1."""

WEAK_FACTOR: Final = 0.6

ODD: Final = {"range_spike": 0.9, "gap": 0.9}
"""Factors of what is odd about the bar (torra.market.regime.triage); the gate's rules see to stale
data, and volume behind a move is no danger.
"""

WIDE: Final = GateSettings().max_spread_atr
"""ATR of the bar's own spread from which the factor falls from 1, to 0 at twice that.

The default limit of the assumed spread; which limit the profile has is not among the evidence.
"""

EVENT_MINUTES: Final = (30.0, 180.0)
"""Minutes to a scheduled event between which the factor rises from `EVENT_FACTOR` to 1."""

EVENT_FACTOR: Final = 0.8
SESSIONS: Final = {
    "ASIA": "the Asian session",
    "LONDON": "the London session",
    "LONDON_NY_OVERLAP": "London and New York together",
    "NEW_YORK": "the New York session",
    "CLOSED": "the weekend",
}
LATE: Final = {("", "CLOSED"): 0.8, ("Friday", "NEW_YORK"): 0.9}
"""Factors of late hours by weekday ("" = any) and session: a gap may follow."""


@dataclass(frozen=True, slots=True)
class RiskFactor:
    """One danger seen: its factor, in words, and the features that it was seen in."""

    reason: GateReason
    factor: float
    says: str
    cites: tuple[str, ...] = ()


def gate(request: Request) -> dict[str, Any]:
    """Return the ruling: multiplier 1, no veto and NONE when nothing speaks against the desk."""
    standing = [finding for look in CAUTIONS for finding in look(request)]
    seen = standing + [finding for look in OCCASIONS for finding in look(request)]
    dangers = sorted((f for f in seen if f.factor < 1.0), key=lambda f: f.factor)
    multiplier = round(math.prod((f.factor for f in dangers), start=1.0), DECIMALS)
    told = dangers or seen
    cited = dict.fromkeys(name for finding in seen for name in finding.cites)
    return {
        "symbol": request.symbol,
        "multiplier": multiplier,
        "veto": multiplier < VETO_BELOW,
        "reason_code": str(dangers[0].reason if dangers else GateReason.NONE),
        "confidence": "low" if not seen else "high" if len(standing) == len(CAUTIONS) else "medium",
        "reasoning": _sentence(multiplier, told),
        "evidence": [{"id": name, "value": request.features[name].value} for name in cited],
    }


def _sentence(multiplier: float, told: Sequence[RiskFactor]) -> str:
    """Return what the gate does to the size, and for what reasons, a sentence each."""
    done = f"Size cut to {multiplier:.2f}" if multiplier < NO_CUT else "No cut"
    reasons = [finding.says for finding in told] or ["there is nothing to judge by"]
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in (done, *reasons))


def _volatility(request: Request) -> Iterator[RiskFactor]:
    name = "technical.volatility_percentile"
    value = number(request.features.get(name))
    if value is not None:
        factor = 1.0 - (1.0 - VOLATILE_FACTOR) * ramp(value, *VOLATILE)
        stands = f"above {value:.0f}% of its past" if value >= 0.5 else "the lowest of its past"
        words = f"volatility is {stands}, and size is cut from {VOLATILE[0]:.0f}% on"
        yield RiskFactor(GateReason.HIGH_VOLATILITY, factor, words, (name,))


def _dispute(request: Request) -> Iterator[RiskFactor]:
    """Look for analysts and debate that pull apart; that bull and bear differ is their office."""
    told = opinions(request)
    analysts = [one.adjustments for one in told if one.agent_id not in SIDES]
    debate = [one.adjustments for one in told if one.agent_id in SIDES]
    found = (_pull(_said(analysts, vector), _said(debate, vector)) for vector in VECTORS)
    pulls = [pull for pull in found if pull is not None]
    if not pulls:
        return
    disputed = sum(pulls) / len(pulls)
    words = "analysts and the debate as a whole agree"
    if disputed >= SHOWN_SHARE:
        words = f"analysts and the debate differ by {disputed:.1%}, until they agree"
    factor = 1.0 - (1.0 - DISPUTED_FACTOR) * disputed
    yield RiskFactor(GateReason.DISAGREEMENT, factor, words)


def _pull(analysts: Sequence[float], debate: Sequence[float]) -> float | None:
    """Return 0 (same way) to 1 (flatly against each other) for one vector; None if unknown."""
    # One advocate alone always leans to its side: there is no balance to compare with.
    if not analysts or len(debate) < len(SIDES):
        return None
    average = sum(analysts) / len(analysts) / ADJUSTMENT_BOUND
    shift = sum(debate) / len(debate) / RESEARCHER_BOUND
    return min(1.0, abs(average), abs(shift)) if average * shift < 0.0 else 0.0


def _said(reports: Iterable[Mapping[str, float | None]], vector: str) -> list[float]:
    return [value for said in reports if (value := said.get(vector)) is not None]


def _weakness(request: Request) -> Iterator[RiskFactor]:
    """Look for a desk that does not believe itself.

    Of the researchers the surer one counts: by office, one of the two has no case.
    """
    if not request.reports:
        return
    told = opinions(request)
    analysts = [trust(report) for report in told if report.agent_id not in SIDES]
    surer = [trust(report) for report in told if report.agent_id in SIDES]
    voices = [sum(analysts) / len(analysts)] if analysts else []
    voices += [max(surer)] if surer else []
    mean = sum(voices) / len(voices) if voices else 0.0
    factor = WEAK_FACTOR + (1.0 - WEAK_FACTOR) * ramp(mean, *TRUSTED)
    words = (
        f"{len(analysts) + len(surer)} of {len(request.reports)} reports scored, with a mean trust "
        f"of {mean:.2f}, and size is cut below {TRUSTED[1]:.2f}"
    )
    yield RiskFactor(GateReason.WEAK_CASE, factor, words)


def _lateness(request: Request) -> Iterator[RiskFactor]:
    names = ("market.day_of_week", "market.session")
    day, session = (word(request.features.get(name)) for name in names)
    if day and session:
        factor = _lateness_factor(day, session)
        late = ", until the next session" if factor < 1.0 else ""
        words = f"{day}, {SESSIONS.get(session, session)}{late}"
        yield RiskFactor(GateReason.SESSION_END, factor, words, names)


def is_late(request: Request) -> bool:
    """Tell whether the hours are late ones, after which a gap may follow."""
    features = request.features
    day, session = (word(features.get(f"market.{name}")) for name in ("day_of_week", "session"))
    return bool(day and session) and _lateness_factor(str(day), str(session)) < 1.0


def _lateness_factor(day: str, session: str) -> float:
    return LATE.get(("", session), LATE.get((day, session), 1.0))


def _oddity(request: Request) -> Iterator[RiskFactor]:
    """Look for what is odd about the newest bar; a bar without a flag says nothing."""
    name = "market.triage"
    flags = (word(request.features.get(name)) or "").split()
    factors = [ODD[flag] for flag in flags if flag in ODD]
    if factors:
        told = ", ".join(flag.replace("_", " ") for flag in flags if flag in ODD)
        yield RiskFactor(GateReason.HIGH_VOLATILITY, min(factors), f"an odd bar: {told}", (name,))


def _spread(request: Request) -> Iterator[RiskFactor]:
    """Look for a bar that was dearer to trade than the profile assumes."""
    name, assumed_name = "spread.last_atr", "market.spread_atr"
    own = number(request.features.get(name))
    assumed = number(request.features.get(assumed_name)) or 0.0
    # From the assumed one on where that is wider: its own limit let it pass.
    begin = max(assumed, WIDE)
    if own is not None and own > begin:
        factor = 1.0 - ramp(own, begin, 2.0 * begin)
        words = f"the spread of the bar is {own:.2f} ATR, and size is cut from {begin:.2f} on"
        yield RiskFactor(GateReason.WIDE_SPREAD, factor, words, (name,))


def _event(request: Request) -> Iterator[RiskFactor]:
    """Look for a scheduled event that comes within hours."""
    name = "events.to_next_min"
    minutes = number(request.features.get(name))
    if minutes is not None and 0.0 <= minutes < EVENT_MINUTES[1]:
        factor = EVENT_FACTOR + (1.0 - EVENT_FACTOR) * ramp(minutes, *EVENT_MINUTES)
        words = f"a scheduled event in {minutes:.0f} minutes"
        yield RiskFactor(GateReason.SCHEDULED_EVENT, factor, words, (name,))


CAUTIONS: Final[tuple[Callable[[Request], Iterator[RiskFactor]], ...]] = (
    _volatility,
    _dispute,
    _weakness,
    _lateness,
)
"""The dangers that there is always something to say about."""

OCCASIONS: Final[tuple[Callable[[Request], Iterator[RiskFactor]], ...]] = (_oddity, _event, _spread)
"""The dangers that are only mentioned when they are there."""

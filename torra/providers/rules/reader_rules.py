"""The rules as the reader of a swarm's regime: the kind of market, the budget, who goes first.

The reader names the code's regime, but for two turns that ADX is late to see:

    range, quiet  ->  trend   a breakout bar: range and volume spiked, and it closed beyond a swing
    trend         ->  range   structure broke against it, and the swings go against it

`budget_pct` is 100 x the smallest of `DANGERS`, `ODD` and the budgets of both regimes: all of them
see one storm, so they are not multiplied. `first` goes by the regime. The bias is how the common
readings lean on the whole, from `LEANS` on. Upside down every word is mirrored. Pure functions;
nothing raises.
"""

from __future__ import annotations

from typing import Final

from agent_config import REGIME_BUDGET
from agents.arguments import AGAINST, FOR
from agents.contracts import NO_ANOMALY, Request
from agents.swarm.anomalies import BOS, TRIAGE
from torra.providers.rules.argument import (
    BIAS,
    Argument,
    Reply,
    argued,
    capital,
    cite,
    level,
    top_points,
)
from torra.providers.rules.engine import (
    ADX,
    EVENT,
    REGIME,
    VOLATILITY,
    SeatView,
    linear_factor,
    mean_lean,
    ramp,
    side_of,
    view_of,
)
from torra.providers.rules.gate_rules import ODD as ODD_BARS
from torra.providers.rules.gate_rules import WIDE

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

SURE: Final = {"high": 0.6, "medium": 0.2}
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

ODD: Final = {**ODD_BARS, "exhaustion": 0.7}
"""Factors of an odd bar."""

Regime = tuple[str, str, tuple[str, ...], str]
"""A regime, why in words, the features that say so, and how sure that is."""


def reader(request: Request) -> Reply:
    """Return the kind of market, the budget, who goes first, and which way it leans."""
    view = view_of(request)
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
        return name, f"volatility ranks at {ranked:.0f} of 100", (VOLATILITY,), level(inside, SURE)
    if adx is None:
        return name, "neither of 2 numbers that would say more is known", (), "low"
    inside = ramp(adx, 25.0, 40.0) if name in TRENDS else ramp(adx, 25.0, 12.0)
    why = f"ADX at {adx:.0f}" + ("" if name in TRENDS else " shows no trend")
    return name, why, (ADX,), level(inside, SURE)


def _factors(view: SeatView) -> dict[str, float]:
    """Return the features that lower a budget, each with the share that it leaves."""
    factors = {
        name: linear_factor(view.numbers[name], *danger)
        for name, danger in DANGERS.items()
        if view.numbers.get(name, -1.0) >= 0.0
    }
    flags = view.words.get(TRIAGE, "").split()
    factors[TRIAGE] = min((ODD[flag] for flag in flags if flag in ODD), default=1.0)
    return {name: factor for name, factor in factors.items() if factor < 1.0}

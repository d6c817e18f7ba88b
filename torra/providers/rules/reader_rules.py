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

from agent_config import REGIME_BUDGET, GateSettings
from agents.arguments import AGAINST, FOR
from agents.contracts import NO_ANOMALY, Request
from agents.features import Features, number
from agents.swarm.anomalies import BOS, TRIAGE
from torra.providers.rules.argument import Argument, ReaderView, capital, top_points
from torra.providers.rules.replies import BIAS, Reply, argued, cite, level
from torra.providers.rules.rule import (
    ADX,
    REGIME,
    linear_factor,
    mean_lean,
    ramp,
    side_of,
    word,
)
from torra.providers.rules.tables import common_signals

PERCENTILE: Final = "technical.volatility_percentile"
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

WIDE: Final = GateSettings().max_spread_atr

DANGERS: Final = {
    PERCENTILE: (80.0, 100.0, 0.6),
    "derivs.dvol_rank": (85.0, 100.0, 0.5),
    "macro.vix_rank": (85.0, 100.0, 0.5),
    "events.to_next_min": (180.0, 30.0, 0.5),
    "market.spread_atr": (WIDE, 2.0 * WIDE, 0.5),
}
"""Volatility, fear, an event that comes, a dear spread: up to the first value a budget is whole,
from the second on the share of the third is left. Ours, by judgement."""

ODD: Final = {"exhaustion": 0.7, "range_spike": 0.9, "gap": 0.9}
"""Factors of an odd bar."""

Regime = tuple[str, str, tuple[str, ...], str]
"""A regime, why in words, the features that say so, and how sure that is."""


def reader(request: Request) -> Reply:
    """Return the kind of market, the budget, who goes first, and which way it leans."""
    features = request.features
    regime, why, reads, confidence = _turned(features) or _as_code_says(features)
    view = ReaderView(request, common_signals(features))
    bias = side_of(mean_lean(view.all()), LEANS)
    factors = _factors(features)
    code = word(features, REGIME) or ""
    left = min(REGIME_BUDGET.get(name, 1.0) for name in (regime, code))
    budget = round(100.0 * min([left, *factors.values()]))
    cut = f", and {budget} % of an opening is left" if budget < 100 else ""
    claim = f"{capital(regime).replace('_', ' ')}: {why}{cut}."
    argument = Argument(bias, claim)
    if bias:
        points = (top_points(view, bias, FOR), top_points(view, -bias, AGAINST))
        argument = Argument(bias, claim, *points)
    lowered = sorted(factors, key=lambda name: factors[name])
    return {
        "regime": regime,
        "budget_pct": float(budget),
        "first": _first(regime, features),
        "bias": BIAS[bias],
        **argued(request, argument),
        "confidence": confidence,
        "evidence": cite(request, dict.fromkeys((*reads, ADX, REGIME, *lowered))),
    }


def _turned(features: Features) -> Regime | None:
    """Return the regime to which the market has just turned; None where it has not."""
    code = word(features, REGIME) or ""
    broke, swings = (number(features, name) or 0.0 for name in (BOS, SWINGS))
    volume, way = number(features, VOLUME), TRENDS.get(code, 0)
    if (
        code in ("range", "quiet")
        and "breakout" in _flags(features)
        and broke
        and volume is not None
    ):
        name = "trend_up" if broke > 0.0 else "trend_down"
        why = f"it broke out of its {code} on {volume:.1f} times the usual volume"
        return name, why, (TRIAGE, BOS, VOLUME), "medium"
    if broke * way < 0.0 and swings * way < 0.0:
        went, beyond = ("fell", "below the low") if way > 0 else ("rose", "above the high")
        why = f"the last 2 swings {went}, and the close is {beyond} of the newer"
        return "range", why, (BOS, SWINGS), "medium"
    return None


def _as_code_says(features: Features) -> Regime:
    code = word(features, REGIME) or UNKNOWN
    name = code if code in REGIME_BUDGET else UNKNOWN
    adx, ranked = number(features, ADX), number(features, PERCENTILE)
    if name in ("volatile", "quiet") and ranked is not None:
        inside = ramp(ranked, 90.0, 100.0) if name == "volatile" else ramp(ranked, 25.0, 5.0)
        return name, f"volatility ranks at {ranked:.0f} of 100", (PERCENTILE,), level(inside, SURE)
    if adx is None:
        return name, "neither of 2 numbers that would say more is known", (), "low"
    inside = ramp(adx, 25.0, 40.0) if name in TRENDS else ramp(adx, 25.0, 12.0)
    why = f"ADX at {adx:.0f}" + ("" if name in TRENDS else " shows no trend")
    return name, why, (ADX,), level(inside, SURE)


def _first(regime: str, features: Features) -> str:
    if regime not in TRENDS:
        return FIRST.get(regime, NO_ANOMALY)
    known = any(name.startswith(MACRO) and number(features, name) is not None for name in features)
    return "macro" if known else "geometry"


def _factors(features: Features) -> dict[str, float]:
    """Return the features that lower a budget, each with the share that it leaves."""
    factors = {}
    for name, danger in DANGERS.items():
        value = number(features, name)
        if value is not None and value >= 0.0:
            factors[name] = linear_factor(value, *danger)
    odd = [ODD[flag] for flag in _flags(features) if flag in ODD]
    factors[TRIAGE] = min(odd, default=1.0)
    return {name: factor for name, factor in factors.items() if factor < 1.0}


def _flags(features: Features) -> list[str]:
    return (word(features, TRIAGE) or "").split()

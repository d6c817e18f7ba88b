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

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from agent_config import REGIME_BUDGET, GateSettings
from agents.arguments import AGAINST, FOR
from agents.contracts import NO_ANOMALY, Feature, Request
from agents.swarm.anomalies import TRIAGE
from torra.providers.rules.argument import strongest
from torra.providers.rules.experts import WORDS
from torra.providers.rules.opinions import cite, level, point_replies
from torra.providers.rules.readings import (
    ADX,
    NAMED,
    RuleSignal,
    common_readings,
    mean_lean,
    number,
    ramp,
    regime,
    word,
)

PERCENTILE: Final = "technical.volatility_percentile"
VOLUME: Final = "technical.volume_ratio"
BOS, SWINGS = "technical.bos", "technical.trend_state"

TRENDS: Final[Mapping[str, int]] = {"trend_up": 1, "trend_down": -1}
CALM: Final = frozenset({"range", "quiet"})
UNKNOWN: Final = "range"
"""What a market is where code named nothing."""

LEANS: Final = 0.15
"""Mean lean of the common readings from which there is a bias."""

WHOLE: Final = 100
"""Per cent of an opening of which nothing is taken."""

MACRO: Final = ("macro.", "companion.")
FIRST: Final[Mapping[str, str]] = {"range": "liquidity", "volatile": "liquidity"}
"""Who goes first: in a trend macro, or geometry where nothing of macro is known; in a quiet market
nobody."""

SPOKEN: Final[Mapping[str, str]] = {
    "trend_up": "Trend up",
    "trend_down": "Trend down",
    "range": "Range",
    "volatile": "Volatile",
    "quiet": "Quiet",
}

TURNED: Final = "medium"
"""Confidence of a reader that names another regime than code."""

SURE: Final = (("high", 0.6), ("medium", 0.2))
"""How far inside its limits a regime lies, 0 to 1, from which a confidence is used."""


class BudgetRamp(NamedTuple):
    """What takes from a budget: nothing at `start` or before it, all but `left` from `end` on."""

    feature: str
    start: float
    end: float
    left: float


DANGERS: Final = (
    BudgetRamp(PERCENTILE, 80.0, 100.0, 0.6),
    BudgetRamp("derivs.dvol_rank", 85.0, 100.0, 0.5),
    BudgetRamp("macro.vix_rank", 85.0, 100.0, 0.5),
    BudgetRamp("events.to_next_min", 180.0, 30.0, 0.5),
    BudgetRamp(
        "market.spread_atr", GateSettings().max_spread_atr, 2.0 * GateSettings().max_spread_atr, 0.5
    ),
)
"""Volatility, fear, an event that comes, a dear spread; ours, by judgement."""

ODD: Final[Mapping[str, float]] = {"exhaustion": 0.7, "range_spike": 0.9, "gap": 0.9}
"""Factors of an odd bar."""


class RegimeChoice(NamedTuple):
    """The regime, why in words, the features that say so, and how sure that is."""

    regime: str
    why: str
    reads: tuple[str, ...]
    confidence: str


def reader(request: Request) -> dict[str, Any]:
    """Return the kind of market, the budget, who goes first, and which way it leans."""
    features = request.features
    named = _turned(features) or _as_code_says(features)
    heard = common_readings(features, regime(features))
    bias = _bias(heard)
    left, lowered_by = _budget(features, named.regime)
    budget = round(100.0 * left)
    cut = f", and {budget} % of an opening is left" if budget < WHOLE else ""
    points = strongest(request, heard, bias, 0.0, FOR) if bias else []
    against = strongest(request, heard, -bias, 0.0, AGAINST) if bias else []
    reads = dict.fromkeys((*named.reads, ADX, NAMED, *lowered_by))
    return {
        "symbol": request.symbol,
        "regime": named.regime,
        "budget_pct": float(budget),
        "first": _first(named.regime, features),
        "bias": WORDS[bias],
        "claim": f"{SPOKEN[named.regime]}: {named.why}{cut}.",
        "points_for": point_replies(request, points),
        "points_against": point_replies(request, against),
        "confidence": named.confidence,
        "evidence": cite(request, reads),
    }


# --- the regime -----------------------------------------------------------------------------------


def _turned(features: Mapping[str, Feature]) -> RegimeChoice | None:
    """Return the regime to which the market has just turned; None where it has not."""
    code = word(features.get(NAMED))
    broke, swings = (number(features.get(name)) or 0.0 for name in (BOS, SWINGS))
    volume = number(features.get(VOLUME))
    flags = (word(features.get(TRIAGE)) or "").split()
    if code in CALM and "breakout" in flags and broke and volume is not None:
        name = "trend_up" if broke > 0.0 else "trend_down"
        why = f"it broke out of its {code} on {volume:.1f} times the usual volume"
        return RegimeChoice(name, why, (TRIAGE, BOS, VOLUME), TURNED)
    way = TRENDS.get(code or "", 0)
    if way and broke * way < 0.0 and swings * way < 0.0:
        went, beyond = ("fell", "below the low") if way > 0 else ("rose", "above the high")
        why = f"the last 2 swings {went}, and the close is {beyond} of the newer"
        return RegimeChoice("range", why, (BOS, SWINGS), TURNED)
    return None


def _as_code_says(features: Mapping[str, Feature]) -> RegimeChoice:
    code = word(features.get(NAMED)) or UNKNOWN
    name = code if code in SPOKEN else UNKNOWN
    adx, ranked = (number(features.get(one)) for one in (ADX, PERCENTILE))
    if name in ("volatile", "quiet") and ranked is not None:
        inside = ramp(ranked, 90.0, 100.0) if name == "volatile" else ramp(ranked, 25.0, 5.0)
        return RegimeChoice(
            name, f"volatility ranks at {ranked:.0f} of 100", (PERCENTILE,), level(inside, SURE)
        )
    if adx is not None:
        inside = ramp(adx, 25.0, 40.0) if name in TRENDS else ramp(adx, 25.0, 12.0)
        why = f"ADX at {adx:.0f}" + ("" if name in TRENDS else " shows no trend")
        return RegimeChoice(name, why, (ADX,), level(inside, SURE))
    return RegimeChoice(name, "neither of 2 numbers that would say more is known", (), "low")


def _first(name: str, features: Mapping[str, Feature]) -> str:
    if name not in TRENDS:
        return FIRST.get(name, NO_ANOMALY)
    known = any(
        one.startswith(MACRO) and number(feature) is not None for one, feature in features.items()
    )
    return "macro" if known else "geometry"


def _bias(heard: Mapping[str, Sequence[RuleSignal]]) -> int:
    """Return which way the common readings lean on the whole, 0 for neither."""
    mean = mean_lean(chain.from_iterable(heard.values()))
    return 0 if abs(mean) < LEANS else 1 if mean > 0.0 else -1


# --- the budget -----------------------------------------------------------------------------------


def _budget(features: Mapping[str, Feature], named: str) -> tuple[float, tuple[str, ...]]:
    """Return the share of an opening that is left, and the features that lower it.

    The code's regime and the one that is named here leave no more than their own budgets.
    """
    found = sorted(_lowered(features), key=lambda one: one[0])
    regimes = (named, word(features.get(NAMED)) or "")
    left = min(REGIME_BUDGET.get(one, 1.0) for one in regimes)
    return min([left, *(share for share, _ in found)]), tuple(name for _, name in found)


def _lowered(features: Mapping[str, Feature]) -> Iterator[tuple[float, str]]:
    for feature, start, end, left in DANGERS:
        value = number(features.get(feature))
        if value is not None and value >= 0.0:
            factor = 1.0 - (1.0 - left) * ramp(value, start, end)
            if factor < 1.0:
                yield factor, feature
    flags = (word(features.get(TRIAGE)) or "").split()
    odd = [ODD[flag] for flag in flags if flag in ODD]
    if odd:
        yield min(odd), TRIAGE

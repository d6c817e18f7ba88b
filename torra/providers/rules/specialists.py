"""The rules' tables for the agents that are shown something of their own.

Sentiment, news and the fundamental analyst have tables of their own; key levels and momentum add to
the common one. Mood, news and worth are no measure of a score but an overlay on it (`OVERLAYS`):
they move it towards themselves, never past themselves, and never back because they are weaker than
it is. The ordinals of the news are arithmetic over the items' scores, ages and classes; no headline
is read. Reverse every score, and every reading and ordinal is reversed; relevance alone stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from agents.contracts import ORDINALS, VECTORS, Feature
from torra.evidence.outside_readings import FIT_R2
from torra.providers.rules.readings import (
    READERS,
    ReadingRule,
    direction,
    distance,
    number,
    outside,
    tanh_of,
    technical,
)

OVERLAYS: Final = frozenset({"sentiment", "news", "fundamental"})
"""Agents whose evidence lies over the scores and does not measure them."""

TONE: Final = 0.3
"""Score of the news that counts as a clear tone; the word lists seldom reach more."""

SHARE: Final = 0.15
"""Share of bars or volume above a half that counts as a clear mood."""

STREAK: Final = 4.0
"""Closes in a row that count as a clear streak."""

CROSS: Final = 10.0
"""Points between %K and %D that count as clear."""

MOOD: Final = tuple(
    reader
    for vector in VECTORS
    for reader in (
        ReadingRule(
            vector,
            ("sentiment.news",),
            lambda tone: tanh_of(tone, TONE),
            trend=0.6,
            range=0.6,
        ),
        ReadingRule(
            vector,
            ("sentiment.up_bars",),
            lambda share: tanh_of(share - 0.5, SHARE),
            trend=0.5,
            range=-0.2,
        ),
        ReadingRule(
            vector,
            ("sentiment.up_volume",),
            lambda share: tanh_of(share - 0.5, SHARE),
            trend=0.5,
            range=0.3,
        ),
        ReadingRule(
            vector,
            ("sentiment.streak",),
            lambda closes: tanh_of(closes, STREAK),
            trend=0.3,
            range=-0.4,
        ),
    )
)

CROWD: Final = 30.0
"""Points of a rank above 50 that count as clearly crowded."""

POSITIONS: Final = tuple(
    reader
    for vector in VECTORS
    for reader in (
        ReadingRule(
            vector,
            ("cot.net_change_4w",),
            lambda change: tanh_of(change, 5.0),
            trend=0.3,
            range=0.1,
        ),
        ReadingRule(
            vector,
            ("cot.rank",),
            lambda ranked: tanh_of(ranked - 50.0, CROWD),
            trend=0.1,
            range=-0.4,
        ),
        ReadingRule(
            vector,
            ("positioning.fear_greed",),
            lambda greed: tanh_of(greed - 50.0, CROWD),
            trend=0.1,
            range=-0.4,
        ),
        ReadingRule(
            vector,
            ("derivs.funding_rank",),
            lambda ranked: tanh_of(ranked - 50.0, CROWD),
            trend=0.1,
            range=-0.3,
        ),
    )
)
"""How others are positioned: followed in a trend, faded in a range where they are crowded."""


def _real_yield(change: float, r2: float, slope: float) -> float:
    """Return the lean of the real yield's change; 0 where gold no longer goes with it."""
    return -tanh_of(change, 0.25) if r2 >= FIT_R2 and slope < 0.0 else 0.0


def _worth(
    *reads: str, unit: float = 1.0, weight: float, way: float = 1.0, middle: float = 0.0
) -> tuple[ReadingRule, ...]:
    """Return a reader of a number for each vector: one unit off its middle is clear."""
    return tuple(
        ReadingRule(
            vector, reads, lambda value: way * tanh_of(value - middle, unit), weight, weight
        )
        for vector in VECTORS
    )


WORTH: Final = (
    *(
        ReadingRule(
            vector,
            tuple(f"macro.real_yield_{part}" for part in ("change_20", "fit_r2", "fit_slope")),
            _real_yield,
            trend=0.6,
            range=0.6,
            sparse=True,
        )
        for vector in VECTORS
    ),
    *_worth("macro.breakeven_change_20", unit=0.15, weight=0.3),
    *_worth("macro.dollar_change_20", unit=1.5, weight=0.5, way=-1.0),
    *_worth("macro.yield_10y_change_20", unit=0.3, weight=0.4, way=-1.0),
    *_worth("macro.vix_change_20", unit=5.0, weight=0.4, way=-1.0),
    *_worth("macro.nasdaq_change_20", unit=5.0, weight=0.4),
    *_worth("macro.rate_gap_change_20", unit=0.2, weight=0.6),
    *_worth("macro.inventories_change_20", unit=3.0, weight=0.5, way=-1.0),
    *_worth("fundamentals.revenue_growth_pct", unit=20.0, weight=0.3),
    *_worth("company.revenue_growth_pct", unit=20.0, weight=0.3),
    *_worth("company.f_score", unit=3.0, weight=0.3, middle=4.5),
    *_worth("company.accruals_pct", unit=10.0, weight=0.2, way=-1.0),
    *_worth("company.dilution_pct", unit=5.0, weight=0.2, way=-1.0),
    *_worth("company.valuation_rank", unit=40.0, weight=0.3, way=-1.0, middle=50.0),
)
"""What money and worth say: changes over 20 trading days, and a company's growth, strength and
price.

The units are what such a change is usually like within a month, and of a company in a year; ours,
by judgement.
"""

CLASSES: Final[Mapping[str, float]] = {
    "earnings": 0.5,
    "guidance": 0.5,
    "macro": 0.4,
    "rating": 0.3,
    "regulatory": 0.3,
    "geopolitical": 0.3,
    "supply": 0.3,
}
"""Weight of a class of event beside that of all the news; other news has no weight of its own."""

TIDINGS: Final = tuple(
    ReadingRule(vector, reads, lambda tone: tanh_of(tone, TONE), weight, weight)
    for vector in VECTORS
    for reads, weight in (
        (("news.score",), 0.8),
        *(((f"news.{name}_score",), weight) for name, weight in CLASSES.items()),
    )
)

LEVELS: Final = (
    ReadingRule(
        "key_levels",
        technical("close", "fib_382", "fib_618", "atr14"),
        outside,
        trend=0.6,
        range=0.3,
        component="kl_fibonacci",
    ),
    ReadingRule(
        "key_levels",
        technical("close", "fib_500", "atr14"),
        distance(2.0),
        trend=0.3,
        range=0.3,
    ),
    ReadingRule(
        "structure",
        technical("close", "span_a", "span_b", "atr14"),
        outside,
        trend=0.6,
        range=0.2,
    ),
    ReadingRule(
        "structure",
        technical("close", "kijun", "atr14"),
        distance(2.0),
        trend=0.6,
        range=0.3,
    ),
)

OSCILLATORS: Final = (
    ReadingRule(
        "momentum",
        technical("stoch_k", "stoch_d"),
        lambda k, d: tanh_of(k - d, CROSS),
        trend=0.3,
        range=0.4,
    ),
    ReadingRule(
        "momentum",
        technical("macd", "macd_signal", "atr14"),
        distance(0.25),
        trend=0.3,
        range=0.1,
    ),
    ReadingRule(
        "structure",
        technical("adx14", "plus_di", "minus_di"),
        direction,
        trend=0.8,
        range=0.2,
    ),
    ReadingRule(
        "structure",
        technical("macd", "atr14"),
        tanh_of,
        trend=0.5,
        range=0.1,
    ),
)

TABLES: Final[Mapping[str, tuple[ReadingRule, ...]]] = {
    "sentiment": (*MOOD, *POSITIONS),
    "fundamental": WORTH,
    "news": TIDINGS,
    "key_levels": (*READERS, *LEVELS),
    "momentum": (*READERS, *OSCILLATORS),
}
"""The table of each agent; all other agents read READERS."""

RISKY: Final = ("regulatory", "macro", "geopolitical")
"""Classes of event whose bad news makes a market riskier and not only cheaper."""

CLEAR: Final = 0.05
"""Score from which the tone of the news, or its turn, is one at all."""


def ordinals(features: Mapping[str, Feature]) -> dict[str, int]:
    """Return what the news amounts to, in the whole numbers of ORDINALS."""
    tone = number(features.get("news.score")) or 0.0
    items = _items(features)
    scores = [number(features.get(f"news.{name}_score")) for name in RISKY]
    risky = [score for score in scores if score is not None]
    found = {
        "relevance": _relevance(features, items),
        "sentiment": _step(tone),
        "price_impact": _of(tone, 3),
        "trend": _step(_turn(items)),
        "investor_confidence": round(3 * _balance(items)),
        # Bad news, which is negative, is more risk.
        "risk_profile_change": -_of(math.fsum(risky) / len(risky), 2) if risky else 0,
    }
    return {name: found[name] for name in ORDINALS}


def _items(features: Mapping[str, Feature]) -> list[float]:
    """Return the score of every item, newest first."""
    found = []
    for name in features:
        if name.startswith("news.item_score."):
            item = name.rsplit(".", 1)[1]
            age, score = (
                number(features.get(f"news.item_{part}.{item}")) for part in ("age_h", "score")
            )
            if age is not None and score is not None:
                found.append((age, item, score))
    # By age, then by id: items of one moment keep one order.
    return [score for *_, score in sorted(found)]


def _relevance(features: Mapping[str, Feature], items: list[float]) -> int:
    """Return 2 for news of a class that moves markets, 1 for other news, 0 for none."""
    counts = (number(features.get(f"news.{name}_items")) for name in CLASSES)
    if any(counts):
        return 2
    return 1 if items or number(features.get("news.items")) else 0


def _turn(items: list[float]) -> float:
    """Return how much better the newer half of the items is than the older."""
    half = len(items) // 2
    if not half:
        return 0.0
    newer, older = items[:half], items[half:]
    return math.fsum(newer) / len(newer) - math.fsum(older) / len(older)


def _balance(items: list[float]) -> float:
    """Return the good items less the bad ones, as a share of all, -1 to +1."""
    return sum((score > 0) - (score < 0) for score in items) / len(items) if items else 0.0


def _step(value: float) -> int:
    return 0 if abs(value) < CLEAR else 1 if value > 0 else -1


def _of(tone: float, most: int) -> int:
    return round(most * tanh_of(tone, TONE))

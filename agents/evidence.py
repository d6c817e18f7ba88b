"""An agent's evidence: whether it is there, whether citations are true, what a report weighs.

Pure functions over the features of a context and over reports. A feature without a value counts as
absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from agent_config import CONFIDENCE_WEIGHT, GROUNDING_TOLERANCE, UNGROUNDED_WEIGHT

from .contracts import VECTORS, AgentReport, DebateContext, Evidence, Feature, Role

SURROUNDINGS: Final = (
    "market.regime",
    "market.triage",
    "market.session",
    "market.day_of_week",
    "market.spread_atr",
    "market.range_atr",
)
"""What every agent sees of the market; age and number of the bars are for the gate only."""

MARKET_EVIDENCE: Final = (
    *SURROUNDINGS,
    "technical.adx14",
    "technical.plus_di",
    "technical.minus_di",
    "technical.volatility_percentile",
)
"""What every agent is shown: the regime, its inputs, and whether the bar is unusual."""

FUNDAMENTALS: Final = tuple(
    f"fundamentals.{name}"
    for name in ("pe", "pb", "ev_ebitda", "revenue_growth_pct", "net_margin_pct")
)

VENDOR_FIGURES: Final = tuple(
    f"fundamentals.{name}"
    for name in ("pe_to_peers", "pb_to_peers", "analyst_rating", "earnings_surprise_pct")
)
"""What a vendor says of a company beside its ratios: for who reads companies alone."""

POSITIONS: Final = ("cot.", "positioning.", "derivs.")
"""How others are positioned."""

COMPANIONS: Final = "companion."
"""Other symbols of the same feed, which are read and never traded."""

FLOW: Final = "flow."
"""What moved inside the bar: ticks, their spread, and the order book."""

OUTSIDE: Final = ("macro.", *POSITIONS, FLOW, COMPANIONS, "company.")
"""Blocks of numbers from beside the chart."""

CASE_EVIDENCE: Final = (
    "scores.",
    *(
        f"technical.{name}"
        for name in (
            *("close", "atr14", "ema20", "sma50", "sma200", "span_"),
            *("support", "resistance", "swing_", "trend_state", "bos"),
            *("rsi14", "macd", "stoch_k", "cci20", "volume_ratio", "body_atr"),
        )
    ),
    "forecast.",
    "memory.",
    "lessons.",
    *FUNDAMENTALS,
    *OUTSIDE,
    *MARKET_EVIDENCE,
    "host.",
)
"""What both researchers argue from. One table for the two keeps them even."""

JUDGED_EVIDENCE: Final = tuple(name for name in CASE_EVIDENCE if name != "forecast.")
"""What a judge of the cases is shown of it: what is foreseen of the price is for who argues."""

SOURCES: Final[Mapping[str, str]] = {
    "news": "source.news",
    "sentiment": "source.news",
    "fundamentals": "source.fundamentals",
    "macro": "source.macro",
    "cot": "source.cot",
    "derivs": "source.derivs",
    "company": "source.company",
    "companion": "source.companion",
    "flow": "source.flow",
}
"""Blocks that are fed from outside, and the feature that says why there is nothing."""

BLOCK_LABELS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("cot", "positioning", "derivs"), "sentiment"),
    "fundamentals": "company",
    "micro": "spread",
    "flow": "order flow",
}
"""What a block is called where an agent says that it has nothing, if not by its own name."""

SOURCE_LABELS: Final[Mapping[str, str]] = {
    "sentiment": "news",
    "fundamentals": "company",
    "cot": "positions",
    "derivs": "derivatives",
    "company": "filings",
    "flow": "order flow",
}
"""What the source of a block is called, if not by the block's name."""

NOTHING_WRONG: Final = "available"

SCORES: Final[Mapping[str, str]] = {vector: f"scores.{vector}" for vector in VECTORS}
"""Ids of the four scores among the evidence, by vector."""


def missing(role: Role, context: DebateContext) -> str:
    """Return why a role cannot judge, "" when one of its needs has a value.

    A need names a feature, or all features whose id begins with it and a dot (the whole block
    `technical`). A need that ends in an underscore is the beginning of ids.
    """
    if not role.needs or _is_there(tuple(role.needs), context.features):
        return ""
    blocks = tuple(dict.fromkeys(need.split(".", 1)[0] for need in role.needs))
    named_for_people = dict.fromkeys(BLOCK_LABELS.get(block, block) for block in blocks)
    lacking = f"no {' or '.join(named_for_people)} evidence"
    if why := _why(blocks, context.features):
        return f"{lacking}: {why}"
    parts = (need.partition(".")[2].rstrip("_") for need in role.needs)
    names = dict.fromkeys(part for part in parts if part)
    return f"{lacking} ({', '.join(names)})" if names else lacking


@lru_cache(maxsize=256)
def named(
    names: tuple[str, ...], prefixes: tuple[str, ...], but: frozenset[str]
) -> tuple[str, ...]:
    """Return, sorted, the names with one of the prefixes that are in none of some blocks.

    Cached, because the names of one tick are mostly those of the next.
    """
    return tuple(
        sorted(
            name for name in names if name.startswith(prefixes) and name.split(".", 1)[0] not in but
        )
    )


def grounded(evidence: Iterable[Evidence], features: Mapping[str, Feature]) -> bool:
    """Return whether every citation names a feature and its value, numbers within 1 %."""
    return all(citation_holds(features.get(name), value) for name, value in evidence)


def citation_holds(feature: Feature | None, value: float | str | None) -> bool:
    """Return whether a feature has the value that is cited, a number within 1 % or as shown."""
    known = None if feature is None else feature.value
    if feature is None or known is None or value is None:
        return False
    if isinstance(known, str) or isinstance(value, str):
        return known == value
    try:
        if abs(value - known) <= GROUNDING_TOLERANCE * abs(known):
            return True
        return feature.decimals is not None and value == round(known, feature.decimals)
    except OverflowError:  # an integer of a host that no float can hold
        return False


def trust(report: AgentReport) -> float:
    """Return the weight of a report's word, in [0, 1]; one that conceded has a low one."""
    word = "low" if "conceded" in report.flags else report.confidence
    weight = CONFIDENCE_WEIGHT[word]
    for flag in ("ungrounded", "unfalsified"):
        weight *= UNGROUNDED_WEIGHT if flag in report.flags else 1.0
    return weight


def with_scores(features: Mapping[str, Feature], context: DebateContext) -> dict[str, Feature]:
    """Return the features with the four scores among them, so that there is always one to cite."""
    scores = {
        name: Feature(name, context.scores[vector], "", context.as_of)
        for vector, name in SCORES.items()
    }
    return {**scores, **dict(features.items())}


def _is_there(needs: tuple[str, ...], features: Mapping[str, Feature]) -> bool:
    """Return whether one of the needs has a value."""
    whole, begun = _needed(needs)
    for name, feature in features.items():
        if feature.value is not None and (name in whole or name.startswith(begun)):
            return True
    return False


@lru_cache(maxsize=64)
def _needed(needs: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names among the needs, and the beginnings of names that they stand for."""
    begun = (need if need.endswith((".", "_")) else f"{need}." for need in needs)
    return frozenset(needs), tuple(begun)


def _why(blocks: Iterable[str], features: Mapping[str, Feature]) -> str:
    """Return the words of the sources of some blocks, where they explain that nothing is there."""
    sources = {block: features.get(SOURCES.get(block, "")) for block in blocks}
    states = {
        block: str(source.value) for block, source in sources.items() if source and source.value
    }
    wrong = {block: state for block, state in states.items() if state != NOTHING_WRONG}
    if len({*wrong.values()}) > 1:
        return ", ".join(f"{SOURCE_LABELS.get(block, block)} {wrong[block]}" for block in wrong)
    return next(iter(wrong.values()), "")

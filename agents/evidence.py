"""An agent's evidence: whether it is there, whether citations are true, what a report weighs.

Pure functions over the features of a context and over reports. A feature without a value counts as
absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from agent_config import CONFIDENCE_WEIGHT, GROUNDING_TOLERANCE, UNGROUNDED_WEIGHT

from .contracts import VECTORS, AgentReport, DebateContext, Evidence, Feature, Role
from .features import Features, rows_of

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

BLOCKS: Final = {row["block"]: row for row in rows_of(Path(__file__).with_name("blocks.csv"))}
"""What a block is called where an agent says that it has nothing; of one that is fed from outside,
the feature that says why there is nothing, and what that source is called. An empty name is the
block's own.
"""

NOTHING_WRONG: Final = "available"

SCORES: Final[Mapping[str, str]] = {vector: f"scores.{vector}" for vector in VECTORS}
"""Ids of the four scores among the evidence, by vector."""


def missing(role: Role, context: DebateContext) -> str:
    """Return why a role cannot judge, "" when one of its needs has a value.

    A need names a feature, or all features whose id begins with it and a dot (the whole block
    `technical`). A need that ends in an underscore is the beginning of ids.
    """
    begun = tuple(need if need.endswith((".", "_")) else f"{need}." for need in role.needs)
    if not begun or any(
        feature.value is not None and (name in role.needs or name.startswith(begun))
        for name, feature in context.features.items()
    ):
        return ""
    parts = [need.partition(".") for need in role.needs]
    blocks = dict.fromkeys(block for block, *_ in parts)
    lacking = f"no {' or '.join(dict.fromkeys(_label(block) for block in blocks))} evidence"
    if why := _why(blocks, context.features):
        return f"{lacking}: {why}"
    names = dict.fromkeys(name for *_, part in parts if (name := part.rstrip("_")))
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


def grounded(evidence: Iterable[Evidence], features: Features) -> bool:
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


def with_scores(features: Features, context: DebateContext) -> dict[str, Feature]:
    """Return the features with the four scores among them, so that there is always one to cite."""
    scores = {
        name: Feature(name, context.scores[vector], "", context.as_of)
        for vector, name in SCORES.items()
    }
    return {**scores, **dict(features.items())}


def _label(block: str, column: str = "label") -> str:
    return BLOCKS.get(block, {}).get(column) or block


def _why(blocks: Iterable[str], features: Features) -> str:
    """Return the words of the sources of some blocks, where they explain that nothing is there."""
    wrong = {
        block: str(source.value)
        for block in blocks
        if (source := features.get(BLOCKS.get(block, {}).get("source", ""))) and source.value
        if str(source.value) != NOTHING_WRONG
    }
    if len({*wrong.values()}) > 1:
        return ", ".join(f"{_label(block, 'source_label')} {wrong[block]}" for block in wrong)
    return next(iter(wrong.values()), "")

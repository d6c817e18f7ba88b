"""What an agent has to go on: whether its evidence is there, and whether a citation is true.

Pure functions over the features of a context. A feature without a value counts as absent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from agent_config import GROUNDING_TOLERANCE

from .contracts import VECTORS, DebateContext, Evidence, Feature, Role

CASE_EVIDENCE: Final = (
    "scores.",
    "component.",
    *(
        f"technical.{name}"
        for name in (
            "rsi14",
            "macd_hist",
            "stoch_k",
            "cci20",
            "adx14",
            "plus_di",
            "minus_di",
            "support_distance_atr",
            "resistance_distance_atr",
            "trend_state",
            "bos",
            "volatility_percentile",
            "volume_ratio",
        )
    ),
    "forecast.",
    "market.",
    "memory.",
)
"""What both researchers argue from. One table for the two keeps them even."""


def missing(role: Role, context: DebateContext) -> str:
    """Return why a role cannot judge, "" when each block that it needs holds a value."""
    there = {feature.block for feature in context.features.values() if feature.value is not None}
    lacking = [block for block in role.needs if block not in there]
    return f"no {' or '.join(lacking)} evidence" if lacking else ""


def grounded(evidence: Iterable[Evidence], features: Mapping[str, Feature]) -> bool:
    """Tell whether every citation names a feature and its value, numbers within 1 %."""
    return all(_true(cited, features.get(cited.id)) for cited in evidence)


def number(features: Mapping[str, Feature], name: str) -> float | None:
    """Return a feature's value as a finite number; None when it is absent or no number."""
    feature = features.get(name)
    value = None if feature is None else feature.value
    if isinstance(value, bool | str) or value is None or not math.isfinite(value):
        return None
    return float(value)


def with_scores(features: Mapping[str, Feature], context: DebateContext) -> dict[str, Feature]:
    """Return the features with the four scores among them, so that there is always one to cite."""
    scores = {
        f"scores.{vector}": Feature(f"scores.{vector}", context.scores[vector], "", context.as_of)
        for vector in VECTORS
    }
    return {**scores, **features}


def _true(cited: Evidence, feature: Feature | None) -> bool:
    if feature is None or feature.value is None or cited.value is None:
        return False
    if isinstance(feature.value, str) or isinstance(cited.value, str):
        return feature.value == cited.value
    return abs(cited.value - feature.value) <= GROUNDING_TOLERANCE * abs(feature.value)

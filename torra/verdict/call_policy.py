"""Decides when agents are asked: the policy `pivotal` saves the calls that cannot change a verdict.

The debate moves a blended score by at most `BLEND_WEIGHT` x `ADJUSTMENT_BOUND` = 0.06. It moves a
composite by that times the share of the four vectors in it. It moves a consensus, a weighted mean
of composites, by no more than the composites in it. A tick whose consensus is HOLD by more than
that on both chains stays HOLD whatever its agents would say: nobody is asked (AGENT_SKIPPED). An
opening, and anything near one, always meets the whole desk. A sample of the skipped ticks is asked
all the same, so that what agents say there can be measured without bias; the tick's key decides
which.

Pure arithmetic. A skipped tick leaves another composite behind, which may change later ticks;
replay measures that.
"""

from __future__ import annotations

import hashlib
from typing import Final

from agents.contracts import ADJUSTMENT_BOUND, BLEND_WEIGHT, VECTORS
from torra.config import SentimentWeights, Thresholds

ROUNDING: Final = 1e-7
"""More than the roundings to 1e-8 of blend, composite and consensus can add up to."""

SEED_BITS: Final = 64


def largest_shift(weights: SentimentWeights) -> float:
    """Return by how much the desk can move a consensus at most.

    That is the sum over the fresh timeframes of (weight of the timeframe) x 0.06 x (share of the
    four vectors in the composite); the timeframe weights of a mean sum to one.
    """
    table: dict[str, float] = weights.model_dump()
    share = sum(table[vector] for vector in VECTORS) / sum(table.values())
    return BLEND_WEIGHT * ADJUSTMENT_BOUND * share


def pivotal(
    l1_consensus: float, consensus: float, weights: SentimentWeights, thresholds: Thresholds
) -> bool:
    """Return whether agents could change the verdict of a tick, or would confirm an opening.

    `l1_consensus` and `consensus` are those of the L1 chain and of the final chain as the tick
    would leave them with nobody asked.
    """
    reach = largest_shift(weights) + ROUNDING
    return any(
        value + reach >= thresholds.buy or value - reach <= -thresholds.sell
        for value in (l1_consensus, consensus)
    )


def sampled(tick: str, share: float) -> bool:
    """Return whether a tick, by its key, belongs to the sample that is asked all the same."""
    # A hash and no chance: a replay of the tick must come to the same sample.
    digest = hashlib.sha256(f"pivotal|{tick}".encode()).digest()
    drawn = int.from_bytes(digest[: SEED_BITS // 8], "big")
    return drawn < share * float(2**SEED_BITS)

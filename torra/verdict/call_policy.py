"""Decides when agents are asked: the policy `pivotal` saves the calls that cannot change a verdict.

The debate moves a blended score by at most `BLEND_WEIGHT` x `ADJUSTMENT_BOUND` = 0.06. It moves a
composite by that times the share of the four vectors in it. It moves a consensus, a weighted mean
of composites, by no more than the composites in it. A tick whose consensus is HOLD by more than
that on both chains stays HOLD whatever its agents would say: nobody is asked (AGENT_SKIPPED). What
closes with it on its instance debates at the same time, and may or may not be stored before it: so
its consensus is looked at with the L1 composites of those siblings and without them. An
opening, and anything near one, always meets the whole desk. A sample of the skipped ticks is asked
all the same, so that what agents say there can be measured without bias; the tick's key decides
which.

Pure arithmetic. A skipped tick leaves another composite behind, which may change later ticks;
replay measures that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import Final

from agents.contracts import ADJUSTMENT_BOUND, BLEND_WEIGHT, VECTORS
from torra.config import SentimentWeights, Thresholds
from torra.verdict import sentiment_rules

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


def foreseen(
    timeframe: str,
    own: float,
    close_time: datetime,
    *,
    together: Mapping[str, float],
    known: Mapping[str, tuple[datetime, Mapping[str, float]]],
    weights: Mapping[str, float],
) -> list[tuple[float, float]]:
    """Return the consensus of the L1 and of the final chain that a tick may come to, nobody asked.

    `own` is its L1 composite, `together` has those of the timeframes that closed with it, `known`
    the close time and composites by chain of the newest ticks that closed before. There is a pair
    for each choice of siblings that are stored before the tick. `weights` are the timeframes'.
    """
    pairs = []
    for present in _choices(together):
        now = {**present, timeframe: own}
        pair = [
            sentiment_rules.consensus(
                {name: (close, values[chain]) for name, (close, values) in known.items()}
                | {name: (close_time, value) for name, value in now.items()},
                weights,
                close_time,
            )
            for chain in ("l1", "final")
        ]
        pairs.append((pair[0], pair[1]))
    return pairs


def _choices(values: Mapping[str, float]) -> Iterator[dict[str, float]]:
    """Yield every choice of some values, from none of them to all."""
    for chosen in product((False, True), repeat=len(values)):
        yield {name: values[name] for name, one in zip(values, chosen, strict=True) if one}


def pivotal(
    pairs: Iterable[tuple[float, float]], weights: SentimentWeights, thresholds: Thresholds
) -> bool:
    """Return whether agents could change the verdict of a tick, or would confirm an opening.

    `pairs` are the consensus of the L1 chain and of the final chain as the tick may leave them with
    nobody asked: one for each way in which its close may go on (`foreseen`).
    """
    reach = largest_shift(weights) + ROUNDING
    return any(
        value + reach >= thresholds.buy or value - reach <= -thresholds.sell
        for pair in pairs
        for value in pair
    )


def sampled(tick: str, share: float) -> bool:
    """Return whether a tick, by its key, belongs to the sample that is asked all the same."""
    # A hash and no chance: a replay of the tick must come to the same sample.
    digest = hashlib.sha256(f"pivotal|{tick}".encode()).digest()
    drawn = int.from_bytes(digest[: SEED_BITS // 8], "big")
    return drawn < share * float(2**SEED_BITS)

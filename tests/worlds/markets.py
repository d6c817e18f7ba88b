"""Ticks whose future is known to the test, and agents that know a little of it or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.worlds.observed import quiet_ticks
from torra.evaluation.observations import AgentOpinion, TickObservation
from torra.evaluation.outcomes import HORIZONS, Outcomes

FOCUS = (1.0, 1.0, 0.5, 0.5)


def market(
    count: int, seed: int = 0, cost: float = 0.0
) -> tuple[tuple[TickObservation, ...], Outcomes]:
    """Return ticks with random L1 scores, and the outcomes of a random walk."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(0, 1, count + max(HORIZONS))
    moves = [np.convolve(steps, np.ones(h), "valid")[:count] for h in HORIZONS]
    forward = np.stack(moves, axis=1)
    scores = np.round(rng.uniform(-1, 1, (count, 4)), 8)
    ticks = [
        replace(tick, l1=tuple(row), scores=tuple(row), l1_consensus=float(row.mean()))
        for tick, row in zip(quiet_ticks(count), scores, strict=True)
    ]
    return tuple(ticks), Outcomes(HORIZONS, forward, forward - cost, -forward - cost)


def saying(
    ticks: Sequence[TickObservation], agent: str, said: np.ndarray, words: Sequence[str] = ()
) -> tuple[TickObservation, ...]:
    """Let an analyst say these adjustments, one row of four for each tick."""
    table = {"high": 1.0, "medium": 0.75, "low": 0.5}
    told = words or ["high"] * len(ticks)
    return tuple(
        replace(
            tick,
            opinions=(
                *tick.opinions,
                AgentOpinion(agent, "analyst", tuple(row), FOCUS, table[word], word),
            ),
        )
        for tick, row, word in zip(ticks, said.tolist(), told, strict=True)
    )


def knowing(future: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return adjustments that see the future with this correlation, the same on every vector."""
    seen = share * future / future.std() + np.sqrt(1 - share**2) * rng.normal(size=len(future))
    return np.repeat(np.clip(0.08 * seen, -0.3, 0.3)[:, None], 4, axis=1)

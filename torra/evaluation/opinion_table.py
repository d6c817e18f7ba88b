"""Ticks and opinions as arrays, in the order in which the ticks were given.

A vector that an agent did not score (it abstained, failed, was not asked or may not touch it) is
NaN, in these arrays only: figures and exhibits have None. Pure functions; no ticks give arrays of
length 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.contracts import VECTORS
from torra.evaluation.intervals import Floats
from torra.evaluation.observations import NOTHING, AgentOpinion, TickObservation

Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]

DESK: Final = "desk"
"""Name of the final adjustment among those of single agents."""

OPINIONS: Final = ("analyst", "researcher", "judge")
"""Kinds of agents that score; the gate does not."""


def agent_ids(ticks: Sequence[TickObservation], *kinds: str) -> tuple[str, ...]:
    """Return the agents that were asked, by first appearance; only of `kinds` if any are given."""
    found = dict.fromkeys(
        (opinion.agent_id, opinion.kind) for tick in ticks for opinion in tick.opinions
    )
    return tuple(dict.fromkeys(name for name, kind in found if not kinds or kind in kinds))


def spoke(opinion: AgentOpinion) -> bool:
    """Return whether an opinion counts: answered, and no abstention."""
    return opinion.answered and not opinion.abstained


def opinions_of(ticks: Sequence[TickObservation], agent_id: str) -> tuple[AgentOpinion | None, ...]:
    """Return an agent's opinion on each tick; its answer if it has both that and a failure."""
    found: list[AgentOpinion | None] = []
    for tick in ticks:
        own = None
        for opinion in tick.opinions:
            if opinion.agent_id == agent_id and (own is None or not own.answered):
                own = own if own and not opinion.answered else opinion
        found.append(own)
    return tuple(found)


def adjustments_of(ticks: Sequence[TickObservation], agent_id: str) -> Floats:
    """Return (ticks, 4): an agent's adjustments by vector; DESK for those of the whole desk."""
    if agent_id == DESK:
        return _table([tick.adjustments for tick in ticks])
    return _adjustment_table(opinions_of(ticks, agent_id))


def stances_of(ticks: Sequence[TickObservation], agent_id: str) -> Floats:
    """Return, per tick, the focus-weighted mean of an agent's adjustments; NaN without any."""
    own = opinions_of(ticks, agent_id)
    said, focus = _adjustment_table(own), _table([one.focus if one else NOTHING for one in own])
    weight = np.where(np.isnan(said), 0.0, focus)
    total = weight.sum(axis=1)
    # 0 / 0 is NaN on purpose: no opinion
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((weight * np.nan_to_num(said)).sum(axis=1) / total)


def l1_of(ticks: Sequence[TickObservation]) -> Floats:
    """Return (ticks, 5): the four scores of L1, and its consensus."""
    rows = [(*tick.l1, tick.l1_consensus) for tick in ticks]
    return np.array(rows, dtype=float).reshape(len(rows), len(VECTORS) + 1)


def moments_of(ticks: Sequence[TickObservation]) -> Whole:
    """Return, per tick, the number of its close time among all close times, from 0 on."""
    return ranked_moments([tick.close_time for tick in ticks])


def ranked_moments(times: Sequence[datetime]) -> Whole:
    """Return the number of each time among the distinct ones, from 0 on."""
    place = {time: number for number, time in enumerate(sorted(set(times)))}
    return np.array([place[time] for time in times], dtype=np.int64)


def streams_of(ticks: Sequence[TickObservation]) -> Whole:
    """Return, per tick, the number of its stream (instance and timeframe), from 0 on."""
    place: dict[tuple[str, str], int] = {}
    rows = [place.setdefault((tick.instance, tick.timeframe), len(place)) for tick in ticks]
    return np.array(rows, dtype=np.int64)


def _adjustment_table(own: Sequence[AgentOpinion | None]) -> Floats:
    blank = (None,) * len(VECTORS)
    return _table([one.adjustments if one and spoke(one) else blank for one in own])


def _table(rows: Sequence[Sequence[float | None]]) -> Floats:
    return np.array(rows, dtype=float).reshape(len(rows), len(VECTORS))

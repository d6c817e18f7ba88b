"""The activity of each agent, whatever it is worth: answers, abstentions, failures, lean, limits.

The lean is the mean adjustment. L1 already has a direction of its own, so a mean far from 0 is a
habit of the agent (models lean long), not a view of the market. `at bound` counts adjustments on
the role's bound, most of which were clamped there. `ungrounded` counts reports whose figures did
not fit the evidence. For the gate: how often it lowered anything, how often it vetoed, and which
factor the mere disagreement of the analysts left, which at a desk of five is nearly always below 1.
No input raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agent_config import GateSettings
from agents.contracts import ADJUSTMENT_BOUND, RESEARCHER_BOUND, VECTORS
from torra.evaluation.dependence import Estimate, lag_of, mean_estimate
from torra.evaluation.exhibits import Cell, Exhibit
from torra.evaluation.observations import TickObservation
from torra.evaluation.opinion_table import (
    OPINIONS,
    adjustments_of,
    agent_ids,
    moments_of,
    opinions_of,
    spoke,
    stances_of,
)
from torra.evaluation.power import PowerSentence
from torra.evaluation.recomposition import agreement, analysts_apart, ungrounded
from torra.evaluation.wording import count, interval_cell, listed, percent, rounded, signed

LEAST: Final = 100
"""Ticks from which on rates can be read; below they are anecdotes."""

TOUCHES: Final = 1e-9
"""An adjustment this near to its bound lies on it."""

LEAN_BARS: Final = 16
"""Bars over which an agent's lean is correlated with itself."""

NOTABLE_LEAN: Final = 0.02
"""Least mean adjustment that is reported as a lean."""


@dataclass(frozen=True, slots=True)
class Activity:
    """The activity of one agent on the ticks where it was asked; shares in [0, 1], None of nothing.

    `means` are its mean adjustments by vector, `lean` the mean of its stance with its interval,
    `moved` its mean absolute adjustment.
    """

    agent: str
    asked: int
    failed: float | None
    abstained: float | None
    means: tuple[float | None, ...]
    lean: Estimate | None
    mean_lean: float | None
    moved: float | None
    at_bound: float | None
    ungrounded: float | None


@dataclass(frozen=True, slots=True)
class Restraint:
    """The restraint of the gate on `ticks` ticks on which an opinion was heard; shares in [0, 1].

    `agreement` is the mean factor that the analysts' disagreement left, `disagreed` how often it
    was below 1.
    """

    ticks: int
    attenuated: float | None
    multiplier: float | None
    vetoed: float | None
    rule_vetoed: float | None
    disagreed: float | None
    agreement: float | None


def activity(ticks: Sequence[TickObservation]) -> tuple[Activity, ...]:
    """Return the activity of each analyst, researcher and judge."""
    return tuple(_activity(ticks, agent) for agent in agent_ids(ticks, *OPINIONS))


def restraint(ticks: Sequence[TickObservation], gate: GateSettings) -> Restraint:
    """Return how often and how far the gate held the desk back."""
    heard = [t for t in ticks if any(o.kind in OPINIONS and o.answered for o in t.opinions)]
    if not heard:
        return Restraint(0, None, None, None, None, None, None)
    # computed again: the record has the product of all factors only
    left = agreement(analysts_apart(heard), gate)
    return Restraint(
        len(heard),
        _share(tick.multiplier < 1.0 for tick in heard),
        float(np.mean([tick.multiplier for tick in heard])),
        _share(tick.veto for tick in heard),
        _share(tick.rule_veto for tick in heard),
        float((left < 1.0).mean()),
        float(left.mean()),
    )


def activity_exhibit(ticks: Sequence[TickObservation]) -> Exhibit:
    """Return the table of the agents' activity."""
    found = activity(ticks)
    rows: list[tuple[Cell, ...]] = [
        (
            one.agent,
            one.asked,
            percent(one.failed, 1),
            percent(one.abstained, 1),
            *(rounded(mean, 4) for mean in one.means),
            rounded(one.mean_lean, 4),
            interval_cell(one.lean, 4),
            percent(one.at_bound, 1),
            percent(one.ungrounded, 1),
        )
        for one in found
    ]
    figures: dict[str, float | None] = {}
    for one in found:
        figures[f"lean.{one.agent}"] = one.mean_lean
        figures[f"failed.{one.agent}"] = one.failed
        figures[f"abstained.{one.agent}"] = one.abstained
    heads = ("agent", "asked", "failed", "abstained", *VECTORS)
    return Exhibit(
        name="activity",
        title="What the agents do",
        columns=(*heads, "lean", "95 %", "at bound", "ungrounded"),
        rows=tuple(rows),
        **_show(found)._asdict(),
        figures=figures,
    )


def restraint_exhibit(ticks: Sequence[TickObservation], gate: GateSettings) -> Exhibit:
    """Return the table of the gate's restraint."""
    found = restraint(ticks, gate)
    rows: tuple[tuple[Cell, ...], ...] = (
        ("ticks with an opinion", found.ticks),
        ("multiplier below 1", percent(found.attenuated, 1)),
        ("mean multiplier", rounded(found.multiplier, 3)),
        ("analysts disagree", percent(found.disagreed, 1)),
        ("mean factor that disagreement leaves", rounded(found.agreement, 3)),
        ("vetoed", percent(found.vetoed, 1)),
        ("vetoed by the rules", percent(found.rule_vetoed, 1)),
    )
    says = "No opinion was heard, so there was nothing to hold back."
    if found.ticks:
        says = (
            f"On {count(found.ticks, 'tick')} with an opinion the gate left "
            f"{percent(found.multiplier)} of the agents' shift; disagreement alone left "
            f"{percent(found.agreement)} and lowered it on {percent(found.disagreed)} of them. "
            "Whether that paid is another table's question."
        )
    return Exhibit(
        name="restraint",
        title="How the gate holds the desk back",
        columns=("what", "value"),
        rows=rows if found.ticks else (),
        says=says,
        enough=found.ticks >= LEAST,
        figures={
            "attenuated": found.attenuated,
            "multiplier": found.multiplier,
            "disagreed": found.disagreed,
            "agreement": found.agreement,
            "vetoed": found.vetoed,
        },
    )


def _activity(ticks: Sequence[TickObservation], agent: str) -> Activity:
    asked = [one for one in opinions_of(ticks, agent) if one is not None]
    said, stance = adjustments_of(ticks, agent), stances_of(ticks, agent)
    values = said[~np.isnan(said)]
    heard = [one for one in asked if spoke(one)]
    bound = ADJUSTMENT_BOUND if asked[0].kind == "analyst" else RESEARCHER_BOUND
    leans = stance[~np.isnan(stance)]
    return Activity(
        agent=agent,
        asked=len(asked),
        failed=_share(not one.answered for one in asked),
        abstained=_share(one.abstained for one in asked),
        means=tuple(_mean(column[~np.isnan(column)]) for column in said.T),
        lean=mean_estimate(stance, moments_of(ticks), lag_of(ticks, LEAN_BARS)),
        mean_lean=_mean(leans),
        moved=_mean(np.abs(values)),
        at_bound=_mean(np.abs(values) >= bound - TOUCHES),
        ungrounded=_share(ungrounded(one) for one in heard),
    )


def _share(flags: Iterable[bool]) -> float | None:
    told = list(flags)
    return sum(told) / len(told) if told else None


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None


def _show(found: Sequence[Activity]) -> PowerSentence:
    if not found:
        return PowerSentence("No agent was asked.", enough=False)
    most = max(one.asked for one in found)
    told = f"The agents were asked on up to {count(most, 'tick')}."
    leaning = [one for one in found if _leans(one)]
    if leaning:
        names = listed([f"{one.agent} ({signed(one.mean_lean, 3)})" for one in leaning])
        told += (
            f" A lean to one side, beyond chance: {names}. L1 has the direction already, so a lean "
            "is a habit."
        )
    if most < LEAST:
        told += f" That is few: rates take about {LEAST} ticks."
    return PowerSentence(told, most >= LEAST or bool(leaning))


def _leans(one: Activity) -> bool:
    if one.lean is None or abs(one.lean.value) < NOTABLE_LEAN:
        return False
    # beyond chance as well: a large mean of few words is none
    return one.lean.low > 0.0 or one.lean.high < 0.0

"""Attribution of the desk's worth to its analysts: leave-one-out, and the Shapley value.

A desk's worth is what its shift of the scores earned a tick. `direction` takes the net forward
outcome in the direction in which the desk moved the composite. `verdict` takes how much more the
verdicts that it changed earned than those of L1 alone.
Every subset of the analysts is recomposed from the recorded words (torra.evaluation.recomposition),
with the debate off, without a judge and with the gate as its rules have it, which is exact. An
analyst's Shapley value is its marginal worth averaged over all orders of joining, so the values add
up to the worth of all.
Leave-one-out is what is lost when that analyst alone leaves. Both are means over ticks, with the
errors of torra.evaluation.dependence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

import numpy as np

from agents.contracts import VECTORS
from torra.evaluation.dependence import Estimate, lag_of, mean_estimate
from torra.evaluation.exhibits import (
    Columns,
    Exhibit,
    Plot,
    PlotLine,
    contents,
    interval,
    number,
)
from torra.evaluation.intervals import Floats
from torra.evaluation.observations import ArmObservation
from torra.evaluation.opinion_table import Flags, moments_of
from torra.evaluation.outcomes import Outcomes
from torra.evaluation.power import mean_count, sample_size_sentence
from torra.evaluation.recomposition import BrainNumbers, Chains, Changes, Recording, verdicts_of
from torra.evaluation.wording import count, listed, signed

Worth = Literal["direction", "verdict"]
Coalition = frozenset[str]

MOST_ANALYSTS: Final = 6
"""A larger desk gets no attribution: every subset is recomposed, 64 of them at most."""

HORIZON: Final = 4
"""Bars over which the worth is measured."""

NOTABLE: Final = 0.10
"""A worth worth finding, in ATR on a tick on which the desk made a difference."""

USUAL_SD: Final = 1.7
"""Standard deviation of outcomes over HORIZON in ATR, on the shipped bars, for want of a sample."""

LEAST_MOVED: Final = 30
"""Ticks on which an analyst must have made a difference before its share has an interval, and the
desk before its outcomes have a spread of their own."""

TITLES: Final[Mapping[Worth, str]] = {
    "direction": "by the way the scores were moved",
    "verdict": "by the verdicts that were changed",
}


@dataclass(frozen=True, slots=True)
class Contribution:
    """The worth that one analyst adds, in ATR a tick, net of costs; None if it is not known."""

    agent: str
    shapley: float | None
    estimate: Estimate | None
    alone: float | None
    left_out: float | None


@dataclass(frozen=True, slots=True)
class Attribution:
    """The contributions of the analysts; `whole` is the worth of all of them together.

    `n` ticks have an outcome; on `moved` of them the whole desk moved the composite (direction) or
    changed the verdict (verdict), and `sd` is the spread of what it earned there.
    """

    worth: Worth
    horizon: int
    n: int
    moved: int
    whole: float | None
    sd: float | None
    contributions: tuple[Contribution, ...]


def attribution(
    arm: ArmObservation,
    outcomes: Outcomes,
    brain: BrainNumbers,
    *,
    worth: Worth = "direction",
    horizon: int = HORIZON,
) -> Attribution:
    """Return the contribution of each analyst of an arm; `outcomes` are those of the arm's ticks.

    An arm with more than MOST_ANALYSTS has no contributions.
    """
    recording = Recording(arm.ticks, brain)
    names = recording.analysts
    if not names or len(names) > MOST_ANALYSTS:
        return Attribution(worth, horizon, 0, 0, None, None, ())
    market = _Market(arm, recording, outcomes, brain, worth, horizon)
    values = {coalition: market.worth(coalition) for coalition in coalitions(names)}
    whole = values[frozenset(names)]
    there = ~np.isnan(whole)
    if not there.any():
        return Attribution(worth, horizon, 0, 0, None, None, ())
    moved = market.moved(frozenset(names))
    moments, lag = moments_of(arm.ticks), lag_of(arm.ticks, horizon)
    parts = {name: shapley(values, names, name) for name in names}
    contributions = tuple(
        Contribution(
            name,
            float(parts[name][there].mean()),
            mean_estimate(parts[name], moments, lag)
            if np.count_nonzero(parts[name][there]) >= LEAST_MOVED
            else None,
            float(values[frozenset([name])][there].mean()),
            float((whole - values[frozenset(names) - {name}])[there].mean()),
        )
        for name in names
    )
    return Attribution(
        worth,
        horizon,
        int(there.sum()),
        int((there & moved).sum()),
        float(whole[there].mean()),
        float(whole[there & moved].std()) if (there & moved).sum() >= LEAST_MOVED else None,
        contributions,
    )


COLUMNS: Final[Columns] = {
    "analyst": "agent",
    "Shapley": number("shapley", 4),
    "95 %": interval("estimate", 4),
    "lost without it": number("left_out", 4),
    "alone": number("alone", 4),
}


def attribution_exhibit(found: Attribution, name: str = "attribution") -> Exhibit:
    """Return the table of contributions, largest first, and their plot."""
    order = sorted(found.contributions, key=lambda one: -(one.shapley or 0.0))
    whole = Contribution("all together", found.whole, None, None, None)
    needed = mean_count(NOTABLE, found.sd or USUAL_SD)
    figures: dict[str, float | None] = {f"shapley.{one.agent}": one.shapley for one in order}
    figures |= {f"left_out.{one.agent}": one.left_out for one in order}
    return Exhibit(
        name=name,
        title=f"What each analyst adds {TITLES[found.worth]}, over {count(found.horizon, 'bar')}",
        **contents(COLUMNS, [*order, whole] if order else ()),
        figures={**figures, "whole": found.whole, "moved": found.moved},
        says=_says(found, needed),
        enough=_enough(found, needed),
        plots=(_plot(order),) if order else (),
    )


class _Market:
    """The earnings of coalitions of an arm, tick by tick."""

    def __init__(
        self,
        arm: ArmObservation,
        recording: Recording,
        outcomes: Outcomes,
        brain: BrainNumbers,
        worth: Worth,
        horizon: int,
    ) -> None:
        column = outcomes.place(horizon)
        self._long, self._short = outcomes.long[:, column], outcomes.short[:, column]
        self._recording, self._brain, self._worth = recording, brain, worth
        table: dict[str, float] = brain.weights.model_dump()
        self._weights = np.array([table[vector] for vector in VECTORS])
        self._chains = Chains(arm.ticks, brain)
        self._plain = self._verdicts(recording.l1)

    def worth(self, coalition: Coalition) -> Floats:
        """Return the earnings of a coalition on each tick, NaN if the outcome is not known."""
        side, plain = self._sides(coalition)
        return self._earned(side) - self._earned(plain)

    def moved(self, coalition: Coalition) -> Flags:
        """Return the ticks on which the coalition made a difference."""
        side, plain = self._sides(coalition)
        return np.asarray(side != plain)

    def _sides(self, coalition: Coalition) -> tuple[Floats, Floats]:
        # counted: words that were said in shadow are worth what they would have earned
        changes = Changes(coalition, researchers=False, judge=False, gate="rules", counted=True)
        moves = self._recording.moves(changes)
        if self._worth == "verdict":
            return self._verdicts(moves.scores), self._plain
        side = np.sign(moves.adjustments @ self._weights)
        # a tick without a word keeps its recorded adjustment, which is no analyst's
        return np.asarray(np.where(self._recording.heard, side, 0.0)), np.zeros(len(side))

    def _verdicts(self, scores: Floats) -> Floats:
        return verdicts_of(self._chains.consensus(scores), self._brain.thresholds).astype(float)

    def _earned(self, side: Floats) -> Floats:
        earned = np.where(side > 0, self._long, np.where(side < 0, self._short, 0.0))
        # a flat side earns 0 only where the outcome is known at all
        return np.asarray(np.where(np.isnan(self._long), np.nan, earned))


def _says(found: Attribution, needed: int | None) -> str:
    need = sample_size_sentence(
        needed, found.moved, "moved tick", f"a worth of {signed(NOTABLE)} ATR on each"
    )
    if not found.contributions:
        return f"No analyst's worth can be told: no words, or no outcomes. {need}"
    how = "changed the verdict" if found.worth == "verdict" else "moved the composite"
    if not found.moved:
        what = "No verdict was changed" if found.worth == "verdict" else "No composite was moved"
        return f"{what} on {count(found.n, 'tick')}, so nothing can be told. {need}"
    start = f"The analysts {how} on {found.moved:,} of {count(found.n, 'tick')}"
    if not _enough(found, needed):
        return f"{start}, so nobody is named. {need}"
    sure = [one for one in found.contributions if one.estimate and _clear(one.estimate)]
    if not sure:
        return f"{start}; no analyst's contribution stands out from chance. {need}"
    told = listed([f"{one.agent} ({signed(one.shapley, 3)})" for one in sure])
    return f"{start}; beyond chance are {told}, each taken alone. {need}"


def _enough(found: Attribution, needed: int | None) -> bool:
    return needed is not None and found.moved >= needed


def _clear(told: Estimate) -> bool:
    return told.low > 0.0 or told.high < 0.0


def _plot(order: Sequence[Contribution]) -> Plot:
    line = PlotLine(
        name="Shapley value",
        points=tuple((one.agent, one.shapley) for one in order),
        low=tuple(one.estimate.low if one.estimate else None for one in order),
        high=tuple(one.estimate.high if one.estimate else None for one in order),
    )
    return Plot(
        title="Agent contributions", kind="bars", lines=(line,), x="analyst", y="ATR a tick, net"
    )


def coalitions(names: Sequence[str]) -> list[Coalition]:
    """Return every subset of the names, the empty one first."""
    sizes = range(len(names) + 1)
    return [frozenset(chosen) for size in sizes for chosen in combinations(names, size)]


def shapley(values: dict[Coalition, Floats], names: Sequence[str], name: str) -> Floats:
    """Return, per tick, the marginal value of `name` averaged over all orders of joining.

    Each coalition S without it counts |S|! (n - |S| - 1)! / n! (Shapley 1953).
    """
    others = [other for other in names if other != name]
    size = len(names)
    total = np.zeros_like(values[frozenset()])
    for coalition in coalitions(others):
        first = len(coalition)
        weight = math.factorial(first) * math.factorial(size - first - 1) / math.factorial(size)
        total = total + weight * (values[coalition | {name}] - values[coalition])
    return total

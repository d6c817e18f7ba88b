"""Consistency: the same tick asked k times, and whether an agent then says the same.

It is judged on the adjustment before the blend, because the final score moves by 0.06 at most and
would look consistent whatever the agents said. Within is the spread of the runs of one tick,
between that of the ticks. From the one-way analysis of variance comes ICC(1) (Shrout and Fleiss
1979), the share of all variance that belongs to the tick. An agent whose within is not below its
between says more about itself than about the market: a noise source, which should count for nothing
or be averaged. The criterion is that every run lies within CRITERION of the mean of its tick. Fewer
than two runs of a tick give None; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.random import Generator

from agents.contracts import SCORE_DECIMALS, VECTORS
from torra.evaluation.exhibits import Columns, Exhibit, contents, interval, number
from torra.evaluation.intervals import Floats, Interval, percentile_interval
from torra.evaluation.observations import TickObservation
from torra.evaluation.opinion_table import DESK, OPINIONS, adjustments_of, agent_ids
from torra.evaluation.wording import count, listed, percent

Runs = Sequence[Sequence[TickObservation]]
"""For each tick its runs."""

CRITERION: Final = 0.05
"""How far a run may lie from the mean of its tick (document 001, criterion 3)."""

ENOUGH: Final = 20
"""Least ticks for a comparison of within and between; five runs of each are usual."""

DRAWS: Final = 500


@dataclass(frozen=True, slots=True)
class Spread:
    """The repeatability of one agent on one vector.

    `ticks` were scored twice or more, in `runs` runs together. `within` and `between` are standard
    deviations, `icc` has its bootstrap interval over ticks; `furthest` is the largest distance of
    a run from the mean of its tick, `kept` the share of ticks on which none exceeds CRITERION.
    """

    agent: str
    vector: str
    ticks: int
    runs: int
    within: float | None = None
    between: float | None = None
    icc: float | None = None
    interval: Interval | None = None
    furthest: float | None = None
    kept: float | None = None

    @property
    def noise(self) -> bool | None:
        """Return whether within is not below between; None if it is not known."""
        if self.within is None or self.between is None or self.ticks < 2:
            return None
        return self.within > 0.0 and self.within >= self.between


@dataclass(frozen=True, slots=True)
class Flips:
    """Verdicts under repetition: of `pairs` pairs of runs of one tick, `flipped` differ."""

    ticks: int
    changed: int
    pairs: int
    flipped: int

    @property
    def rate(self) -> float | None:
        """Return the chance that two runs of one tick have different verdicts."""
        return self.flipped / self.pairs if self.pairs else None


def spreads(runs: Runs, rng: Generator | None = None, draws: int = DRAWS) -> tuple[Spread, ...]:
    """Return the repeatability of the desk and of every agent, vector by vector."""
    flat = [tick for own in runs for tick in own]
    group = np.repeat(np.arange(len(runs)), [len(own) for own in runs])
    found = []
    for agent in (DESK, *agent_ids(flat, *OPINIONS)):
        for vector, column in zip(VECTORS, adjustments_of(flat, agent).T, strict=True):
            there = ~np.isnan(column)
            values = [column[there & (group == number)] for number in range(len(runs))]
            found.append(spread_of(agent, vector, values, rng, draws))
    return tuple(one for one in found if one.runs or one.agent == DESK)


def spread_of(
    agent: str,
    vector: str,
    values: Sequence[Floats],
    rng: Generator | None = None,
    draws: int = DRAWS,
) -> Spread:
    """Return the spread of repeated numbers, one array for each tick."""
    own = [runs for runs in values if len(runs) > 1]
    total = sum(len(runs) for runs in own)
    if not own:
        return Spread(agent, vector, 0, 0)
    table = np.array([[len(runs), runs.mean(), runs.var() * len(runs)] for runs in own])
    # rounded: a distance of exactly CRITERION must not fail by the last bit of a float
    far = [round(float(np.abs(runs - runs.mean()).max()), SCORE_DECIMALS) for runs in own]
    within, between, icc = variance_parts(table)
    return Spread(
        agent,
        vector,
        len(own),
        total,
        within,
        between,
        icc,
        _interval(table, rng, draws) if rng is not None else None,
        max(far),
        sum(distance <= CRITERION for distance in far) / len(far),
    )


def variance_parts(table: Floats) -> tuple[float | None, float | None, float | None]:
    """Return the standard deviations within and between, and ICC(1).

    `table` has for each tick its number of runs, their mean and their sum of squares about it. With
    k runs of each, ICC(1) = (MSB - MSW) / (MSB + (k - 1) MSW); k is the usual mean for unequal ones
    and the variance between is not below 0.
    """
    sizes, means, squares = table.T
    ticks, total = len(table), float(sizes.sum())
    within = float(squares.sum()) / (total - ticks) if total > ticks else None
    if within is None or ticks < 2:
        return (None if within is None else math.sqrt(within)), None, None
    grand = float(sizes @ means) / total
    above = float(sizes @ (means - grand) ** 2) / (ticks - 1)
    typical = (total - float(sizes @ sizes) / total) / (ticks - 1)
    spread = above + (typical - 1.0) * within
    between = math.sqrt(max(0.0, (above - within) / typical))
    return math.sqrt(within), between, (above - within) / spread if spread > 0.0 else None


def flips(runs: Runs) -> Flips:
    """Return how often repetition changes the verdict."""
    told = [[tick.verdict for tick in own] for own in runs if len(own) > 1]
    pairs = [one != other for own in told for one, other in combinations(own, 2)]
    changed = sum(len(set(own)) > 1 for own in told)
    return Flips(len(told), changed, len(pairs), sum(pairs))


def furthest(found: Sequence[Spread]) -> float | None:
    """Return the largest distance of a run of the desk from the mean of its tick, on any vector."""
    far = [one.furthest for one in found if one.agent == DESK and one.furthest is not None]
    return max(far, default=None)


COLUMNS: Final[Columns] = {
    "agent": "agent",
    "vector": "vector",
    "ticks": "ticks",
    "within": number("within", 4),
    "between": number("between", 4),
    "ICC": number("icc", 3),
    "95 %": interval("interval"),
    "furthest": number("furthest", 3),
    "noise": "noise",
}


def repetition_exhibit(runs: Runs, rng: Generator | None = None) -> Exhibit:
    """Return the table of how the desk and its agents repeat themselves."""
    found, verdicts = spreads(runs, rng), flips(runs)
    figures: dict[str, float | None] = {
        "furthest": furthest(found),
        "flip_rate": verdicts.rate,
        "ticks": verdicts.ticks,
        "changed": verdicts.changed,
    }
    for one in found:
        figures[f"within.{one.agent}.{one.vector}"] = one.within
        figures[f"icc.{one.agent}.{one.vector}"] = one.icc
    return Exhibit(
        name="consistency",
        title="The same tick, asked again",
        **contents(COLUMNS, (one for one in found if one.ticks)),
        figures=figures,
        says=_says(found, verdicts),
        enough=verdicts.ticks >= ENOUGH,
    )


def _says(found: Sequence[Spread], verdicts: Flips) -> str:
    far = furthest(found)
    if far is None:
        return (
            f"No tick was asked twice. A comparison takes about {ENOUGH} ticks of five runs each."
        )
    met = "within" if far <= CRITERION else "not within"
    told = (
        f"Repeated, the desk's adjustments lie up to {far:.3f} from the mean of their tick, {met} "
        f"the {CRITERION} of the criterion; {verdicts.changed} of {count(verdicts.ticks, 'tick')} "
        f"changed their verdict ({percent(verdicts.rate, 1)} of pairs of runs)."
    )
    loud = list(dict.fromkeys(one.agent for one in found if one.noise))
    if loud:
        told += (
            f" No steadier on one tick than over all of them, so a noise source: {listed(loud)}."
        )
    if verdicts.ticks < ENOUGH:
        told += f" That is few: it takes about {ENOUGH} ticks."
    return told


def _interval(table: Floats, rng: Generator, draws: int) -> Interval | None:
    """Return the percentile interval of ICC(1) over resampled ticks."""
    size = len(table)
    if size < 3:
        return None
    picked = rng.integers(0, size, size=(draws, size))
    found = [variance_parts(table[chosen])[2] for chosen in picked]
    return percentile_interval([value for value in found if value is not None], draws)

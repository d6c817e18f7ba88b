"""Information that an agent adds to L1, as rank information coefficients.

For an agent, a vector and a horizon, three things are ranked within their stream: the adjustment,
the forward move of the price (in ATR, before costs), and the controls (the four scores of L1 and
its consensus). The ranks of the controls are regressed out of the other two. The coefficient is the
correlation of what is left, so no agent is credited with L1's skill, nor with leaning the way L1
leans. Without the controls it is Spearman's coefficient. Its error allows for overlapping outcomes
and for streams that move together (torra.evaluation.dependence); q is p after Benjamini and
Hochberg (1995) over all that was tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.random import Generator

from agents.contracts import VECTORS
from torra.evaluation.dependence import (
    Estimate,
    bootstrap_correlation,
    lag_of,
    slope_estimate,
)
from torra.evaluation.exhibits import Cell, Exhibit, Plot, PlotLine
from torra.evaluation.intervals import LEVEL, Floats, Interval
from torra.evaluation.multiple import benjamini_hochberg
from torra.evaluation.observations import TickObservation
from torra.evaluation.opinion_table import (
    DESK,
    OPINIONS,
    Flags,
    Whole,
    adjustments_of,
    agent_ids,
    l1_of,
    moments_of,
    stances_of,
    streams_of,
)
from torra.evaluation.outcomes import Outcomes
from torra.evaluation.power import NOTABLE_IC, PowerSentence, finding, information_count
from torra.evaluation.wording import count, interval_cell, listed, rounded, signed

ALL: Final = "all"
"""In place of a vector: an agent's adjustments as one, or the desk's shift of the consensus."""

LEAST: Final = 600
"""Least ticks for a coefficient. Words and controls that persist leave too little independence, and
an interval of 100 to 400 ticks is too narrow (docs/scorecard.md has the levels).
"""

DRAWS: Final = 500
SHOWN_HORIZON: Final = 4
"""Bars of the horizon that the plot and the split by regime show."""

ALONE: Final = 1e-6
"""Share of a rank's variance that must be left after L1; below it the agent repeats L1."""

NONE: Final[Floats] = np.empty(0)
"""No controls: what is left is the value itself, centred."""

FALSE_SHARE: Final = 1 - LEVEL
"""Largest q that counts as a finding: the share of false ones among all findings."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """The information coefficient of one agent on one vector at one horizon.

    `n` ticks have both adjustment and outcome. `estimate` is residual on L1, `plain` Spearman's;
    `drawn` is the bootstrap's interval. None where the sample is too small, or where the agent's
    word follows from L1. `group` names a regime, a session or a state where only that was looked
    at.
    """

    agent: str
    vector: str
    horizon: int
    n: int
    estimate: Estimate | None = None
    plain: float | None = None
    drawn: Interval | None = None
    q: float | None = None
    group: str = ""

    @property
    def name(self) -> str:
        """The coefficient's name among the figures of an exhibit."""
        parts = (self.agent, self.vector, str(self.horizon), *([self.group] if self.group else []))
        return ".".join(parts)


def coefficients(
    ticks: Sequence[TickObservation],
    outcomes: Outcomes,
    *,
    rng: Generator | None = None,
    draws: int = DRAWS,
) -> tuple[Coefficient, ...]:
    """Return the coefficients of every agent, vector and horizon, and of the desk as a whole.

    `outcomes` are those of the ticks. With a generator each has a bootstrap interval too.
    """
    if not ticks:
        return ()
    said = [
        (agent, vector, column)
        for agent in (*agent_ids(ticks, *OPINIONS), DESK)
        for vector, column in _columns(ticks, agent)
    ]
    found = _measured(ticks, outcomes, said, outcomes.horizons, rng=rng, draws=draws)
    # over all at once: q allows for everything that was tried
    return false_discoveries(found)


def by_group(
    ticks: Sequence[TickObservation],
    outcomes: Outcomes,
    group: Callable[[TickObservation], str],
    horizon: int = SHOWN_HORIZON,
) -> tuple[Coefficient, ...]:
    """Return each agent's coefficient of all its adjustments as one, within each group of ticks."""
    names = np.array([group(tick) for tick in ticks], dtype=object)
    said = [
        (agent, vector, column)
        for agent in (*agent_ids(ticks, *OPINIONS), DESK)
        for vector, column in _columns(ticks, agent)
        if vector == ALL
    ]
    found: list[Coefficient] = []
    for name in sorted(set(names) - {""}):
        own = _measured(ticks, outcomes, said, (horizon,), within=names == name)
        found += [replace(one, group=str(name)) for one in own]
    return false_discoveries(found)


def false_discoveries(found: Iterable[Coefficient]) -> tuple[Coefficient, ...]:
    """Return the coefficients with q, the smallest share of false findings at which one counts.

    Benjamini and Hochberg (1995) over those that have an estimate.
    """
    kept = tuple(found)
    values = benjamini_hochberg([one.estimate.p if one.estimate else None for one in kept])
    return tuple(replace(one, q=q) for one, q in zip(kept, values, strict=True))


def ranks_within(values: Floats, streams: Whole) -> Floats:
    """Return the ranks of values within each stream, ties in the middle, scaled to (-0.5, 0.5)."""
    found = np.empty(values.shape)
    for stream in np.unique(streams):
        own = streams == stream
        found[own] = (_ranks(values[own]) - 0.5) / own.sum() - 0.5
    return found


def residual(values: Floats, controls: Floats) -> Floats | None:
    """Return what the controls (n, k) do not explain, scaled to mean 0 and unit variance.

    None if nothing is left: the values are all equal, or follow from the controls.
    """
    centred = values - values.mean()
    spread = float(centred @ centred)
    if spread <= 0.0:
        return None
    if controls.size:
        table = np.column_stack([np.ones(len(values)), controls])
        inverse = np.linalg.pinv(table.T @ table, hermitian=True)  # much faster than lstsq
        centred = centred - table @ (inverse @ (table.T @ centred))
    left = float(centred @ centred)
    if left <= ALONE * spread:
        return None
    return np.asarray(centred / math.sqrt(left / len(values)))


def information_exhibit(found: Sequence[Coefficient]) -> Exhibit:
    """Return the table of coefficients, one row for each agent and vector."""
    horizons = sorted({one.horizon for one in found})
    heads = [f"IC {count(horizon, 'bar')}" for horizon in horizons]
    rows = [
        _row([one for one in found if (one.agent, one.vector) == who], horizons)
        for who in dict.fromkeys((one.agent, one.vector) for one in found if one.n)
    ]
    figures: dict[str, float | None] = {}
    for one in found:
        figures[f"ic.{one.name}"] = one.estimate.value if one.estimate else None
        figures[f"q.{one.name}"] = one.q
    return Exhibit(
        name="information",
        title="What each agent knows that L1 does not",
        columns=("agent", "vector", "ticks", *heads, "95 %, best", "p", "q"),
        rows=tuple(rows),
        **_show(found)._asdict(),
        plots=(_plot(found),) if any(one.estimate for one in found) else (),
        figures=figures,
    )


def groups_exhibit(found: Sequence[Coefficient], word: str) -> Exhibit:
    """Return the coefficients by group; `word` says what the groups are, "regime" for one."""
    rows: list[tuple[Cell, ...]] = [
        (one.agent, one.group, one.n, *_cells(one), rounded(one.q, 3)) for one in found if one.n
    ]
    horizon = found[0].horizon if found else SHOWN_HORIZON
    return Exhibit(
        name=f"information-by-{word}",
        title=f"Information by {word}, over {count(horizon, 'bar')}",
        columns=("agent", word, "ticks", "IC", "95 %", "p", "q"),
        rows=tuple(rows),
        **_show(found)._asdict(),
        figures={f"ic.{one.name}": one.estimate.value if one.estimate else None for one in found},
    )


def _columns(ticks: Sequence[TickObservation], agent: str) -> Iterable[tuple[str, Floats]]:
    table = adjustments_of(ticks, agent)
    yield from zip(VECTORS, table.T, strict=True)
    if agent == DESK:
        yield ALL, np.array([tick.consensus - tick.l1_consensus for tick in ticks])
    else:
        yield ALL, stances_of(ticks, agent)


def _measured(
    ticks: Sequence[TickObservation],
    outcomes: Outcomes,
    said: Sequence[tuple[str, str, Floats]],
    horizons: Sequence[int],
    *,
    within: Flags | None = None,
    rng: Generator | None = None,
    draws: int = 0,
) -> list[Coefficient]:
    market = MeasuredMarket(ticks, outcomes, within)
    return [
        market.coefficient(agent, vector, column, horizon, rng, draws)
        for agent, vector, column in said
        for horizon in horizons
    ]


@dataclass(frozen=True, slots=True)
class _Ground:
    """The ranks that every column on the same ticks shares: all but the agent's own."""

    used: Flags
    streams: Whole
    moments: Whole
    controls: Floats
    future: Floats
    rest: Floats | None


class MeasuredMarket:
    """The controls and outcomes of all coefficients, as arrays made once; `within` picks ticks."""

    def __init__(
        self, ticks: Sequence[TickObservation], outcomes: Outcomes, within: Flags | None = None
    ) -> None:
        self._outcomes = outcomes
        self._within = np.ones(len(ticks), dtype=bool) if within is None else within
        self._controls = l1_of(ticks)
        self._streams, self._moments = streams_of(ticks), moments_of(ticks)
        self._lags = {horizon: lag_of(ticks, horizon) for horizon in outcomes.horizons}
        self._grounds: dict[int, _Ground] = {}

    def coefficient(
        self,
        agent: str,
        vector: str,
        column: Floats,
        horizon: int,
        rng: Generator | None = None,
        draws: int = DRAWS,
    ) -> Coefficient:
        """Return the coefficient of a column of adjustments, one for each tick, NaN for none."""
        future = self._outcomes.forward[:, self._outcomes.place(horizon)]
        used = self._within & ~np.isnan(column) & ~np.isnan(future)
        blank = Coefficient(agent, vector, horizon, int(used.sum()))
        if blank.n < LEAST:
            return blank
        ground, lag = self._ground(used, future, horizon), self._lags[horizon]
        said = ranks_within(column[used], ground.streams)
        plain = _correlation(residual(said, NONE), residual(ground.future, NONE))
        own, rest = residual(said, ground.controls), ground.rest
        if own is None or rest is None:
            return replace(blank, plain=plain)
        moments = ground.moments
        return replace(
            blank,
            estimate=slope_estimate(own, rest, moments, lag),
            plain=plain,
            drawn=bootstrap_correlation(own, rest, moments, lag, rng, draws) if rng else None,
        )

    def _ground(self, used: Flags, future: Floats, horizon: int) -> _Ground:
        """Return the ranks of the controls and of the future on these ticks; the last is kept."""
        held = self._grounds.get(horizon)
        if held is not None and np.array_equal(held.used, used):
            return held
        streams = self._streams[used]
        ranks = ranks_within(future[used], streams)
        controls = [ranks_within(column[used], streams) for column in self._controls.T]
        table = np.column_stack(controls)
        self._grounds[horizon] = _Ground(
            used, streams, self._moments[used], table, ranks, residual(ranks, table)
        )
        return self._grounds[horizon]


def _ranks(values: Floats) -> Floats:
    """Return ranks from 1 on, ties in the middle."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[place])


def _correlation(x: Floats | None, y: Floats | None) -> float | None:
    return None if x is None or y is None else float(x @ y) / len(x)


def _row(own: Sequence[Coefficient], horizons: Sequence[int]) -> tuple[Cell, ...]:
    values = {one.horizon: one.estimate.value for one in own if one.estimate}
    best = min((one for one in own if one.estimate), key=_p, default=None)
    return (
        own[0].agent,
        own[0].vector,
        max(one.n for one in own),
        *(rounded(values.get(horizon), 3) for horizon in horizons),
        *(_cells(best)[1:] if best else (None, None)),
        rounded(best.q, 3) if best else None,
    )


def _cells(one: Coefficient) -> tuple[Cell, Cell, Cell]:
    if one.estimate is None:
        return None, None, None
    told = one.estimate
    return rounded(told.value, 3), interval_cell(told, 3), rounded(told.p, 4)


def _p(one: Coefficient) -> float:
    return one.estimate.p if one.estimate else 1.0


def _show(found: Sequence[Coefficient]) -> PowerSentence:
    most = max((one.n for one in found), default=0)
    needed, effect = information_count(NOTABLE_IC), f"a coefficient of {NOTABLE_IC}"
    tried = [one for one in found if one.estimate is not None and one.q is not None]
    sure = [one for one in tried if one.q is not None and one.q <= FALSE_SHARE]
    if not tried:
        text = "No coefficient here: too few ticks, or words that only repeat L1."
    elif not sure:
        text = f"None of the {len(tried)} coefficients tried stands out from chance."
    else:
        text = _sure_say(sure, len(tried))
    return finding(text, needed, most, "tick", effect, shown=bool(sure))


def _sure_say(sure: Sequence[Coefficient], tried: int) -> str:
    more = [f"{len(sure) - 3} more"] if len(sure) > 3 else []
    told = listed([*(_told(one) for one in sure[:3]), *more])
    return (
        f"Of {tried} coefficients tried, {len(sure)} stand out after allowing for how many "
        f"were tried: {told}. A negative one is information turned the wrong way."
    )


def _told(one: Coefficient) -> str:
    value = signed(one.estimate.value if one.estimate else None, 3)
    what = "all vectors" if one.vector == ALL else one.vector
    where = f" in {one.group}" if one.group else ""
    return f"{one.agent} on {what}{where} ({value} over {count(one.horizon, 'bar')})"


def _plot(found: Sequence[Coefficient]) -> Plot:
    shown = [one for one in found if one.horizon == SHOWN_HORIZON and one.estimate]
    # the usual horizon may not have been computed
    shown = shown or [one for one in found if one.estimate]
    sure = [one.estimate for one in shown if one.estimate]
    points = zip((f"{one.agent} {one.vector}" for one in shown), sure, strict=True)
    line = PlotLine(
        name="IC residual on L1",
        points=tuple((name, told.value) for name, told in points),
        low=tuple(told.low for told in sure),
        high=tuple(told.high for told in sure),
    )
    over = count(shown[0].horizon, "bar")
    return Plot(
        title=f"Information over {over}", kind="dots", lines=(line,), x="agent and vector", y="IC"
    )

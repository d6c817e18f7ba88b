"""The Markov states of an arm's consensus over time: how long each stood, and a timeline.

A state is that of the stream's consensus before the tick (torra.verdict.sentiment_rules). The
timeline shows, for each stretch of ticks, the state that stood most often in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from torra.evaluation.exhibits import Cell, Exhibit, Plot, PlotLine, Point
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.evaluation.wording import count, percent, rounded
from torra.verdict.sentiment_rules import STATES

STRETCHES: Final = 160
"""Most stretches of a timeline: more would be too narrow on paper."""


def states_exhibit(arm: ArmObservation) -> Exhibit:
    """Return how long each state stood, and the timeline of each timeframe."""
    streams = {
        name: [tick for tick in arm.ticks if tick.timeframe == name and tick.state]
        for name in dict.fromkeys(tick.timeframe for tick in arm.ticks)
    }
    rows: list[tuple[Cell, ...]] = []
    for name, ticks in streams.items():
        runs = [(state, len(list(run))) for state, run in groupby(tick.state for tick in ticks)]
        held = Counter(tick.state for tick in ticks)
        for state in STATES:
            lengths = [length for other, length in runs if other == state]
            mean = sum(lengths) / len(lengths) if lengths else None
            share = percent(held[state] / len(ticks), 1) if ticks else None
            rows.append((name, state, held[state], share, len(lengths), rounded(mean, 1)))
    seen = sum(map(len, streams.values()))
    plots = tuple(_timeline(name, ticks) for name, ticks in streams.items() if ticks)
    says = (
        f"The states of {arm.name} over {count(seen, 'tick')}; what follows on a state is told by "
        "the symbol's page. No claim is made of them here."
        if seen
        else "No tick had a state yet: the first one of a stream has no history."
    )
    heads = ("timeframe", "state", "ticks", "share", "runs", "mean run, ticks")
    return Exhibit(
        name="states",
        title="How strong the consensus was",
        columns=heads,
        rows=tuple(rows),
        says=says,
        enough=seen > 0,
        plots=plots,
    )


def _timeline(timeframe: str, ticks: Sequence[TickObservation]) -> Plot:
    size = max(1, -(-len(ticks) // STRETCHES))
    points: list[Point] = []
    for at in range(0, len(ticks), size):
        part = ticks[at : at + size]
        state = Counter(tick.state for tick in part).most_common(1)[0][0]
        if not points or points[-1][1] != state:
            points.append((part[0].close_time, state))
    # None ends the last band at the last tick
    points.append((ticks[-1].close_time, None))
    title = f"State of the consensus, {timeframe}"
    return Plot(
        title=title, kind="bands", lines=(PlotLine(name=timeframe, points=tuple(points)),), x="time"
    )

"""Timelines of a stream: one lane for each value, equal neighbours merged, a gap where no tick ran.

Each value always has the same lane, glyph and colour, so that a picture can be read without its
colours and compared with an older one. A gap (closes without a tick) is a narrow mark, however
long it lasted; the table beside the picture gives its length. The template writes both. Pure
functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from torra import clock
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.view.desk_values import StateHistory, Symbol
from torra.exhibits import drawing, figures

LANE: Final = 10
"""Height of a lane; its block leaves one unit free above and below."""

GAP: Final = 3
"""Width of the widest gap, in ticks: a weekend would push the ticks together."""

VETO: Final = "GATE_VETO"
DECLINED: Final = "TRADER_DECLINED"
"""Reasons of ticks that have a lane of their own."""

Event = tuple[datetime, str]
"""A close and its value."""


class LaneRun(NamedTuple):
    """Equal values of neighbouring closes; `value` is None for closes without a tick."""

    value: str | None
    first: datetime
    last: datetime
    closes: int


class Timeline(NamedTuple):
    """A picture: the lanes from above, the path of each lane and of the gaps (None), the runs."""

    lanes: Sequence[str]
    paths: Mapping[str | None, str]
    runs: Sequence[LaneRun]
    step: timedelta


def runs(events: Sequence[Event], step: timedelta) -> list[LaneRun]:
    """Return the events, oldest first, merged, with the gaps between them."""
    merged: list[LaneRun] = []
    for close, value in events:
        last = merged[-1].last if merged else close
        if missing := max(0, (close - last) // step - 1):
            merged.append(LaneRun(None, last + step, close - step, missing))
        if merged and merged[-1].value == value:
            merged[-1] = merged[-1]._replace(last=close, closes=merged[-1].closes + 1)
        else:
            merged.append(LaneRun(value, close, close, 1))
    return merged


def timeline(events: Sequence[Event], timeframe: str, lanes: Sequence[str]) -> Timeline:
    """Return the picture of some events, oldest first; a value without a lane is in no path."""
    step = clock.duration(timeframe)
    merged = runs(events, step)
    widths = [run.closes if run.value else min(run.closes, GAP) for run in merged]
    unit = drawing.FIELD / max(1, sum(widths))
    paths: defaultdict[str | None, str] = defaultdict(str)
    x = 0.0
    for run, width in zip(merged, widths, strict=True):
        if run.value is None:
            paths[None] += drawing.block(x, 0, width * unit, LANE * len(lanes))
        elif run.value in lanes:
            top = LANE * lanes.index(run.value) + 1
            paths[run.value] += drawing.block(x, top, width * unit, LANE - 2)
        x += width * unit
    return Timeline(lanes, paths, merged, step)


def state_timeline(states: StateHistory, timeframe: str) -> Timeline:
    """Return the states of a stream by their closes."""
    events = [(clock.parse(close), state) for close, state in states.history]
    return timeline(events, timeframe, figures.STATES)


def verdict_timeline(data: Symbol) -> Timeline:
    """Return the verdicts of a stream; declines have a lane only where there is one."""
    events = verdict_events(data)
    declined = any(value == "DECLINED" for _, value in events)
    lanes = [name for name in figures.VERDICTS if name != "DECLINED" or declined]
    return timeline(events, data.stream.timeframe, lanes)


def verdict_events(data: Symbol) -> list[Event]:
    """Return verdict, veto or skip of every close of a stream, oldest first."""
    step = clock.duration(data.stream.timeframe)
    events = {str(skip.bar_time): "skipped" for skip in data.skipped}
    latched = ""
    # ticks last: a close that was skipped first and then run late counts as its tick
    for tick in sorted(data.ticks, key=lambda tick: str(tick.bar_time)):
        decision = _decision(tick)
        # a side that a decline latched is held back by it, not by the gate
        if decision == "VETO" and latched == tick.verdict and not (tick.gate and tick.gate.veto):
            decision = "DECLINED"
        latched = str(tick.verdict) if decision == "DECLINED" else ""
        events[str(tick.bar_time)] = decision
    return [(clock.parse(time) + step, value) for time, value in sorted(events.items())]


def _decision(tick: ListedTick) -> str:
    reasons = (tick.reason, *tick.denied)
    if DECLINED in reasons:
        return "DECLINED"
    return "VETO" if VETO in reasons else str(tick.verdict)

"""Timelines of states: one lane for each value, equal neighbours merged, a gap where no tick ran.

Each value always has the same lane, glyph and colour, so that a picture can be read without its
colours and compared with an older one. A gap (closes without a tick) is a narrow mark, however
long it lasted; the table beside the picture gives its length. The picture consists of SVG paths.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from torra import clock
from torra.dashboard.cells.common import Cells, words
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.view.desk_values import StateHistory, Symbol
from torra.exhibits import figures
from torra.exhibits.figures import Cell

WIDTH: Final = 1000.0
LANE: Final = 10
"""Height of a lane; its block leaves one unit free above and below."""

GAP: Final = 3
"""Width of the widest gap, in ticks: a weekend would push the ticks together."""

ROWS: Final = 60
"""Newest merged runs that the table lists."""

VETO: Final = "GATE_VETO"
DECLINED: Final = "TRADER_DECLINED"
"""Reasons of ticks that have a lane of their own."""


@dataclass(frozen=True, slots=True)
class LaneRun:
    """Equal values of neighbouring closes; `value` is None for closes without a tick."""

    value: str | None
    first: datetime
    last: datetime
    count: int


class Timeline(NamedTuple):
    """A picture by its lanes and its runs; the cells are KEY.LANE, KEY.gap, from and to."""

    cells: Cells
    lanes: Sequence[str]
    runs: Sequence[LaneRun]
    step: timedelta


def runs(events: Sequence[tuple[datetime, str]], step: timedelta) -> list[LaneRun]:
    """Return the events (close time and value, oldest first) merged, with the gaps between."""
    found: list[LaneRun] = []
    for close, value in events:
        last = found[-1] if found else None
        if last is not None and close - last.last > step:
            missing = (close - last.last) // step - 1
            found.append(LaneRun(None, last.last + step, close - step, missing))
            last = None
        if last is not None and last.value == value:
            found[-1] = LaneRun(value, last.first, close, last.count + 1)
        else:
            found.append(LaneRun(value, close, close, 1))
    return found


def timeline(
    key: str, events: Sequence[tuple[datetime, str]], step: timedelta, lanes: Sequence[str]
) -> Timeline:
    """Return the picture and the table of some events (close time and value, oldest first)."""
    merged = runs(events, step)
    cells: Cells = {f"{key}.{lane}": _path("") for lane in (*lanes, "gap")}
    drawn: dict[str, list[str]] = {}
    height = LANE * len(lanes)
    for run, (x, width) in zip(merged, _places(merged), strict=True):
        if run.value is None:
            drawn.setdefault("gap", []).append(_block(x, width, 0, height))
        # a value without a lane of its own stands in the table only
        elif run.value in lanes:
            top = lanes.index(run.value) * LANE + 1
            drawn.setdefault(run.value, []).append(_block(x, width, top, LANE - 2))
    for name, parts in drawn.items():
        cells[f"{key}.{name}"] = _path("".join(parts))
    ends = (events[0][0], events[-1][0]) if events else (None, None)
    for name, moment in zip(("from", "to"), ends, strict=True):
        told = figures.moment(clock.iso(moment)) if moment else figures.DASH
        cells[f"{key}.{name}"] = words(told)
    return Timeline(cells, lanes, merged[::-1][:ROWS], step)


def state_events(states: StateHistory) -> list[tuple[datetime, str]]:
    """Return the states of a stream's history by their closes, oldest first."""
    return [(clock.parse(close), state) for close, state in states.history]


def verdict_events(data: Symbol) -> list[tuple[datetime, str]]:
    """Return verdict, veto or skip of every close of a symbol page, oldest first."""
    step = clock.duration(data.stream.timeframe)
    ticks: dict[str, str] = {}
    held = ""
    for tick in sorted(data.ticks, key=lambda one: str(one.bar_time)):
        told = _decided(tick)
        # a side that a decline latched is held back by it, not by the gate
        if told == "VETO" and held == tick.verdict and not (tick.gate and tick.gate.veto):
            told = "DECLINED"
        held = str(tick.verdict) if told == "DECLINED" else ""
        ticks[str(tick.bar_time)] = told
    skips = {str(skip.bar_time): "skipped" for skip in data.skipped}
    # ticks last: a close that was skipped first and then run late counts as its tick
    return [(clock.parse(time) + step, value) for time, value in sorted({**skips, **ticks}.items())]


def _decided(tick: ListedTick) -> str:
    reasons = (tick.reason, *tick.denied)
    if DECLINED in reasons:
        return "DECLINED"
    return "VETO" if VETO in reasons else str(tick.verdict)


def verdict_lanes(events: Sequence[tuple[datetime, str]]) -> tuple[str, ...]:
    """Return the lanes of verdicts: that of declines only where the trader declined something."""
    declined = any(value == "DECLINED" for _, value in events)
    return tuple(name for name in figures.VERDICTS if name != "DECLINED" or declined)


def _places(merged: Sequence[LaneRun]) -> list[tuple[float, float]]:
    """Return x and width of every run, the whole as wide as the picture."""
    widths = [min(run.count, GAP) if run.value is None else run.count for run in merged]
    unit = WIDTH / max(1, sum(widths))
    ends = [0.0]
    for width in widths:
        ends.append(ends[-1] + width * unit)
    return [(start, end - start) for start, end in pairwise(ends)]


def _block(x: float, width: float, y: int, height: int) -> str:
    return f"M{x:.1f} {y}h{width:.1f}v{height}h-{width:.1f}z"


def _path(d: str) -> Cell:
    return {"text": "", "tone": "", "title": "", "set": {"d": d}}

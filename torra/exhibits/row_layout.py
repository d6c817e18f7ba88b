"""Plots in rows: bars and dots by category, with room for names, and lanes of states in time.

Rows: one for each category, with one bar or dot for each line, its interval as a whisker and its
number at its end. Lanes: one row for each state of each line, so that the position of a block tells
the state and its colour only repeats it. Pure functions over a checked plot that has at least one
value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any, Final

from torra.clock import iso
from torra.evaluation.exhibits import MOST_LETTERS, Plot, PlotLine
from torra.exhibits import axis, drawing, figures, numbers, thinning
from torra.exhibits.axis import AxisScale
from torra.exhibits.drawing import FIELD, Drawing, Key, Pin, Shape, label
from torra.exhibits.figures import STATES, VERDICTS

ROWS: Final = 40
"""Most categories that are drawn; the table below the plot and the file have all."""

BAR, GAP = 14.0, 8.0
"""Pixels of a bar, and between two categories."""

LANE, HEAD = 13.0, 18.0
"""Pixels of a state's row, and of a line's name above its rows."""

LANES: Final = 12
"""Most rows for the states of a line; the rest share the last one."""

REST: Final = "others"
RUNS: Final = 800
ORDER: Final = (*STATES, *(name for name in VERDICTS if name not in STATES))
"""States that have an order, from above."""

LONG: Final = 36
"""Most characters of a row's name on a wide page."""


def rows(plot: Plot, styles: Sequence[int]) -> Drawing:
    """Return the drawing of bars or dots by category; `styles` are those of its lines."""
    names = list(dict.fromkeys(x for line in plot.lines for x, _ in line.points))[:ROWS]
    scale = axis.of_numbers(_numbers_of(plot), zero=plot.kind == "bars", margin=0.06)
    each = BAR * max(1, len(plot.lines))
    height = len(names) * (each + GAP) + GAP
    tops = {str(name): GAP + at * (each + GAP) for at, name in enumerate(names)}
    back = list(_frame(scale, height))
    for name, top in tops.items():
        back += _label(name, top + each / 2 + 4)
    inked = [_inked(plot, at, style, tops, scale) for at, style in enumerate(styles)]
    front = [shape for shapes, _ in inked for shape in shapes]
    pins = [pin for _, found in inked for pin in found]
    title = figures.sanitize(plot.y or plot.x, MOST_LETTERS)
    if title:
        front.append(drawing.words("title-x", 1, height + 34, drawing.cut(title, 60)))
    return Drawing(
        height,
        "xxl" if any(_is_long(str(name)) for name in names) else "xl",
        "m",
        tuple(back),
        (),
        tuple(front),
        tuple(pins),
        _keys(plot, styles) if len(plot.lines) > 1 else (),
        "box" if plot.kind == "bars" else "pin",
        _told_rows(plot),
    )


def lanes(plot: Plot) -> Drawing:
    """Return the drawing of states in time."""
    runs = [thinning.merged(line.points, RUNS) for line in plot.lines]
    begin, end = _span(plot, runs)
    timed = plot.axis == "time"
    scale = axis.of_times(begin, end) if timed else axis.of_numbers([begin, end], margin=0)
    shapes: list[Shape] = []
    paths: list[tuple[str, str]] = []
    top = 0.0
    for line, found in zip(plot.lines, runs, strict=True):
        if len(plot.lines) > 1:
            name = drawing.cut(figures.sanitize(line.name, MOST_LETTERS), 60)
            shapes.append(drawing.words("lane-head", 0, top + HEAD - 5, name, 0))
            top += HEAD
        states = _states(found)
        for state in states:
            shown = figures.mark(state)
            shapes.append(drawing.line("grid", 0, 1, top + LANE / 2, top + LANE / 2))
            shapes.append(
                drawing.words("row lane", 0, top + LANE - 3, _cut(shown.text.strip()), -9)
            )
            inside = set(states) - {state}
            blocks = _blocks(found, state, inside, scale, end, top)
            paths.append((f"band {shown.tone}", "".join(blocks)))
            top += LANE
        top += GAP
    height = top - GAP + 4
    across = list(_ticks_below(scale, height))
    title = f"{label(plot.x) or 'time'}, {_moment(begin)[:10]} to {_moment(end)[:10]} UTC"
    across.append(drawing.words("title-x", 1, height + 34, title if timed else label(plot.x)))
    return Drawing(
        height, "xl", "s", (*shapes, *across), tuple(paths), (), (), (), "box",
        _told_lanes(plot, runs),
    )  # fmt: skip


# --- rows -----------------------------------------------------------------------------------------


def _numbers_of(plot: Plot) -> list[float]:
    found = [y for line in plot.lines for _, y in line.points]
    found += [bound for line in plot.lines for bound in (*line.low, *line.high)]
    return [value for value in found if isinstance(value, float)]


def _heights(plot: Plot, at: int) -> list[float | None]:
    return [y for _, y, *_ in _points(plot.lines[at])]


def _points(line: PlotLine) -> Iterator[tuple[Any, float | None, float | None, float | None]]:
    bare = (None,) * len(line.points)
    for (x, y), low, high in zip(line.points, line.low or bare, line.high or bare, strict=True):
        yield x, y if isinstance(y, float) else None, low, high


def _frame(scale: AxisScale, height: float) -> Iterator[Shape]:
    for value, _ in scale.ticks:
        x = scale.place(value)
        yield drawing.line("zero" if not value else "grid", x, x, 0, height)
    yield from _ticks_below(scale, height)


def _ticks_below(scale: AxisScale, height: float) -> Iterator[Shape]:
    yield drawing.line("mark", 0, 1, height, height)
    yield from drawing.marks(scale, height)


def _label(name: str, y: float) -> Iterator[Shape]:
    """Yield a row's name; a long one has a short form for a phone."""
    if _is_long(name):
        yield drawing.words("row long", 0, y, drawing.cut(label(name), LONG), -9)
        yield drawing.words("row cut", 0, y, _cut(name), -9)
    else:
        yield drawing.words("row", 0, y, label(name), -9)


def _is_long(name: str) -> bool:
    return len(label(name)) > drawing.LETTERS


def _inked(
    plot: Plot, at: int, style: int, tops: dict[str, float], scale: AxisScale
) -> tuple[list[Shape], list[Pin]]:
    """Return the bars or dots of a line, with intervals and numbers."""
    front: list[Shape] = []
    pins: list[Pin] = []
    number = drawing.style(style)
    ink = f"whisker {'ink' if plot.kind == 'bars' else f's{number}'}"
    said = dict(zip(plot.lines[at].points, numbers.column(_heights(plot, at)), strict=True))
    for x, y, low, high in _points(plot.lines[at]):
        if x not in tops or y is None:
            continue
        middle = tops[x] + at * BAR + BAR / 2
        end = furthest = scale.place(y)
        if plot.kind == "bars":
            height = BAR - 3
            box = (scale.place(0.0), end, middle - height / 2, height)
            front.append(drawing.box(f"box s{number}", *box))
        if low is not None and high is not None:
            left, right = scale.place(low), scale.place(high)
            furthest = max(end, right)
            front.append(drawing.line(ink, left, right, middle, middle))
            ends = (drawing.across(left), drawing.across(right))
            pins += [Pin(ink, place, middle, "M0-4V4") for place in ends]
        if plot.kind == "dots":
            pins.append(drawing.pin(style, end, middle))
        elif y < 0 and high is None:
            furthest = scale.place(0.0)  # the free side of a bar that grows to the left
        front.append(drawing.words("value", furthest, middle + 4, said[x, y], 9))
    return front, pins


def _keys(plot: Plot, styles: Sequence[int]) -> tuple[Key, ...]:
    names = (figures.sanitize(line.name, MOST_LETTERS) for line in plot.lines)
    return tuple(drawing.key(style, name) for style, name in zip(styles, names, strict=True))


def _told_rows(plot: Plot) -> str:
    kind = "Bars" if plot.kind == "bars" else "Points"
    each = "; ".join(
        f"{label(line.name)}: "
        + ", ".join(f"{label(str(x))} {numbers.short(y)}" for x, y, *_ in list(_points(line))[:12])
        for line in plot.lines
    )
    return f"{kind} by category. {each}."


# --- lanes ----------------------------------------------------------------------------------------


def _span(plot: Plot, runs: Sequence[Sequence[tuple[Any, Any]]]) -> tuple[float, float]:
    """Return begin and end of all lanes; the last point lasts as long as most do."""
    places = sorted({_x(x) for found in runs for x, _ in found})
    steps = [
        two - one for line in plot.lines for one, two in pairwise(_x(x) for x, _ in line.points)
    ]
    return places[0], places[-1] + (median(steps) if steps else 1.0)


def _x(x: datetime | float | str) -> float:
    if isinstance(x, datetime):
        return x.timestamp()
    return float(x)


def _states(found: Sequence[tuple[Any, Any]]) -> list[str]:
    """Return the states of a line, in their order from above, the rest as they came."""
    seen = list(dict.fromkeys(str(state) for _, state in found if state is not None))
    known = [state for state in ORDER if state in seen]
    states = known + [state for state in seen if state not in known]
    return states if len(states) <= LANES else [*states[: LANES - 1], REST]


def _blocks(
    found: Sequence[tuple[Any, Any]],
    state: str,
    inside: set[str],
    scale: AxisScale,
    end: float,
    top: float,
) -> Iterator[str]:
    ends = [_x(x) for x, _ in found[1:]] + [end]
    for (x, value), stop in zip(found, ends, strict=True):
        # the last row gathers the states that have none of their own
        belongs = value == state or (state == REST and value is not None and value not in inside)
        if belongs:
            left, right = scale.place(_x(x)) * FIELD, scale.place(stop) * FIELD
            # the shortest run is still seen
            width = max(0.6, right - left)
            yield f"M{left:.1f} {top + 1.5:.1f}h{width:.1f}v{LANE - 3:.1f}h-{width:.1f}z"


def _told_lanes(plot: Plot, runs: Sequence[Sequence[tuple[Any, Any]]]) -> str:
    each = "; ".join(
        f"{label(line.name)}: {len(found)} stretches of "
        + ", ".join(figures.mark(state).word for state in _states(found))
        for line, found in zip(plot.lines, runs, strict=True)
    )
    return f"States in the order of time. {each}."


def _moment(seconds: float) -> str:
    return figures.moment(iso(axis.moment(seconds)))


def _cut(text: str) -> str:
    return drawing.cut(label(text))

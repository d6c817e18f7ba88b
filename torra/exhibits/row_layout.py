"""Plots in rows: bars and dots by category, with room for names, and lanes of states in time.

Rows: one for each category, with one bar or dot for each line, its interval as a whisker and its
number at its end. Lanes: one row for each state of each line, so that the position of a block tells
the state and its colour only repeats it. Pure functions over a checked plot that has at least one
value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from torra.evaluation.exhibits import MOST_POINTS, Plot
from torra.exhibits import axis, drawing, figures, numbers, series, thinning
from torra.exhibits.axis import AxisScale
from torra.exhibits.drawing import FIELD, Drawing, Shape, cut, label
from torra.exhibits.figures import STATES, VERDICTS
from torra.exhibits.series import Series
from torra.exhibits.thinning import Run

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
ORDER: Final = tuple(dict.fromkeys((*STATES, *VERDICTS)))
"""States that have an order, from above."""

LONG: Final = 36
"""Most characters of a row's name on a wide page."""


# --- rows -----------------------------------------------------------------------------------------


def rows(plot: Plot, styles: Sequence[int]) -> Drawing:
    """Return the drawing of bars or dots by category; `styles` are those of its lines."""
    names = [label(name) for name in series.categories(plot)[:ROWS]]
    lines = series.of_plot(plot, styles, MOST_POINTS)
    values = [y for line in lines for y in (*line.y, *line.low, *line.high) if y is not None]
    scale = axis.of_numbers(values, zero=plot.kind == "bars", margin=0.06)
    pitch = BAR * len(lines) + GAP
    height = len(names) * pitch + GAP
    return Drawing(
        height=height,
        left="xxl" if any(len(name) > drawing.LETTERS for name in names) else "xl",
        right="m",
        shapes=(
            *_grid(scale, height),
            *(
                s
                for at, name in enumerate(names)
                for s in _name(name, (at + 0.5) * pitch + GAP / 2 + 4)
            ),
            *(s for at, line in enumerate(lines) for s in _bars(plot, at, line, scale, pitch)),
            *drawing.title("title-x", 1, height + 34, plot.y or plot.x),
        ),
        summary=f"{drawing.KINDS[plot.kind].word} by category. {_row_texts(plot)}.",
        swatch=drawing.KINDS[plot.kind].swatch,
        keys=[drawing.key(line.place, line.name) for line in lines if len(lines) > 1],
    )


def _grid(scale: AxisScale, height: float) -> Iterator[Shape]:
    for value, _ in scale.ticks:
        x = scale.place(value)
        yield drawing.line("grid" if value else "zero", x, x, 0, height)
    yield drawing.line("mark", 0, 1, height, height)
    yield from drawing.ticks(scale, height)


def _name(name: str, y: float) -> Iterator[Shape]:
    """Yield a row's name; a long one has a short form for a phone."""
    if len(name) > drawing.LETTERS:
        yield drawing.words("row long", 0, y, cut(name, LONG), -9)
        yield drawing.words("row cut", 0, y, cut(name), -9)
    else:
        yield drawing.words("row", 0, y, name, -9)


def _bars(plot: Plot, at: int, line: Series, scale: AxisScale, pitch: float) -> Iterator[Shape]:
    """Yield the bars or dots of a line, with intervals and numbers."""
    bars = plot.kind == "bars"
    ink = f"whisker {'ink' if bars else f's{line.style}'}"
    bounds = {x: (scale.place(low), scale.place(high)) for x, low, high in line.intervals}
    for (x, y), word in zip(line.points, numbers.column(line.heights), strict=True):
        if x >= ROWS:
            continue
        middle = GAP + x * pitch + (at + 0.5) * BAR
        end = furthest = scale.place(y)
        if bars:
            box = scale.place(0.0), end, middle - (BAR - 3) / 2, BAR - 3
            yield drawing.box(f"box s{line.style}", *box)
            if y < 0:
                furthest = scale.place(0.0)  # the free side of a bar that grows to the left
        if x in bounds:
            furthest = max(end, bounds[x][1])
            yield drawing.line(ink, *bounds[x], middle, middle)
            yield from (drawing.pin(ink, place, middle, "M0-4V4") for place in bounds[x])
        if not bars:
            yield drawing.mark(line.place, end, middle)
        yield drawing.words("value", furthest, middle + 4, word, 9)


def _row_texts(plot: Plot) -> str:
    return "; ".join(
        f"{label(line.name)}: "
        + ", ".join(f"{label(str(x))} {numbers.short(y)}" for x, y in line.points[:12])
        for line in plot.lines
    )


# --- lanes ----------------------------------------------------------------------------------------


def lanes(plot: Plot) -> Drawing:
    """Return the drawing of states in time."""
    points = [[(series.number(x), state) for x, state in line.points] for line in plot.lines]
    runs = [thinning.merged(line, RUNS) for line in points]
    steps = [later[0] - at[0] for line in points for at, later in pairwise(line)]
    begin = min(x for line in runs for x, _ in line)
    # the last point lasts as long as most do
    end = max(x for line in runs for x, _ in line) + (median(steps) if steps else 1.0)
    scale, below = axis.of_numbers([begin, end], margin=0), label(plot.x)
    if plot.axis == "time":
        scale = axis.of_times(begin, end)
        days = [axis.written(at)[:10] for at in (begin, end)]
        below = f"{below or 'time'}, {' to '.join(days)} UTC"
    shapes: list[Shape] = []
    top = -GAP
    for line, stretches in zip(plot.lines, runs, strict=True):
        top += GAP
        if len(runs) > 1:
            shapes += drawing.title("lane-head", 0, top + HEAD - 5, line.name)
            top += HEAD
        for state in _states(stretches):
            shapes += _lane(stretches, state, scale, end, top)
            top += LANE
    height = top + 4
    each = "; ".join(
        f"{label(line.name)}: {len(stretches)} stretches of "
        + ", ".join(figures.mark(state).word for state in _states(stretches))
        for line, stretches in zip(plot.lines, runs, strict=True)
    )
    return Drawing(
        height=height,
        left="xl",
        right="s",
        shapes=(
            *shapes,
            drawing.line("mark", 0, 1, height, height),
            *drawing.ticks(scale, height),
            drawing.words("title-x", 1, height + 34, below),
        ),
        summary=f"States in the order of time. {each}.",
        swatch="box",
    )


def _states(runs: Sequence[Run]) -> list[str]:
    """Return the states of a line, in their order from above, the rest as they came."""
    names = list(dict.fromkeys(str(state) for _, state in runs if state is not None))
    states = sorted(names, key=lambda state: ORDER.index(state) if state in ORDER else len(ORDER))
    return states if len(states) <= LANES else [*states[: LANES - 1], REST]


def _lane(
    runs: Sequence[Run], state: str, scale: AxisScale, end: float, top: float
) -> Iterator[Shape]:
    """Yield the row of a state: its name and its blocks."""
    badge = figures.mark(state)
    yield drawing.line("grid", 0, 1, top + LANE / 2, top + LANE / 2)
    yield drawing.words("row lane", 0, top + LANE - 3, cut(label(badge.text)), -9)
    # the last row gathers the states that have none of their own
    others = {None, *_states(runs)} if state == REST else set()
    blocks = []
    for (x, value), (stop, _) in pairwise([*runs, (end, None)]):
        if value == state or (others and value not in others):
            left, right = scale.place(x) * FIELD, scale.place(stop) * FIELD
            # the shortest run is still names
            blocks.append(drawing.block(left, top + 1.5, max(0.6, right - left), LANE - 3))
    yield drawing.path(f"band {badge.tone}", "".join(blocks))

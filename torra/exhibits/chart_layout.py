"""A chart with two axes: lines, steps, dots and upright bars over time, numbers or categories.

The y axis stands left, with its words above. Names stand at the right ends of the lines, moved
apart if they would touch. An interval is a pale area behind a line, or a whisker at a dot or a bar.
With a diagonal both axes have one range. Pure functions over a checked plot that has at least one
number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from torra.evaluation.exhibits import Plot
from torra.exhibits import axis, drawing, numbers, series
from torra.exhibits.axis import AxisScale
from torra.exhibits.drawing import FIELD, Drawing, Shape
from torra.exhibits.series import Series

HEIGHT: Final = 220.0
LINE_HEIGHT: Final = 14.0
"""Pixels between the names at the right."""

DRAWN: Final = 800
"""Most points of a line that are drawn: more would fall on the same pixel."""

WORDS_AT_X: Final = 8
"""Categories of the x axis that get their word."""

WIDTH: Final = 0.8
"""Width of a group of upright bars, as a share of its place."""

VALUED: Final = 12
"""Most upright bars with a number above each."""

MARKS: Final = 7
"""Marks along a line among others."""

NAMED: Final = 12
"""Most lines with a name at the end of each."""


class Frame(NamedTuple):
    """The two axes."""

    across: AxisScale
    up: AxisScale

    def x(self, value: float) -> float:
        """Return where a value lies across, 0 to 1."""
        return self.across.place(value)

    def y(self, value: float) -> float:
        """Return where a value lies down, in pixels."""
        return round((1 - self.up.place(value)) * HEIGHT, 1)


def chart(plot: Plot, styles: Sequence[int]) -> Drawing:
    """Return the drawing of a plot with two axes; `styles` are those of its lines."""
    lines = series.of_plot(plot, styles, DRAWN)
    frame = _frame(plot, lines)
    ends = [line for line in lines if line.heights and plot.kind in ("line", "step")]
    names = list(_names(ends, frame)) if 1 < len(ends) <= NAMED else []
    return Drawing(
        height=HEIGHT,
        left=drawing.room([word for _, word in frame.up.ticks]),
        right="l" if names else "s",
        shapes=(*_back(plot, frame), *_ink(plot, lines, frame), *names, *_titles(plot, lines)),
        summary=_text(plot, lines),
        swatch=drawing.KINDS[plot.kind].swatch,
        keys=[drawing.key(line.place, line.name, _summary(plot, line)) for line in lines],
        diagonal=plot.diagonal,
    )


# --- scales ---------------------------------------------------------------------------------------


def _frame(plot: Plot, lines: Sequence[Series]) -> Frame:
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for y in (*line.y, *line.low, *line.high) if y is not None]
    if plot.diagonal and plot.axis == "number":
        both = axis.of_numbers([*xs, *ys])
        return Frame(both, both)
    # half a place at either end, so that the outer bars are whole
    half = _spacing(lines) / 2 if plot.kind == "bars" else 0.0
    up = axis.of_numbers(ys, zero=plot.kind == "bars")
    return Frame(_across(plot, min(xs) - half, max(xs) + half), up)


def _across(plot: Plot, low: float, high: float) -> AxisScale:
    if plot.axis == "time":
        return axis.of_times(low, high)
    if plot.axis == "category":
        names = [drawing.cut(drawing.label(name), 10) for name in series.categories(plot)]
        step = -(-len(names) // WORDS_AT_X)
        marks = [(float(at), name) for at, name in enumerate(names) if at % step == 0]
        return AxisScale(-0.5, len(names) - 0.5, tuple(marks))
    # a line may begin at the axis; a dot there would be cut in half
    bare = low < high and plot.kind in ("line", "step")
    return axis.of_numbers([low, high], margin=0.0 if bare else axis.MARGIN)


def _spacing(lines: Sequence[Series]) -> float:
    """Return the least distance of two places of bars."""
    places = sorted({x for line in lines for x in line.x})
    return min((right - left for left, right in pairwise(places)), default=1.0)


# --- what is drawn --------------------------------------------------------------------------------


def _back(plot: Plot, frame: Frame) -> Iterator[Shape]:
    """Yield the grid with its words, the diagonal and the line of zero."""
    up = frame.up
    for value, word in up.ticks:
        y = frame.y(value)
        yield drawing.line("grid", 0, 1, y, y)
        yield drawing.words("at-y", 0, y + 4, word, -7)
    yield from drawing.ticks(frame.across, HEIGHT)
    low, high = max(frame.across.low, up.low), min(frame.across.high, up.high)
    if plot.diagonal and low < high:
        ends = frame.x(low), frame.x(high), frame.y(low), frame.y(high)
        yield drawing.line("diagonal", *ends)
    if up.low <= 0 <= up.high:
        y = frame.y(0.0)
        yield drawing.line("zero", 0, 1, y, y)
        if y < HEIGHT:
            yield drawing.line("mark", 0, 1, HEIGHT, HEIGHT)


def _ink(plot: Plot, lines: Sequence[Series], frame: Frame) -> Iterator[Shape]:
    """Yield what is drawn of the lines."""
    if plot.kind == "bars":
        width = _spacing(lines) * WIDTH / len(lines)
        valued = sum(len(line.heights) for line in lines) <= VALUED
        for at, line in enumerate(lines):
            left = (at - len(lines) / 2) * width
            yield from _columns(line, frame, left, left + width, valued=valued)
            yield from _whiskers(line, "ink", frame, left + width / 2)
        return
    if plot.kind != "dots":
        # areas first: what is drawn later lies above, and a line must not be hidden
        yield from (area for line in lines for area in _areas(line, frame))
    for line in lines:
        if plot.kind == "dots":
            yield from _whiskers(line, f"s{line.style}", frame)
        else:
            corners = [
                None if y is None else (frame.x(x) * FIELD, frame.y(y))
                for x, y in zip(line.x, line.y, strict=True)
            ]
            course = drawing.polyline(corners, stepped=plot.kind == "step")
            yield drawing.path(f"course s{line.style}", course)
        yield from _marks(plot, line, frame)


def _columns(
    line: Series, frame: Frame, left: float, right: float, *, valued: bool
) -> Iterator[Shape]:
    zero = frame.y(0.0)
    for (x, y), word in zip(line.points, numbers.column(line.heights), strict=True):
        x1, x2, top = frame.x(x + left), frame.x(x + right), frame.y(y)
        # 1 pixel at least: a value of 0 is a bar too
        size = min(top, zero), max(1.0, abs(top - zero))
        yield drawing.box(f"box s{line.style}", x1, x2, *size)
        if valued:  # more numbers would run into each other
            beyond = top - 5 if y >= 0 else top + 13
            yield drawing.words("value-x", (x1 + x2) / 2, beyond, word)


def _whiskers(line: Series, ink: str, frame: Frame, shift: float = 0.0) -> Iterator[Shape]:
    for x, low, high in line.intervals:
        top, bottom = frame.y(high), frame.y(low)
        path = f"M-4 {top:.1f}H4M0 {top:.1f}V{bottom:.1f}M-4 {bottom:.1f}H4"
        yield drawing.pin(f"whisker {ink}", frame.x(x + shift), 0.0, path)


def _marks(plot: Plot, line: Series, frame: Frame) -> Iterator[Shape]:
    """Yield the marks of dots, and of points that have no neighbour to draw a line to.

    A line among others has some along it, by which it is followed on paper; no two lines have them
    at one place.
    """
    dots, ends = plot.kind == "dots", [None, *line.y, None]
    for before, x, y, after in zip(ends, line.x, line.y, ends[2:], strict=False):
        alone = dots or plot.axis == "category" or before is after is None
        if y is not None and alone:
            yield drawing.mark(line.place, frame.x(x), frame.y(y))
    points, count = line.points, len(plot.lines)
    if dots or count < 2 or len(points) < MARKS:
        return
    for number in range(MARKS):
        share = (number + (line.place % count + 1) / (count + 1)) / MARKS
        x, y = points[int(share * len(points))]
        yield drawing.mark(line.place, frame.x(x), frame.y(y), " along")


def _areas(line: Series, frame: Frame) -> Iterator[Shape]:
    """Yield the interval's outlines."""
    if line.high.count(None) == len(line.high):
        return
    edges = [
        None if low is None or high is None else (frame.x(x) * FIELD, frame.y(high), frame.y(low))
        for x, low, high in zip(line.x, line.low, line.high, strict=True)
    ]
    for area in drawing.outlines(edges):
        yield drawing.path(f"area s{line.style}", area)


def _names(lines: Sequence[Series], frame: Frame) -> Iterator[Shape]:
    """Yield the names of the lines at their right ends, and the leaders from the ends to them."""
    heights = [frame.y(line.heights[-1]) for line in lines]
    places = drawing.spread(heights, LINE_HEIGHT, 4.0, HEIGHT)
    for line, height, y in zip(lines, heights, places, strict=True):
        yield drawing.words(f"end s{line.style}", 1, y + 4, drawing.cut(line.name), 14)
        yield drawing.pin(f"leader s{line.style}", 1, 0.0, f"M2 {height:.1f}L11 {y:.1f}")


def _titles(plot: Plot, lines: Sequence[Series]) -> Iterator[Shape]:
    below = plot.x
    if plot.axis == "time":
        begin, end = series.period(lines)
        below = f"{drawing.label(plot.x) or 'time'}, {begin[:10]} to {end[:10]} UTC"
    yield from drawing.title("title-x", 1, HEIGHT + 34, below)
    yield from drawing.title("title-y", 0, -12, plot.y)


# --- in words -------------------------------------------------------------------------------------


def _summary(plot: Plot, line: Series) -> str:
    """Return the words on where a line ends and between which values it runs."""
    if plot.kind in ("bars", "dots") or not line.heights:
        return "" if line.heights else "no value"
    first, last, low, high = line.extremes
    if plot.axis != "time" or len(plot.lines) > 1:
        return f"ends at {last}, between {low} and {high}"
    begin, end = series.period([line])
    return f"{begin}: {first}, {end}: {last}, between {low} and {high}"


def _text(plot: Plot, lines: Sequence[Series]) -> str:
    over = {"time": "time", "number": "numbers", "category": "categories"}[plot.axis]
    if plot.axis == "time":
        over = "time from {} to {}".format(*series.period(lines))
    each = "; ".join(f"{line.name}: {_range(line)}" for line in lines)
    return f"{drawing.KINDS[plot.kind].word} over {over}. {each}."


def _range(line: Series) -> str:
    if not line.heights:
        return "no value"
    first, last, low, high = line.extremes
    return f"{len(line.heights)} points from {first} to {last}, between {low} and {high}"

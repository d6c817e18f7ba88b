"""A chart with two axes: lines, steps, dots and upright bars over time, numbers or categories.

The y axis stands left, with its words above. Names stand at the right ends of the lines, moved
apart if they would touch. An interval is a pale area behind a line, or a whisker at a dot or a bar.
With a diagonal both axes have one range. Pure functions over a checked plot that has at least one
number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from torra.clock import iso
from torra.evaluation.exhibits import MOST_LETTERS, Plot, PlotLine
from torra.exhibits import axis, drawing, figures, numbers, thinning
from torra.exhibits.axis import AxisScale
from torra.exhibits.drawing import FIELD, Drawing, Key, Pin, Shape

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


@dataclass(frozen=True, slots=True)
class LineNumbers:
    """A line as numbers: x in the axis' own unit, y, and the bounds, all of one length.

    `place` tells its style.
    """

    name: str
    place: int
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        """The heights that are known."""
        return [y for y in self.y if y is not None]


def chart(plot: Plot, styles: Sequence[int]) -> Drawing:
    """Return the drawing of a plot with two axes; `styles` are those of its lines."""
    names = _categories(plot)
    courses = [_course(line, names, style) for line, style in zip(plot.lines, styles, strict=True)]
    across, up = _scales(plot, courses, names)
    back = [*_grid(across, up), *_diagonal(plot, across, up)]
    paths, pins, front = _inked(plot, courses, across, up)
    ends, leaders = _ends(plot, courses, up)
    return Drawing(
        HEIGHT,
        drawing.room([word for _, word in up.ticks]),
        "l" if ends else "s",
        (*back, *_zero(up)),
        tuple(paths),
        (*front, *ends, *_titles(plot, courses)),
        (*pins, *leaders),
        _keys(plot, courses),
        "pin" if plot.kind == "dots" else "box" if plot.kind == "bars" else "line",
        _told(plot, courses),
        plot.diagonal,
    )


# --- scales ---------------------------------------------------------------------------------------


def _categories(plot: Plot) -> list[str]:
    if plot.axis != "category":
        return []
    return list(dict.fromkeys(str(x) for line in plot.lines for x, _ in line.points))


def _course(line: PlotLine, names: Sequence[str], style: int) -> LineNumbers:
    """Return a line's points as numbers, thinned to those that can be seen."""
    place = {name: float(at) for at, name in enumerate(names)}
    kept = thinning.kept(line.points, DRAWN)
    bare = [None] * len(line.points)
    low, high = line.low or bare, line.high or bare
    return LineNumbers(
        figures.sanitize(line.name, MOST_LETTERS),
        style,
        tuple(_x(line.points[at][0], place) for at in kept),
        tuple(_y(line.points[at][1]) for at in kept),
        tuple(low[at] for at in kept),
        tuple(high[at] for at in kept),
    )


def _x(x: datetime | float | str, place: dict[str, float]) -> float:
    if isinstance(x, datetime):
        return x.timestamp()
    return place[x] if isinstance(x, str) else x


def _y(y: float | str | None) -> float | None:
    return None if isinstance(y, str) else y


def _scales(
    plot: Plot, courses: Sequence[LineNumbers], names: list[str]
) -> tuple[AxisScale, AxisScale]:
    xs = [x for course in courses for x in course.x]
    ys = [
        y
        for course in courses
        for row in (course.y, course.low, course.high)
        for y in row
        if y is not None
    ]
    bars = plot.kind == "bars"
    if plot.diagonal and plot.axis == "number":
        both = axis.of_numbers([*xs, *ys])
        return both, both
    up = axis.of_numbers(ys, zero=bars)
    # half a place at either end, so that the outer bars are whole
    half = _spacing(courses) / 2 if bars else 0.0
    if plot.axis == "time":
        return axis.of_times(min(xs) - half, max(xs) + half), up
    if plot.axis == "category":
        step = -(-len(names) // WORDS_AT_X)
        marks = [(float(at), _short(names[at])) for at in range(0, len(names), step)]
        return AxisScale(-0.5, len(names) - 0.5, tuple(marks)), up
    # a line may begin at the axis; a dot there would be cut in half
    margin = 0.0 if plot.kind in ("line", "step") else axis.MARGIN
    return _numbers(xs, half, margin), up


def _numbers(xs: Sequence[float], half: float, margin: float) -> AxisScale:
    low, high = min(xs) - half, max(xs) + half
    found = axis.of_numbers([low, high], margin=margin)
    return found if low < high else axis.of_numbers([low])


def _spacing(courses: Sequence[LineNumbers]) -> float:
    """Return the least distance of two places of bars."""
    places = sorted({x for course in courses for x in course.x})
    found = min((two - one for one, two in pairwise(places)), default=0.0)
    return found or 1.0


def _short(word: str) -> str:
    return drawing.cut(figures.sanitize(word, MOST_LETTERS), 10)


# --- what is drawn --------------------------------------------------------------------------------


def _grid(across: AxisScale, up: AxisScale) -> Iterator[Shape]:
    for value, word in up.ticks:
        y = _down(up, value)
        yield drawing.line("grid", 0, 1, y, y)
        yield drawing.words("at-y", 0, y + 4, word, -7)
    yield from drawing.marks(across, HEIGHT)


def _zero(up: AxisScale) -> Iterator[Shape]:
    inside = up.low <= 0 <= up.high
    y = _down(up, 0.0) if inside else HEIGHT
    if inside:
        yield drawing.line("zero", 0, 1, y, y)
    if y < HEIGHT:
        yield drawing.line("mark", 0, 1, HEIGHT, HEIGHT)


def _diagonal(plot: Plot, across: AxisScale, up: AxisScale) -> Iterator[Shape]:
    low, high = max(across.low, up.low), min(across.high, up.high)
    if not plot.diagonal or low >= high:
        return
    x1, x2 = across.place(low), across.place(high)
    yield drawing.line("diagonal", x1, x2, _down(up, low), _down(up, high))


def _inked(
    plot: Plot, courses: Sequence[LineNumbers], across: AxisScale, up: AxisScale
) -> tuple[list[tuple[str, str]], list[Pin], list[Shape]]:
    """Return paths, pins and boxes of every line."""
    paths: list[tuple[str, str]] = []
    pins: list[Pin] = []
    front: list[Shape] = []
    width = _spacing(courses) * WIDTH / max(1, len(courses)) if plot.kind == "bars" else 0.0
    for at, course in enumerate(courses):
        number = drawing.style(course.place)
        if plot.kind == "bars":
            shift = (at - (len(courses) - 1) / 2) * width
            front += _columns(course, across, up, (shift, width))
            pins += _whiskers(course, "ink", across, up, shift)
        elif plot.kind == "dots":
            pins += _whiskers(course, f"s{number}", across, up, 0.0)
            pins += _pins(course, across, up)
        else:
            paths += [(f"area s{number}", area) for area in _areas(course, across, up)]
            paths.append((f"course s{number}", _path(course, across, up, plot.kind == "step")))
            pins += _pins(_lonely(course, all_of=plot.axis == "category"), across, up)
            pins += _along(course, len(courses), across, up)
    if plot.kind == "bars" and sum(len(course.known) for course in courses) > VALUED:
        # so many numbers would run into each other
        front = [shape for shape in front if shape.tag != "text"]
    # areas first: what is drawn later lies above, and a line must not be hidden
    paths.sort(key=lambda path: not path[0].startswith("area"))
    return paths, pins, front


def _columns(
    course: LineNumbers, across: AxisScale, up: AxisScale, place: tuple[float, float]
) -> Iterator[Shape]:
    shift, width = place
    zero = _down(up, 0.0)
    for x, y, said in zip(course.x, course.y, numbers.column(course.y), strict=True):
        if y is not None:
            left = across.place(x + shift - width / 2)
            right = across.place(x + shift + width / 2)
            top = _down(up, y)
            cls = f"box s{drawing.style(course.place)}"
            # 1 pixel at least: a value of 0 is a bar too
            yield drawing.box(cls, left, right, min(top, zero), max(1.0, abs(top - zero)))
            above = top - 5 if y >= 0 else top + 13
            yield drawing.words("value-x", (left + right) / 2, above, said)


def _whiskers(
    course: LineNumbers, ink: str, across: AxisScale, up: AxisScale, shift: float
) -> Iterator[Pin]:
    for x, low, high in zip(course.x, course.low, course.high, strict=True):
        if low is not None and high is not None:
            y1, y2 = _down(up, high), _down(up, low)
            path = f"M-4 {y1:.1f}H4M0 {y1:.1f}V{y2:.1f}M-4 {y2:.1f}H4"
            place = drawing.across(across.place(x + shift))
            yield Pin(f"whisker {ink}", place, 0.0, path)


def _pins(course: LineNumbers, across: AxisScale, up: AxisScale) -> Iterator[Pin]:
    for x, y in zip(course.x, course.y, strict=True):
        if y is not None:
            yield drawing.pin(course.place, across.place(x), _down(up, y))


def _lonely(course: LineNumbers, *, all_of: bool) -> LineNumbers:
    """Return the points that have no neighbour to draw a line to; all of them if asked."""
    ends: list[float | None] = [None, *course.y, None]
    alone = [
        y if all_of or (ends[at] is None and ends[at + 2] is None) else None
        for at, y in enumerate(course.y)
    ]
    return LineNumbers(course.name, course.place, course.x, tuple(alone), course.low, course.high)


def _along(course: LineNumbers, lines: int, across: AxisScale, up: AxisScale) -> Iterator[Pin]:
    """Yield marks along a line, by which it is followed on paper; no two lines at one place."""
    places = [place for place, y in enumerate(course.y) if y is not None]
    if lines < 2 or len(places) < MARKS:
        return
    for number in range(MARKS):
        share = (number + (course.place % lines + 1) / (lines + 1)) / MARKS
        place = places[int(share * len(places))]
        mark = drawing.pin(
            course.place, across.place(course.x[place]), _down(up, course.y[place] or 0.0)
        )
        yield Pin(f"{mark.cls} along", mark.x, mark.y, mark.path)


def _path(course: LineNumbers, across: AxisScale, up: AxisScale, stepped: bool) -> str:
    parts, pen = [], "M"
    for x, y in zip(course.x, course.y, strict=True):
        if y is None:
            pen = "M"
            continue
        place, height = across.place(x) * FIELD, _down(up, y)
        corner = f"H{place:.1f}V{height:.1f}" if stepped else f"L{place:.1f} {height:.1f}"
        parts.append(f"M{place:.1f} {height:.1f}" if pen == "M" else corner)
        pen = "L"
    return "".join(parts)


def _areas(course: LineNumbers, across: AxisScale, up: AxisScale) -> Iterator[str]:
    """Yield the interval's outlines, one for each stretch without a gap."""
    stretch: list[tuple[float, float, float]] = []
    # the None at the end closes the last stretch
    for x, low, high in zip((*course.x, 0.0), (*course.low, None), (*course.high, None),
                            strict=True):  # fmt: skip
        if low is not None and high is not None:
            stretch.append((across.place(x) * FIELD, _down(up, low), _down(up, high)))
        elif stretch:
            there = "L".join(f"{x:.1f} {y:.1f}" for x, _, y in stretch)
            back = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in reversed(stretch))
            yield f"M{there}L{back}z"
            stretch = []


def _ends(
    plot: Plot, courses: Sequence[LineNumbers], up: AxisScale
) -> tuple[tuple[Shape, ...], tuple[Pin, ...]]:
    """Return the names of the lines at their right ends, and the leaders from the ends to them."""
    named = [course for course in courses if course.known]
    if plot.kind not in ("line", "step") or not 1 < len(named) <= NAMED:
        return (), ()
    heights = [_down(up, course.known[-1]) for course in named]
    moved = drawing.apart(heights, LINE_HEIGHT, 4.0, HEIGHT)
    ends, leaders = [], []
    for course, height, y in zip(named, heights, moved, strict=True):
        number = drawing.style(course.place)
        ends.append(drawing.words(f"end s{number}", 1, y + 4, drawing.cut(course.name), 14))
        leaders.append(Pin(f"leader s{number}", "100%", 0.0, f"M2 {height:.1f}L11 {y:.1f}"))
    return tuple(ends), tuple(leaders)


def _titles(plot: Plot, courses: Sequence[LineNumbers]) -> Iterator[Shape]:
    below = figures.sanitize(plot.x, MOST_LETTERS)
    if plot.axis == "time":
        begin, end = _period(courses)
        below = f"{below or 'time'}, {begin[:10]} to {end[:10]} UTC"
    if below:
        yield drawing.words("title-x", 1, HEIGHT + 34, drawing.cut(below, 60))
    if plot.y:
        yield drawing.words(
            "title-y", 0, -12, drawing.cut(figures.sanitize(plot.y, MOST_LETTERS), 60)
        )


# --- what is said ---------------------------------------------------------------------------------


def _keys(plot: Plot, courses: Sequence[LineNumbers]) -> tuple[Key, ...]:
    return tuple(
        drawing.key(course.place, course.name, _summary(plot, course)) for course in courses
    )


def _summary(plot: Plot, course: LineNumbers) -> str:
    """Return the words on where a line ends and between which values it runs."""
    known = course.known
    if not known:
        return "no value"
    if plot.kind in ("bars", "dots"):
        return ""
    first, last, low, high = numbers.column([known[0], known[-1], min(known), max(known)])
    if plot.axis != "time" or len(plot.lines) > 1:
        return f"ends at {last}, between {low} and {high}"
    begin, end = _period([course])
    return f"{begin}: {first}, {end}: {last}, between {low} and {high}"


def _told(plot: Plot, courses: Sequence[LineNumbers]) -> str:
    kinds = {"line": "Lines", "step": "Steps", "bars": "Bars", "dots": "Points"}
    over = {"time": "time", "number": "numbers", "category": "categories"}[plot.axis]
    if plot.axis == "time":
        over = "time from {} to {}".format(*_period(courses))
    each = "; ".join(f"{course.name}: {_range(course)}" for course in courses)
    return f"{kinds[plot.kind]} over {over}. {each}."


def _range(course: LineNumbers) -> str:
    known = course.known
    if not known:
        return "no value"
    first, last, low, high = numbers.column([known[0], known[-1], min(known), max(known)])
    return f"{len(known)} points from {first} to {last}, between {low} and {high}"


def _period(courses: Sequence[LineNumbers]) -> tuple[str, str]:
    xs = [x for course in courses for x in course.x]
    begin, end = (figures.moment(iso(axis.moment(x))) for x in (min(xs), max(xs)))
    return begin, end


def _down(up: AxisScale, value: float) -> float:
    return round((1 - up.place(value)) * HEIGHT, 1)

"""The parts of a drawn plot: shapes with their attributes, and their placement.

A drawing is as wide as its place. Positions across are shares of the width (percent), so that
letters and marks keep their size on a phone and on paper; positions down are pixels. Lines and
areas lie in a field of FIELD units that is stretched to the width. Templates write the shapes out
and escape every word; classes carry colours, dashes and marks. Values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from torra.evaluation.exhibits import MOST_LETTERS
from torra.exhibits import figures
from torra.exhibits.axis import AxisScale

FIELD: Final = 1000.0
"""Width of the field in which paths are drawn."""

STYLES: Final = 8
"""Classes s1 to s8 of lines: colour, dashes and mark; a ninth line begins anew."""

LETTERS: Final = 23
"""Characters of a word beside a plot; the whole word is in the key and in the table."""

PINS: Final = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "M-3.2-3.2h6.4v6.4h-6.4z",
    "M0-4.6L4.6 0L0 4.6L-4.6 0z",
    "M0-4.2L4.2 3.4H-4.2z",
    "M0 4.2L4.2-3.4H-4.2z",
    "M-4-1.2h2.8V-4h2.4v2.8H4v2.4H1.2V4h-2.4V1.2H-4z",
    "M-2-4h4v8h-4z",
    "M-4-2h8v4h-8z",
)
"""Outlines of the marks of s1 to s8: circle, square, diamond, triangles, cross, bars."""


class Kind(NamedTuple):
    """What the marks of a kind of plot are called, and their form in the legend."""

    word: str
    swatch: str


KINDS: Final = {
    "line": Kind("Lines", "line"),
    "step": Kind("Steps", "line"),
    "bars": Kind("Bars", "box"),
    "dots": Kind("Points", "pin"),
    "bands": Kind("States", "box"),
}


class Shape(NamedTuple):
    """An element of SVG.

    A path lies in the field. A pin is a path of fixed size at a place: a mark, a whisker, a leader.
    """

    tag: str
    cls: str
    attributes: Mapping[str, object]
    text: str = ""


class Key(NamedTuple):
    """An entry of the legend: style, the line's whole name, its last and extreme values, mark."""

    style: int
    name: str
    summary: str
    mark: str


class Drawing(NamedTuple):
    """A plot, ready to be written out.

    `height` is that of the plot itself; `left` and `right` (s, m, l) are the sizes of the margins
    for the words beside it. Shapes are drawn first, then the paths in the field, then pins.
    `summary` is the plot in words, for a reader who does not see it. `swatch` is the form of a line
    in the legend.
    """

    height: float
    left: str
    right: str
    shapes: Sequence[Shape]
    summary: str
    swatch: str
    keys: Sequence[Key] = ()
    diagonal: bool = False


def style(place: int) -> int:
    """Return the number of the style of the line at a place."""
    return place % STYLES + 1


def key(place: int, name: str, summary: str = "") -> Key:
    """Return the legend's entry of the line at a place."""
    number = style(place)
    return Key(number, name, summary, PINS[number - 1])


def across(share: float) -> str:
    """Write a place across, 0 to 1, as a share of the width."""
    return f"{share * 100:.2f}%"


def line(cls: str, x1: float, x2: float, y1: float, y2: float) -> Shape:
    """Return a straight line; x in shares, y in pixels."""
    ends = {"x1": across(x1), "x2": across(x2), "y1": round(y1, 1), "y2": round(y2, 1)}
    return Shape("line", cls, ends)


def box(cls: str, x1: float, x2: float, y: float, height: float) -> Shape:
    """Return a box between two shares of the width."""
    low, high = sorted((x1, x2))
    size = {"x": across(low), "width": across(high - low), "y": round(y, 1)}
    return Shape("rect", cls, {**size, "height": round(max(0.0, height), 1)})


def words(cls: str, x: float, y: float, text: str, dx: float = 0.0) -> Shape:
    """Return words; `dx` moves them by pixels."""
    return Shape("text", cls, {"x": across(x), "y": round(y, 1), "dx": dx}, text)


def path(cls: str, d: str) -> Shape:
    """Return a path in the field."""
    return Shape("path", cls, {"d": d})


def pin(cls: str, x: float, y: float, d: str) -> Shape:
    """Return a path of fixed size; x in shares, y in pixels."""
    return Shape("pin", cls, {"x": across(x), "y": y, "d": d})


def mark(place: int, x: float, y: float, cls: str = "") -> Shape:
    """Return the mark of the line at a place."""
    number = style(place)
    return pin(f"pin s{number}{cls}", x, round(y, 1), PINS[number - 1])


def ticks(scale: AxisScale, height: float) -> Iterator[Shape]:
    """Yield the marks of an axis that lies below, with their words."""
    for at, (value, word) in enumerate(scale.ticks):
        x = scale.place(value)
        yield line("mark", x, x, height, height + 4)
        yield words("at-x" + (" minor" if at % 2 else ""), x, height + 17, word)


def title(cls: str, x: float, y: float, text: str) -> Iterator[Shape]:
    """Yield the name of an axis, if it has one."""
    if text:
        yield words(cls, x, y, cut(label(text), 60))


def block(x: float, y: float, width: float, height: float) -> str:
    """Return a box of a path."""
    return f"M{x:.1f} {y:g}h{width:.1f}v{height:g}h-{width:.1f}z"


def polyline(points: Iterable[tuple[float, float] | None], *, stepped: bool = False) -> str:
    """Return the path of a line, in steps if asked; None is a gap."""
    parts: list[str] = []
    before = None
    for point in points:
        if point:
            x, y = point
            corner = f"H{x:.1f}V{y:.1f}" if stepped else f"L{x:.1f} {y:.1f}"
            parts.append(corner if before else f"M{x:.1f} {y:.1f}")
        before = point
    return "".join(parts)


def outlines(points: Iterable[tuple[float, float, float] | None]) -> list[str]:
    """Return the areas between two lines, one for each stretch without a gap.

    A point is x and the heights of both lines.
    """
    areas = []
    for whole, stretch in groupby(points, bool):
        edge = [point for point in stretch if whole and point]
        there = "L".join(f"{x:.1f} {top:.1f}" for x, top, _ in edge)
        back = "L".join(f"{x:.1f} {bottom:.1f}" for x, _, bottom in reversed(edge))
        areas += [f"M{there}L{back}z"] if whole else []
    return areas


def label(text: str) -> str:
    """Return a stranger's word, cleaned, without blanks at its ends."""
    return figures.sanitize(text, MOST_LETTERS).strip()


def cut(text: str, most: int = LETTERS) -> str:
    """Return a word short enough to stand beside a plot."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def room(texts: list[str]) -> str:
    """Return the margin that these words need: s, m or l."""
    longest = max(map(len, texts), default=0)
    return "s" if longest <= 5 else "m" if longest <= 9 else "l"


def spread(places: list[float], least: float, low: float, high: float) -> list[float]:
    """Return the places moved so that neighbours are `least` apart, between low and high."""
    order = sorted(range(len(places)), key=lambda at: places[at])
    moved = list(places)
    floor = low
    for at in order:
        moved[at] = max(moved[at], floor)
        floor = moved[at] + least
    # and back: what the first pass pushed beyond the lower edge moves up again
    ceiling = high
    for at in reversed(order):
        moved[at] = min(moved[at], ceiling)
        ceiling = moved[at] - least
    return moved

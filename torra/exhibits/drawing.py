"""The parts of a drawn plot: shapes with their attributes, and their placement.

A drawing is as wide as its place. Positions across are shares of the width (percent), so that
letters and marks keep their size on a phone and on paper; positions down are pixels. Lines and
areas lie in a field of FIELD units that is stretched to the width. Templates write the shapes out
and escape every word; classes carry colours, dashes and marks. Values only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

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


Place = dict[str, str | float]


@dataclass(frozen=True, slots=True)
class Shape:
    """An element of SVG; `text` is its content, or its title."""

    tag: str
    cls: str
    attributes: Mapping[str, str | float]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Pin:
    """A small drawing of fixed size at a place: a mark, a whisker's end, a leader."""

    cls: str
    x: str
    y: float
    path: str


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the legend: style, mark, the line's whole name, its last and extreme values."""

    style: int
    name: str
    told: str
    mark: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot, ready to be written out.

    `height` is that of the plot itself; `left` and `right` (s, m, l) are the sizes of the margins
    for the words beside it. Drawn in this order: `back`, the field's `paths` (class and path),
    `front`, `pins`. `swatch` is the form of a line in the legend: line, box or pin.
    """

    height: float
    left: str
    right: str
    back: tuple[Shape, ...] = ()
    paths: tuple[tuple[str, str], ...] = ()
    front: tuple[Shape, ...] = ()
    pins: tuple[Pin, ...] = ()
    keys: tuple[Key, ...] = ()
    swatch: str = "line"
    told: str = ""
    """The plot in words, for a reader who does not see it."""

    diagonal: bool = False


def style(place: int) -> int:
    """Return the number of the style of the line at a place."""
    return place % STYLES + 1


def key(place: int, name: str, told: str = "") -> Key:
    """Return the legend's entry of the line at a place."""
    number = style(place)
    return Key(number, name, told, PINS[number - 1])


def across(share: float) -> str:
    """Write a place across, 0 to 1, as a share of the width."""
    return f"{share * 100:.2f}%"


def line(cls: str, x1: float, x2: float, y1: float, y2: float) -> Shape:
    """Return a straight line; x in shares, y in pixels."""
    ends: Place = {"x1": across(x1), "x2": across(x2), "y1": round(y1, 1), "y2": round(y2, 1)}
    return Shape("line", cls, ends)


def box(cls: str, x1: float, x2: float, y: float, height: float, told: str = "") -> Shape:
    """Return a box between two shares of the width."""
    low, high = sorted((x1, x2))
    size: Place = {"x": across(low), "width": across(high - low), "y": round(y, 1)}
    return Shape("rect", cls, {**size, "height": round(max(0.0, height), 1)}, told)


def block(x: float, y: float, width: float, height: float) -> str:
    """Return a box of a path."""
    return f"M{x:.1f} {y:g}h{width:.1f}v{height:g}h-{width:.1f}z"


def words(cls: str, x: float, y: float, text: str, dx: float = 0.0) -> Shape:
    """Return words; `dx` moves them by pixels."""
    return Shape("text", cls, {"x": across(x), "y": round(y, 1), "dx": dx}, text)


def marks(scale: AxisScale, height: float) -> Iterator[Shape]:
    """Yield the marks of an axis that lies below, with their words."""
    for at, (value, word) in enumerate(scale.ticks):
        x = scale.place(value)
        yield line("mark", x, x, height, height + 4)
        yield words("at-x" + (" minor" if at % 2 else ""), x, height + 17, word)


def pin(place: int, x: float, y: float) -> Pin:
    """Return the mark of the line at a place."""
    number = style(place)
    return Pin(f"pin s{number}", across(x), round(y, 1), PINS[number - 1])


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


def apart(places: list[float], least: float, low: float, high: float) -> list[float]:
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

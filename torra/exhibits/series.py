"""The lines of a plot as numbers, and what is said of them.

A time becomes seconds since 1970, a category its place among the categories. Pure functions over a
checked plot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from torra.evaluation.exhibits import Plot
from torra.exhibits import axis, drawing, numbers, thinning


@dataclass(frozen=True)
class Series:
    """A line: x, y and the bounds of its intervals, all of one length; `place` tells its style."""

    name: str
    place: int
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]

    @property
    def style(self) -> int:
        """The number of its style."""
        return drawing.style(self.place)

    @cached_property
    def heights(self) -> list[float]:
        """The heights that are known."""
        return [y for y in self.y if y is not None]

    @cached_property
    def points(self) -> list[tuple[float, float]]:
        """The points with a known height."""
        return [(x, y) for x, y in zip(self.x, self.y, strict=True) if y is not None]

    @property
    def intervals(self) -> list[tuple[float, float, float]]:
        """The points with bounds: x, low and high."""
        rows = zip(self.x, self.low, self.high, strict=True)
        return [(x, low, high) for x, low, high in rows if low is not None and high is not None]

    @cached_property
    def extremes(self) -> list[str]:
        """The first, the last, the lowest and the highest of the known heights, written alike."""
        heights = self.heights
        return numbers.column([heights[0], heights[-1], min(heights), max(heights)])


def categories(plot: Plot) -> list[str]:
    """Return the categories of a plot, as they come; none over times or numbers."""
    places = dict.fromkeys(x for line in plot.lines for x, _ in line.points)
    return [x for x in places if isinstance(x, str)]


def number(x: datetime | float | str) -> float:
    """Return a time or a number as a number."""
    return x.timestamp() if isinstance(x, datetime) else float(x)


def of_plot(plot: Plot, styles: Sequence[int], most: int) -> list[Series]:
    """Return the lines of a plot, of each `most` points at most; `styles` are their places."""
    places = {name: float(at) for at, name in enumerate(categories(plot))}
    lines = []
    for line, style in zip(plot.lines, styles, strict=True):
        bare = [None] * len(line.points)
        bounds = zip(line.points, line.low or bare, line.high or bare, strict=True)
        rows: list[tuple[Any, ...]] = [
            (places[x] if isinstance(x, str) else number(x), y, low, high)
            for (x, y), low, high in bounds
        ]
        columns = zip(*thinning.thinned(rows, most), strict=True) if rows else ((),) * 4
        lines.append(Series(drawing.label(line.name), style, *map(tuple, columns)))
    return lines


def period(lines: Sequence[Series]) -> tuple[str, str]:
    """Write the first and the last time of some lines."""
    times = [x for line in lines for x in line.x]
    return axis.written(min(times)), axis.written(max(times))

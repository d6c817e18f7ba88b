"""The results of an evaluation: tables and plots, each with a plain sentence that explains it.

An exhibit never shows a figure without its uncertainty. `says` is one or two plain sentences; if
the sample is too small to show anything, they say so and name the number that it would take. Values
only: torra.exhibits.report draws them, for a page, a file and the terminal alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Cell = str | int | float | bool | None

PlotKind = Literal["line", "step", "bars", "dots", "bands"]
"""line and step: y over x; bars: one bar for each category; dots: points alone, with error bars
where a Line has low and high; bands: coloured stretches of time by category (a state timeline).
"""

Point = tuple[datetime | float | str, float | str | None]
"""(x, y): x a moment, a number or a category; y a number, None for a gap, a category for bands."""


@dataclass(frozen=True, slots=True)
class ExhibitLine:
    """One series of a plot; `low` and `high`, if given, bound each point's interval."""

    name: str
    points: tuple[Point, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ExhibitPlot:
    """One plot: its axes in words, its lines, and a diagonal where y = x would be perfect."""

    title: str
    kind: PlotKind
    lines: tuple[ExhibitLine, ...]
    x: str = ""
    y: str = ""
    diagonal: bool = False


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table, the sentences under it, and its plots.

    `name` is a short id, unique in a report (letters and dashes). `figures` are the same results
    by name at full precision, for programs such as a test or a promotion rule. `enough` is False
    if the sample is too small to show anything.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    says: str
    enough: bool = True
    plots: tuple[ExhibitPlot, ...] = ()
    figures: Mapping[str, float | None] = field(default_factory=dict)

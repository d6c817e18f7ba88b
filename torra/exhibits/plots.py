"""Plots of a document as drawings, for a page and for paper alike.

`drawn(plot)` chooses the layout: a chart with two axes (lines, steps, dots and bars over time or
numbers, and lines over categories), rows (bars and dots by category, which then have room for their
names), or lanes (bands: every state has a row of its own, so that no colour is needed to tell them
apart). Zero is on every bar's axis, and is drawn if it is in sight. An interval is a whisker or a
pale area; a gap is a gap. Words are cleaned here; the template escapes them. A plot of a checked
document never raises; one without a number gives None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from torra.clock import iso
from torra.evaluation.exhibits import Plot, PlotLine
from torra.exhibits import chart_layout, figures, numbers, row_layout
from torra.exhibits.drawing import STYLES, Drawing, label, style

ROWS_TOLD: Final = 60
"""Most rows of the table behind a plot."""


def drawn(plot: Plot, arms: Sequence[str] = ()) -> Drawing | None:
    """Return the drawing of a plot, None if it has no point with a value.

    Lines that are named as arms look the same in every plot: by their place among the arms.
    """
    if not any(y is not None for line in plot.lines for _, y in line.points):
        return None
    if plot.kind == "bands":
        return row_layout.lanes(plot)
    if plot.kind in ("bars", "dots") and plot.axis == "category":
        return row_layout.rows(plot, _styles(plot, arms))
    return chart_layout.chart(plot, _styles(plot, arms))


def table(plot: Plot) -> dict[str, Any]:
    """Return a plot's points as a table: {"columns", "rows", "count"}, x down, lines across.

    At most ROWS_TOLD rows, evenly spread, the first and the last among them.
    """
    bounded = [bool(line.low) for line in plot.lines]
    columns = [label(plot.x) or {"time": "Time", "number": "x"}.get(plot.axis, "Of what")]
    for line, has in zip(plot.lines, bounded, strict=True):
        columns += [label(line.name), *(["low", "high"] if has else [])]
    found: dict[Any, list[Any]] = {}
    for at, line in enumerate(plot.lines):
        first = sum(1 + 2 * has for has in bounded[:at])
        seen: Counter[Any] = Counter()
        for x, values in _values(line):
            seen[x] += 1  # an x that comes again has a row of its own
            row = found.setdefault((x, seen[x]), [None] * (len(columns) - 1))
            row[first : first + len(values)] = values
    # categories stay in the order in which they came
    places = list(found) if plot.axis == "category" else sorted(found)
    chosen = [places[at] for at in _spread(len(places))]
    cells = [numbers.column(column) for column in zip(*(found[x] for x in chosen), strict=True)]
    rows = [[x_word(x), *row] for (x, _), row in zip(chosen, zip(*cells, strict=True), strict=True)]
    return {"columns": columns, "rows": rows, "count": len(places)}


def _styles(plot: Plot, arms: Sequence[str]) -> list[int]:
    """Return the style of each line: that of its arm, or its own place if arms would look alike."""
    names = [line.name for line in plot.lines]
    own = list(range(len(names)))
    if not set(names) <= set(arms):
        return own
    found = [list(arms).index(name) for name in names]
    told_apart = len(set(map(style, found))) == min(len(names), STYLES)
    return found if told_apart else own


def x_word(x: datetime | float | str) -> str:
    """Write x of a point: a time, a number or a category."""
    if isinstance(x, datetime):
        return figures.moment(iso(x))
    return label(x) if isinstance(x, str) else numbers.short(x)


def _values(line: PlotLine) -> Sequence[tuple[Any, list[Any]]]:
    if not line.low:
        return [(x, [_said(y)]) for x, y in line.points]
    bounds = zip(line.points, line.low, line.high, strict=True)
    return [(x, [_said(y), low, high]) for (x, y), low, high in bounds]


def _said(y: float | str | None) -> float | str | None:
    return figures.mark(y).text.strip() if isinstance(y, str) else y


def _spread(count: int) -> list[int]:
    if count <= ROWS_TOLD:
        return list(range(count))
    return sorted({round(at * (count - 1) / (ROWS_TOLD - 1)) for at in range(ROWS_TOLD)})

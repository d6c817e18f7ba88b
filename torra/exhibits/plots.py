"""Plots of a document as drawings, for a page and for paper alike.

`drawn(plot)` chooses the layout: a chart with two axes (lines, steps, dots and bars over time or
numbers, and lines over categories), rows (bars and dots by category, which then have room for their
names), or lanes (bands: every state has a row of its own, so that no colour is needed to tell them
apart). Zero is on every bar's axis, and is drawn if it is in sight. An interval is a whisker or a
pale area; a gap is a gap. Words are cleaned here; the template escapes them. A plot of a checked
document never raises; one without a number gives None.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from torra.clock import iso
from torra.evaluation.exhibits import Plot
from torra.exhibits import chart_layout, figures, numbers, row_layout
from torra.exhibits.drawing import STYLES, Drawing, label, style

MOST_ROWS: Final = 60
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

    At most MOST_ROWS rows, evenly spread, the first and the last among them.
    """
    columns = [label(plot.x) or {"time": "Time", "number": "x"}.get(plot.axis, "Of what")]
    cells: defaultdict[tuple[Any, int], dict[int, Any]] = defaultdict(dict)
    for line in plot.lines:
        first, bounds = len(columns), [row for row in (line.low, line.high) if row]
        columns += [label(line.name), *["low", "high"][: len(bounds)]]
        again: Counter[Any] = Counter()
        for at, (x, y) in enumerate(line.points):
            again[x] += 1  # an x that comes again has a row of its own
            row = cells[x, again[x]]
            row[first] = _state(y)
            for place, bound in enumerate(bounds, first + 1):
                row[place] = bound[at]
    # categories stay in the order in which they came
    places = list(cells) if plot.axis == "category" else sorted(cells)
    chosen = [places[at] for at in _spread(len(places))]
    by_column = [
        numbers.column([cells[place].get(at) for place in chosen]) for at in range(1, len(columns))
    ]
    words = [x_word(x) for x, _ in chosen]
    rows = [list(row) for row in zip(words, *by_column, strict=True)]
    return {"columns": columns, "rows": rows, "count": len(places)}


def x_word(x: datetime | float | str) -> str:
    """Write x of a point: a time, a number or a category."""
    if isinstance(x, datetime):
        return figures.moment(iso(x))
    return label(x) if isinstance(x, str) else numbers.short(x)


def _styles(plot: Plot, arms: Sequence[str]) -> list[int]:
    """Return the style of each line: that of its arm, or its own place if arms would look alike."""
    names = [line.name for line in plot.lines]
    own = list(range(len(names)))
    if not set(names) <= set(arms):
        return own
    of_arms = [list(arms).index(name) for name in names]
    return of_arms if len(set(map(style, of_arms))) == min(len(names), STYLES) else own


def _state(y: float | str | None) -> float | str | None:
    return figures.mark(y).text.strip() if isinstance(y, str) else y


def _spread(count: int) -> list[int]:
    if count <= MOST_ROWS:
        return list(range(count))
    return sorted({round(at * (count - 1) / (MOST_ROWS - 1)) for at in range(MOST_ROWS)})

"""A document arranged for a page of the dashboard and for the report on paper, in the same order.

`arranged` turns a checked document into words and drawings: every table with its sentence and its
plots, then the plots and lines that belong to no table. `html` is the report as one file: it loads
nothing, has no script, and its own policy allows its own style sheet only. Every word of a document
is a stranger's: it is cleaned here and escaped by the templates.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from html import escape
from typing import Any, Final

from flask import Flask
from flask.templating import Environment

from torra.clock import iso
from torra.config import ROOT
from torra.evaluation.exhibits import MOST_LETTERS, MOST_POINTS, MOST_SAYS, Line, Plot, Table
from torra.exhibits import figures, numbers, plots, thinning
from torra.exhibits.documents import MOST_SUMMARY, Document, Series

KINDS: Final = {"replay": "↻ replay", "scorecard": "☰ scorecard"}
ROWS_SHOWN: Final = 500
"""Most rows of a table on a page; the file and the API hold all."""

WIDEST: Final = 9
"""A table with more columns than this, and no more rows, is turned."""

BRIEF: Final = 24
"""Most characters of a cell that is not broken into lines."""

WARNING: Final = 600
"""Most characters of a warning on a page."""

SHEETS: Final = ("torra.css", "plots.css", "report.css")
"""Style sheets of the report, from the general one to its own."""

TOO_FEW: Final = "◌ too few to tell"


def arranged(found: Document) -> dict[str, Any]:
    """Return a document as its page shows it."""
    return {
        "problem": "",
        "kind": KINDS[found.kind],
        "title": figures.clean(found.title, MOST_LETTERS),
        "summary": figures.clean(found.summary, MOST_SUMMARY),
        "created": moment(found.created_at),
        "start": moment(found.period.start),
        "end": moment(found.period.end),
        "arms": [figures.clean(arm, MOST_LETTERS) for arm in found.arms],
        "warnings": [figures.clean(text, WARNING) for text in found.warnings],
        "exhibits": _numbered(_exhibits(found)),
        "too_few": TOO_FEW,
    }


def html(document: Document) -> str:
    """Return the report as one HTML file, complete in itself."""
    one = arranged(document)
    title = escape(one["title"])
    body = _templates().get_template("torra_agents/report.html").render(one=one)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{inner_policy()}">\n'
        f"<title>{title} · Torra</title>\n<style>{sheet()}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def policy() -> str:
    """Return the Content-Security-Policy of a served report: its own style sheet, nothing else."""
    return f"{inner_policy()}; frame-ancestors 'none'"


def inner_policy() -> str:
    """Return the policy that the file itself carries."""
    digest = base64.b64encode(hashlib.sha256(sheet().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def sheet() -> str:
    """Return the report's whole sheet."""
    folder = ROOT / "static"
    return "\n".join((folder / name).read_text(encoding="utf-8").strip() for name in SHEETS)


@cache
def _templates() -> Environment:
    """Return the environment of the templates, which escapes every word as on the pages."""
    folder = str(ROOT / "templates")
    return Flask("torra.replay", static_folder=None, template_folder=folder).jinja_env


def moment(when: datetime | None) -> str:
    """Write a time to the minute, UTC."""
    return figures.moment(iso(when)) if when else figures.DASH


# --- arranging ------------------------------------------------------------------------------------


def _exhibits(found: Document) -> Iterator[dict[str, Any]]:
    for table in found.tables:
        # a table without a name owns no plot
        own = [plot for plot in found.plots if plot.of and plot.of == table.name]
        yield {
            "title": figures.clean(table.title, MOST_LETTERS),
            "says": figures.clean(table.says, MOST_SAYS),
            "enough": table.enough,
            "table": table_of(table),
            "plots": [plotted(plot, found.arms) for plot in own],
        }
    for plot in [*(p for p in found.plots if not p.of), *map(_as_plot, found.series)]:
        shown = plotted(plot, found.arms)
        yield {
            "title": shown["title"],
            "says": shown["says"],
            "enough": True,
            "table": None,
            "plots": [shown | {"title": "", "says": ""}],
        }


def _numbered(exhibits: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give every exhibit and every plot the id that links and labels use."""
    found = []
    for number, exhibit in enumerate(exhibits, 1):
        shown = [
            plot | {"id": f"plot-{number}-{place}"}
            for place, plot in enumerate(exhibit["plots"], 1)
        ]
        found.append(exhibit | {"id": f"exhibit-{number}", "plots": shown})
    return found


def table_of(table: Table) -> dict[str, Any]:
    """Return a table as words, with the kind of each column: num, brief, or "" if words wrap.

    A table with many columns and few rows is turned, so that it fits on paper and on a phone.
    """
    shown = table.rows[:ROWS_SHOWN]
    columns = list(zip(*shown, strict=True)) if shown else [()] * len(table.columns)
    heads = [figures.clean(name, MOST_LETTERS) for name in table.columns]
    written = [numbers.column(column) for column in columns]
    kinds = [_kind(column, cells) for column, cells in zip(columns, written, strict=True)]
    if len(heads) > WIDEST and 0 < len(shown) <= WIDEST:
        rows = [[head, *cells] for head, cells in zip(heads, written, strict=True)]
        heads, *written_rows = rows
        kinds = ["", *["num"] * len(shown)]
    else:
        written_rows = [list(row) for row in zip(*written, strict=True)]
    return {
        "title": figures.clean(table.title, MOST_LETTERS),
        "columns": heads,
        "kinds": kinds,
        "rows": written_rows,
        "count": len(table.rows),
        "left": max(0, len(table.rows) - ROWS_SHOWN),
    }


def _kind(column: Sequence[Any], cells: Sequence[str]) -> str:
    if _all_numbers(column):
        return "num"
    return "brief" if max(map(len, cells), default=0) <= BRIEF else ""


def _all_numbers(column: Sequence[Any]) -> bool:
    known = [value for value in column if value is not None]
    return bool(known) and all(figures.number(value) is not None for value in known)


def plotted(plot: Plot, arms: Sequence[str] = ()) -> dict[str, Any]:
    """Return a plot as a page shows it: its words, its drawing and its points as a table."""
    return {
        "title": figures.clean(plot.title, MOST_LETTERS),
        "name": figures.clean(plot.title, MOST_LETTERS),
        "says": figures.clean(plot.says, MOST_SAYS),
        "drawing": plots.drawn(plot, arms),
        "points": plots.table(plot),
    }


def _as_plot(series: Series) -> Plot:
    """Return a line of the older form as a plot."""
    kept = thinning.kept(series.points, MOST_POINTS)
    points = tuple(series.points[place] for place in kept)
    # without a second check: the points were checked as a series
    line = Line.model_construct(name=series.title, points=points, low=(), high=())
    return Plot.model_construct(title=series.title, kind="line", lines=(line,))

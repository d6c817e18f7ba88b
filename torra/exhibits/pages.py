"""A document arranged for a page of the dashboard and for the report on paper, in the same order.

`arranged` turns a checked document into words and drawings. What arms came to in money is first, a
sentence and a short table, then their curves; every table with its sentence and its plots follows,
known ones as "How this is computed" under a trader's question, and the plots that belong to no
table. Trades are handed in (`trades_shown`): they lie in a file of their own. `html` is the
report as one file: it loads nothing, has no script, and its own policy allows its own style sheet
only. Every word of a document is a stranger's: it is cleaned here and escaped by the templates.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache, partial
from html import escape
from typing import Any, Final

from flask import Flask
from flask.templating import Environment

from torra.clock import iso
from torra.config import ROOT
from torra.evaluation.exhibits import MOST_LETTERS, MOST_SAYS, Plot, ReportTable
from torra.evaluation.wording import CONTROL, MEANINGLESS, arm_called
from torra.exhibits import figures, numbers, outcome, plots, trade_file
from torra.exhibits.documents import MOST_SUMMARY, Document
from torra.exhibits.trade_file import ArmTradeRow
from torra.words import report_tables

KINDS: Final = {"replay": "↻ replay", "scorecard": "☰ scorecard"}
ROWS_SHOWN: Final = 500
"""Most rows of a table on a page; the file and the API hold all."""

WIDEST: Final = 9
"""A table with more columns than this, and no more rows, is turned."""

BRIEF: Final = 24
"""Most characters of a cell that is not broken into lines."""

WARNING: Final = 600
"""Most characters of a warning on a page."""

SHEETS: Final = ("torra.css", "plots.css")
"""Style sheets of the report, from the general one to its own."""

TOO_FEW: Final = "◌ too few to tell"

PLACEBO: Final = (
    "A placebo is the same desk with answers that mean nothing. A desk that does no better than "
    "its placebos knew nothing."
)
"""What stands under a table with placebos."""

ON_PAPER: Final = 200
"""Most trades of an arm in a report; the CSV file has all."""

WORDS: Final = (
    "Result: a share of the capital; drawdown: the deepest fall below the highest point. 1 R is "
    "what a trade's stop puts at risk; in brackets where the true mean lies, with 95 % confidence. "
    "Models' cost is what was paid for answers, in US dollars."
)
"""What stands under every table of arms."""

SETTINGS: Final = {"bars": "Bars", "profile": "Profile", "thresholds": "Thresholds"}
"""What is said of the settings of a document, in this order."""


clean: Final = partial(figures.sanitize, limit=MOST_LETTERS)
"""Returns a stranger's words as a page shows them."""


def arranged(document: Document, trades: Sequence[ArmTradeRow] = ()) -> dict[str, Any]:
    """Return a document as its page shows it, on paper with the newest `trades` of its arms."""
    came_to = outcome.outcome(document.tables, document.arms)
    # another program's own first: nothing else says what they say
    exhibits = _numbered(sorted(_exhibits(document, came_to), key=lambda item: bool(item["asks"])))
    return {
        "problem": "",
        "kind": KINDS[document.kind],
        "title": clean(document.title),
        "summary": figures.sanitize(_summary(document, came_to), MOST_SUMMARY),
        "money": _money(came_to),
        "curves": _curves(document) if came_to else [],
        "trades": [
            trades_shown(document, trades, arm, 0, ON_PAPER)
            for arm in _paper_arms(document, trades)
        ],
        "created": moment(document.created_at),
        "start": moment(document.period.start),
        "end": moment(document.period.end),
        "arms": [clean(arm_called(arm, document.arms)) for arm in document.arms],
        "settings": _settings(document),
        "warnings": [figures.sanitize(text, WARNING) for text in document.warnings],
        "exhibits": [item for item in exhibits if not item["asks"]],
        "computed": [item for item in exhibits if item["asks"]],
        "too_few": TOO_FEW,
    }


def html(document: Document, trades: Sequence[ArmTradeRow] = ()) -> str:
    """Return the report as one HTML file, complete in itself, with the newest trades."""
    one = arranged(document, trades)
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


def arms_of(document: Document, trades: Sequence[ArmTradeRow]) -> list[str]:
    """Return the arms that have trades to be listed, in the order of the document."""
    traded = {line.arm for line in trades}
    return [arm for arm in document.arms if arm in traded]


def first_arm(arms: Sequence[str]) -> str:
    """Return whose trades are shown first: the first desk's, else L1's."""
    desks = [arm for arm in arms if arm != CONTROL and arm not in MEANINGLESS]
    return next(iter([*desks, *arms]), "")


def trades_shown(
    document: Document, trades: Sequence[ArmTradeRow], arm: str, begin: int, most: int
) -> dict[str, Any]:
    """Return `most` trades of an arm from place `begin` on as a table, and how many there are."""
    own = [line.cells for line in trades if line.arm == arm]
    called = clean(arm_called(arm, document.arms))
    return {
        "title": f"Trades of {called}, newest first; results after all costs, in the account's "
        "currency",
        "called": called,
        "columns": list(trade_file.HEADS),
        "kinds": ["brief", "brief", "num", "num", "brief", "num", "num", "num", "brief"],
        "rows": [list(cells) for cells in own[begin : begin + most]],
        "count": len(own),
        "left": max(0, len(own) - begin - most),
    }


# --- arranging ------------------------------------------------------------------------------------


def _money(came_to: outcome.ArmsConclusion | None) -> dict[str, Any] | None:
    """Return the sentence in money and the short table of arms."""
    if came_to is None:
        return None
    return {
        "sentence": figures.sanitize(came_to.sentence, MOST_SUMMARY),
        "why": figures.sanitize(came_to.why, MOST_SAYS),
        "words": WORDS,
        "placebo": PLACEBO if any(line.placebo for line in came_to.lines) else "",
        "table": {
            "title": "What each came to, after all costs",
            "columns": list(outcome.HEADS),
            "kinds": ["", *["num"] * (len(outcome.HEADS) - 1)],
            "rows": [
                [clean(text) for text in (line.called, *line.cells)] for line in came_to.lines
            ],
            "count": len(came_to.lines),
            "left": 0,
        },
    }


def _summary(document: Document, came_to: outcome.ArmsConclusion | None) -> str:
    """Return what a document says beside its money: nothing that a table of its own says."""
    if came_to is None:
        return document.summary
    return document.summary.removeprefix(came_to.sentence).strip()


def _curves(document: Document) -> list[dict[str, Any]]:
    """Return the plots of the table of arms, their lines by the names that people use."""
    called = [arm_called(arm, document.arms) for arm in document.arms]
    shown = []
    for number, plot in enumerate((p for p in document.plots if p.of == outcome.ARMS), 1):
        lines = tuple(
            line.model_copy(update={"name": arm_called(line.name, document.arms)})
            for line in plot.lines
        )
        one = plotted(plot.model_copy(update={"lines": lines}), called)
        shown.append(one | {"id": f"curve-{number}"})
    return shown


def _paper_arms(document: Document, trades: Sequence[ArmTradeRow]) -> list[str]:
    """Return whose trades stand on paper: L1's and the first desk's."""
    known = arms_of(document, trades)
    return [arm for arm in known if arm in (CONTROL, first_arm(known))]


def _settings(document: Document) -> list[tuple[str, str]]:
    known = {figures.sanitize(k, 60): clean(v) for k, v in document.settings.items()}
    return [(word, known[name]) for name, word in SETTINGS.items() if name in known]


def _exhibits(
    document: Document, came_to: outcome.ArmsConclusion | None
) -> Iterator[dict[str, Any]]:
    for table in document.tables:
        # a table without a name owns no plot; the curves stand before all tables
        curves = came_to is not None and table.name == outcome.ARMS
        own = [plot for plot in document.plots if plot.of and plot.of == table.name and not curves]
        yield _exhibit(table, [plotted(plot, document.arms) for plot in own], table)
    for plot in document.plots:
        if not plot.of:
            yield _exhibit(plot, [plotted(plot, document.arms) | {"title": "", "says": ""}])


def _exhibit(
    head: ReportTable | Plot, plots: list[dict[str, Any]], table: ReportTable | None = None
) -> dict[str, Any]:
    return {
        "asks": report_tables.QUESTIONS.get(table.name, "") if table else "",
        "open": table is None or table.name in report_tables.OPEN,
        "meant": report_tables.meant(table.columns) if table else [],
        "title": clean(head.title),
        "says": figures.sanitize(head.says, MOST_SAYS),
        "enough": table is None or table.enough,
        "table": table and table_of(table),
        "plots": plots,
    }


def _numbered(exhibits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give every exhibit and every plot the id that links and labels use."""
    numbered = []
    for number, exhibit in enumerate(exhibits, 1):
        shown = [
            plot | {"id": f"plot-{number}-{place}"}
            for place, plot in enumerate(exhibit["plots"], 1)
        ]
        numbered.append(exhibit | {"id": f"exhibit-{number}", "plots": shown})
    return numbered


def table_of(table: ReportTable) -> dict[str, Any]:
    """Return a table as words, with the kind of each column: num, brief, or "" if words wrap.

    A table with many columns and few rows is turned, so that it fits on paper and on a phone.
    """
    shown = table.rows[:ROWS_SHOWN]
    columns = list(zip(*shown, strict=True)) if shown else [()] * len(table.columns)
    heads = [clean(name) for name in table.columns]
    written = [numbers.column(column) for column in columns]
    kinds = [_kind(column, cells) for column, cells in zip(columns, written, strict=True)]
    if len(heads) > WIDEST and 0 < len(shown) <= WIDEST:
        rows = [[head, *cells] for head, cells in zip(heads, written, strict=True)]
        heads, *written_rows = rows
        kinds = ["", *["num"] * len(shown)]
    else:
        written_rows = [list(row) for row in zip(*written, strict=True)]
    return {
        "title": clean(table.title),
        "columns": heads,
        "kinds": kinds,
        "rows": written_rows,
        "count": len(table.rows),
        "left": max(0, len(table.rows) - ROWS_SHOWN),
    }


def _kind(column: Sequence[Any], cells: Sequence[str]) -> str:
    known = [value for value in column if value is not None]
    if known and None not in map(figures.number, known):
        return "num"
    return "brief" if max(map(len, cells), default=0) <= BRIEF else ""


def plotted(plot: Plot, arms: Sequence[str] = ()) -> dict[str, Any]:
    """Return a plot as a page shows it: its words, its drawing and its points as a table."""
    title = clean(plot.title)
    return {
        "title": title,
        "name": title,
        "says": figures.sanitize(plot.says, MOST_SAYS),
        "drawing": plots.drawn(plot, arms),
        "points": plots.table(plot),
    }

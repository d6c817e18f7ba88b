"""The report of a replay or a scorecard: exhibits become a document, in all its forms.

`document` makes the one form that everything else reads: the dashboard's page and the report on
paper (torra.exhibits.pages), `text` for a terminal, `as_json` for programs. `write` moves it into
the home's folder of replays, whole or not at all. An exhibit's table and plots are parts of the
document as they are (torra.evaluation.exhibits), checked when they were made.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import ValidationError

from torra.errors import ConfigError, in_words
from torra.evaluation.exhibits import Exhibit
from torra.exhibits import numbers, outcome, pages, trade_file
from torra.exhibits.documents import FOLDER, LARGEST, SUFFIX, Document, allowed
from torra.home import is_kept
from torra.whole_files import write_whole

WIDTH: Final = 100
"""Characters of a line in a terminal."""

PERCENT: Final = " %"
WHOLE: Final = "\N{NO-BREAK SPACE}%"


def document(
    name: str,
    kind: Literal["replay", "scorecard"],
    title: str,
    summary: str,
    period: tuple[datetime, datetime],
    arms: Sequence[str],
    exhibits: Sequence[Exhibit],
    warnings: Sequence[str],
    created_at: datetime,
    settings: Mapping[str, str] | None = None,
) -> Document:
    """Return the document of these exhibits; `settings` says under what they were made.

    Raises ConfigError for a name that no file may have. Raises ValueError, with the place, for
    everything that `Document` refuses.
    """
    _check_name(name)
    fields = {
        "kind": kind,
        "name": name,
        "created_at": created_at,
        "title": title,
        "summary": summary,
        "period": {"from": period[0], "to": period[1]},
        "arms": tuple(arms),
        "settings": dict(settings or {}),
        "tables": [one.table for one in exhibits],
        "plots": [
            plot.model_copy(update={"of": one.name}) for one in exhibits for plot in one.plots
        ],
        "warnings": tuple(warnings),
    }
    try:
        return Document.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the report"
        raise ValueError(f"{place}: {in_words(first)}") from None


class Reported:
    """What has a document, in every form of it."""

    __slots__ = ()
    document: Document
    where: ClassVar = ""
    """The last sentence for a terminal, where it is not that of a document's page."""

    def html(self) -> str:
        """Return the report as one self-contained HTML file."""
        return pages.html(self.document, trade_file.trade_lines(self.trades()) or ())

    def text(self, *, full: bool = False) -> str:
        """Return the report for a terminal; with its statistics where they are wanted."""
        return text(self.document, full=full, where=self.where)

    def trades(self) -> str:
        """Return the trades of every arm as CSV; nothing where there is none."""
        return ""

    def as_json(self) -> dict[str, Any]:
        """Return the document for programs."""
        return self.document.model_dump(mode="json", by_alias=True)


def write(home: Path, report: Document, *, overwrite: bool = False) -> Path:
    """Move a document into the home's folder of replays and return its path.

    Raises ConfigError for a name that no file may have, for a name that is taken (unless it may be
    overwritten and the file is of the same kind), for a document that is too large to be read
    again, and if the folder cannot be written. The file is written whole or not at all.
    """
    _check_name(report.name)
    text = as_json(report)
    size = len(text.encode())
    if size > LARGEST:
        raise ConfigError(
            f"the report {report.name} has {size:,} bytes, more than the {LARGEST:,} that are "
            "read: compare fewer arms or symbols in one report"
        )
    path = home / FOLDER / f"{report.name}{SUFFIX}"
    if overwrite and path.exists() and (kind := _kind(path)) != report.kind:
        raise ConfigError(f"{path} is {kind}, no {report.kind}: take another name or remove it")
    put(path, text, overwrite=overwrite)
    return path


def put(path: Path, text: str, *, overwrite: bool = True) -> None:
    """Write a file whole or not at all; raises ConfigError if it exists or cannot be written."""
    if is_kept(path):
        raise ConfigError(f"{path} is a file that Torra lives by: take another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
    try:
        write_whole(path, text.encode(), replace=overwrite)
    except FileExistsError:
        raise ConfigError(f"{path} is there already: take another name or overwrite it") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None


def as_json(report: Document) -> str:
    """Return the text of a document's file."""
    return report.model_dump_json(by_alias=True) + "\n"


def text(report: Document, *, full: bool = False, where: str = "") -> str:
    """Return a document for a terminal: its money, what to read with care, where the rest is.

    With `full` every table with its sentence follows, as it is computed. A document without money,
    as a sweep, has its first table always. `where` is a last sentence in place of the page's.
    """
    one = pages.arranged(report)
    lines = [one["title"], f"{one['start']} to {one['end']}"]
    lines += [f"{word}: {value}" for word, value in one["settings"]]
    lines += _money(one["money"]) if one["money"] else []
    lines += ["", *_filled(one["summary"])] if one["summary"] else []
    lines += ["", "Read with care:"] if one["warnings"] else []
    lines += [line for warning in one["warnings"] for line in _filled(f"! {warning}", "  ")]
    # a file of another program has its tables in full: nothing else says what it says
    lines += _tables(one["exhibits"], one, tables=1)
    if full:
        lines += ["", "How this is computed"] if one["computed"] else []
        lines += _tables(one["computed"], one, tables=len(one["computed"]))
    elif one["computed"]:
        shown = [item | {"says": "", "title": ""} for item in one["computed"] if item["open"]]
        lines += _tables(shown, one, tables=1)
        lines += ["", "Statistics, and how all of this is computed: --full."]
    where = where or f"Plots and every table: the page /replays/{report.name}, or --report FILE."
    lines += ["", *_filled(where)]
    return "\n".join(line.rstrip() for line in lines)


# --- making ---------------------------------------------------------------------------------------


def _check_name(name: str) -> None:
    if not allowed(name):
        raise ConfigError(
            f"{name[:60]!r} is no name of a report: use letters, digits, dot, dash and underscore, "
            "32 at most, beginning with a letter or digit, and no device of Windows"
        )


def _kind(path: Path) -> str:
    """Return the kind of document that a file claims to hold."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return "no document"
    return str(values.get("kind")) if isinstance(values, dict) else "no document"


# --- for a terminal -------------------------------------------------------------------------------


def _money(money: dict[str, Any]) -> list[str]:
    """Return the sentence in money, the short table of arms, and what its sizes explain."""
    rows = [outcome.BRIEF_HEADS, *money["table"]["rows"]]
    rest = [list(row[1:]) for row in rows]
    sizes = [max(map(len, column)) for column in zip(*rest, strict=True)]
    room = WIDTH - sum(size + 2 for size in sizes)
    lines = ["", *_filled(money["sentence"]), ""]
    for who, *cells in rows:
        first, *more = textwrap.wrap(who, room, subsequent_indent="  ") or [""]
        line = "".join(f"  {cell.rjust(size)}" for cell, size in zip(cells, sizes, strict=True))
        lines += [first.ljust(room) + line, *more]
    for note in (money["why"], f"{money['words']} {money['placebo']}"):
        lines += ["", *_filled(note)] if note else []
    return lines


def _tables(exhibits: Sequence[dict[str, Any]], one: dict[str, Any], *, tables: int) -> list[str]:
    """Return exhibits with their sentences, the first so many with their tables too."""
    lines: list[str] = []
    for place, exhibit in enumerate(exhibits):
        if exhibit["table"] is None:
            continue  # a plot alone has nothing to say here
        few = "" if exhibit["enough"] else f"  {one['too_few']}"
        lines += ["", f"{exhibit['asks'] or exhibit['title']}{few}"]
        lines += [f"  {exhibit['title']}"] if exhibit["asks"] and exhibit["title"] else []
        if place < tables:
            lines += [f"  {line}" for line in _columns(exhibit["table"], WIDTH - 2)]
        lines += _filled(exhibit["says"], "  ", "  ")
    return lines


def _filled(sentence: str, then: str = "", first: str = "") -> list[str]:
    lines = textwrap.wrap(
        sentence.replace(PERCENT, WHOLE),  # a number and its sign stay in one line
        WIDTH,
        initial_indent=first,
        subsequent_indent=then,
        break_on_hyphens=False,
    )
    return [line.replace(WHOLE, PERCENT) for line in lines]


def _columns(table: dict[str, Any], width: int) -> list[str]:
    """Return a table in columns; one that is too wide is turned, or split into parts."""
    rows = [table["columns"], *table["rows"]]
    right = {at for at, kind in enumerate(table["kinds"]) if kind == "num"}
    if sum(_sizes(rows)) - 2 > width and len(table["rows"]) < len(table["columns"]):
        rows = [list(row) for row in zip(*rows, strict=True)]
        right = {*range(1, len(rows[0]))}
    lines: list[str] = []
    for part in _parts(_sizes(rows), width):
        ends = [place for place, at in enumerate(part) if at in right]
        lines += [""] if lines else []
        lines += numbers.aligned([[row[at] for at in part] for row in rows], ends)
    left = table["left"]
    return [*lines, *([f"and {left} rows more"] if left else [])]


def _sizes(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the widths of columns with the two blanks between them."""
    return [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]


def _parts(sizes: Sequence[int], width: int) -> list[list[int]]:
    """Return the columns in parts that fit, the first column in each."""
    parts = [[0]]
    for at in range(1, len(sizes)):
        part = parts[-1]
        if len(part) > 1 and sum(sizes[column] for column in [*part, at]) - 2 > width:
            parts.append(part := [0])
        part.append(at)
    return parts

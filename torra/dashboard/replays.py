"""The screens Replays and scorecards: what was run again or judged, as it arrives in the home.

A file becomes a page with its tables and lines as they stand in it (torra.dashboard.replay_files
says what it holds and what is refused). Every word of a file is a stranger's and is cleaned. Files
are read only; nothing is run from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue

from torra.clock import iso
from torra.dashboard import figures, screens
from torra.dashboard.rendering import backing, desk_view, page
from torra.dashboard.replay_files import (
    FOLDER,
    LARGEST,
    MOST,
    Document,
    Listed,
    Series,
    Shelf,
    Table,
)
from torra.dashboard.routes import Route
from torra.dashboard.stored import Row

WIDTH, HEIGHT = 600.0, 160.0
"""Coordinates of a line."""

DRAWN: Final = 1200
"""Points of a line that are drawn: more would fall on the same pixel."""

POINTS_SHOWN: Final = 200
ROWS_SHOWN: Final = 500
"""What a table on a page shows at most; the file and the API hold all."""

KINDS: Final = {"replay": "↻ replay", "scorecard": "☰ scorecard"}

_SHELVES: dict[Path, Shelf] = {}


def shelf() -> Shelf:
    """Return the shelf of the home that answers this request."""
    home = backing().home
    return _SHELVES.setdefault(home, Shelf(home))


def replays() -> str:
    """Show every replay and scorecard of the home."""
    desk = desk_view().desk()
    found, older = shelf().listed()
    return page(
        "replays.html",
        desk,
        live=url_for(".api_replays"),
        cells=screens.strip(desk),
        shape=_shape(found),
        rows=[_row(item) for item in found],
        older=older,
        folder=str(shelf().folder),
        largest=LARGEST // 1_000_000,
        most=MOST,
    )


def api_replays() -> ResponseReturnValue:
    """Answer the list of replays and scorecards, broken files with the reason."""
    found, older = shelf().listed()
    return jsonify(
        shape=_shape(found),
        cells=screens.strip(desk_view().desk()),
        replays=[_told(item) for item in found],
        left_out=older,
    )


def replay(name: str) -> str:
    """Show one replay or scorecard: its tables and its lines."""
    found = shelf().document(name) or abort(404)
    desk = desk_view().desk()
    told = {"problem": figures.clean(found.problem, 300)} if isinstance(found, Listed) else {}
    return page(
        "replay.html",
        desk,
        live=url_for(".api_desk"),
        cells=screens.strip(desk),
        shape="desk",
        name=name,
        one=told or arranged(found),  # type: ignore[arg-type]
        raw=url_for(".api_replay", name=name),
    )


def api_replay(name: str) -> ResponseReturnValue:
    """Answer one replay or scorecard as its file holds it."""
    found = shelf().document(name) or abort(404)
    if isinstance(found, Listed):
        return jsonify(_told(found)), 422
    return jsonify(found.model_dump(mode="json", by_alias=True))


# --- arranging ------------------------------------------------------------------------------------


def _shape(found: list[Listed]) -> str:
    return figures.clean(f"{FOLDER}:" + "|".join(item.name for item in found), 4000)


def _told(item: Listed) -> Row:
    created = iso(item.created_at.replace(microsecond=0)) if item.created_at else None
    return {
        "name": item.name,
        "problem": item.problem or None,
        "kind": item.kind or None,
        "title": item.title or None,
        "summary": item.summary or None,
        "created_at": created,
        "warnings": item.warnings,
    }


def _row(item: Listed) -> Row:
    return {
        "name": figures.clean(item.name, 60),
        "address": url_for(".replay", name=item.name) if not item.problem else "",
        "problem": figures.clean(item.problem, 300),
        "kind": KINDS.get(item.kind, ""),
        "title": figures.clean(item.title, 200),
        "summary": figures.clean(item.summary, 600),
        "created": _moment(item.created_at),
        "warnings": item.warnings,
    }


def arranged(found: Document) -> Row:
    """Return a document as its page shows it."""
    return {
        "problem": "",
        "kind": KINDS[found.kind],
        "title": figures.clean(found.title, 200),
        "summary": figures.clean(found.summary, 600),
        "created": _moment(found.created_at),
        "start": _moment(found.period.start),
        "end": _moment(found.period.end),
        "arms": [figures.clean(arm, 200) for arm in found.arms],
        "warnings": [figures.clean(text, 600) for text in found.warnings],
        "tables": [_table(table) for table in found.tables],
        "series": [line_of(series) for series in found.series],
    }


def _table(table: Table) -> Row:
    numbers = [
        any(figures.number(row[at]) is not None for row in table.rows)
        and all(row[at] is None or figures.number(row[at]) is not None for row in table.rows)
        for at in range(len(table.columns))
    ]
    return {
        "title": figures.clean(table.title, 200),
        "columns": [figures.clean(name, 200) for name in table.columns],
        "numbers": numbers,
        "rows": [[_cell(value) for value in row] for row in table.rows[:ROWS_SHOWN]],
        "left": max(0, len(table.rows) - ROWS_SHOWN),
    }


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return figures.loose(value)


def line_of(series: Series) -> Row:
    """Return a line as a path, its ends and extremes in words, and its newest points."""
    points = list(series.points)
    known = [(moment, value) for moment, value in points if value is not None]
    told: Row = {"title": figures.clean(series.title, 200), "count": len(known), "path": ""}
    if not known:
        return told
    values = [value for _, value in known]
    rows = points[-POINTS_SHOWN:][::-1]
    return told | {
        "path": path_of(points),
        "zero": _zero(min(values), max(values)),
        "first": _point(*known[0]),
        "last": _point(*known[-1]),
        "low": figures.loose(min(values)),
        "high": figures.loose(max(values)),
        "rows": [_point(moment, value) for moment, value in rows],
        "left": max(0, len(points) - POINTS_SHOWN),
    }


def path_of(points: list[tuple[datetime, float | None]]) -> str:
    """Return the path of a line: time to the right, a gap where there is no number."""
    step = max(1, -(-len(points) // DRAWN))
    kept = points[::step] + ([points[-1]] if (len(points) - 1) % step else [])
    values = [value for _, value in kept if value is not None]
    begin, end = kept[0][0], kept[-1][0]
    low, high = min(values, default=0.0), max(values, default=0.0)
    length, room = (end - begin).total_seconds() or 1.0, (high - low) or 1.0
    parts, pen = [], "M"
    for moment, value in kept:
        if value is None:
            pen = "M"
            continue
        x = (moment - begin).total_seconds() / length * WIDTH
        parts.append(f"{pen}{x:.1f} {HEIGHT - (value - low) / room * HEIGHT:.1f}")
        pen = "L"
    return "".join(parts)


def _zero(low: float, high: float) -> float | None:
    """Return the height of zero, where it lies between the extremes."""
    inside = low < 0 < high
    return round(HEIGHT + low / (high - low) * HEIGHT, 1) if inside else None


def _point(moment: datetime, value: float | None) -> Mapping[str, str]:
    return {"time": _moment(moment), "value": figures.loose(value)}


def _moment(moment: datetime | None) -> str:
    return figures.moment(iso(moment)) if moment else figures.DASH


ROUTES = (
    Route("/replays", "replays", replays),
    Route("/replays/<name>", "replay", replay),
    Route("/api/v1/replays", "api_replays", api_replays, reply="json"),
    Route("/api/v1/replays/<name>", "api_replay", api_replay, reply="json"),
)

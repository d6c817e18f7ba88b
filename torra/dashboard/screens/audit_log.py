"""The audit log as a page, as JSON and as a CSV file: who did what to the desk, newest first.

Everyone with the scope `read` may read all of it: it holds no secret, and people who share a desk
should see what the others did. The page checks the chain of the entries that it shows, which costs
nothing; the whole chain is checked on request. No cell of the CSV file can start a formula in a
spreadsheet. Without a database there is no log, and the page says so.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from flask import Response, jsonify
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.dashboard.doors.routes import Api, Fields, Route
from torra.dashboard.view import list_query
from torra.dashboard.view.list_query import ListQuery
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.exhibits import figures
from torra.harmless_text import escaped
from torra.store import audit as audit_chain
from torra.store.audit import PROVES_NOT, SEALED
from torra.words.badge import Badge

SHOWN: Final = 50
MOST: Final = 500
"""Entries on a page, and the most that the API returns at once."""

JsonObject = dict[str, JsonValue]
Row = dict[str, Any]
"""An entry as it is stored."""

COLUMNS: Final = (*SEALED, "hash")


def audit_page() -> str:
    """Show who did what, newest first."""
    return _page(whole=False)


def audit_check() -> str:
    """Check the whole chain, then show who did what."""
    return _page(whole=True)


def audit_file() -> ResponseReturnValue:
    """Give every entry as a CSV file, oldest first."""
    pages = audit_chain.every_audit_entry(backing().database)
    first = next(pages, [])  # a database that cannot be read is a 503, not half a file
    rows = itertools.chain(first, itertools.chain.from_iterable(pages))
    name = {"Content-Disposition": 'attachment; filename="torra-audit.csv"'}
    return Response(_lines(rows), mimetype="text/csv", headers=name)


def api_audit() -> ResponseReturnValue:
    """Answer entries of the audit log, newest first; `next` is what to ask as `before` after."""
    return jsonify(_listed(list_query.read(QUERY)))


def _page(*, whole: bool) -> str:
    behind = state().backing
    if behind is None:
        return desk_page("audit.html", stored=False)
    query = list_query.read(QUERY)
    listed = _listed(query)
    rows = listed["entries"]
    if whole:
        newest = audit_chain.audit_entries(behind.database, limit=1)
        last = newest[0] if newest else {"seq": 0, "hash": figures.DASH}
        sound = f"entries 1 to {last['seq']} hold; hash of entry {last['seq']}: {last['hash']}"
        broken = audit_chain.broken_entry(behind.database)
        chain = _chain(asdict(broken) if broken else None, sound)
    elif query.words or not rows:
        # entries that the filter leaves out are links of the chain
        chain = Badge("○", "not checked here", "flat")
    else:
        sound = f"entries {rows[-1]['seq']} to {rows[0]['seq']} hold"
        chain = _chain(listed["broken"], sound)
    return desk_page(
        "audit.html",
        stored=True,
        rows=rows,
        changes=_changes,
        query=query,
        address=partial(list_query.address, ".audit", QUERY),
        older=listed["next"],
        proves_not=PROVES_NOT,
        chain=chain,
    )


def _listed(query: ListQuery) -> dict[str, Any]:
    return audit_chain.audit_page(
        backing().database, before=query.before, limit=query.limit, **query.words
    )


def _chain(broken: Mapping[str, Any] | None, sound: str) -> Badge:
    if broken is None:
        return Badge("✓", sound, "note")
    return Badge("✗", f"broken at {broken['seq']}: {broken['why']}", "alert")


def _changes(entry: Row) -> list[tuple[str, str, str]]:
    """Return what an entry changed: name, value before, value after."""
    sides = (entry["before"], entry["after"])
    before, after = (side if isinstance(side, dict) else {} for side in sides)
    return [
        (name, _value(before, name), _value(after, name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def _value(values: JsonObject, name: str) -> str:
    value = values.get(name, figures.DASH)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines(rows: Iterable[Row]) -> Iterator[str]:
    # Escaped, not left out: the hash of an entry covers what strangers wrote.
    cells = ([figures.guarded(escaped(str(row[name]))) for name in COLUMNS] for row in rows)
    for line in itertools.chain([COLUMNS], cells):
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerow(line)
        yield text.getvalue()


QUERY: Final[Fields] = {
    "before": {"type": "integer", "minimum": 1, "description": "Only entries below this number."},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": SHOWN},
    "action": {"type": "string", "description": "Only entries of this action."},
    "actor": {"type": "string", "description": "Only entries of this actor."},
}

ROUTES = (
    Route("/audit", "audit", audit_page),
    Route("/audit/check", "audit_check", audit_check, per_minute=6),
    Route("/audit.csv", "audit_csv", audit_file, reply="csv", per_minute=6),
    Api("/api/v1/audit", "api_audit", api_audit, query=QUERY),
)

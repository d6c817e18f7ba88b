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
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from flask import Response, jsonify, request, url_for
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.dashboard.doors.routes import Api, Fields, Route
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.exhibits import figures
from torra.harmless_text import escaped
from torra.store import audit as audit_chain
from torra.store.audit import PROVES_NOT, Break, first_break
from torra.words.badge import Badge

SHOWN: Final = 50
MOST: Final = 500
"""Entries on a page, and the most that the API returns at once."""

LONGEST: Final = 200
"""Characters of a value that strangers wrote, in a row."""

JsonObject = dict[str, JsonValue]
Row = dict[str, Any]
"""An entry as it is stored; its `before` and `after` are JSON."""

COLUMNS: Final = (
    "seq", "at", "actor", "address", "action", "target", "outcome", "before", "after", "previous",
    "hash",
)  # fmt: skip


def audit_page() -> str:
    """Show who did what, newest first."""
    return _shown()


def audit_check() -> str:
    """Check the whole chain, then show who did what."""
    behind = state().backing
    if behind is None:
        return _shown(Badge("○", "there is none", "flat"))
    newest = audit_chain.audit_entries(behind.database, limit=1)
    last = newest[0] if newest else {"seq": 0, "hash": figures.DASH}
    whole = f"entries 1 to {last['seq']} hold; hash of entry {last['seq']}: {last['hash']}"
    return _shown(_chain(audit_chain.broken_entry(behind.database), whole))


def audit_file() -> ResponseReturnValue:
    """Give every entry as a CSV file, oldest first."""
    pages = audit_chain.every_audit_entry(backing().database)
    first = next(pages, [])  # a database that cannot be read is a 503, not half a file
    rows = itertools.chain(first, itertools.chain.from_iterable(pages))
    name = {"Content-Disposition": 'attachment; filename="torra-audit.csv"'}
    return Response(_lines(rows), mimetype="text/csv", headers=name)


def api_audit() -> ResponseReturnValue:
    """Answer entries of the audit log, newest first; `next` is what to ask as `before` after."""
    limit, before = _number("limit", SHOWN), _number("before", None)
    if limit is None or not 1 <= limit <= MOST or before == 0:
        return jsonify(error=f"limit is 1 to {MOST}, before a number above 0", status=400), 400
    rows, more = _entries(before, limit)
    return jsonify(
        entries=[row | {side: _json(row[side]) for side in ("before", "after")} for row in rows],
        next=rows[-1]["seq"] if more else None,
        broken=_break_in(rows),
    )


def _shown(chain: Badge | None = None) -> str:
    known = {name: _word(name) for name in FILTERS}
    stored, filtered = state().backing is not None, any(known.values())
    rows, more = _entries(_number("before", None), SHOWN) if stored else ([], False)
    if chain is None and (filtered or not rows):
        # entries that the filter leaves out are links of the chain
        chain = Badge("○", "not checked here", "flat")
    elif chain is None:
        chain = _chain(_break_in(rows), f"entries {rows[-1]['seq']} to {rows[0]['seq']} hold")
    chosen: dict[str, Any] = {name: word or None for name, word in known.items()}
    return desk_page(
        "audit.html",
        rows=rows,
        changes=_changes,
        known=known,
        filtered=filtered,
        older=url_for(".audit", before=rows[-1]["seq"], **chosen) if more else None,
        newest=url_for(".audit", **chosen) if request.args.get("before") else None,
        proves_not=PROVES_NOT,
        chain=chain,
        stored=stored,
    )


def _entries(before: int | None, limit: int) -> tuple[list[Row], bool]:
    """Return entries as the request filters them, and whether there are more."""
    # one more than is shown, to know whether there are older ones
    rows = audit_chain.audit_entries(
        backing().database,
        before=before,
        limit=limit + 1,
        **{name: _word(name) for name in FILTERS},
    )
    return rows[:limit], len(rows) > limit


def _chain(broken: Break | None, whole: str) -> Badge:
    if broken is None:
        return Badge("✓", whole, "note")
    return Badge("✗", f"broken at {broken.seq}: {broken.why}", "alert")


def _break_in(rows: Sequence[Row]) -> Break | None:
    """Return the first break within entries, newest first, that the oldest of them begins."""
    if not rows or any(map(_word, FILTERS)):
        return None
    # the entry before the oldest is not at hand: the hash that the oldest claims stands for it
    before = {"seq": rows[-1]["seq"] - 1, "hash": rows[-1]["previous"]}
    return first_break(rows[::-1], before)


def _changes(entry: Row) -> list[tuple[str, str, str]]:
    """Return what an entry changed: name, value before, value after."""
    before, after = _json(entry["before"]), _json(entry["after"])
    return [
        (figures.sanitize(name, LONGEST), _value(before, name), _value(after, name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def _value(values: JsonObject, name: str) -> str:
    if name not in values:
        return figures.DASH
    value = values[name]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return figures.sanitize(text, LONGEST)


def _json(text: str) -> JsonObject:
    """Return the values of an entry before or after; a broken entry has none."""
    try:
        values = json.loads(text)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _lines(rows: Iterable[Row]) -> Iterator[str]:
    # Escaped, not left out: the hash of an entry covers what strangers wrote.
    cells = ([figures.guarded(escaped(str(row[name]))) for name in COLUMNS] for row in rows)
    for line in itertools.chain([COLUMNS], cells):
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerow(line)
        yield text.getvalue()


def _word(name: str) -> str:
    return request.args.get(name, "")[:LONGEST].strip()


def _number(name: str, otherwise: int | None) -> int | None:
    """Return a number from the query; 0 for text that is none."""
    text = request.args.get(name)
    if not text:
        return otherwise
    # 18 digits: more would not fit into an integer of SQLite
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


FILTERS: Final[Fields] = {
    "action": {"type": "string", "description": "Only entries of this action."},
    "actor": {"type": "string", "description": "Only entries of this actor."},
}
CURSOR: Final[Fields] = {
    "before": {"type": "integer", "minimum": 1, "description": "Only entries below this number."},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": SHOWN},
}

ROUTES = (
    Route("/audit", "audit", audit_page),
    Route("/audit/check", "audit_check", audit_check, per_minute=6),
    Route("/audit.csv", "audit_csv", audit_file, reply="csv", per_minute=6),
    Api("/api/v1/audit", "api_audit", api_audit, query={**CURSOR, **FILTERS}),
)

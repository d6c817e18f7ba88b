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
from dataclasses import asdict, dataclass
from typing import Final

from flask import Response, jsonify, request, url_for
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.exhibits import figures
from torra.harmless_text import escaped
from torra.store.audit import PROVES_NOT, Break, first_break
from torra.words.badge import Badge

SHOWN: Final = 50
MOST: Final = 500
"""Entries on a page, and the most that the API returns at once."""

LONGEST: Final = 200
"""Characters of a value that strangers wrote, in a row."""

JsonObject = dict[str, JsonValue]

COLUMNS: Final = (
    "seq", "at", "actor", "address", "action", "target", "outcome", "before", "after", "previous",
    "hash",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry as it is stored; `before` and `after` are JSON."""

    seq: int
    at: str
    actor: str
    address: str
    action: str
    target: str
    outcome: str
    before: str
    after: str
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class AuditLine:
    """An entry as its line on the page; `changes` are (name, before, after)."""

    seq: int
    when: str
    actor: str
    by_actor: str
    address: str
    action: str
    by_action: str
    target: str
    outcome: str
    failed: bool
    changes: Sequence[tuple[str, str, str]]
    hash: str


def audit_page() -> str:
    """Show who did what, newest first."""
    return _shown(None)


def audit_check() -> str:
    """Check the whole chain, then show who did what."""
    return _shown(_told_of_all())


def audit_file() -> ResponseReturnValue:
    """Give every entry as a CSV file, oldest first."""
    pages = backing().database.every_audit_entry()
    first = next(pages, [])  # a database that cannot be read is a 503, not half a file
    lines = _lines([AuditEntry(**row) for row in rows] for rows in itertools.chain([first], pages))
    answer = Response(lines, mimetype="text/csv")
    answer.headers["Content-Disposition"] = 'attachment; filename="torra-audit.csv"'
    return answer


def api_audit() -> ResponseReturnValue:
    """Answer entries of the audit log, newest first; `next` is what to ask as `before` after."""
    limit = _number("limit", SHOWN)
    before = _number("before", None)
    if limit is None or not 1 <= limit <= MOST or before == 0:
        return jsonify(error=f"limit is 1 to {MOST}, before a number above 0", status=400), 400
    rows, more = _entries(before, limit)
    return jsonify(
        entries=[{**asdict(row), "before": _json(row.before), "after": _json(row.after)}
                 for row in rows],
        next=rows[-1].seq if more else None,
        broken=_break_in(rows),
    )  # fmt: skip


def _shown(chain: Badge | None) -> str:
    known = {"action": _word("action"), "actor": _word("actor")}
    rows, more = _entries(_number("before", None), SHOWN) if state().backing else ([], False)
    return desk_page(
        "audit.html",
        rows=[_line(row) for row in rows],
        known=known,
        filtered=any(known.values()),
        older=_address(rows[-1].seq) if more else None,
        newest=_address(None) if request.args.get("before") else None,
        proves_not=PROVES_NOT,
        chain=chain or _told_of(rows, filtered=any(known.values())),
        stored=state().backing is not None,
    )


def _entries(before: int | None, limit: int) -> tuple[list[AuditEntry], bool]:
    """Return entries as the request filters them, and whether there are more."""
    # one more than is shown, to know whether there are older ones
    found = backing().database.audit_entries(
        before=before, limit=limit + 1, action=_word("action"), actor=_word("actor")
    )
    return [AuditEntry(**row) for row in found[:limit]], len(found) > limit


def _told_of(rows: Sequence[AuditEntry], *, filtered: bool) -> Badge:
    """Return the state of the chain as far as this page's entries show it."""
    # entries that the filter leaves out are links of the chain
    if filtered or not rows:
        return Badge("○", "not checked here", "flat")
    return _chain(_break_in(rows), f"entries {rows[-1].seq} to {rows[0].seq} hold")


def _told_of_all() -> Badge:
    behind = state().backing
    if behind is None:
        return Badge("○", "there is none", "flat")
    broken = behind.database.broken_entry()
    newest = behind.database.audit_entries(limit=1)
    last = newest[0] if newest else {"seq": 0, "hash": figures.DASH}
    return _chain(
        broken, f"entries 1 to {last['seq']} hold; hash of entry {last['seq']}: {last['hash']}"
    )


def _chain(broken: Break | None, whole: str) -> Badge:
    if broken is None:
        return Badge("✓", whole, "note")
    return Badge("✗", f"broken at {broken.seq}: {broken.why}", "alert")


def _break_in(rows: Sequence[AuditEntry]) -> Break | None:
    """Return the first break within entries, newest first, that the oldest of them begins."""
    oldest_first = [asdict(row) for row in reversed(rows)]
    if not oldest_first or _word("action") or _word("actor"):
        return None
    oldest = oldest_first[0]
    # the entry before the oldest is not at hand: the hash that the oldest claims stands for it
    return first_break(oldest_first, {"seq": oldest["seq"] - 1, "hash": oldest["previous"]})


def _line(entry: AuditEntry) -> AuditLine:
    before, after = _json(entry.before), _json(entry.after)
    names = sorted({*before, *after})
    return AuditLine(
        seq=entry.seq,
        when=figures.moment(entry.at, seconds=True),
        actor=figures.sanitize(entry.actor, LONGEST),
        by_actor=url_for(".audit", actor=entry.actor),
        address=figures.sanitize(entry.address, LONGEST),
        action=figures.sanitize(entry.action, LONGEST),
        by_action=url_for(".audit", action=entry.action),
        target=figures.sanitize(entry.target, LONGEST),
        outcome=figures.sanitize(entry.outcome, LONGEST),
        failed=entry.outcome.startswith("failed"),
        changes=[
            (figures.sanitize(name, LONGEST), _value(before, name), _value(after, name))
            for name in names
            if before.get(name) != after.get(name)
        ],
        hash=entry.hash,
    )


def _value(told: JsonObject, name: str) -> str:
    if name not in told:
        return figures.DASH
    value = told[name]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return figures.sanitize(text, LONGEST)


def _json(text: str) -> JsonObject:
    """Return the values of an entry before or after; a broken entry has none."""
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _lines(pages: Iterable[Sequence[AuditEntry]]) -> Iterator[str]:
    yield _csv([COLUMNS])
    for rows in pages:
        yield _csv([[_cell(getattr(row, name)) for name in COLUMNS] for row in rows])


def _cell(value: str | int) -> str:
    # Escaped, not left out: the hash of an entry covers what strangers wrote.
    return figures.guarded(escaped(str(value)))


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def _word(name: str) -> str:
    return request.args.get(name, "")[:LONGEST].strip()


def _number(name: str, otherwise: int | None) -> int | None:
    """Return a number from the query; 0 for text that is none."""
    text = request.args.get(name)
    if not text:
        return otherwise
    # 18 digits: more would not fit into an integer of SQLite
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _address(before: int | None) -> str:
    """Return the address of the entries below a number, or of the newest, filtered as now."""
    action, actor = _word("action") or None, _word("actor") or None
    return url_for(".audit", before=before, action=action, actor=actor)


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
    Route("/api/v1/audit", "api_audit", api_audit, reply="json", query={**CURSOR, **FILTERS}),
)

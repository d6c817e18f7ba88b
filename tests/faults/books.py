"""What must hold of a desk's database at any moment that anybody may look at it.

`contents` is a digest of every row of every table, for comparing two states of a database exactly;
`story` is what a life amounts to whose moments were others: scores, verdicts, actions and signals.
`torn` names what is there by half: a finished tick without one of its twins, a twin without its
tick, a signal that no tick or no history knows, a row that points nowhere, a damaged page. All
read through the connection that they are given and change nothing.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator

DONE = "SELECT instance || '|' || timeframe || '|' || bar_time FROM ticks WHERE state = 'done'"
TWINS = ("sentiment", "chains", "journal")
"""Tables in which a finished tick has exactly one row, under its torra_key."""

OURS = "torra_key NOT LIKE 'host:%'"
"""Ticks of other scorers on the home have no row in `ticks`, and older rows no key."""

PAIRS = (
    ("signals with a history", "SELECT sid FROM signals", "SELECT sid FROM signal_events"),
    (
        "signals of finished ticks",
        "SELECT sid FROM signals",
        "SELECT sid FROM signals "
        f"WHERE instance || '|' || timeframe || '|' || bar_time IN ({DONE})",
    ),
    (
        "chains beside their own scores",
        "SELECT torra_key FROM chains",
        "SELECT c.torra_key FROM chains c JOIN sentiment s "
        "ON s.id = c.sentiment_id AND s.torra_key = c.torra_key",
    ),
)
"""Two statements each whose first columns must hold the same."""

STORY = (
    "SELECT s.torra_key, s.price_action, s.composite, s.consensus, s.verdict, s.source_type, "
    "j.action, j.reason FROM sentiment s JOIN journal j USING (torra_key) ORDER BY 1",
    "SELECT sid, kind, side, lots, state, price, opened_at FROM signals ORDER BY sid",
)


def contents(connection: sqlite3.Connection) -> str:
    """Return a digest of all rows of all tables."""
    digest = hashlib.blake2b()
    for (table,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    ).fetchall():
        digest.update(table.encode())
        digest.update(repr(connection.execute(f"SELECT * FROM {table}").fetchall()).encode())
    return digest.hexdigest()


def story(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Return every score, verdict, action and signal, in order."""
    return [row for sql in STORY for row in connection.execute(sql).fetchall()]


def torn(connection: sqlite3.Connection) -> list[str]:
    """Return what is there by half or damaged, in words; nothing for books that are whole."""
    return list(_torn(connection))


def _torn(connection: sqlite3.Connection) -> Iterator[str]:
    done = _column(connection, DONE)
    for table in TWINS:
        keys = _column(connection, f"SELECT torra_key FROM {table} WHERE {OURS}")
        if sorted(keys) != sorted(done):
            yield f"{table} and the finished ticks differ: {sorted(set(keys) ^ set(done))}"
    for what, one, other in PAIRS:
        left, right = set(_column(connection, one)), set(_column(connection, other))
        if left != right:
            yield f"not all {what}: {sorted(left ^ right)}"
    told = {
        signal["sid"]
        for record in _column(connection, f"SELECT record FROM journal WHERE {OURS}")
        for signal in json.loads(record)["signals"]
    }
    if told != set(_column(connection, "SELECT sid FROM signals")):
        yield f"the journal tells of the signals {sorted(told)}"
    yield from map(str, connection.execute("PRAGMA foreign_key_check").fetchall())
    yield from (row for row in _column(connection, "PRAGMA integrity_check") if row != "ok")


def _column(connection: sqlite3.Connection, sql: str) -> list[str]:
    return [row[0] for row in connection.execute(sql).fetchall()]

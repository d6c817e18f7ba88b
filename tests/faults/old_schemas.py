"""Databases of every schema that there ever was, with rows in every table of it.

`build(path, step, rows)` makes the database that a Torra left which knew the steps before `step`: a
scorer's table that was taken over, and in each table of Torra so many rows of what a careless
migration would change: NULLs, integers where numbers are due, odd Unicode, long fractions. A value
follows its column's name, so that keys of different tables meet; where the schema names the words
of a column it is one of those. `kept` reads all of it back, storage class and all.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlite_utils

from tests.worlds import legacy_database
from torra.store import migrations

WORDS = re.compile(r"(\w+) (?:TEXT|INTEGER)[^,]*?CHECK \(\1 IN \(([^)]*)\)\)")
MARKS = "Zürich → 東京\r\n\t'quoted'"

Rows = dict[str, list[tuple[Any, ...]]]


def build(path: Path, step: str, rows: int) -> Path:
    """Write a database that has every schema before `step`, rows in all its tables."""
    legacy_database.build(path, rows)
    db = sqlite_utils.Database(path)
    migrations.steps.apply(db, stop_before=step)
    with db.conn:
        for table in tables(db.conn):
            if table != "sentiment":
                _fill(db.conn, table, rows)
    db.close()
    return path


def rewind(connection: sqlite3.Connection, number: int) -> None:
    """Take a file back to the schema of a number, by what the later steps made.

    Nobody else may have it open.
    """
    for name in reversed(migrations.STEPS[number:]):
        script = migrations.SCRIPTS[name]
        for kind in ("TRIGGER", "INDEX", "TABLE"):
            for made in re.findall(f"CREATE (?:UNIQUE |VIRTUAL )?{kind} (\\w+)", script):
                connection.execute(f"DROP {kind} IF EXISTS {made}")
        for table, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", script):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        if name == "0012_stop_moves":
            _narrow(connection)
        if name == "0021_facts_by_source":
            _facts_of_before(connection)
        connection.execute("DELETE FROM _sqlite_migrations WHERE name = ?", (name,))
    connection.commit()


def _narrow(connection: sqlite3.Connection) -> None:
    """Give the table signals its rules of before."""
    connection.execute("PRAGMA writable_schema = ON")
    for before, after in migrations.WIDER_RULES:
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = 'signals'",
            (after, before),
        )
    connection.execute("PRAGMA writable_schema = RESET")


def _facts_of_before(connection: sqlite3.Connection) -> None:
    """Make the table facts as 0018 did; none of its rows is kept."""
    _, begun, rest = migrations.OUTSIDE.partition("CREATE TABLE facts")
    connection.execute("DROP TABLE facts")
    connection.executescript(begun + rest)


def tables(connection: sqlite3.Connection) -> list[str]:
    """Return Torra's tables but the search's, whose rows are SQLite's own, and the scorer's."""
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite*' "
        "AND name NOT GLOB '_sqlite*' AND name NOT GLOB 'lesson_search*' ORDER BY rowid"
    )
    return [name for (name,) in found]


def _fill(connection: sqlite3.Connection, table: str, rows: int) -> None:
    """Insert rows until there are enough, or the schema allows no more."""
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    words = {
        column: [word.strip(" '") for word in listed.split(",")]
        for column, listed in WORDS.findall(sql)
    }
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    marks = ", ".join("?" * len(columns))
    given = ([_value(column, words, number) for column in columns] for number in range(rows))
    connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", given)


def _value(column: Sequence[Any], words: dict[str, list[str]], number: int) -> Any:
    """Return what a column (its row in PRAGMA table_info) holds in a row of this number."""
    _, name, kind, required, _, key = column
    if name in words:
        word = words[name][number % len(words[name])]
        return int(word) if kind == "INTEGER" else word
    if name in ("id", "sentiment_id"):
        return number * 2 + 1  # the scorer's numbers, see legacy_database
    if not required and not key and number % 3 == 0:
        return None
    if kind == "INTEGER":
        return number + 1 if key or name in ("seq", "look", "trial") else 1
    if kind == "REAL":
        return 1 if number % 5 == 0 else (number + 1) / (number + 7.3)
    if kind == "BLOB":
        return bytes([number % 256, 0, 255])
    return f"{name} {number} {MARKS}"


def kept(path: Path) -> Rows:
    """Return every value of every table with its storage class, as SQLite writes it down.

    In columns by name, so that what a later schema adds can be left out of a comparison.
    """
    with closing(sqlite3.connect(path)) as connection:
        return {table: list(_read(connection, table)) for table in tables(connection)}


def _read(connection: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    yield tuple(names)
    shown = ", ".join(f"typeof({name}), quote({name})" for name in names)
    yield from connection.execute(f"SELECT {shown} FROM {table}").fetchall()


def only(before: Rows, after: Rows) -> Rows:
    """Return of `after` the tables and columns that `before` has."""
    found: Rows = {}
    for table, (names, *_) in before.items():
        there, *rows = after[table]
        places = [spot for name in names for spot in _spots(there.index(name))]
        whole = len(names) == len(there)
        found[table] = [
            names,
            *(rows if whole else [tuple(row[p] for p in places) for row in rows]),
        ]
    return found


def _spots(index: int) -> tuple[int, int]:
    return 2 * index, 2 * index + 1

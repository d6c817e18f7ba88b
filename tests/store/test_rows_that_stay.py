"""Rows that must stay as they are refuse every statement that would change them, of any program.

The tables are those with a trigger against replacements, and the rows are made of the columns'
names, so that a spread and an order flow have the bar that they belong to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.worlds import stores

TABLES = ("audit", "agent_standing", "series", "facts", "lesson_facts", "lesson_words", "spreads",
          "flow", "tool_calls")  # fmt: skip
STAYS = r"append-only|stays? as"
SETS = {"promoted": "0", "kind": "'trade'", "status": "'ok'"}
"""What the schema wants of some columns."""

WAYS = {
    "update": "UPDATE {table} SET {other} = 9 WHERE {second}",
    "update-over-another": "UPDATE OR REPLACE {table} SET {first} WHERE {second}",
    "delete": "DELETE FROM {table} WHERE {second}",
    "replace": "REPLACE INTO {table} SELECT {changed} FROM {table} WHERE {second}",
    "insert-or-replace": "INSERT OR REPLACE INTO {table} SELECT {changed} FROM {table}",
    "upsert": "INSERT INTO {table} SELECT {changed} FROM {table} WHERE {second} "
    "ON CONFLICT ({key}) DO UPDATE SET {other} = 9",
}
"""Ways to change the newest of two rows, as one statement."""


def columns(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    """Return the names and types of a table's columns."""
    return {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({table})")}


def unique(connection: sqlite3.Connection, table: str) -> list[list[str]]:
    """Return the columns of the key, then those of each other unique index."""
    info = connection.execute(f"PRAGMA table_info({table})").fetchall()
    marks = [[row[1] for row in info if row[5]]]
    indexes = connection.execute(f"PRAGMA index_list({table})").fetchall()
    others = [index[1] for index in indexes if index[2] and index[3] != "pk"]
    info_of = "SELECT name FROM pragma_index_info(?)"
    return [*marks, *([name for (name,) in connection.execute(info_of, (o,))] for o in others)]


def value(name: str, kind: str, number: int) -> str:
    return SETS.get(name, str(number) if kind != "TEXT" else f"'{name} {number}'")


def add(connection: sqlite3.Connection, table: str, number: int) -> None:
    row = [value(*column, number) for column in columns(connection, table).items()]
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join(row)})")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with two rows in each of the tables."""
    with closing(stores.open_database(tmp_path)) as database:
        for table in ("bars", *TABLES):
            for number in (1, 2):
                add(database.connection().conn, table, number)
    return tmp_path / "torra.db"


@pytest.fixture
def stranger(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection as another program opens it: none of Torra's settings."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def refused(connection: sqlite3.Connection, table: str, sql: str) -> None:
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    with pytest.raises(sqlite3.IntegrityError, match=STAYS):
        connection.execute(sql)
    assert connection.execute(f"SELECT * FROM {table}").fetchall() == rows


def equal(
    connection: sqlite3.Connection, table: str, names: Sequence[str], number: int
) -> list[str]:
    kinds = columns(connection, table)
    return [f"{name} = {value(name, kinds[name], number)}" for name in names]


def test_every_table_that_refuses_replacements_is_looked_at(stranger: sqlite3.Connection) -> None:
    sql = "SELECT tbl_name FROM sqlite_master WHERE type = 'trigger' AND name GLOB '*_replaced'"
    assert {name for (name,) in stranger.execute(sql)} == set(TABLES)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", TABLES)
def test_no_statement_of_another_program_changes_a_row(
    stranger: sqlite3.Connection, table: str, way: str
) -> None:
    names, (key, *_) = [*columns(stranger, table)], unique(stranger, table)
    other = next(name for name in reversed(names) if name not in key)
    words = {
        "table": table,
        "key": ", ".join(key),
        "other": other,
        "first": ", ".join(equal(stranger, table, key, 1)),
        "second": " AND ".join(equal(stranger, table, key, 2)),
        "changed": ", ".join("9" if name == other else name for name in names),
    }
    refused(stranger, table, WAYS[way].format(**words))


@pytest.mark.parametrize("table", TABLES)
def test_a_row_with_the_mark_of_another_does_not_take_its_place(
    stranger: sqlite3.Connection, table: str
) -> None:
    """INSERT OR REPLACE removes whatever shares a unique column with the new row."""
    kinds = columns(stranger, table)
    for mark in unique(stranger, table):
        row = [value(*column, 2 if column[0] in mark else 9) for column in kinds.items()]
        refused(stranger, table, f"INSERT OR REPLACE INTO {table} VALUES ({', '.join(row)})")


@pytest.mark.parametrize("table", TABLES)
def test_a_row_that_is_new_is_added(stranger: sqlite3.Connection, table: str) -> None:
    add(stranger, table, 7)
    assert stranger.execute(f"SELECT count(*) FROM {table}").fetchone() == (3,)


def test_the_market_of_an_opening_stays(stranger: sqlite3.Connection) -> None:
    add(stranger, "situations", 1)
    refused(stranger, "situations", "UPDATE situations SET situation = 'another'")


def test_a_connection_of_torras_fires_what_a_replacement_would_delete(path: Path) -> None:
    """Of a table that a later step makes, the trigger against deletions alone then holds."""
    with closing(stores.open_database(path.parent)) as database:
        db = database.connection()
        assert db.execute("PRAGMA recursive_triggers").fetchone()[0] == 1
        db.executescript(
            "CREATE TABLE stays (id INTEGER PRIMARY KEY, what TEXT);"
            "INSERT INTO stays VALUES (1, 'as it was');"
            "CREATE TRIGGER stays_never_shrinks BEFORE DELETE ON stays"
            " BEGIN SELECT RAISE(ABORT, 'stays'); END;"
        )
        with pytest.raises(sqlite3.IntegrityError, match="stays"):
            db.execute("INSERT OR REPLACE INTO stays VALUES (1, 'another')")

"""Rows that must stay as they are refuse every statement that would change them, of any program."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.worlds import stores


class Kept(NamedTuple):
    """A table whose rows stay, its key, and columns that are another row's alone."""

    table: str
    key: str
    unique: tuple[tuple[str, ...], ...]


TABLES: Final = (
    Kept("audit", "seq", (("hash",),)),
    Kept("agent_standing", "id", (("fingerprint", "look"), ("trial", "look"))),
)

ROWS: Final = {
    "audit": "(1, 'a', 'p', '', 'halt', '', 'done', '', '', '', 'h1'),"
    "(2, 'b', 'p', '', 'resume', '', 'done', '', '', 'h1', 'h2')",
    "agent_standing": "(1, 'f', 'p', 1, 1, 0, '', '', 'a'), (2, 'g', 'p', 2, 1, 0, '', '', 'b')",
}

WAYS: Final = {
    "update": "UPDATE {table} SET {other} = 'z' WHERE {key} = 2",
    "update-over-another": "UPDATE OR REPLACE {table} SET {key} = 1 WHERE {key} = 2",
    "delete": "DELETE FROM {table} WHERE {key} = 2",
    "replace": "REPLACE INTO {table} SELECT {columns} FROM {table} WHERE {key} = 2",
    "insert-or-replace": "INSERT OR REPLACE INTO {table} SELECT {columns} FROM {table}",
    "upsert": "INSERT INTO {table} SELECT {columns} FROM {table} WHERE {key} = 2 "
    "ON CONFLICT ({key}) DO UPDATE SET {other} = 'z'",
}
"""Ways to change the newest row, as one statement."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with two rows in each of the tables."""
    with closing(stores.open_database(tmp_path)) as database:
        for table, rows in ROWS.items():
            database.connection().execute(f"INSERT INTO {table} VALUES {rows}")
    return tmp_path / "torra.db"


@pytest.fixture
def stranger(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection as another program opens it: none of Torra's settings."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def held(connection: sqlite3.Connection, kept: Kept) -> list[tuple[object, ...]]:
    return connection.execute(f"SELECT * FROM {kept.table} ORDER BY {kept.key}").fetchall()


def names(connection: sqlite3.Connection, kept: Kept) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({kept.table})")]


def refused(connection: sqlite3.Connection, kept: Kept, sql: str) -> None:
    before = held(connection, kept)
    with pytest.raises(sqlite3.IntegrityError, match=r"append-only|stays as it is"):
        connection.execute(sql)
    assert held(connection, kept) == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kept", TABLES, ids=lambda kept: kept.table)
def test_no_statement_of_another_program_changes_a_row(
    stranger: sqlite3.Connection, kept: Kept, way: str
) -> None:
    columns = names(stranger, kept)
    changed = ["'z'" if name == "at" else name for name in columns]
    sql = WAYS[way].format(table=kept.table, key=kept.key, other="at", columns=", ".join(changed))
    refused(stranger, kept, sql)


@pytest.mark.parametrize(
    ("kept", "unique"),
    [(kept, unique) for kept in TABLES for unique in kept.unique],
    ids=lambda value: value.table if isinstance(value, Kept) else "-".join(value),
)
def test_a_row_with_the_mark_of_another_does_not_take_its_place(
    stranger: sqlite3.Connection, kept: Kept, unique: tuple[str, ...]
) -> None:
    """INSERT OR REPLACE removes whatever shares a unique column with the new row."""
    new = dict.fromkeys(names(stranger, kept), "'new'")
    new |= {name: "9" for name in ("seq", "id", "trial", "look", "promoted") if name in new}
    new["promoted"] = "0"
    columns = ", ".join(new[name] if name not in unique else name for name in names(stranger, kept))
    refused(
        stranger,
        kept,
        f"INSERT OR REPLACE INTO {kept.table} SELECT {columns} FROM {kept.table} "
        f"WHERE {kept.key} = 2",
    )


@pytest.mark.parametrize("kept", TABLES, ids=lambda kept: kept.table)
def test_a_row_that_is_new_is_added(stranger: sqlite3.Connection, kept: Kept) -> None:
    columns = ["NULL" if name == kept.key else f"{name} || 'x'" for name in names(stranger, kept)]
    columns = [
        "7" if name in ("trial", "look") else "0" if name == "promoted" else column
        for name, column in zip(names(stranger, kept), columns, strict=True)
    ]
    stranger.execute(
        f"INSERT INTO {kept.table} SELECT {', '.join(columns)} FROM {kept.table} "
        f"WHERE {kept.key} = 2"
    )
    assert len(held(stranger, kept)) == 3


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

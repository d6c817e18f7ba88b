"""How SQLite finds what is asked for: by an index, or by reading a table through."""

from __future__ import annotations

from collections.abc import Callable

from instance_database import Database

ASKED = ("SELECT", "UPDATE", "DELETE")


def plans(database: Database, ask: Callable[[], object]) -> dict[str, list[str]]:
    """Return the steps of each statement that something asks, by its text."""
    said: set[str] = set()
    connection = database.connection().conn
    connection.set_trace_callback(said.add)
    ask()
    connection.set_trace_callback(None)
    return {
        sql: [str(row[-1]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
        for sql in said
        if sql.lstrip().startswith(ASKED) and "sqlite_master" not in sql
    }

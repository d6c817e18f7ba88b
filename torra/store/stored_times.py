"""Finds damaged times in a desk's database: texts that a bad cell of a disk made unreadable.

SQLite's own checks see a broken page, and a row that does not fit its index or its rules. A letter
in the middle of a time passes them all; whoever reads the row later fails, at every start anew.
`unreadable` looks at all times of the tables that orders hang on. Of the large tables it looks at
the times by which a tick is found, for which a covering index or a narrow table is read.

It only reads; torra.desk.checks decides what to do about a damaged database. A digit that
turned into another digit is a time like any other: nothing sees it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

TIMES: Final = frozenset(
    {
        "applied_at", "at", "bar_time", "close_time", "closed_at", "created_at", "decided_at",
        "desk_time", "ended_at", "expires", "missed_at", "opened_at", "reconciled_at", "seen_at",
        "started_at", "until",
    }
)  # fmt: skip
"""Columns that hold a time as torra.clock.iso writes it, or nothing."""

INDEXED: Final = (
    ("ticks", "bar_time", "at <> ''"),
    ("ticks", "close_time", ""),
    ("chains", "close_time", ""),
    ("bars", "bar_time", ""),
    ("spreads", "bar_time", ""),
    ("flow", "bar_time", ""),
    ("record_highs", "bar_time", ""),
    ("record_lows", "bar_time", ""),
)
"""Of the large tables, the times by which rows are looked up, and a condition or "".

SQLite reads an index that has the column; a condition on one that it has not makes it read the
table.
"""

SECOND: Final = "substr({0}, 1, 19)"
FRACTION: Final = "substr({0}, 20)"

BROKEN: Final = (
    "{0} <> '' AND replace(datetime({0}, '+0 days'), ' ', 'T') || 'Z' IS NOT {0} "
    f"AND (strftime('%Y-%m-%dT%H:%M:%S', {SECOND}, '+0 days') IS NOT {SECOND} "
    f"OR {FRACTION} <> 'Z' AND ({FRACTION} NOT GLOB '.[0-9]*Z' "
    f"OR {FRACTION} GLOB '.*[^0-9]*Z')) OR {{0}} BETWEEN '0' AND '0001'"
)
"""A text that is not empty and no time, or not written as torra.clock.iso does it.

SQLite reads more than there is: the 31st of a month of 30 days, an hour 24, the year 0, a space
before the Z. So a time is read, written anew and compared; a modifier makes SQLite count, else it
repeats what it read. The first comparison is the cheap one, for whole seconds; in the second one a
fraction is told by its shape, as SQLite would round it.
"""


def unreadable(connection: sqlite3.Connection, tables: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each column that holds an unreadable time.

    All rows of `tables` are looked at, and what INDEXED names. Raises sqlite3.DatabaseError.
    """
    whole = ((table, column, "") for table in tables for column in sorted(TIMES))
    for table, column, besides in (*whole, *INDEXED):
        # A table that is not there has no columns.
        names = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if column in names:
            value = _first(connection, table, column, besides)
            if value is not None:
                yield f"{table}.{column} holds {value!r}, which is no time"


def _first(connection: sqlite3.Connection, table: str, column: str, besides: str) -> object:
    """Return one text of a column that is no time, as bytes, or None."""
    broken = " AND ".join(filter(None, (f"({BROKEN.format(column)})", besides)))
    # As bytes: a damaged text may be no UTF-8, and Python would raise when it reads it.
    sql = f"SELECT CAST({column} AS BLOB) FROM {table} WHERE {broken} LIMIT 1"  # noqa: S608
    row = connection.execute(sql).fetchone()
    return None if row is None else row[0]

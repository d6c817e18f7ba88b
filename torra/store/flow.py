"""Stores the order flow of each bar beside the bars. A part of instance_database.Database.

The table flow only grows: the row of a bar stays as it was seen first, so that a replay reads what
the desk read. A feed that counts anew after a restart, and has no order book of then any more,
changes nothing, but a bar that had been left out gets its row then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from torra.clock import parse
from torra.evidence.flow_readings import FlowRow
from torra.store.connection import RowDict, Store, stamp

COLUMNS: Final = ", ".join(FlowRow._fields)
MARKS: Final = ", ".join(f"?{number + 1}" for number in range(len(FlowRow._fields) + 4))
ADD: Final = (
    f"INSERT INTO flow (instance, timeframe, {COLUMNS}, source, first_seen) "  # noqa: S608
    f"SELECT {MARKS} WHERE NOT EXISTS "
    "(SELECT 1 FROM flow WHERE instance = ?1 AND timeframe = ?2 AND bar_time = ?3)"
)
"""Adds the row of a bar that has none."""

OF_STREAM: Final = "FROM flow WHERE instance = ? AND timeframe = ?"


def store_flow(
    store: Store, instance: str, timeframe: str, rows: Iterable[FlowRow], source: str
) -> int:
    """Store the rows of bars that have none yet; return how many that were."""
    with store.transaction():
        at = store.moment()
        return (
            store.connection()
            .conn.executemany(
                ADD,
                [(instance, timeframe, stamp(row.bar_time), *row[1:], source, at) for row in rows],
            )
            .rowcount
        )


def flow_rows(
    store: Store, instance: str, timeframe: str, first: datetime, last: datetime
) -> list[FlowRow]:
    """Return the rows of the bars that opened from `first` to `last`, oldest first."""
    rows = store.rows(
        f"SELECT {COLUMNS} {OF_STREAM} AND bar_time BETWEEN ? AND ? ORDER BY bar_time",
        instance, timeframe, first, last,
    )  # fmt: skip
    return [FlowRow(**{**row, "bar_time": parse(row["bar_time"])}) for row in rows]


def newest_flow(store: Store, instance: str, timeframe: str) -> RowDict | None:
    """Return the newest row of a stream whole, None without one."""
    return store.row(f"SELECT * {OF_STREAM} ORDER BY bar_time DESC LIMIT 1", instance, timeframe)


def flow_summary(store: Store) -> list[RowDict]:
    """Return of every stream how many rows are stored, the first, and the newest whole.

    Reads the table through.
    """
    return store.rows(
        "SELECT f.*, t.rows, t.first, t.books FROM (SELECT instance, timeframe, "
        "count(*) AS rows, min(bar_time) AS first, max(bar_time) AS newest, "
        "count(levels) AS books FROM flow GROUP BY instance, timeframe) AS t "
        "JOIN flow AS f ON f.instance = t.instance AND f.timeframe = t.timeframe "
        "AND f.bar_time = t.newest ORDER BY f.instance, f.timeframe"
    )

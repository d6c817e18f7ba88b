"""Stores the order flow of each bar beside the bars. A part of instance_database.Database.

The table flow only grows: the row of a bar stays as it was seen first, so that a replay reads what
the desk read. A feed that counts anew after a restart, and has no order book of then any more,
changes nothing, but a bar that had been left out gets its row then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from torra.clock import parse
from torra.evidence.flow_readings import FlowRow
from torra.store.connection import Store, stamp

COLUMNS: Final = ", ".join(FlowRow._fields)
OF_STREAM: Final = "FROM flow WHERE instance = ? AND timeframe = ?"


class FlowStore(Store):
    """The table flow."""

    def store_flow(
        self, instance: str, timeframe: str, rows: Iterable[FlowRow], source: str
    ) -> int:
        """Store the rows of bars that have none yet; return how many that were."""
        fresh = sorted(rows)
        if not fresh:
            return 0
        with self.transaction():
            stored = self._rows(
                f"SELECT bar_time {OF_STREAM} AND bar_time BETWEEN ? AND ?",
                instance, timeframe, stamp(fresh[0].bar_time), stamp(fresh[-1].bar_time),
            )  # fmt: skip
            held = {str(one["bar_time"]) for one in stored}
            told = [row for row in fresh if stamp(row.bar_time) not in held]
            at, marks = self._moment(), ", ".join("?" * (len(FlowRow._fields) + 4))
            self.connection().conn.executemany(
                f"INSERT INTO flow (instance, timeframe, {COLUMNS}, source, first_seen) "  # noqa: S608
                f"VALUES ({marks})",
                [(instance, timeframe, stamp(row.bar_time), *row[1:], source, at) for row in told],
            )
        return len(told)

    def flow_rows(
        self, instance: str, timeframe: str, first: datetime, last: datetime
    ) -> list[FlowRow]:
        """Return the rows of the bars that opened from `first` to `last`, oldest first."""
        rows = self._rows(
            f"SELECT {COLUMNS} {OF_STREAM} AND bar_time BETWEEN ? AND ? ORDER BY bar_time",
            instance, timeframe, stamp(first), stamp(last),
        )  # fmt: skip
        return [FlowRow(**{**row, "bar_time": parse(row["bar_time"])}) for row in rows]

    def newest_flow(self, instance: str, timeframe: str) -> dict[str, Any] | None:
        """Return the newest row of a stream whole, None without one."""
        return self._row(
            f"SELECT * {OF_STREAM} ORDER BY bar_time DESC LIMIT 1", instance, timeframe
        )

    def flow_told(self) -> list[dict[str, Any]]:
        """Return of every stream how many rows are stored, the first, and the newest whole.

        Reads the table through.
        """
        return self._rows(
            "SELECT f.*, t.rows, t.first, t.books FROM (SELECT instance, timeframe, "
            "count(*) AS rows, min(bar_time) AS first, max(bar_time) AS newest, "
            "count(levels) AS books FROM flow GROUP BY instance, timeframe) AS t "
            "JOIN flow AS f ON f.instance = t.instance AND f.timeframe = t.timeframe "
            "AND f.bar_time = t.newest ORDER BY f.instance, f.timeframe"
        )

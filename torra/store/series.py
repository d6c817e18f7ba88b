"""Stores numbers from beside the chart, as they were known. A part of instance_database.Database.

The tables series and facts only grow: a row is never changed, and a value that was revised is a
further row with its own moment. A correction of a value that was stored with the very same moment
counts a second later. A source that states a value anew without saying when it changed,
as FRED does, cannot have its revision known earlier than this desk saw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from torra.clock import parse
from torra.evidence.news_digest import rounded_up
from torra.evidence.outside_numbers import (
    EDGAR,
    FactRow,
    SeriesRow,
    StoredFact,
    StoredRow,
    kind_of_source,
)
from torra.store.connection import RowDict, Store, stamp

ROWS_AT_ONCE: Final = 200
"""Rows of one transaction: a tick that wants to write must not wait for years of a series."""


class SeriesStore(Store):
    """The tables series and facts."""

    def store_series(
        self, rows: Iterable[SeriesRow], first_seen: datetime, *, stamped: bool = False
    ) -> int:
        """Store what is not known yet; return how many rows that were.

        A day that has another value already was revised. Unless the rows are `stamped` with the
        moment of their revision, as those of a file are, it counts from `first_seen`.
        """
        moment, listed, stored = rounded_up(first_seen), [*rows], 0
        for start in range(0, len(listed), ROWS_AT_ONCE):
            with self.transaction():
                for row in listed[start : start + ROWS_AT_ONCE]:
                    stored += self._store_one(row, moment, stamped)
        return stored

    def _store_one(self, row: SeriesRow, first_seen: datetime, stamped: bool) -> int:
        kind = kind_of_source(row.source)
        stored = {
            one["known_at"]: one["value"]
            for one in self.rows(
                "SELECT known_at, value, source FROM series WHERE name = ? AND at = ? "
                "ORDER BY known_at, number",
                row.name, row.at,
            )
            # Settings choose among the sources: each has its own word on a day.
            if kind_of_source(one["source"]) == kind
        }  # fmt: skip
        known = row.known_at
        if not stamped:
            by_now = [value for at, value in stored.items() if at <= stamp(max(known, first_seen))]
            if by_now and by_now[-1] == row.value:
                return 0
            known = max(known, first_seen) if by_now else known
        known = _free(known, row.value, stored)
        if stamp(known) in stored:
            return 0
        return self.change(
            "INSERT INTO series (name, at, known_at, first_seen, value, source) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            row.name, row.at, known, first_seen, row.value + 0.0, row.source,
        )  # fmt: skip

    def series_rows(self, names: Sequence[str], after: int = 0) -> list[StoredRow]:
        """Return what is stored of some series beyond a row's number, in the order of storing."""
        marks = ", ".join("?" * len(names))
        rows = self.rows(
            f"SELECT * FROM series WHERE number > ? AND name IN ({marks}) ORDER BY number",  # noqa: S608
            after, *names,
        )  # fmt: skip
        return [_stored(row) for row in rows]

    def newest_series(self) -> int:
        """Return the number of the row that was stored last, 0 without one."""
        return int(self.value("SELECT max(number) FROM series") or 0)

    def store_facts(self, rows: Iterable[FactRow], first_seen: datetime) -> int:
        """Store what is not known yet of companies; return how many rows that were."""
        moment, listed, stored = stamp(rounded_up(first_seen)), [*rows], 0
        for start in range(0, len(listed), ROWS_AT_ONCE):
            with self.transaction():
                for row in listed[start : start + ROWS_AT_ONCE]:
                    stored += self._store_fact(row, moment)
        return stored

    def _store_fact(self, row: FactRow, moment: str) -> int:
        key = (row.ticker, row.figure, stamp(row.begins), stamp(row.ends))
        kind = kind_of_source(row.source)
        rows = [
            one
            for one in self.rows(
                "SELECT known_at, value, source FROM facts WHERE ticker = ? AND figure = ? "
                "AND begins = ? AND ends = ? ORDER BY number",
                *key,
            )
            # Settings choose among the sources: each has its own word on a period.
            if kind_of_source(one["source"]) == kind
        ]
        stored = {one["known_at"]: one["value"] for one in rows}
        known = row.known_at
        if kind == EDGAR:
            # A filing never changes. Its stamp may be found later, and tells nothing new then;
            # another value of it was read otherwise, and nobody could know that before.
            same = [one["value"] for one in rows if one["source"] == row.source]
            if same and same[-1] == row.value:
                return 0
            known = max(known, parse(moment)) if same else known
        known = _free(known, row.value, stored)
        if stamp(known) in stored:
            return 0
        return self.change(
            "INSERT INTO facts (ticker, figure, begins, ends, known_at, first_seen, value, "
            "unit, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *key, known, moment, row.value + 0.0, row.unit, row.source,
        )  # fmt: skip

    def fact_rows(self, ticker: str, after: int = 0) -> list[StoredFact]:
        """Return what is stored of a company beyond a row's number, in the order of storing."""
        rows = self.rows(
            "SELECT * FROM facts WHERE ticker = ? AND number > ? ORDER BY number", ticker, after
        )
        return [StoredFact(_fact(row), parse(row["first_seen"]), row["number"]) for row in rows]

    def newest_fact(self) -> int:
        """Return the number of the figure that was stored last, 0 without one."""
        return int(self.value("SELECT max(number) FROM facts") or 0)


def series_summary(store: Store) -> list[RowDict]:
    """Return of every stored series its name, rows, first and last day, and newest value."""
    return store.rows(
        "SELECT s.name, s.rows, s.first, s.at, t.value, t.known_at, t.first_seen, t.source "
        "FROM (SELECT name, count(*) AS rows, min(at) AS first, max(at) AS at FROM series "
        "GROUP BY name) AS s JOIN series AS t ON t.number = (SELECT number FROM series "
        "WHERE name = s.name AND at = s.at ORDER BY known_at DESC, number DESC LIMIT 1) "
        "ORDER BY s.name"
    )


def series_at(
    store: Store, names: Iterable[str], as_of: datetime, *, live: bool
) -> dict[str, StoredRow]:
    """Return the newest value of each series that was known at a moment, by its name.

    With `live` it counts from its first sight too. One row of each is read, by its index.
    """
    condition = "AND first_seen <= ? " if live else ""
    newest = {}
    for name in names:
        row = store.row(
            f"SELECT * FROM series WHERE name = ? AND known_at <= ? {condition}"  # noqa: S608
            "ORDER BY at DESC, known_at DESC LIMIT 1",
            name, as_of, *([stamp(as_of)] if live else []),
        )  # fmt: skip
        if row is not None:
            newest[name] = _stored(row)
    return newest


def facts_summary(store: Store) -> list[RowDict]:
    """Return of every company its figures, values, first and last period, and newest stamp."""
    return store.rows(
        "SELECT ticker, count(DISTINCT figure) AS figures, count(*) AS rows, "
        "min(ends) AS first, max(ends) AS last, max(known_at) AS known_at FROM facts "
        "GROUP BY ticker ORDER BY ticker"
    )


def facts_of(store: Store, ticker: str, as_of: datetime) -> list[FactRow]:
    """Return what was known of a company at a moment, in the order of knowing."""
    rows = store.rows(
        "SELECT * FROM facts WHERE ticker = ? AND known_at <= ? ORDER BY known_at, number",
        ticker, as_of,
    )  # fmt: skip
    return [_fact(row) for row in rows]


def _free(known: datetime, value: float, stored: Mapping[str, float]) -> datetime:
    """Return the moment from which a value counts beside those that are held.

    Another value of the very same moment was wrong: what corrects it counts a second later. What
    was corrected stays so, whoever hands the wrong value in again.
    """
    while stored.get(stamp(known), value) != value:
        known += timedelta(seconds=1)
    return known


def _stored(row: Mapping[str, Any]) -> StoredRow:
    value = SeriesRow(
        row["name"], parse(row["at"]), parse(row["known_at"]), row["value"], row["source"]
    )
    return StoredRow(value, parse(row["first_seen"]), row["number"])


def _fact(row: Mapping[str, Any]) -> FactRow:
    return FactRow(
        row["ticker"],
        row["figure"],
        parse(row["begins"]),
        parse(row["ends"]),
        parse(row["known_at"]),
        row["value"],
        row["unit"],
        row["source"],
    )

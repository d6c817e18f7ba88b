"""Stores the runs of the radar: the document of each, and those that failed, by their mode.

A run is one row, written whole: whatever is killed, the newest is readable. Old ones go with the
writing of a new one; the newest of each universe stays. A failed run has mode `error` and no
document. Every failure raises StoreUnavailable and leaves no trace. A part of
instance_database.Database.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from torra.store.connection import RowDict, Store

KEEP: Final = timedelta(days=30)

MODES: Final = ("ai", "rules", "cached", "error")
"""By what a run may have been made, in the order of the ladder."""

MOST: Final = 3_000
"""Newest runs that are kept."""


def add_run(store: Store, row: RowDict) -> int:
    """Store a run and return its number; runs older than KEEP or beyond MOST go.

    Needs universe, as_of, mode, trigger_code and document (JSON text, "" of a failed one).
    """
    with store.transaction():
        number = store.add("radar_runs", {**row, "at": store.moment()})
        store.change(
            "DELETE FROM radar_runs WHERE (id <= ? OR at < ?) AND id NOT IN "
            "(SELECT max(id) FROM radar_runs WHERE document <> '' GROUP BY universe)",
            number - MOST, store.now() - KEEP,
        )  # fmt: skip
    return number


def replace_run(store: Store, number: int, mode: str, trigger_code: str, document: str) -> None:
    """Put what a run came to in its row, whole."""
    store.change(
        "UPDATE radar_runs SET mode = ?, trigger_code = ?, document = ? WHERE id = ?",
        mode, trigger_code, document, number,
    )  # fmt: skip


def documents_with(store: Store, text: str) -> list[str]:
    """Return the documents of runs by agents that hold a text, oldest first."""
    sql = "SELECT document FROM radar_runs WHERE mode = 'ai' AND instr(document, ?) ORDER BY id"
    return store.column(sql, text)


def run(store: Store, number: int) -> RowDict | None:
    """Return one run; None where there is none of that number."""
    return store.row("SELECT * FROM radar_runs WHERE id = ?", number)


def newest_run(store: Store, universe: str = "", *, failed: bool = False) -> RowDict | None:
    """Return the newest run of a universe that was made by a scan, or any newest; None without one.

    It has a document, unless the newest may have `failed`.
    """
    which = "" if failed else "WHERE document <> '' "
    which += "AND universe = ? AND mode <> 'cached'" if universe else ""
    return store.row(
        "SELECT * FROM radar_runs WHERE id = "  # noqa: S608 - words of ours
        f"(SELECT max(id) FROM radar_runs {which})",
        *filter(None, (universe,)),
    )


def run_before(store: Store, row: RowDict) -> RowDict | None:
    """Return the newest run of the same universe before a run; None without one."""
    return store.row(
        "SELECT * FROM radar_runs WHERE universe = ? AND id < ? AND document <> '' "
        "ORDER BY id DESC LIMIT 1",
        row["universe"], row["id"],
    )  # fmt: skip


def mode_counts(store: Store, since: datetime) -> dict[str, int]:
    """Return how many runs there were of each mode since a moment of real time."""
    sql = "SELECT count(*) FROM radar_runs WHERE mode = ? AND at >= ?"
    return {mode: int(store.value(sql, mode, since)) for mode in MODES}

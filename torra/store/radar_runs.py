"""Stores the runs of the radar: the document of each."""

from __future__ import annotations

from torra.store.connection import RowDict, Store


def newest_run(store: Store) -> RowDict | None:
    """Return the newest run with a document (JSON text of a RadarRun); None without one."""
    if not store.value("SELECT count(*) FROM sqlite_master WHERE name = 'radar_runs'"):
        return None
    return store.row("SELECT * FROM radar_runs WHERE document <> '' ORDER BY id DESC LIMIT 1")

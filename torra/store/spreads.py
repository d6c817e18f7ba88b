"""Stores the spread of each bar that Torra has seen, beside the bars, in a table of its own.

A spread belongs to a revision of a bar: a bar that changes has that of its new self, or none. The
first spread of a revision stays; one that comes later than its bar, as from an import, is added.
So the bars of a stream, their revisions and their hashes are what they were without spreads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torra.store.connection import Store

OF_RANGE: Final = "FROM spreads WHERE instance = ? AND timeframe = ? AND bar_time BETWEEN ? AND ?"
REVISED: Final = (
    "SELECT bar_time, max(revision) FROM bars WHERE instance = ? AND timeframe = ? "
    "AND bar_time BETWEEN ? AND ? AND revision > 0 GROUP BY bar_time"
)
"""The newest revision of each bar that has another than 0."""


def store_spreads(
    store: Store, instance: str, timeframe: str, spreads: Mapping[str, float]
) -> None:
    """Store what is new of spreads by bar time; their bars are stored."""
    if not spreads:
        return
    stream = instance, timeframe, min(spreads), max(spreads)
    ask = store.connection().conn.execute
    # As one text: a row for each of 750 bars takes ten times as long.
    (held,) = ask(f"SELECT group_concat(bar_time) {OF_RANGE} AND revision = 0", stream).fetchone()
    first = set((held or "").split(","))
    revised = dict(ask(REVISED, stream))
    later = set(ask(f"SELECT bar_time, revision {OF_RANGE}", stream)) if revised else ()
    store.connection().conn.executemany(
        "INSERT INTO spreads VALUES (?, ?, ?, ?, ?)",
        [
            (instance, timeframe, time, revised.get(time, 0), spread)
            for time, spread in spreads.items()
            if ((time, revised[time]) not in later if time in revised else time not in first)
        ],
    )


def spreads_of(
    store: Store, instance: str, timeframe: str, first: str, last: str
) -> dict[tuple[str, int], float]:
    """Return the spreads of a range by bar time and revision."""
    found = store.connection().conn.execute(
        f"SELECT bar_time, revision, spread {OF_RANGE}",
        (instance, timeframe, first, last),
    )
    return {(time, revision): spread for time, revision, spread in found}

"""Stores the spread of each bar that Torra has seen, beside the bars, in a table of its own.

A spread belongs to a revision of a bar: a bar that changes has that of its new self, or none. The
first spread of a revision stays; one that comes later than its bar, as from an import, is added.
So the bars of a stream, their revisions and their hashes are what they were without spreads.
"""

from __future__ import annotations

from collections.abc import Mapping

from torra.store.connection import Store


class SpreadStore(Store):
    """Spreads of every stream, in units of the price."""

    def _keep_spreads(
        self,
        instance: str,
        timeframe: str,
        spreads: Mapping[str, float],
        revisions: Mapping[str, int],
    ) -> None:
        """Store what is new of spreads by bar time; `revisions` are those of the bars now."""
        if not spreads:
            return
        first, last = min(spreads), max(spreads)
        held = self._spreads(instance, timeframe, first, last).keys()
        self.connection().conn.executemany(
            "INSERT INTO spreads VALUES (?, ?, ?, ?, ?)",
            [
                (instance, timeframe, time, revisions[time], spread)
                for time, spread in spreads.items()
                if (time, revisions[time]) not in held
            ],
        )

    def _spreads(
        self, instance: str, timeframe: str, first: str, last: str
    ) -> dict[tuple[str, int], float]:
        """Return the spreads of a range by bar time and revision."""
        found = self.connection().conn.execute(
            "SELECT bar_time, revision, spread FROM spreads WHERE instance = ? AND timeframe = ? "
            "AND bar_time BETWEEN ? AND ?",
            (instance, timeframe, first, last),
        )
        return {(time, revision): spread for time, revision, spread in found}

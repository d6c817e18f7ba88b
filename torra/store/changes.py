"""Finds the ticks that agents may have changed, newest first, a page at a time by a cursor.

Two partial indexes hold them: ticks whose verdict is not the one of L1 alone, and ticks of an equal
verdict that asks for an order. What agents changed of the latter stands in their records, which
torra.replay.changed reads. Nothing is written. A part of instance_database.Database.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from torra.clock import duration
from torra.store.connection import Store, stamp
from torra.verdict.signal_states import HELD

BEYOND: Final = ("9999", "")
"""A place in the order of ticks that none reaches."""

OF_RECORD: Final = (
    "symbol", "close", "atr", "as_of", "now", "gate", "denied", "signal", "signals", "profile",
    "execution", "before", "desk", "l1_consensus", "calls",
)  # fmt: skip
OF_DELIBERATION: Final = ("flags", "panel")
"""Parts of a tick's JSON that say what was decided, by their path."""


def _parts(column: str, names: Sequence[str]) -> str:
    paths = ", ".join(f"'$.{name}'" for name in names)
    # SQLite raises for text that is no JSON, and one such row would take all others with it.
    return f"CASE WHEN json_valid({column}) THEN json_extract({column}, {paths}) END"


PLACES: Final = (
    "SELECT torra_key, close_time FROM chains INDEXED BY {} WHERE instance = ? AND {} "
    "AND (close_time, torra_key) < (?, ?) ORDER BY close_time DESC, torra_key DESC LIMIT ?"
)
CHANGED: Final = PLACES.format("chains_changed", "verdict <> l1_verdict")
ACTING: Final = PLACES.format("chains_acting", "verdict = l1_verdict AND verdict <> 'HOLD'")

DECIDED: Final = (
    "SELECT c.torra_key, c.instance, c.timeframe, c.bar_time, c.close_time, c.l1_verdict, "  # noqa: S608
    "c.verdict, c.l1_consensus, c.consensus, j.action, j.reason, "
    f"{_parts('j.record', OF_RECORD)} AS record, "
    f"{_parts('s.agent_deliberation', OF_DELIBERATION)} AS deliberation "
    "FROM chains c JOIN sentiment s ON s.id = c.sentiment_id "
    "LEFT JOIN journal j ON j.torra_key = c.torra_key WHERE c.torra_key = ?"
)


class ChangeStore(Store):
    """Ticks that agents may have changed."""

    def changed_places(
        self, instance: str, before: tuple[str, str], limit: int, *, acting: bool
    ) -> list[tuple[str, str]]:
        """Return (close_time, torra_key) of ticks before a place in that order, newest first.

        Ticks of another verdict than L1's; with `acting` those of an equal BUY or SELL.
        """
        rows = self._rows(ACTING if acting else CHANGED, instance, *before, limit)
        return [(str(row["close_time"]), str(row["torra_key"])) for row in rows]

    def decided_tick(self, torra_key: str) -> dict[str, Any] | None:
        """Return a tick as it was decided: both verdicts, action, reason, and two parts of JSON.

        `record` and `deliberation` are None where they are not there or are no JSON.
        """
        row = self._row(DECIDED, torra_key)
        if row is None:
            return None
        for column, names in (("record", OF_RECORD), ("deliberation", OF_DELIBERATION)):
            told = row[column]
            row[column] = None if told is None else dict(zip(names, json.loads(told), strict=True))
        return row

    def held_at(self, instance: str, timeframe: str, moment: datetime) -> dict[str, Any] | None:
        """Return the opening that an instance held or had sent when a tick of a close decided.

        None if it was flat then. Of ticks that close together the longer timeframe decided first.
        An opening that was refused or expired meanwhile is not found.
        """
        at = stamp(moment)
        found = self._row(
            "SELECT * FROM signals WHERE instance = ? AND state = 'CLOSED' AND closed_at >= ? "
            "AND kind = 'open' ORDER BY closed_at LIMIT 1",
            instance, at,
        )  # fmt: skip
        if found is None or not _before(found, at, timeframe):
            marks = ", ".join("?" * len(HELD))
            rows = self._rows(
                "SELECT * FROM signals WHERE instance = ? AND kind = 'open' "  # noqa: S608 - marks
                f"AND state IN ({marks})",
                instance, *HELD,
            )  # fmt: skip
            found = min(rows, key=lambda row: HELD.index(row["state"]), default=None)
        return found if found is not None and _before(found, at, timeframe) else None

    def l1_verdicts(
        self, instance: str, timeframe: str, first: datetime, limit: int
    ) -> list[tuple[str, str]]:
        """Return close time and L1's verdict of the ticks of a stream from a close on."""
        rows = self._rows(
            "SELECT close_time, l1_verdict FROM chains WHERE instance = ? AND timeframe = ? "
            "AND close_time >= ? ORDER BY close_time LIMIT ?",
            instance, timeframe, stamp(first), limit,
        )  # fmt: skip
        return [(str(row["close_time"]), str(row["l1_verdict"])) for row in rows]


def _before(signal: dict[str, Any], at: str, timeframe: str) -> bool:
    decided = str(signal["decided_at"])
    longer = duration(str(signal["timeframe"])) > duration(timeframe)
    return decided < at or (decided == at and longer)

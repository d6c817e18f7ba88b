"""What every tick saw, thought and did: its journal, its calls to models, and how pages read them.

The journal is written inside the tick's transaction, so a record never stands without the
sentiment row and the chains that belong to it. Reading gives plain dicts; a tick that is not there
is None. What a record holds is decided where it is made (torra.tick_record); here it is JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agents.contracts import CallRecord
from torra.store_connection import Store, TickKey, stamp, to_json

CALL_COLUMNS: Final = (
    "stage",
    "round",
    "attempt",
    "status",
    "model",
    "provider",
    "user",
    "reply",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "elapsed_ms",
    "request_hash",
    "detail",
)
"""Columns of a call that carry the name of their field in CallRecord; `role` is its role_id.

`instructions` holds the hash of the role's system text, the same on every tick and stored once.
"""

CALLS: Final = (
    "SELECT c.role AS role_id, c.*, i.text AS system FROM calls c "
    "JOIN instructions i ON i.hash = c.instructions WHERE c.torra_key = ? ORDER BY c.rowid"
)
TICK_ROW: Final = (
    "SELECT c.*, s.ath, s.price_action, s.key_levels, s.momentum, s.structure, s.source_type, "
    "j.action, j.reason, j.elapsed_ms, j.cost_usd, j.provider "
    "FROM chains c JOIN sentiment s ON s.id = c.sentiment_id "
    "LEFT JOIN journal j ON j.torra_key = c.torra_key "
)
STREAM: Final = "WHERE c.instance = ? AND c.timeframe = ? ORDER BY c.close_time DESC LIMIT ?"


class JournalStore(Store):
    """Journal, calls and the reading side of ticks."""

    def write_journal(self, key: TickKey, record: Mapping[str, Any]) -> None:
        """Store the record of a tick; ValueError when it holds a number that is not finite."""
        row = {
            "torra_key": key.text,
            "record": to_json(record),
            "action": str(record.get("action", "")),
            "reason": str(record.get("reason", "")),
            "elapsed_ms": float(record.get("elapsed_ms", 0.0)),
            "provider": str(record.get("provider", "")),
            "cost_usd": float(record.get("cost_usd", 0.0)),
            "at": self._moment(),
        }
        self._add("journal", row)

    def write_calls(self, key: TickKey, calls: Sequence[CallRecord]) -> None:
        """Store what was asked and answered, one row for each (tick, role, round, attempt)."""
        at = self._moment()
        with self.transaction():
            for call in calls:
                told = {name: getattr(call, name) for name in CALL_COLUMNS}
                told["instructions"] = self._instructions(call.system)
                row = {"torra_key": key.text, "role": call.role_id, **told, "at": at}
                self._add("calls", row)

    def _instructions(self, text: str) -> str:
        """Store a role's instructions if they are new; return their hash."""
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._change("INSERT OR IGNORE INTO instructions (hash, text) VALUES (?, ?)", name, text)
        return name

    def tick(self, key: TickKey) -> dict[str, Any] | None:
        """Return a tick as its record, with `deliberation` and `calls` (rows); None without one.

        A tick that was stored without a record has the columns of its rows instead.
        """
        return self._whole(self._row(TICK_ROW + "WHERE c.torra_key = ?", key.text))

    def latest_tick(self, instance: str, timeframe: str) -> dict[str, Any] | None:
        """Return the newest tick of a stream as `tick` does."""
        return self._whole(self._row(TICK_ROW + STREAM, instance, timeframe, 1))

    def ticks(self, instance: str, timeframe: str, limit: int = 100) -> list[dict[str, Any]]:
        """Return the newest ticks of a stream, newest first: both chains, scores, action, reason.

        `l1` maps each vector to its deterministic score; action and reason are None for a tick
        without a journal.
        """
        return [_told(row) for row in self._rows(TICK_ROW + STREAM, instance, timeframe, limit)]

    def cost_since(self, moment: datetime) -> float:
        """Return what calls have cost since a real moment, in USD."""
        sql = "SELECT coalesce(sum(cost_usd), 0.0) AS cost FROM calls WHERE at >= ?"
        row = self._row(sql, stamp(moment))
        return float(row["cost"]) if row else 0.0

    def verdict_changes(self, instance: str, timeframe: str | None = None) -> tuple[int, int]:
        """Return how many verdicts differ from L1's, and how many ticks there are at all.

        Of one stream, or of every stream of the instance.
        """
        which = "" if timeframe is None else "AND timeframe = ?"
        row = self._row(
            "SELECT coalesce(sum(verdict <> l1_verdict), 0) AS changed, count(*) AS number "  # noqa: S608
            f"FROM chains WHERE instance = ? {which}",
            instance, *([] if timeframe is None else [timeframe]),
        )  # fmt: skip
        return (int(row["changed"]), int(row["number"])) if row else (0, 0)

    def _whole(self, row: dict[str, Any] | None) -> dict[str, Any] | None:
        if row is None:
            return None
        key = row["torra_key"]
        found = self._row("SELECT record FROM journal WHERE torra_key = ?", key)
        spoken = self._row(
            "SELECT agent_deliberation FROM sentiment WHERE id = ?", row["sentiment_id"]
        )
        text = spoken["agent_deliberation"] if spoken else None
        record = (
            json.loads(found["record"]) if found else {**_told(row), "as_of": row["close_time"]}
        )
        return {
            **record,
            "deliberation": json.loads(text) if text else None,
            "calls": self._rows(CALLS, key),
        }


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "l1": json.loads(row["l1"])}

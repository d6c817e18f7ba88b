"""Stores what every tick saw, thought and did: its journal and its calls to models.

The journal is written inside the tick's transaction, so a record never stands without its sentiment
row and its chains. Reads return plain dicts, None for a tick that is not there. torra.tick.record
decides what a record holds; here it is JSON.

The texts of calls are the bulk of a database. `prune` removes them by age, ticks as a whole; the
tick, its scores, its reports, its record and what it cost stay.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Protocol

from torra.errors import MALFORMED
from torra.store.connection import Keyed, RowDict, Store, TickKey, stamp, to_json

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
    "stop_reason",
    "cached_tokens",
)
"""Columns of a call that carry the name of their field in Call; `role` is its role_id.

`instructions` holds the hash of the role's system text, the same on every tick and stored once.
"""


class CallRow(Protocol):
    """A call to a model: agents.debate.deliberation.Call, with every name of CALL_COLUMNS."""

    @property
    def role_id(self) -> str: ...  # noqa: D102
    @property
    def round(self) -> int: ...  # noqa: D102
    @property
    def attempt(self) -> int: ...  # noqa: D102
    @property
    def system(self) -> str: ...  # noqa: D102
    @property
    def request_hash(self) -> str: ...  # noqa: D102


CALLS: Final = (
    "SELECT c.role AS role_id, c.*, i.text AS system FROM calls c "
    "JOIN instructions i ON i.hash = c.instructions WHERE c.torra_key = ? ORDER BY c.rowid"
)
TICK_ROW: Final = (
    "SELECT c.*, s.ath, s.price_action, s.key_levels, s.momentum, s.structure, s.source_type, "
    "j.action, j.reason, j.elapsed_ms, j.cost_usd, j.provider "
    "FROM chains c JOIN sentiment s ON s.id = c.sentiment_id "
    "LEFT JOIN journal j INDEXED BY journal_told ON j.torra_key = c.torra_key "
)
"""A tick without its record, which is several pages long: the index has the columns read here."""

LATE_COLUMNS: Final = (
    "model",
    "provider",
    "reply",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "elapsed_ms",
    "stop_reason",
    "cached_tokens",
)
"""Columns of a call that an answer fills which came after its tick was stored."""


WHOLE_RECORD: Final = frozenset(("instance", "timeframe", "bar_time"))
"""What the record of a tick has at least: the pages find it by these."""

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
            "at": self.moment(),
        }
        self.add("journal", row)

    def write_calls(self, key: Keyed, calls: Sequence[CallRow]) -> None:
        """Store what was asked and answered, one row for each (tick, role, round, attempt)."""
        at = self.moment()
        with self.transaction():
            for call in calls:
                values = {name: getattr(call, name) for name in CALL_COLUMNS}
                values["instructions"] = self._instructions(call.system)
                row = {"torra_key": key.text, "role": call.role_id, **values, "at": at}
                self.add("calls", row)

    def record_late(self, key: TickKey, call: CallRow) -> bool:
        """Add the answer to a call that its tick gave up: its status becomes late.

        False when there is no such call that waits: the tick is not stored yet, its texts were
        pruned, or the answer is known already. Scores and the tick's record stay as they are.
        """
        sets = ", ".join(f"{name} = ?" for name in LATE_COLUMNS)
        changed = self.change(
            f"UPDATE calls SET status = 'late', {sets} WHERE torra_key = ? AND role = ? "  # noqa: S608
            # By the hash too: a tick that ran again may have asked something else.
            "AND round = ? AND attempt = ? AND request_hash = ? AND status = 'timeout'",
            *(getattr(call, name) for name in LATE_COLUMNS),
            key.text, call.role_id, call.round, call.attempt, call.request_hash,
        )  # fmt: skip
        return changed > 0

    def store_picture(self, picture: bytes) -> str:
        """Store a picture that a model was shown, once; return the hash that names it."""
        name = hashlib.sha256(picture).hexdigest()
        self.change(
            "INSERT INTO pictures (hash, data, at) VALUES (?, ?, ?) "
            "ON CONFLICT (hash) DO UPDATE SET at = excluded.at",
            name, picture, self.moment(),
        )  # fmt: skip
        return name

    def picture(self, name: str) -> bytes | None:
        """Return a stored picture by its hash; None for one that is not there any more."""
        data = self.value("SELECT data FROM pictures WHERE hash = ?", name)
        return bytes(data) if data is not None else None

    def prune(self, before: datetime, *, limit: int) -> int:
        """Remove texts and pictures from before a real moment; return how many rows went.

        One short transaction that takes the oldest `limit` rows, and the rest of the last one's
        tick: a tick has all of its calls or none. Instructions go with the last call that had them.
        Ticks, scores, reports, journal and ledger stay.
        """
        last = stamp(before)
        with self.transaction():
            # By tick: a tick has all of its calls or none.
            oldest = self.column(
                "SELECT DISTINCT torra_key FROM "
                "(SELECT torra_key FROM calls WHERE at < ? ORDER BY at LIMIT ?)",
                last, limit,
            )  # fmt: skip
            gone = sum(self._forget_calls(key) for key in oldest)
            gone += self.change(
                "DELETE FROM pictures WHERE hash IN "
                "(SELECT hash FROM pictures WHERE at < ? ORDER BY at LIMIT ?)",
                # The last tick may go beyond the limit; LIMIT -1 would mean all.
                last, max(0, limit - gone),
            )  # fmt: skip
        return gone

    def _forget_calls(self, key: str) -> int:
        names = self.column("SELECT DISTINCT instructions FROM calls WHERE torra_key = ?", key)
        gone = self.change("DELETE FROM calls WHERE torra_key = ?", key)
        for name in names:
            self.change(
                # The same text serves every tick: it goes with the last call that names it.
                "DELETE FROM instructions WHERE hash = ? "
                "AND NOT EXISTS (SELECT 1 FROM calls WHERE instructions = hash)",
                name,
            )
        return gone

    def _instructions(self, text: str) -> str:
        """Store a role's instructions if they are new; return their hash."""
        name = _name_of(text)
        self.change("INSERT OR IGNORE INTO instructions (hash, text) VALUES (?, ?)", name, text)
        return name

    def tick(self, key: TickKey) -> RowDict | None:
        """Return a tick as its record, with `deliberation` and `calls` (rows); None without one.

        A tick that was stored without a record has the columns of its rows instead.
        """
        return self._whole(self.row(TICK_ROW + "WHERE c.torra_key = ?", key.text))

    def tick_without_calls(self, torra_key: str) -> RowDict | None:
        """Return a tick as `tick` does, without its calls, whose texts are the bulk of it."""
        return self._whole(self.row(TICK_ROW + "WHERE c.torra_key = ?", torra_key), calls=False)

    def latest_tick(self, instance: str, timeframe: str) -> RowDict | None:
        """Return the newest tick of a stream as `tick` does."""
        return self._whole(self.row(TICK_ROW + STREAM, instance, timeframe, 1))

    def ticks(self, instance: str, timeframe: str, limit: int = 100) -> list[RowDict]:
        """Return the newest ticks of a stream, newest first: both chains, scores, action, reason.

        `l1` maps each vector to its deterministic score; action and reason are None for a tick
        without a journal.
        """
        return [
            _with_scores(row) for row in self.rows(TICK_ROW + STREAM, instance, timeframe, limit)
        ]

    # --- what a replay asks for ------------------------------------------------------------------

    def standing(self, instance: str) -> RowDict:
        """Return what an instance has before a tick: paper_cursor, latches, signal_event.

        `signal_event` is the number of the newest step of any signal: `state_before` finds the
        signals of that moment by it.
        """
        cursor = self.value("SELECT bar_time FROM paper_cursor WHERE instance = ?", instance)
        latches = self.column("SELECT side FROM latches WHERE instance = ? ORDER BY side", instance)
        event = self.value("SELECT coalesce(max(id), 0) FROM signal_events")
        return {"paper_cursor": cursor, "latches": latches, "signal_event": event}

    def record(self, torra_key: str) -> RowDict:
        """Return the record of a stored tick; an empty one where none is kept or can be read."""
        return json_object(self.value("SELECT record FROM journal WHERE torra_key = ?", torra_key))

    def _whole(self, row: RowDict | None, *, calls: bool = True) -> RowDict | None:
        if row is None:
            return None
        key = row["torra_key"]
        text = self.value(
            "SELECT agent_deliberation FROM sentiment WHERE id = ?", row["sentiment_id"]
        )
        record = self.record(key)
        # A record that cannot be read empties its own tick, and stops no page.
        if not record.keys() >= WHOLE_RECORD:
            record = {**_with_scores(row), "as_of": row["close_time"], **record}
        return {
            **record,
            "deliberation": json_object(text) or None,
            **({"calls": self.rows(CALLS, key)} if calls else {}),
        }


@lru_cache(maxsize=64)
def _name_of(text: str) -> str:
    """Name a role's instructions, which are the same on every tick."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def json_object(text: Any) -> RowDict:
    """Return the object that a column of JSON holds; an empty one for whatever else is there."""
    try:
        value = json.loads(text or "{}")
    except MALFORMED:
        return {}
    return value if isinstance(value, dict) else {}


def _with_scores(row: RowDict) -> RowDict:
    return {**row, "l1": json.loads(row["l1"])}

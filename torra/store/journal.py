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
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

from agents.contracts import Request
from torra.errors import MALFORMED
from torra.store.connection import Keyed, Store, TickKey, stamp, to_json
from torra.verdict.signal_states import EXECUTED

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

SPOKE: Final = frozenset(("answered", "abstained"))
"""Words of a stage for an agent that gave a report; every other word says why it gave none."""

REFUSALS: Final = frozenset(("budget", "deadline"))
"""Words of a stage that was refused as a whole: no money left to spend, or no time."""

NOT_REPEATED: Final = "budget"
"""Status of a second attempt that was not made, for want of time or money."""

TICKS_AT_HAND: Final = 4
"""Ticks whose calls a history keeps in memory."""

Recollection = Callable[[Request], Mapping[str, Any] | None]
"""The stored calls row of a request, as torra.providers.recorded asks for it."""

TWIN_SCORES: Final = (
    "price_action", "key_levels", "momentum", "structure", "ath", "composite", "consensus",
    "verdict", "source_type",
)  # fmt: skip
"""Columns of a sentiment row that a record has as well."""

OF_THE_CALLS: Final = frozenset(("calls", "cost_usd", "elapsed_ms"))
"""Parts of a stored debate that say how long it took and what it cost."""

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
            "at": self._moment(),
        }
        self._add("journal", row)

    def write_calls(self, key: Keyed, calls: Sequence[CallRow]) -> None:
        """Store what was asked and answered, one row for each (tick, role, round, attempt)."""
        at = self._moment()
        with self.transaction():
            for call in calls:
                told = {name: getattr(call, name) for name in CALL_COLUMNS}
                told["instructions"] = self._instructions(call.system)
                row = {"torra_key": key.text, "role": call.role_id, **told, "at": at}
                self._add("calls", row)

    def record_late(self, key: TickKey, call: CallRow) -> bool:
        """Add the answer to a call that its tick gave up: its status becomes late.

        False when there is no such call that waits: the tick is not stored yet, its texts were
        pruned, or the answer is known already. Scores and the tick's record stay as they are.
        """
        sets = ", ".join(f"{name} = ?" for name in LATE_COLUMNS)
        changed = self._change(
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
        self._change(
            "INSERT INTO pictures (hash, data, at) VALUES (?, ?, ?) "
            "ON CONFLICT (hash) DO UPDATE SET at = excluded.at",
            name, picture, self._moment(),
        )  # fmt: skip
        return name

    def picture(self, name: str) -> bytes | None:
        """Return a stored picture by its hash; None for one that is not there any more."""
        row = self._row("SELECT data FROM pictures WHERE hash = ?", name)
        return bytes(row["data"]) if row else None

    def calls_before(self, place: int | None, limit: int) -> list[dict[str, Any]]:
        """Return the calls that were stored before a place, newest first, without their texts.

        `place` of the last one is what to go on with; None begins with the newest.
        """
        return self._rows(
            "SELECT rowid AS place, at, torra_key, stage, role, round, attempt, status, provider, "
            "model, input_tokens, cached_tokens, output_tokens, cost_usd, elapsed_ms, stop_reason "
            "FROM calls WHERE rowid < ? ORDER BY rowid DESC LIMIT ?",
            2**63 - 1 if place is None else place, limit,
        )  # fmt: skip

    def prune(self, before: datetime, *, limit: int) -> int:
        """Remove texts and pictures from before a real moment; return how many rows went.

        One short transaction that takes the oldest `limit` rows, and the rest of the last one's
        tick: a tick has all of its calls or none. Instructions go with the last call that had them.
        Ticks, scores, reports, journal and ledger stay.
        """
        last = stamp(before)
        with self.transaction():
            # By tick: a tick has all of its calls or none.
            oldest = self._rows(
                "SELECT DISTINCT torra_key FROM "
                "(SELECT torra_key FROM calls WHERE at < ? ORDER BY at LIMIT ?)",
                last, limit,
            )  # fmt: skip
            gone = sum(self._forget_calls(row["torra_key"]) for row in oldest)
            gone += self._change(
                "DELETE FROM pictures WHERE hash IN "
                "(SELECT hash FROM pictures WHERE at < ? ORDER BY at LIMIT ?)",
                # The last tick may go beyond the limit; LIMIT -1 would mean all.
                last, max(0, limit - gone),
            )  # fmt: skip
        return gone

    def _forget_calls(self, key: str) -> int:
        told = self._rows("SELECT DISTINCT instructions FROM calls WHERE torra_key = ?", key)
        gone = self._change("DELETE FROM calls WHERE torra_key = ?", key)
        for row in told:
            self._change(
                # The same text serves every tick: it goes with the last call that names it.
                "DELETE FROM instructions WHERE hash = ? "
                "AND NOT EXISTS (SELECT 1 FROM calls WHERE instructions = hash)",
                row["instructions"],
            )
        return gone

    def _instructions(self, text: str) -> str:
        """Store a role's instructions if they are new; return their hash."""
        name = _name_of(text)
        self._change("INSERT OR IGNORE INTO instructions (hash, text) VALUES (?, ?)", name, text)
        return name

    def tick(self, key: TickKey) -> dict[str, Any] | None:
        """Return a tick as its record, with `deliberation` and `calls` (rows); None without one.

        A tick that was stored without a record has the columns of its rows instead.
        """
        return self._whole(self._row(TICK_ROW + "WHERE c.torra_key = ?", key.text))

    def told_tick(self, torra_key: str) -> dict[str, Any] | None:
        """Return a tick as `tick` does, without its calls, whose texts are the bulk of it."""
        return self._whole(self._row(TICK_ROW + "WHERE c.torra_key = ?", torra_key), calls=False)

    def latest_tick(self, instance: str, timeframe: str) -> dict[str, Any] | None:
        """Return the newest tick of a stream as `tick` does."""
        return self._whole(self._row(TICK_ROW + STREAM, instance, timeframe, 1))

    def ticks(self, instance: str, timeframe: str, limit: int = 100) -> list[dict[str, Any]]:
        """Return the newest ticks of a stream, newest first: both chains, scores, action, reason.

        `l1` maps each vector to its deterministic score; action and reason are None for a tick
        without a journal.
        """
        return [_told(row) for row in self._rows(TICK_ROW + STREAM, instance, timeframe, limit)]

    # --- what a replay asks for ------------------------------------------------------------------

    def standing(self, instance: str) -> dict[str, Any]:
        """Return what an instance has before a tick: paper_cursor, latches, signal_event.

        `signal_event` is the number of the newest step of any signal: `state_before` finds the
        signals of that moment by it.
        """
        cursor = self._row("SELECT bar_time FROM paper_cursor WHERE instance = ?", instance)
        latches = self._rows("SELECT side FROM latches WHERE instance = ? ORDER BY side", instance)
        event = self._row("SELECT max(id) AS id FROM signal_events")
        return {
            "paper_cursor": cursor["bar_time"] if cursor else None,
            "latches": [row["side"] for row in latches],
            "signal_event": (event["id"] if event else None) or 0,
        }

    def debate_of(self, torra_key: str) -> StoredDebate | None:
        """Return the stored debate of a tick; None for a tick that is not there."""
        spoken = self._row(
            "SELECT agent_deliberation FROM sentiment WHERE torra_key = ?", torra_key
        )
        if spoken is None:
            return None
        told = _object(spoken["agent_deliberation"])
        rows = self._rows("SELECT * FROM calls WHERE torra_key = ?", torra_key)
        return StoredDebate(
            calls={(row["role"], row["round"], row["attempt"]): row for row in rows},
            asked=frozenset(
                (call["role_id"], call["round"], call["attempt"]) for call in told.get("calls", ())
            ),
            flags=tuple(told.get("flags", ())),
            words={
                (role, stage["round"]): word
                for stage in told.get("stages", ())
                for role, word in stage["agents"].items()
            },
        )

    def journalled(
        self,
        instance: str,
        limit: int | None = None,
        *,
        timeframes: Collection[str] = (),
        begin: datetime | None = None,
        end: datetime | None = None,
    ) -> list[str]:
        """Return the keys of an instance's newest ticks with a journal, in the order they ran.

        Those of some `timeframes` (none named: all) that closed in [begin, end].
        """
        which, values = _closed(timeframes, begin, end)
        rows = self._rows(
            "SELECT c.torra_key FROM chains c JOIN journal j ON j.torra_key = c.torra_key "  # noqa: S608
            f"WHERE c.instance = ? {which}ORDER BY c.sentiment_id DESC LIMIT ?",
            instance, *values, -1 if limit is None else limit,
        )  # fmt: skip
        return [str(row["torra_key"]) for row in reversed(rows)]

    def tick_ends(
        self,
        instance: str,
        timeframes: Collection[str] = (),
        begin: datetime | None = None,
        end: datetime | None = None,
    ) -> list[dict[str, Any]]:
        """Return how many ticks of an instance ended how: timeframe, state, reason and number.

        Those that `journalled` would choose from, and with them the ticks that were skipped or are
        under way.
        """
        which, values = _closed(timeframes, begin, end)
        return self._rows(
            "SELECT c.timeframe, c.state, c.reason, count(*) AS number FROM ticks c "  # noqa: S608
            f"WHERE c.instance = ? {which}GROUP BY c.timeframe, c.state, c.reason "
            "ORDER BY c.timeframe, c.state, c.reason",
            instance, *values,
        )  # fmt: skip

    def ticked_instances(self) -> list[str]:
        """Return the names of all instances that have a tick, in the order of the alphabet."""
        rows = self._rows("SELECT DISTINCT instance FROM ticks ORDER BY instance")
        return [str(row["instance"]) for row in rows]

    def journal_row(self, torra_key: str) -> tuple[dict[str, Any], str]:
        """Return the record of a tick and the real time of its storing; KeyError without one."""
        row = self._row("SELECT record, at FROM journal WHERE torra_key = ?", torra_key)
        if row is None:
            raise KeyError(torra_key)
        return json.loads(row["record"]), str(row["at"])

    def record(self, torra_key: str) -> dict[str, Any]:
        """Return the record of a stored tick; an empty one where none is kept or can be read."""
        row = self._row("SELECT record FROM journal WHERE torra_key = ?", torra_key)
        return _object(row["record"] if row else None)

    def profiles_of(self, instance: str) -> list[dict[str, Any]]:
        """Return every profile that an instance was given, newest first, as applied_profile."""
        return self._rows(
            "SELECT digest, profile, applied_at FROM trading_config WHERE instance = ? "
            "ORDER BY id DESC",
            instance,
        )

    def signal_steps(self, instance: str, after: int, upto: int | None) -> list[dict[str, Any]]:
        """Return the steps of an instance's signals with a number in (after, upto], oldest first.

        Each has id, sid, from_state, to_state, detail, at and bridge (its signal's); `upto` None
        stands for the newest.
        """
        return self._rows(
            "SELECT e.*, s.bridge FROM signal_events e "
            "JOIN signals s ON s.sid = e.sid WHERE s.instance = ? AND e.id > ? "
            "AND (? IS NULL OR e.id <= ?) ORDER BY e.id",
            instance, after, upto, upto,
        )  # fmt: skip

    def twins(self, torra_key: str) -> dict[str, dict[str, Any]]:
        """Return what is stored of a tick beside its record: its rows by table, without numbers.

        `chains` and `sentiment` have its scores, `debate` what was said, and each of `calls`, by
        role, round and attempt, what was asked and how it ended.
        """
        chain = self._row("SELECT * FROM chains WHERE torra_key = ?", torra_key) or {}
        spoken = self._row("SELECT * FROM sentiment WHERE torra_key = ?", torra_key) or {}
        calls = self._rows(
            "SELECT role, round, attempt, status, instructions, user, request_hash FROM calls "
            "WHERE torra_key = ? ORDER BY rowid",
            torra_key,
        )
        debate = _object(spoken.get("agent_deliberation"))
        for stage in debate.get("stages", ()):
            stage.pop("ms", None)
        return {
            "chains": {name: value for name, value in chain.items() if name != "sentiment_id"},
            "sentiment": {name: spoken.get(name) for name in TWIN_SCORES},
            "debate": {name: told for name, told in debate.items() if name not in OF_THE_CALLS},
            "calls": {
                f"{row['role']}.{row['round']}.{row['attempt']}": {
                    name: row[name] for name in ("status", "instructions", "user", "request_hash")
                }
                for row in calls
            },
        }

    def state_before(
        self, instance: str, torra_key: str, signal_event: int, chains: int
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the rows on which a tick stood: sentiment, chains, signals and signal_events.

        The newest `chains` rows of each stream that were stored before the tick, oldest first, and
        the instance's signals as they were after the step `signal_event`.
        """
        found = self._rows(
            "SELECT * FROM (SELECT c.*, row_number() OVER "
            "(PARTITION BY c.timeframe ORDER BY c.close_time DESC) AS place FROM chains c "
            # In the order of storing: of ticks that close together, one knows those before it.
            "WHERE c.instance = ? AND c.sentiment_id < "
            "(SELECT sentiment_id FROM chains WHERE torra_key = ?)) "
            "WHERE place <= ? ORDER BY sentiment_id",
            instance, torra_key, chains,
        )  # fmt: skip
        sentiment = [
            row
            for told in found
            for row in self._rows("SELECT * FROM sentiment WHERE id = ?", told["sentiment_id"])
        ]
        events = self._rows(
            "SELECT e.* FROM signal_events e JOIN signals s ON s.sid = e.sid "
            "WHERE s.instance = ? AND e.id <= ? ORDER BY e.id",
            instance, signal_event,
        )  # fmt: skip
        signals = self._rows("SELECT * FROM signals WHERE instance = ? ORDER BY seq", instance)
        steps: dict[str, list[dict[str, Any]]] = {}
        for event in events:
            steps.setdefault(event["sid"], []).append(event)
        return {
            "sentiment": sentiment,
            "chains": [{k: v for k, v in row.items() if k != "place"} for row in found],
            "signals": [
                _signal_then(row, steps[row["sid"]]) for row in signals if row["sid"] in steps
            ],
            "signal_events": events,
        }

    def _whole(self, row: dict[str, Any] | None, *, calls: bool = True) -> dict[str, Any] | None:
        if row is None:
            return None
        key = row["torra_key"]
        found = self._row("SELECT record FROM journal WHERE torra_key = ?", key)
        spoken = self._row(
            "SELECT agent_deliberation FROM sentiment WHERE id = ?", row["sentiment_id"]
        )
        record = _object(found["record"]) if found else {}
        # A record that cannot be read empties its own tick, and stops no page.
        if not record.keys() >= WHOLE_RECORD:
            record = {**_told(row), "as_of": row["close_time"], **record}
        return {
            **record,
            "deliberation": _object(spoken["agent_deliberation"] if spoken else None) or None,
            **({"calls": self._rows(CALLS, key)} if calls else {}),
        }


class StoredDebate(NamedTuple):
    """The requests of one tick, as they are stored.

    `calls` are the stored rows by (role, round, attempt), `asked` the same triples of every request
    that was made, `words` how each agent ended by (role, round): empty where nobody was asked.
    """

    calls: Mapping[tuple[str, int, int], Mapping[str, Any]]
    asked: frozenset[tuple[str, int, int]]
    words: Mapping[tuple[str, int], str]
    flags: tuple[str, ...] = ()

    def refused(self, roles: Sequence[str], round_: int) -> str:
        """Return why the stage of these roles asked nobody; "" when it asked or it is not known."""
        places = {(role, round_) for role in roles}
        if any((role, number) in places for role, number, _ in (*self.calls, *self.asked)):
            return ""
        words = {self.words.get(place, "") for place in places}
        return words.pop() if len(words) == 1 and words <= REFUSALS else ""

    def row(self, role: str, round_: int, attempt: int) -> Mapping[str, Any] | None:
        """Return the stored row of a request; None for what is not known (any more).

        A request that was not made then, because money, time or the request cap did not allow it,
        is {"status": the reason, "unasked": True}.
        """
        place = (role, round_, attempt)
        if place in self.calls or place in self.asked:
            return self.calls.get(place)
        first = self.calls.get((role, round_, 1))
        if attempt > 1:
            refused = first is not None and first["status"] != "ok"
            return {"status": NOT_REPEATED, "unasked": True} if refused else None
        word = self.words.get((role, round_))
        return None if word is None or word in SPOKE else {"status": word, "unasked": True}


def journal_history(store: JournalStore, instance: str) -> Recollection:
    """Return a function that answers requests about ticks of an instance from its journal.

    Any thread may ask. The rows are those that were there when a tick was first asked for.
    """
    kept: dict[str, StoredDebate | None] = {}
    lock = threading.Lock()

    def recall(request: Request) -> Mapping[str, Any] | None:
        key = f"{instance}|{request.timeframe}|{request.bar_time}"
        # Under the lock, so that the agents of one stage read the tick once between them.
        with lock:
            if key not in kept:
                # Ticks are asked for in their order: the oldest one is done with.
                while len(kept) >= TICKS_AT_HAND:
                    kept.pop(next(iter(kept)))
                kept[key] = store.debate_of(key)
            debate = kept[key]
        return (
            None if debate is None else debate.row(request.role.id, request.round, request.attempt)
        )

    return recall


def _closed(
    timeframes: Collection[str], begin: datetime | None, end: datetime | None
) -> tuple[str, list[str]]:
    """Return the SQL that chooses rows `c` by stream and close, and its values."""
    tests = [f"AND c.timeframe IN ({', '.join('?' * len(timeframes))}) "] if timeframes else []
    tests += ["AND c.close_time >= ? "] if begin is not None else []
    tests += ["AND c.close_time <= ? "] if end is not None else []
    bounds = [stamp(moment) for moment in (begin, end) if moment is not None]
    return "".join(tests), [*timeframes, *bounds]


@lru_cache(maxsize=64)
def _name_of(text: str) -> str:
    """Name a role's instructions, which are the same on every tick."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


OF_ITS_END: Final = (
    "closed_at",
    "close_price",
    "profit",
    "r_multiple",
    "close_reason",
    "outcome",
    "evolution",
    "thesis",
)
"""Columns of a signal that only its end fills."""


def _signal_then(row: dict[str, Any], steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a signal as it was after its step `steps[-1]`."""
    known = {**row, "state": steps[-1]["to_state"], "detail": steps[-1]["detail"]}
    reached = {step["to_state"] for step in steps}
    executed = bool(reached & set(EXECUTED))
    if not executed:
        # The row holds what later steps filled in; the tick did not know it yet.
        known |= dict.fromkeys(("opened_at", "price", "filled_lots", "deal"))
    if not ("CLOSED" in reached if row["kind"] == "open" else executed):
        known |= dict.fromkeys(OF_ITS_END)
    return known


def _object(text: Any) -> dict[str, Any]:
    """Return the object that a column of JSON holds; an empty one for whatever else is there."""
    try:
        found = json.loads(text or "{}")
    except MALFORMED:
        return {}
    return found if isinstance(found, dict) else {}


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "l1": json.loads(row["l1"])}

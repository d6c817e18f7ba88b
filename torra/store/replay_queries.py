"""Reads what a replay and its checks ask of stored ticks: records, debates, the state before one.

Nothing is written. A file that cannot be read raises StoreUnavailable.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from agents.contracts import Request
from torra.store.connection import RowDict, Store
from torra.store.journal import json_object
from torra.verdict.signal_states import EXECUTED

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


def calls_before(store: Store, place: int | None, limit: int) -> list[RowDict]:
    """Return the calls that were stored before a place, newest first, without their texts.

    `place` of the last one is what to go on with; None begins with the newest.
    """
    return store.rows(
        "SELECT rowid AS place, at, torra_key, stage, role, round, attempt, status, provider, "
        "model, input_tokens, cached_tokens, output_tokens, cost_usd, elapsed_ms, stop_reason "
        "FROM calls WHERE rowid < ? ORDER BY rowid DESC LIMIT ?",
        2**63 - 1 if place is None else place, limit,
    )  # fmt: skip


def debate_of(store: Store, torra_key: str) -> StoredDebate | None:
    """Return the stored debate of a tick; None for a tick that is not there."""
    sentiment = store.row("SELECT agent_deliberation FROM sentiment WHERE torra_key = ?", torra_key)
    if sentiment is None:
        return None
    debate = json_object(sentiment["agent_deliberation"])
    rows = store.rows("SELECT * FROM calls WHERE torra_key = ?", torra_key)
    return StoredDebate(
        calls={(row["role"], row["round"], row["attempt"]): row for row in rows},
        requests=frozenset(
            (call["role_id"], call["round"], call["attempt"]) for call in debate.get("calls", ())
        ),
        flags=tuple(debate.get("flags", ())),
        words={
            (role, stage["round"]): word
            for stage in debate.get("stages", ())
            for role, word in stage["agents"].items()
        },
    )


def journalled(
    store: Store,
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
    keys = store.column(
        "SELECT c.torra_key FROM chains c JOIN journal j ON j.torra_key = c.torra_key "  # noqa: S608
        f"WHERE c.instance = ? {which}ORDER BY c.sentiment_id DESC LIMIT ?",
        instance, *values, -1 if limit is None else limit,
    )  # fmt: skip
    return keys[::-1]


def tick_ends(
    store: Store,
    instance: str,
    timeframes: Collection[str] = (),
    begin: datetime | None = None,
    end: datetime | None = None,
) -> list[RowDict]:
    """Return how many ticks of an instance ended how: timeframe, state, reason and number.

    Those that `journalled` would choose from, and with them the ticks that were skipped or are
    under way.
    """
    which, values = _closed(timeframes, begin, end)
    return store.rows(
        "SELECT c.timeframe, c.state, c.reason, count(*) AS number FROM ticks c "  # noqa: S608
        f"WHERE c.instance = ? {which}GROUP BY c.timeframe, c.state, c.reason "
        "ORDER BY c.timeframe, c.state, c.reason",
        instance, *values,
    )  # fmt: skip


def ticked_instances(store: Store) -> list[str]:
    """Return the names of all instances that have a tick, in the order of the alphabet."""
    return store.column("SELECT DISTINCT instance FROM ticks ORDER BY instance")


def journal_row(store: Store, torra_key: str) -> tuple[RowDict, str]:
    """Return the record of a tick and the real time of its storing; KeyError without one."""
    row = store.row("SELECT record, at FROM journal WHERE torra_key = ?", torra_key)
    if row is None:
        raise KeyError(torra_key)
    return json.loads(row["record"]), str(row["at"])


def profiles_of(store: Store, instance: str) -> list[RowDict]:
    """Return every profile that an instance was given, newest first, as applied_profile."""
    return store.rows(
        "SELECT digest, profile, applied_at FROM trading_config WHERE instance = ? "
        "ORDER BY id DESC",
        instance,
    )


def signal_steps(store: Store, instance: str, after: int, upto: int | None) -> list[RowDict]:
    """Return the steps of an instance's signals with a number in (after, upto], oldest first.

    Each has id, sid, from_state, to_state, detail, at and bridge (its signal's); `upto` None
    stands for the newest.
    """
    return store.rows(
        "SELECT e.*, s.bridge FROM signal_events e "
        "JOIN signals s ON s.sid = e.sid WHERE s.instance = ? AND e.id > ? "
        "AND (? IS NULL OR e.id <= ?) ORDER BY e.id",
        instance, after, upto, upto,
    )  # fmt: skip


def twins(store: Store, torra_key: str) -> dict[str, RowDict]:
    """Return what is stored of a tick beside its record: its rows by table, without numbers.

    `chains` and `sentiment` have its scores, `debate` what was said, and each of `calls`, by
    role, round and attempt, what was asked and how it ended.
    """
    chain = store.row("SELECT * FROM chains WHERE torra_key = ?", torra_key) or {}
    sentiment = store.row("SELECT * FROM sentiment WHERE torra_key = ?", torra_key) or {}
    calls = store.rows(
        "SELECT role, round, attempt, status, instructions, user, request_hash FROM calls "
        "WHERE torra_key = ? ORDER BY rowid",
        torra_key,
    )
    debate = json_object(sentiment.get("agent_deliberation"))
    for stage in debate.get("stages", ()):
        stage.pop("ms", None)
    return {
        "chains": {name: value for name, value in chain.items() if name != "sentiment_id"},
        "sentiment": {name: sentiment.get(name) for name in TWIN_SCORES},
        "debate": {name: value for name, value in debate.items() if name not in OF_THE_CALLS},
        "calls": {
            f"{row['role']}.{row['round']}.{row['attempt']}": {
                name: row[name] for name in ("status", "instructions", "user", "request_hash")
            }
            for row in calls
        },
    }


def state_before(
    store: Store, instance: str, torra_key: str, signal_event: int, chains: int
) -> dict[str, list[RowDict]]:
    """Return the rows on which a tick stood: sentiment, chains, signals and signal_events.

    The newest `chains` rows of each stream that were stored before the tick, oldest first, and
    the instance's signals as they were after the step `signal_event`.
    """
    newest = store.rows(
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
        for chain in newest
        for row in store.rows("SELECT * FROM sentiment WHERE id = ?", chain["sentiment_id"])
    ]
    events = store.rows(
        "SELECT e.* FROM signal_events e JOIN signals s ON s.sid = e.sid "
        "WHERE s.instance = ? AND e.id <= ? ORDER BY e.id",
        instance, signal_event,
    )  # fmt: skip
    signals = store.rows("SELECT * FROM signals WHERE instance = ? ORDER BY seq", instance)
    steps: dict[str, list[RowDict]] = {}
    for event in events:
        steps.setdefault(event["sid"], []).append(event)
    return {
        "sentiment": sentiment,
        "chains": [{k: v for k, v in row.items() if k != "place"} for row in newest],
        "signals": [_signal_then(row, steps[row["sid"]]) for row in signals if row["sid"] in steps],
        "signal_events": events,
    }


def knows_profile(store: Store, instance: str, digest: str) -> bool:
    """Return whether an instance was ever given a profile."""
    sql = "SELECT 1 FROM trading_config WHERE instance = ? AND digest = ?"
    return store.value(sql, instance, digest) is not None


class StoredDebate(NamedTuple):
    """The requests of one tick, as they are stored.

    `calls` are the stored rows by (role, round, attempt), `requests` the same triples of every
    request that was made, `words` how each agent ended by (role, round): empty where nobody was
    asked.
    """

    calls: Mapping[tuple[str, int, int], Mapping[str, Any]]
    requests: frozenset[tuple[str, int, int]]
    words: Mapping[tuple[str, int], str]
    flags: tuple[str, ...] = ()

    def refused(self, roles: Sequence[str], round_: int) -> str:
        """Return why the stage of these roles asked nobody; "" when it asked or it is not known."""
        places = {(role, round_) for role in roles}
        if any((role, number) in places for role, number, _ in (*self.calls, *self.requests)):
            return ""
        words = {self.words.get(place, "") for place in places}
        return words.pop() if len(words) == 1 and words <= REFUSALS else ""

    def row(self, role: str, round_: int, attempt: int) -> Mapping[str, Any] | None:
        """Return the stored row of a request; None for what is not known (any more).

        A request that was not made then, because money, time or the request cap did not allow it,
        is {"status": the reason, "unasked": True}.
        """
        place = (role, round_, attempt)
        if place in self.calls or place in self.requests:
            return self.calls.get(place)
        first = self.calls.get((role, round_, 1))
        if attempt > 1:
            refused = first is not None and first["status"] != "ok"
            return {"status": NOT_REPEATED, "unasked": True} if refused else None
        word = self.words.get((role, round_))
        return None if word is None or word in SPOKE else {"status": word, "unasked": True}


def journal_history(store: Store, instance: str) -> Recollection:
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
                kept[key] = debate_of(store, key)
            debate = kept[key]
        return (
            None if debate is None else debate.row(request.role.id, request.round, request.attempt)
        )

    return recall


def _closed(
    timeframes: Collection[str], begin: datetime | None, end: datetime | None
) -> tuple[str, list[object]]:
    """Return the SQL that chooses rows `c` by stream and close, and its values."""
    bounds: dict[str, list[object]] = {
        f"c.timeframe IN ({', '.join('?' * len(timeframes))})": [*timeframes],
        "c.close_time >= ?": [] if begin is None else [begin],
        "c.close_time <= ?": [] if end is None else [end],
    }
    tests = [f"AND {test} " for test, values in bounds.items() if values]
    return "".join(tests), [value for values in bounds.values() for value in values]


def _signal_then(row: RowDict, steps: Sequence[RowDict]) -> RowDict:
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

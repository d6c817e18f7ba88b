"""Stores streams of events: what a running debate told, envelope by envelope.

One owner writes a stream, in order. `seq` starts at 1 and is given here, at the moment of writing,
so it has no gap whatever was dropped before. A stream has at most one terminal event and nothing
after it. Events that come later, or from another owner, are not kept. The stream `desk` has no end
and several writers in turn; its newest events are kept, and its `seq` goes on through restarts.
Every failure raises StoreUnavailable and leaves no trace.

A part of instance_database.Database. torra.desk.event_stream decides what is told, and to whom.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from torra.store.connection import RowDict, Store
from torra.store.envelopes import DESK_STREAM, StreamEvent
from torra.store.trade.rows import DeskEvent

DESK_EVENTS: Final = 1000
"""Newest events of the stream `desk` that are kept."""

LOST_AT_ONCE: Final = 100
"""Streams without a producer that are ended in one transaction."""

STREAM: Final = (
    "SELECT stream_id, kind, torra_key, owner, at, ended, "
    "(SELECT coalesce(max(seq), 0) FROM stream_events e WHERE e.stream_id = s.stream_id) AS seq, "
    "(SELECT coalesce(min(seq), 0) FROM stream_events e WHERE e.stream_id = s.stream_id) AS first "
    "FROM streams s "
)
"""A stream with the numbers of its newest and its oldest event, 0 without any."""

PULSE: Final = {
    "state": "SELECT coalesce(max(id), 0) AS told FROM desk_state",
    "audit": "SELECT coalesce(max(seq), 0) AS told FROM audit",
    "signals": "SELECT coalesce(max(id), 0) AS told FROM signal_events",
    "profile": "SELECT coalesce(max(id), 0) AS told FROM trading_config",
    "jobs": "SELECT coalesce(max(revision), 0) AS told FROM jobs",
    "proposals": "SELECT count(*) || coalesce(max(expires), '') AS told FROM proposals "
    "WHERE state = 'WAITING'",
    "notices": "SELECT coalesce(max(id), 0) AS told FROM notices",
}
"""Values that change when something has changed; each costs one look at an index."""


def open_stream(store: Store, stream_id: str, kind: str, torra_key: str, owner: str) -> None:
    """Begin a stream; the stream `desk` may be begun again, and is the new owner's then."""
    store.change(
        "INSERT INTO streams (stream_id, kind, torra_key, owner, at) VALUES (?, ?, ?, ?, ?) "
        # The endless stream goes on with another desk; a tick's stream keeps its owner.
        "ON CONFLICT (stream_id) DO UPDATE SET owner = excluded.owner WHERE kind = 'desk'",
        stream_id, kind, torra_key, owner, fine(store.now()),
    )  # fmt: skip


def append_events(store: Store, stream_id: str, owner: str, events: Iterable[StreamEvent]) -> int:
    """Append events of a stream's owner; return the number of the newest event.

    Returns 0 and writes nothing when there is no such stream, it has ended, or it belongs to
    another. What follows a terminal event is not kept.
    """
    with store.transaction():
        row = store.row("SELECT owner, ended FROM streams WHERE stream_id = ?", stream_id)
        if row is None or row["ended"] or row["owner"] != owner:
            return 0
        return _append(store, stream_id, events)


def _append(store: Store, stream_id: str, events: Iterable[StreamEvent]) -> int:
    # Numbered inside the transaction: no gap and no number twice, whoever writes.
    newest = "SELECT coalesce(max(seq), 0) AS seq FROM stream_events WHERE stream_id = ?"
    seq, at = int(store.rows(newest, stream_id)[0]["seq"]), fine(store.now())
    rows: list[tuple[object, ...]] = []
    ended = False
    for event in events:
        if not ended:
            seq, ended = seq + 1, event.terminal
            rows.append((stream_id, seq, event.event, int(ended), event.payload, at))
    connection = store.connection().conn
    connection.executemany("INSERT INTO stream_events VALUES (?, ?, ?, ?, ?, ?)", rows)
    if ended:
        connection.execute("UPDATE streams SET ended = 1 WHERE stream_id = ?", (stream_id,))
    if stream_id == DESK_STREAM:
        sql = "DELETE FROM stream_events WHERE stream_id = ? AND seq <= ?"
        connection.execute(sql, (stream_id, seq - DESK_EVENTS))
    return seq


def stream(store: Store, stream_id: str) -> RowDict | None:
    """Return a stream: kind, torra_key, owner, at, ended, seq (newest), first; None without."""
    return store.row(STREAM + "WHERE stream_id = ?", stream_id)


def streams(store: Store, torra_key: str | None = None, limit: int = 50) -> list[RowDict]:
    """Return the newest streams of ticks, newest first: those of one tick, or of all."""
    if torra_key is not None:
        return store.rows(
            STREAM + "WHERE torra_key = ? AND kind = 'tick' ORDER BY at DESC LIMIT ?",
            torra_key, limit,
        )  # fmt: skip
    return store.rows(
        # at > '' holds for every row, and lets SQLite use the index of `at`.
        STREAM + "WHERE at > '' AND kind = 'tick' ORDER BY at DESC LIMIT ?",
        limit,
    )


def newest_stream(store: Store, kind: str, torra_key: str) -> RowDict | None:
    """Return the newest stream of a kind about something; None without one.

    One that is open is the newest: the clock may have been put back since an older one began.
    """
    return store.row(
        STREAM + "WHERE torra_key = ? AND kind = ? ORDER BY ended, at DESC LIMIT 1",
        torra_key, kind,
    )  # fmt: skip


def events_after(store: Store, stream_id: str, seq: int, limit: int = 100) -> list[DeskEvent]:
    """Return the events of a stream with greater numbers."""
    return store.models(
        DeskEvent,
        "SELECT seq, event, terminal, payload, at FROM stream_events "
        "WHERE stream_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        stream_id, seq, limit,
    )  # fmt: skip


def events_named(store: Store, kind: str, event: str, field: str, value: str) -> list[RowDict]:
    """Return the events of a name in all streams of a kind: stream_id and payload.

    Of those alone whose payload has a value in a field.
    """
    return store.rows(
        "SELECT stream_id, payload FROM streams JOIN stream_events USING (stream_id) "
        "WHERE kind = ? AND event = ? AND json_extract(payload, '$.' || ?) = ?",
        kind, event, field, value,
    )  # fmt: skip


def orphans(store: Store, owner: str, limit: int = LOST_AT_ONCE) -> list[str]:
    """Return streams that were left open by others than `owner`, and by no job that goes on."""
    return store.column(
        # Below and above instead of <>, which no index serves.
        "SELECT stream_id FROM (SELECT * FROM streams WHERE ended = 0 AND owner < ? "
        "UNION ALL SELECT * FROM streams WHERE ended = 0 AND owner > ?) "
        "WHERE kind <> 'desk' AND NOT EXISTS (SELECT 1 FROM jobs WHERE key = owner AND "
        "(state = 'queued' OR state = 'running' OR state = 'retrying')) LIMIT ?",
        owner, owner, limit,
    )  # fmt: skip


def end_orphans(store: Store, owner: str, last: StreamEvent, limit: int = LOST_AT_ONCE) -> int:
    """End streams that others left open with `last`, a terminal event; return how many."""
    with store.transaction():
        left = orphans(store, owner, limit)
        for stream_id in left:
            _append(store, stream_id, [last])
    return len(left)


def end_streams(store: Store, owner: str, last: StreamEvent) -> None:
    """End the streams that an owner has left open with `last`, a terminal event."""
    with store.transaction():
        sql = "SELECT stream_id FROM streams WHERE ended = 0 AND owner = ?"
        for stream_id in store.column(sql, owner):
            _append(store, stream_id, [last])


def prune_streams(store: Store, before: datetime, *, limit: int) -> int:
    """Remove streams that began before a real moment; return how many rows went.

    One short transaction of `limit` rows at most, oldest streams first. The stream `desk`
    stays: it keeps itself short.
    """
    gone = 0
    with store.transaction():
        old = store.rows(
            "SELECT stream_id FROM streams WHERE at < ? AND kind <> 'desk' "
            "ORDER BY at LIMIT ?",
            fine(before), limit,
        )  # fmt: skip
        for row in old:
            gone += store.change(
                "DELETE FROM stream_events WHERE stream_id = ? AND seq IN "
                "(SELECT seq FROM stream_events WHERE stream_id = ? ORDER BY seq LIMIT ?)",
                row["stream_id"], row["stream_id"], limit - gone,
            )  # fmt: skip
            # Its events were cut at the limit: the stream itself goes when the last of them is
            # gone.
            if gone >= limit:
                break
            gone += store.change("DELETE FROM streams WHERE stream_id = ?", row["stream_id"])
    return gone


def pulse(store: Store) -> RowDict:
    """Return numbers that differ from those of before when something was changed since."""
    return {name: store.value(sql) for name, sql in PULSE.items()}


def fine(moment: datetime) -> str:
    """Write a time in milliseconds, always with all of them: compared as text it sorts."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def running_debates(store: Store, since: datetime) -> list[RowDict]:
    """Return the debates that began after a real moment and go on: stream_id, torra_key, at.

    Newest first. One that is older was left by a desk that died.
    """
    rows = store.rows(
        # owner >= '' holds for every row, and lets SQLite use the index of the open streams.
        "SELECT stream_id, torra_key, at FROM streams WHERE ended = 0 AND owner >= '' "
        "AND kind = 'tick' AND at > ?",
        since,
    )
    return sorted(rows, key=lambda row: (row["at"], row["stream_id"]), reverse=True)

"""Stores notices for a person, what became of each on its way out, and how far was looked.

A notice is written once under its key, with a row in the outbox for each service that is to bring
it. The outbox is bounded: beyond the limit of a service its oldest notices that are no alarms are
dropped. Alarms wait for ever. A notice that was being sent as the desk died may have arrived: only
an alarm is sent again.

`cursors` remember where a look stood, so that nothing is told twice after a restart. Nothing here
holds an address: a service has a number and a word. Every failure raises StoreUnavailable and
leaves no trace. A part of instance_database.Database; torra.notices decides what is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from torra.errors import bounded
from torra.store.connection import RowDict, Store, to_json
from torra.store.trade.rows import SignalEvent, TradingStateRow

COLUMNS: Final = ("key", "kind", "level", "title", "text", "instance", "desk_time", "at", "silent")

ALARM: Final = "alarm"
WAITING: Final = "waiting"
SENDING: Final = "sending"

KEPT: Final = 2000
"""Newest notices that are kept; an older one stays while it waits."""

LONGEST_TITLE: Final = 120

PATIENCE_SECONDS: Final = 1.0
"""How long a transaction of notices waits for other writers: a tick may queue behind it."""


def add_notice(store: Store, row: Mapping[str, Any], services: Sequence[str]) -> bool:
    """Write a notice that waits for each of some services; False when its key is there.

    Needs COLUMNS; times are aware. `silent` notices are listed, and nobody is called for them.
    """
    known = {name: row[name] for name in COLUMNS} | {
        "title": bounded(str(row["title"]), LONGEST_TITLE),
        "text": bounded(str(row["text"])),
        "silent": int(bool(row["silent"])),
    }
    with store.transaction():
        if store.value("SELECT 1 FROM notices WHERE key = ?", known["key"]):
            return False
        number = store.add("notices", known)
        sent = {"notice": number, "state": WAITING, "next_try": ""}
        for service in services:
            store.add("notice_outbox", {**sent, "service": service})
        store.change(
            "DELETE FROM notice_outbox WHERE notice <= ? AND notice NOT IN "
            "(SELECT notice FROM notice_outbox WHERE state IN ('waiting', 'sending'))",
            number - KEPT,
        )
        store.change(
            "DELETE FROM notices WHERE id <= ? AND id NOT IN (SELECT notice FROM notice_outbox)",
            number - KEPT,
        )
    return True


def trim_outbox(store: Store, service: str, most: int) -> int:
    """Drop what waits for a service beyond its newest `most`, no alarm; return how many."""
    return store.change(
        "UPDATE notice_outbox SET state = 'dropped', detail = 'too many waited' "
        "WHERE service = ? AND state = 'waiting' AND notice IN ("
        "SELECT o.notice FROM notice_outbox o JOIN notices n ON n.id = o.notice "
        "WHERE o.service = ? AND o.state = 'waiting' AND n.level <> 'alarm' "
        "ORDER BY o.notice DESC LIMIT -1 OFFSET "
        "max(0, ? - (SELECT count(*) FROM notice_outbox o JOIN notices n ON n.id = o.notice "
        "WHERE o.service = ? AND o.state = 'waiting' AND n.level = 'alarm')))",
        service, service, most, service,
    )  # fmt: skip


def mark_notice(
    store: Store,
    notice: int,
    service: str,
    state: str,
    *,
    tries: int,
    detail: str = "",
    next_try: datetime | None = None,
) -> None:
    """Note what became of a notice on its way to a service."""
    store.change(
        "UPDATE notice_outbox SET state = ?, tries = ?, detail = ?, next_try = ? "
        "WHERE notice = ? AND service = ?",
        state, tries, bounded(detail), next_try or "", notice, service,
    )  # fmt: skip


def note_service(store: Store, service: str, detail: str) -> None:
    """Note how the last try of a service went: "" when it took the notice, else why not."""
    row = {"service": service, "detail": bounded(detail), "at": store.moment()}
    store.upsert("notice_services", row)


def keep_services(store: Store, services: Sequence[str]) -> None:
    """Settle what an earlier desk left: half-sent notices, and services that are gone.

    What was being sent may have arrived: an alarm waits again, anything else is not known.
    """
    names = to_json([*services])
    with store.transaction(PATIENCE_SECONDS):
        store.change(
            "UPDATE notice_outbox SET state = 'waiting', next_try = '' WHERE state = 'sending' "
            "AND notice IN (SELECT id FROM notices WHERE level = 'alarm')"
        )
        store.change(
            "UPDATE notice_outbox SET state = 'failed', "
            "detail = 'the desk ended while it was sent' WHERE state = 'sending'"
        )
        store.change(
            "UPDATE notice_outbox SET state = 'dropped', "
            "detail = 'this service is not set any more' WHERE state = 'waiting' "
            "AND service NOT IN (SELECT value FROM json_each(?))",
            names,
        )
        store.change(
            "DELETE FROM notice_services WHERE service NOT IN (SELECT value FROM json_each(?))",
            names,
        )


def due_notice(store: Store, service: str, now: datetime) -> RowDict | None:
    """Return what a service is to be handed next, an alarm first; None when nothing is due."""
    return store.row(
        "SELECT n.*, o.tries FROM notice_outbox o JOIN notices n ON n.id = o.notice "
        "WHERE o.service = ? AND o.state = 'waiting' AND o.next_try <= ? "
        "ORDER BY n.level <> 'alarm', o.tries, o.notice LIMIT 1",
        service, now,
    )  # fmt: skip


def notices(store: Store, limit: int) -> list[RowDict]:
    """Return the newest notices, newest first, each with its `sent`: one row a service."""
    return _with_ways(store, store.rows("SELECT * FROM notices ORDER BY id DESC LIMIT ?", limit))


def notices_after(store: Store, number: int, limit: int) -> list[RowDict]:
    """Return the notices with a greater number, oldest first, each with its `sent`."""
    sql = "SELECT * FROM notices WHERE id > ? ORDER BY id LIMIT ?"
    return _with_ways(store, store.rows(sql, number, limit))


def _with_ways(store: Store, rows: list[RowDict]) -> list[RowDict]:
    for row in rows:
        row["sent"] = store.rows(
            "SELECT service, state, tries, detail FROM notice_outbox WHERE notice = ? "
            "ORDER BY service",
            row["id"],
        )
    return rows


def newest_notice(store: Store) -> int:
    """Return the number of the newest notice, 0 before the first."""
    return int(store.value("SELECT max(id) FROM notices") or 0)


def notice_services(store: Store) -> list[RowDict]:
    """Return how the last try of each service went: service, detail ("" = taken), at."""
    return store.rows("SELECT * FROM notice_services ORDER BY service")


def notice_cursor(store: Store, name: str) -> str | None:
    """Return where a look stood, None before the first."""
    place = store.value("SELECT place FROM notice_cursors WHERE name = ?", name)
    return None if place is None else str(place)


def set_notice_cursor(store: Store, name: str, place: str) -> None:
    """Remember where a look stands."""
    store.upsert("notice_cursors", {"name": name, "place": place})


def steps_after(store: Store, number: int, limit: int) -> list[SignalEvent]:
    """Return the steps of signals with a greater number, oldest first, each with its signal."""
    return store.models(
        SignalEvent,
        "SELECT s.*, e.id AS step, e.to_state "
        "FROM signal_events e CROSS JOIN signals s ON s.sid = e.sid "
        "WHERE e.id > ? ORDER BY e.id LIMIT ?",
        number, limit,
    )  # fmt: skip


def states_after(store: Store, number: int, limit: int) -> list[TradingStateRow]:
    """Return the changes of the trading state with a greater number, oldest first."""
    return store.models(
        TradingStateRow,
        "SELECT id, state, reason, at FROM desk_state WHERE id > ? ORDER BY id LIMIT ?",
        number, limit,
    )  # fmt: skip


def newest_state(store: Store) -> int:
    """Return the number of the newest change of the trading state, 0 before the first."""
    return int(store.value("SELECT max(id) FROM desk_state") or 0)

"""Signals: their ids, their states, and the way from the database to a bridge.

`write_signal` enqueues inside the tick's own transaction and touches no file. `publish_pending`
runs after it, and again at any time: it checks halt and expiry at the moment of submission, hands
over what passes and marks it, so repeating it after a crash sends nothing twice under another name:
the same decision always has the same id, and a bridge executes an id once. When the way to the
market is closed the signal stays pending and dies at its expiry. `apply_event` books what a bridge
reports. The store is handed in (instance_database.Database fits); no SQL is here, and deciding,
sizing and filling are left to `torra.risk_engine` and the bridges.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Final, Protocol

from torra.clock import iso, parse
from torra.errors import BridgeUnavailable
from torra.risk_engine import DenyReason, SignalDraft

ID_LENGTH: Final = 12
"""Characters of base32 in a signal id: 60 bits."""

FAILED: Final = ("REJECTED", "EXPIRED", "CANCELLED")
"""States in which a signal ends without having been executed."""

LIMIT: Final = 1000
"""How many waiting signals of an instance one call looks at; there are two at most."""


class Store(Protocol):
    """What this module needs of a database. Rows are plain dicts, times ISO text in UTC."""

    def transaction(self) -> AbstractContextManager[Any]:
        """Begin a transaction or join the open one."""
        ...

    def enqueue_signal(self, row: Mapping[str, Any]) -> Any:
        """Insert a signal; one whose id is there already changes nothing."""
        ...

    def signal(self, sid: str) -> dict[str, Any] | None:
        """Return one signal; None when there is none of that id."""
        ...

    def signals(
        self, states: Sequence[str] | None = None, instance: str | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Return signals by state and instance."""
        ...

    def move_signal(
        self, sid: str, state: str, *, detail: str = "", fields: Mapping[str, Any] | None = None
    ) -> Any:
        """Move a signal along torra.signal_states and append the step to its history."""
        ...

    def close_position(
        self,
        sid: str,
        *,
        price: float,
        time: datetime,
        profit: float,
        r_multiple: float,
        reason: str,
    ) -> Any:
        """Move the opening of a position to CLOSED with the outcome of the trade."""
        ...


class Bridge(Protocol):
    """The way to a market. Both methods raise BridgeUnavailable when it is closed for now."""

    def submit(self, signal: Mapping[str, Any]) -> None:
        """Hand a signal over; the same id again changes nothing."""
        ...

    def recall(self, sid: str) -> bool:
        """Take a signal back; False when it was executed or cannot be reached any more."""
        ...


class Event(Protocol):
    """What a bridge reports (torra.bridges.paper.PaperEvent says what each kind means)."""

    @property
    def kind(self) -> str:
        """FILLED, STOPPED, TARGET, CLOSED or CANCELLED."""
        ...

    @property
    def sid(self) -> str:
        """The signal; for an ended position the one that opened it."""
        ...

    @property
    def price(self) -> float:
        """The price of the fill or of the exit."""
        ...

    @property
    def time(self) -> datetime:
        """When it happened."""
        ...

    @property
    def profit(self) -> float:
        """Profit in account currency."""
        ...

    @property
    def r_multiple(self) -> float:
        """Profit over the planned risk."""
        ...


def signal_id(
    instance: str, symbol: str, timeframe: str, bar_time: datetime, *, kind: str, side: str
) -> str:
    """Return the id of a decision: the same decision always has the same one."""
    text = "|".join((instance, symbol, timeframe, iso(bar_time), kind, side))
    digest = hashlib.sha256(text.encode()).digest()
    return "T" + base64.b32encode(digest).decode()[:ID_LENGTH]


def write_signal(
    store: Store,
    draft: SignalDraft,
    *,
    instance: str,
    symbol: str,
    timeframe: str,
    bar_time: datetime,
    created: datetime,
    expires: datetime,
) -> dict[str, Any]:
    """Enqueue a draft and return its row, which is plain JSON.

    `created` is the close time of the deciding tick. An opening that names a position to be closed
    first (`draft.closes`) is WAITING and names, in `after`, the close of the same decision.
    """

    def named(kind: str) -> str:
        return signal_id(instance, symbol, timeframe, bar_time, kind=kind, side=draft.side)

    waits = draft.kind == "open" and draft.closes is not None
    levels = draft.levels
    row: dict[str, Any] = {
        "sid": named(draft.kind),
        "instance": instance,
        "symbol": symbol,
        "timeframe": timeframe,
        "bar_time": iso(bar_time),
        "kind": draft.kind,
        "side": draft.side,
        "lots": draft.lots,
        "entry": levels.entry if levels else None,
        "stop": levels.stop if levels else None,
        "target": levels.target if levels else None,
        "atr": levels.atr if levels else None,
        "closes": draft.closes,
        "after": named("close") if waits else None,
        "decided_at": iso(created),
        "expires": iso(expires),
        "state": "WAITING" if waits else "PENDING",
    }
    store.enqueue_signal(row)
    return row


def publish_pending(
    store: Store,
    bridge: Bridge | None = None,
    *,
    now: datetime,
    halted: bool,
    instance: str | None = None,
) -> list[dict[str, Any]]:
    """Publish what may still be sent and return those rows, oldest decision first, closes first.

    `now` is the desk's clock. Without a bridge (paper) a signal is published by being marked: the
    paper bridge reads the store. While `halted`, whatever has not been executed is cancelled
    (TRADING_HALTED), the published as far as the bridge can take it back. From its expiry on a
    pending signal is EXPIRED. An opening in WAITING follows its close.
    """
    with store.transaction():
        if halted:
            _cancel_all(store, bridge, instance)
            return []
        rows = _rows(store, ("PENDING",), instance)
        sent = [row for row in rows if _publish(store, bridge, row, now)]
        _follow_closes(store, instance)
    return sent


def apply_event(store: Store, event: Event) -> None:
    """Book what a bridge reports, in one transaction; raises ValueError for an unknown kind."""
    with store.transaction():
        if event.kind == "FILLED":
            _fill(store, event)
        elif event.kind == "CANCELLED":
            store.move_signal(event.sid, "CANCELLED", detail="position")
        elif event.kind in ("STOPPED", "TARGET", "CLOSED"):
            store.close_position(
                event.sid,
                price=event.price,
                time=event.time,
                profit=event.profit,
                r_multiple=event.r_multiple,
                reason=event.kind,
            )
        else:
            raise ValueError(f"unknown event {event.kind}")


def _rows(store: Store, states: Sequence[str], instance: str | None) -> list[dict[str, Any]]:
    rows = store.signals(states=states, instance=instance, limit=LIMIT)
    return sorted(rows, key=lambda row: (row["decided_at"], row["kind"] != "close", row["sid"]))


def _publish(store: Store, bridge: Bridge | None, row: dict[str, Any], now: datetime) -> bool:
    if now >= parse(row["expires"]):
        store.move_signal(row["sid"], "EXPIRED", detail=DenyReason.SIGNAL_EXPIRED.value)
        return False
    if bridge is not None:
        try:
            bridge.submit(row)
        except BridgeUnavailable:
            return False
    store.move_signal(row["sid"], "PUBLISHED")
    row["state"] = "PUBLISHED"
    return True


def _follow_closes(store: Store, instance: str | None) -> None:
    """Cancel each opening in WAITING whose close came to nothing."""
    for row in _rows(store, ("WAITING",), instance):
        close = store.signal(row["after"])
        if close is None or close["state"] in FAILED:
            state = close["state"] if close else "missing"
            store.move_signal(row["sid"], "CANCELLED", detail=f"close {state}")


def _cancel_all(store: Store, bridge: Bridge | None, instance: str | None) -> None:
    detail = DenyReason.TRADING_HALTED.value
    for row in _rows(store, ("WAITING", "PENDING", "PUBLISHED"), instance):
        if row["state"] != "PUBLISHED" or _recalled(bridge, row["sid"]):
            store.move_signal(row["sid"], "CANCELLED", detail=detail)


def _recalled(bridge: Bridge | None, sid: str) -> bool:
    if bridge is None:
        return True
    try:
        return bridge.recall(sid)
    except BridgeUnavailable:
        return False


def _fill(store: Store, event: Event) -> None:
    """Move a signal to FILLED; one that waited for its close is released on the way."""
    row = store.signal(event.sid)
    if row and row["state"] == "WAITING":
        store.move_signal(event.sid, "PENDING", detail="close filled")
        store.move_signal(event.sid, "PUBLISHED")
    moment = "opened_at" if row and row["kind"] == "open" else "closed_at"
    fields = {"price": event.price, moment: event.time}
    store.move_signal(event.sid, "FILLED", fields=fields)

"""A person's orders for a position: what is written, for how many lots, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cases import cases
from torra.store.memory import MemoryStore
from torra.verdict import hand_orders
from torra.verdict.hand_orders import lots_left, manual_order_id

NOON = datetime(2021, 12, 1, 12, tzinfo=UTC)
LIFE = timedelta(minutes=3)
OPENING = {
    "sid": "TOPENING", "instance": "GOLD", "symbol": "XAUUSD", "timeframe": "M15",
    "bar_time": "2021-12-01T10:45:00Z", "kind": "open", "side": "BUY", "lots": 0.3,
    "filled_lots": 0.2, "entry": 2000.0, "stop": 1990.0, "target": 2020.0, "atr": 5.0,
    "closes": None, "after": None, "decided_at": "2021-12-01T11:00:00Z",
    "expires": "2021-12-01T11:03:00Z", "state": "FILLED", "bridge": "paper",
}  # fmt: skip
PART = {"kind": "close", "state": "PARTIAL", "lots": 0.2, "filled_lots": 0.05}


def write(**opening: Any) -> dict[str, Any]:
    store = MemoryStore()
    with store.transaction():
        row = hand_orders.write_hand_close(store, {**OPENING, **opening}, now=NOON, life=LIFE)
    assert store.signal(row["sid"]) is not None
    return row


def test_a_close_is_written_whole() -> None:
    """The newest closed bar of the opening's timeframe is the bar of a close."""
    assert write() == {
        "sid": manual_order_id("TOPENING", "close", 1), "instance": "GOLD", "symbol": "XAUUSD",
        "timeframe": "M15", "bar_time": "2021-12-01T11:45:00Z", "kind": "close", "side": "SELL",
        "lots": 0.2, "stop": None, "closes": "TOPENING", "after": None,
        "decided_at": "2021-12-01T12:00:00Z", "expires": "2021-12-01T12:03:00Z",
        "state": "PENDING", "bridge": "paper",
    }  # fmt: skip


@cases(
    ("state", "after", "expires"),
    [
        ("PARTIAL", None, "2021-12-01T12:03:00Z"),
        ("PUBLISHED", "TOPENING", "2021-12-01T12:15:00Z"),
        ("PENDING", "TOPENING", "2021-12-01T12:15:00Z"),
    ],
)
def test_a_close_waits_for_an_opening_that_is_under_way(
    state: str, after: str | None, expires: str
) -> None:
    row = write(state=state)
    assert (row["after"], row["expires"]) == (after, expires)
    assert row["state"] == ("WAITING" if after else "PENDING")


@pytest.mark.parametrize("state", ["EXPIRED", "REJECTED", "CANCELLED", "CLOSED"])
def test_an_opening_that_has_ended_is_neither_closed_nor_moved(state: str) -> None:
    store, ended = MemoryStore(), {**OPENING, "state": state}
    with pytest.raises(ValueError, match=f"TOPENING is {state}: there is nothing to close"):
        hand_orders.write_hand_close(store, ended, now=NOON, life=LIFE)
    with pytest.raises(ValueError, match=f"TOPENING is {state}: it has no stop yet"):
        hand_orders.write_stop_move(store, ended, 1995.0, now=NOON, life=LIFE)


@cases(
    ("closes", "lots"),
    [
        ((), 0.2),
        ((PART,), 0.15),
        ((PART, {**PART, "filled_lots": 0.1}), 0.1),
        # The books show 0.2 lots already, what was closed of 0.3 is in them.
        (({**PART, "lots": 0.3},), 0.2),
        (({**PART, "filled_lots": None},), 0.2),
        (({**PART, "state": "EXPIRED"},), 0.2),
        (({**PART, "kind": "modify"},), 0.2),
    ],
)
def test_lots_that_a_close_took_are_not_closed_again(
    closes: tuple[dict[str, Any], ...], lots: float
) -> None:
    assert lots_left(OPENING, closes) == lots

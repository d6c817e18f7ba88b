"""A desk that loses its lock between two steps of a turn moves no signal and calls nothing back."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime
from itertools import count
from typing import Any

import pytest

import signal_bridge
from tests.bridges.test_signal_bridge import (
    CLOSE,
    FOLLOW,
    LIFE,
    OPEN,
    Memory,
    T,
    order,
    send,
    stopped_by,
    write,
)
from tests.doubles.scripted_bridge import ScriptedBridge
from torra.errors import StoreUnavailable


def lose(store: Memory, at: int) -> None:
    """Let the lock be lost when it is asked after for this time, and stay so."""
    calls = count(1)
    store.fence = lambda: next(calls) < at


def turn(store: Memory, wire: ScriptedBridge, now: datetime = T) -> None:
    before = deepcopy(store.rows), [*wire.sent], [*wire.recalled]
    with pytest.raises(StoreUnavailable):
        send(store, wire, now=now)
    assert (store.rows, wire.sent, wire.recalled) == before


def test_before_the_first_step_nothing_that_waits_is_released_or_expires() -> None:
    store, wire = Memory(), ScriptedBridge()
    write(store, CLOSE, FOLLOW)
    lose(store, 1)
    turn(store, wire, T + LIFE)


def test_before_a_row_that_was_sent_it_is_not_called_back() -> None:
    store, wire = Memory(), ScriptedBridge()
    write(store, OPEN)
    send(store, wire)
    lose(store, 2)
    turn(store, wire, T + LIFE)


def test_before_the_look_at_a_seal_an_altered_order_is_not_judged() -> None:
    store, wire = Memory(), ScriptedBridge()
    (row,) = write(store, OPEN)
    store.rows[row["sid"]]["lots"] = 9.0
    lose(store, 3)
    turn(store, wire)
    assert not store._alarms and store.trading_state() == "ACTIVE"


def test_after_the_last_row_nothing_that_waits_is_moved() -> None:
    store, wire = Memory(), ScriptedBridge()
    _, opening = write(store, CLOSE, FOLLOW)
    store.fence = lambda: not wire.sent

    def now() -> Any:
        return T + LIFE if wire.sent else T

    with pytest.raises(StoreUnavailable):
        signal_bridge.send_pending(store, wire, order, now=now, stopped=stopped_by(""))
    assert wire.sent and store.rows[opening["sid"]]["state"] == "WAITING"

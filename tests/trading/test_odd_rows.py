"""A row that cannot be read stands alone: it is told once, never sent, and the others go on."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

import signal_bridge
from tests.trading.test_courier import GOLD, PAPER, ROW, World, position
from tests.worlds.stores import NOON, closing, opening
from torra.bridges.odd_rows import comparing_fault, row_fault, sending_fault
from torra.clock import iso
from torra.errors import LONGEST_TEXT
from torra.trading import courier
from torra.trading.courier import RECONCILE_SECONDS, order_of


def plant(world: World, *statements: str) -> None:
    """Change the database as a foreign hand does: no check of the schema stands in its way."""
    db = sqlite3.connect(world.file.parents[1] / "torra.db")
    db.execute("PRAGMA ignore_check_constraints=ON")
    db.execute("PRAGMA foreign_keys=OFF")
    for sql in statements:
        db.execute(sql)
    db.commit()
    db.close()


WRONG = {
    "a time that is none": "decided_at = 'yesterday'",
    "an expiry that is none": "expires = 'soon'",
    "no expiry": "expires = NULL",
    "a time that is a number": "decided_at = x'00'",
    "a bar that is none": "bar_time = ''",
    "lots below zero": "lots = -0.1",
    "lots of text": "lots = 'many'",
    "lots without end": "lots = 9e999",
    "no entry": "entry = NULL",
    "a stop of text": "stop = 'none'",
    "a target below zero": "target = -1",
    "a side that is none": "side = 'UP'",
    "a kind that is none": "kind = 'swap'",
    "a timeframe that is none": "timeframe = ''",
    "a text without end": "side = printf('%.*c', 1000000, 'x')",
}


@pytest.mark.parametrize("what", WRONG)
def test_an_odd_signal_is_never_sent_and_told_once(world: World, what: str) -> None:
    world.queue("TODD")
    plant(world, f"UPDATE signals SET {WRONG[what]} WHERE sid = 'TODD'")
    world.queue_close("T2", "TOLD")
    for _ in range(8):
        world.turn()
    assert "TODD" not in world.bridge.sids
    assert world.bridge.sids == ["T2"], "the channel goes on"
    [(kind, detail)] = world.alarms()
    assert kind == "ODD_SIGNAL" and detail.startswith("TODD cannot be read")
    assert len(detail) <= LONGEST_TEXT
    assert world.state("TODD") == "PENDING", "it is left alone"


def test_a_signal_without_an_event_stops_nobody_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.queue("TODD", instance="OTHER")
    plant(
        world,
        f"UPDATE signals SET state = 'PUBLISHED', instance = '{GOLD.id}' WHERE sid = 'TODD'",
        "DELETE FROM signal_events",
    )
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            world.turn(RECONCILE_SECONDS)
    assert "Traceback" not in caplog.text and "next turn tries again" not in caplog.text
    assert [kind for kind, _ in world.alarms()] == ["ODD_SIGNAL"]
    world.queue_close("T2", "TOLD", **fresh(world))
    world.turn()
    assert world.bridge.sids == ["T2"], "the books were compared: the channel sends"


def fresh(world: World) -> dict[str, Any]:
    now = world.clock.now()
    return {"decided_at": iso(now), "expires": iso(now.replace(year=now.year + 1))}


@pytest.mark.parametrize(
    "step",
    ["UPDATE signal_events SET at = 'noon'", "UPDATE signals SET misses = 'often'",
     "UPDATE signals SET missed_at = 'never'", "UPDATE signals SET filled_lots = -5.0",
     "UPDATE signals SET state = 'LOST'", "UPDATE signals SET expires = 'later'"],
)  # fmt: skip
def test_what_cannot_be_compared_stops_no_other(world: World, step: str) -> None:
    world.queue("TODD")
    world.turn()
    world.turn()
    assert world.bridge.sids == ["TODD"]
    plant(world, step)
    world.bridge.told_books = world.books(position("TODD"), position("TNEW", ticket="78"))
    for _ in range(4):
        world.turn(RECONCILE_SECONDS)
    told = dict(world.alarms())
    assert "TODD" in told["ODD_SIGNAL"]
    assert "position 78" in told["EXTERNAL"], "the others are compared"
    assert "position 77" not in told["EXTERNAL"], "its own position is no stranger's"


def test_an_odd_paper_signal_leaves_the_others(world: World) -> None:
    world.database.enqueue_signal(opening("TODD", instance="OTHER"))
    world.database.enqueue_signal(opening("T1"))
    plant(world, "UPDATE signals SET decided_at = 'x' WHERE sid = 'TODD'")
    sent = signal_bridge.publish_pending(world.database, now=NOON, state="ACTIVE")
    assert [row["sid"] for row in sent] == ["T1"]
    assert [kind for kind, _ in world.alarms()] == ["ODD_SIGNAL"]
    assert PAPER.id == "BTCUSD"


def test_a_row_that_no_order_can_be_made_of_is_told_once(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(row: Any, *rest: Any) -> Any:
        if row["sid"] == "TODD":
            raise ValueError("no order can be made of it")
        return order_of(row, *rest)

    monkeypatch.setattr(courier, "order_of", make)
    world.queue("TODD")
    world.queue_close("T2", "TOLD")
    with caplog.at_level(logging.WARNING):
        for _ in range(8):
            world.turn()
    assert world.bridge.sids == ["T2"]
    assert [kind for kind, _ in world.alarms()] == ["ODD_SIGNAL"]
    assert caplog.text.count("TODD") <= 2, "not in every turn"


def test_a_finding_that_cannot_be_booked_takes_no_other_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.send()
    world.turn()
    move = type(world.database).move_signal

    def refuse(self: Any, sid: str, state: str, **more: Any) -> bool:
        if state == "FILLED":
            raise ValueError("this cannot be booked")
        return move(self, sid, state, **more)

    monkeypatch.setattr(type(world.database), "move_signal", refuse)
    world.bridge.told_books = world.books(position("T1"), position("TNEW", ticket="78"))
    world.turn(RECONCILE_SECONDS)
    told = dict(world.alarms())
    assert "this cannot be booked" in told["ODD_SIGNAL"] and "position 78" in told["EXTERNAL"]


@pytest.mark.parametrize("judge", [row_fault, sending_fault, comparing_fault])
def test_a_good_row_is_no_fault(judge: Callable[[Any], str]) -> None:
    more = {"state": "FILLED", "changed_at": NOON, "misses": 0, "missed_at": None}
    assert judge({**opening(**ROW), **more}) == ""
    assert judge({**closing("T2", "T1"), **more, "filled_lots": 0.0}) == ""


def test_the_position_of_an_odd_signal_is_no_strangers(world: World) -> None:
    world.queue("TODD")
    world.turn()
    world.turn()
    plant(world, "UPDATE signals SET misses = 'often'")
    world.bridge.told_books = world.books(position("TODD"), position("TNEW", ticket="78"))
    for _ in range(4):
        world.turn(RECONCILE_SECONDS)
    strangers = [detail for kind, detail in world.alarms() if kind == "EXTERNAL"]
    assert len(strangers) == 1 and "position 78" in strangers[0]


def test_a_move_of_a_stop_needs_its_stop(world: World) -> None:
    world.fill()
    row = dict(world.row())
    assert row_fault({**row, "kind": "modify", "stop": None, "entry": None}) == "stop is None"

"""What a bridge tells that cannot be is told once, and nothing is booked from it."""

from __future__ import annotations

from dataclasses import replace

from tests.trading.test_courier import World, position
from tests.worlds.stores import NOON
from torra.bridges.protocol import Health
from torra.trading.courier import RECONCILE_SECONDS


def test_books_that_cannot_be_are_no_comparison(world: World) -> None:
    world.send()
    world.turn()
    assert world.state() == "PUBLISHED"
    world.bridge.taken.add("T1")
    world.bridge.told_books = world.books(replace(position(), lots=-5.0))
    for _ in range(5):
        world.turn(RECONCILE_SECONDS)
    assert world.state() == "PUBLISHED", "it stays unsettled"
    [(kind, detail)] = world.alarms()
    assert kind == "ODD_BOOKS" and "position 77: lots is -5.0" in detail
    world.bridge.told_books = world.books(position())
    world.turn(RECONCILE_SECONDS)
    assert world.state() == "FILLED"
    assert world.alarms() == [], "books that can be end the alarm"


def test_an_odd_report_waits_for_the_books(world: World) -> None:
    world.send()
    world.turn()
    world.bridge.say("T1", "FILLED", NOON, price=2000.1, volume=-5.0, position="77")
    world.turn()
    assert world.state() == "UNKNOWN"
    assert [kind for kind, _ in world.alarms()] == ["ODD_REPORT"]
    world.bridge.told_books = world.books(position())
    world.turn(RECONCILE_SECONDS)
    row = world.row()
    assert (row["state"], row["filled_lots"], row["price"]) == ("FILLED", 0.1, 2000.1)
    assert world.alarms() == []


def test_what_a_bridge_refused_is_an_alarm(world: World) -> None:
    said = "state/positions.json: schema: lots is -5"
    world.bridge.told = Health(None, "", {"last_alarm": said})
    for _ in range(5):
        world.turn()
    assert [(kind, said in detail) for kind, detail in world.alarms()] == [("BRIDGE", True)]


def test_a_stranger_that_writes_without_end_is_one_alarm(world: World) -> None:
    for number in range(5):
        said = f"ack/{number:010}_T{number}.json was put into bad/: auth: forged"
        world.bridge.told = Health(None, "", {"last_alarm": said})
        world.turn(RECONCILE_SECONDS)
    assert [kind for kind, _ in world.alarms()] == ["BRIDGE"]

"""Small reads and writes of the store: each says what stands, and what it refuses."""

from __future__ import annotations

from datetime import timedelta

from instance_database import Database
from tests.worlds.lessons import FLAT, RISING
from tests.worlds.stores import NOON, save
from torra.clock import iso
from torra.store import tick_queries
from torra.store.memory import MemoryStore

HOUR = timedelta(hours=1)


def test_memory_keeps_an_alarm_and_the_first_market_of_an_opening() -> None:
    store = MemoryStore()
    assert store.raise_alarm("a", "LOST", "why") and not store.raise_alarm("a", "LOST", "again")
    assert ["a", {"kind": "LOST", "detail": "why"}] in [
        list(one) for one in store.as_json()["alarms"]
    ]
    store.keep_situation("T1", RISING)
    store.keep_situation("T1", FLAT)
    assert store.situation("T1") == RISING
    assert store.store_news([]) == 0


def test_the_newest_ticks_of_many_streams_are_read_at_once(database: Database) -> None:
    names = [f"I{number}" for number in range(5)]
    for name in names:
        save(database, NOON - HOUR, instance=name)
        save(database, NOON, instance=name)
    newest = tick_queries.newest_of(database, [(name, "M15") for name in names])
    bar = iso(NOON - timedelta(minutes=15))
    assert {stream: key for stream, (key, _) in newest.items()} == {
        (name, "M15"): f"{name}|M15|{bar}" for name in names
    }

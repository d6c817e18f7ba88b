"""Small reads and writes of the store: each says what stands, and what it refuses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from instance_database import Database
from tests.worlds.lessons import FLAT, RISING
from tests.worlds.stores import NOON, key_of, save
from torra.clock import iso
from torra.store import hosted as hosted_table
from torra.store import notices as notice_table
from torra.store import tick_queries
from torra.store.memory import MemoryStore
from torra.store.trade import proposals_and_alarms as execution_table

HOUR = timedelta(hours=1)


def test_an_outcome_that_a_host_gave_stays(database: Database) -> None:
    save(database, NOON)
    key = key_of(NOON).text
    assert hosted_table.tell_outcome(database, key, "BUY", 1.5)
    assert not hosted_table.tell_outcome(database, key, "BUY", 1.5)
    for verdict, r in (("SELL", 1.5), ("BUY", 1.0)):
        with pytest.raises(ValueError, match="stays"):
            hosted_table.tell_outcome(database, key, verdict, r)
    with pytest.raises(LookupError, match="no tick"):
        hosted_table.tell_outcome(database, key_of(NOON + HOUR).text, "BUY", 1.5)


def test_answers_of_a_stream_are_counted_by_timeframe_and_close(database: Database) -> None:
    for hours in range(4):
        save(database, NOON + hours * HOUR)
    save(database, NOON, timeframe="H1")

    def counts(*choice: Any) -> dict[str, int]:
        return {
            row["timeframe"]: row["number"]
            for row in hosted_table.hosted_ends(database, "BTCUSD", *choice)
        }

    assert counts() == {"M15": 4, "H1": 1}
    assert counts(("H1",)) == {"H1": 1}
    assert counts(("M15",), NOON + HOUR) == {"M15": 3}
    assert counts((), NOON + HOUR, NOON + 2 * HOUR) == {"M15": 2}


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


def test_what_waits_for_a_service_that_is_gone_is_dropped_for_good(database: Database) -> None:
    notice = {
        "key": "k", "kind": "halt", "level": "alarm", "title": "t", "text": "x", "link": "",
        "instance": "", "desk_time": NOON, "at": NOON, "silent": False,
    }  # fmt: skip
    assert notice_table.add_notice(database, notice, ["mail", "phone"])
    notice_table.keep_services(database, ["mail"])
    notice_table.keep_services(database, ["mail", "phone"])
    assert notice_table.due_notice(database, "mail", NOON) is not None
    assert notice_table.due_notice(database, "phone", NOON) is None
    (row,) = notice_table.notices(database, 1)
    assert [(one["service"], one["state"]) for one in row["sent"]] == [
        ("mail", "waiting"), ("phone", "dropped"),
    ]  # fmt: skip


def test_proposals_of_a_state_and_of_any(database: Database) -> None:
    for number in (1, 2):
        assert database.propose(
            {
                "sid": f"P{number}", "torra_key": key_of(NOON).text, "instance": "BTCUSD",
                "symbol": "BTCUSD", "timeframe": "M15", "bar_time": NOON, "verdict": "BUY",
                "action": "OPEN_BUY", "drafts": [], "price": 100.0, "atr": 1.0, "multiplier": 1.0,
                "created_at": NOON + number * HOUR, "expires": NOON + 2 * number * HOUR,
            }
        )  # fmt: skip
    assert execution_table.expire_proposals(database, NOON + 3 * HOUR, "late") == 1
    assert [row.sid for row in database.proposals()] == ["P2"]
    assert [row.sid for row in database.proposals("EXPIRED")] == ["P1"]
    assert [row.sid for row in database.proposals(None)] == ["P2", "P1"]


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

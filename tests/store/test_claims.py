"""A tick is run once; what a dead desk left is released by the next; no close is forgotten."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instance_database import Database, TickKey
from tests.conftest import Scale
from tests.worlds.stores import NOON, Hand, count, forked, key_of, open_database, save
from torra.clock import iso
from torra.errors import StoreUnavailable
from torra.store import tick_queries
from torra.store import ticks as claim_table

STEP = timedelta(minutes=15)
KEY = key_of(NOON)


def state_of(database: Database, key: TickKey = KEY) -> str | None:
    for row in tick_queries.tick_states(database, key.instance, key.timeframe):
        if row["bar_time"] == key.text.rsplit("|", 1)[1]:
            return str(row["state"])
    return None


def test_a_start_releases_the_claims_of_the_dead(database: Database) -> None:
    done, later = key_of(NOON + STEP), key_of(NOON + 2 * STEP)
    for key in (KEY, done, later):
        database.claim_tick(key)
    database.finish_tick(done)
    assert claim_table.newest_claim(database, "BTCUSD", "M15") == later.bar_time
    claim_table.begin_run(database, "run 77", 77)
    assert [state_of(database, key) for key in (KEY, done, later)] == [
        "released",
        "done",
        "released",
    ]
    assert claim_table.newest_claim(database, "BTCUSD", "M15") == done.bar_time, (
        "nobody works on the others"
    )
    assert database.claim_tick(KEY) is True


def test_who_lost_the_claim_stores_nothing(database: Database) -> None:
    database.claim_tick(KEY)
    claim_table.begin_run(database, "run 77", 77)
    with pytest.raises(StoreUnavailable, match="claim lost"):
        store(database)
    assert count(database, "sentiment") == count(database, "chains") == 0
    database.claim_tick(KEY)
    database.finish_tick(KEY)
    with pytest.raises(StoreUnavailable, match="claim lost"):
        database.finish_tick(KEY)


def store(database: Database) -> None:
    with database.transaction():
        save(database, NOON)
        database.finish_tick(KEY)


WRITES: dict[str, Callable[[Database], object]] = {
    "claim": lambda database: database.claim_tick(key_of(NOON + STEP)),
    "release": lambda database: database.release_claim(KEY),
    "skip": lambda database: database.skip_tick(KEY, "missed", ""),
    "require": lambda database: database.require_claim(KEY),
    "finish": store,
    "begin": lambda database: claim_table.begin_run(database, "run 78", 78),
    "life": lambda database: database.show_life(NOON),
    "end": claim_table.end_run,
}


@pytest.mark.parametrize("write", WRITES)
def test_a_desk_that_lost_its_lock_writes_nothing(database: Database, write: str) -> None:
    claim_table.begin_run(database, "run 77", 77)
    database.claim_tick(KEY)
    before = tick_queries.tick_states(database, "BTCUSD", "M15"), claim_table.desk_run(database)
    database.fence = lambda: False
    with pytest.raises(StoreUnavailable, match="lost the lock"):
        WRITES[write](database)
    assert (
        tick_queries.tick_states(database, "BTCUSD", "M15"),
        claim_table.desk_run(database),
    ) == before
    assert count(database, "sentiment") == 0


def test_the_desk_time_goes_on_where_it_stood(database: Database, hand: Hand) -> None:
    stood = datetime(2021, 11, 10, 10, 7, tzinfo=UTC)
    assert claim_table.desk_run(database) is None
    assert database.desk_time() is None
    claim_table.begin_run(database, "run 77", 77)
    assert database.desk_time() is None
    database.show_life(stood)
    hand.pass_by(2.0)
    database.show_life(None)
    assert claim_table.desk_run(database) == {
        "run": "run 77",
        "process": 77,
        "started_at": iso(NOON),
        "seen_at": iso(NOON + timedelta(seconds=2)),
        "desk_time": iso(stood),
    }
    database.claim_tick(key_of(stood.replace(minute=0)))
    assert database.desk_time() == stood
    database.claim_tick(key_of(stood.replace(minute=15)))
    assert database.desk_time() == stood.replace(minute=15), "never before a tick already begun"
    claim_table.end_run(database)
    assert (claim_table.desk_run(database) or {})["process"] == 0
    claim_table.begin_run(database, "run 78", 78)
    assert database.desk_time() == stood.replace(minute=15)


def due(database: Database, upto: datetime, start: datetime = NOON) -> list[int]:
    """Bar numbers: 0 is the bar that opens at noon."""
    found = database.due("BTCUSD", "M15", upto=upto, start=start)
    return [(bar_time - NOON) // STEP for bar_time in found]


def test_what_is_due_after_work(database: Database) -> None:
    keys = [key_of(NOON + number * STEP) for number in range(1, 6)]
    for key in keys[:2]:
        database.claim_tick(key)
    database.finish_tick(keys[1])
    upto = NOON + 4 * STEP
    assert due(database, upto) == [2, 3], "bar 0 is being worked on"
    database.release_claim(keys[0])
    assert due(database, upto) == [0, 2, 3]
    database.skip_tick(keys[0], "error", "")
    database.claim_tick(keys[2])
    assert due(database, upto) == [3]
    claim_table.begin_run(database, "run 77", 77)
    assert due(database, upto) == [2, 3], "bar 2 was left by the desk before"
    assert due(database, upto, start=NOON + 3 * STEP) == [2, 3], "start counts before the first"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_of_processes_that_want_a_tick_one_gets_it(tmp_path: Path, scaled: Scale) -> None:
    open_database(tmp_path).close()
    ticks = scaled(200, least=20)

    def wins(number: int) -> bool:
        database = open_database(tmp_path)
        for tick in range(ticks):
            if database.claim_tick(key_of(NOON + tick * STEP)):
                database.skip_tick(key_of(NOON + tick * STEP), f"by {number}", "")
        return True

    forked(wins, 2)
    database = open_database(tmp_path)
    rows = tick_queries.tick_states(database, "BTCUSD", "M15", 10_000)
    assert len(rows) == ticks
    assert {row["state"] for row in rows} == {"skipped"}


def test_of_threads_that_want_a_tick_one_gets_it(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda _: database.claim_tick(KEY), range(40)))
    assert won.count(True) == 1


lives = st.lists(
    st.tuples(st.sampled_from(["run", "die", "raise", "skip", "wait"]), st.integers(1, 3)),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(lives=lives)
def test_no_close_is_ever_forgotten(
    tmp_path_factory: pytest.TempPathFactory, lives: list[Any]
) -> None:
    """Whatever desks do and die of, a calm desk at the end leaves every close done or skipped."""
    now = Hand()
    database = open_database(tmp_path_factory.mktemp("claims"), now)
    clock = NOON
    done: list[datetime] = []

    def desk(word: str, most: int) -> None:
        owed = database.due("BTCUSD", "M15", upto=clock, start=NOON)
        for bar_time in owed[:most]:
            key = TickKey("BTCUSD", "M15", bar_time)
            assert database.claim_tick(key), "what is due can be claimed"
            if word == "die":
                claim_table.release_claims(database)  # as the next start does
                return
            if word == "raise":
                database.release_claim(key)
            elif word == "skip":
                database.skip_tick(key, "stale", "")
            else:
                database.finish_tick(key)
                done.append(bar_time)

    for word, number in lives:
        if word == "wait":
            clock += number * timedelta(minutes=7)
        else:
            desk(word, number)
    desk("run", 1_000)
    rows = tick_queries.tick_states(database, "BTCUSD", "M15", 1_000)
    assert len(rows) == (clock - NOON) // STEP
    assert {row["state"] for row in rows} <= {"done", "skipped"}
    assert len(done) == len(set(done))
    assert database.due("BTCUSD", "M15", upto=clock, start=NOON) == []

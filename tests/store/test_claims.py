"""A tick is run by one desk, once; what a dead desk left is taken over; no close is forgotten."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instance_database import Database, TickKey
from tests.conftest import Scale
from tests.worlds.stores import NOON, Hand, count, forked, key_of, open_database, save
from torra.errors import StoreUnavailable

STEP = timedelta(minutes=15)
KEY = key_of(NOON)


def state_of(database: Database, key: TickKey = KEY) -> tuple[str, int] | None:
    for row in database.tick_states(key.instance, key.timeframe):
        if row["bar_time"] == key.text.rsplit("|", 1)[1]:
            return row["state"], row["epoch"]
    return None


def test_the_key_reads_as_the_tables_hold_it() -> None:
    assert KEY.text == "BTCUSD|M15|2026-02-13T11:45:00Z"


def test_a_tick_is_claimed_once(database: Database) -> None:
    assert database.claim_tick(KEY, 1) is True
    assert database.claim_tick(KEY, 1) is False
    assert database.claim_tick(key_of(NOON, "H1"), 1) is True
    assert database.claim_tick(key_of(NOON, instance="EURUSD"), 1) is True


def test_a_done_tick_stays_done(database: Database) -> None:
    database.claim_tick(KEY, 1)
    database.finish_tick(KEY, 1)
    assert database.claim_tick(KEY, 2) is False
    assert database.skip_tick(KEY, "missed", "", 2) is False
    database.release_claim(KEY, 1)
    assert state_of(database) == ("done", 1)


def test_the_claim_of_a_dead_desk_is_taken_over(database: Database) -> None:
    database.claim_tick(KEY, 1)
    assert database.unfinished("BTCUSD", "M15", 1) == []
    assert database.unfinished("BTCUSD", "M15", 2) == [KEY.bar_time]
    assert database.claim_tick(KEY, 2) is True
    assert database.claim_tick(KEY, 1) is False, "an earlier desk gets nothing back"
    assert state_of(database) == ("claimed", 2)


def test_who_lost_the_claim_stores_nothing(database: Database) -> None:
    database.claim_tick(KEY, 1)
    database.claim_tick(KEY, 2)
    with pytest.raises(StoreUnavailable, match="claim lost"):
        store(database, 1)
    assert count(database, "sentiment") == count(database, "chains") == 0
    database.finish_tick(KEY, 2)
    with pytest.raises(StoreUnavailable, match="claim lost"):
        database.finish_tick(KEY, 2)


def store(database: Database, epoch: int) -> None:
    with database.transaction():
        save(database, NOON)
        database.finish_tick(KEY, epoch)


def test_a_tick_that_raises_gives_its_claim_back(database: Database) -> None:
    database.claim_tick(KEY, 1)
    database.release_claim(KEY, 7)
    assert state_of(database) == ("claimed", 1), "only the holder can"
    database.release_claim(KEY, 1)
    assert database.newest_claim("BTCUSD", "M15") is None
    assert database.claim_tick(KEY, 1) is True, "the same desk may try again"


def test_a_skip_is_recorded_once(database: Database) -> None:
    assert database.skip_tick(KEY, "missed", "came too late", 1) is True
    assert database.skip_tick(KEY, "missed", "again", 1) is False
    assert database.claim_tick(KEY, 2) is False
    (row,) = database.tick_states("BTCUSD", "M15")
    assert (row["state"], row["reason"], row["detail"]) == ("skipped", "missed", "came too late")
    own = key_of(NOON + STEP)
    database.claim_tick(own, 1)
    assert database.skip_tick(own, "stale", "", 1) is True, "a tick may skip what it claimed"
    taken = key_of(NOON + 2 * STEP)
    database.claim_tick(taken, 3)
    assert database.skip_tick(taken, "missed", "", 2) is False, "a later desk is at it"


def test_the_newest_claim_counts_living_desks_only(database: Database) -> None:
    epoch = database.acquire_lease("a", 6.0) or 0
    database.claim_tick(KEY, epoch)
    database.finish_tick(KEY, epoch)
    later = key_of(NOON + STEP)
    database.claim_tick(later, epoch)
    assert database.newest_claim("BTCUSD", "M15") == later.bar_time
    database.release_lease("a", epoch)
    assert database.newest_claim("BTCUSD", "M15") == KEY.bar_time


def due(database: Database, upto: datetime, epoch: int = 1, start: datetime = NOON) -> list[int]:
    """Bar numbers: 0 is the bar that opens at noon."""
    found = database.due("BTCUSD", "M15", upto=upto, epoch=epoch, start=start)
    return [(bar_time - NOON) // STEP for bar_time in found]


def test_what_is_due_when_nothing_was_done(database: Database) -> None:
    assert due(database, NOON + timedelta(minutes=44)) == [0, 1]
    assert due(database, NOON + timedelta(minutes=45)) == [0, 1, 2]
    assert due(database, NOON + timedelta(minutes=14)) == []


def test_what_is_due_after_work(database: Database) -> None:
    keys = [key_of(NOON + number * STEP) for number in range(1, 6)]
    for key in keys[:2]:
        database.claim_tick(key, 1)
    database.finish_tick(keys[1], 1)
    upto = NOON + 4 * STEP
    assert due(database, upto) == [2, 3], "bar 0 is being worked on by this desk"
    assert due(database, upto, epoch=2) == [0, 2, 3], "bar 0 was left by the desk before"
    database.release_claim(keys[0], 1)
    assert due(database, upto) == [0, 2, 3]
    database.skip_tick(keys[0], "error", "", 1)
    database.claim_tick(keys[2], 2)
    assert due(database, upto, epoch=2) == [3]
    assert due(database, upto, epoch=3) == [2, 3]
    assert due(database, upto, start=NOON + 3 * STEP) == [3], "start counts before the first only"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_of_processes_that_want_a_tick_one_gets_it(tmp_path: Path, scaled: Scale) -> None:
    open_database(tmp_path).close()
    ticks = scaled(200, least=20)

    def wins(number: int) -> bool:
        database = open_database(tmp_path)
        for tick in range(ticks):
            if database.claim_tick(key_of(NOON + tick * STEP), 1):
                database.skip_tick(key_of(NOON + tick * STEP), f"by {number}", "", 1)
        return True

    forked(wins, 2)
    database = open_database(tmp_path)
    rows = database.tick_states("BTCUSD", "M15", 10_000)
    assert len(rows) == ticks
    assert {row["state"] for row in rows} == {"skipped"}


def test_of_threads_that_want_a_tick_one_gets_it(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda _: database.claim_tick(KEY, 1), range(40)))
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
    epoch = 1
    done: list[datetime] = []

    def desk(word: str, most: int) -> None:
        nonlocal epoch
        owed = database.due("BTCUSD", "M15", upto=clock, epoch=epoch, start=NOON)
        for bar_time in owed[:most]:
            key = TickKey("BTCUSD", "M15", bar_time)
            assert database.claim_tick(key, epoch), "what is due can be claimed"
            if word == "die":
                epoch += 1
                return
            if word == "raise":
                database.release_claim(key, epoch)
            elif word == "skip":
                database.skip_tick(key, "stale", "", epoch)
            else:
                database.finish_tick(key, epoch)
                done.append(bar_time)

    for word, number in lives:
        if word == "wait":
            clock += number * STEP
        else:
            desk(word, number)
    desk("run", 1_000)
    rows = database.tick_states("BTCUSD", "M15", 1_000)
    assert len(rows) == (clock - NOON) // STEP
    assert {row["state"] for row in rows} <= {"done", "skipped"}
    assert len(done) == len(set(done))
    assert database.due("BTCUSD", "M15", upto=clock, epoch=epoch, start=NOON) == []

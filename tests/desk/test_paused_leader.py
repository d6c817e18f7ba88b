"""A leader that is paused inside a transaction keeps the others out, and they say so plainly.

Ctrl-Z, a debugger and a suspended machine stop a desk wherever it is. Inside a transaction it holds
the database's lock, which no other desk can take: it can only say what a person must do.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.doubles.entrance import bearer, desk_app
from tests.worlds import desks, stores
from torra.clock import Simulated, System
from torra.desk import self_check
from torra.desk.schedule import LEASE_SECONDS, Desk
from torra.desk.watches import LockWatch

TRY = 5.0
"""Seconds that a try for the lease takes on a database that is locked."""


class Hand(Simulated):
    """A clock whose monotonic hand moves with each try for the lease."""

    ticks = 0.0

    def monotonic(self) -> float:
        return self.ticks


@contextmanager
def paused(path: Path) -> Iterator[None]:
    """Hold the database's lock as a program does that stands still inside a transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Desk, Desk]]:
    """A desk that works and one that stands by, whose waits for the lock take no time here."""
    hasty = partial(stores.open_database, now=System().real_now, busy_seconds=0.0)
    monkeypatch.setattr(desks, "open_database", hasty)
    made = [desks.open_desk(tmp_path, make_clock=lambda _: Hand(desks.START)) for _ in range(2)]
    desks.take_lease(made[0], seconds=0.0)
    yield made[0], made[1]
    for desk in made:
        desk.database.close()


def tries(desk: Desk, count: int) -> None:
    """Let a desk look after the lease so often, as its thread does."""
    for _ in range(count):
        desk._hold_lease()
        desk.clock.ticks += TRY + LEASE_SECONDS / 3  # type: ignore[attr-defined]


def test_a_desk_that_stands_by_says_who_keeps_it_out_and_what_to_do(
    pair: tuple[Desk, Desk], caplog: pytest.LogCaptureFixture
) -> None:
    _, waiting = pair
    with caplog.at_level(logging.WARNING), paused(waiting.database.path):
        tries(waiting, 1)
        assert waiting.held_up == "", "a program that writes for some seconds is no matter"
        tries(waiting, 3)
        told = waiting.held_up
    assert not waiting.active
    for word in ("21 s", "another desk", "paused", "End it or let it go on", "No order"):
        assert word in told, told
    assert caplog.text.count("another desk holds the database") == 1, "told once"
    tries(waiting, 1)
    assert waiting.active and waiting.held_up == ""
    assert "free again after 28 s" in caplog.text


def test_a_desk_that_works_says_that_another_program_keeps_it_from_storing(
    pair: tuple[Desk, Desk], caplog: pytest.LogCaptureFixture
) -> None:
    working, _ = pair
    with paused(working.database.path):
        tries(working, 3)
        assert "another program" in working.held_up and "desk" not in working.held_up
        assert working.active, "it has the lease as long as nobody can take it"


def test_the_page_of_health_says_it_too(pair: tuple[Desk, Desk], tmp_path: Path) -> None:
    _, waiting = pair
    client = desk_app(waiting, tmp_path).test_client()
    with paused(waiting.database.path):
        tries(waiting, 3)
        text = client.get("/health", headers=bearer("read")).get_data(as_text=True)
    assert "it may be paused" in text and "End it or let it go on" in text


def test_the_doctor_tells_a_paused_desk_from_one_that_was_killed(
    pair: tuple[Desk, Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "LOCK_PATIENCE", 0.05)

    def lease() -> self_check.CheckResult:
        found = self_check._lease(pair[1].database)
        assert found is not None
        return found

    assert "was killed" in lease().detail and lease().level == "warning"
    with paused(pair[1].database.path):
        assert "it may be paused" in lease().detail and lease().level == "error"
    pair[1].database.release_lease(pair[0].owner, 1)
    assert lease().level == "ok"


def test_it_is_told_once_a_minute_and_counts_from_the_first_try() -> None:
    watch = LockWatch(limit=6.0)
    told = [
        (begun + TRY, line)
        for begun in range(0, 180, 7)
        if (line := watch.locked(float(begun), begun + TRY, other_desk=True))
    ]
    assert [at for at, _ in told] == [12.0, 75.0, 138.0]
    assert " 12 s" in told[0][1] and " 75 s" in told[1][1]
    assert watch.free(190.0) == "the database is free again after 190 s"
    assert watch.free(191.0) == ""


def test_a_lock_of_a_moment_is_not_spoken_of() -> None:
    watch = LockWatch(limit=6.0)
    assert watch.locked(0.0, 5.0, other_desk=True) == ""
    assert watch.free(7.0) == ""

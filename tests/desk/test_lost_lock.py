"""A desk whose lock somebody deletes, or whose database is held, writes nothing and says so (T6).

Whatever stops a desk (Ctrl-Z, a debugger, a machine that sleeps) may do so anywhere. Its lock is
deleted meanwhile, and another desk runs the same tick. Then it goes on.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.desk.test_desk_faults import Jumpy
from tests.doubles.entrance import bearer, desk_app
from tests.trading.test_courier import GOLD, PAPER, World, position
from tests.worlds import desks, stores
from torra.clock import Simulated, System
from torra.config import Instance
from torra.desk.checks import stored
from torra.desk.checks.result import Context
from torra.desk.schedule import LIFE_SECONDS, Desk
from torra.desk.watches import LockWatch
from torra.desk_lock import DeskLock
from torra.errors import ConfigError
from torra.services import Service, Services
from torra.store import ticks as claim_table
from torra.tick.bar_window import LiveWindow

pytestmark = pytest.mark.skipif(os.name != "posix", reason="elsewhere no open file can be deleted")


class Stopping:
    """The agents of a desk: it stands still while the first of them is asked."""

    def __init__(self, provider: Any, meanwhile: Callable[[], object]) -> None:
        self.name, self._provider = provider.name, provider
        self._meanwhile: list[Callable[[], object]] = [meanwhile]
        self.asked = 0

    def submit(self, request: Any) -> Any:
        self.asked += 1
        if self._meanwhile:
            self._meanwhile.pop()()
        return self._provider.submit(request)

    def close(self) -> None: ...


def two(folder: Path, instance: Instance = desks.EUR, **more: Any) -> tuple[Desk, Desk]:
    """Return a desk that works and one that `overtake` lets work in its place."""
    old, new = (desks.open_desk(folder, (instance,), **more) for _ in range(2))
    desks.open_for_work(old)
    return old, new


def overtake(old: Desk, new: Desk) -> None:
    """Delete the lock of a desk and let another one work; the first knows nothing of it."""
    old.lock.path.unlink()
    desks.open_for_work(new)


def everything(desk: Desk) -> list[tuple[Any, ...]]:
    """Return all rows of the database."""
    connection = desk.database.connection().conn
    names = connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
    return [
        (name, *row)
        for (name,) in sorted(names)
        for row in connection.execute(f"SELECT * FROM {name}")
    ]


@pytest.mark.parametrize("point", ["debate", "look"])
def test_a_tick_that_another_desk_has_run_meanwhile_is_told_so_and_writes_nothing(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = two(tmp_path)
    seen: list[list[tuple[Any, ...]]] = []

    def meanwhile() -> None:
        overtake(old, new)
        assert [outcome.state for outcome in new.wake("EURUSD")] == ["done"]
        seen.append(everything(new))

    setup = old.setups["EURUSD"]
    provider = Stopping(setup.provider, meanwhile if point == "debate" else lambda: None)
    old.roster.setups = {"EURUSD": replace(setup, provider=provider)}
    if point == "look":
        bars = LiveWindow.bars

        def stopped(self: LiveWindow, *words: Any) -> Any:
            found = bars(self, *words)
            if not seen and self._database is old.database:
                meanwhile()
            return found

        monkeypatch.setattr(LiveWindow, "bars", stopped)
    with caplog.at_level(logging.ERROR):
        (outcome,) = old.wake("EURUSD")
    assert outcome.detail == "this desk has lost the lock of its home: nothing is written"
    assert "UNIQUE" not in caplog.text
    assert bool(provider.asked) == (point == "debate"), "nobody is paid for a tick of another desk"
    assert everything(old) == seen[0]
    new.close()


def test_without_its_lock_a_desk_publishes_nothing_on_paper(tmp_path: Path) -> None:
    old, new = two(tmp_path)
    overtake(old, new)
    new.database.enqueue_signal(stores.opening("T1", instance="EURUSD", symbol="EURUSD"))
    assert old.wake("EURUSD") == []
    row = new.database.signal("T1")
    assert row is not None and row["state"] == "PENDING"
    new.close()


def test_a_clock_that_is_set_back_casts_doubt_on_the_orders_of_the_one_who_works(
    tmp_path: Path,
) -> None:
    clock = Jumpy(desks.START)
    old, new = two(tmp_path, desks.BTC, make_clock=lambda _: clock)
    old.wake("BTCUSD")
    overtake(old, new)
    new.wake("BTCUSD")
    new.database.enqueue_signal(stores.opening())
    clock.moment -= timedelta(minutes=5)
    for desk, detail in ((old, ""), (new, "CLOCK_SKEW")):
        desk.wake("BTCUSD")
        (row,) = desks.rows(desk, "select * from signals where sid = 'T1'")
        assert row["detail"] == detail
    new.close()


# --- the look after the lock ----------------------------------------------------------------------


def test_a_lock_that_nobody_took_is_locked_anew_and_the_desk_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = desks.working_desk(tmp_path, (desks.EUR,))
    desk.lock.path.unlink()
    assert [outcome.state for outcome in desk.wake("EURUSD")] == ["late"]
    desk.keep()
    assert "is locked anew" in caplog.text and desk.active and not desk.lost
    assert [outcome.state for outcome in desk.wake("EURUSD")] == ["done"]
    assert desk.close()


@pytest.mark.parametrize("ended", [False, True], ids=["works", "ended"])
def test_a_desk_that_another_one_followed_rests_and_says_why(tmp_path: Path, ended: bool) -> None:
    old, new = two(tmp_path)
    overtake(old, new)
    new.wake("EURUSD")
    if ended:
        new.close()
    before = everything(old)
    old.keep()
    assert not old.active and "was deleted, and another desk" in old.lost
    assert old.wake("EURUSD") == [] and not old.lock.is_owned()
    assert old.close()
    with closing(desks.open_database(tmp_path)) as database:
        new.roster.database = database
        assert everything(new) == before
    new.lock.release()


def test_a_share_that_is_away_stops_the_writing_and_ends_no_desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    desk = desks.working_desk(tmp_path, (desks.EUR,))
    before = everything(desk)

    def away(*_: Any, **__: Any) -> bool:
        raise ConfigError("desk.lock cannot be locked: Stale file handle")

    with monkeypatch.context() as patch:
        patch.setattr(DeskLock, "is_owned", lambda _: False)
        patch.setattr(desk.database, "fence", desk.lock.is_owned)
        patch.setattr(DeskLock, "_take", away)
        desk.keep()
        desk.wake("EURUSD")
        assert "Stale file handle" in caplog.text and everything(desk) == before
    assert desk.active and not desk.lost
    assert [outcome.state for outcome in desk.wake("EURUSD")] == ["done"]
    assert desk.close()


def test_the_lock_goes_last_and_stays_while_a_tick_runs_on(tmp_path: Path) -> None:
    """Nobody begins while a service of this desk may still touch the market."""
    desk = desks.working_desk(tmp_path, (desks.EUR,))
    held: list[bool] = []

    class Noted(Service):
        def shut(self) -> None:
            held.append(desk.lock.is_owned())

    desk.services = Services(Noted("noted", 3600.0, lambda: None))
    with desk.setups["EURUSD"].lock:
        assert not desk.close(0.05) and desk.lock.is_owned() and not held
    assert desk.close() and held == [True] and not desk.lock.is_owned()
    with closing(desks.open_database(tmp_path)) as database:
        run = claim_table.desk_run(database)
        assert run is not None and run["process"] == 0, "it ended in order"


# --- the courier ----------------------------------------------------------------------------------


def stopped_after(world: World, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the desk stop after it has asked something; another one has the lock then."""
    whole = getattr(owner, name)

    def asked(*words: Any, **named: Any) -> Any:
        found = whole(*words, **named)
        world.ours = False
        return found

    monkeypatch.setattr(owner, name, asked)


STOPS: dict[str, Callable[[World, pytest.MonkeyPatch], None]] = {
    "reports": lambda world, patch: stopped_after(world, world.bridge, "poll", patch),
    "books": lambda world, patch: stopped_after(world, world.bridge, "books", patch),
    "halt": lambda world, patch: stopped_after(world, world.switch, "keep", patch),
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_courier_that_stood_still_in_its_turn_writes_nothing(
    stop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.send()
    world.database.enqueue_signal(stores.opening("T2", instance=PAPER.id, symbol=PAPER.symbol))
    world.database.propose(proposal(world))
    if stop == "reports":
        world.bridge.say("T1", "FILLED", world.clock.now(), price=2000.1, volume=0.1, position="77")
    world.bridge.told_books = world.books(position(magic=GOLD.magic))
    before = rows(world)
    STOPS[stop](world, monkeypatch)
    world.turn(3600.0)
    assert rows(world) == before
    assert len(world.bridge.reports) == int(stop == "reports"), "it is there for the other desk"


def proposal(world: World) -> dict[str, Any]:
    now = world.clock.now()
    return {
        "sid": "P1", "torra_key": "k", "instance": PAPER.id, "symbol": PAPER.symbol,
        "timeframe": "H1", "bar_time": now.isoformat(), "verdict": "BUY", "action": "OPEN_BUY",
        "drafts": "[]", "price": 1.0, "atr": 1.0, "multiplier": 1.0,
        "created_at": now.isoformat(), "expires": (now + timedelta(seconds=60)).isoformat(),
        "state": "WAITING", "reason": "",
    }  # fmt: skip


def rows(world: World) -> list[tuple[Any, ...]]:
    connection = world.database.connection().conn
    tables = ("signals", "signal_events", "proposals", "alarms", "bridges", "desk_state")
    return [row for name in tables for row in connection.execute(f"SELECT * FROM {name}")]


# --- a database that is held ----------------------------------------------------------------------

TRY = 5.0
"""Seconds that a sign of life takes on a database that is locked."""


class Hand(Simulated):
    """A clock whose monotonic hand moves with each sign of life."""

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


def test_a_desk_says_that_another_program_keeps_it_from_storing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hasty = partial(stores.open_database, now=System().real_now, busy_seconds=0.0)
    monkeypatch.setattr(desks, "open_database", hasty)
    desk = desks.working_desk(tmp_path, make_clock=lambda _: Hand(desks.START))

    def tries(count: int) -> None:
        for _ in range(count):
            desk.keep()
            desk.clock.ticks += TRY + LIFE_SECONDS  # type: ignore[attr-defined]

    client = desk_app(desk, tmp_path).test_client()
    with caplog.at_level(logging.WARNING), paused(desk.database.path):
        tries(1)
        assert desk.pause_reason == "", "a program that writes for some seconds is no matter"
        tries(3)
        assert "another program holds the database for 21 s" in desk.pause_reason and desk.active
        page = client.get("/health", headers=bearer("read")).get_data(as_text=True)
        assert "It may be paused" in page and "end it or let it go on" in page
    assert caplog.text.count("another program holds the database") == 1, "told once"
    tries(1)
    assert desk.pause_reason == "" and "free again after 28 s" in caplog.text
    assert desk.close()


def test_the_doctor_tells_a_desk_that_is_paused_from_one_that_was_killed(tmp_path: Path) -> None:
    hand = stores.Hand(System().real_now())
    database = stores.open_database(tmp_path, hand)
    lock = DeskLock(tmp_path)
    context = Context(tmp_path, {})
    assert not [*stored.desk(context, database)], "before the first desk"

    def told() -> tuple[str, str]:
        (finding,) = stored.desk(context, database)
        return finding.level, finding.detail

    lock.acquire()
    claim_table.begin_run(database, "run 77", 77)
    assert told()[0] == "ok" and told()[1].startswith("process 77 works, seen ")
    hand.pass_by(-60.0)
    database.show_life(None)
    level, detail = told()
    assert level == "alert" and "the desk of process 77 has shown no life for 6" in detail
    lock.release()
    level, detail = told()
    assert level == "warn" and "that of process 77 was killed after" in detail
    claim_table.end_run(database)
    assert told()[0] == "ok" and "the last one ended at" in told()[1]
    database.close()


def test_it_is_told_once_a_minute_and_counts_from_the_first_try() -> None:
    watch = LockWatch(limit=6.0)
    told = [
        (begun + TRY, line)
        for begun in range(0, 180, 7)
        if (line := watch.locked(float(begun), begun + TRY))
    ]
    assert [at for at, _ in told] == [12.0, 75.0, 138.0]
    assert " 12 s" in told[0][1] and " 75 s" in told[1][1]
    assert watch.free(190.0) == "the database is free again after 190 s"
    assert watch.free(191.0) == ""
    assert watch.locked(200.0, 205.0) == "", "a lock of a moment is not spoken of"
    assert watch.free(207.0) == ""

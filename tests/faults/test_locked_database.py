"""A database that another program has locked is waited for; then the tick is given up, told (D7).

The other program is a process of its own with a plain SQLite: it writes for a moment, for longer
than a tick may take, or until somebody ends it, and begins before the tick or in the middle of it.
The tick waits as long as its deadline allows and no longer; what it could not store is stored at
the next wake, or is a skipped row with its reason when it has become too old for that. The desk is
never halted by a lock and never ends. A program that only reads keeps nobody waiting.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.faults.books import torn
from tests.tick.test_tick import profile
from tests.tries import until
from tests.worlds import desks, stores
from torra.clock import System, iso
from torra.desk.schedule import Desk
from torra.errors import StoreUnavailable
from torra.store import tick_queries

LOCKING = """
import sqlite3, sys, time
path, seconds = sys.argv[1], float(sys.argv[2])
other = sqlite3.connect(path, isolation_level=None, timeout=60)
sys.stdin.readline()
other.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
if seconds:
    time.sleep(seconds)
    other.execute("ROLLBACK")
sys.stdin.read()
"""
"""Locks the database, once it is told to, for so many seconds, 0 for as long as it lives."""

GRACE = 0.5
"""Seconds past its deadline in which a tick must have ended."""

NOISE = 3.0
"""Seconds that a busy machine may add."""

H1 = 4 * desks.QUARTER


@contextmanager
def locked(path: Path, seconds: float = 0.0) -> Iterator[None]:
    """Have another program write to the database; it lives no longer than this."""
    with locking(path, seconds) as lock:
        lock()
        yield


@contextmanager
def locking(path: Path, seconds: float) -> Iterator[Callable[[], None]]:
    """Have another program ready that locks the database at once when it is told to."""
    other = subprocess.Popen(
        [sys.executable, "-S", "-c", LOCKING, path, str(seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with other:
        stdin, stdout = other.stdin, other.stdout
        assert stdin is not None and stdout is not None

        def lock() -> None:
            stdin.write("go\n")
            stdin.flush()
            assert stdout.readline() == "locked\n"

        try:
            yield lock
        finally:
            other.kill()


def open_desk(folder: Path, seconds: float, execution: str = "off") -> Desk:
    """Return a desk whose ticks may take so long, with one tick behind it."""
    settings = profile(timeout_seconds=seconds).model_copy(update={"execution": execution})
    desk = desks.open_desk(folder, (desks.EUR,), profile=settings)
    desks.open_for_work(desk)
    (outcome,) = desk.wake("EURUSD")
    assert outcome.state == "done"
    return desk


class Locking:
    """The agents of a desk, the first of whom is asked when the database is locked."""

    def __init__(self, provider: Any, lock: Callable[[], None]) -> None:
        self.name, self._provider, self._lock = provider.name, provider, lock

    def submit(self, request: Any) -> Any:
        self._lock()
        return self._provider.submit(request)

    def close(self) -> None: ...


@contextmanager
def locked_from(desk: Desk, point: str, seconds: float = 0.0) -> Iterator[None]:
    """Have the database locked from before the next tick on, or from its debate on.

    `seconds` as for `locked`; the lock ends with this at the latest.
    """
    setup = desk.setups["EURUSD"]
    # Ready beforehand: a busy machine may need longer to start a program than the tick may take.
    with locking(desk.database.path, seconds) as begin:
        begun: list[None] = []

        def lock() -> None:
            if not begun:
                begun.append(begin())

        if point == "before":
            lock()
        else:
            provider = Locking(setup.provider, lock)
            desk.roster.setups = {"EURUSD": replace(setup, provider=provider)}
        yield
        assert begun, f"the tick never came to where it is {point}"
    desk.roster.setups = {"EURUSD": setup}


def states(desk: Desk) -> dict[str, tuple[str, str, str]]:
    rows = tick_queries.tick_states(desk.database, "EURUSD", "H1")
    return {row["bar_time"]: (row["state"], row["reason"], row["detail"]) for row in rows}


def well(desk: Desk) -> None:
    """No lock halts a desk, and its books are whole."""
    assert desk.database.trading_state() == "ACTIVE"
    assert desk.kill_switch.engaged() == ""
    assert torn(desk.database.connection().conn) == []


def timed(desk: Desk) -> float:
    """Step to the next close; return the real seconds that its wake took."""
    clock = System()
    begun = clock.monotonic()
    desks.step(desk)
    return clock.monotonic() - begun


@pytest.fixture
def nightly(request: pytest.FixtureRequest) -> bool:
    """Whether there is time to wait as long as a person would."""
    return bool(request.config.getoption("--nightly"))


@pytest.mark.parametrize("point", ["before", "debated"])
def test_a_lock_that_goes_in_time_is_waited_for(point: str, tmp_path: Path, nightly: bool) -> None:
    """The lock of a second by night, of a moment by day."""
    held = 1.0 if nightly else 0.15
    desk = open_desk(tmp_path, seconds=5.0)
    with locked_from(desk, point, held):
        took = timed(desk)
    assert held * 0.5 < took < held + GRACE + NOISE
    assert [state for state, *_ in states(desk).values()] == ["done", "done"]
    well(desk)
    desk.close()


@pytest.mark.parametrize(
    ("point", "seconds"), [("before", 10.0), ("debated", 0.0)], ids=["too long", "for ever"]
)
def test_a_lock_that_stays_ends_the_tick_at_its_deadline(
    point: str, seconds: float, tmp_path: Path, nightly: bool, record_property: Any
) -> None:
    """What could not be stored is stored at the next wake that comes in time."""
    deadline = 2.0 if nightly else 1.0
    desk = open_desk(tmp_path, deadline)
    with locked_from(desk, point, seconds):
        took = timed(desk)
        assert took < deadline + GRACE + NOISE
        assert desk.database.trading_state() == "ACTIVE", "reading goes on"
        assert len([1 for state, *_ in states(desk).values() if state == "done"]) == 1
    stored_at_a_wake(desk, 2)
    desks.step(desk)
    stored_at_a_wake(desk, 3)
    well(desk)
    record_property("seen", f"given up after {took:.2f} s, limit {deadline + GRACE:.2f} s")
    desk.close()


def stored_at_a_wake(desk: Any, number: int) -> None:
    """Wake until so many ticks are done: on a busy machine one may miss so short a deadline."""

    def done() -> bool:
        desk.wake("EURUSD")
        return [state for state, *_ in states(desk).values()] == ["done"] * number

    until(done)


@pytest.mark.parametrize(
    ("execution", "told"),
    [("off", ("error", "another program is writing to it")), ("auto", ("missed", "too late"))],
    ids=["quiet", "with a signal waiting"],
)
def test_ticks_that_a_lock_made_too_old_are_rows_with_a_reason(
    execution: str, told: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wake that has something to publish does not come as far as its tick."""
    hasty = partial(stores.open_database, now=System().real_now, busy_seconds=0.2)
    monkeypatch.setattr(desks, "open_database", hasty)
    desk = open_desk(tmp_path, 0.3, execution)
    lost = desk.clock.now()
    with locked(desk.database.path):
        assert timed(desk) < 0.3 + GRACE + NOISE
    desk.clock.set(lost + 4 * H1)  # type: ignore[attr-defined]
    desk.wake("EURUSD")
    found = states(desk)
    state, reason, detail = found[iso(lost)]
    assert (state, reason) == ("skipped", told[0])
    assert told[1] in detail
    assert sorted(state for state, *_ in found.values()) == ["done"] * 4 + ["skipped"]
    desks.step(desk)
    assert states(desk)[iso(lost + 4 * H1)][0] == "done"
    well(desk)
    desk.close()


def test_a_desk_that_starts_on_a_locked_database_says_who_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = partial(stores.open_database, now=System().real_now, busy_seconds=0.1)
    monkeypatch.setattr(desks, "open_database", hasty)
    desks.open_database(tmp_path).close()
    with locked(tmp_path / "torra.db"):
        desk = desks.open_desk(tmp_path, (desks.EUR,))
        with pytest.raises(StoreUnavailable, match="another program is writing to it"):
            desk.open()
        assert desk.wake("EURUSD") == []
    desks.open_for_work(desk)
    assert [outcome.state for outcome in desk.wake("EURUSD")] == ["done"]
    desk.close()


def test_a_program_that_only_reads_keeps_nobody_waiting(tmp_path: Path) -> None:
    """It sees what it began with; the log grows meanwhile and is taken up again afterwards."""
    desk = open_desk(tmp_path, seconds=0.5)
    connection = desk.database.connection()
    connection.execute("PRAGMA wal_autocheckpoint = 10")
    log = desk.database.path.with_name("torra.db-wal")
    with closing(sqlite3.connect(desk.database.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        seen = reader.execute("SELECT count(*) FROM ticks").fetchone()
        for _ in range(3):
            assert timed(desk) < 0.5 + GRACE + NOISE
        assert reader.execute("SELECT count(*) FROM ticks").fetchone() == seen
    desks.step(desk)
    grown = log.stat().st_size
    for _ in range(2):
        desks.step(desk)
    assert log.stat().st_size == grown, "the log is begun anew"
    assert [state for state, *_ in states(desk).values()] == ["done"] * 7
    well(desk)
    desk.close()

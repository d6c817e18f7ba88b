"""A desk's worker without its desk: a database with jobs, and processes that work on both."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from instance_database import Database
from tests.doubles.job_works import LIGHT, SCRIPTED
from tests.tries import until
from tests.worlds.stores import open_database
from torra.clock import System
from torra.desk_lock import DeskLock
from torra.jobs import asking
from torra.jobs.child import work_of
from torra.jobs.kinds import JobKind, by_name, parameters_of
from torra.jobs.process import Bounds
from torra.jobs.worker import Worker
from torra.store import jobs as job_table
from torra.trading.commanding import COMMAND_LINE

KINDS = by_name(SCRIPTED, *LIGHT)
QUICK = Bounds(patience=1.0)
RETRY = 0.2
FINAL = ("done", "error", "cancelled")


class Office:
    """A home with a database, a lock that a test may take away, and a worker that a test turns."""

    def __init__(self, home: Path, *, retry_seconds: float = RETRY, bounds: Bounds = QUICK) -> None:
        home.mkdir(exist_ok=True)
        self.home = home
        self.database: Database = open_database(home, System().real_now)
        self.works = True
        self.database.fence = lambda: self.works
        self.told: list[dict[str, str]] = []
        self.worker = Worker(
            self.database,
            home,
            KINDS,
            tell=lambda **told: self.told.append(told),
            bounds=bounds,
            retry_seconds=retry_seconds,
        )

    def ask(self, name: str, kind: JobKind = SCRIPTED, **parameters: Any) -> int:
        """Ask for a scripted work; return the number of its job."""
        done = asking.ask(
            self.database, self.home, kind, {"name": name, **parameters}, COMMAND_LINE
        )
        return int(done.document["id"])

    def row(self, number: int) -> dict[str, Any]:
        row = job_table.job(self.database, number)
        assert row is not None
        return row

    def turn_until(self, number: int, *states: str, seconds: float = 20.0) -> dict[str, Any]:
        """Turn until a job is in one of the states, by default a final one; return its row."""
        wanted = states or FINAL

        def there() -> bool:
            self.worker.turn()
            return self.row(number)["state"] in wanted

        until(there, seconds, f"the job is {' or '.join(wanted)}: {self.row(number)}")
        return self.row(number)

    def turn_until_begun(self, number: int, stage: str = "works") -> dict[str, Any]:
        """Turn until a job's work has said that it is at a stage."""

        def there() -> bool:
            self.worker.turn()
            return bool(self.row(number)["stage"] == stage)

        until(there, 20.0, f"the job is at the stage {stage}: {self.row(number)}")
        return self.row(number)

    def close(self) -> None:
        self.works = False
        self.worker.turn()
        self.worker.close()
        self.database.close()


def turned(database: Database, worker: Worker, number: int, **wanted: str) -> dict[str, Any]:
    """Turn a worker until the row of a job is as wanted; return it."""

    def row() -> dict[str, Any]:
        return job_table.job(database, number) or {}

    def there() -> bool:
        worker.turn()
        return wanted.items() <= row().items()

    until(there, 60.0, f"{wanted} of {row()}")
    return row()


def done_here(database: Database, home: Path, kind: JobKind, number: int) -> str:
    """Do a queued job as its process would, but in this one; return what it says."""
    row = job_table.job(database, number)
    asked = parameters_of(row) if row is not None else None
    assert asked is not None and job_table.begin_job(database, number, "queued")
    result = work_of(kind.work)(home, asked, lambda stage, done=0, total=0: None)
    assert job_table.end_job(database, number, "running", "done", result.says, result.made)
    return result.says


def alive(pid: int) -> bool:
    """Return whether a process runs that is not ours to wait for, or is waited for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            return not Path("/proc/self").exists()
        return False
    return state not in ("Z", "X")


def desk_process(home: Path, *, retry_seconds: float, bounds: Bounds) -> int:
    """Start a process that has the home's lock and works on jobs, as a desk does; return its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        live_signals(home, retry_seconds, bounds)
    finally:
        os._exit(3)


def live_signals(home: Path, retry_seconds: float, bounds: Bounds) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    lock = DeskLock(home)
    while not lock.acquire():
        pass
    database = open_database(home, System().real_now)
    database.fence = lock.is_owned
    worker = Worker(database, home, KINDS, bounds=bounds, retry_seconds=retry_seconds)
    while True:
        worker.turn()
        time.sleep(0.02)

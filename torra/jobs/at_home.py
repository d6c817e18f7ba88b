"""A light job from the command line: handed to the desk that runs, or done here under the lock."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Final

from instance_database import Database
from torra.clock import System
from torra.desk_lock import DeskLock
from torra.errors import ConfigError, TorraError
from torra.home import DATABASE
from torra.jobs import asking
from torra.jobs.child import work_of
from torra.jobs.kinds import FINAL, JobKind, Parameters, key_of
from torra.jobs.worker import RETRY_SECONDS
from torra.store import jobs as job_table
from torra.trading.commanding import COMMAND_LINE

PATIENCE_S: Final = 180.0
LOOK_S: Final = 0.2
"""Real seconds that a command waits for the desk's job, and between two looks at it."""


def run_at_home(home: Path, kind: JobKind, asked: Parameters) -> str:
    """Do a job of a kind and return the name of what it made.

    Where a desk holds the home's lock it does the job, else this process does, under the lock: also
    a job that waits for a lock that was another command's, or of a desk that ended. Raises
    ConfigError, also for a job that ended without making anything, what the work raises, and
    StoreUnavailable.
    """
    from instance_database import open_home  # noqa: PLC0415

    if not (home / DATABASE).is_file():
        raise ConfigError(f"no desk has run in {home} yet: start one with `torra run`")
    job: dict[str, Any] = {}
    end = System().monotonic() + PATIENCE_S
    with closing(open_home(home)) as database:
        while job.get("state") not in FINAL and System().monotonic() < end:
            if done := _under_lock(home, database, kind, asked, job):
                job = done
            elif job:
                System().sleep(LOOK_S)
                job = job_table.job(database, job["id"]) or job
            else:
                job = asking.ask(database, home, kind, asked, COMMAND_LINE).document
    if not job["made"]:
        why = job["says"] or "it has made nothing yet: look at `torra jobs`"
        raise ConfigError(f"job {job['id']} is {job['state']}: {why}")
    return str(job["made"])


def _under_lock(
    home: Path, database: Database, kind: JobKind, asked: Parameters, job: dict[str, Any]
) -> dict[str, Any] | None:
    """Do a job, and end its row where it has one; None where another one holds the home's lock.

    One that waits for a desk and asks the same is this job. One that the desk ended meanwhile is
    not done again, nor beside a process of a desk that died.
    """
    lock = DeskLock(home)
    if not lock.acquire(0.0):
        return None
    try:
        request = kind.check(home, asked)
        if not job and job_table.job_of_key(database, key_of(kind, request.identity)):
            job = asking.ask(database, home, kind, asked, COMMAND_LINE).document
        number = job.get("id", 0)
        row = job_table.job(database, number) or {"state": ""}
        if row["state"] == "running":
            System().sleep(RETRY_SECONDS)
        if row["state"] in FINAL:
            return row
        if number and row["state"] != "running":
            job_table.begin_job(database, number, row["state"])
        try:
            done = work_of(kind.work)(home, request.parameters, lambda *_: None)
        except TorraError as error:
            job_table.end_job(database, number, "running", "error", str(error))
            raise
        job_table.end_job(database, number, "running", "done", done.says, done.made)
        return {"state": "done", "made": done.made}
    finally:
        lock.release()

"""Stores jobs: what was asked for, how far it is, and what it came to.

Every change is one statement that names the state which it found: of two that change a job at the
same moment one wins, and the other is told so.
Requests of the same key are one job while it goes on, by an index of the database. Of the jobs that
have ended the newest are kept. Every failure raises StoreUnavailable and leaves no trace.

A part of instance_database.Database.
"""

from __future__ import annotations

from typing import Final

from torra.errors import ConfigError, bounded
from torra.store import streams as stream_table
from torra.store.connection import RowDict, Store
from torra.store.envelopes import failure, written

KEPT: Final = 200
"""Jobs that have ended and are kept."""

THE_DESK: Final = "the desk"
"""Who asked for a job that no person asked for: what a person asks for is done before."""

KEPT_OF_DESK: Final = 20
"""The same of a kind that the desk asked for by itself: it may ask each hour."""

MOST_WAITING: Final = 20
"""Jobs that may wait and run at the same time in each lane of a worker."""

LIGHT: Final = "light"
"""The lane of jobs that take seconds, and how their keys begin; all others are heavy."""

ROWS: Final = f"SELECT *, iif(key LIKE '{LIGHT}%', '{LIGHT}', 'heavy') AS lane FROM jobs"  # noqa: S608
"""Jobs with the lane of a worker in which they run."""

GOES_ON: Final = ("queued", "running", "retrying")
"""The states of the index jobs_alike."""


def queue_job(
    store: Store, kind: str, key: str, *, title: str, parameters: str, actor: str
) -> tuple[RowDict, bool]:
    """Queue a job and return its row; False with the one of that key that goes on already.

    `parameters` is JSON text. Raises ConfigError while too many jobs wait in its lane.
    """
    with store.transaction():
        waiting = [row for state in GOES_ON for row in jobs_in(store, state)]
        for row in waiting:
            if row["key"] == key:
                return row, False
        light = key.startswith(LIGHT)
        ahead = [row for row in waiting if light == (row["lane"] == LIGHT)]
        if len(ahead) >= MOST_WAITING:
            raise ConfigError(
                f"{len(ahead)} jobs wait already: wait for one to end, or cancel one "
                "(torra jobs --cancel ID)"
            )
        number = store.add(
            "jobs",
            {
                "kind": kind, "key": key, "title": title, "parameters": parameters,
                "asked_by": actor, "state": "queued", "attempt": 0, "cancel": 0,
                "stage": "", "done": 0, "total": 0, "says": "", "made": "",
                "queued_at": store.moment(), "revision": _job_revision(store),
            },
        )  # fmt: skip
        return job(store, number) or {}, True


def job(store: Store, number: int) -> RowDict | None:
    """Return one job; None when there is none of that number."""
    return store.row(f"{ROWS} WHERE id = ?", number)


def jobs_in(store: Store, state: str) -> list[RowDict]:
    """Return the jobs in a state, oldest first."""
    return store.rows(f"{ROWS} WHERE state = ? ORDER BY id LIMIT ?", state, KEPT + 2 * MOST_WAITING)


def jobs(store: Store, limit: int = KEPT + 2 * MOST_WAITING) -> list[RowDict]:
    """Return jobs, the newest first."""
    return store.rows(f"{ROWS} ORDER BY id DESC LIMIT ?", limit)


def newest_job(store: Store, **columns: str) -> RowDict | None:
    """Return the newest job with these values of columns, such as its kind; None without any."""
    which = " AND ".join(f"{name} = ?" for name in columns)
    return store.row(f"{ROWS} WHERE {which} ORDER BY id DESC LIMIT 1", *columns.values())


def job_of_key(store: Store, key: str) -> RowDict | None:
    """Return the job of a key that goes on; None where none does."""
    row = newest_job(store, key=key)
    return row if row and row["state"] in GOES_ON else None


def newest_says(store: Store, kind: str) -> str:
    """Return what the newest job of a kind that was done came to, "" where there is none."""
    job = newest_job(store, kind=kind, state="done")
    return str(job["says"]) if job else ""


def begin_job(store: Store, number: int, was: str) -> bool:
    """Begin a job's next attempt; False when it is not in the state `was` any more."""
    with store.transaction():
        row = job(store, number)
        return row is not None and _alter(store,
            number, was, state="running", attempt=row["attempt"] + 1,
            stage="", done=0, total=0, says="", started_at=row["started_at"] or store.moment(),
        )  # fmt: skip


def note_progress(store: Store, number: int, stage: str, done: int, total: int) -> bool:
    """Note how far a running job is; False when it does not run any more."""
    return _alter(store, number, "running", stage=bounded(stage), done=done, total=total)


def lay_job_back(store: Store, number: int, says: str, *, given_back: bool = False) -> bool:
    """Let a running job be tried again later; False when it does not run any more.

    `given_back`: this attempt does not count.
    """
    with store.transaction():
        row = job(store, number)
        return row is not None and _alter(store,
            number, "running", state="retrying", says=bounded(says),
            attempt=row["attempt"] - int(given_back),
        )  # fmt: skip


def end_job(
    store: Store, number: int, was: str, state: str, says: str, made: str = "", code: str = ""
) -> bool:
    """End a job; False when it is not in the state `was` any more. Old ones go.

    A stream that the job's key owns and that is still open ends with it, in an error of this code,
    by default the state's name.
    """
    with store.transaction():
        ended = _alter(
            store, number, was, state=state, says=bounded(says), made=made, ended_at=store.moment()
        )
        row = job(store, number)
        if ended and row is not None:
            error = failure(code or state.upper(), row["says"])
            stream_table.end_streams(store, row["key"], written(error))
            store.change(
                "DELETE FROM jobs WHERE id IN (SELECT id FROM (SELECT id, asked_by, "  # noqa: S608
                "row_number() OVER (PARTITION BY asked_by = ?, iif(asked_by = ?, kind, '') "
                f"ORDER BY id DESC) AS place FROM jobs WHERE state NOT IN {GOES_ON}) "
                "WHERE place > iif(asked_by = ?, ?, ?))",
                THE_DESK, THE_DESK, THE_DESK, KEPT_OF_DESK, KEPT,
            )  # fmt: skip
        return ended


def ask_to_cancel(store: Store, number: int) -> bool:
    """Note that a running job is to be cancelled; False when it does not run any more."""
    return _alter(store, number, "running", cancel=1)


def _alter(store: Store, number: int, was: str, **columns: object) -> bool:
    """Set columns of a job that is in the state `was`; False when it is not."""
    with store.transaction():
        values = {**columns, "revision": _job_revision(store)}
        sets = ", ".join(f"{name} = ?" for name in values)
        sql = f"UPDATE jobs SET {sets} WHERE id = ? AND state = ?"  # noqa: S608 - names of ours
        return bool(store.change(sql, *values.values(), number, was))


def _job_revision(store: Store) -> int:
    """Return a number above that of every change before: the pulse of the database reads it."""
    return int(store.value("SELECT coalesce(max(revision), 0) FROM jobs")) + 1

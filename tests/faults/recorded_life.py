"""The life of a desk whose orders are filled and closed, with the state after each of its commits.

`life()` runs it once and keeps what a power cut would find at its end: the main file as it was
before the log began, the whole log, and for each number of commits in that log what all tables held
then. Checkpoints are off, so that the log keeps every commit; it is begun anew after the first
tick, so that frames of an earlier round lie behind its end, as in a log in use. A statement that
wrote outside a transaction would be a commit that nobody remembered, and is an error here.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

from tests.faults.books import contents, story, torn
from tests.faults.wal import commit_ends
from tests.worlds import desks
from torra.clock import Simulated
from torra.config import Profile

BEGIN = datetime.fromisoformat("2021-11-07T23:45:00+00:00")
UPTO = BEGIN + 5 * desks.QUARTER
"""Of the sample: after the first close an order is sent, filled and closed, and another filled."""

LONGER = 400_000
"""Bytes by which the first round of the log is longer than a tick makes it."""


@dataclass(frozen=True)
class Life:
    """What lies on the disk, and what it amounts to."""

    main: bytes
    log: bytes
    states: tuple[str, ...]
    """Digest of all tables by the number of commits in the log."""
    story: list[tuple[object, ...]]


class Remembered:
    """The states of a database by the number of commits in its log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.states: list[str] = []

    def commits(self) -> int:
        return len(commit_ends(self.path.with_name(self.path.name + "-wal").read_bytes()))

    def look(self) -> None:
        """Remember the present state, unless nothing was written since the last one."""
        with closing(sqlite3.connect(self.path)) as reader:
            now, half = contents(reader), torn(reader)
        assert not half, half
        if self.commits() == len(self.states):
            self.states.append(now)
        assert self.commits() == len(self.states) - 1, "a commit that nobody made"
        assert self.states[-1] == now, "rows changed without a commit"


class Watched(sqlite3.Connection):
    """A connection that never checkpoints and tells of each commit."""

    remembered: Remembered | None = None

    def execute(self, sql: str, *words: Any) -> sqlite3.Cursor:
        done = super().execute(sql, *words)
        if sql == "COMMIT" and Watched.remembered is not None:
            Watched.remembered.look()
        if sql == "PRAGMA journal_mode = WAL":
            super().execute("PRAGMA wal_autocheckpoint = 0")
        return done


@cache
def life() -> Life:
    """Run the life, the first time that it is asked for."""
    with tempfile.TemporaryDirectory() as home:
        return _lived(Path(home))


def _lived(home: Path) -> Life:
    plain = sqlite3.connect
    with mock.patch.object(sqlite3, "connect", partial(plain, factory=Watched)):
        desk = open_desk(home)
        _lengthen(desk.database)
        (blocked, *_) = desk.database.connection().execute("PRAGMA wal_checkpoint(RESTART)")
        assert blocked[0] == 0, "the log could not be begun anew"
        path = home / "torra.db"
        main = path.read_bytes()
        remembered = Remembered(path)
        with closing(plain(path)) as reader:
            remembered.states.append(contents(reader))
            assert reader.execute("SELECT count(*) FROM signals").fetchone() == (0,)
        Watched.remembered = remembered
        try:
            while desk.clock.now() < UPTO:
                desks.step(desk)
        finally:
            Watched.remembered = None
    log = path.with_name("torra.db-wal").read_bytes()
    assert path.read_bytes() == main, "a checkpoint came between"
    told = story(desk.database.connection().conn)
    found = Life(main, log, tuple(remembered.states), told)
    desk.database.close()
    return found


def _lengthen(database: Any) -> None:
    """Make the log longer than its next round will be."""
    with database.transaction():
        for step in (
            "CREATE TABLE scratch (data BLOB)",
            "INSERT INTO scratch VALUES (zeroblob(?))",
        ):
            database.connection().conn.execute(step, (LONGER,) if "?" in step else ())
    with database.transaction():
        database.connection().conn.execute("DROP TABLE scratch")


def open_desk(home: Path) -> Any:
    """Return the desk of a home with its lock, where it stood."""
    profile = Profile(record_score="high")  # with it these bars trade as UPTO says
    desk = desks.open_desk(
        home, profile=profile, make_clock=lambda stood: Simulated(stood or BEGIN)
    )
    desks.open_for_work(desk)  # whoever comes next need not wait for it
    desk.wake("BTCUSD")
    return desk

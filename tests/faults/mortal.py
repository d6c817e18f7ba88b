"""Parts of a desk that can be killed inside the process that tests them.

A `Doom` says where its owner dies: at a named point of torra.failpoints, at the nth use of its
database, at the nth step on its files. It dies by `Crash`, which is no Exception and which nothing
of Torra may stop; from then on whoever uses database or files on its behalf meets `Crash` again, so
that no `finally` and no `except` can tidy up what a killed process would have left lying. An open
transaction is undone, as SQLite undoes it. A doom can also do something else at a named point, such
as dropping a HALT file. What a power cut does to a disk is not shown here.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from instance_database import Database
from torra import failpoints
from torra.store.connection import ThreadConnection
from torra.time_limit import TimeLimit

T = TypeVar("T")


class Crash(BaseException):
    """The process is killed here."""


@dataclass
class Doom:
    """When somebody dies, and whether he has; `met` counts what he died of."""

    met: Counter[str]
    dead: bool = False
    fatal: str = ""
    left: int = 0
    chores: dict[str, Callable[[], None]] = field(default_factory=dict)

    def arm(self, place: str, count: int = 1) -> None:
        """Die at the count-th time that `place` (a point, "database" or "disk") is met."""
        self.fatal, self.left = place, count

    def reach(self, point: str) -> None:
        """Pass a named point: do what is to be done there, then die if it is the last."""
        chore = self.chores.pop(point, None)
        if chore is not None:
            chore()
        self.step(point)

    def step(self, place: str) -> None:
        """Pass a place, unless dead or dying there."""
        if self.dead:
            raise Crash(place)
        if place != self.fatal:
            return
        self.left -= 1
        if self.left <= 0:
            self.dead = True
            self.met[place] += 1
            raise Crash(place)


class MortalDatabase(Database):
    """A database whose every use may be its owner's last."""

    doom: Doom | None = None

    def _using(self) -> ThreadConnection:
        """Return the connection, unless dead."""
        if self.doom is not None and threading.current_thread() is threading.main_thread():
            self.doom.step("database")
        return super()._using()


def open_mortal(path: Path, now: Callable[[], datetime], doom: Doom | None) -> MortalDatabase:
    """Open a database on somebody's behalf."""
    found = MortalDatabase.open(path, now=now)
    assert isinstance(found, MortalDatabase)
    found.doom = doom
    return found


@dataclass
class MortalDisk:
    """Makes the steps on files, each of which may be their owner's last."""

    doom: Doom

    def __call__(self, step: Callable[[], T]) -> T:
        self.doom.step("disk")
        return step()


@dataclass
class Stage:
    """Who acts now: the points that are reached are his."""

    acting: Doom | None = None

    def reach(self, point: str) -> None:
        """Tell whoever acts that he has come to a point; other threads' points are nobody's."""
        if self.acting is not None and threading.current_thread() is threading.main_thread():
            self.acting.reach(point)

    @contextmanager
    def of(self, doom: Doom) -> Iterator[None]:
        """Let somebody act."""
        before, self.acting = self.acting, doom
        try:
            yield
        finally:
            self.acting = before


STAGE = Stage()


def watch_points(patch: pytest.MonkeyPatch, hear: Callable[[str], object] = STAGE.reach) -> None:
    """Let every module that passes named points tell them to the stage, or to whom it is said."""
    for module in list(sys.modules.values()):
        if getattr(module, "failpoint", None) is failpoints.failpoint and module is not failpoints:
            patch.setattr(module, "failpoint", hear)


def answer_at_once(patch: pytest.MonkeyPatch) -> None:
    """Let what may never answer be asked in the thread of whoever asks: here it always answers."""

    def run(_: TimeLimit, work: Callable[[], Any]) -> Any:
        return work()

    patch.setattr(TimeLimit, "run", run)


def quick_folder(tmp_path: Path) -> Path:
    """Return a folder in memory where there is one: syncs prove nothing where no power is lost."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else tmp_path

"""What the checks of Health look at, and what of them is remembered between two requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from weakref import WeakKeyDictionary

from torra.clock import iso
from torra.config import Instance, Profile
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_values import Overview
from torra.dashboard.view.kept import LruCache
from torra.desk.checks import table
from torra.desk.checks.result import CheckResult
from torra.services import in_background
from torra.store import connection, tick_queries

if TYPE_CHECKING:
    from instance_database import Database

T = TypeVar("T")

CHECKED_FOR: Final = timedelta(seconds=60)
"""Age at which the findings about machine and settings are looked for again."""

INSTANCES: Final = 200
"""Instances of which is remembered what their newest ticks said."""

NEWEST_TICKS: Final = 200
"""Newest ticks of an instance that are counted."""


@dataclass(frozen=True, slots=True)
class DatabaseCheck:
    """The state of a check of the database, its answer and its time, once there is one."""

    state: Literal["never", "running", "done"]
    answer: str = ""
    at: str | None = None


class Checkup:
    """The memory of one database's checks, kept between two requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._findings: tuple[datetime, list[CheckResult]] | None = None
        self._thread: threading.Thread | None = None
        self._answer: tuple[datetime, str] | None = None
        self.newest_ticks: LruCache[Any] = LruCache(2 * INSTANCES)

    def findings(self, behind: PageContext, now: datetime) -> list[CheckResult]:
        """Return the quick findings of `torra doctor`, younger than CHECKED_FOR, or look again."""
        with self._lock:
            cached = self._findings
            # abs: a clock that was set back would keep the findings for as long
            if cached is None or abs(now - cached[0]) >= CHECKED_FOR:
                cached = self._findings = (now, table.quick(behind.home, behind.environment))
            return cached[1]

    def start(self, behind: PageContext) -> bool:
        """Start to read the database through; return False while that already runs."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return False
            self._thread = in_background("quick-check", partial(self._read, behind))
            return True

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for a running check; return whether none runs any more."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def database_check(self) -> DatabaseCheck:
        """Return the state of the check."""
        # each read once: the thread may end between two reads
        thread, answer = self._thread, self._answer
        if thread is not None and thread.is_alive():
            return DatabaseCheck("running")
        if answer is None:
            return DatabaseCheck("never")
        return DatabaseCheck("done", answer[1], iso(answer[0]))

    def _read(self, behind: PageContext) -> None:
        answer = connection.quick_check(behind.database)
        self._answer = (behind.desk.clock.real_now().replace(microsecond=0), answer)


@dataclass(frozen=True, slots=True)
class HealthContext:
    """What the checks of Health look at; `now` is real time."""

    pages: PageContext
    now: datetime
    overview: Overview = field(default_factory=Overview)
    memory: Checkup = field(default_factory=Checkup)
    remote: bool = False

    @property
    def database(self) -> Database:
        """The desk's database."""
        return self.pages.database

    @property
    def setups(self) -> list[tuple[Instance, Profile]]:
        """The instances of the desk, each with its profile."""
        return self.pages.setups

    def of_newest_ticks(
        self, instance: Instance, read: Callable[[Database, str, Sequence[str], int], T]
    ) -> T:
        """Return what `read` says of an instance's newest ticks; remembered until the next one."""
        newest = tick_queries.newest_of(
            self.database, [(instance.id, timeframe) for timeframe in instance.timeframes]
        )
        key = (read, instance.id, *(tick for tick, _ in newest.values()))
        answer: T = self.memory.newest_ticks.get(
            key, lambda: read(self.database, instance.id, instance.timeframes, NEWEST_TICKS)
        )
        return answer


# weak: what is remembered goes with its database
_CHECKUPS: WeakKeyDictionary[Database, Checkup] = WeakKeyDictionary()


def checkup(behind: PageContext) -> Checkup:
    """Return the memory of a database's checks."""
    return _CHECKUPS.setdefault(behind.database, Checkup())

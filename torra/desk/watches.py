"""The watches of a desk, over what is not its own to decide: its clock and its database's lock.

People, time servers and a machine that wakes from sleep set a wall clock forwards and backwards.
ClockWatch compares it with monotonic time, which nobody sets: `jump` returns how far the two have
parted since the same caller asked last. After a jump the clock may be corrected again, so for a
while nothing that depends on it is final (`settling`).

A program that is paused inside a transaction (Ctrl-Z, a debugger, a suspended machine) holds the
database's lock for as long as it is paused. Nobody can take it from outside, and the desk cannot
store. Only a person can end that, so LockWatch says it: once the lock has lasted for some seconds,
and then once a minute. It touches no database.
"""

from __future__ import annotations

import logging
import math
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from torra.clock import Clock, parse
from torra.home import DATABASE
from torra.store.connection import connect_reader

SETTLING_SECONDS: Final = 600.0
"""Real seconds after a jump of the clock during which no bar is written off as missed."""

CLOCK_TOLERANCE: Final = timedelta(seconds=30)
"""Real time by which desk clock and monotonic time may part between two looks.

More is a jump, after which the desk waits as long before it believes the clock.
"""

TIMER_TOLERANCE: Final = timedelta(seconds=1)
"""Real time by which they may part before timers are set anew, which would come that late."""

LOG_EVERY: Final = 60.0
"""Real seconds between two lines about the same lock."""

SILENT_SECONDS: Final = 10.0
"""Real seconds without a sign of life after which a desk that has its lock is called silent."""

DESK_SIGNS: Final = {
    "works": "process {process} works, seen {seconds} s ago",
    "silent": (
        "the desk of process {process} has shown no life for {seconds} s: it may be paused (Ctrl-Z,"
        " a debugger, a suspended machine), or another program holds its database. End it or let "
        "it go on; no other desk can work meanwhile"
    ),
    "ended": "no desk runs: the last one ended at {seen_at}",
    "killed": "no desk runs: that of process {process} was killed after {seen_at}",
}
"""What is said of the newest desk, by how it is."""
BY_A_PROGRAM: Final = (
    "another program holds the database for {seconds} s: nothing can be stored. It may be paused "
    "(Ctrl-Z, a debugger): end it or let it go on"
)
FREE: Final = "the database is free again after {seconds} s"

log = logging.getLogger("torra")


def desk_sign(run: Mapping[str, Any], *, locked: bool, now: datetime) -> tuple[str, str]:
    """Return how the newest desk is (a key of DESK_SIGNS), and that in words.

    `run` is the row of its signs of life, `locked` whether its home's lock is held.
    """
    seconds = max(0, round((now - parse(run["seen_at"])).total_seconds()))
    if locked:
        state = "silent" if seconds > SILENT_SECONDS else "works"
    else:
        state = "killed" if run["process"] else "ended"
    return state, DESK_SIGNS[state].format(seconds=seconds, **run)


def refusal(home: Path) -> str:
    """Return why a desk may not work on a home: another one does."""
    return (
        f"another desk{owner_of(home / DATABASE)} works on {home.absolute()}: end it, or start "
        "this one with `torra run --wait`"
    )


def owner_of(database: Path) -> str:
    """Return in brackets which desk works on a database, and since when; "" for nobody known."""
    try:
        with closing(connect_reader(database)) as db:
            sql = "SELECT process, substr(started_at, 1, 19) FROM desk_run"
            run = db.execute(sql).fetchone()
    except sqlite3.DatabaseError:  # made just now, or of an older program
        return ""
    return f" (process {run[0]}, since {run[1]}Z)" if run and run[0] else ""


class ClockWatch:
    """The last looks at a desk's clocks, by caller."""

    def __init__(self) -> None:
        self._readings: dict[str, tuple[datetime, float]] = {}
        self._jumped = -math.inf

    def jump(self, who: str, clock: Clock) -> timedelta:
        """Return the real time by which the clock has jumped since `who` asked last.

        Zero at the first look, and for a clock that is set by hand.
        """
        now, elapsed, rate = clock.now(), clock.monotonic(), clock.rate
        last, self._readings[who] = self._readings.get(who), (now, elapsed)
        if last is None or rate is None:
            return timedelta(0)
        # Desk time divided by its rate is real time, so an accelerated clock does not seem to jump.
        jump = (now - last[0]) / rate - timedelta(seconds=elapsed - last[1])
        if abs(jump) > CLOCK_TOLERANCE:
            log.warning("the clock jumped by %s", jump)
            self._jumped = clock.monotonic()
        return jump

    def settling(self, clock: Clock) -> bool:
        """Return whether the clock jumped not long ago."""
        return clock.monotonic() - self._jumped < SETTLING_SECONDS


class LockWatch:
    """What a desk knows of a lock that does not go away; times are monotonic seconds."""

    def __init__(self, limit: float) -> None:
        """Speak of a lock that has lasted longer than `limit` seconds."""
        self._limit = limit
        self._since: float | None = None
        self._logged_at: float | None = None
        self.words = ""
        """What is to be said of the lock now, "" while there is none worth a word."""

    def locked(self, begun: float, now: float) -> str:
        """Note a try, begun at a moment, that met a lock; return what to say, "" for nothing."""
        self._since = begun if self._since is None else self._since
        if now - self._since <= self._limit:
            return ""
        self.words = BY_A_PROGRAM.format(seconds=round(now - self._since))
        if self._logged_at is not None and now - self._logged_at < LOG_EVERY:
            return ""
        self._logged_at = now
        return self.words

    def free(self, now: float) -> str:
        """Note that the database could be used; return what to say, "" for nothing."""
        since, words = self._since, self.words
        self._since = self._logged_at = None
        self.words = ""
        return FREE.format(seconds=round(now - since)) if since is not None and words else ""

"""Notes how long a desk has found its database locked, and says so in words for a person.

A program that is paused inside a transaction (Ctrl-Z, a debugger, a suspended machine) holds the
lock for as long as it is paused. Nobody can take it from outside: the desk that stands by cannot
take over, and a desk that works cannot store. Only a person can end that, so it is said: once the
lock has lasted longer than a lease, and then once a minute. Nothing here touches the database.
"""

from __future__ import annotations

from typing import Final

TOLD_EVERY: Final = 60.0
"""Real seconds between two lines about the same lock."""

BY_A_DESK: Final = (
    "another desk holds the database for {seconds} s and does nothing: it may be paused (Ctrl-Z, a "
    "debugger, a suspended machine). End it or let it go on, and one of the two desks works. No "
    "order can be doubled meanwhile"
)
BY_A_PROGRAM: Final = (
    "another program holds the database for {seconds} s: nothing can be stored. It may be paused "
    "(Ctrl-Z, a debugger): end it or let it go on"
)
FREE: Final = "the database is free again after {seconds} s"


class LockWatch:
    """What a desk knows of a lock that does not go away; times are monotonic seconds."""

    def __init__(self, limit: float) -> None:
        """Speak of a lock that has lasted longer than `limit` seconds."""
        self._limit = limit
        self._since: float | None = None
        self._told: float | None = None
        self.words = ""
        """What is to be said of the lock now, "" while there is none worth a word."""

    def locked(self, begun: float, now: float, *, other_desk: bool) -> str:
        """Note a try, begun at a moment, that met a lock; return what to say now, "" for nothing.

        `other_desk` is whether the lease is another desk's.
        """
        self._since = begun if self._since is None else self._since
        if now - self._since <= self._limit:
            return ""
        words = BY_A_DESK if other_desk else BY_A_PROGRAM
        self.words = words.format(seconds=round(now - self._since))
        if self._told is not None and now - self._told < TOLD_EVERY:
            return ""
        self._told = now
        return self.words

    def free(self, now: float) -> str:
        """Note that the database could be used; return what to say, "" for nothing."""
        since, spoken = self._since, self.words
        self._since = self._told = None
        self.words = ""
        return FREE.format(seconds=round(now - since)) if since is not None and spoken else ""

"""The connections of the pages' server: a limited number, and none that only waits keeps its place.

waitress ends a connection only after two minutes in which no byte came, and takes nobody in while
as many are open as it may have. So anybody on this machine, without a token, could take the pages
away with silent connections, or with slow ones. Here a connection has so many seconds to send a
whole request, however many bytes come meanwhile, and so many to take its answer. When the places
run out, those that have waited longest for a whole request make room for new ones, and so do large
bodies that are not whole when there are too many. A connection whose request is being answered, as
each open stream of events, is never ended by this.

What only its speed makes an attack is not dealt with: whoever sends whole requests, or opens
connections, as fast as he can is answered as fast as this machine can.
"""

from __future__ import annotations

import logging
import math
import select
from collections.abc import Iterable
from contextlib import suppress
from heapq import nsmallest
from typing import Any, Final

from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.server import TcpWSGIServer  # type: ignore[import-untyped]

from torra.clock import Clock, System

try:
    import resource
except ImportError:  # Windows, where a process may have any number of files open
    resource = None  # type: ignore[assignment]

LOG: Final = logging.getLogger("torra.dashboard")
CLOCK: Clock = System()

MOST: Final = 1500
"""Connections at once. A browser opens six; each open one makes each look of the server at all of
them by a microsecond longer, which is a tenth of a core while many hundreds are slow."""

MOST_OF_SELECT: Final = 400
"""... where there is no poll(), on Windows: select() ends the server at the 513th connection."""

FILES: Final = 4096
"""Open files that the process asks for where it may have fewer (RLIMIT_NOFILE); 1,024 are usual."""

FILES_EACH: Final = 2
"""One of so many open files may be a connection: the others are for the desk, whose database and
channels must never lack one."""

IDLE_SECONDS: Final = 10.0
"""A connection on which no request has begun is closed after so long."""

REQUEST_SECONDS: Final = 20.0
"""A connection whose request has begun and is not whole is closed so long after it began to wait,
which leaves a request 10 s at least."""

ANSWER_SECONDS: Final = 120.0
"""A connection is closed when its answer was ready so long ago and is not taken yet."""

YOUNG_SECONDS: Final = 0.1
"""A connection keeps its place for so long in any case: a request comes sooner, through an SSH
tunnel too."""

AT_ONCE: Final = 64
"""Most connections that are taken in, or make room, between two looks for what has come."""

BACKLOG: Final = 2048
"""Most connections that wait to be taken in (a system may allow fewer): a second's work."""

LARGE_BODY: Final = 32 << 10
"""Bytes of a body that is not whole from which on it counts as a large one."""

MOST_LARGE: Final = 64
"""Large bodies at once that are not whole: they stand in memory."""

LOOK_SECONDS: Final = 1.0
"""Between two looks for connections whose time is over."""

TELL_SECONDS: Final = 60.0
"""Between two lines of the log about connections that made room."""


class Connection(HTTPChannel):  # type: ignore[misc]
    """A connection that knows since when it has been waiting for a whole request.

    `since` is monotonic seconds, infinite while a request of it is being answered.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        self.since = CLOCK.monotonic()
        super().__init__(*given, **named)

    def received(self, data: bytes) -> bool:
        """Take in bytes; on the server's thread."""
        taken: bool = super().received(data)
        if self.has_large_body():
            self.server.note_large(self)
        return taken

    def service(self) -> None:
        """Answer a request; on one of the threads for it."""
        self.since = math.inf
        super().service()
        if not self.requests:
            self.since = CLOCK.monotonic()

    def has_large_body(self) -> bool:
        """Return whether a large part of a body is here, and not all of it."""
        return self.request is not None and self.request.body_bytes_received > LARGE_BODY

    def waits(self) -> bool:
        """Return whether no request is being answered."""
        # both: a request is in `requests` before its answer begins, and leaves it before the end
        return not self.requests and self.since < math.inf

    def over(self, now: float) -> bool:
        """Return whether its time is over."""
        if not self.waits():
            return False
        if self.total_outbufs_len:
            most = ANSWER_SECONDS
        elif self.request is not None:
            most = REQUEST_SECONDS
        else:
            most = IDLE_SECONDS
        return now - self.since > most


class Server(TcpWSGIServer):  # type: ignore[misc]
    """waitress's server of one port, with these limits."""

    channel_class = Connection

    def __init__(self, *given: Any, **named: Any) -> None:
        self.most = most_connections()
        self._large: dict[Connection, None] = {}
        self._look_at = -math.inf
        self._told_at = -math.inf
        self._ended = 0
        # "Task queue depth is 2" is no fault, and strangers could fill a log with it
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        super().__init__(*given, backlog=BACKLOG, **named)

    @property
    def room(self) -> int:
        """How many more connections may be open."""
        return self.most - len(self.active_channels)

    def run(self) -> None:
        """Answer requests until the server is closed or the thread is interrupted."""
        try:
            while self._map:
                # between two polls: a connection that is closed during one may leave its events to
                # a new one, which has got the number of its file
                self.tidy(CLOCK.monotonic())
                self.asyncore.loop(
                    timeout=LOOK_SECONDS if self.room > 0 else YOUNG_SECONDS,
                    use_poll=self.adj.asyncore_use_poll,
                    map=self._map,
                    count=1,
                )
        except (SystemExit, KeyboardInterrupt):
            self.task_dispatcher.shutdown()

    def readable(self) -> bool:
        """Return whether a connection may be taken in."""
        return bool(self.accepting) and self.room > 0

    def handle_accept(self) -> None:
        """Take in those that wait for it, as far as there is room."""
        for _ in range(min(self.room, AT_ONCE)):
            before = self.room
            super().handle_accept()
            if self.room == before:
                return

    def tidy(self, now: float) -> None:
        """End the connections whose time is over, and make room where there is none."""
        connections: list[Connection] = list(self.active_channels.values())
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            _close(one for one in connections if one.over(now))
        if self.room <= 0:
            self._make_room(connections, now)
        if len(self._large) > MOST_LARGE:
            self._large = {
                one: None for one in self._large if one.connected and one.has_large_body()
            }
            _close(list(self._large)[:-MOST_LARGE])

    def note_large(self, one: Connection) -> None:
        """Note a connection with a large body that is not whole."""
        self._large.setdefault(one)

    def _make_room(self, connections: Iterable[Connection], now: float) -> None:
        old = [one for one in connections if one.waits() and now - one.since >= YOUNG_SECONDS]
        # an answer that is on its way goes last: its reader did ask for something
        longest = nsmallest(AT_ONCE, old, key=lambda one: (one.total_outbufs_len > 0, one.since))
        _close(longest)
        self._ended += len(longest)
        if self._ended and now - self._told_at >= TELL_SECONDS:
            LOG.warning(
                "all %d connections of the pages were open at once: %d that had sent no whole "
                "request were closed to make room",
                self.most,
                self._ended,
            )
            self._told_at, self._ended = now, 0


def most_connections() -> int:
    """Return how many connections may be open at once in this process.

    Where the process may have fewer than FILES open files, it first asks for more, as far as it
    may.
    """
    most = MOST if hasattr(select, "poll") else MOST_OF_SELECT
    if resource is None:
        return most
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    if soft < FILES:
        wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        with suppress(ValueError, OSError):  # a system may allow fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return min(most, max(1, soft // FILES_EACH))


def _close(connections: Iterable[Connection]) -> None:
    """Close connections at once: one whose other end reads nothing is never ready to be written."""
    for one in connections:
        one.handle_close()

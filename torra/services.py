"""The runner of a desk: what it does again and again, each service on a thread of its own.

A `Service` has a name, a pause and a turn. Nothing that a turn raises ends it: the first failure of
a kind is logged, and the next turn tries again. `wake` brings the next turn forward. A turn of a
service with a `fence` is left out while that says no: the desk has lost its lock. `Services` starts
those of a desk in order and closes them in reverse order, within one limit for all.

Threads are daemons: one that hangs, at a dead drive or a silent server, is left behind at the end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, Protocol

from torra.clock import System
from torra.errors import StoreUnavailable

CLOSE_SECONDS: Final = 2.0
"""Real seconds in which the services of a desk have to end, all together."""

MONOTONIC: Final = System().monotonic

log = logging.getLogger("torra")


def in_background(name: str, work: Callable[[], object]) -> threading.Thread:
    """Do some work once on a thread of its own; RuntimeError where the system gives no more."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


class Service:
    """Takes a turn every so many real seconds, from `start` until `close`.

    `turn` may return the seconds until the next one, in place of `every`. `at_once`: the first turn
    waits for no pause. `private`: what a turn raises may hold an address or a key, so only its type
    is logged. A subclass says in `open` and `shut` what it needs for as long as it runs.
    """

    def __init__(
        self,
        name: str,
        every: float,
        turn: Callable[[], float | None],
        *,
        fence: Callable[[], bool] = lambda: True,
        at_once: bool = False,
        private: bool = False,
    ) -> None:
        self.name = name
        self._every = every
        self._take_turn = turn
        self._fence = fence
        self._at_once = at_once
        self._private = private
        self._ending = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: type[Exception] | None = None

    @property
    def ending(self) -> bool:
        """Whether the service was told to end."""
        return self._ending.is_set()

    @property
    def running(self) -> bool:
        """Whether it has begun and was not told to end."""
        return self._thread is not None and not self.ending

    def start(self) -> None:
        """Begin, once; raises what `open` raises, and RuntimeError without a thread."""
        if self._thread is not None or self.ending:
            return
        self.open()
        if self._at_once:
            self.wake()
        self._thread = in_background(self.name, self._walk)

    def open(self) -> None:
        """Take what the turns need, on the thread of whoever starts the service."""

    def shut(self) -> None:
        """Let go of what `open` took; the last turn is over, or hangs."""

    def wake(self) -> None:
        """Take the next turn now; returns at once."""
        self._woken.set()

    def close(self, within: float = CLOSE_SECONDS) -> None:
        """End for good; waits so many seconds for a turn that is under way."""
        self._ending.set()
        self._woken.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(within)
        self.shut()

    def turn(self) -> float:
        """Take a turn now; return the seconds until the next one. Never raises."""
        pause: float | None = None
        try:
            if self._fence():
                pause = self._take_turn()
            self._failure = None
        except Exception as error:  # noqa: BLE001 - it is logged there
            self._complain(error)
        return self._every if pause is None else pause

    def _complain(self, error: Exception) -> None:
        """Log a failure, unless the turn before failed in the same way."""
        kind, self._failure = self._failure, type(error)
        if kind is type(error) or self.ending:
            return
        if self._private:
            log.warning("%s: %s; it goes on", self.name, type(error).__name__)
        elif isinstance(error, StoreUnavailable):
            log.warning("%s: %s", self.name, error)
        else:
            log.error("%s: the next turn tries again", self.name, exc_info=error)

    def _walk(self) -> None:
        pause = self._every
        while True:
            self._woken.wait(pause)
            self._woken.clear()
            if self.ending:
                return
            pause = self.turn()


class Runs(Protocol):
    """What a desk starts and closes: a Service, or several of them behind one door."""

    def start(self) -> None:
        """Begin."""
        ...

    def close(self, within: float = ...) -> None:
        """End for good, within so many real seconds."""
        ...


class Services:
    """The services of a desk, in the order in which they begin."""

    def __init__(self, *services: Runs) -> None:
        self._services = services

    def start(self) -> None:
        """Start each; raises what one raises, with those before it begun."""
        for service in self._services:
            service.start()

    def close(self, within: float = CLOSE_SECONDS) -> None:
        """Close each, the last one first; all together wait so many seconds at most."""
        end = MONOTONIC() + within
        for service in reversed(self._services):
            service.close(max(0.0, end - MONOTONIC()))

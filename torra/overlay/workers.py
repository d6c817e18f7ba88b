"""Threads on which questions are answered: a caller waits for one, and never longer than it wants.

They are daemons, so a question that hangs at a dead disk keeps no process from ending. A thread is
kept for the next question, because each has a connection to the database of its own.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Final, TypeVar

from torra.services import in_background
from torra.time_limit import settle

Value = TypeVar("Value")

MOST: Final = 64
"""Questions of one overlay that are under way at once, those that hang among them."""

IDLE_SECONDS: Final = 60.0
"""How long a thread waits for another question before it ends."""


class Workers:
    """The threads of one overlay in one process."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._all = 0

    @property
    def busy(self) -> int:
        """How many questions are under way."""
        return self._all - self._idle

    def run(self, work: Callable[[], Value]) -> Future[Value] | None:
        """Begin a piece of work; None when too much is under way already."""
        future: Future[Value] = Future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._all < MOST:
                try:
                    in_background("torra-overlay", self._work)
                except RuntimeError:  # the system gives no thread any more
                    return None
                self._all += 1
            else:
                return None
            self._jobs.put(partial(settle, future, work))
        return future

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    # A job may have come between the wait and the lock; it was promised a thread.
                    if not self._jobs.empty():
                        continue
                    self._idle -= 1
                    self._all -= 1
                    return
            job()
            # Nothing of the last question stays while the thread waits.
            del job
            with self._lock:
                self._idle += 1

"""Threads on which questions are answered: a caller waits for one, and never longer than it wants.

They are daemons, so a question that hangs at a dead disk keeps no process from ending. A thread is
kept for the next question, because each has a connection to the database of its own.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

Value = TypeVar("Value")

MOST: Final = 64
"""Questions of one overlay that are under way at once, those that hang among them."""

IDLE_SECONDS: Final = 60.0
"""How long a thread waits for another question before it ends."""


class Workers:
    """The threads of one overlay in one process."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
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
            elif self._all < MOST and self._started():
                self._all += 1
            else:
                return None
            self._jobs.put((future, work))
        return future

    def _started(self) -> bool:
        """Start a thread; False where the system gives none any more."""
        try:
            # No service: it takes jobs from a queue, and their number follows the need.
            threading.Thread(target=self._work, name="torra-overlay", daemon=True).start()
        except RuntimeError:
            return False
        return True

    def _work(self) -> None:
        while True:
            try:
                future, work = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    # A job may have come between the wait and the lock; it was promised a thread.
                    if not self._jobs.empty():
                        continue
                    self._idle -= 1
                    self._all -= 1
                    return
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                future.set_exception(error)
            # Nothing of the last question stays while the thread waits.
            del future, work
            with self._lock:
                self._idle += 1

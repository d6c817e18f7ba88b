"""The line in which the threads of a desk wait for their turn to write."""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """A lock that serves threads in the order in which they came.

    SQLite lets waiting writers guess when to try again, so that under load one of them can wait
    for ever; the threads of one desk queue here first.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._turns: deque[threading.Event] = deque()

    def enter(self, seconds: float) -> bool:
        """Wait for our turn; False when it did not come in time."""
        turn = threading.Event()
        with self._guard:
            self._turns.append(turn)
            if self._turns[0] is turn:
                turn.set()
        if turn.wait(max(0.0, seconds)):
            return True
        with self._guard:
            # Our turn came between the end of the wait and the guard: given up, it would block the
            # line.
            if turn.is_set():
                return True
            self._turns.remove(turn)
            return False

    def leave(self) -> None:
        """End our turn; the next one's begins."""
        with self._guard:
            self._turns.popleft()
            if self._turns:
                self._turns[0].set()

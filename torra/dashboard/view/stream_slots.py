"""The limit on open event streams: each of them holds a thread of the server.

A slot is given back when its stream ends, its reader leaves or its answer is dropped. The oldest
stream of a session gives way to a further one: the page that read it is mostly gone. A slot that
some fault never gives back is free again after its stream's life, so that no fault uses them up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

MOST: Final = 6
"""Streams of one app: a browser holds as many connections to a host."""

MOST_EACH: Final = 2
"""Streams of one session, or of one program's token: the desk's own, and one tick's."""

LIFE_SECONDS: Final = 900.0
"""A stream ends after this long; its reader comes again and misses nothing."""

SPARE_SECONDS: Final = 60.0
"""Seconds after a stream's life until its slot counts as lost."""


PATIENCE_SECONDS: Final = 1.5
"""Seconds to wait for a slot: a page that was just left gives its own back soon."""

MOST_WAITING: Final = 3
"""Most requests that wait at once: each of them holds a thread of the server."""


class SseLimit:
    """The slots of one app. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._waiting = 0
        self._taken: dict[int, tuple[str, float]] = {}
        self._leaving: set[int] = set()
        self._number = 0

    def take(
        self,
        who: str,
        monotonic: Callable[[], float],
        patience: float = PATIENCE_SECONDS,
        *,
        again: bool = False,
    ) -> int | None:
        """Take a slot for a session; wait up to `patience` seconds for one.

        The oldest of two that this session holds is told to leave, unless the reader comes `again`:
        so three readers of a session do not end each other for ever. None when for that long all
        six stay taken, or three by this session.
        """
        end = monotonic() + patience
        with self._lock:
            slot = self._take(who, monotonic(), again)
            if slot is not None or self._waiting >= MOST_WAITING:
                return slot
            self._waiting += 1
            try:
                while slot is None and (left := end - monotonic()) > 0:
                    self._lock.wait(left)
                    slot = self._take(who, monotonic(), again)
            finally:
                self._waiting -= 1
            return slot

    def release(self, slot: int) -> None:
        """Give a slot back; a second call does nothing."""
        with self._lock:
            self._taken.pop(slot, None)
            self._leaving.discard(slot)
            self._lock.notify_all()

    def leaving(self, slot: int) -> bool:
        """Return whether the stream of a slot gives way to a newer one of its session."""
        return slot in self._leaving

    def _take(self, who: str, now: float, again: bool) -> int | None:
        for number, (_, until) in self._taken.copy().items():  # a dropped answer may release here
            if until <= now:
                self._taken.pop(number, None)
        mine = [n for n, (holder, _) in self._taken.copy().items() if holder == who]
        if again and not self._leaving.issuperset(mine[: 1 - MOST_EACH]):
            return None
        self._leaving.update(mine[: 1 - MOST_EACH])
        if len(self._taken) >= MOST or len(mine) > MOST_EACH:
            return None
        self._number += 1
        self._taken[self._number] = (who, now + LIFE_SECONDS + SPARE_SECONDS)
        return self._number

    @property
    def taken(self) -> int:
        """The number of slots that are taken."""
        with self._lock:
            return len(self._taken)

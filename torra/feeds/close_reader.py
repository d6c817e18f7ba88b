"""What is read at a close on a thread of its own: a tick takes what is there after one fixed wait.

A tick begins a reading when it looks at its own bars and takes its value when its own work is done.
What belongs to a close is written at about one moment, so a value that is not whole is read again
every POLL until WAIT is over, counted from the beginning of the reading: all timeframes of a close
wait for it together. A source that hangs holds up this thread and nothing else. It is not asked
again before it has answered, and meanwhile no tick waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, Generic, TypeVar

from torra.services import Service

WAIT: Final = 0.1
"""Real seconds from the beginning of a reading for which a tick waits for it."""

POLL: Final = 0.02
"""Real seconds between two looks for what is about to come."""

log = logging.getLogger("torra")


@dataclass(slots=True)
class Reading:
    """Something that is read; `complete` says that nothing more is waited for."""

    begun: float = field(default=0.0, init=False)
    complete: bool = field(default=False, init=False)

    def remaining(self, wait: float) -> float:
        """Return the seconds of a wait that are left since it began."""
        return max(0.0, self.begun + wait - monotonic())


R = TypeVar("R", bound=Reading)


class CloseReader(Service, Generic[R]):
    """Reads what ticks begin; its thread starts with a reading and ends with the last open one.

    `wait`: the real seconds for which a tick waits for an answer that is slow.
    """

    def __init__(self, name: str, wait: float = WAIT) -> None:
        super().__init__(name, POLL, self._turn)
        self._wait_s = wait
        self._state = threading.Condition()
        self._newest: dict[Hashable, R] = {}
        self._under_way: R | None = None

    def _read(self, reading: R) -> bool:
        """Read once; return whether the value is whole. Runs without the lock of the state."""
        raise NotImplementedError

    def _completed(self, reading: R) -> None:
        """Do what is to be done when nobody waits for a reading any more."""

    def _begin(self, key: Hashable, reading: R) -> R | None:
        """Begin to read in place of an older reading; None while the source hangs."""
        with self._state:
            if self.ending or self.hangs():
                return None
            try:
                self.start()
            except RuntimeError as error:  # the system gives no more threads
                log.warning("%s cannot be read: %s", self.name, error)
                return None
            reading.begun = monotonic()
            self._newest[key] = reading
        self.wake()
        return reading

    def _wait(self, reading: R) -> None:
        """Wait, with the lock of the state, until a reading is complete or its wait is over."""
        self._state.wait_for(
            lambda: reading.complete or self.ending, reading.remaining(self._wait_s)
        )

    def hangs(self) -> bool:
        """Return whether the source has not answered for a reading whose wait is over."""
        reading = self._under_way
        return reading is not None and not reading.remaining(self._wait_s)

    def _open(self) -> list[R]:
        """Return the readings that are not complete; the lock of the state is held."""
        return [item for item in self._newest.values() if not item.complete]

    def _walk(self) -> None:
        while True:
            self._woken.wait(POLL)
            self._woken.clear()
            self.turn()
            with self._state:  # a reading that begins now sees no thread, and starts one
                if self.ending or not self._open():
                    self._thread = None
                    return

    def _turn(self) -> None:
        with self._state:
            begun = self._open()
        for reading in begun:
            self._under_way = reading
            try:
                whole = self._read(reading)
            finally:
                self._under_way = None
            if whole or monotonic() - reading.begun >= WAIT:
                with self._state:
                    reading.complete = True
                    self._state.notify_all()
                self._completed(reading)

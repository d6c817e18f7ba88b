"""One lock for each home: the desk that has it is the only one that works there.

The lock is the operating system's, on a file of its own. It ends with the process that holds it,
however that dies, and passes to no child: the file is closed where another program begins, or in a
fork at once. A
process that stands still keeps it. The desk's scheduler takes it and nobody else; whoever only
wants to know whether a desk works asks `is_locked`.

Somebody may delete the file under a desk, and then another one could lock a new file of the same
name. So `is_owned` compares the file at the path with the one that is locked, and the desk asks it
in every transaction (torra.store.ticks, `require_desk`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from torra import owner_only
from torra.clock import System, real_sleep
from torra.errors import ConfigError
from torra.home import DESK_LOCK
from torra.whole_files import LOOK_EVERY, locked

PATIENCE: Final = 1.0
"""Real seconds that `acquire` tries: a look of somebody else holds the lock for a moment."""


_LOCKS: Final = weakref.WeakSet["DeskLock"]()


class DeskLock:
    """The lock of a home, as one process sees it. Any thread may ask."""

    def __init__(self, home: Path) -> None:
        self.path = home / DESK_LOCK
        self._file: IO[bytes] | None = None
        self._process = 0
        self._guard = threading.Lock()
        _LOCKS.add(self)

    def acquire(self, patience: float = PATIENCE) -> bool:
        """Take the lock, and make its file if there is none; False while another one holds it.

        Tries for `patience` real seconds. Raises ConfigError where the home gives no lock.
        """
        return _within(patience, self._take)

    def is_owned(self) -> bool:
        """Return whether this process has the lock, on the very file that the path names now."""
        file = self._file
        if file is None or self._process != os.getpid():  # a fork has the file and not the lock
            return False
        try:
            return _names(self.path, file)
        except (OSError, ValueError):  # out of reach, or released at this moment
            return False

    def restore(self, may: Callable[[], bool] = lambda: True) -> bool:
        """Lock the file at the path in place of one that was deleted or replaced.

        False where another one holds it, where `may`, asked while nobody else can have it, says
        no, and where this lock was never taken or was released. Raises ConfigError where the home
        gives no lock.
        """
        return _within(
            PATIENCE,
            lambda: self._take(may, again=True),
            lambda: self._file is not None and may(),
        )

    def release(self) -> None:
        """Give the lock back; the file stays, for deleting it would let two hold it."""
        with self._guard:
            file, self._file = self._file, None
            if file is not None:
                file.close()

    def let_go(self) -> None:
        """Close the file that a fork has of its parent: else it would keep the lock alive."""
        if self._file is not None:
            self._file.close()
        self._file, self._guard = None, threading.Lock()  # held for ever by no thread of the fork

    def __del__(self) -> None:
        self.release()

    def _take(self, may: Callable[[], bool] = lambda: True, *, again: bool = False) -> bool:
        with self._guard:
            if self.is_owned():
                return True
            if again and self._file is None:
                return False
            try:
                file = open(  # noqa: SIM115 - it stays open for as long as the lock is held
                    self.path, "ab", opener=partial(os.open, mode=owner_only.FILE)
                )
            except OSError as error:
                raise self._unusable(error) from error
            try:
                if self._is_ours(file):  # only the path was out of reach
                    file.close()
                    return True
                # Deleted since it was opened, it is nobody's lock: the next try makes a new one.
                if not (locked(file) and _names(self.path, file) and may()):
                    file.close()
                    return False
            except BaseException as error:
                file.close()
                if isinstance(error, OSError):
                    raise self._unusable(error) from error
                raise
            old, self._file, self._process = self._file, file, os.getpid()
            if old is not None:
                old.close()
            return True

    def _is_ours(self, file: IO[bytes]) -> bool:
        mine = self._file
        if mine is None or self._process != os.getpid():
            return False
        return os.path.samestat(os.fstat(mine.fileno()), os.fstat(file.fileno()))

    def _unusable(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"{self.path} cannot be locked: {error.strerror}. A desk needs a home on a disk that "
            "locks files, in a folder that it may write to; set TORRA_HOME"
        )


def is_locked(home: Path) -> bool:
    """Return whether a desk works on a home, or a restore; makes and changes nothing.

    False too where the file cannot be opened or locked at all: no desk works there either.
    """
    with suppress(OSError), (home / DESK_LOCK).open("rb+") as file:
        return not locked(file, shared=True)  # shared, so that two looks do not meet each other
    return False


def _within(
    patience: float, take: Callable[[], bool], may: Callable[[], bool] = lambda: True
) -> bool:
    """Try to take a lock for so many real seconds, and no longer than `may` says yes."""
    clock = System()
    end = clock.monotonic() + patience
    while not take():
        if clock.monotonic() >= end or not may():
            return False
        real_sleep(LOOK_EVERY)
    return True


def _let_go() -> None:
    for lock in _LOCKS:
        lock.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _names(path: Path, file: IO[Any]) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    return False

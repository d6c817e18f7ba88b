"""Atomic file writing: after a crash or power cut a file is there whole or not at all.

`write_whole` is the one way to write a file, but for the folders of channels
(torra.bridges.torra.drop_folder), which say why.

`alone` is for whoever reads a file, changes what it says and writes it again: meanwhile nobody else
does, in no process. The lock is a file of its own, since the other one is replaced; it stays there,
empty, and a process that dies lets go of it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from torra.clock import System, real_sleep, token

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

ANYBODY: Final = 0o666
"""The rights of a new file, of which the process's umask takes away what it must not have."""

PATIENCE: Final = 10.0
"""Real seconds that a writer waits for another one's lock."""

LOOK_EVERY: Final = 0.02
"""Real seconds between two tries for a lock."""


def write_whole(path: Path, content: bytes, *, mode: int = ANYBODY, replace: bool = True) -> None:
    """Write a file into an existing folder; raises OSError, and leaves no part of it then.

    After a crash or a power cut it is the old one or the new one. Of two writers at once the later
    one's is whole too. Nobody has more rights than `mode` at any moment. Unless it may `replace`,
    a name that is taken, even by a dangling link, is FileExistsError.
    """
    # A name of chance: two writers at once must not share a partial file.
    unnamed = path.with_name(f".{path.name}.{token(4)}.partial")
    try:
        # With its rights from the first moment, which Path.open has no word for.
        with open(unnamed, "xb", opener=partial(os.open, mode=mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            unnamed.replace(path)
        else:
            _name_if_free(unnamed, path)
    finally:
        # Also after success: a hard link leaves the first name behind.
        unnamed.unlink(missing_ok=True)
    # The name is on the disk only when the folder is.
    sync_folder(path.parent)


@contextmanager
def alone(lock: Path, *, mode: int = ANYBODY, patience: float = PATIENCE) -> Iterator[None]:
    """Hold a lock file that is made if it is missing; raises OSError.

    TimeoutError, which is one, where another process or thread holds it for longer.
    """
    with open(lock, "ab", opener=partial(os.open, mode=mode)) as file:
        clock = System()
        end = clock.monotonic() + patience
        while not locked(file):
            if clock.monotonic() > end:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds it", str(lock))
            real_sleep(LOOK_EVERY)
        yield


def locked(file: IO[Any], *, shared: bool = False) -> bool:
    """Lock an open file until it is closed; False when it is held already. Raises OSError.

    Any number may share a lock, where the system has such locks.
    """
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    # A lock that is held: Windows says PermissionError, other systems BlockingIOError.
    except (BlockingIOError, PermissionError):
        return False
    return True


def name_once(unnamed: Path, path: Path) -> None:
    """Give a finished file its name in one step; raises FileExistsError where the name is taken.

    Any other OSError: the disk has no such step, or fails. The file may keep its first name too.
    """
    if os.name == "nt":
        unnamed.rename(path)  # refuses to replace, unlike elsewhere
    else:
        os.link(unnamed, path)


def sync_folder(folder: Path) -> None:
    """Wait until a folder's names are on the disk, where the system has a way; raises OSError."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _name_if_free(unnamed: Path, path: Path) -> None:
    try:
        name_once(unnamed, path)
    except FileExistsError:
        raise
    except OSError:
        if os.name == "nt":
            raise
        # A disk without hard links: whoever makes the empty file has the name, and a crash right
        # here leaves it empty.
        path.open("xb").close()
        unnamed.replace(path)

"""Reads and makes files in folders that others write to, where a name may be no file at all.

A pipe that nobody writes to would hold its reader for ever, and a link leads elsewhere. So what is
read must be a regular file, and what is made is new: nothing is written through a link. A name that
is taken, by whatever it is, lies there (`lies`): a HALT of any kind halts.

Everything raises OSError, and NotRegular, which is one, for what is no regular file.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Final

NO_FILE: Final = "it is no regular file"

WITHOUT_WAITING: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Opening a pipe must not wait for somebody who writes to it."""


class NotRegular(OSError):
    """A name under which there is no regular file."""


def lies(path: Path) -> bool:
    """Return whether a name is taken: by a file, a folder, a pipe, or a link to nothing."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file, or a link to one, for reading."""
    _check(path.stat(), path)  # before it is opened: opening a device may do something
    file = os.fdopen(os.open(path, WITHOUT_WAITING), "rb")
    try:
        # Again, of what was really opened: the name may have another owner by now.
        _check(os.fstat(file.fileno()), path)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: Path, limit: int = -1) -> bytes:
    """Return the beginning of a regular file, `limit` bytes at most; -1: all of it."""
    with open_regular(path) as file:
        return file.read(limit)


def put_new(path: Path, text: str) -> None:
    """Make a file with a text; raises FileExistsError where its name is taken, by whatever it is.

    The file is there before its text is: on a full disk it is empty.
    """
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def _check(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotRegular(errno.EINVAL, NO_FILE, str(path))

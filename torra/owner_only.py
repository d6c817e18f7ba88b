"""Keeps a home to its owner: what a desk remembers is nobody else's on the same machine.

A new home, its backups and its journals of orders are made with the mode 0700 (folders) or 0600
(files). `mend` takes the rights of others away from a home that an earlier program made;
`open_to_others` says whether they still have some. Windows keeps no such modes: there the rights of
the folder in which a home lies hold, and for a folder of the user's own those are his alone.

Making raises OSError. Mending raises nothing: what is another user's stays as it is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from torra.home import BACKUP_FOLDER, DATABASE, SIDE_FILES, STATE_FOLDER, has_database

FOLDER: Final = 0o700
FILE: Final = 0o600
"""The rights of what a desk makes for itself."""

OTHERS: Final = 0o077
"""The rights of group and world."""


def make_folder(path: Path) -> None:
    """Make a folder that only its owner may open; one that is there stays as it is.

    Folders above it that are missing too: Path.mkdir would give those the usual rights.
    """
    if not path.parent.exists():
        make_folder(path.parent)
    path.mkdir(mode=FOLDER, exist_ok=True)


def make_file(path: Path) -> None:
    """Make an empty file that only its owner may read; one that is there stays as it is."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, FILE))


def open_to_others(home: Path) -> bool:
    """Return whether others may look into a desk's home; never on Windows."""
    # Nobody reaches what lies in a closed folder, whatever rights that has itself.
    return os.name == "posix" and has_database(home) and bool(_mode(home) & OTHERS)


def mend(home: Path) -> str:
    """Take the rights of others away from a desk's home; return what is to be said, "" for none."""
    was_open = open_to_others(home)
    if os.name == "posix" and has_database(home):
        for path in _kept(home):
            if _mode(path) & OTHERS:
                with suppress(OSError):
                    path.chmod(FOLDER if path.is_dir() else FILE)
    if not was_open or open_to_others(home):
        return ""
    return f"others of this machine could read {home}: from now on only its owner can"


def _kept(home: Path) -> Iterator[Path]:
    yield home
    yield from (home / f"{DATABASE}{end}" for end in ("", *SIDE_FILES))
    yield home / STATE_FOLDER
    yield home / BACKUP_FOLDER
    with suppress(OSError):
        yield from (home / BACKUP_FOLDER).iterdir()


def _mode(path: Path) -> int:
    """Return the rights of a file or folder, 0 for none, and for a link to something elsewhere."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return 0
    return 0 if stat.S_ISLNK(mode) else stat.S_IMODE(mode)

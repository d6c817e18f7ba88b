"""The names of everything in TORRA_HOME, and whether a home has lost its database.

Every module that writes or reads a file of a home takes its name from here. `lost` looks for signs
of an earlier database: a new one in its place would let a desk trade without memory of what it has
sent, so a caller asks before it opens a database. Signs are what only a desk with a database leaves
behind; settings and tokens are none, they are there before the first start. Nothing here writes,
and nothing raises. torra.desk.checks decides what to do about a loss.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

DATABASE: Final = "torra.db"
"""The desk's database; SQLite keeps -wal and -shm beside it."""

SIDE_FILES: Final = ("-wal", "-shm")
"""What those two are called after."""

DESK: Final = "desk.json"
"""The instances and channels of the desk."""

DESK_BEFORE: Final = "desk.json.before"
"""desk.json as it was before a symbol was added on a page."""

PRICES: Final = "prices.json"
"""The user's own prices of models."""

ACCESS: Final = "access.json"
"""Tokens of the pages: never in a backup."""

ACCESS_LOCK: Final = "access.lock"
"""Held while the tokens are read, changed and written; always empty."""

DESK_LOCK: Final = "desk.lock"
"""Held by the desk that works on the home (torra.desk_lock); always empty, never in a backup."""

PAGES: Final = "pages.json"
"""Where the pages are served, put down by a desk that serves them."""

HALT: Final = Path("control") / "HALT"
"""The kill switch as a file, below a home as below the folder of a channel."""

BACKUP_FOLDER: Final = "backups"

UPLOADS: Final = "uploads"
"""Files of bars that a person put there for replays started from a page."""

TRIED: Final = "tried"
"""What settings tried on the last days came to (torra.replay.tried), the newest few."""

FILMS: Final = "films"
"""Films of scans (torra.film), the newest few."""

STATE_FOLDER: Final = "channels"
"""Torra's own state of a channel whose folder belongs to somebody else."""

BACKUP_NAME: Final = re.compile(r"(?:desk-\d+(?:-([0-9a-f]{8}))?|torra-\d+)-(\d{8}T\d{6}Z)\.db")
"""A backup by its name: made by a person or by a migration, number of the schema, the mark of the
desk, time in UTC."""

LIVED: Final = "lived.json"
"""Since when a desk has lived in this home, put down once its database is there; never in a backup,
for a home that is restored into has a database too."""

SIGNS: Final = (LIVED, PAGES, HALT.parts[0], f"{STATE_FOLDER}/*/*_orders.jsonl")
"""Left in a home by a desk that lived there, served its pages, was halted or resumed, or sent an
order."""

HOSTED: Final[dict[Path, None]] = {}
"""The homes of this process's overlays (torra.overlay), in the order in which they were made: the
pages of the same process may show one before its first question has made its database.
"""

LOST: Final = "is gone or empty, and there was one"


KEPT: Final = frozenset(
    (
        *(DATABASE, *(DATABASE + end for end in SIDE_FILES), DESK, DESK_BEFORE, PRICES),
        *(ACCESS, ACCESS_LOCK, DESK_LOCK, PAGES, LIVED),
    )
)
"""Files that lie in a home itself."""


def has_database(home: Path) -> bool:
    """Return whether a home has a database: a question must not make one."""
    return (home / DATABASE).exists()


def is_kept(path: Path) -> bool:
    """Tell whether a name is that of a file which a home lives by: nobody else may write there."""
    try:
        place = path.resolve()
        return place.name in KEPT and has_database(place.parent)
    except OSError:
        return False


def lost(path: Path) -> bool:
    """Return whether a database that ought to be there is missing or empty."""
    return not _bytes(path) and _was_there(path)


def backups(folder: Path) -> list[Path]:
    """Return the backups of a folder by their names, the newest first; none where it is missing."""
    with suppress(OSError):
        paths = [path for path in folder.iterdir() if BACKUP_NAME.fullmatch(path.name)]
        # By the time in the name: a copied backup has a newer time of change.
        return sorted(paths, key=_age, reverse=True)
    return []


def _age(path: Path) -> tuple[str, str]:
    match = BACKUP_NAME.fullmatch(path.name)
    return (match[2] if match else "", path.name)


def _was_there(path: Path) -> bool:
    home, log = path.parent, path.with_name(f"{path.name}-wal")
    # A WAL with pages in it, or a backup, was written beside a database.
    if _bytes(log) or backups(home / BACKUP_FOLDER):
        return True
    with suppress(OSError):
        return any(file for sign in SIGNS for file in home.glob(sign))
    return False


def _bytes(path: Path) -> int:
    """Return the size of a file in bytes, 0 where there is none, 1 where it cannot be told.

    1 also stands for what is no file: opening it will say what it is.
    """
    try:
        return path.stat().st_size or int(not path.is_file())
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError:
        return 1

"""What SQLite's errors mean, and what a person can do about each."""

from __future__ import annotations

import math
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from torra.errors import StoreBroken, StoreUnavailable
from torra.home import BACKUP_FOLDER

RESTORE: Final = (
    f"its backups are in its {BACKUP_FOLDER} folder; `torra restore` lists a desk's and puts one "
    "in its place"
)

LOCKED: Final = "locked"
REMEDIES: Final = {
    LOCKED: "another program is writing to it; close that program or wait until it has finished",
    "full": "free some space on its volume; nothing was damaged",
    "readonly": "make the file and its folder writable for this user",
    "disk I/O": "check its volume; nothing of the last transaction was kept",
    "unable to open": "check that its folder exists and is writable",
    "malformed": RESTORE,
    "not a database": RESTORE,
}
"""Remedies, by a word of SQLite's message."""

OF_THE_DISK: Final = ("disk I/O", "full", "No space")
"""Words of messages that a volume without room brings: SQLite, whose -shm cannot grow there,
speaks of an I/O error."""

NO_ROOM: Final = 1_000_000
"""Fewer bytes free are no room: a log and its index begin with tens of thousands."""

WANTED_BYTES: Final = 200_000_000
"""Below this a day's log, a backup before a migration, or a copy for `torra tick` may not fit."""


def refuse(path: Path, error: BaseException | None) -> None:
    """Raise what SQLite's error means: a lock passes by itself, everything else wants a person.

    Defects of the program (a broken rule, a wrong statement) are not translated.
    """
    defect = isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError)
    if isinstance(error, sqlite3.DatabaseError) and not defect:
        kind = StoreUnavailable if LOCKED in str(error) else StoreBroken
        raise kind(explain(path, error)) from error


def explain(path: Path, error: Exception) -> str:
    """Name the file, what SQLite said and the remedy."""
    message = str(error)
    if any(word in message for word in OF_THE_DISK) and (free := _free(path)) < NO_ROOM:
        return (
            f"{path}: {message}: {path.parent} has {free:,.0f} bytes free; make room there, "
            f"{WANTED_BYTES // 10**6} MB at least; nothing was damaged"
        )
    for word, remedy in REMEDIES.items():
        if word in message:
            return f"{path}: {message}; {remedy}"
    return f"{path}: {message}; run `torra doctor` on it"


def _free(path: Path) -> float:
    """Return the bytes free beside a file; infinity where nobody can tell."""
    try:
        return float(shutil.disk_usage(path.parent).free)
    except OSError:
        return math.inf

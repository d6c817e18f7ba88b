"""Whether a home has lost its database: there is none, or one without a byte, and there was one.

A new database in the place of a lost one would let a desk trade without memory of what it has sent:
whoever opens one asks here first. Signs of an earlier one are what only a desk with a database
leaves in its home; settings and tokens are none, which are there before the first start. Only
looks, and never raises; torra.desk.start_check says what to do about it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from torra.backup.copies import listed
from torra.store.connection import BACKUP_FOLDER

SIGNS: Final = ("pages.json", "control", "channels/*/*_orders.jsonl")
"""Left in a home by a desk that served its pages, was halted or resumed, or sent an order."""

LOST: Final = "is gone or empty, and there was one"


def lost(path: Path) -> bool:
    """Return whether a database, by its path, is not there or empty and ought to be."""
    return not _bytes(path) and _was_there(path)


def _was_there(path: Path) -> bool:
    home, log = path.parent, path.with_name(f"{path.name}-wal")
    if _bytes(log) or listed(home / BACKUP_FOLDER):
        return True
    with suppress(OSError):
        return any(found for sign in SIGNS for found in home.glob(sign))
    return False


def _bytes(path: Path) -> int:
    """Return the bytes of a file, 0 where there is none; what is no file, or cannot be told, is 1.

    Whoever opens that says what it is.
    """
    try:
        return path.stat().st_size or int(not path.is_file())
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError:
        return 1

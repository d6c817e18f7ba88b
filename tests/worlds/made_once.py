"""New databases that begin as a copy of one: running every step of the schema takes ten times that.

The first new database of a process is made by the steps themselves, and so is each one that a test
makes which has changed them. A copy is what the first one is, so nobody looks at its schema again.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import instance_database
from tests.worlds.stores import COPIES, new_database
from torra.store import connection, migrations


class Made:
    """Whether new files begin as a copy."""

    def __init__(self) -> None:
        self.forgotten = False
        """Every new file is made by the steps: for the tests of the schema."""
        self._own = dict(vars(migrations))

    def usable(self) -> bool:
        """Tell whether no test has changed something of the schema."""
        same = all(vars(migrations).get(name) is value for name, value in self._own.items())
        return same and not self.forgotten


@contextmanager
def made_once() -> Iterator[Made]:
    """Let a file that a desk has just made be a database already, as the steps would make it."""
    look, migrate, copying = connection.inspect, migrations.migrate, threading.Lock()
    template, known = new_database(), set[Path]()

    def looked_at(path: Path, busy_seconds: float = connection.BUSY_SECONDS) -> None:
        usable = made.usable()
        # A file may not be closed while this process has it open: SQLite would lose its locks.
        with copying:
            copied = path in COPIES
            COPIES.discard(path)
            known.discard(path)
            if usable and path.is_file() and path.stat().st_size == 0:
                copied = _begin(path, template)
            if usable and copied:
                known.add(path)
                return
        look(path, busy_seconds)

    def migrated(db: Any, path: Path, *how: Any) -> Path | None:
        with copying:
            if path in known:
                known.discard(path)
                return None
        return migrate(db, path, *how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "migrate", migrated)
        patch.setattr(instance_database, "inspect", looked_at)
        made = Made()
        yield made


def _begin(path: Path, template: bytes) -> bool:
    """Write the bytes into an empty file, unless another process has done so meanwhile.

    Where that cannot be, the file stays as it is: what the desk says of it is its own.
    """
    with suppress(OSError), path.open("r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if path.stat().st_size > 0:
            return False
        if file.write(template) == len(template):
            return True
        file.truncate(0)
    return False

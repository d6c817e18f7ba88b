"""A program that knows a step more than this one, which adds a table and a column, and counts.

And databases of other versions: `of_before` makes the one of a Torra before `schema_1`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch

import sqlite_utils
from sqlite_utils import Migrations

from tests.worlds.stores import open_database
from torra.store import migrations

LATER: Final = migrations.NEWEST + 1

SCRIPT: Final = """
CREATE TABLE moods (id INTEGER PRIMARY KEY, verdict TEXT NOT NULL);
CREATE INDEX moods_verdict ON moods (verdict);
INSERT INTO moods SELECT id, coalesce(verdict, '') FROM sentiment;
ALTER TABLE latches ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm';
"""

BEFORE: Final = {
    "steps": "UPDATE _sqlite_migrations SET name = '0022_lessons' WHERE name = 'schema_1'",
    "tables": "DROP TABLE _sqlite_migrations",
}
"""What makes a database look as one of before: by the names of its steps, or by its tables."""


@contextmanager
def second_step(script: str = SCRIPT) -> Iterator[None]:
    """Let the program know the step LATER."""
    later = Migrations("torra")
    for step in migrations.steps.pending(sqlite_utils.Database(memory=True)):
        later(name=step.name)(step.fn)
    later(name=f"schema_{LATER}")(lambda db: db.executescript(script))
    migrations._made.cache_clear()
    with patch.multiple(migrations, steps=later, NEWEST=LATER):
        yield
    migrations._made.cache_clear()


def of_before(folder: Path, how: str = "steps") -> Path:
    """Return the database of a Torra before `schema_1`, without a log."""
    open_database(folder).close()
    path = folder / "torra.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(BEFORE[how])
    return path


def number_of(path: Path) -> int:
    """Return the number of a file's schema."""
    db = sqlite_utils.Database(path)
    try:
        return migrations.schema(db)
    finally:
        db.close()

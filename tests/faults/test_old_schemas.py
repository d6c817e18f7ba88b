"""A database of every schema that there was becomes the present one with all its rows (D8).

Each has rows in every table. After the migration every value of every column that it had is what it
was, to the byte and the storage class; the backup that was made first opens, is whole, and is the
old database. Killed at any statement, a migration leaves the old database or the new one.
test_migrations has the scorer's table alone, and what a migration refuses.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils

from tests.faults.old_schemas import build, kept, only
from tests.store.test_migrations import _migrate_in_child, backups, schema_of
from tests.worlds.stores import open_database
from torra.store import migrations

NEWEST = int(migrations.STEPS[-1][:4])


@pytest.mark.journey
@pytest.mark.parametrize("step", migrations.STEPS)
def test_no_value_of_an_older_schema_changes(
    step: str, tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    path = build(tmp_path / "torra.db", step, scaled(10_000, least=20))
    before, schema = kept(path), schema_of(path)
    number = migrations.schema(open_then_close(tmp_path))
    assert number == NEWEST
    after = kept(path)
    assert only(before, after) == before
    tallied(after)
    (backup,) = backups(tmp_path)
    assert (kept(backup), schema_of(backup)) == (before, schema)
    with closing(sqlite3.connect(backup)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    rows = sum(len(found) - 1 for found in before.values())
    assert all(len(found) > 1 for found in before.values()), "a table has no row"
    record_property("seen", f"{rows:,} rows in tables of {len(before)} kinds, 0 bytes changed")


def open_then_close(folder: Path) -> sqlite_utils.Database:
    """Open as a desk does, close, and return a connection to what is there now."""
    database = open_database(folder)
    assert list(database.connection().execute("PRAGMA integrity_check")) == [("ok",)]
    database.close()
    return sqlite_utils.Database(folder / "torra.db")


def tallied(after: dict[str, list[tuple[Any, ...]]]) -> None:
    """What a step counts up is counted: each chain is in one tally."""
    names, *rows = after["verdict_tallies"]
    at = 2 * names.index("ticks") + 1
    assert sum(int(row[at]) for row in rows) == len(after["chains"]) - 1


def test_a_kill_inside_any_migration_leaves_old_or_new(
    tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    kills, outcomes = scaled(100, least=3), Counter[str]()
    whole: dict[str, tuple[Any, int]] = {}
    for number, step in zip(range(kills), cycle(reversed(migrations.STEPS[1:])), strict=False):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = build(folder / "torra.db", step, 20)
        before, schema = kept(path), schema_of(path)
        if step not in whole:
            calm = tmp_path / step
            calm.mkdir()
            build(calm / "torra.db", step, 20)
            statements = _migrate_in_child(calm, stop_at=None)
            whole[step] = (schema_of(calm / "torra.db"), statements)
        new, statements = whole[step]
        # a step of the golden ratio meets all parts of a migration, however many kills there are
        at = 1 + int((number + 1) * 0.618 % 1 * statements)
        assert _migrate_in_child(folder, stop_at=at) == 0, "it was not killed"
        left = schema_of(path)
        assert left in (schema, new), f"{step}: neither old nor new after statement {at}"
        outcomes["old" if left == schema else "new"] += 1
        assert only(before, kept(path)) == before
        open_then_close(folder).close()
        assert schema_of(path) == new
        assert only(before, kept(path)) == before
    assert outcomes["old"]
    told = " and ".join(f"{count} the {what} one" for what, count in sorted(outcomes.items()))
    record_property("seen", f"{kills} kills left {told}")

"""A scorer's file and one of an earlier step become the newest: rows kept, backup first.

Files of before `schema_1` and of a newer program are refused untouched.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlite_utils

from instance_database import Database
from tests.conftest import Scale
from tests.worlds import legacy_database
from tests.worlds.made_once import Made
from tests.worlds.second_step import BEFORE, LATER, number_of, of_before, second_step
from tests.worlds.stores import NOON, PROFILE, Hand, count, open_database, save
from torra.config import ROOT
from torra.errors import ConfigError, SchemaMismatch
from torra.store import connection as store_connection
from torra.store import migrations

TABLES = {
    "sentiment", "chains", "journal", "instructions", "calls", "ticks", "bars", "record_highs",
    "signals", "signal_events", "latches", "paper_cursor", "desk_run", "desk_state",
    "trading_config",
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _made_anew(databases_are_made_once: Made | None) -> Iterator[None]:
    """Have every new database made by the steps."""
    if databases_are_made_once is None:
        yield
        return
    databases_are_made_once.forgotten = True
    yield
    databases_are_made_once.forgotten = False


def legacy(folder: Path, rows: int = 50, **how: str) -> Path:
    return legacy_database.build(folder / "torra.db", rows, **how)


def schema_of(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return {f"{name}: {sql}" for name, sql in found}


def backups(folder: Path) -> list[Path]:
    return sorted((folder / "backups").glob("*"))


def test_a_fresh_database_has_everything_and_needs_no_backup(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "torra.db", now=Hand())
    assert set(database.connection().table_names()) >= TABLES
    assert migrations.schema(database.connection()) == migrations.NEWEST == 2
    assert backups(tmp_path) == []


def test_a_legacy_database_keeps_every_byte(tmp_path: Path, scaled: Scale) -> None:
    path = legacy(tmp_path, scaled(10_000, least=200))
    before = legacy_database.read(path)
    open_database(tmp_path).close()
    assert legacy_database.read(path) == before


def test_the_backup_is_the_old_file_and_opens(tmp_path: Path) -> None:
    path = legacy(tmp_path)
    rows, schema = legacy_database.read(path), schema_of(path)
    open_database(tmp_path).close()
    (backup,) = backups(tmp_path)
    assert backup.name == "torra-0-20260213T120000Z.db"
    assert (legacy_database.read(backup), schema_of(backup)) == (rows, schema)
    with closing(sqlite3.connect(backup)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)


def test_legacy_rows_belong_to_no_chain(tmp_path: Path) -> None:
    legacy(tmp_path)
    database = open_database(tmp_path)
    assert (count(database, "chains"), database.ticks("BTCUSD", "M15")) == (0, [])
    saved = save(database, NOON, 0.25)
    assert saved.consensus == 0.25
    memory = database.memory_context(
        "BTCUSD", "M15", as_of=NOON, profile=PROFILE, symbol="BTCUSD", price=1.0
    )
    assert memory["sentiment_trend"] == []
    assert count(database, "sentiment") == 51


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = legacy(tmp_path)
    open_database(tmp_path).close()
    schema = schema_of(path)
    open_database(tmp_path, Hand(NOON.replace(hour=13))).close()
    assert schema_of(path) == schema
    assert len(backups(tmp_path)) == 1


@pytest.mark.parametrize("name", sorted(legacy_database.COLUMNS))
def test_a_missing_column_is_named(tmp_path: Path, name: str) -> None:
    path = legacy(tmp_path, without=name)
    schema = schema_of(path)
    with pytest.raises(ConfigError, match=rf"torra\.db: .* no column {name}; add it"):
        open_database(tmp_path)
    assert schema_of(path) == schema
    assert backups(tmp_path) == []


def test_an_unknown_column_that_demands_a_value_is_named(tmp_path: Path) -> None:
    legacy(tmp_path, extra="TEXT NOT NULL")
    with pytest.raises(ConfigError, match=r"chart_note.*default"):
        open_database(tmp_path)


def test_a_table_of_someone_else_is_not_taken(tmp_path: Path) -> None:
    with closing(sqlite3.connect(legacy(tmp_path))) as connection:
        connection.execute("CREATE TABLE trading_config (id INTEGER)")
    with pytest.raises(ConfigError, match="trading_config that Torra did not make; rename"):
        open_database(tmp_path)


def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "torra.db"
    path.write_bytes(b"timestamp,price_action\n" * 100)
    with pytest.raises(ConfigError, match=r"torra\.db is not a database.*backups"):
        open_database(tmp_path)
    assert path.read_bytes() == b"timestamp,price_action\n" * 100
    with pytest.raises(ConfigError, match="is a folder"):
        Database.open(tmp_path, now=Hand())


# --- another version's ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", BEFORE)
def test_a_database_of_before_is_refused_untouched(tmp_path: Path, how: str) -> None:
    path = of_before(tmp_path, how)
    before = path.read_bytes()
    told = r"torra\.db was made by Torra 0\.1\.0 before 2026-11-29; export it with that version, or"
    with pytest.raises(SchemaMismatch, match=told):
        open_database(tmp_path)
    assert path.read_bytes() == before
    assert {entry.name for entry in tmp_path.iterdir()} <= {"torra.db", "torra.db-shm"}


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    with second_step():
        open_database(tmp_path).close()
    before = (tmp_path / "torra.db").read_bytes()
    with pytest.raises(
        SchemaMismatch, match=rf"schema_{LATER}, newer than .* schema_{LATER - 1}; update"
    ):
        open_database(tmp_path)
    assert (tmp_path / "torra.db").read_bytes() == before


# --- a later step ---------------------------------------------------------------------------------


def test_the_steps_are_numbered_in_order() -> None:
    names = [step.name for step in migrations.steps.pending(sqlite_utils.Database(memory=True))]
    assert names == [f"schema_{number + 1}" for number in range(migrations.NEWEST)]


def of_step_1(folder: Path) -> Path:
    """Return a scorer's file that was taken over, with a tick."""
    path = legacy(folder)
    with closing(open_database(folder)) as database:
        save(database, NOON, 0.25)
    for backup in backups(folder):
        backup.unlink()
    return path


def test_a_later_step_keeps_every_row_and_its_backup_is_the_file_before(tmp_path: Path) -> None:
    path = of_step_1(tmp_path)
    rows, old = legacy_database.read(path), schema_of(path)
    with second_step():
        database = open_database(tmp_path)
        assert (count(database, "moods"), count(database, "chains")) == (51, 1)
        database.close()
        assert number_of(path) == LATER
    assert legacy_database.read(path) == rows
    (backup,) = backups(tmp_path)
    assert backup.name == f"torra-{LATER - 1}-20260213T120000Z.db"
    assert (legacy_database.read(backup), schema_of(backup)) == (rows, old)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("CREATE TABLE Moods (id INTEGER PRIMARY KEY)", "table Moods"),
        ("CREATE VIEW moods AS SELECT 1 AS id", "view moods"),
        ("CREATE INDEX moods_verdict ON sentiment (timestamp)", "index moods_verdict"),
    ],
)
def test_a_name_of_someone_else_that_a_later_step_makes_is_not_taken(
    tmp_path: Path, made: str, said: str
) -> None:
    """The scorer goes on in the file that was taken over."""
    path = of_step_1(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(made)
    old = schema_of(path)
    with second_step(), pytest.raises(ConfigError, match=f"{said} that Torra did not make; rename"):
        open_database(tmp_path)
    assert (schema_of(path), backups(tmp_path)) == (old, [])


def test_a_file_that_is_migrated_meanwhile_is_not_taken_for_altered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number is read before the migration of another program, its structure after it."""
    path = of_step_1(tmp_path)
    number = migrations.schema

    def schema(db: sqlite_utils.Database) -> int:
        found = number(db)
        with closing(sqlite3.connect(path)) as other:
            migrations.steps.apply(sqlite_utils.Database(other, execute_plugins=False))
        return found

    with second_step(), closing(sqlite3.connect(path, isolation_level=None)) as ours:
        monkeypatch.setattr(migrations, "schema", schema)
        found = migrations.structure(sqlite_utils.Database(ours, execute_plugins=False))
    assert found.refused == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("begin", [legacy, of_step_1])
def test_a_kill_inside_a_migration_leaves_old_or_new(
    tmp_path: Path, scaled: Scale, begin: Callable[[Path], Path]
) -> None:
    (tmp_path / "whole").mkdir()
    whole = begin(tmp_path / "whole")
    old = schema_of(whole)
    outcomes, kills = set(), scaled(100, least=12)
    with second_step():
        statements = _migrate_in_child(tmp_path / "whole", stop_at=None)
    new, rows = schema_of(whole), legacy_database.read(whole)
    assert statements > 20, "the kill must have places to hit"
    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = begin(folder)
        at = 1 + number * statements // kills
        with second_step():
            _migrate_in_child(folder, stop_at=at)
            left = schema_of(path)
            open_database(folder).close()
        assert left in (old, new), f"killed at statement {at}"
        outcomes.add(left == new)
        assert (schema_of(path), legacy_database.read(path)) == (new, rows)
    assert False in outcomes


def _migrate_in_child(folder: Path, stop_at: int | None) -> int:
    """Open in a child that dies at its n-th statement; return how many statements it ran."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            seen = 0

            def watch(statement: str) -> None:
                nonlocal seen
                seen += 1
                if seen == stop_at:
                    os._exit(9)

            plain = store_connection._plain

            def watched(path: Path, busy_seconds: float):
                db = plain(path, busy_seconds)
                db.conn.set_trace_callback(watch)
                return db

            vars(store_connection)["_plain"] = watched
            open_database(folder).close()
            os.write(writer, str(seen).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    told = os.read(reader, 100)
    os.close(reader)
    return int(told or b"0")


ONCE = {
    "a tick's row": ("sentiment", "torra_key", ""),
    "its twin": ("chains", "sentiment_id", ""),
    "its journal": ("journal", "torra_key", ""),
    "its claim": ("ticks", "instance, timeframe, bar_time", ""),
    "each of its calls": ("calls", "torra_key, role, round, attempt", ""),
    "a signal": ("signals", "sid", ""),
    "an unfinished opening": (
        "signals", "instance", "kind = 'open' AND state IN "
        "('PENDING', 'PUBLISHED', 'CLAIMED', 'PLACED', 'UNKNOWN', 'FILLED', 'PARTIAL')",
    ),
    "a proposal": ("proposals", "sid", ""),
    "an event of a stream": ("stream_events", "stream_id, seq", ""),
    "the end of a stream": ("stream_events", "stream_id", "terminal = 1"),
    "an entry of the audit log": ("audit", "hash", ""),
    "a look at agents": ("agent_standing", "fingerprint, look", ""),
    "the number of a setting": ("agent_standing", "trial, look", ""),
}  # fmt: skip


@pytest.mark.parametrize("what", ONCE)
def test_what_may_be_there_once_is_unique_in_the_file_itself(tmp_path: Path, what: str) -> None:
    table, columns, only = ONCE[what]
    database = open_database(tmp_path)
    ask = database.connection().conn.execute
    unique = [row[1] for row in ask(f"PRAGMA index_list({table})") if row[2]]
    found = set()
    for name in unique:
        sql = ask("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        of = ", ".join(row[2] for row in ask(f"PRAGMA index_info({name})"))
        where = " ".join((sql[0] if sql and sql[0] else "").partition(" WHERE ")[2].split())
        found.add((of, where))
    database.close()
    assert (columns, only) in found


def test_there_is_one_connection_factory() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.py", "agents/**/*.py", "torra/**/*.py")
        for path in ROOT.glob(pattern)
        if re.search(r"sqlite3\.connect|from sqlite3 import.*connect", path.read_text("utf-8"))
        and path != Path(store_connection.__file__)
    ]
    assert found == []
    text = Path(store_connection.__file__).read_text(encoding="utf-8")
    assert len(re.findall(r"= sqlite3\.connect\(", text)) == 1

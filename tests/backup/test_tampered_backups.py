"""A backup that somebody altered is refused, or says so before an order: its structure and rows.

Whoever can write a shared disk removes the .sha256 and mends the counts, and puts a trigger, a
changed table or another order into the file. A desk that has such a file does not start either.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from agents.features import rows_of
from tests.backup.test_backup import everything
from tests.worlds import legacy_database, stores
from torra.backup import copies
from torra.backup import restore as backup_restore
from torra.commands import backup as backup_commands
from torra.desk.checks import machine, table
from torra.desk.checks.result import Context
from torra.errors import ConfigError
from torra.store.connection import connect_reader
from torra.store.migrations import structure

ROUTE = {"instance": "XAUUSD", "symbol": "XAUUSD", "bridge": "torra_files"}

NOTES = "CREATE TABLE my_notes (id INTEGER PRIMARY KEY, note TEXT)"


class Tampering(NamedTuple):
    """What somebody does to the file, and how it shows: refused, foreign or altered."""

    name: str
    shows: str
    word: str
    sql: str


TAMPERINGS = [Tampering(**row) for row in rows_of(Path(__file__).with_name("tamperings.csv"))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a waiting order and a position, and its backup."""
    folder = tmp_path_factory.mktemp("made") / "home"
    with closing(stores.open_database(folder)) as database:
        stores.save(database, stores.NOON, 0.1)
        database.enqueue_signal(stores.opening("T1", **ROUTE))
        database.enqueue_signal(stores.opening("T2"))
        for state in ("PUBLISHED", "FILLED"):
            database.move_signal("T2", state)
    backup_commands.back_up(folder, folder / "backups" / "desk-8-20260101T000000Z.db")
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "home")


def backup_of(home: Path) -> Path:
    return home / "backups" / "desk-8-20260101T000000Z.db"


def tampered(path: Path, sql: str) -> Path:
    """Alter a file with the care of somebody who wants to be believed."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(sql)
        names = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
        if copies.FACTS in names:
            told = json.dumps(copies.count(connect_reader(path)))
            db.execute("UPDATE torra_backup SET value = ? WHERE name = 'rows'", (told,))
        db.commit()
    path.with_name(path.name + copies.SUM).unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("case", TAMPERINGS, ids=lambda case: case.name)
def test_a_tampered_backup_is_refused_or_says_so(home: Path, case: Tampering) -> None:
    path = tampered(backup_of(home), case.sql)
    before = everything(home)
    if case.shows == "refused":
        with pytest.raises(ConfigError, match=r"was altered.*could change orders") as refused:
            backup_restore.plan(home, path, stores.NOON)
        assert case.word in str(refused.value)
        assert everything(home) == before
        return
    plan = backup_restore.plan(home, path, stores.NOON)
    assert plan.backup is not None
    told = {"foreign": plan.backup.foreign, "altered": plan.backup.altered}
    assert any(case.word in word for word in told.pop(case.shows)) and not any(told.values())
    shown = backup_commands.plan_table(plan.as_dict())
    says = {"foreign": "Not Torra's", "altered": "NOT as they were decided"}
    assert says[case.shows] in shown and case.word in shown
    backup_restore.carry_out(plan)
    # The start says it once more, and halts for an order.
    said: list[str] = []
    reason = table.start(home, said.append)
    assert ("not as they were decided" in reason) == (case.shows == "altered")
    assert any(case.word in word for word in said) == (case.shows == "foreign")


@pytest.mark.parametrize("case", TAMPERINGS, ids=lambda case: case.name)
def test_a_desk_does_not_work_on_a_tampered_database(home: Path, case: Tampering) -> None:
    tampered(home / "torra.db", case.sql)
    if case.shows != "refused":
        stores.open_database(home).close()
        return
    with pytest.raises(ConfigError, match="was altered"):
        stores.open_database(home)
    with pytest.raises(ConfigError, match=r"does not start: .*was altered.*put a backup"):
        table.start(home, lambda _: None)
    assert (home / "control" / "HALT").exists()


def test_there_are_forty_of_them() -> None:
    assert len({case.name for case in TAMPERINGS}) == len(TAMPERINGS) == 40


# --- what is no tampering -------------------------------------------------------------------------


def test_a_scorer_s_own_file_is_taken_over_with_all_that_it_holds(tmp_path: Path) -> None:
    path = legacy_database.build(tmp_path / "torra.db")
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(
            f"{NOTES}; CREATE VIEW last AS SELECT * FROM sentiment; "
            "CREATE TRIGGER mine AFTER INSERT ON sentiment BEGIN "
            "INSERT INTO my_notes (note) VALUES (new.verdict); END"
        )
    with closing(stores.open_database(tmp_path)) as database:
        stores.save(database, stores.NOON, 0.1)
        assert database.connection().table("my_notes").count == 1
        found = structure(database.connection())
    assert found.refused == () and len(found.foreign) == 3
    strange, *_ = machine.strangers(Context(tmp_path, {}))
    assert strange.detail.endswith("the table my_notes, which is not Torra's")


@pytest.mark.parametrize(
    "body",
    ["UPDATE sentiment SET verdict = 'HOLD'", "INSERT INTO my_notes (note) SELECT 'signals'"],
)
def test_a_scorer_s_file_is_refused_before_it_is_taken_over_and_not_after(
    tmp_path: Path, body: str
) -> None:
    path = legacy_database.build(tmp_path / "torra.db")
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(
            f"{NOTES}; CREATE TRIGGER mine AFTER INSERT ON sentiment BEGIN {body}; END"
        )
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="the trigger mine on sentiment"):
        stores.open_database(tmp_path)
    with pytest.raises(ConfigError, match="does not start"):
        table.start(tmp_path, lambda _: None)
    with closing(sqlite3.connect(path)) as db:
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    assert "signals" not in tables and not (tmp_path / "backups").exists()
    assert len(before) == len(path.read_bytes())

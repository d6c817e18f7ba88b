"""A restore that meets a stranger's file, a damaged one, another system or its own first half.

What it shows of orders in the market when the database cannot tell, which names and notes a backup
may not bring, what a backup that lies about itself ends in, and that what was there stays together.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest

from tests.backup.test_backup import SETTINGS, everything, furnish, garble, killed_at_work, ticks
from tests.worlds import legacy_database, stores
from torra.backup import copies as backup_store
from torra.backup import files as backup_files
from torra.backup import restore as backup_restore
from torra.commands import backup as backup_commands
from torra.desk.checks import table as checks
from torra.errors import ConfigError, TorraError
from torra.store.connection import connect_reader, uri_of

OPEN = 12
"""Signals that are under way, more than are shown."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a tick, signals under way, and a backup of all that."""
    folder = tmp_path_factory.mktemp("made") / "home"
    with closing(stores.open_database(folder)) as database:
        stores.save(database, stores.NOON.replace(hour=8), 0.1)
        for number in range(OPEN):
            database.enqueue_signal(stores.opening(f"T{number}", instance=f"BTCUSD{number}"))
    backup_commands.back_up(folder, folder / "backups" / "desk-6-20260101T000000Z.db")
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "a home")


def backup_of(home: Path) -> Path:
    return home / "backups" / "desk-6-20260101T000000Z.db"


def shown(home: Path) -> str:
    plan = backup_restore.plan(home, backup_of(home), stores.NOON)
    return backup_commands.plan_table(plan.as_dict())


# --- what may be in the market --------------------------------------------------------------------


def test_signals_beyond_those_that_are_shown_are_counted(home: Path) -> None:
    told = shown(home)
    assert told.count("May be in the market now") == backup_commands.SHOWN
    assert f"and {OPEN - backup_commands.SHOWN} more" in told and "MetaTrader" not in told


def page_of(database: Path, table: str) -> int:
    with closing(sqlite3.connect(database)) as db:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        return int(db.execute(sql, (table,)).fetchone()[0]) - 1


UNREADABLE: dict[str, Callable[[Path], object]] = {
    "its-page": lambda path: garble(path, page_of(path, "signals")),
    "the-first-page": lambda path: garble(path, 0),
    "no-bytes": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_orders_that_cannot_be_read_are_not_passed_over(name: str, home: Path) -> None:
    UNREADABLE[name](home / "torra.db")
    told = shown(home)
    assert "Which orders may be in the market cannot be read: look in MetaTrader 5." in told


def test_damage_elsewhere_may_hide_orders(home: Path) -> None:
    garble(home / "torra.db", page_of(home / "torra.db", "sentiment"))
    told = shown(home)
    assert told.count("May be in the market now") == backup_commands.SHOWN
    assert "The damage may hide orders that are in the market" in told


def test_a_scorers_database_has_sent_no_orders(home: Path) -> None:
    (home / "torra.db").unlink()
    legacy_database.build(home / "torra.db", 2)
    assert "MetaTrader" not in shown(home)


# --- a backup that is not what it says ------------------------------------------------------------

FACT = "UPDATE torra_backup SET value = ? WHERE name = 'rows'"
FILE = "INSERT INTO torra_backup_files VALUES ('desk.json', ?)"
LIES: dict[str, tuple[str, object]] = {
    "rows-are-no-json": (FACT, "{"),
    "rows-without-end": (FACT, "[" * 100_000),
    "no-rows": ("UPDATE torra_backup SET name = ? WHERE name = 'rows'", "row"),
    "a-file-that-is-a-number": (FILE, 1),
}


@pytest.mark.parametrize("name", LIES)
def test_a_backup_that_lies_is_damaged_and_another_is_named(name: str, home: Path) -> None:
    sql, value = LIES[name]
    older, newer = backup_of(home), backup_of(home).with_name("desk-6-20260102T000000Z.db")
    shutil.copy(older, newer)
    with closing(sqlite3.connect(newer)) as db, db:
        db.execute(sql, (value,))
    with pytest.raises(ConfigError, match=r"is damaged: what it tells of itself"):
        backup_store.examine(newer)
    assert older.name in backup_restore.repair(home)


BY_NAME = {"profiles/a.json": json.dumps({"events": {"calendar": "NAME"}})}


@pytest.mark.parametrize(
    "name",
    [
        "restore.json",
        "pages.json",
        "lived.json",
        "Pages.json.",
        "notes.txt",
        "x/desk.json",
    ],
)
def test_what_a_desk_obeys_or_does_not_know_comes_from_no_backup(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none of a home's settings"):
        backup_files.compare(tmp_path, {name: b"{}"})
    profile = BY_NAME["profiles/a.json"].replace("NAME", name).encode()
    files = {"profiles/a.json": profile, name: b"{}"}
    if name in ("notes.txt", "x/desk.json"):
        assert backup_files.compare(tmp_path, files) == (sorted(files), [])
    else:
        with pytest.raises(ConfigError, match=r"none of a home's settings"):
            backup_files.compare(tmp_path, files)


def test_what_a_backup_takes_a_restore_takes(tmp_path: Path) -> None:
    files = {**SETTINGS, "control/HALT": "", "channels/a/b/c": "", "data/e.csv": ""}
    files["profiles/b.json"] = json.dumps(
        {"events": {"calendar": "./data/e.csv"}, "news": {"sources": ["file"], "file": "n.jsonl"}}
    )
    files["n.jsonl"] = ""
    furnish(tmp_path / "home", files)
    taken, left_out = backup_files.collect(tmp_path / "home")
    assert (sorted(taken), left_out) == (sorted(files), [])
    assert backup_files.compare(tmp_path / "new", taken) == (sorted(files), [])


def test_a_file_that_a_profile_names_elsewhere_is_told(tmp_path: Path) -> None:
    outside = tmp_path / "week.csv"
    furnish(
        tmp_path, {outside.name: "", "home/profiles/a.json": '{"events": {"calendar": "NAME"}}'}
    )
    for name in (str(outside), "../week.csv"):
        profile = BY_NAME["profiles/a.json"].replace("NAME", name)
        furnish(tmp_path / "home", {"profiles/a.json": profile})
        taken, left_out = backup_files.collect(tmp_path / "home")
        assert list(taken) == ["profiles/a.json"]
        assert left_out == [f"{name}: profile a names it, a backup cannot hold it; copy it"]


# --- Windows --------------------------------------------------------------------------------------


def is_open_as(handle: Path, source: Any) -> bool:
    """Tell whether a handle is of a file; one that another thread closes meanwhile is of none."""
    with suppress(FileNotFoundError):
        return handle.samefile(source)
    return False


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rename no file that this process has open, as Windows does."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs the list of open files")
    monkeypatch.setattr(backup_restore, "SYSTEM", "nt")

    def guarded(real: Callable[..., None]) -> Callable[..., None]:
        def rename(source: Any, target: Any, **more: Any) -> None:
            if any(is_open_as(one, source) for one in Path("/proc/self/fd").iterdir()):
                raise PermissionError(13, "used by another process", str(source))
            real(source, target, **more)

        return rename

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, guarded(getattr(os, name)))


@pytest.mark.usefixtures("windows")
def test_a_restore_where_no_open_file_can_be_renamed(home: Path) -> None:
    plan = backup_restore.plan(home, backup_of(home), stores.NOON)
    before = everything(home)
    with closing(sqlite3.connect(home / "torra.db")) as db:
        db.execute("SELECT count(*) FROM sentiment").fetchone()
        with pytest.raises(ConfigError, match=r"a program has .* open, .* nothing was changed"):
            backup_restore.carry_out(plan)
        assert everything(home) == before
    assert backup_restore.carry_out(plan)["trading_state"] == "HALTED"
    assert not (home / backup_files.MARK).exists()


def test_a_command_is_quoted_as_the_system_reads_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "a home"
    assert f"'{home}'" in backup_restore.command(home, "resume")
    monkeypatch.setattr(backup_restore, "SYSTEM", "nt")
    assert backup_restore.command(home, "resume") == f'torra --home "{home}" resume'
    assert backup_restore.command(home) == subprocess.list2cmdline(["torra", "--home", str(home)])


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (PureWindowsPath(r"\\nas\share\a b.db"), "file:////nas/share/a%20b.db"),
        (PureWindowsPath(r"C:\home\torra.db"), "file:///C:/home/torra.db"),
        (PurePosixPath("/home/torra.db"), "file:///home/torra.db"),
    ],
    ids=["share", "drive", "posix"],
)
def test_no_host_stands_in_what_sqlite_opens(path: Any, uri: str) -> None:
    assert uri_of(path) == uri


def test_sqlite_opens_a_path_with_an_empty_host(home: Path) -> None:
    with closing(connect_reader(Path(f"/{home}/torra.db"))) as db:  # two slashes: as a share
        assert db.execute("SELECT count(*) FROM sentiment").fetchone() == (1,)


# --- its own first half ---------------------------------------------------------------------------


def test_a_database_and_its_log_stay_together(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off between the two, the same command ends what was begun, in the same folder."""
    killed = killed_at_work(home, tmp_path / "killed")
    real = Path.replace

    def fails(self: Path, target: Any) -> Path:
        if self.name == "torra.db-wal":
            raise OSError(5, "x")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(TorraError, match="cut off"):
        backup_restore.carry_out(backup_restore.plan(killed, backup_of(killed), stores.NOON))
    monkeypatch.undo()
    later = stores.NOON.replace(hour=14)
    plan = backup_restore.plan(killed, backup_of(killed), later)
    assert plan.as_dict()["present"]["under_way"] is None, "they are no longer where they were"
    document = backup_restore.carry_out(plan)
    assert [path.name for path in (killed / "backups").glob("replaced-*")] == [plan.kept.name]
    assert document["replaced"] == str(plan.kept) and ticks(plan.kept / "torra.db") == 2


def test_what_was_kept_is_never_written_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that was cut off at its end has put its database there already."""
    with monkeypatch.context() as patch:
        patch.setattr(backup_restore, "_halt", lambda _: (_ for _ in ()).throw(OSError(5, "x")))
        with pytest.raises(TorraError, match="cut off"):
            backup_restore.carry_out(backup_restore.plan(home, None, stores.NOON))
        shutil.copy(backup_of(home), home / "torra.db")
    first = backup_restore.plan(home, None, stores.NOON.replace(hour=13))
    with pytest.raises(ConfigError, match="is there already"):
        backup_restore.plan(home, None, stores.NOON)
    backup_restore.carry_out(first)
    assert len(list((home / "backups").glob("replaced-*/torra.db"))) == 2
    assert checks.start(home, lambda _: None) == ""


def test_a_mark_that_says_anything_is_no_folder(home: Path, tmp_path: Path) -> None:
    for name in ("../../out", str(tmp_path / "out"), "replaced-", 5, None):
        furnish(home, {backup_files.MARK: json.dumps({"again": "", "kept": name})})
        plan = backup_restore.plan(home, None, stores.NOON)
        assert plan.kept.parent == home / "backups" and plan.kept.name.endswith("T120000Z")
        assert backup_restore.cut_off(home) == backup_restore.repair(home)


@pytest.mark.parametrize(
    ("called", "found", "begins"),
    [
        ("/opt/desk/.venv/bin/torra", None, "/opt/desk/.venv/bin/torra --home "),
        ("/opt/desk/.venv/bin/torra", "/usr/bin/torra", "torra --home "),
        ("/usr/bin/pytest", None, "torra --home "),
    ],
)
def test_a_command_to_type_works_where_the_program_is_on_no_path(
    called: str, found: str | None, begins: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", [called, "run"])
    monkeypatch.setattr("shutil.which", lambda _name: found)
    assert backup_restore.command(tmp_path, "token").startswith(begins)

"""A desk is backed up while it works, and put back safely: whole, halted, nothing lost on the way.

What a backup must hold and must never hold, what is refused with one line and leaves everything as
it was, and what a person finds after a restore. The restore is killed at every step of it, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from instance_database import Database
from tests.faults.cut_off import died_at, until_whole
from tests.worlds import legacy_database, stores
from tests.worlds.second_step import BEFORE
from torra.backup import copies as backup_store
from torra.backup import files as backup_files
from torra.backup import restore as backup_restore
from torra.clock import System
from torra.commands.command_line import main
from torra.desk.checks import table
from torra.desk_lock import DeskLock, is_locked
from torra.errors import ConfigError, TorraError
from torra.home import BACKUP_NAME, HALT
from torra.store import audit as audit_chain
from torra.store import connection as store_connection
from torra.store import ticks as claim_table
from torra.store.migrations import NEWEST

SPARED = 4
"""By day one step on a file of so many is the last of a life, every night each."""


def torra(*words: str | Path, home: Path | None = None, **more: Any) -> Result:
    at = ["--home", str(home)] if home else []
    return CliRunner().invoke(
        main, [*at, *(str(word) for word in words)], catch_exceptions=False, **more
    )


def told(*words: str | Path, home: Path) -> dict[str, Any]:
    result = torra(*words, "--json", home=home)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def refused(*words: str | Path, home: Path) -> str:
    """Return the line of a refusal; it is one, and exit code 2."""
    result = torra(*words, home=home)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("torra: ")
    return result.stderr


def everything(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not path.name.endswith("-shm") and path.stat().st_size
    }


SETTINGS = {
    "desk.json": '{"keep_calls_days": 30}',
    "prices.json": "{}",
    "profiles/mine.json": '{"events": {"calendar": "week.csv"}}',
    "profiles/.history/mine/1.json": "{}",
    "week.csv": "time,name,currency,impact\n",
    "replays/trials.jsonl": "{}\n",
    "channels/main/mt5_orders.jsonl": '{"order": 1}\n',
}
REMEMBERED = ("channels/main/mt5_orders.jsonl", "replays/trials.jsonl")
OTHERS = {
    "access.json": '{"tokens": {"admin": "the-admin-token"}, "key": "the-session-key"}',
    "pages.json": "{}",
    "replays/first/report.html": "<p>",
    "profiles/mine.json.1a.new": "{}",
    "notes.txt": "mine",
}


def furnish(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a database of three ticks and a signal under way, at rest."""
    folder = tmp_path_factory.mktemp("made") / "home"
    with closing(stores.open_database(folder)) as database:
        for hour in (8, 9, 10):
            stores.save(database, stores.NOON.replace(hour=hour), 0.1)
        database.enqueue_signal(stores.opening())
    return folder


@pytest.fixture(scope="module")
def backed_up(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That home with a backup, after which another tick was stored."""
    folder = shutil.copytree(made, tmp_path_factory.mktemp("backed") / "home")
    told("backup", home=folder)
    with closing(stores.open_database(folder)) as database:
        stores.save(database, stores.NOON, 0.2)
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "home")


@pytest.fixture
def kept(home: Path, backed_up: Path) -> Path:
    """Return the backup, and put the later tick into the home."""
    shutil.copytree(backed_up, home, dirs_exist_ok=True)
    (path,) = (home / "backups").glob("*.db")
    return path


def ticks(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("SELECT count(*) FROM sentiment").fetchone()[0])


def state(home: Path) -> tuple[str, str]:
    with closing(Database.open(home / "torra.db", now=System().real_now)) as database:
        return database.trading_state(), claim_table.trading_states(database, 1)[0].reason


# --- a backup -------------------------------------------------------------------------------------


def test_a_backup_is_one_moment_of_a_desk_at_work(home: Path) -> None:
    with closing(stores.open_database(home)) as database, database.transaction():
        stores.save(database, stores.NOON, 0.5)
        document = told("backup", home=home)
    path = Path(document["path"])
    assert path.parent == home / "backups" and BACKUP_NAME.fullmatch(path.name)
    assert f"-{document['desk']}-" in path.name and len(document["desk"]) == 8
    assert document["rows"]["sentiment"] == ticks(path) == 3
    assert ticks(home / "torra.db") == 4
    assert document["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    sum_file = path.with_name(path.name + ".sha256")
    assert sum_file.read_text() == f"{document['sha256']}  {path.name}\n"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert sorted(item.name for item in path.parent.iterdir()) == [path.name, sum_file.name]


def test_what_is_stored_while_a_backup_is_made_is_wholly_in_it_or_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tick comes between counting the rows and copying them."""
    real = store_connection.copy

    def late(db: Any, target: Path) -> Path:
        with closing(stores.open_database(home)) as database:
            stores.save(database, stores.NOON, 0.5)
        return real(db, target)

    monkeypatch.setattr("torra.backup.copies.copy", late)
    assert told("backup", home=home)["rows"]["sentiment"] == 3
    assert ticks(home / "torra.db") == 4


def test_a_backup_holds_the_settings_and_never_a_secret(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-vendor-key")
    monkeypatch.setenv("TORRA_CHANNEL_KEY", "the-channel-key")
    furnish(home, {**SETTINGS, **OTHERS})
    (home / "profiles" / "sly.json").symlink_to(home / "access.json")
    document = told("backup", home=home)
    assert document["files"] == sorted(SETTINGS)
    content = Path(document["path"]).read_bytes()
    for secret in ("admin-token", "session-key", "vendor-key", "channel-key"):
        assert f"the-{secret}".encode() not in content


def test_a_file_that_is_too_large_is_left_out_and_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_files, "LARGEST", 20)
    furnish(home, {"desk.json": '{"instances": []}   ', "prices.json": '{"a": "longer than it"}'})
    document = told("backup", home=home)
    assert document["files"] == ["desk.json"]
    assert document["left_out"] == ["prices.json: larger than 0 MB"]


def test_the_newest_are_kept_and_nothing_else_is_removed(home: Path, tmp_path: Path) -> None:
    """Not what a person or a migration made, nor the backups of another desk in that folder."""
    folder = tmp_path / "disk"
    others = ["torra-5-20260101T000000Z.db", "mine.db", "desk-6-0a1b2c3d-20260101T000000Z.db"]
    furnish(folder, dict.fromkeys(others, "somebody's"))
    desk = backup_store.identity(home / "torra.db")[1]
    older = [f"desk-6-{desk}-2026010{day}T000000Z.db" for day in range(1, 5)]
    furnish(folder, {f"{name}{end}": "older" for name in older for end in ("", ".sha256")})
    document = told("backup", folder, "--keep", "2", home=home)
    left = sorted(path.name for path in folder.iterdir())
    new = Path(document["path"]).name
    assert [Path(path).name for path in document["removed"]] == older[2::-1]
    assert left == sorted([new, f"{new}.sha256", older[3], f"{older[3]}.sha256", *others])


def test_a_backup_that_was_just_made_is_never_one_too_many(home: Path, tmp_path: Path) -> None:
    """An older one may be dated later: the clock was ahead when it was made."""
    ahead = f"desk-6-{backup_store.identity(home / 'torra.db')[1]}-20990101T000000Z.db"
    furnish(tmp_path / "disk", {ahead: "from a clock that was ahead"})
    document = told("backup", tmp_path / "disk", "--keep", "1", home=home)
    assert Path(document["path"]).exists()
    assert [Path(path).name for path in document["removed"]] == [ahead]


def no_room(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))


def test_a_backup_that_cannot_be_made_is_a_line_and_leaves_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = tmp_path / "there.db"
    taken.write_text("mine")
    assert "nothing to back up" in refused("backup", home=tmp_path / "nowhere")
    assert "is there already" in refused("backup", taken, home=home)
    assert "--keep: there is no folder" in refused("backup", taken, "--keep", "1", home=home)
    assert "make it, or name a file" in refused("backup", tmp_path / "with space", home=home)
    assert "cannot write" in refused("backup", taken / "below" / "b.db", home=home)
    size = (home / "torra.db").stat().st_size
    before = everything(tmp_path)
    no_room(monkeypatch, int(size * backup_store.ROOM) - 1)
    assert "make room, or name a folder on another" in refused("backup", home=home)
    assert everything(tmp_path) == before
    no_room(monkeypatch, int(size * backup_store.ROOM))
    told("backup", home=home)


def test_what_a_killed_backup_left_is_swept_away_after_a_day(home: Path) -> None:
    names = [
        f"{hidden}desk-6-2026010{day}T000000Z.db{of}.1f2e3d4c.partial"
        for day in (1, 2)
        for hidden, of in (("", ""), (".", ".sha256"))
    ]
    furnish(home / "backups", dict.fromkeys(names, "half"))
    old = System().real_now().timestamp() - backup_store.LEFT_BEHIND.total_seconds()
    for name, age in zip(names, (1, 1, -60, -60), strict=True):
        os.utime(home / "backups" / name, (old - age, old - age))
    told("backup", home=home)
    assert {path.name for path in (home / "backups").glob("*.partial")} == set(names[2:])


def garble(path: Path, page: int = 5) -> None:
    data = bytearray(path.read_bytes())
    data[4096 * page : 4096 * (page + 1)] = b"\xa5" * 4096
    path.write_bytes(data)


def test_a_damaged_database_makes_no_backup(home: Path) -> None:
    garble(home / "torra.db")
    line = refused("backup", home=home)
    assert "malformed" in line and "torra restore" in line
    assert list((home / "backups").iterdir()) == []


def test_of_a_file_that_is_no_database_no_folder_is_made(tmp_path: Path) -> None:
    (tmp_path / "torra.db").write_text("mine")
    line = refused("backup", tmp_path / "nowhere" / "x.db", home=tmp_path)
    assert "file is not a database" in line and not (tmp_path / "nowhere").exists()


# --- a restore ------------------------------------------------------------------------------------


@pytest.mark.journey
def test_a_restore_asks_first_and_a_no_changes_nothing(
    home: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(home)
    assert "nobody to ask, so add --yes" in refused("restore", kept, home=home)
    plan = told("restore", kept, home=home)
    assert plan["restored"] is False and plan["present"]["ticks_lost"] == 0
    assert [row["sid"] for row in plan["present"]["under_way"]] == ["T1"]
    monkeypatch.setattr("torra.commands.backup.on_terminal", lambda: True)
    result = torra("restore", kept, home=home, input="\n")
    assert result.exit_code == 0 and "Nothing was changed." in result.stdout
    assert "May be in the market now: open BUY 0.5 of BTCUSD, T1 PENDING" in result.stdout
    assert everything(home) == before


def test_after_a_restore_the_desk_is_whole_halted_and_on_record(home: Path, kept: Path) -> None:
    now = ticks(home / "torra.db")
    with closing(stores.open_database(home, System().real_now)) as database:
        claim_table.begin_run(database, "run 77", 77)
    document = told("restore", kept, "--yes", home=home)
    assert (now, ticks(home / "torra.db")) == (4, 3)
    assert ticks(Path(document["replaced"]) / "torra.db") == 4
    assert document["trading_state"] == "HALTED" and (home / HALT).exists()
    halted, reason = state(home)
    assert halted == "HALTED" and str(kept) in reason and reason.endswith(f"{home} resume")
    assert not (home / backup_files.MARK).exists()
    with closing(stores.open_database(home, System().real_now)) as database:
        assert audit_chain.audit_entries(database, limit=1)[0]["action"] == "restore"
        assert audit_chain.broken_entry(database) is None
        names = database.connection().table_names()
    assert backup_store.FACTS not in names and backup_store.FILES not in names
    assert torra("resume", home=home).exit_code == 0
    assert state(home)[0] == "ACTIVE" and not (home / HALT).exists()


def killed_at_work(home: Path, target: Path) -> Path:
    """Copy a home as a kill leaves it: the fifth tick is in the log alone."""
    with closing(stores.open_database(home)) as database:
        stores.save(database, stores.NOON.replace(hour=13), 0.2)
        shutil.copytree(home, target)
    assert (target / "torra.db-wal").stat().st_size
    return target


def test_the_log_of_a_killed_desk_goes_with_its_database(
    home: Path, kept: Path, tmp_path: Path
) -> None:
    """A log that stayed would be read into the restored database."""
    killed = killed_at_work(home, tmp_path / "killed")
    document = told("restore", kept, "--yes", home=killed)
    assert ticks(killed / "torra.db") == 3
    assert ticks(Path(document["replaced"]) / "torra.db") == 5


def test_settings_that_are_there_stay_unless_it_is_asked_for(home: Path) -> None:
    furnish(home, SETTINGS)
    kept = Path(told("backup", home=home)["path"])
    tighter = '{"risk": {"risk_per_trade_pct": 0.1}}'
    furnish(home, {"profiles/mine.json": tighter, **dict.fromkeys(REMEMBERED, "two\n")})
    (home / "desk.json").unlink()
    document = told("restore", kept, "--yes", home=home)
    assert document["settings"] == {
        "brought_back": ["desk.json"],
        "left_as_they_are": ["profiles/mine.json"],
    }
    assert (home / "desk.json").read_text() == SETTINGS["desk.json"]
    assert (home / "profiles" / "mine.json").read_text() == tighter
    again = backup_restore.plan(home, kept, stores.NOON, settings=True)
    done = backup_restore.carry_out(again)
    assert (home / "profiles" / "mine.json").read_text() == SETTINGS["profiles/mine.json"]
    assert (Path(done["replaced"]) / "profiles" / "mine.json").read_text() == tighter
    for name in REMEMBERED:
        assert (home / name).read_text() == "two\n", "what was done must stay remembered"


def test_a_backup_of_a_migration_is_put_back_and_migrated(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    legacy_database.build(home / "torra.db", 20)
    stores.open_database(home).close()
    (made,) = (home / "backups").iterdir()
    document = told("restore", made, "--yes", home=home)
    assert document["backup"]["schema"] == 0 and document["backup"]["made_at"] == ""
    assert state(home)[0] == "HALTED"
    assert backup_store.identity(home / "torra.db")[0] == NEWEST


def test_without_any_backup_a_desk_begins_empty(home: Path) -> None:
    garble(home / "torra.db")
    document = told("restore", "--empty", "--yes", home=home)
    assert document["present"]["sound"] is False
    assert (Path(document["replaced"]) / "torra.db").exists()
    assert ticks(home / "torra.db") == 0 and state(home)[0] == "HALTED"


def test_the_backups_are_listed_as_commands_newest_first(home: Path) -> None:
    assert "There is no backup" in torra("restore", home=home).stdout
    furnish(home / "backups", {"torra-5-20260101T000000Z.db": "", "desk-6-20260201T000000Z.db": ""})
    rows = told("restore", home=home)["backups"]
    assert [Path(row["path"]).name[:14] for row in rows] == ["desk-6-2026020", "torra-5-202601"]
    assert rows[0]["restore"] in torra("restore", home=home).stdout


# --- what is refused ------------------------------------------------------------------------------


def rewritten(path: Path, sql: str, *values: object) -> Path:
    """Change a backup as a stranger would, its sum with it."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(sql, values)
    path.with_name(path.name + ".sha256").unlink(missing_ok=True)
    return path


def flipped(path: Path) -> Path:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    return path


def unsummed(path: Path) -> Path:
    path.with_name(path.name + ".sha256").unlink()
    garble(path)
    return path


def cut(path: Path) -> Path:
    path.with_name(path.name + ".sha256").unlink()
    path.write_bytes(path.read_bytes()[:-4096])
    return path


LATER_STEP = "UPDATE _sqlite_migrations SET name = 'schema_9' WHERE name = 'schema_2'"
ADD_FILE = f"INSERT INTO {backup_store.FILES} VALUES (?, X'7b7d')"
BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda path: path.with_name("none.db"), "there is no backup"),
    "one-bit": (flipped, "its sum is not the one in"),
    "a-page": (unsummed, "is "),
    "cut-short": (cut, "is "),
    "a-row-less": (
        lambda path: rewritten(path, "DELETE FROM sentiment WHERE id = 1"),
        "has not the rows that it was made with",
    ),
    "a-newer-schema": (
        lambda path: rewritten(path, LATER_STEP),
        f"has schema_9, newer than this program's schema_{NEWEST}; update Torra",
    ),
    "of-before": (
        lambda path: rewritten(path, BEFORE["steps"]),
        "was made by Torra 0.1.0 before 2026-11-29; export it with that version",
    ),
    "no-desk": (
        lambda path: rewritten(path, "ALTER TABLE sentiment RENAME TO moods"),
        "holds no desk",
    ),
    "no-database": (lambda path: Path(__file__), "is no whole backup"),
    "a-way-out": (lambda path: rewritten(path, ADD_FILE, "../out"), "none of a home's settings"),
    "a-root": (lambda path: rewritten(path, ADD_FILE, "/etc/out"), "none of a home's settings"),
    "tokens": (lambda path: rewritten(path, ADD_FILE, "access.json"), "none of a home's settings"),
    "a-log": (lambda path: rewritten(path, ADD_FILE, "torra.db-wal"), "none of a home's settings"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_whole_backup_is_refused_and_changes_nothing(
    name: str, home: Path, kept: Path
) -> None:
    spoil, said = BAD[name]
    path = spoil(kept)
    before = everything(home)
    assert said in refused("restore", path, "--yes", home=home)
    assert everything(home) == before


def test_another_backup_is_named_that_is_whole(home: Path, kept: Path) -> None:
    older = kept.with_name("desk-6-20260101T000000Z.db")
    shutil.copy(kept, older)
    line = refused("restore", flipped(kept), "--yes", home=home)
    assert line.rstrip().endswith(backup_restore.command(home, "restore", older))


def test_the_database_itself_is_no_backup(home: Path) -> None:
    assert "the desk's database itself" in refused("restore", home / "torra.db", home=home)


def test_a_desk_at_work_is_not_pulled_from_under(home: Path, kept: Path) -> None:
    lock = DeskLock(home)
    assert lock.acquire()
    before = everything(home)
    assert "a desk works on" in refused("restore", kept, "--yes", home=home)
    assert everything(home) == before
    lock.release()


def test_a_desk_that_begins_after_the_plan_is_not_pulled_from_under(home: Path, kept: Path) -> None:
    """Between the question and the yes; what another restore has laid ready stays, too."""
    planned = backup_restore.plan(home, kept, stores.NOON)
    (home / backup_restore.STAGED).write_bytes(b"of another restore")
    lock = DeskLock(home)
    assert lock.acquire()
    before = everything(home)
    with pytest.raises(ConfigError, match="a desk works on"):
        backup_restore.carry_out(planned)
    assert everything(home) == before
    lock.release()


def test_no_desk_starts_while_a_restore_is_under_way(
    home: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    set_aside = backup_restore._set_aside

    def looked(*words: Any) -> None:
        held.append(is_locked(home))
        set_aside(*words)

    monkeypatch.setattr(backup_restore, "_set_aside", looked)
    told("restore", kept, "--yes", home=home)
    assert held == [True] and not is_locked(home)


HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("SELECT count(*) FROM sentiment").fetchone()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there nobody can move a file that is open")
def test_a_database_that_a_program_has_open_is_not_replaced(home: Path, kept: Path) -> None:
    """A program that reads it would otherwise go on with the file that was set aside."""
    words = [sys.executable, "-c", HOLDER, str(home / "torra.db")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        before = everything(home)
        try:
            assert "a program has " in refused("restore", kept, "--yes", home=home)
            assert everything(home) == before
        finally:
            assert holder.stdin is not None
            holder.stdin.close()
            holder.wait()
    told("restore", kept, "--yes", home=home)


def test_a_restore_needs_its_room(home: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = int(kept.stat().st_size * backup_store.ROOM)
    no_room(monkeypatch, needed - 1)
    assert "make room" in refused("restore", kept, "--yes", home=home)
    no_room(monkeypatch, needed)
    told("restore", kept, "--yes", home=home)


# --- cut off --------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs fork and SIGKILL")
def test_a_restore_that_is_killed_anywhere_ends_by_the_same_command(
    home: Path,
    kept: Path,
    tmp_path: Path,
    scaled: Callable[..., int],
    record_property: Callable[[str, object], None],
) -> None:
    """Each step on a file may be the last; then the old desk is whole, or none starts (D9, D10)."""
    furnish(home, SETTINGS)
    (home / "desk.json").unlink()
    killed = killed_at_work(home, tmp_path / "killed")
    met: list[str] = []

    def one(nth: int) -> bool:
        copy = tmp_path / str(nth)
        shutil.copytree(killed, copy)
        backup = copy / "backups" / kept.name

        def work() -> None:
            backup_restore.carry_out(backup_restore.plan(copy, backup, stores.NOON))

        if not died_at(nth, work):
            return False
        met.append(after_a_kill(copy, backup))
        shutil.rmtree(copy)
        return True

    kills = until_whole(one, every=SPARED // scaled(SPARED))
    record_property("seen", f"killed at {kills} steps on files")
    assert {"old", "none starts"} <= set(met) <= {"old", "none starts", "new"}, met


def after_a_kill(home: Path, backup: Path) -> str:
    """Return what a start finds; where none can be, what it says to type ends the restore."""
    try:
        table.start(home, lambda _: None)
    except ConfigError as error:
        found = str(error)
    else:
        found = ""
    if found:
        words = backup_restore.command(home, "restore", backup)
        assert words in found
        assert torra(*words.split()[1:], "--yes").exit_code == 0
        found = "none starts"
    else:
        found = "old" if ticks(home / "torra.db") == 5 else "new"
    with closing(sqlite3.connect(home / "torra.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    if found != "old":
        assert state(home)[0] == "HALTED" and (home / HALT).exists()
        assert ticks(home / "torra.db") == 3
        assert 5 in map(ticks, (home / "backups").glob("replaced-*/torra.db")), "with its log"
    return found


@pytest.mark.parametrize("error", [OSError(28, "x"), ConfigError("x")], ids=["disk", "settings"])
def test_a_restore_that_fails_half_way_says_what_ends_it(
    error: Exception, home: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    plan = backup_restore.plan(home, kept, stores.NOON, settings=True)
    monkeypatch.setattr(backup_restore, "open_home", fails)
    with pytest.raises(TorraError, match=r"cut off: x; no desk .*--home .*--settings") as caught:
        backup_restore.carry_out(plan)
    assert not isinstance(caught.value, ConfigError), "something was changed"
    monkeypatch.undo()
    with pytest.raises(ConfigError, match=r"was cut off; end it: torra --home .*--settings"):
        table.start(home, lambda _: None)
    told("restore", kept, "--yes", home=home)
    assert table.start(home, lambda _: None) == ""


def test_a_home_that_cannot_be_halted_is_left_alone(home: Path, kept: Path) -> None:
    (home / "control").write_text("no folder")
    before = everything(home)
    assert "cannot halt first" in refused("restore", kept, "--yes", home=home)
    assert everything(home) == before

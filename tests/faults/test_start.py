"""Nothing is traded on a machine or a database that cannot be relied on (D9, D10).

Every look of the start check below, at and above its limit; for every refusal, the command that it
names is typed and repairs it. A `torra init` that is killed between its two files has written both
or neither.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner, Result

from instance_database import open_home
from tests.backup.test_backup import everything, furnish, garble, state, ticks
from tests.faults.cut_off import died_at, until_whole
from tests.worlds import large_database, stores
from tests.worlds.second_step import LATER, of_before, second_step
from torra.commands import run as running
from torra.commands.command_line import main
from torra.config import ROOT, load_desk, load_profile
from torra.dashboard import server
from torra.desk import wiring
from torra.desk.checks import machine
from torra.desk.checks import table as checks
from torra.desk.checks.machine import EARLIEST, MIN_FREE_BYTES, SAFE_SQLITE
from torra.desk.checks.result import Context
from torra.desk.schedule import Desk
from torra.desk.setup import desk_plan
from torra.desk.setup.desk_plan import plan
from torra.desk.setup.request import SetupRequest, TerminalFacts
from torra.errors import ConfigError
from torra.feeds import sample
from torra.home import HALT, PAGES
from torra.store import ticks as claim_table
from torra.store.ticks import CLOCK_SET_BACK

READY_SECONDS = 5.0
"""From `torra run` to a desk at work, with a million ticks stored (D10)."""

SPARED = 4
"""By day one step on a file of so many is the last of a life, every night each."""

NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)


@pytest.fixture(scope="module", autouse=True)
def _sample_read_once() -> Iterator[None]:
    """Read the shipped bars for the first desk of many alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "_load", functools.cache(sample._load))
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three ticks, at rest."""
    folder = tmp_path_factory.mktemp("made") / "home"
    with closing(stores.open_database(folder)) as database:
        for hour in (8, 9, 10):
            stores.save(database, stores.NOON.replace(hour=hour), 0.1)
            database.write_journal(stores.key_of(stores.NOON.replace(hour=hour)), {"n": "x" * 9000})
    return folder


@pytest.fixture(scope="module")
def backed_up(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home with two backups, of which the newer is damaged."""
    folder = shutil.copytree(made, tmp_path_factory.mktemp("backed") / "home")
    older, newer = (folder / "backups" / f"desk-6-2026010{day}T000000Z.db" for day in (1, 2))
    assert torra("--home", str(folder), "backup", str(older)).exit_code == 0
    shutil.copy(older, newer)
    garble(newer)
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "a home")


def torra(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def refused(home: Path, *, sound: bool = False) -> str:
    """Return the line with which `torra run` does not start.

    Unless the database is sound, it may not even be opened.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not sound:
            patch.setattr(wiring, "open_desk", started)
        result = torra("--home", str(home), "run", "--no-pages")
    assert result.exit_code == 2 and result.stdout == "", result.output
    assert result.stderr.count("\n") == 1
    return result.stderr


def started(home: Path, _: object) -> NoReturn:
    raise AssertionError(f"the desk of {home} has started")


def type_it(line: str, *more: str) -> Result:
    """Type the command that a line names, as a person copies it."""
    found = re.search(r"torra (--home .*?)(?: \(|; |, then|$)", line.strip())
    assert found, line
    return torra(*shlex.split(found[1]), *more)


def starts(home: Path) -> str:
    """Start a desk as `torra run` does, up to its first tick; return what halts it."""
    halted = checks.start(home, lambda _: None)
    desk, _ = wiring.open_desk(home)
    desk.close()
    return halted


# --- what refuses ---------------------------------------------------------------------------------


def emptied(home: Path) -> None:
    (home / "torra.db").write_bytes(b"")


def foreign(home: Path) -> None:
    (home / "torra.db").write_text("buy low, sell high" * 1000)


def root_of(home: Path, name: str) -> int:
    """Return the first page of a table or an index, counted from 0."""
    with closing(sqlite3.connect(home / "torra.db")) as db:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        return int(db.execute(sql, (name,)).fetchone()[0]) - 1


def lost_index(home: Path) -> None:
    """Leave an index of a table that money hangs on without its rows; its page is sound."""
    with closing(sqlite3.connect(home / "torra.db")) as db, db:
        db.execute("INSERT INTO alarms VALUES ('a', 'QUIET', '', '2026-01-01T00:00:00Z', NULL)")
    at = root_of(home, "alarms_newest") * 4096
    data = bytearray((home / "torra.db").read_bytes())
    data[at + 3 : at + 7] = b"\0\0\x10\0"  # no cell, the content begins at the page's end
    (home / "torra.db").write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a-page": lambda home: garble(home / "torra.db", root_of(home, "journal")),
    "the-first-page": lambda home: garble(home / "torra.db", 0),
    "cut-short": lambda home: (home / "torra.db").write_bytes(
        (home / "torra.db").read_bytes()[:-4096]
    ),
    "no-database": foreign,
    "an-index-of-money": lost_index,
    "no-bytes": emptied,
    "gone": lambda home: (home / "torra.db").unlink(),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_database_is_refused_and_the_named_command_repairs_it(
    name: str, backed_up: Path, tmp_path: Path
) -> None:
    """The terminals are halted at once, the newest whole backup is named, and it works (D9)."""
    home = shutil.copytree(backed_up, tmp_path / "a home")
    DAMAGE[name](home)
    line = refused(home)
    assert "desk-6-20260101T000000Z.db" in line, "the newest whole one"
    assert (home / HALT).exists()
    assert type_it(line, "--yes").exit_code == 0
    assert starts(home) == "" and ticks(home / "torra.db") == 3
    assert state(home)[0] == "HALTED"


def test_without_a_backup_the_command_begins_anew(home: Path) -> None:
    garble(home / "torra.db", 30)
    line = refused(home)
    assert line.count("restore --empty") == 1
    assert type_it(line, "--yes").exit_code == 0
    assert starts(home) == "" and state(home)[0] == "HALTED"


def test_a_new_home_is_not_taken_for_a_lost_one(tmp_path: Path) -> None:
    assert starts(tmp_path / "new") == ""


def test_a_home_of_a_newer_program_is_refused_and_goes_back(home: Path) -> None:
    assert torra("--home", str(home), "backup").exit_code == 0
    assert starts(home) == "", "at this program's own"
    with second_step():
        open_home(home).close()
    line = refused(home)
    assert f"has schema_{LATER}, newer than this program's schema_{LATER - 1}; update" in line
    assert not (home / HALT).exists(), "another program may be at work on it"
    assert type_it(line, "--yes").exit_code == 0
    assert starts(home) == ""


@pytest.mark.parametrize("words", [("run",), ("doctor",), ("backup",), ("signals",), ("ticks",)])
def test_a_home_of_before_is_refused_untouched_and_begins_anew(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    path = of_before(tmp_path)
    before = path.read_bytes()
    answer = torra("--home", str(tmp_path), *words)
    assert answer.exit_code == (1 if words == ("doctor",) else 2)
    line = " ".join((answer.output + answer.stderr).split())
    assert "torra.db was made by Torra 0.1.0 before 2026-11-29" in line
    assert "export it with that version, or begin anew: " in line
    assert path.read_bytes() == before
    assert not (tmp_path / "backups").exists() and not (tmp_path / HALT).exists()
    assert torra("--home", str(tmp_path), "restore", "--empty", "--yes").exit_code == 0
    assert starts(tmp_path) == ""


def test_a_missing_key_is_refused_by_its_name_and_setting_it_is_enough(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(home, {"profiles/default.json": '{"agents": {"provider": "anthropic"}}'})
    line = refused(home, sound=True)
    assert "ANTHROPIC_API_KEY" in line
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-a-key-for-a-test")
    assert starts(home) == ""


def test_a_locked_or_unreadable_file_is_not_called_damaged(home: Path) -> None:
    with closing(sqlite3.connect(home / "torra.db", isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("torra.store.connection.BUSY_SECONDS", 0.01)
            assert not [*machine.database(Context(home, {}))]


# --- what halts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [-1, 0, 1], ids=["below", "at", "above"])
def test_a_disk_with_no_room_halts_until_there_is(
    more: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")
    free = MIN_FREE_BYTES + more
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
    halted = starts(home)
    assert bool(halted) is (more < 0)
    if halted:
        assert "199 MB free, and a desk needs 200; make room there, then: torra --home" in halted


CLOCKS = {
    "before-any-Torra": (EARLIEST - timedelta(seconds=1), None, True),
    "at-the-first": (EARLIEST, None, False),
    "after-it": (EARLIEST + timedelta(seconds=1), None, False),
    "behind-the-desk": (NOW, NOW + CLOCK_SET_BACK + timedelta(seconds=1), True),
    "as-far-as-a-clock-drifts": (NOW, NOW + CLOCK_SET_BACK, False),
    "ahead-of-the-desk": (NOW, NOW - timedelta(days=30), False),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_a_clock_that_cannot_be_right_halts(name: str, home: Path) -> None:
    now, renewed, wrong = CLOCKS[name]
    if renewed is not None:
        with closing(stores.open_database(home, lambda: renewed)) as database:
            claim_table.begin_run(database, "run 77", 77)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Context, "now", now)
        (finding,) = machine.clock(Context(home, {}))
    assert (finding.level == "alert") is wrong
    assert ("timedatectl set-ntp true" in finding.remedy) is wrong


@pytest.mark.parametrize("more", [-1, 0, 1], ids=["below", "at", "above"])
def test_an_old_sqlite_is_told(more: int, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = (*SAFE_SQLITE[:2], SAFE_SQLITE[2] + more)
    monkeypatch.setattr("sqlite3.sqlite_version_info", version)
    (finding,) = machine.sqlite(Context(home, {}))
    assert finding.level == ("warn" if more < 0 else "ok")


class Stop(Exception):
    """The desk is as far as this test looks."""


def test_a_desk_that_must_not_trade_starts_halted_until_a_person_resumes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def reached(desk: Any, *_: object) -> NoReturn:
        said.append(desk.kill_switch.engaged())
        raise Stop

    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(running, "warm_up", reached)
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 10**18)
    with pytest.raises(Stop):
        running.run(home, running.PagesAddress("127.0.0.1", 0), pages=False, say=said.append)
    assert re.match("Trading is HALTED: start: .* MB free.*; make room there, then: torra", said[0])
    assert said[1] and state(home)[0] == "HALTED" and (home / HALT).exists()
    assert "make room there" in state(home)[1]
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 0)
    assert type_it(state(home)[1].partition("then: ")[2]).exit_code == 0
    with pytest.raises(Stop):
        running.run(home, running.PagesAddress("127.0.0.1", 0), pages=False, say=said.append)
    assert said[-1] == "" and state(home)[0] == "ACTIVE"


def test_a_start_that_is_refused_leaves_no_note_of_its_address(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(server, "check_port", lambda *_, **__: None)
    with pytest.raises(ConfigError, match="add --allow-remote"):
        running.run(
            home,
            running.PagesAddress("127.0.0.1", 5000, names=("desk.lan",)),
            pages=True,
            say=print,
        )
    assert not (home / PAGES).exists()


def test_a_desk_that_was_halted_before_says_so_at_its_start(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_home(home)) as database:
        database.set_trading_state("HALTED", "restored from a backup")
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if line.startswith("Trading is HALTED"):
            raise Stop

    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(running, "warm_up", lambda *_: None)
    monkeypatch.setattr(Desk, "start", lambda _: said.append("started"))
    monkeypatch.setattr(running, "settle", lambda: said.append("settled"))
    with pytest.raises(Stop):
        running.run(home, running.PagesAddress("127.0.0.1", 0), pages=False, say=say)
    # Before, the collector would look through what the start makes in the middle of a close.
    assert said[:2] == ["started", "settled"]
    assert "restored from a backup. It goes on after: torra --home" in said[-1]
    assert type_it(said[-1].partition("after: ")[2]).exit_code == 0
    assert state(home)[0] == "ACTIVE"


def test_doctor_names_the_same_commands_and_halts_nothing(home: Path) -> None:
    garble(home / "torra.db", 30)
    result = torra("--home", str(home), "doctor", "--json")
    (found,) = [item for item in json.loads(result.stdout)["checks"] if item["level"] == "error"]
    assert result.exit_code == 1 and "restore --empty" in found["remedy"]
    assert not (home / HALT).exists()


# --- torra init -----------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("there", [True, False], ids=["over-an-old-desk", "in-a-new-home"])
def test_a_killed_init_leaves_a_desk_that_loads_and_its_profile_first(
    there: bool,
    tmp_path: Path,
    scaled: Callable[..., int],
    record_property: Callable[[str, object], None],
) -> None:
    """Killed at each of its steps on files: a new desk.json is never without its profile (D10)."""

    def answers(risk: float) -> SetupRequest:
        return SetupRequest(
            feed="store", symbols=(("BTCUSD", "BTCUSD"),), risk_per_trade=risk,
            timeframes=("M15",) if risk < 0.5 else ("M15", "H1"), profile_name="mine",
        )  # fmt: skip

    def made(home: Path, risk: float) -> Path:
        desk_plan.write(plan(home, answers(risk), TerminalFacts()), force=True)
        return home

    def settings(home: Path) -> dict[str, str]:
        return {k: v for k, v in everything(home).items() if k.endswith(".json")}

    empty = tmp_path / "empty"
    empty.mkdir()
    old = settings(made(tmp_path / "old", 0.5)) if there else {}
    new = settings(made(tmp_path / "new", 0.1))

    def one(nth: int) -> bool:
        home = tmp_path / str(nth)
        shutil.copytree(tmp_path / "old" if there else empty, home)
        if not died_at(nth, lambda: made(home, 0.1)):
            return False
        checks.start(home, lambda _: None)
        found = settings(home)
        desk, profile = (found.get(name) for name in ("desk.json", "profiles/mine.json"))
        assert desk in (old.get("desk.json"), new["desk.json"]), nth
        assert profile in (old.get("profiles/mine.json"), new["profiles/mine.json"]), nth
        assert desk != new["desk.json"] or profile == new["profiles/mine.json"], nth
        for item in load_desk(home).instances if desk else ():
            load_profile(item.profile, home)
        made(home, 0.1)
        assert settings(home) == new
        return True

    kills = until_whole(one, every=SPARED // scaled(SPARED))
    record_property("seen", f"killed at {kills} steps on files")
    assert kills >= 2


# --- soon -----------------------------------------------------------------------------------------


READY = """
import sys, threading, time
from pathlib import Path
from torra.commands import run as running
from torra.desk import wiring
from torra.desk.checks import table as checks
halted = checks.start(Path(sys.argv[1]), print)
desk, _ = wiring.open_desk(Path(sys.argv[1]))
assert desk.open() and not halted
running.warm_up(desk, print, threading.Event())
desk.start()
print("ready", time.process_time())
desk.close()
"""
"""What `torra run` does up to a desk with its lock and its timers, imports and all."""


def test_a_desk_with_a_million_ticks_is_ready_soon(
    tmp_path: Path, scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    """With twenty instances, by what the processor works: others may use the machine (D10)."""
    rows = scaled(1_000_000)
    if rows < 1_000_000:
        pytest.skip("writes a database of a gigabyte: make nightly")
    desk = large_database.build(tmp_path / "torra.db", rows, 20)
    furnish(tmp_path, {"desk.json": desk.model_dump_json()})
    taken = min(ready_after(tmp_path) for _ in range(3))
    record_property("seen", f"{taken:.1f} s of the processor with {rows:,} ticks")
    assert taken <= READY_SECONDS


def ready_after(home: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", READY, str(home)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout.split("ready ")[1])

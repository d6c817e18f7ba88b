"""What a desk remembers is its owner's alone: from the first start, and of older homes too."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from instance_database import open_home
from tests.worlds import desks
from torra import owner_only
from torra.bridges.order_journal import OrderJournal
from torra.commands import run as running
from torra.commands.command_line import main
from torra.desk.checks import machine, table
from torra.desk.checks.result import Context

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows keeps no such modes")


@pytest.fixture(autouse=True)
def everybody_may_read() -> Iterator[None]:
    """The umask that most systems have, or a wider one."""
    before = os.umask(0o000)
    yield
    os.umask(before)


def torra(home: Path, *words: str) -> str:
    told = CliRunner().invoke(main, ["--home", str(home), *words], catch_exceptions=False)
    assert told.exit_code == 0, told.output
    return told.output


def lived(home: Path) -> None:
    """Let a desk live through a close, and make a backup."""
    open_home(home).close()
    desk = desks.working_desk(home)
    desk.wake("BTCUSD")
    assert (home / "torra.db-wal").exists()
    desk.database.close()
    torra(home, "backup")


def modes(home: Path) -> dict[str, int]:
    kept = [home, *(path for path in home.rglob("*") if not path.is_symlink())]
    return {
        str(path.relative_to(home)): stat.S_IMODE(path.stat().st_mode)
        for path in kept
        if path.name.startswith(("torra.db", "desk-", "backups", "access")) or path == home
    }


def rights(home: Path) -> set[int]:
    return {mode & owner_only.OTHERS for mode in modes(home).values()}


def test_a_home_is_its_owner_s_from_its_first_moment(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    open_home(home).close()
    assert modes(home) == {".": 0o700, "torra.db": 0o600}
    lived(home)
    assert {mode for name, mode in modes(home).items() if "backups/" in name} == {0o600}
    assert rights(home) == {0}


def test_what_is_made_on_the_way_has_the_same_rights(tmp_path: Path) -> None:
    """Nothing of a desk is open to others that a later start would have to mend with a word."""
    home = tmp_path / "new" / "home"
    open_home(home).close()
    OrderJournal(home / "channels" / "main" / "mt5_orders.jsonl", desks.START)
    made = (home.parent, home, home / "channels", home / "channels" / "main")
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {owner_only.FOLDER}
    assert owner_only.mend(home) == ""


def test_what_sqlite_puts_beside_the_database_has_its_rights(tmp_path: Path) -> None:
    database = open_home(tmp_path / "home")
    with database.transaction():
        database.set_trading_state("ACTIVE", "a test")
    beside = {name: mode for name, mode in modes(tmp_path / "home").items() if "-" in name}
    assert beside == {"torra.db-wal": 0o600, "torra.db-shm": 0o600}


def test_a_home_of_an_older_program_is_mended_with_a_word(tmp_path: Path) -> None:
    lived(tmp_path)
    for name in modes(tmp_path):
        path = tmp_path / name
        path.chmod(0o755 if path.is_dir() else 0o644)
    aside = tmp_path / "elsewhere.db"
    aside.write_text("not ours")
    aside.chmod(0o644)
    (tmp_path / "backups" / "link.db").symlink_to(aside)
    (warning,) = (one for one in table.doctor(tmp_path) if "others" in one.detail)
    assert (warning.level, warning.name) == ("warn", "home")
    assert f"chmod 700 {tmp_path}" in warning.remedy
    told: list[str] = []
    table.start(tmp_path, told.append)
    note = f"note: others of this machine could read {tmp_path}: from now on only its owner can"
    assert note in told
    assert rights(tmp_path) == {0}
    assert stat.S_IMODE(aside.stat().st_mode) == 0o644, "what a link names is not the home's"
    again: list[str] = []
    table.start(tmp_path, again.append)
    assert not [line for line in again if "others" in line]
    assert not [one for one in table.doctor(tmp_path) if "others" in one.detail]


def test_a_folder_that_was_there_is_closed_at_the_first_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a container's volume, or a home whose desk.json was written by hand."""
    tmp_path.chmod(0o755)

    class Reached(Exception):
        """The desk is as far as this test looks."""

    def reached(*_: object) -> NoReturn:
        raise Reached

    said: list[str] = []
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(running, "warm_up", lambda *_: None)
    monkeypatch.setattr(running, "settle", reached)
    monkeypatch.setattr(running, "notes", lambda _: ())
    address = running.PagesAddress("127.0.0.1", 0)
    with pytest.raises(Reached):
        running.run(tmp_path, address, pages=False, say=said.append)
    assert (tmp_path / "torra.db").exists() and rights(tmp_path) == {0}
    assert not [warning for warning in table.doctor(tmp_path) if "others" in warning.detail]


def test_a_death_right_after_the_file_was_made_costs_nothing(tmp_path: Path) -> None:
    """An empty file is no database that was lost: there was none yet."""
    home = tmp_path / "home"
    owner_only.make_folder(home)
    owner_only.make_file(home / "torra.db")
    assert table.start(home, lambda _: None) == ""
    open_home(home).close()
    assert next(machine.database(Context(home, {}))).level == "ok"
    assert rights(home) == {0}


def test_a_folder_in_which_no_desk_lives_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert owner_only.mend(tmp_path) == ""
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_what_cannot_be_mended_is_no_reason_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(tmp_path)
    tmp_path.chmod(0o755)

    def refused(*_: object) -> None:
        raise PermissionError(1, "not yours")

    monkeypatch.setattr(Path, "chmod", refused)
    assert owner_only.mend(tmp_path) == ""
    assert owner_only.open_to_others(tmp_path)

"""Whatever halts the desk first, everything follows, and only a person lets it go on."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from instance_database import Database
from torra.bridges.order_journal import halt_in
from torra.config import Channel, DeskSettings, Instance
from torra.errors import StoreBroken, StoreUnavailable
from torra.home import HALT
from torra.store import ticks as claim_table
from torra.store.faults import refuse
from torra.trading import kill_switch
from torra.trading.kill_switch import KillSwitch, halt_files


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    folder = tmp_path / "share" / "main"
    folder.mkdir(parents=True)
    return {"desk": tmp_path / "home" / HALT, "main": folder / HALT}


@pytest.fixture
def switch(files: dict[str, Path], database: Database) -> KillSwitch:
    return KillSwitch(files, database)


@pytest.mark.parametrize("name", ["desk", "main"])
def test_a_file_halts_database_and_every_channel(
    name: str, switch: KillSwitch, files: dict[str, Path], database: Database
) -> None:
    files[name].parent.mkdir(parents=True)
    files[name].touch()
    assert name in switch.engaged(), "at once, before anything was written down"
    assert database.trading_state() == "ACTIVE"
    switch.keep()
    assert database.trading_state() == "HALTED"
    assert all(path.exists() for path in files.values())
    assert claim_table.trading_states(database, 1)[0].reason == f"the file HALT of {name} is there"


KINDS: dict[str, Callable[[Path], object]] = {
    "a dangling link": lambda path: path.symlink_to(path.parent.parent / "nowhere"),
    "a link to a folder": lambda path: path.symlink_to(path.parent),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
}


@pytest.mark.skipif(os.name != "posix", reason="Windows has no pipes among files")
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("name", ["desk", "main"])
def test_a_halt_of_any_kind_halts_and_nothing_is_written_through_it(
    name: str,
    make: Callable[[Path], object],
    switch: KillSwitch,
    files: dict[str, Path],
    database: Database,
) -> None:
    files[name].parent.mkdir(parents=True)
    make(files[name])
    assert name in switch.engaged()
    assert halt_in([files[name]])
    assert switch.halt("by a person: x") == [], "what lies there halts already"
    assert database.trading_state() == "HALTED"
    assert not (files[name].parent.parent / "nowhere").exists()


def test_taking_the_file_away_does_not_resume(
    switch: KillSwitch, files: dict[str, Path], database: Database
) -> None:
    switch.halt("a person")
    for path in files.values():
        path.unlink()
    assert switch.engaged() == "halted"
    switch.keep()
    assert all(path.exists() for path in files.values()), "the halt is put down again"
    assert database.trading_state() == "HALTED"


def test_a_fault_halts_before_it_can_be_written_down(
    switch: KillSwitch, files: dict[str, Path], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full: neither the database nor a file takes it, and yet nothing goes out."""

    def full(*_: object, **__: object) -> None:
        raise StoreBroken("database or disk is full")

    def no_room(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(database, "halt", full)
        patch.setattr(Path, "write_text", no_room)
        switch.fault("store: database or disk is full")
        assert switch.engaged() == "store: database or disk is full"
        switch.keep()
        assert switch.engaged()
    switch.keep()  # there is room again
    assert database.trading_state() == "HALTED"
    assert files["main"].read_text(encoding="utf-8") == "store: database or disk is full\n"
    assert switch.engaged(), "room alone does not resume"


def test_a_slow_disk_of_the_home_lets_nothing_go_on(
    switch: KillSwitch, files: dict[str, Path], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what may be a share has its limit: the desk's own file is waited for."""

    class Silent:
        def run(self, _: object) -> NoReturn:
            raise TimeoutError

    files["desk"].parent.mkdir(parents=True)
    files["desk"].touch()
    monkeypatch.setattr(kill_switch, "of_folder", lambda _: Silent())
    assert switch.engaged() == "the file HALT of desk is there"
    switch.keep()
    assert database.trading_state() == "HALTED"
    files["desk"].unlink()
    switch.keep()
    assert files["desk"].exists() and switch.standing()[0] == "the HALT files are down (desk)"


@pytest.mark.parametrize("mounted", [True, False])
def test_a_halt_reaches_what_it_can_and_makes_no_share(
    mounted: bool, switch: KillSwitch, files: dict[str, Path], database: Database
) -> None:
    folder = files["main"].parent
    if mounted:
        folder.write_text("a file where the folder should be", encoding="utf-8")
    else:
        folder.parent.rmdir()
    (failed,) = switch.halt("a person")
    assert failed.startswith("main: ")
    assert files["desk"].exists() and folder.parent.exists() is mounted
    assert database.trading_state() == "HALTED"


def test_a_share_that_cannot_be_read_does_not_stop_the_others(
    switch: KillSwitch, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Path.exists

    def stale(path: Path) -> bool:
        if path == files["main"]:
            raise OSError(116, "Stale file handle")
        return whole(path)

    monkeypatch.setattr(Path, "exists", stale)
    switch.keep()
    assert switch.engaged() == ""
    switch.halt("a person")
    switch.keep()
    assert files["desk"].exists()


def test_an_own_file_that_cannot_be_looked_for_halts(
    switch: KillSwitch, files: dict[str, Path], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may have put it there: a folder that is not readable any more is no permission."""
    whole = Path.lstat

    def closed(path: Path) -> os.stat_result:
        if path == files["desk"]:
            raise PermissionError(13, "Permission denied")
        return whole(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "lstat", closed)
        told = "cannot be looked for: Permission denied"
        assert switch.engaged() == f"the file HALT of desk {told}"
        assert switch.standing() == [f"the HALT files are down (desk {told})"]
        switch.keep()
    assert database.trading_state() == "HALTED", "and it stands until a person resumes"


def test_a_desk_that_is_just_putting_the_file_down_does_not_undo_a_resume(
    switch: KillSwitch, files: dict[str, Path], database: Database
) -> None:
    switch.halt("a person")
    late = iter((files["main"], files["desk"], None, None))

    def meanwhile(_: float) -> None:
        path = next(late)
        if path is not None:
            path.touch()

    switch.resume("a person", meanwhile)
    assert switch.engaged() == ""
    with pytest.raises(OSError, match="halts the desk again"):
        switch.resume("a person", lambda _: files["main"].touch())


@pytest.mark.parametrize("how", ["a person halts", "a fault that is remembered"])
def test_a_halt_that_comes_after_a_resume_stands(
    how: str, switch: KillSwitch, files: dict[str, Path], database: Database
) -> None:
    switch.halt("a person")

    def meanwhile(_: float) -> None:
        if how == "a person halts":
            KillSwitch(files, database).halt("by a person: again")
        else:
            switch.hold("by a person: again")

    with pytest.raises(OSError, match="halted anew: by a person: again"):
        switch.resume("a person", meanwhile)
    assert switch.engaged()
    assert claim_table.trading_states(database, 1)[0].state == (
        "HALTED" if how == "a person halts" else "ACTIVE"
    )


def test_a_desk_that_notes_the_old_file_does_not_undo_a_resume(
    switch: KillSwitch, files: dict[str, Path], database: Database
) -> None:
    switch.halt("a person")
    records, late = list[str](), iter([True, False, False])

    def meanwhile(_: float) -> None:
        if next(late):
            files["main"].touch()
            KillSwitch(files, database).keep()

    switch.resume("a person", meanwhile, lambda: records.append(database.trading_state()))
    assert (switch.engaged(), records) == ("", ["ACTIVE", "ACTIVE"])


def test_resuming_stops_at_a_file_that_cannot_go(
    switch: KillSwitch, files: dict[str, Path], database: Database
) -> None:
    switch.halt("a person")
    files["main"].unlink()
    files["main"].mkdir()
    switch.hold("a fault")
    with pytest.raises(OSError, match="HALT"):
        switch.resume("a person", lambda _: None)
    assert database.trading_state() == "HALTED"
    assert claim_table.trading_states(database, 1)[0].reason == "a person", "it never was ACTIVE"
    assert switch.engaged() == "a fault"


@pytest.mark.parametrize(
    ("said", "broken"),
    [
        ("database is locked", False),
        ("database table is locked", False),
        ("database or disk is full", True),
        ("disk I/O error", True),
        ("attempt to write a readonly database", True),
        ("database disk image is malformed", True),
    ],
)
def test_a_lock_passes_by_and_everything_else_halts(
    said: str, broken: bool, tmp_path: Path
) -> None:
    with pytest.raises(StoreUnavailable) as raised:
        refuse(tmp_path / "torra.db", sqlite3.OperationalError(said))
    assert isinstance(raised.value, StoreBroken) is broken


def test_every_channel_has_a_file_where_its_other_side_looks(tmp_path: Path) -> None:
    live: dict[str, Any] = {"feed": "store", "timeframes": ("H1",)}
    settings = DeskSettings(
        instances=(
            Instance(symbol="XAUUSD", bridge="torra_files", channel="gold", **live),
            Instance(symbol="EURUSD", bridge="mt5_direct", channel="old", **live),
            Instance(symbol="BTCUSD", bridge="paper", **live),
        ),
        channels={
            "gold": Channel(folder=str(tmp_path / "gold"), account=1),
            "old": Channel(account=2, live=True),
        },
    )
    assert halt_files(tmp_path / "home", settings) == {
        "desk": tmp_path / "home" / "control" / "HALT",
        "gold": tmp_path / "gold" / "control" / "HALT",
        "old": tmp_path / "home" / "channels" / "old" / "control" / "HALT",
    }

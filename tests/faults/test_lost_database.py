"""A database that was lost is never made anew unawares: a desk without memory does not trade (D9).

Whatever else a desk with a database leaves in its home tells that there was one; what is there
before the first start does not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.backup.test_backup import furnish, garble, state
from tests.faults.test_start import refused, starts, torra, type_it
from tests.worlds import stores
from torra import home as lost_database
from torra.bridges.mt5 import bridge as mt5_direct
from torra.commands import access as access_commands
from torra.dashboard.doors import access_file
from torra.desk import wiring
from torra.desk.checks import machine, table
from torra.errors import ConfigError
from torra.home import HALT
from torra.trading.kill_switch import state_folder


def ordered(home: Path, name: str) -> None:
    folder = state_folder(home, "main")
    folder.mkdir(parents=True)
    (folder / name).write_text("an order\n")


def resumed(home: Path) -> None:
    for word in ("halt", "resume"):
        assert torra("--home", str(home), word).exit_code == 0
    assert not (home / HALT).exists()


def ran(home: Path) -> None:
    """Let a desk live in a home as `torra run --no-pages` does, on paper."""
    desk, _ = wiring.open_desk(home)
    desk.close()


SIGNS: dict[str, Callable[[Path], object]] = {
    "it-ran": ran,
    "a-backup": lambda home: torra("--home", str(home), "backup"),
    "a-log": lambda home: (home / "torra.db-wal").write_bytes(b"a log"),
    "its-pages": lambda home: access_commands.tell_address(home, "http://127.0.0.1:5000"),
    "orders-mt5": lambda home: ordered(home, mt5_direct.JOURNAL),
    "a-halt-that-ended": resumed,
}
COMMANDS = (
    ("resume",), ("approve", "T1"), ("reject", "T1"), ("settle", "T1"), ("halt", "--reduce"),
    ("halt",),
)  # fmt: skip


@pytest.mark.parametrize("empty", [False, True], ids=["gone", "empty"])
@pytest.mark.parametrize("sign", SIGNS)
def test_a_lost_database_is_refused_and_no_command_makes_another(
    sign: str, empty: bool, tmp_path: Path
) -> None:
    home, path = tmp_path, tmp_path / "torra.db"
    stores.open_database(home).close()
    SIGNS[sign](home)
    path.write_bytes(b"") if empty else path.unlink()
    for words in COMMANDS:
        result = torra("--home", str(home), *words)
        assert result.exit_code != 0 and lost_database.LOST in result.stderr, words
        assert path.exists() is empty and (not empty or path.stat().st_size == 0), words
    assert (home / HALT).exists(), "as far as it can"
    line = refused(home)
    assert lost_database.LOST in line
    assert type_it(line, "--yes").exit_code == 0
    assert starts(home) == "" and state(home)[0] == "HALTED"


NEW: dict[str, Callable[[Path], object]] = {
    "nothing": lambda home: None,
    "torra-init": lambda home: torra(
        "--home", str(home), "init", "--symbols", "BTCUSD", "--feed", "store", "--json"
    ),
    "torra-token": access_file.read_or_make,
    "halted-first": lambda home: torra("--home", str(home), "halt"),
    "looked-at": lambda home: torra("--home", str(home), "doctor"),
    "an-empty-file": lambda home: furnish(home, {"torra.db": ""}),
}


@pytest.mark.by_day(4)
@pytest.mark.parametrize("before", NEW)
def test_a_home_that_is_new_is_not_taken_for_one_that_lost_it(before: str, tmp_path: Path) -> None:
    NEW[before](tmp_path)
    assert starts(tmp_path) == ""
    with closing(stores.open_database(tmp_path)) as database:
        assert database.trading_state() == ("HALTED" if before == "halted-first" else "ACTIVE")


def test_terminals_are_halted_before_a_remedy_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reads the backups through takes its time, and may fail."""
    stores.open_database(tmp_path).close()
    garble(tmp_path / "torra.db", 0)
    seen: list[bool] = []

    def looked(home: Path) -> str:
        seen.append((home / HALT).exists())
        raise ValueError("a backup that nobody can read")

    monkeypatch.setattr(machine, "repair", looked)
    with pytest.raises((ValueError, ConfigError)):
        table.start(tmp_path, lambda _: None)
    assert seen == [True]

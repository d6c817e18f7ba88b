"""A log that lost its newest commits is told at the start, and the desk begins HALTED (D9).

Each life ends by a kill: the log and its index stay as they were at the newest commit. Then a part
of the log goes, or all of it, or nothing. What is whole is never blamed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from instance_database import Database
from tests.faults import kills, wal
from tests.faults.test_start import torra
from tests.worlds import stores
from torra.backup.log_end import FRAME_HEADER, LOG_HEADER, lacks_newest_commit
from torra.desk.checks import table as checks
from torra.failpoints import strike
from torra.home import HALT

PAGE = 4096
FRAME = FRAME_HEADER + PAGE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process that is killed")


def killed(home: Path, work: Callable[[Database], object]) -> None:
    """Let a desk's database live through some work and die by a kill."""

    def life() -> None:
        database = stores.open_database(home)
        work(database)
        strike()  # SQLite closes nothing: log and index stay

    assert kills.run(life)


def six_commits(database: Database) -> None:
    for number in range(3):
        database.reduce(f"step {number}")
        database.set_trading_state("ACTIVE", f"step {number}")


@pytest.fixture(scope="module")
def died(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose desk was killed after some commits."""
    home = tmp_path_factory.mktemp("died")
    stores.open_database(home).close()
    killed(home, six_commits)
    return home


@pytest.fixture
def home(died: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(died, tmp_path / "home"))


def log_of(home: Path) -> Path:
    return home / "torra.db-wal"


def test_a_whole_log_is_never_blamed(home: Path) -> None:
    assert not lacks_newest_commit(home / "torra.db")
    with log_of(home).open("ab") as log:
        log.write(b"\0" * 3 * FRAME)
    assert not lacks_newest_commit(home / "torra.db"), "frames that nobody committed are no loss"


def test_every_cut_that_loses_a_commit_is_seen_and_no_other(home: Path) -> None:
    whole = log_of(home).read_bytes()
    ends = wal.commit_ends(whole)
    assert len(ends) == 6
    for size in {*range(0, len(whole), FRAME // 3), *ends, *(end - 1 for end in ends), 0, 31}:
        log_of(home).write_bytes(whole[:size])
        assert lacks_newest_commit(home / "torra.db") == (size < ends[-1]), size


def test_a_log_that_is_gone_or_empty_behind_is_seen(home: Path) -> None:
    whole = log_of(home).read_bytes()
    log_of(home).write_bytes(whole[: LOG_HEADER + FRAME] + bytes(len(whole) - LOG_HEADER - FRAME))
    assert lacks_newest_commit(home / "torra.db")
    log_of(home).unlink()
    assert lacks_newest_commit(home / "torra.db")


def test_where_no_index_tells_nothing_is_said(home: Path) -> None:
    log_of(home).write_bytes(log_of(home).read_bytes()[:100])
    index = home / "torra.db-shm"
    told = index.read_bytes()
    for other in (b"", told[:50], b"\0" * len(told), told[:20] + b"\1" + told[21:]):
        index.write_bytes(other)
        assert not lacks_newest_commit(home / "torra.db")
    index.unlink()
    assert not lacks_newest_commit(home / "torra.db")
    assert not lacks_newest_commit(home / "nothing.db")


def test_a_log_of_another_round_is_not_blamed(home: Path) -> None:
    """A log that was copied into the database begins anew; an index of before names other salts."""
    before = (home / "torra.db-shm").read_bytes()
    with closing(stores.open_database(home)) as database:
        database.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        database.halt("a new round")
        new = log_of(home).read_bytes()
    log_of(home).write_bytes(new)
    (home / "torra.db-shm").write_bytes(before)
    assert not lacks_newest_commit(home / "torra.db")


def test_what_is_in_the_database_already_is_not_missed(home: Path) -> None:
    def copied(database: Database) -> None:
        database.halt("the last step")
        database.connection().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    killed(home, copied)
    log_of(home).write_bytes(b"")
    assert not lacks_newest_commit(home / "torra.db")


def test_a_start_says_it_and_begins_halted(home: Path) -> None:
    log_of(home).write_bytes(log_of(home).read_bytes()[: LOG_HEADER + 2 * FRAME])
    told = checks.start(home, lambda _: None)
    for word in ("torra.db-wal", "newest", "MetaTrader 5", "resume"):
        assert word in told, told
    assert checks.start(home, lambda _: None) == "", "the first program has begun it anew"
    assert not (home / HALT).exists(), "the desk that starts is halted by what the check returns"


def test_the_doctor_says_it(home: Path) -> None:
    log_of(home).write_bytes(log_of(home).read_bytes()[: LOG_HEADER + 2 * FRAME])
    result = torra("--home", str(home), "doctor")
    assert result.exit_code == 1 and "torra.db-wal" in result.output

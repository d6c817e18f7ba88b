"""A transaction is whole or nothing, waits as long as it was told, and never stores NaN."""

from __future__ import annotations

import math
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils.db import PrimaryKeyRequired

from instance_database import Database
from tests.conftest import Scale
from tests.worlds.stores import NOON, count, key_of, open_database, opening, save
from torra.clock import System
from torra.config import ROOT
from torra.errors import ConfigError, StoreBroken, StoreUnavailable
from torra.store import connection as store_connection
from torra.store import ticks as claim_table
from torra.store.connection import quick_check, stamp
from torra.store.fair_lock import FairLock
from torra.store.trade import proposals_and_alarms as execution_table

FOREVER = 60.0


def bump(database: Database) -> None:
    """Read, then write: what a deferred transaction cannot do beside another writer."""
    sql = "SELECT coalesce(max(reason), '0') AS told FROM desk_state WHERE state = 'ACTIVE'"
    with database.transaction():
        told = int(next(database.connection().query(sql))["told"])
        database.set_trading_state("ACTIVE", f"{told + 1:09d}")


def setting(database: Database, name: str) -> object:
    return database.connection().execute(f"PRAGMA {name}").fetchone()[0]


def settings(database: Database) -> list[object]:
    names = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys", "recursive_triggers")
    # Few pages: each thread has a connection, and memory grows until all are full (S1).
    return [setting(database, name) for name in (*names, "cache_size")]


def test_every_connection_is_durable_and_strict(database: Database) -> None:
    wanted = ["wal", 2, 5000, 1, 1, -512]
    assert settings(database) == wanted
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: settings(database), range(3))) == [wanted] * 3


def test_a_connection_that_cannot_be_durable_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(store_connection.SETTINGS, "foreign_keys", 2)
    with pytest.raises(ConfigError, match="foreign_keys=1 where Torra needs 2"):
        open_database(tmp_path)


def test_threads_wait_for_each_other_and_lose_nothing(database: Database, scaled: Scale) -> None:
    each = scaled(1000, least=15)
    with ThreadPoolExecutor(8) as pool:
        for task in [pool.submit(lambda: [bump(database) for _ in range(each)]) for _ in range(8)]:
            task.result()
    assert claim_table.trading_states(database, 1)[0].reason == f"{8 * each:09d}"


def test_a_connection_ends_with_its_thread(database: Database) -> None:
    for _ in range(5):
        thread = threading.Thread(target=database.trading_state)
        thread.start()
        thread.join()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(database.trading_state).result()
        assert len(database._open) == 2


def test_a_foreign_writer_is_waited_for_then_told(database: Database) -> None:
    clock = System()
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        begin = clock.monotonic()
        with (
            pytest.raises(StoreUnavailable, match=r"torra\.db: database is locked; another prog"),
            database.transaction(0.2),
        ):
            raise AssertionError("the lock is not ours")
        assert 0.2 <= clock.monotonic() - begin < 4.5
        assert setting(database, "busy_timeout") == 5000
        assert database.trading_state() == "ACTIVE", "reading goes on"
        other.execute("ROLLBACK")
    bump(database)


@pytest.mark.journey
@pytest.mark.parametrize("wait", [None, 0.2], ids=["patient", "told"])
def test_a_transaction_is_a_writers_from_its_beginning(
    database: Database, wait: float | None
) -> None:
    with closing(sqlite3.connect(database.path, timeout=0, isolation_level=None)) as other:
        with database.transaction(wait):
            assert database.trading_state() == "ACTIVE"  # read only, and nobody writes meanwhile
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")


def test_a_thread_of_ours_is_waited_for_then_told(database: Database) -> None:
    with ThreadPoolExecutor(1) as pool, database.transaction():
        waiting = pool.submit(lambda: database.transaction(0.1).__enter__())
        with pytest.raises(StoreUnavailable, match="database is locked; another thread"):
            waiting.result()
    bump(database)


def test_the_line_is_first_come_first_served() -> None:
    line, order, threads = FairLock(), [], []

    def work(number: int) -> None:
        assert line.enter(FOREVER)
        order.append(number)
        line.leave()

    assert line.enter(0.0)
    for number in range(5):
        threads.append(threading.Thread(target=work, args=(number,)))
        threads[-1].start()
        while len(line._turns) < number + 2:
            pass
    assert line.enter(0.0) is False, "who does not wait goes without a trace"
    line.leave()
    for thread in threads:
        thread.join()
    assert order == list(range(5))
    assert line.enter(0.0)


def test_a_writer_that_goes_in_time_is_waited_for(database: Database) -> None:
    with closing(
        sqlite3.connect(database.path, isolation_level=None, check_same_thread=False)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, lambda: other.execute("ROLLBACK"))
        timer.start()
        with database.transaction(FOREVER):
            database.set_trading_state("REDUCING", "after the wait")
        timer.join()
    assert database.trading_state() == "REDUCING"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, StoreUnavailable])
def test_an_exception_leaves_nothing(database: Database, error: type[BaseException]) -> None:
    with pytest.raises(error), database.transaction():  # noqa: PT012
        save(database, NOON)
        database.write_journal(key_of(NOON), {"action": "HOLD"})
        database.enqueue_signal(opening())
        database.set_latch("BTCUSD", "BUY")
        raise error
    for table in ("sentiment", "chains", "journal", "signals", "signal_events", "latches"):
        assert count(database, table) == 0, table
    assert not database.connection().conn.in_transaction


def test_an_inner_transaction_joins_the_outer(database: Database) -> None:
    with pytest.raises(RuntimeError), database.transaction():  # noqa: PT012
        with database.transaction():
            bump(database)
        raise RuntimeError
    assert count(database, "desk_state") == 0


def test_an_inner_failure_that_is_caught_undoes_its_own_part_only(database: Database) -> None:
    with database.transaction():
        database.set_trading_state("REDUCING", "kept")
        with pytest.raises(RuntimeError), database.transaction():  # noqa: PT012
            database.set_trading_state("HALTED", "undone")
            raise RuntimeError
    assert [row.reason for row in claim_table.trading_states(database)] == ["kept"]


def test_library_writes_do_not_commit_early(database: Database) -> None:
    """What sqlite-utils does inside our transaction must not end it."""
    with pytest.raises(RuntimeError), database.transaction():  # noqa: PT012
        db = database.connection()
        table = db.table("scratch")
        table.insert({"id": 1, "word": "a"}, pk="id")
        table.upsert({"id": 1, "word": "b"}, pk="id")
        table.add_column("more", float)
        table.transform(rename={"word": "term"})
        list(db.query("SELECT * FROM scratch"))
        assert db.conn.in_transaction
        raise RuntimeError
    assert "scratch" not in database.connection().table_names()


def test_an_upsert_joins_the_transaction_and_keeps_what_it_is_not_told(database: Database) -> None:
    execution_table.note_bridge(database, "main", deny="", detail="a", facts={}, reconciled_at=NOON)
    with pytest.raises(RuntimeError), database.transaction():  # noqa: PT012
        execution_table.note_bridge(database, "main", deny="", detail="b", facts={})
        assert database.connection().conn.in_transaction, "it did not commit"
        raise RuntimeError
    execution_table.note_bridge(database, "main", deny="CLOCK_SKEW", detail="c", facts={"a": 1})
    (row,) = database.bridges()
    assert (row.deny, row.detail, row.facts) == ("CLOCK_SKEW", "c", '{"a":1}')
    assert row.reconciled_at == stamp(NOON)


def test_an_upsert_makes_no_table(database: Database) -> None:
    with pytest.raises(PrimaryKeyRequired):
        database.upsert("nowhere", {"id": 1})
    assert "nowhere" not in database.connection().table_names()


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_never_stored(database: Database, broken: float) -> None:
    def writes() -> Iterator[object]:
        yield lambda: database.enqueue_signal(opening("T2", instance="EURUSD", lots=broken))
        yield lambda: database.write_journal(key_of(NOON), {"deep": [{"er": broken}]})
        yield lambda: database.write_journal(key_of(NOON), {"cost_usd": broken})
        yield lambda: save(database, NOON, deliberation={"cost": broken})
        yield lambda: database.upsert("bridges", {"name": "main", "facts": broken})
        yield lambda: database.close_position(
            "T1", price=1.0, time=NOON, profit=broken, r_multiple=0.0, reason="STOPPED"
        )

    database.enqueue_signal(opening())
    database.move_signal("T1", "PUBLISHED")
    database.move_signal("T1", "FILLED")
    for write in writes():
        with pytest.raises(ValueError, match=r"finite|not JSON compliant"):
            write()
    assert [count(database, name) for name in ("signals", "journal", "sentiment")] == [1, 0, 0]
    assert database.signal("T1")["state"] == "FILLED"


def test_a_full_disk_halts_and_heals(database: Database) -> None:
    pages = setting(database, "page_count")
    database.connection().execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreUnavailable, match="full; free some space"), database.transaction():  # noqa: PT012
        save(database, NOON)
        database.write_journal(key_of(NOON), {"long": "x" * 100_000})
    assert [count(database, name) for name in ("sentiment", "chains", "journal")] == [0, 0, 0]
    assert quick_check(database) == "ok"
    database.connection().execute("PRAGMA max_page_count = 1000000")
    save(database, NOON)
    assert count(database, "chains") == 1


def test_a_swallowed_disk_error_does_not_become_half_a_commit(database: Database) -> None:
    pages = setting(database, "page_count")
    database.connection().execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreUnavailable), database.transaction():  # noqa: PT012
        save(database, NOON)
        with pytest.raises(StoreUnavailable):
            database.write_journal(key_of(NOON), {"long": "x" * 100_000})
        database.connection().execute("ROLLBACK")
    assert count(database, "sentiment") == 0


def test_a_damaged_file_is_noticed(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    for number in range(50):
        database.write_journal(key_of(NOON.replace(minute=number)), {"long": "x" * 3000})
    (page,) = database.tuples("SELECT rootpage - 1 FROM sqlite_master WHERE name = 'journal'")[0]
    database.close()
    path = tmp_path / "torra.db"
    data = bytearray(path.read_bytes())
    data[4096 * page : 4096 * (page + 1)] = b"\xa5" * 4096
    path.write_bytes(data)
    database = open_database(tmp_path)
    assert quick_check(database) != "ok"


def gone(path: Path) -> None:
    path.unlink()


def another(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE ticks (a)")


@pytest.mark.parametrize("happens", [gone, another])
def test_a_file_that_was_deleted_or_replaced_is_not_written_to(
    happens: Callable[[Path], None], database: Database
) -> None:
    save(database, NOON)
    happens(database.path)
    left = database.path.exists()
    with pytest.raises(StoreBroken, match="deleted, moved or replaced"), database.transaction():
        pass
    with ThreadPoolExecutor(1) as pool, pytest.raises(StoreBroken, match="torra restore"):
        pool.submit(database.trading_state).result()
    assert database.path.exists() == left  # nothing was made in its place


def emptied(path: Path) -> None:
    path.unlink()
    path.touch()


@pytest.mark.parametrize("happens", [gone, emptied])
def test_a_log_that_was_deleted_is_noticed_and_its_commits_are_saved(
    happens: Callable[[Path], None], database: Database, tmp_path: Path
) -> None:
    """SQLite would write on to it, and a kill would take every commit that it holds."""
    save(database, NOON)
    log = database.path.with_name(f"{database.path.name}-wal")
    happens(log)
    for _ in range(2):
        with pytest.raises(StoreBroken, match=f"{log.name} was deleted"), database.transaction():
            pass
    killed = tmp_path / "killed"
    killed.mkdir()
    shutil.copy(database.path, killed)  # what is there after a kill
    with closing(open_database(killed)) as after:
        assert quick_check(after) == "ok"
        assert count(after, "sentiment") == 1


def test_a_log_that_another_program_began_is_not_written_over(database: Database) -> None:
    """Its commits would be lost under ours, and pages of both be mixed."""
    save(database, NOON)
    log = database.path.with_name(f"{database.path.name}-wal")
    log.rename(log.with_suffix(".old"))
    log.write_bytes(b"another's")
    before = database.path.read_bytes()
    with pytest.raises(StoreBroken, match="was deleted or replaced"), database.transaction():
        pass
    assert database.path.read_bytes() == before
    log.with_suffix(".old").replace(log)  # so that closing finds its own


def test_a_closed_database_says_so(database: Database) -> None:
    database.close()
    with pytest.raises(StoreUnavailable, match="is closed"):
        database.trading_state()


def test_a_copy_is_whole_while_a_writer_works(database: Database, tmp_path: Path) -> None:
    save(database, NOON, 0.3)
    with database.transaction():
        save(database, NOON.replace(hour=13), 0.4)
        Database.copy(database.path, tmp_path / "other" / "copy.db")
    copy = Database.open(tmp_path / "other" / "copy.db", now=lambda: NOON)
    assert (count(copy, "sentiment"), count(copy, "chains")) == (1, 1)
    copy.close()
    (tmp_path / "notes.txt").write_text("buy low, sell high" * 100)
    with pytest.raises(ConfigError, match="not a database"):
        Database.copy(tmp_path / "notes.txt", tmp_path / "never.db")
    assert not (tmp_path / "never.db").exists()


CLOSING = """
import sys, tempfile, threading, time
from pathlib import Path
from tests.worlds import stores

for number in range(int(sys.argv[1])):
    with tempfile.TemporaryDirectory() as folder:
        database = stores.open_database(Path(folder))
        ended = []

        def work():
            try:
                while True:
                    with database.transaction(1.0):
                        database.set_trading_state("ACTIVE", "work")
                        list(database.connection().query("select count(*) from sentiment"))
                    database.trading_state()
            except Exception as error:
                ended.append(type(error).__name__)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.01 + number % 7 / 1000)
        database.close()
        for thread in threads:
            thread.join(5)
        assert ended == ["StoreUnavailable"] * 3, ended
"""


def test_closing_under_other_threads_ends_them_plainly(scaled: Scale) -> None:
    """A connection that is closed while its thread uses it crashes the whole process."""
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", CLOSING, "60" if scaled.whole else "15"],
        check=False, cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stderr == ""


def test_a_closed_database_lets_a_running_transaction_end(database: Database) -> None:
    begun, go, done = threading.Event(), threading.Event(), []

    def work() -> None:
        with database.transaction():
            begun.set()
            assert go.wait(5)
            database.set_trading_state("REDUCING", "the last word")
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(5)
    threading.Timer(0.2, go.set).start()
    database.close()
    thread.join()
    assert done
    with closing(sqlite3.connect(database.path)) as again:
        assert again.execute("select reason from desk_state").fetchall() == [("the last word",)]

"""A host's own sentiment file: fed after the commit, repaired at start, never in a tick's way."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils

from instance_database import Database
from tests.tries import until
from tests.worlds import desks, legacy_database
from tests.worlds.stores import NOON, key_of, save
from torra.clock import System
from torra.config import Instance
from torra.desk.schedule import Desk
from torra.errors import ConfigError
from torra.store.host_files import FED, SymbolDatabases, files_of, sentiment_page, sentiment_row
from torra.store.migrations import ADDED_COLUMNS, take_over

LEGACY_ROWS = 20
Listener = Callable[[dict[str, Any]], object]


def rows_of(path: Path, where: str = "torra_key IS NOT NULL") -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        sql = f"SELECT * FROM sentiment WHERE {where} ORDER BY torra_key, id"
        return [dict(row) for row in connection.execute(sql)]


def fed(path: Path) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in FED) for row in rows_of(path)]


def wanted(desk: Desk, instance: str = "BTCUSD") -> list[tuple[Any, ...]]:
    rows = sentiment_page(desk.database, instance, "", 10_000)
    return [tuple(row[name] for name in FED) for row in rows]


class Heard:
    """Tells what a desk's event stream would: ticks that ended."""

    def __init__(self, listeners: list[Listener]) -> None:
        self.listeners = listeners

    def on_event(self, kind: str, told: dict[str, Any]) -> None:
        if kind == "tick":
            change = {"what": "tick"}
            change |= {name: told[name] for name in ("instance", "timeframe", "bar_time")}
            for listener in self.listeners:
                listener(change)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return legacy_database.build(tmp_path / "scorer.db", LEGACY_ROWS)


@pytest.fixture
def heard() -> list[Listener]:
    return []


@pytest.fixture
def desk(tmp_path: Path, heard: list[Listener]) -> Iterator[Desk]:
    made = desks.working_desk(tmp_path / "desk", events=Heard(heard))
    yield made
    made.close()


def files(desk: Desk, host: Path) -> SymbolDatabases:
    made = SymbolDatabases({"BTCUSD": host}, desk.database, System().real_now)
    made.check()
    return made


def test_new_rows_follow_the_desks_and_old_ones_keep_every_byte(
    desk: Desk, heard: list[Listener], host: Path
) -> None:
    before = rows_of_legacy(host)
    ours = files(desk, host)
    desks.step(desk)  # before the files are fed: found by the comparison
    ours.start()
    heard.append(ours.on_change)
    desks.step(desk, 6)
    until(lambda: fed(host) == wanted(desk))
    ours.close()
    assert len(fed(host)) > 6
    assert fed(host) == wanted(desk)
    assert rows_of_legacy(host) == before
    assert ours.behind() == {}
    assert len(list((host.parent / "backups").iterdir())) == 1


def rows_of_legacy(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        names = ", ".join([*legacy_database.COLUMNS, legacy_database.UNKNOWN])
        sql = f"SELECT {names} FROM sentiment WHERE id < {2 * LEGACY_ROWS} ORDER BY id"
        return connection.execute(sql).fetchall()


def test_a_row_is_there_once_however_often_it_is_written(desk: Desk, host: Path) -> None:
    ours = files(desk, host)
    desks.step(desk, 3)
    assert ours.repair("BTCUSD") == len(wanted(desk))
    assert ours.repair("BTCUSD") == 0
    ours._feed(wanted(desk)[0][-1])
    assert fed(host) == wanted(desk)


def test_what_a_crash_left_out_is_found_at_the_next_start(desk: Desk, host: Path) -> None:
    ours = files(desk, host)
    desks.step(desk, 5)
    ours.repair("BTCUSD")
    with closing(sqlite3.connect(host)) as connection, connection:
        connection.execute("DELETE FROM sentiment WHERE torra_key LIKE '%H1%'")
    again = files(desk, host)
    again.start()
    until(lambda: fed(host) == wanted(desk))
    again.close()


def test_a_locked_file_is_behind_and_keeps_no_tick_waiting(
    desk: Desk, heard: list[Listener], host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torra.store.host_files.GUEST_BUSY_SECONDS", 0.05)
    ours = files(desk, host)
    ours.start()
    heard.append(ours.on_change)
    with closing(sqlite3.connect(host, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        monotonic = System().monotonic
        begun = monotonic()
        desks.step(desk)
        assert monotonic() - begun < 5
        until(lambda: "locked" in ours.behind().get("BTCUSD", ""))
        other.execute("ROLLBACK")
    desks.step(desk)
    until(lambda: not ours.behind() and fed(host) == wanted(desk))
    ours.close()


def test_what_nobody_told_is_found_by_the_comparison(
    desk: Desk, heard: list[Listener], host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torra.store.host_files.COMPARE_EVERY", 3)
    ours = files(desk, host)
    desks.step(desk)
    ours.start()
    until(lambda: not ours.behind())
    desks.step(desk)  # nobody listens
    heard.append(ours.on_change)
    desks.step(desk, 3)
    until(lambda: fed(host) == wanted(desk))
    ours.close()


def test_rows_that_their_owner_took_out_stay_out(desk: Desk, host: Path) -> None:
    ours = files(desk, host)
    desks.step(desk, 6)
    ours.repair("BTCUSD")
    keys = [row[-1] for row in fed(host) if "|M15|" in row[-1]]
    with closing(sqlite3.connect(host)) as connection, connection:
        gone = [(key,) for key in (*keys[:2], keys[-1])]
        connection.executemany("DELETE FROM sentiment WHERE torra_key = ?", gone)
    assert ours.repair("BTCUSD") == 1, "the newest one was lost, the oldest were taken out"
    assert [row[-1] for row in fed(host) if "|M15|" in row[-1]] == keys[2:]


def test_a_file_that_is_busy_at_the_start_is_made_ready_later(
    desk: Desk, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torra.store.host_files.GUEST_BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(host, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ours = files(desk, host)
        other.execute("ROLLBACK")
    desks.step(desk)
    assert ours.repair("BTCUSD") == len(wanted(desk))


@pytest.mark.parametrize("lost", ["agent_deliberation", "torra_key"])
def test_a_column_that_was_lost_is_added_anew(host: Path, lost: str) -> None:
    with closing(sqlite_utils.Database(host, execute_plugins=False)) as db:
        assert take_over(db, host, NOON) is not None and take_over(db, host, NOON) is None
        if lost == "torra_key":
            db.execute("DROP INDEX sentiment_torra_key")
        db.execute(f"ALTER TABLE sentiment DROP COLUMN {lost}")
        assert take_over(db, host, NOON.replace(hour=13)) is not None
        assert set(ADDED_COLUMNS) <= set(db.table("sentiment").columns_dict)
        assert ["torra_key"] in [index.columns for index in db.table("sentiment").indexes]
        assert take_over(db, host, NOON) is None


def test_an_index_that_was_lost_is_made_anew(desk: Desk, host: Path) -> None:
    files(desk, host)
    with closing(sqlite3.connect(host)) as connection, connection:
        connection.execute("DROP INDEX sentiment_torra_key")
    desks.step(desk)
    assert files(desk, host).repair("BTCUSD") == len(wanted(desk))


def test_a_rule_that_our_rows_would_break_is_refused_at_start(desk: Desk, host: Path) -> None:
    with closing(sqlite3.connect(host)) as connection, connection:
        connection.execute("CREATE UNIQUE INDEX mine ON sentiment (timestamp)")
    with pytest.raises(ConfigError, match="same timestamp"):
        files(desk, host)


def test_the_file_keeps_its_journal_mode(desk: Desk, host: Path) -> None:
    ours = files(desk, host)
    desks.step(desk)
    ours.repair("BTCUSD")
    with closing(sqlite3.connect(host)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "there is no such file"),
        (
            lambda path: path.write_text("no database at all, but long enough to be read"),
            "database",
        ),
        (lambda path: sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close(), "no"),
        (lambda path: legacy_database.build(path, without="verdict"), "no column verdict"),
    ],
    ids=["missing", "no-database", "no-table", "no-column"],
)
def test_a_file_that_is_no_scorers_is_refused_at_start(
    desk: Desk, tmp_path: Path, make: Callable[..., Any], said: str
) -> None:
    path = tmp_path / "wrong.db"
    make(path)
    with pytest.raises(ConfigError, match=said):
        SymbolDatabases({"BTCUSD": path}, desk.database, System().real_now).check()


def test_instances_find_their_file_by_name_or_symbol(tmp_path: Path) -> None:
    one, other = Instance(symbol="XAUUSD"), Instance(symbol="XAUUSD", name="gold2")
    assert files_of([one], {"XAUUSD": "a.db"}, tmp_path) == {"XAUUSD": tmp_path / "a.db"}
    both = files_of([one, other], {"gold2": "b.db"}, tmp_path)
    assert both == {"gold2": tmp_path / "b.db"}
    with pytest.raises(ConfigError, match="the same file"):
        files_of([one, other], {"XAUUSD": "a.db"}, tmp_path)
    with pytest.raises(ConfigError, match="does not watch"):
        files_of([one], {"EURUSD": "a.db"}, tmp_path)


def test_every_so_many_ticks_are_compared_anew(
    desk: Desk, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue is worked off by hand: nothing runs beside."""
    monkeypatch.setattr("torra.store.host_files.COMPARE_EVERY", 2)
    ours = files(desk, host)
    calls: list[str] = []
    monkeypatch.setattr(ours, "repair", calls.append)
    monkeypatch.setattr(ours, "_feed", calls.append)
    about = {"instance": "BTCUSD", "timeframe": "M15", "bar_time": "x"}
    for change in ({"what": "tick"}, {"what": "running"}, {"what": "tick", "instance": "EURUSD"}):
        for _ in range(4):
            ours.on_change({**about, **change})
    ours._turn()
    assert calls == ["BTCUSD|M15|x", "BTCUSD", "BTCUSD|M15|x", "BTCUSD"]


def test_a_file_that_is_behind_is_compared_first_and_fed_no_row_till_then(
    desk: Desk, host: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ours = files(desk, host)
    calls: list[str] = []
    monkeypatch.setattr(ours, "_feed", calls.append)
    ours.open()
    assert ours.behind() == {"BTCUSD": "not compared yet"}
    gone = host.rename(host.with_suffix(".gone"))
    ours.on_change({"what": "tick", "instance": "BTCUSD", "timeframe": "M15", "bar_time": "x"})
    ours._turn()
    assert "is not there" in ours.behind()["BTCUSD"] and calls == []
    gone.rename(host)
    ours._turn()
    assert ours.behind() == {} and "is behind" not in caplog.text, "it was behind before"


def test_a_desk_without_such_files_starts_no_thread(desk: Desk) -> None:
    none = SymbolDatabases({}, desk.database, System().real_now)
    none.check()
    none.start()
    assert none.behind() == {}
    none.close()


def test_pages_of_rows_are_read_in_the_order_of_their_keys(database: Database) -> None:
    keys = []
    for number in range(5):
        save(database, NOON + number * desks.QUARTER, 0.25)
        keys.append(key_of(NOON + number * desks.QUARTER).text)
    save(database, NOON, instance="BTCUSD2")
    pages, after = [], ""
    while page := sentiment_page(database, "BTCUSD", after, 2):
        pages.append([row["torra_key"] for row in page])
        after = pages[-1][-1]
    assert pages == [keys[:2], keys[2:4], keys[4:]]
    row = sentiment_row(database, keys[0])
    assert row is not None and tuple(row) == FED and row["consensus"] is not None
    assert sentiment_row(database, "no tick") is None

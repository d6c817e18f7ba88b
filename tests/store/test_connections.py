"""Keys, times and texts as the tables hold them, and the ways in which a file is opened."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest

from agents.contracts import VECTORS
from instance_database import Database, TickKey
from tests.cases import cases
from tests.worlds.calls import a_call
from tests.worlds.stores import NOON, Hand, count, key_of, open_database, opening, save
from torra.errors import ConfigError, StoreUnavailable
from torra.store import connection
from torra.store import ticks as claim_table
from torra.store.connection import stamp, to_json
from torra.store.journal import json_object

STEP = timedelta(minutes=15)


def test_a_tick_is_named_by_instance_timeframe_and_bar() -> None:
    key = TickKey("BTCUSD", "H1", NOON.replace(microsecond=7))
    assert key.text == "BTCUSD|H1|2026-02-13T12:00:00Z"
    assert TickKey("BTCUSD", "H1", NOON).close_time == NOON + timedelta(hours=1)


@cases(
    ("moment", "text"),
    [(NOON, "2026-02-13T12:00:00Z"), (NOON.replace(microsecond=999_999), "2026-02-13T12:00:00Z"),
     (NOON.astimezone(), "2026-02-13T12:00:00Z"),
     (datetime(2021, 1, 2, 3, 4, 5, tzinfo=UTC), "2021-01-02T03:04:05Z")],
)  # fmt: skip
def test_a_time_is_stored_in_whole_seconds(moment: datetime, text: str) -> None:
    assert stamp(moment) == text


def test_json_is_short_and_has_finite_numbers_alone() -> None:
    assert to_json({"a": [1, "ü"]}) == '{"a":[1,"ü"]}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"a": float("nan")})


@cases(
    ("path", "uri"),
    [(PurePosixPath("/home/a b/x.db"), "file:///home/a%20b/x.db"),
     (PureWindowsPath("C:\\x.db"), "file:///C:/x.db"),
     (PureWindowsPath("\\\\host\\share\\x.db"), "file:////host/share/x.db")],
)  # fmt: skip
def test_the_uri_of_a_file_has_no_host(path: Any, uri: str) -> None:
    assert connection.uri_of(path) == uri


def test_rows_come_as_dicts_tuples_columns_and_values(database: Database) -> None:
    for number in range(2):
        save(database, NOON + number * STEP)
    sql = "SELECT id, timeframe FROM sentiment WHERE timestamp >= ? ORDER BY id"
    assert database.rows(sql, NOON) == [
        {"id": 1, "timeframe": "M15"},
        {"id": 2, "timeframe": "M15"},
    ]
    assert database.row(sql, NOON + STEP) == {"id": 2, "timeframe": "M15"}
    assert database.row(sql, NOON + 9 * STEP) is None
    assert database.tuples(sql, NOON) == [(1, "M15"), (2, "M15")]
    assert database.column(sql, NOON) == [1, 2] and database.value(sql, NOON) == 1
    assert database.value(sql, NOON + 9 * STEP) is None
    assert database.change("UPDATE sentiment SET timeframe = 'H1'") == 2
    assert database.add("paper_cursor", {"instance": "A", "bar_time": NOON}) >= 0
    assert database.value("SELECT bar_time FROM paper_cursor") == stamp(NOON)


def test_a_reader_writes_nothing_and_a_guest_leaves_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    for opened in (connection.connect_guest, lambda path, _: connection.connect_reader(path)):
        with pytest.raises((StoreUnavailable, sqlite3.OperationalError)):
            opened(path, 0.1)
    assert not path.exists()
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE t (x)")
    for still in (False, True):
        with closing(connection.connect_reader(path, still=still)) as reader:
            assert reader.execute("SELECT count(*) FROM t").fetchone() == (0,)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("INSERT INTO t VALUES (1)")
    with closing(connection.connect_guest(path, 0.1)) as guest:
        guest.execute("INSERT INTO t VALUES (1)")
        modes = [guest.execute(f"PRAGMA {name}").fetchone()[0]
                 for name in ("journal_mode", "busy_timeout", "trusted_schema")]  # fmt: skip
    assert modes == ["delete", 100, 0]


def test_only_a_database_is_taken_for_one(tmp_path: Path) -> None:
    connection.inspect(tmp_path / "missing.db")
    text = tmp_path / "notes.txt"
    text.write_text("no database at all " * 100)
    for path, reason in ((tmp_path, "is a folder"), (text, "is not a database")):
        with pytest.raises(ConfigError, match=reason):
            connection.inspect(path)
    assert not (tmp_path / "missing.db").exists()
    open_database(tmp_path / "desk").close()
    connection.inspect(tmp_path / "desk" / "torra.db")


def test_a_connection_that_was_used_inside_its_own_use_is_idle_again(database: Database) -> None:
    with ThreadPoolExecutor(1) as pool:

        def work() -> None:
            with database.transaction():
                save(database, NOON)
                assert database.value("SELECT count(*) FROM chains") == 1

        pool.submit(work).result()
        (other,) = [held for thread, held in database._open.items()
                    if thread is not threading.current_thread()]  # fmt: skip
        assert (other.uses, other.depth) == (0, 0)
        database.close()
        assert database._open == {}, "closed though its thread lives"


def test_whether_a_desk_works_on_the_home(database: Database) -> None:
    assert not database.desk_runs()


# --- claims ---------------------------------------------------------------------------------------


def test_many_skips_are_one_transaction_and_count_what_got_a_row(database: Database) -> None:
    keys = [key_of(NOON + number * STEP) for number in range(4)]
    for key in keys[:2]:
        database.claim_tick(key)
    database.finish_tick(keys[0])
    assert database.skip_ticks(dict.fromkeys(keys, ("stale", "x" * 900))) == 3
    assert database.skip_ticks({}) == 0
    rows = database.rows("SELECT state, reason, detail FROM ticks ORDER BY bar_time")
    assert [row["state"] for row in rows] == ["done", "skipped", "skipped", "skipped"]
    assert {row["reason"] for row in rows[1:]} == {"stale"}
    assert {len(row["detail"]) for row in rows[1:]} == {500}


def test_what_is_done_later_than_the_moment_owes_nothing_and_hides_nothing(
    database: Database,
) -> None:
    for number in (1, 5):
        database.claim_tick(key_of(NOON + number * STEP))
        database.finish_tick(key_of(NOON + number * STEP))
    database.claim_tick(key_of(NOON + 6 * STEP))
    database.release_claim(key_of(NOON + 6 * STEP))

    def due(quarters: int) -> list[int]:
        upto = NOON + quarters * STEP
        times = database.due("BTCUSD", "M15", upto=upto, start=NOON)
        return [(time - NOON) // STEP + 1 for time in times]

    assert due(3) == [2, 3] and due(1) == [] and due(5) == [2, 3, 4]
    assert due(6) == [2, 3, 4, 6] and due(7) == [2, 3, 4, 6, 7]


def test_a_run_begins_and_ends(database: Database, hand: Hand) -> None:
    database.claim_tick(key_of(NOON))
    claim_table.begin_run(database, "one", 7)
    assert database.value("SELECT state FROM ticks") == "released"
    database.show_life(NOON + STEP)
    hand.pass_by(5)
    claim_table.end_run(database)
    row = claim_table.desk_run(database) or {}
    assert (row["run"], row["process"], row["seen_at"]) == ("one", 0, stamp(hand.moment))
    hand.pass_by(5)
    claim_table.begin_run(database, "two", 8)
    row = claim_table.desk_run(database) or {}
    assert (row["run"], row["process"], row["started_at"]) == ("two", 8, stamp(hand.moment))
    assert row["desk_time"] == stamp(NOON + STEP), "where the clock of the one before stood"


def test_the_newest_states_and_profiles(database: Database) -> None:
    assert claim_table.applied_profile(database, "BTCUSD") is None
    for number, state in enumerate(("REDUCING", "ACTIVE", "HALTED")):
        database.set_trading_state(state, "x" * 900)
        database.apply_profile("BTCUSD", "{}", f"d{number}")
    states = claim_table.trading_states(database, 2)
    assert [row.state for row in states] == ["HALTED", "ACTIVE"]
    assert len(states[0].reason) == 500 and states[0].at == stamp(NOON)
    assert claim_table.applied_profile(database, "BTCUSD") == {
        "digest": "d2", "profile": "{}", "applied_at": stamp(NOON),
    }  # fmt: skip
    assert claim_table.applied_profile(database, "EURUSD") is None
    assert count(database, "trading_config") == 3
    assert database.signals() == [] and database.enqueue_signal(opening())


# --- the journal ----------------------------------------------------------------------------------


def test_a_picture_is_stored_once_under_its_hash(database: Database) -> None:
    name = database.store_picture(b"a picture")
    assert database.store_picture(b"a picture") == name and len(name) == 64
    assert database.store_picture(b"another") != name
    assert database.picture(name) == b"a picture" and database.picture("gone") is None
    assert count(database, "pictures") == 2


def test_a_tick_is_read_with_or_without_its_calls(database: Database) -> None:
    key = key_of(NOON)
    save(database, NOON, deliberation={"reports": [1]})
    database.write_calls(key, [a_call(system="be brief", reply="yes")])
    bare = database.tick(key) or {}
    assert (bare["as_of"], bare["action"], bare["deliberation"]) == (
        stamp(NOON), None, {"reports": [1]},
    )  # fmt: skip
    assert set(bare["l1"]) == set(VECTORS)
    whole = {"instance": "BTCUSD", "timeframe": "M15", "bar_time": "x", "action": "HOLD"}
    database.write_journal(key, whole)
    tick = database.tick(key) or {}
    ((call,), deliberation) = tick.pop("calls"), tick.pop("deliberation")
    assert (call["system"], call["reply"], call["role_id"]) == ("be brief", "yes", "technical")
    assert tick == whole and deliberation == {"reports": [1]}
    without = database.tick_without_calls(key.text)
    assert without == {**whole, "deliberation": {"reports": [1]}}
    assert database.tick_without_calls("no tick") is None and database.record("no tick") == {}
    latest = database.latest_tick("BTCUSD", "M15")
    assert latest is not None and latest["calls"] == [call]


@cases(
    ("text", "value"),
    [('{"a": 1}', {"a": 1}), ("[1]", {}), ("no JSON", {}), ("", {}), (None, {}), (7, {})],
)
def test_a_column_of_json_is_an_object_or_nothing(text: Any, value: Any) -> None:
    assert json_object(text) == value

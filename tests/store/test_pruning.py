"""What models saw and said goes when it is old, in small steps; everything else stays."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instance_database import Database
from tests.worlds import calls, desks, stores
from torra.clock import duration, iso
from torra.config import (
    LONGEST_NEWS_HOURS,
    DeskSettings,
    NewsSettings,
    Profile,
)
from torra.desk import pruning, schedule, wiring
from torra.errors import StoreUnavailable
from torra.evidence.news_digest import NewsItem
from torra.store import connection, replay_queries
from torra.store import news as news_table

DAY = timedelta(days=1)
STEP = duration("M15")
KEPT = ("ticks", "sentiment", "chains", "journal", "ledger", "bars", "signals")
ROLES = ("technical", "bull_researcher", "bear_researcher", "risk_gate")


def call(role: str = "technical", **changes: Any) -> Any:
    texts = {"system": f"You are {role}.", "user": "user", "reply": "reply"}
    more = {"request_hash": f"hash of {role}", "stop_reason": "end", "cached_tokens": 3}
    return calls.a_call(**{"role_id": role, **texts, **more, **changes})


def a_tick(database: Database, number: int, *made: Any) -> str:
    """Store a tick with its calls as they are stored now; return its key."""
    close = stores.NOON + number * STEP
    key = stores.key_of(close)
    with database.transaction():
        stores.save(database, close, deliberation={"reports": [{"agent_id": "technical"}]})
        database.write_journal(key, {"as_of": iso(close), "calls": len(made)})
        database.write_calls(key, made or tuple(call(role) for role in ROLES))
    return key.text


def a_picture(database: Database, name: str) -> None:
    database.add("pictures", {"hash": name, "data": b"png", "at": database.moment()})


def texts(database: Database) -> set[str]:
    return {row["torra_key"] for row in database.connection().query("SELECT * FROM calls")}


def instructions(database: Database) -> set[str]:
    return {row["text"] for row in database.connection().query("SELECT * FROM instructions")}


def whole(database: Database) -> bool:
    """Whether no row refers to one that is gone."""
    return not list(database.connection().query("PRAGMA foreign_key_check"))


# --- what goes and what stays ---------------------------------------------------------------------


def test_only_what_is_older_goes(database: Database, hand: stores.Hand) -> None:
    keys = []
    for number in range(6):
        keys.append(a_tick(database, number))
        a_picture(database, f"p{number}")
        hand.pass_by(DAY.total_seconds())
    border = stores.NOON + 3 * DAY
    before = {table: stores.count(database, table) for table in KEPT}
    assert database.prune(border, limit=1000) == 3 * len(ROLES) + 3
    assert texts(database) == set(keys[3:]), "what is as old as the border stays"
    assert {row["hash"] for row in database.connection().query("SELECT * FROM pictures")} == {
        "p3", "p4", "p5",
    }  # fmt: skip
    assert {table: stores.count(database, table) for table in KEPT} == before
    assert database.prune(border, limit=1000) == 0
    assert whole(database) and connection.quick_check(database) == "ok"


def test_a_pruned_tick_still_reads(database: Database, hand: stores.Hand) -> None:
    key = stores.key_of(stores.NOON)
    a_tick(database, 0)
    told = database.tick(key)
    database.prune(hand.moment + DAY, limit=10)
    left = database.tick(key)
    assert told is not None and left == {**told, "calls": []}
    assert left["deliberation"] == {"reports": [{"agent_id": "technical"}]}


def test_instructions_go_with_the_last_call_that_had_them(
    database: Database, hand: stores.Hand
) -> None:
    a_tick(database, 0, call("technical"), call("risk_gate", system="Once."))
    hand.pass_by(DAY.total_seconds())
    a_tick(database, 1, call("technical"))
    border = stores.NOON + DAY
    database.prune(border, limit=1000)
    assert instructions(database) == {"You are technical."}
    database.prune(border + DAY, limit=1000)
    assert instructions(database) == set() and whole(database)
    a_tick(database, 2)
    assert len(instructions(database)) == len(ROLES)


@pytest.mark.journey
@settings(max_examples=25, deadline=None)
@given(
    ages=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    border=st.integers(0, 10),
    limit=st.integers(1, 9),
)
def test_batches_end_where_one_sweep_does(
    tmp_path_factory: Any, ages: list[int], border: int, limit: int
) -> None:
    """Every batch is small, ticks stay whole, and in the end just the old ones are gone."""
    hand = stores.Hand()
    database = stores.open_database(tmp_path_factory.mktemp("pruned"), hand)
    keys = {}
    for number, age in enumerate(sorted(ages, reverse=True)):
        hand.moment = stores.NOON - age * DAY
        keys[a_tick(database, number, *(call(role) for role in ROLES[: 1 + number % 4]))] = age
    gone, batch = 0, -1
    while batch:
        batch = database.prune(stores.NOON - border * DAY, limit=limit)
        assert batch <= limit + len(ROLES) - 1
        gone += batch
        for key in texts(database):
            record = replay_queries.journal_row(database, key)[0]
            count = "SELECT count(*) AS n FROM calls WHERE torra_key = ?"
            assert next(iter(database.connection().query(count, [key])))["n"] == record["calls"]
    assert texts(database) == {key for key, age in keys.items() if age <= border}
    assert whole(database)


# --- late answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes", [{"role_id": "risk_gate"}, {"round": 2}, {"attempt": 2}, {"request_hash": "other"}]
)
def test_a_late_answer_finds_its_own_call_only(database: Database, changes: Any) -> None:
    a_tick(database, 0, call(status="timeout", reply=""), call("risk_gate"))
    answer = call(**{"status": "late", "reply": "mine", **changes})
    assert not database.record_late(stores.key_of(stores.NOON), answer)
    assert not database.record_late(stores.key_of(stores.NOON + STEP), call(status="late"))
    assert "mine" not in {
        row["reply"] for row in database.connection().query("SELECT * FROM calls")
    }


# --- the desk's part ------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[schedule.Desk]:
    opened = desks.open_desk(tmp_path, (desks.EUR,))
    yield opened
    opened.close()


def old_texts(database: Database, ticks: int) -> None:
    """Store the calls of ticks that are long gone."""
    at = "2020-01-01T00:00:00Z"
    database.change("INSERT OR IGNORE INTO instructions VALUES ('i', 'You are old.')")
    with database.transaction():
        database.connection().conn.executemany(
            "INSERT INTO calls (torra_key, role, round, attempt, stage, status, model, provider, "
            "instructions, user, reply, input_tokens, output_tokens, cost_usd, elapsed_ms, "
            "request_hash, detail, at) VALUES (?, ?, 1, 1, 'analysts', 'ok', 'm', 'v', 'i', ?, ?, "
            "1, 1, 0.0, 1.0, 'h', '', ?)",
            [
                (f"OLD|M15|{number}", role, "u" * 6000, "r" * 1500, at)
                for number in range(ticks)
                for role in ROLES
            ],
        )


def test_a_desk_prunes_while_it_holds_the_lock(desk: schedule.Desk) -> None:
    old_texts(desk.database, 5)
    assert desk.prune() == 0, "it does not work yet"
    desks.open_for_work(desk)
    desk.wake("EURUSD")
    today = len(texts(desk.database)) - 5
    assert today == 1
    assert desk.prune() == 5 * len(ROLES)
    assert len(texts(desk.database)) == today
    old_texts(desk.database, 1)
    desk._closing = True
    assert desk.prune() == 0
    desk._closing = False


def test_a_desk_keeps_texts_as_long_as_it_is_told(tmp_path: Path) -> None:
    desk = desks.open_desk(tmp_path, (desks.EUR,))
    desk._keep_calls = DAY
    desks.open_for_work(desk)
    now = desk.clock.real_now()
    old_texts(desk.database, 3)
    for number, age in enumerate((timedelta(hours=23), timedelta(hours=25), 2 * DAY)):
        at = iso((now - age).replace(microsecond=0))
        sql = "UPDATE calls SET at = ? WHERE torra_key = ?"
        desk.database.change(sql, at, f"OLD|M15|{number}")
    desk.prune()
    assert texts(desk.database) == {"OLD|M15|0"}
    desk.close()


def a_headline(database: Database, name: str, at: datetime) -> None:
    item = NewsItem(
        id=name, source="a", topic="file:x", headline=name, summary="", url="",
        published=at, first_seen=at,
    )  # fmt: skip
    database.store_news([item])
    database.change("UPDATE news SET at = ? WHERE id = ?", iso(at), name)


@pytest.mark.parametrize(("days", "left"), [(1, {"young"}), (60, {"young", "old"})])
def test_a_headline_that_may_still_count_stays(
    desk: schedule.Desk, days: int, left: set[str]
) -> None:
    """However short the texts of calls are kept."""
    desk._keep_calls = days * DAY
    desks.open_for_work(desk)
    now = desk.clock.real_now().replace(microsecond=0)
    longest = Profile.model_fields["news"].default.model_copy(
        update={"max_age_hours": float(LONGEST_NEWS_HOURS)}
    )
    assert NewsSettings.model_validate(longest.model_dump()) == longest
    assert timedelta(hours=LONGEST_NEWS_HOURS) < pruning.KEEP_NEWS
    ages = {"young": timedelta(hours=LONGEST_NEWS_HOURS + 1), "old": 40 * DAY, "older": 70 * DAY}
    for name, age in ages.items():
        a_headline(desk.database, name, now - age)
    assert desk.prune() == 3 - len(left)
    assert {item.id for item in news_table.news_items(desk.database, list(ages))} == left


def test_the_docs_say_how_long_headlines_are_kept() -> None:
    told = DeskSettings.model_fields["keep_calls_days"].description or ""
    assert f"headlines {pruning.KEEP_NEWS // DAY} at least" in told


def test_the_setting_reaches_the_desk(tmp_path: Path) -> None:
    (tmp_path / "desk.json").write_text('{"keep_calls_days": 7}')
    desk, told = wiring.open_desk(tmp_path)
    assert told.keep_calls_days == 7 and DeskSettings().keep_calls_days == 90
    assert desk._keep_calls == timedelta(days=7)
    desk.close()


def test_pruning_ends_after_its_second(desk: schedule.Desk, monkeypatch: Any) -> None:
    desks.open_for_work(desk)
    moments = iter([0.0, 0.1, 0.5, 0.99, 1.0, 1.1, 1.2])
    monkeypatch.setattr(desk.clock, "monotonic", lambda: next(moments))
    batches: list[int] = []

    def prune(before: datetime, *, limit: int) -> int:
        batches.append(limit)
        return limit

    monkeypatch.setattr(desk.database, "prune", prune)
    assert desk.prune() == 3 * pruning.ROWS
    assert batches == [pruning.ROWS] * 3


def test_a_database_that_fails_is_logged(
    desk: schedule.Desk, monkeypatch: Any, caplog: Any
) -> None:
    desks.open_for_work(desk)

    def prune(before: datetime, *, limit: int) -> int:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(desk.database, "prune", prune)
    with caplog.at_level(logging.ERROR):
        assert desk.prune() == 0
    assert "the disk is full" in caplog.text


def test_the_timer_is_set_by_a_desk_that_opens(tmp_path: Path) -> None:
    desk = desks.open_desk(tmp_path, (desks.EUR,))
    desk.open()
    job, (every, first) = desk._timers.job("prune"), schedule.CHORES["prune"]
    assert job.func == desk.prune and job.trigger.interval == every
    assert job.next_run_time - desk.clock.real_now() <= first
    desk.close()

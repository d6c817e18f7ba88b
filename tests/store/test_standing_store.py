"""Looks of the promotion rule, and the ticks and trades that it reads."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime, timedelta
from typing import Any

import pytest

from instance_database import Database
from tests.cases import cases
from tests.worlds.stores import NOON, Hand, closing, key_of, opening, save
from torra.clock import iso
from torra.store import standings
from torra.store.standings import BEYOND, WarmUps

STEP = timedelta(minutes=15)
LOOK: dict[str, Any] = {
    "trial": 1, "look": 1, "promoted": True, "reason": "told", "figures": {"ic": 0.1},
}  # fmt: skip
OTHER = "EURUSD"


def look(database: Database, mark: str = "f1", profile: str = "mine", **more: Any) -> bool:
    return standings.write_standing(database, profile, mark, **{**LOOK, **more})


def tick(
    database: Database, number: int, record: Any = None, instance: str = "BTCUSD", **more: Any
) -> str:
    """Store the tick that closed so many quarters after noon, and return its key."""
    close = NOON + number * STEP
    key = key_of(close, more.get("timeframe", "M15"), instance)
    save(database, close, instance=instance, **more)
    database.write_journal(key, {"close": 100.0 + number, **(record or {})})
    return key.text


# --- looks ----------------------------------------------------------------------------------------


def test_a_look_is_noted_once_and_never_changes(database: Database, hand: Hand) -> None:
    assert not standings.agents_promoted(database, "f1")
    assert standings.count_trials(database) == 0
    assert look(database)
    for name in ("mine", "a copy"):
        assert not look(database, profile=name, promoted=False)
    assert standings.agents_promoted(database, "f1")
    assert standings.standings(database, "f1") == [{**LOOK, "profile": "mine", "at": iso(NOON)}]
    for change in ("UPDATE agent_standing SET promoted = 0", "DELETE FROM agent_standing"):
        with pytest.raises(sqlite3.IntegrityError, match="stays as it is"), database.transaction():
            database.connection().execute(change)


def test_two_settings_never_share_a_number_at_a_look(database: Database) -> None:
    assert look(database) and not look(database, "f2")
    assert look(database, "f2", trial=2)
    assert look(database, look=2)
    assert standings.count_trials(database) == 2


def test_the_newest_look_of_this_setting_decides(database: Database) -> None:
    look(database, look=2, promoted=False)
    look(database)
    assert not standings.agents_promoted(database, "f1")
    assert [row["look"] for row in standings.standings(database, "f1")] == [1, 2]
    assert [row["promoted"] for row in standings.standings(database, "f1")] == [True, False]
    assert not standings.agents_promoted(database, "f2"), "another setting begins anew"
    assert standings.standings(database, "f2") == []


def test_every_profile_that_was_given_is_listed_oldest_first(database: Database) -> None:
    for instance, digest in (("BTCUSD", "a"), (OTHER, "b"), ("BTCUSD", "c")):
        database.apply_profile(instance, f'{{"is": "{digest}"}}', digest)
    assert standings.profiles_given(database) == [
        ("BTCUSD", '{"is": "a"}'), (OTHER, '{"is": "b"}'), ("BTCUSD", '{"is": "c"}'),
    ]  # fmt: skip


# --- ticks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [1, 2, 500])
def test_ticks_are_observed_in_the_order_they_ran(database: Database, page: int) -> None:
    for number, instance in ((1, "BTCUSD"), (0, OTHER), (3, "BTCUSD"), (2, "BTCUSD"),
                             (1, "XAUUSD")):  # fmt: skip
        tick(database, number, instance=instance)

    def observed(start: datetime | None = None, end: datetime | None = None) -> list[str]:
        found = standings.observed(database, ["BTCUSD", OTHER], start, end, page)
        texts = dict(found)
        assert all(json.loads(text)["deliberation"] == {"reports": []} for text in texts.values())
        return [key.rpartition("|")[2][11:16] for key in texts]

    assert observed() == ["12:00", "11:45", "12:30", "12:15"]
    assert observed(NOON + STEP) == ["12:00", "12:30", "12:15"]
    assert observed(NOON + STEP, NOON + 2 * STEP) == ["12:00", "12:15"]


def test_a_record_has_its_debate_in_it() -> None:
    row = {"record": '{"a": 1} ', "agent_deliberation": '{"b": 2}'}
    assert json.loads(standings.with_debate(row)) == {"a": 1, "deliberation": {"b": 2}}
    none = standings.with_debate({**row, "agent_deliberation": None})
    assert json.loads(none) == {"a": 1, "deliberation": None}


def test_the_calls_of_a_stream_are_read_on_from_a_close(database: Database) -> None:
    reports = {"reports": [{"agent_id": "technical"}]}
    market = {"regime": {"name": "quiet"}, "provider": "rules"}
    tick(database, 0, market, deliberation=reports)
    tick(database, 1, {"invented": "the demo"}, deliberation=reports)
    tick(database, 2, deliberation=reports)
    tick(database, 3, timeframe="M5")
    database.change("UPDATE journal SET record = 'no JSON' WHERE torra_key LIKE '%12:15:00Z'")
    database.change(
        "UPDATE sentiment SET agent_deliberation = 'none' WHERE torra_key LIKE '%12:15:00Z'"
    )
    calls = standings.stream_calls(database, "BTCUSD", "M15", None, 9)
    assert [json.loads(row.pop("reports")) for row in calls] == [reports["reports"], [], []]
    assert calls == [
        {"close_time": iso(NOON), "provider": "rules", "close": 100.0, "regime": "quiet"},
        {"close_time": iso(NOON + STEP), "provider": "", "close": 101.0, "regime": None},
        {"close_time": iso(NOON + 2 * STEP), "provider": "", "close": None, "regime": None},
    ]
    later = standings.stream_calls(database, "BTCUSD", "M15", NOON, 1)
    assert [row["close_time"] for row in later] == [iso(NOON + STEP)]


def test_the_close_before_so_many_ticks(database: Database) -> None:
    for number in range(3):
        tick(database, number)
    closes = [standings.close_before(database, "BTCUSD", "M15", count) for count in range(4)]
    assert closes == [NOON + 2 * STEP, NOON + STEP, NOON, None]
    assert standings.close_before(database, "BTCUSD", "H1", 0) is None


def test_the_reports_of_a_tick(database: Database) -> None:
    key = tick(database, 0, {"provider": "rules"}, deliberation={"reports": [1, 2]})
    without = tick(database, 1, deliberation=None)
    provider, reports = standings.reports_of(database, key)
    assert (provider, json.loads(reports)) == ("rules", [1, 2])
    assert standings.reports_of(database, without) == ("", "[]")
    assert standings.reports_of(database, "no tick") == ("", "[]")


def test_skipped_closes_are_counted_by_reason(database: Database) -> None:
    for number, reason in enumerate(("stale", "nan", "stale", "late")):
        database.skip_tick(key_of(NOON + number * STEP), reason, "")
    database.skip_tick(key_of(NOON, instance="XAUUSD"), "stale", "")
    database.claim_tick(key_of(NOON, instance=OTHER))
    skipped = standings.skipped_between
    assert skipped(database, ["BTCUSD", OTHER]) == {"late": 1, "nan": 1, "stale": 2}
    assert skipped(database, ["BTCUSD"], NOON + STEP, NOON + 2 * STEP) == {"nan": 1, "stale": 1}
    assert skipped(database, []) == {}


# --- trades ---------------------------------------------------------------------------------------


def trade(database: Database, sid: str, decided: int, closed: int | None, **more: Any) -> None:
    """Open a trade at a quarter after noon; close it at another, unless that is None."""
    database.enqueue_signal(opening(sid, decided_at=NOON + decided * STEP, **more))
    for state in ("PUBLISHED", "FILLED"):
        database.move_signal(sid, state, fields={"price": 100.0} if state == "FILLED" else {})
    if closed is not None:
        database.close_position(
            sid, price=101.0, time=NOON + closed * STEP, profit=1.0, r_multiple=0.1, reason="TARGET"
        )


def test_closed_trades_are_read_by_when_they_were_decided(database: Database) -> None:
    trade(database, "T2", 2, 3)
    trade(database, "T1", 1, 2)
    trade(database, "T3", 3, None)
    trade(database, "X1", 1, 2, instance="XAUUSD")

    def sids(*choice: datetime, instances: tuple[str, ...] = ("BTCUSD", OTHER)) -> list[str]:
        return [row["sid"] for row in standings.trades_between(database, instances, *choice)]

    assert sids() == ["T1", "T2"], "in the order of their ends"
    assert sids(NOON + 2 * STEP) == ["T2"] and sids(NOON, NOON + STEP) == ["T1"]
    assert sids(instances=()) == []


@pytest.mark.parametrize(
    ("quarter", "timeframe", "is_open"),
    [(0, "M15", False), (1, "M15", False), (1, "M5", True), (2, "M15", True), (3, "M15", True),
     (4, "M15", False)],
)  # fmt: skip
def test_the_opening_at_a_close_is_the_one_that_was_decided_before_it(
    database: Database, quarter: int, timeframe: str, is_open: bool
) -> None:
    trade(database, "T1", 1, 3)
    row = standings.opening_at(database, "BTCUSD", timeframe, NOON + quarter * STEP)
    assert (row is not None) == is_open
    assert row is None or (row["sid"], row["closing"]) == ("T1", False)
    assert standings.opening_at(database, OTHER, timeframe, NOON + quarter * STEP) is None


def test_what_is_held_or_was_sent_counts_as_open_and_its_close_as_closing(
    database: Database,
) -> None:
    trade(database, "T0", 0, 1)
    database.enqueue_signal(opening("T1", decided_at=NOON + 2 * STEP))

    def at(quarter: int, timeframe: str = "M15") -> tuple[Any, Any]:
        row = standings.opening_at(database, "BTCUSD", timeframe, NOON + quarter * STEP)
        return ("", None) if row is None else (row["sid"], row["closing"])

    assert at(1) == ("T0", False) and at(2) == ("", None) and at(3) == ("T1", False)
    database.enqueue_signal(closing("C1", "T1", decided_at=NOON + 4 * STEP))
    assert [at(4), at(4, "M5"), at(5)] == [("T1", False), ("T1", True), ("T1", True)]
    database.move_signal("C1", "REJECTED")
    assert at(5) == ("T1", False), "what was never executed closes nothing"
    database.move_signal("T1", "CANCELLED")
    assert at(5) == ("", None)


# --- ticks that agents changed --------------------------------------------------------------------


def test_changed_and_acting_ticks_are_two_lists_newest_first(database: Database) -> None:
    scores = {0: (0.9, 0.0), 1: (0.9, 0.9), 2: (0.0, 0.0), 3: (-0.9, 0.9), 4: (-0.9, -0.9)}
    keys = {
        number: tick(database, number, score=score, l1=l1, timeframes=("M15",))
        for number, (score, l1) in scores.items()
    }
    tick(database, 0, instance=OTHER, score=0.9, l1=0.0)

    def places(acting: bool, before: tuple[str, str] = BEYOND, limit: int = 9) -> list[int]:
        found = standings.changed_places(database, "BTCUSD", before, limit, acting=acting)
        assert all(close > key.rpartition("|")[2] for close, key in found)
        return [number for _, key in found for number in keys if keys[number] == key]

    assert places(acting=False) == [3, 0] and places(acting=True) == [4, 1]
    assert places(acting=False, limit=1) == [3]
    assert places(acting=True, before=(iso(NOON + 4 * STEP), keys[4])) == [1]
    assert places(acting=True, before=(iso(NOON + STEP), keys[1])) == []

    l1 = standings.l1_verdicts(database, "BTCUSD", "M15", NOON + STEP, 3)
    assert l1 == [
        (iso(NOON + STEP), "BUY"), (iso(NOON + 2 * STEP), "HOLD"), (iso(NOON + 3 * STEP), "BUY"),
    ]  # fmt: skip


def test_a_tick_as_it_was_decided(database: Database) -> None:
    key = tick(database, 0, {"action": "HOLD", "reason": "THRESHOLD"}, score=0.9, l1=0.0)
    row = standings.decided_tick(database, key)
    assert row is not None and (row["verdict"], row["l1_verdict"]) == ("BUY", "HOLD")
    assert (row["action"], row["reason"]) == ("HOLD", "THRESHOLD")
    assert json.loads(row["record"])["deliberation"] == {"reports": []}
    assert standings.decided_tick(database, "no tick") is None


# --- warm-up --------------------------------------------------------------------------------------


@cases("count", range(10))
def test_the_warm_up_ends_at_its_last_tick(database: Database, count: int) -> None:
    instance = f"I{count}"
    for number in range(9):
        lag = 0 if number < count else 2
        now = iso(NOON + number * STEP + timedelta(seconds=lag))
        tick(database, number, {"now": now}, instance)
    end = NOON + (count - 1) * STEP if 0 < count < 10 else None
    warm = WarmUps(database)
    for _ in range(2):  # a look that is remembered is the same
        assert standings.warm_up_end(database, instance, "M15") == end
        for number in range(9):
            assert warm.has(instance, "M15", NOON + number * STEP) == (number < count)
            bar = iso(NOON + (number - 1) * STEP)
            assert warm.made(instance, "M15", bar) == (number < count)


def test_a_warm_up_that_goes_on_is_looked_up_again_and_its_end_is_remembered(
    database: Database,
) -> None:
    def end() -> datetime | None:
        return standings.warm_up_end(database, "BTCUSD", "M15")

    assert end() is None
    for number in range(3):
        tick(database, number, {"now": iso(NOON + number * STEP)})
        assert end() == NOON + number * STEP
    tick(database, 3, {"now": iso(NOON + 4 * STEP)})
    assert end() == NOON + 2 * STEP
    database.change("DELETE FROM journal")
    assert end() == NOON + 2 * STEP, "for good"


def test_what_is_no_bar_or_another_scorers_is_no_warm_up(database: Database) -> None:
    tick(database, 0, {"now": iso(NOON)})
    hosted = "host:scorer:BTCUSD"
    tick(database, 0, {"now": iso(NOON)}, hosted)
    warm = WarmUps(database)
    bar = iso(NOON - STEP)
    assert warm.made("BTCUSD", "M15", bar) and not warm.made(hosted, "M15", bar)
    for timeframe, time in (("M15", "no time"), ("M16", bar), ("M15", None), (None, bar)):
        assert not warm.made("BTCUSD", timeframe, time)
    assert not warm.has("BTCUSD", "M15", NOON + STEP)
    tick(database, 0, {}, "no moment")
    assert standings.warm_up_end(database, "no moment", "M15") is None

"""Closed trades as lists and sums read them, notes to them, and what a bridge has to look at."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from instance_database import Database
from tests.worlds.stores import NOON, Hand, closing, opening
from torra.clock import iso
from torra.store.trade import notes
from torra.store.trade import signals as signal_table
from torra.store.trade.notes import TradeNote

STEP = timedelta(minutes=15)


def fill(database: Database, sid: str, **more: Any) -> None:
    database.enqueue_signal(opening(sid, **more))
    for state in ("PUBLISHED", "FILLED"):
        database.move_signal(sid, state, fields={"price": 100.0} if state == "FILLED" else {})


def trade(database: Database, sid: str, quarter: int, profit: float = 1.0, **more: Any) -> None:
    """Open and close a trade that ended so many quarters after noon."""
    reason = more.pop("reason", "TARGET")
    fill(database, sid, **more)
    database.close_position(
        sid, price=101.0, time=NOON + quarter * STEP, profit=profit, r_multiple=profit / 10,
        reason=reason,
    )  # fmt: skip


def three(database: Database) -> None:
    trade(database, "T2", 2, -1.0, reason="STOPPED")
    trade(database, "T1", 1)
    trade(database, "T3", 2, 0.0, side="SELL", instance="EURUSD")


def test_closed_trades_are_listed_newest_first(database: Database) -> None:
    three(database)
    fill(database, "T4")

    def sids(*choice: Any, **more: Any) -> list[str]:
        return [row.sid for row in signal_table.closed_trades(database, *choice, **more)]

    assert sids() == ["T3", "T2", "T1"] and sids(limit=1) == ["T3"]
    assert sids("BTCUSD") == ["T2", "T1"]
    assert sids(as_of=NOON + 2 * STEP) == ["T1"], "known when its bar has closed"


def test_a_list_of_closed_trades_is_narrowed_and_goes_on_from_a_place(database: Database) -> None:
    three(database)
    notes.write_trade_note(database, "T1", "", ["early"], revision=0, actor="me")

    def sids(limit: int = 9, before: Any = None, came_to: str = "", **only: str) -> list[str]:
        rows = signal_table.closed_list(database, only, came_to=came_to, before=before, limit=limit)
        return [row.sid for row in rows]

    assert sids() == ["T3", "T2", "T1"] and sids(2) == ["T3", "T2"]
    assert sids(before=(iso(NOON + 2 * STEP), 3)) == ["T2", "T1"]
    assert sids(came_to="won") == ["T1"] and sids(came_to="lost") == ["T2"]
    assert sids(instance="EURUSD") == ["T3"] and sids(side="BUY", reason="STOPPED") == ["T2"]
    assert sids(tag="early") == ["T1"] and sids(tag="late") == []
    assert sids(begin=iso(NOON + 2 * STEP)) == ["T3", "T2"]
    assert sids(end=iso(NOON + 2 * STEP)) == ["T1"]


def test_results_are_read_from_a_moment_and_between_steps(database: Database) -> None:
    three(database)
    moment = iso(NOON + 2 * STEP)
    columns = signal_table.RESULT_COLUMNS.split(", ")
    results = [dict(zip(columns, row, strict=True)) for row in
               signal_table.closed_results(database)]  # fmt: skip
    assert [row["seq"] for row in results] == [2, 1, 3]
    assert (results[1]["profit"], results[1]["close_reason"]) == (-1.0, "STOPPED")
    assert [row[1] for row in signal_table.closed_results(database, moment)] == [1, 3]
    assert signal_table.newest_step(database) == 12
    between = signal_table.closed_between
    assert sorted(row[1] for row in between(database, 0, 12)) == [1, 2, 3]
    assert [row[1] for row in between(database, 4, 8)] == [2], "its end is step 8"
    assert between(database, 8, 11) == []


def test_the_trade_that_closed_next_or_at_a_moment(database: Database) -> None:
    assert signal_table.newest_step(database) == 0
    three(database)
    moments = [iso(NOON + number * STEP) for number in range(3)]
    after = [signal_table.next_closed(database, "BTCUSD", moment) for moment in moments]
    assert [row and row["sid"] for row in after] == ["T1", "T2", None]
    at = [signal_table.closed_at(database, moment) for moment in moments[:2]]
    assert [row and row.sid for row in at] == [None, "T1"]


def test_win_rates_are_those_of_the_newest_replay(database: Database) -> None:
    assert database.win_rates("BTCUSD", "M15") == {}
    for side, wins, trades in (("BUY", 1, 2), ("SELL", 3, 4), ("BUY", 5, 9)):
        signal_table.set_win_rate(
            database, "BTCUSD", "M15", side, wins=wins, trades=trades, source="replay 7"
        )
    assert database.win_rates("BTCUSD", "M15") == {"BUY": [5, 9], "SELL": [3, 4]}
    assert database.win_rates("BTCUSD", "H1") == database.win_rates("EURUSD", "M15") == {}


def test_signals_of_another_bridge_are_foreign_until_they_have_ended(database: Database) -> None:
    for sid, instance in (("T1", "A"), ("T2", "B"), ("T3", "C"), ("T4", "D")):
        fill(database, sid, instance=instance, bridge="paper" if sid == "T4" else "old")
    database.enqueue_signal(closing("C1", "T1", instance="A", bridge="old"))
    database.enqueue_signal(closing("M1", "T1", instance="A", kind="modify", stop=91.0,
                                    bridge="old"))  # fmt: skip
    database.enqueue_signal(closing("C2", "T2", instance="B", bridge="old"))
    database.move_signal("C2", "CANCELLED")
    trade(database, "T9", 1, instance="E", bridge="old")
    rows = signal_table.foreign_signals(database, {"A": "new", "B": "old", "C": "paper"})
    assert [row["sid"] for row in rows] == ["T1", "T3", "C1", "M1"]
    assert "T4" not in {row["sid"] for row in rows}, "on paper it harms nobody"


def test_signals_that_reconciliation_looks_at(database: Database, hand: Hand) -> None:
    trade(database, "T1", 1, decided_at=NOON - STEP)
    trade(database, "T2", 1)
    fill(database, "T3", decided_at=NOON - STEP)
    database.enqueue_signal(opening("T4", instance="EURUSD", decided_at=NOON - STEP))
    database.enqueue_signal(closing("C3", "T3", decided_at=NOON - STEP))
    hand.pass_by(7)
    database.move_signal("C3", "PUBLISHED")

    def sids(*instances: str) -> list[str]:
        return [row["sid"] for row in database.unsettled(instances, ended_after=NOON)]

    assert sids("BTCUSD", "EURUSD") == ["T2", "T3", "C3"], "what waits was not sent yet"
    assert sids("EURUSD") == sids() == []
    rows = database.unsettled(["BTCUSD"], ended_after=NOON)
    changed = [row["changed_at"] for row in rows]
    assert changed == [iso(NOON), iso(NOON), iso(hand.moment)]


def test_orders_that_are_not_as_they_were_decided(database: Database) -> None:
    for sid, instance in (("T1", "A"), ("T2", "B"), ("T3", "C")):
        fill(database, sid, instance=instance)
    trade(database, "T4", 1, instance="D")
    database.change("UPDATE signals SET lots = 50.0 WHERE sid IN ('T2', 'T4')")
    altered = signal_table.altered_orders(database.connection())
    assert altered == ["T2"], "what has ended moves nothing any more"


def test_a_note_is_written_over_the_revision_that_was_seen(database: Database, hand: Hand) -> None:
    three(database)
    assert notes.trade_note(database, "T1") == TradeNote() and notes.tag_names(database) == []

    def write(sid: str, note: str, tags: list[str], revision: int) -> bool:
        return notes.write_trade_note(database, sid, note, tags, revision=revision, actor="me")

    assert write("T1", "too early", ["early", "gap", "early"], 0)
    assert not write("T1", "somebody else's", [], 0)
    hand.pass_by(5)
    assert write("T2", "", ["gap"], 0) and write("T1", "late", ["gap", "news"], 1)
    note = TradeNote("late", ("gap", "news"), 2, "me", iso(hand.moment))
    assert notes.trade_note(database, "T1") == note
    assert set(notes.trade_notes(database, ["T1", "T2", "T3"])) == {"T1", "T2"}
    assert notes.tag_names(database) == ["gap", "news"]
    fill(database, "T5")
    write("T5", "", ["open"], 0)
    rows = sorted((tag, seq) for tag, _, seq, *_ in notes.tagged_results(database))
    assert rows == [("gap", 1), ("gap", 2), ("news", 2)], "of closed trades alone"

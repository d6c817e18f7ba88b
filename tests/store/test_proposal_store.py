"""Proposals end once, alarms stand until they are ended, bridges and signals are read in pieces."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from instance_database import Database
from tests.worlds.stores import NOON, Hand, key_of, opening
from torra.clock import iso
from torra.store.trade import proposals_and_alarms as execution

HOUR = timedelta(hours=1)
KEY = key_of(NOON)
OPEN = {"kind": "open", "side": "BUY", "lots": 0.5, "closes": None}


def propose(database: Database, sid: str = "P1", hours: int = 1, **more: Any) -> bool:
    row = {
        "sid": sid, "torra_key": KEY.text, "instance": "BTCUSD", "symbol": "BTCUSD",
        "timeframe": "M15", "bar_time": KEY.bar_time, "verdict": "BUY", "action": "OPEN_BUY",
        "drafts": [OPEN], "price": 100.0, "atr": 1.0, "multiplier": 0.5, "created_at": NOON,
        "expires": NOON + hours * HOUR,
    }  # fmt: skip
    return database.propose({**row, **more})


def ids(rows: Any) -> list[str]:
    return [row.sid for row in rows]


def test_a_proposal_is_written_once_and_waits(database: Database) -> None:
    assert database.proposal("P1") is None
    assert propose(database)
    assert not propose(database, price=200.0)
    row = database.proposal("P1")
    assert row is not None and row.damaged == ""
    assert (row.state, row.reason, row.decided_at, row.price) == ("WAITING", "", None, 100.0)
    assert (row.bar_time, row.expires) == (iso(KEY.bar_time), iso(NOON + HOUR))
    assert [(order.kind, order.lots) for order in row.orders] == [("open", 0.5)]


def test_the_first_decision_about_a_proposal_ends_it(database: Database, hand: Hand) -> None:
    propose(database)
    hand.pass_by(30)
    assert not execution.decide_proposal(database, "P2", "APPROVED", "")
    assert execution.decide_proposal(database, "P1", "REJECTED", "x" * 900)
    assert not execution.decide_proposal(database, "P1", "APPROVED", "a second click")
    row = database.proposal("P1")
    assert row is not None and (row.state, len(row.reason)) == ("REJECTED", 500)
    assert row.decided_at == iso(NOON + timedelta(seconds=30))
    assert execution.expire_proposals(database, NOON + 9 * HOUR, "late") == 0


def test_proposals_run_out_at_their_moment(database: Database) -> None:
    for sid, hours in (("P1", 1), ("P2", 2), ("P3", 3)):
        propose(database, sid, hours, instance=sid)
    now = NOON + 2 * HOUR
    assert execution.proposals_due(database, NOON) == 0
    assert execution.proposals_due(database, now) == 2
    assert execution.waiting(database) == ["P1", "P2", "P3"]
    assert execution.expire_proposals(database, now, "late") == 2
    assert execution.proposals_due(database, now) == 0
    assert execution.waiting(database) == ["P3"]
    row = database.proposal("P2")
    assert row is not None and (row.state, row.reason) == ("EXPIRED", "late")
    assert row.decided_at == iso(NOON)


def test_proposals_are_listed_by_state_newest_first(database: Database) -> None:
    for sid, created, hours in (("P1", 0, 4), ("P3", 1, 2), ("P2", 1, 3), ("P4", 2, 9)):
        propose(database, sid, hours, created_at=NOON + created * HOUR)
    assert ids(database.proposals()) == ["P4", "P2", "P3", "P1"]
    for sid, state in (("P1", "APPROVED"), ("P2", "DENIED"), ("P3", "REJECTED")):
        execution.decide_proposal(database, sid, state, "")
    assert ids(database.proposals()) == ["P4"]
    assert ids(database.proposals("DENIED")) == ["P2"]
    assert ids(database.proposals(None)) == ["P4", "P2", "P3", "P1"]
    assert ids(database.proposals(None, 2)) == ["P4", "P2"]
    assert ids(execution.decided_proposals(database)) == ["P1", "P2", "P3"], "by their expiry"
    assert ids(execution.decided_proposals(database, 2)) == ["P1", "P2"]


def test_a_stream_has_one_proposal_at_a_time(database: Database) -> None:
    propose(database)
    later, end = key_of(NOON + HOUR), NOON + HOUR
    assert database.proposal_waits(later, end - timedelta(seconds=1))
    assert not database.proposal_waits(later, end)
    assert not database.proposal_waits(KEY, NOON), "the tick's own is written again"
    for other in (key_of(NOON + HOUR, "H1"), key_of(NOON + HOUR, instance="EURUSD")):
        assert not database.proposal_waits(other, NOON)
    execution.decide_proposal(database, "P1", "REJECTED", "")
    assert not database.proposal_waits(later, NOON)


def test_a_close_waits_for_a_person_as_long_as_its_proposal(database: Database) -> None:
    close = {"kind": "close", "side": "SELL", "lots": 0.5, "closes": "T1"}
    reversal = [close, {**OPEN, "closes": "T1"}]
    propose(database, "P1", drafts=reversal)
    propose(database, "P2", drafts=[{**OPEN, "closes": "T2"}])
    propose(database, "P3", 9, drafts=[{**close, "closes": "T3"}])
    database.change("UPDATE proposals SET drafts = '[]' WHERE sid = 'P3'")
    waits = {sid: database.close_waits(sid, NOON) for sid in ("T1", "T2", "T3")}
    assert waits == {"T1": True, "T2": False, "T3": False}, "an opening closes nothing"
    assert not database.close_waits("T1", NOON + HOUR)
    execution.decide_proposal(database, "P1", "APPROVED", "")
    assert not database.close_waits("T1", NOON)


def test_an_alarm_stands_until_it_is_ended_and_may_come_again(
    database: Database, hand: Hand
) -> None:
    assert execution.alarm(database, "a") is None and not database.end_alarm("a")
    assert database.raise_alarm("a", "LOST", "x" * 900)
    assert not database.raise_alarm("a", "LOST", "again")
    hand.pass_by(1)
    assert database.raise_alarm("b", "ODD", "why") and database.raise_alarm("c", "ODD", "why")
    assert [row.key for row in database.alarms()] == ["b", "c", "a"]
    assert [row.key for row in database.alarms(limit=1)] == ["b"]
    assert len(database.alarms()[2].detail) == 500
    assert database.end_alarm("a") and not database.end_alarm("a")
    row = execution.alarm(database, "a")
    assert row is not None and (row.at, row.ended_at) == (iso(NOON), iso(hand.moment))
    assert [row.key for row in database.alarms()] == ["b", "c"]
    assert [row.key for row in database.alarms(standing=False)] == ["b", "c", "a"]
    hand.pass_by(1)
    assert database.raise_alarm("a", "LOST", "once more")
    row = execution.alarm(database, "a")
    assert row is not None and (row.detail, row.ended_at) == ("once more", None)
    assert execution.end_alarms(database) == 3 and execution.end_alarms(database) == 0
    assert database.alarms() == []


def test_a_bridge_is_noted_by_its_name(database: Database, hand: Hand) -> None:
    assert database.bridges() == []
    note = execution.note_bridge
    note(database, "b", deny="CLOCK", detail="x" * 900, facts={"a": 1}, reconciled_at=NOON)
    note(database, "a", deny="", detail="", facts={})
    hand.pass_by(1)
    note(database, "b", deny="", detail="well", facts={"a": 2})
    one, other = database.bridges()
    assert (one.name, one.reconciled_at, one.account) == ("a", None, {})
    assert (other.deny, other.detail, other.account) == ("", "well", {"a": 2})
    assert (other.at, other.reconciled_at) == (iso(hand.moment), iso(NOON))


def test_signals_are_read_a_page_at_a_time_newest_first(database: Database) -> None:
    for number, instance in enumerate(("BTCUSD", "EURUSD", "BTCUSD", "BTCUSD"), 1):
        database.enqueue_signal(opening(f"T{number}", instance=instance))
        if instance == "BTCUSD" and number < 4:
            database.move_signal(f"T{number}", "CANCELLED")

    def page(**choice: Any) -> list[str]:
        return ids(execution.signal_page(database, **choice))

    assert page() == ["T4", "T3", "T2", "T1"] and page(limit=2) == ["T4", "T3"]
    assert page(before=3) == ["T2", "T1"] and page(before=1) == []
    assert page(instance="BTCUSD") == ["T4", "T3", "T1"]
    assert page(state="PENDING") == ["T4", "T2"]
    assert page(state="CANCELLED", instance="BTCUSD", before=3) == ["T1"]
    order = database.order("T2")
    assert order is not None and (order.seq, order.instance) == (2, "EURUSD")
    assert database.order("T9") is None

"""Marks of the accounts behind bridges: added where something changed, told by holder."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from instance_database import Database
from tests.worlds.stores import Hand, opening
from torra.clock import iso
from torra.money.account import AccountMark
from torra.store.trade import accounts as account_table
from torra.store.trade import proposals_and_alarms as execution_table

FACTS = {"account": 1001, "currency": "EUR", "balance": 10_000.0, "equity": 10_000.0}
BRIDGE = "torra_files main"


def test_facts_that_nobody_can_change_are_an_account_too(database: Database) -> None:
    """A bridge of one's own may tell any mapping (docs/extending.md, torra.bridges.guarded)."""
    assert account_table.mark_account(database, BRIDGE, MappingProxyType(FACTS))
    assert len(marks(database)) == 1


def test_a_mark_is_added_where_something_changed_and_every_quarter(
    database: Database, hand: Hand
) -> None:
    assert account_table.mark_account(database, BRIDGE, FACTS)
    hand.pass_by(60)
    assert not account_table.mark_account(database, BRIDGE, {**FACTS, "equity": 9_990.0}), (
        "equity alone moves on"
    )
    assert account_table.mark_account(database, BRIDGE, {**FACTS, "balance": 9_999.0})
    hand.pass_by(899)
    assert not account_table.mark_account(database, BRIDGE, {**FACTS, "balance": 9_999.0})
    hand.pass_by(1)
    assert account_table.mark_account(database, BRIDGE, {**FACTS, "balance": 9_999.0})
    database.enqueue_signal(opening("T1", instance="EURUSD", bridge=BRIDGE))
    for state in ("PUBLISHED", "FILLED"):
        database.move_signal("T1", state)
    hand.pass_by(1)
    assert account_table.mark_account(database, BRIDGE, {**FACTS, "balance": 9_999.0})
    assert [one.held for one in marks(database)] == [0, 0, 0, 1]
    hand.pass_by(-3600)
    assert account_table.mark_account(database, BRIDGE, FACTS), (
        "of a clock that was set back nothing is known"
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"account": True}, {"account": "1001"}, {"account": 0}, {"account": 1 << 70},
        {"currency": ""}, {"currency": "E R"}, {"currency": "EUROEUROE"}, {"currency": None},
        {"balance": float("nan")}, {"balance": 10**400}, {"balance": "much"},
        {"equity": -(10**309)}, {"equity": 1e300}, {"equity": None},
    ],
)  # fmt: skip
def test_what_is_no_account_is_left_out(database: Database, odd: dict[str, Any]) -> None:
    assert not account_table.mark_account(database, BRIDGE, {**FACTS, **odd})
    assert not account_table.mark_account(
        database, BRIDGE, {k: v for k, v in FACTS.items() if k not in odd}
    )
    assert marks(database) == []


def marks(database: Database) -> list[AccountMark]:
    upto = account_table.newest_mark(database)
    return [AccountMark(*row) for row in account_table.account_marks(database, BRIDGE, 0, upto)]


def test_holders_are_the_accounts_one_after_the_other(database: Database, hand: Hand) -> None:
    assert (
        account_table.account_holders(database, BRIDGE, 0, account_table.newest_mark(database))
        == []
    )
    moments = []
    for account, currency in ((1, "EUR"), (1, "EUR"), (1, "USD"), (2, "USD"), (2, "USD")):
        facts = {**FACTS, "account": account, "currency": currency}
        moments.append(iso(hand.moment))
        assert account_table.mark_account(database, BRIDGE, facts)
        account_table.mark_account(database, "another", {**FACTS, "account": 7})
        hand.pass_by(900)
    found = [AccountMark(*row) for row in account_table.account_holders(database, BRIDGE, 0, 99)]
    assert [one.at for one in found] == [moments[0], moments[2], moments[3]]
    later = [
        AccountMark(*row)
        for row in account_table.account_holders(database, BRIDGE, found[1].id, 99)
    ]
    assert later == found[1:], "the mark from which one looks on is the first of all"


def test_marks_are_read_a_part_at_a_time_in_their_order(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_table, "AT_ONCE", 2)
    assert account_table.newest_mark(database) == 0
    for number in range(5):
        account_table.mark_account(
            database, BRIDGE, {**FACTS, "currency": "eur", "balance": float(number)}
        )
        hand.pass_by(1)
    numbers = [row[-1] for row in account_table.account_marks(database, BRIDGE, 1, 4)]
    assert numbers == [2, 3, 4] and account_table.newest_mark(database) == 5
    assert [one.currency for one in marks(database)] == ["EUR"] * 5
    assert account_table.marked_bridges(database) == []
    execution_table.note_bridge(database, BRIDGE, deny="", detail="", facts={})
    assert account_table.marked_bridges(database) == [BRIDGE]

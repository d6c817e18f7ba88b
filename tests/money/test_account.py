"""The account behind a bridge: what of its balance is Torra's, what is not, and whose it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database
from tests.cases import cases
from tests.trading.test_reversals import Life
from tests.worlds.channels import EUR
from tests.worlds.stores import NOON, Hand, open_database, opening
from torra.clock import iso, parse
from torra.exhibits import money as words
from torra.money.account import AccountMark, AccountSeries, Jump
from torra.money.book import Money, MoneyBook
from torra.store.trade import accounts as account_table
from torra.store.trade import proposals_and_alarms as execution_table

FACTS = {"account": 1001, "currency": "EUR", "balance": 10_000.0, "equity": 10_000.0}
BRIDGE = "torra_files main"


def at(minutes: float) -> str:
    return iso(NOON + timedelta(minutes=minutes))


def mark(minutes: float, balance: float, *, held: int = 0, **more: Any) -> AccountMark:
    known = {"account": 1001, "currency": "EUR", "equity": balance, **more}
    return AccountMark(at=at(minutes), balance=balance, held=held, **known)


def series(*marks: AccountMark, ends: tuple[tuple[str, float], ...] = ()) -> AccountSeries:
    found = AccountSeries()
    for one in marks:
        found.add(one, ends)
    return found


# --- what is Torra's, and what is not ------------------------------------------------------------


@cases("seed", range(20))
def test_what_lies_between_two_ends_is_judged_as_each_moment_alone(seed: int) -> None:
    """The series remembers between which ends it is; the ends come as the marks do."""
    dice = random.Random(seed)
    moments = sorted(dice.uniform(0, 40) for _ in range(12))
    ends = [(at(round(minute * 60) / 60), dice.choice((-3.0, 0.0, 5.0))) for minute in moments]
    found, jumps, before, count = AccountSeries(), [], None, 0
    for minute in sorted(dice.uniform(0, 42) for _ in range(300)):
        one = mark(round(minute * 60) / 60, dice.choice((100.0, 105.0)), held=dice.random() < 0.1)
        ended = sum(end <= one.at for end, _ in ends)
        count = max(count, min(len(ends), ended + (dice.random() < 0.3)))
        known = ends[:count]
        found.add(one, known)
        near = [end for end, _ in known if abs(parse(end) - parse(one.at)) < timedelta(seconds=30)]
        if one.held or near:
            continue
        if before is not None:
            won = sum(profit for end, profit in known if before.at < end <= one.at)
            if left := one.balance - before.balance - won:
                jumps.append(Jump(before.at, one.at, left))
        before = one
    told = found.standing()
    assert told is not None
    assert (told.jumps, told.newest[::-1]) == (len(jumps), tuple(jumps[-20:]))
    assert told.unexplained == sum(one.amount for one in jumps)
    assert jumps


# --- what a desk says of it -----------------------------------------------------------------------


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def database(tmp_path: Path, clock: Hand) -> Database:
    found = open_database(tmp_path, clock)
    execution_table.note_bridge(found, BRIDGE, deny="", detail="", facts={})
    return found


def closed(database: Database, sid: str, moment: datetime, profit: float) -> None:
    database.enqueue_signal(opening(sid, instance="EURUSD", bridge=BRIDGE))
    for state in ("PUBLISHED", "FILLED"):
        database.move_signal(sid, state, fields={"price": 2000.0} if state == "FILLED" else {})
    database.close_position(
        sid, price=2000.0 + profit, time=moment, profit=profit, r_multiple=0.1, reason="CLOSED"
    )


def test_another_account_behind_the_channel_has_its_own_results(
    database: Database, clock: Hand
) -> None:
    """A swap of the account, or of its currency: the trades before it are not added to those after
    it, also where a look lay between them.
    """
    book = MoneyBook(database)
    account_table.mark_account(database, BRIDGE, FACTS)
    closed(database, "T1", clock.moment + timedelta(minutes=5), 10.0)
    clock.pass_by(600)
    account_table.mark_account(database, BRIDGE, {**FACTS, "balance": 10_010.0})
    assert names(book.money([], clock.moment)) == {BRIDGE: ("EUR", 10.0, 0)}
    clock.pass_by(600)
    account_table.mark_account(
        database, BRIDGE, {**FACTS, "account": 2002, "currency": "USD", "balance": 77.0}
    )
    closed(database, "T2", clock.moment + timedelta(minutes=5), 4.0)
    clock.pass_by(600)
    account_table.mark_account(
        database, BRIDGE, {**FACTS, "account": 2002, "currency": "USD", "balance": 81.0}
    )
    told = names(book.money([], clock.moment))
    assert told == {
        BRIDGE: ("USD", 4.0, 0),
        f"{BRIDGE}, until 2026-02-13T12:20:00Z": ("EUR", 10.0, 0),
    }
    assert names(MoneyBook(database).money([], clock.moment)) == told


def names(found: Money) -> dict[str, tuple[str, float, int | None]]:
    return {
        one.account: (one.currency, one.whole.profit, one.standing.jumps if one.standing else None)
        for one in found.accounts
        if one.account != "paper"
    }


def test_what_was_never_judged_is_not_vouched_for(database: Database, clock: Hand) -> None:
    """A desk that always holds something has no two moments without it."""
    closed(database, "T1", clock.moment, 1.0)
    database.enqueue_signal(opening("T2", instance="EURUSD", bridge=BRIDGE))
    for state in ("PUBLISHED", "FILLED"):
        database.move_signal("T2", state)
    for balance in (50_000.0, 40_000.0):
        clock.pass_by(600)
        account_table.mark_account(
            database, BRIDGE, {**FACTS, "balance": balance, "equity": balance}
        )
    (account,) = MoneyBook(database).money([], clock.moment).accounts
    text = " ".join(words.sentences(account, "2026-02-13"))
    assert "is not known yet: Torra has held a position" in text
    assert "alone" not in text


def test_payments_are_no_fall_of_the_equity() -> None:
    marks = mark(0, 100.0), mark(10, 60.0), mark(20, 55.0, held=1), mark(30, 160.0)
    found = series(*marks, ends=((at(25), 5.0),)).standing()
    assert found is not None
    assert [one.amount for one in found.newest] == [95.0, -40.0]
    assert (found.fall, found.below) == (5.0, 0.0)
    assert (found.equity, found.since) == (160.0, at(0))


@pytest.mark.journey
def test_lives_on_a_channel_explain_every_cent_but_the_deposits(
    tmp_path: Path, scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    """Random lives: parts, reversals, stops, hands, late answers; somebody pays in and out."""
    paid_in = trades = judged = 0
    bars = scaled(4, least=2)
    for number in range(scaled(300, least=1)):
        life, dice = Life(tmp_path / str(number), 5_000 + number), random.Random(number)
        deposits: list[tuple[str, float]] = []
        for _ in range(4):
            life.run(bars=bars)
            life.settle()
            if dice.random() < 0.7:
                amount = float(dice.choice((-250, 100, 1_000)))
                life.stage.ea.pay(amount)
                deposits.append((iso(life.clock.now()), amount))
                paid_in += 1
            life.settle()
        (found,) = (
            one
            for one in MoneyBook(life.database).money([], life.clock.now()).accounts
            if one.account == EUR.route
        )
        trades += found.whole.trades
        assert found.standing is not None
        told = found.standing
        judged += bool(told.judged_from)
        if life.database.position(EUR.id) is None and told.judged_from:
            known = sum(
                amount for when, amount in deposits if told.judged_from <= when < told.judged
            )
            assert told.unexplained == pytest.approx(known, abs=0.01), f"life {number}"
        life.database.close()
    assert judged
    record_property("seen", f"{trades} trades and {paid_in} payments, {judged} lives judged")

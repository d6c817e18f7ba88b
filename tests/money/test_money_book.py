"""What a desk's trades came to equals an independent recount, whatever came in which order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database
from tests.worlds import stores
from tests.worlds.busy_desk import run
from tests.worlds.stores import NOON, opening
from torra.clock import parse
from torra.config import Instance, Profile
from torra.exhibits import money as words
from torra.money.book import AccountMoney, DayCap, Money, MoneyBook
from torra.providers.rules.provider import RulesProvider
from torra.store.trade import signals as signal_table

SYMBOLS = ("BTCUSD", "EURUSD", "XAUUSD")
BRIDGES = ("paper", "torra_files")
REASONS = ("STOPPED", "TARGET", "CLOSED")


SETUPS = [(Instance(symbol=name), Profile()) for name in SYMBOLS]


def close_one(database: Database, dice: random.Random, number: int, at: datetime) -> None:
    """Let one random trade live and end at a moment."""
    sid, symbol = f"T{number}", dice.choice(SYMBOLS)
    side = dice.choice(("BUY", "SELL"))
    row = opening(
        sid, instance=symbol, symbol=symbol, side=side, bridge=dice.choice(BRIDGES),
        bar_time=at - timedelta(hours=2), decided_at=at - timedelta(hours=1),
    )  # fmt: skip
    assert database.enqueue_signal(row)
    database.move_signal(sid, "PUBLISHED")
    database.move_signal(sid, "FILLED", fields={"price": 100.0, "opened_at": at})
    profit, why = round(dice.gauss(0, 40), 8), dice.choice(REASONS)
    database.close_position(
        sid, price=100.0, time=at, profit=profit, r_multiple=profit / 25, reason=why
    )  # fmt: skip
    if dice.random() < 0.1:  # the books never showed it
        with database.transaction():
            database.connection().conn.execute(
                "UPDATE signals SET profit = NULL, r_multiple = NULL WHERE sid = ?", (sid,)
            )


def recount(rows: Iterable[dict[str, Any]], now: datetime) -> dict[str, dict[str, Any]]:
    """Return figures of each account from the rows alone, added up as decimals."""
    found: dict[str, dict[str, Any]] = {}
    for name in BRIDGES:
        own = sorted(
            (row for row in rows if row["bridge"] == name),
            key=lambda row: (row["closed_at"], row["seq"]),
        )
        known = [row for row in own if row["profit"] is not None]
        days = [(parse(row["closed_at"]).date(), Decimal(str(row["profit"]))) for row in known]
        level = peak = deepest = Decimal(0)
        for _, profit in days:
            level += profit
            peak = max(peak, level)
            deepest = max(deepest, peak - level)
        week = {now.date() - timedelta(days=back) for back in range(7)}
        found[name] = {
            "trades": len(own),
            "unknown": len(own) - len(known),
            "won": sum(profit > 0 for _, profit in days),
            "profit": sum((profit for _, profit in days), Decimal(0)),
            "today": sum((profit for day, profit in days if day == now.date()), Decimal(0)),
            "week": sum((profit for day, profit in days if day in week), Decimal(0)),
            "deepest": deepest,
            "now": peak - level,
            "by_symbol": {
                symbol: sum(
                    (Decimal(str(row["profit"])) for row in known if row["symbol"] == symbol),
                    Decimal(0),
                )
                for symbol in {row["symbol"] for row in own}
            },
        }
    return found


def figures(account: AccountMoney) -> dict[str, Any]:
    return {
        "trades": account.whole.trades,
        "unknown": account.whole.unknown,
        "won": account.whole.won,
        "profit": account.whole.profit,
        "today": account.today.profit,
        "week": account.week.profit,
        "deepest": account.drawdown.money,
        "now": account.drawdown.now,
        "by_symbol": {name: result.profit for name, result in account.by_symbol.items()},
    }


def same(found: Money, want: dict[str, dict[str, Any]]) -> None:
    by_name = {account.account: account for account in found.accounts}
    for name, wanted in want.items():
        if not wanted["trades"] and name not in by_name:
            continue
        told = figures(by_name[name])
        assert told.pop("by_symbol") == pytest.approx(
            {symbol: float(value) for symbol, value in wanted.pop("by_symbol").items()}, abs=1e-6
        )
        assert told == pytest.approx({key: float(value) for key, value in wanted.items()}, abs=1e-6)


def test_it_equals_a_recount_however_late_the_trades_came(
    tmp_path: Path, scaled: Callable[..., int]
) -> None:
    for seed in range(scaled(300, least=5)):
        dice = random.Random(seed)
        database = stores.open_database(tmp_path / str(seed))
        book, at = MoneyBook(database), NOON
        for number in range(30):
            at += timedelta(hours=dice.randrange(20))
            # one in six ended before others whose end was known earlier
            late = timedelta(hours=dice.randrange(60)) if dice.random() < 1 / 6 else timedelta()
            close_one(database, dice, number, at - late)
            if dice.random() < 0.4:
                rows = [row.as_json() for row in signal_table.closed_trades(database, limit=1_000)]
                same(book.money(SETUPS, at), recount(rows, at))
        assert book.money(SETUPS, at) == MoneyBook(database).money(SETUPS, at)
        database.close()


@pytest.mark.journey
def test_a_desk_on_paper_comes_to_what_its_fills_say(
    tmp_path: Path, scaled: Callable[..., int]
) -> None:
    """Profit and open result from fills, exits, bars and terms alone."""
    desk = run(tmp_path, RulesProvider(), "full", scaled(140, least=60))
    database, [setup] = desk.database, desk.setups.values()
    own = [(setup.instance, setup.profile)]
    [account] = MoneyBook(database).money(own, desk.clock.now()).accounts
    spec = setup.profile.symbol("BTCUSD")

    def worth(row: dict[str, Any], leave: float) -> float:
        way = 1 if row["side"] == "BUY" else -1
        lots = row["filled_lots"] or row["lots"]
        return way * (leave - row["price"]) / spec.tick_size * spec.tick_value * lots

    closed = [row.as_json() for row in signal_table.closed_trades(database, limit=1_000)]
    assert len(closed) > 5
    whole = account.whole.profit + account.warm_up.profit
    assert whole == pytest.approx(sum(worth(row, row["close_price"]) for row in closed), abs=0.005)
    held = [row for row in database.signals(("FILLED", "PARTIAL")) if row["kind"] == "open"]
    assert account.open.positions == account.open.valued == len(held)
    newest = desk.setups["BTCUSD"].feed.bars("BTCUSD", "M15", desk.clock.now(), 1)["close"].iloc[-1]
    now = sum(worth(row, newest if row["side"] == "BUY" else newest + spec.spread) for row in held)
    assert account.open.result == pytest.approx(now, abs=0.005)
    assert account.open.risk >= 0.0


def test_what_the_desk_lost_today_is_what_the_risk_checks_count(database: Database) -> None:
    cap = Profile().risk.capital * Profile().risk.daily_loss_cap_pct / 100
    book = MoneyBook(database)
    assert book.money(SETUPS, NOON).caps == (DayCap("default", cap),)
    for number, profit in enumerate((-30.0, -50.0, 5.0)):
        ended(database, f"T{number}", NOON - timedelta(hours=number * 10), profit)
    lost = book.money(SETUPS, NOON).lost_today
    # 20 hours before noon is yesterday
    assert lost == 80.0 == database.exposure("BTCUSD", "M15", as_of=NOON)["day_loss"]
    told = words.caps(book.money(SETUPS, NOON))
    assert (
        told[0].startswith("The desk lost 80.00 today, in the account's currency")
        and f"loss reaches {cap:,.2f}" in told[1]
    )
    ended(database, "T9", NOON, 100.0)
    assert words.caps(book.money(SETUPS, NOON))[0].startswith(
        "The desk lost nothing and won 20.00 today"
    )


def ended(database: Database, sid: str, at: datetime, profit: float, **more: Any) -> None:
    """Let one trade live and end with a profit."""
    held(database, sid, **more)
    database.close_position(
        sid, price=99.0, time=at, profit=profit, r_multiple=profit / 30, reason="CLOSED"
    )


def held(database: Database, sid: str, **more: Any) -> None:
    """Let one position be open, filled at 100 with its stop at 90."""
    assert database.enqueue_signal(opening(sid, **more))
    database.move_signal(sid, "PUBLISHED")
    database.move_signal(sid, "FILLED", fields={"price": 100.0, "opened_at": NOON})


def broker(name: str, channel: str, currency: str, database: Database) -> tuple[Instance, Profile]:
    """Return an instance that trades at a broker, whose heartbeat told the account's currency."""
    item = Instance(symbol=name, bridge="torra_files", channel=channel)
    with database.transaction():
        database.connection().conn.execute(
            "INSERT INTO bridges (name, deny, detail, facts, at) VALUES (?, '', '', ?, '')",
            (item.route, f'{{"currency": "{currency}"}}'),
        )
    return item, Profile()


def test_each_channel_is_an_account_of_its_own(database: Database) -> None:
    setups = [
        broker("EURUSD", "main", "USD", database),
        broker("XAUUSD", "other", "EUR", database),
        SETUPS[0],
    ]
    for number, (item, _) in enumerate(setups):
        known = {"instance": item.id, "symbol": item.symbol, "bridge": item.route}
        ended(database, f"C{number}", NOON, 10.0 + number, **known)
        held(database, f"H{number}", **known)
    accounts = MoneyBook(database).money(setups, NOON).accounts
    assert [(a.account, a.currency, a.whole.profit, a.open.positions) for a in accounts] == [
        ("paper", "", 12.0, 1),
        ("torra_files main", "USD", 10.0, 1),
        ("torra_files other", "EUR", 11.0, 1),
    ]


def test_an_order_that_is_out_is_at_risk_and_no_position(database: Database) -> None:
    database.enqueue_signal(opening("T1", instance="EURUSD", symbol="EURUSD", state="PENDING"))
    [alone] = MoneyBook(database).money(SETUPS, NOON).accounts
    assert (alone.open.positions, alone.open.known, alone.open.orders) == (0, 0, 1)
    assert alone.open.risk > 0.0
    assert alone.open.risk_r == pytest.approx(1.0)
    lost = f"{alone.open.risk:,.2f}"
    assert words.sentences(alone, "2026-02-13")[-1] == (
        f"1 order is out: at its stop the loss would be {lost} (1.00 R)."
    )
    held(database, "T2")
    [both] = MoneyBook(database).money(SETUPS, NOON).accounts
    assert (both.open.positions, both.open.orders) == (1, 1)
    assert both.open.risk == pytest.approx(alone.open.risk + 5.0)
    assert both.open.risk_r == pytest.approx(2.0)
    assert words.sentences(both, "2026-02-13")[-1] == (
        "1 position is open and 1 order is out, 0 with a price: — if closed now; at the stops the "
        f"loss would be {both.open.risk:,.2f} (2.00 R)."
    )


def test_the_brokers_currency_is_told_and_nothing_odd_is(database: Database) -> None:
    setups = [(Instance(symbol="BTCUSD", bridge="torra_files"), Profile())]
    for told, want in (
        ('{"currency": "eur"}', "EUR"), ('{"currency": "E\\u20ac!"}', ""), ('{"currency": 7}', ""),
        ("[" * 5_000, ""), ("{", ""), ("[]", ""),
    ):  # fmt: skip
        with database.transaction():
            database.connection().conn.execute("DELETE FROM bridges")
            database.connection().conn.execute(
                "INSERT INTO bridges (name, deny, detail, facts, at) VALUES (?, '', '', ?, '')",
                ("torra_files main", told),
            )
        [account] = MoneyBook(database).money(setups, NOON).accounts
        assert (account.account, account.currency) == ("torra_files main", want)


def test_a_row_that_says_something_odd_adds_nothing(database: Database) -> None:
    for number in range(2):
        ended(database, f"T{number}", NOON, 5.0)
    book = MoneyBook(database)
    for odd in ("'much'", "x'00ff'", "9e999", "1e308", "-1e200"):
        with database.transaction():
            database.connection().conn.execute(
                f"UPDATE signals SET profit = {odd}, r_multiple = {odd}, close_reason = x'01'"
            )
        [account] = MoneyBook(database).money(SETUPS[:1], NOON).accounts
        assert account.whole.trades == account.whole.unknown == 2 and account.whole.profit == 0.0
        assert [*account.by_reason] == ["unknown"] and account.whole.between is None
    with database.transaction():
        database.connection().conn.execute("UPDATE signals SET closed_at = NULL WHERE sid = 'T1'")
    [account] = MoneyBook(database).money(SETUPS[:1], NOON).accounts
    assert account.whole.trades == 1
    assert book.money(SETUPS, NOON)


def test_a_position_stands_where_it_was_opened_also_without_its_instance(
    database: Database,
) -> None:
    held(database, "T1", instance="OLD", symbol="OLD", bridge="torra_files main")
    [paper, gone] = MoneyBook(database).money(SETUPS, NOON).accounts
    assert (paper.account, paper.open.positions) == ("paper", 0)
    assert (gone.account, gone.open.positions, gone.open.known) == ("torra_files main", 1, 0)
    assert gone.open.result is gone.open.risk is None
    [said] = [line for line in words.sentences(gone, "2026-02-13") if "open" in line]
    assert "— if closed now; at its stop the loss would be — (— R)" in said

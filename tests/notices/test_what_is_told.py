"""Each event is told once, in the words of a trader, and nothing else is."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.worlds.stores import NOON, closing, opening, save
from tests.worlds.told import BTC, EUR, PAID, Pager, ToldDesk, end, fill, propose
from torra.market.closed_hours import weekends
from torra.store import notices as notice_table
from torra.store.ledger import Booking, Settlement


@pytest.fixture
def desk(tmp_path: Path) -> ToldDesk:
    found = ToldDesk(tmp_path, Pager())
    assert found.look() == []
    return found


def test_what_happened_is_told_once(desk: ToldDesk) -> None:
    """The words of each stand in the goldens of notices."""
    database = desk.database
    for happens in (
        lambda: propose(database),
        lambda: fill(database),
        lambda: end(database),
        lambda: database.halt("by a person: lunch"),
        lambda: database.set_trading_state("ACTIVE", ""),
    ):
        happens()
        assert len(desk.look()) == 1 and desk.look() == []
    levels = [row["level"] for row in notice_table.notices(database, 2)]
    assert levels == ["note", "alarm"]


def test_an_end_that_the_books_never_showed_says_so(desk: ToldDesk) -> None:
    fill(desk.database)
    desk.look()
    end(desk.database, profit=0.0, r_multiple=0.0, reason="odd <b>word</b>")
    desk.sql("UPDATE signals SET profit = NULL, r_multiple = NULL, close_price = NULL")
    assert desk.look() == ["EURUSD: closed, what it came to is not known"]
    assert desk.texts()[-1].endswith("The long position of 0.20 lots ended.")


def test_closes_and_other_steps_are_no_news(desk: ToldDesk) -> None:
    fill(desk.database)
    desk.look()
    desk.database.enqueue_signal(closing("C1", "T1", instance="EURUSD", symbol="EURUSD"))
    desk.database.move_signal("C1", "PUBLISHED")
    desk.database.move_signal("C1", "FILLED", fields={"price": 1.2})
    assert desk.look() == []


def test_an_alarm_is_told_each_time_it_begins_to_stand(desk: ToldDesk) -> None:
    fill(desk.database)
    desk.look()
    desk.database.raise_alarm("Unprotected T1", "UNPROTECTED", "position 4711471 of /home/x")
    assert desk.look() == ["EURUSD: alarm UNPROTECTED"]
    assert "A position has no stop at the broker." in desk.texts()[-1]
    assert desk.look() == []
    desk.database.end_alarm("Unprotected T1")
    assert desk.look() == []
    desk.later(minutes=1)
    desk.database.raise_alarm("Unprotected T1", "UNPROTECTED", "again")
    desk.database.raise_alarm("NEW x", "NEVER_HEARD_OF", "whatever a stranger says")
    assert sorted(desk.look()) == ["EURUSD: alarm UNPROTECTED", "Torra: an alarm stands"]
    told = str(notice_table.notices(desk.database, 100))
    assert "4711471" not in told and "/home" not in told and "stranger" not in told


def test_the_first_look_tells_what_stands_and_nothing_that_is_past(tmp_path: Path) -> None:
    desk = ToldDesk(tmp_path, Pager())
    fill(desk.database)
    end(desk.database)
    desk.database.halt("long ago")
    desk.database.raise_alarm("ODD_BOOKS main", "ODD_BOOKS", "x")
    propose(desk.database)
    assert desk.look() == ["EURUSD: a proposal waits", "Torra: alarm ODD_BOOKS"]
    assert desk.look() == []


@pytest.mark.journey
def test_what_stands_is_not_told_again_when_its_notice_is_forgotten(desk: ToldDesk) -> None:
    desk.database.raise_alarm("ODD_BOOKS main", "ODD_BOOKS", "x")
    propose(desk.database)
    assert len(desk.look()) == 2
    for table in ("notice_outbox", "notices"):
        desk.sql(f"DELETE FROM {table}")
    before = desk.database.connection().conn.total_changes
    assert desk.look() == []
    assert desk.database.connection().conn.total_changes == before, "nor is anything written"


def test_trades_of_the_warm_up_are_not_told(desk: ToldDesk) -> None:
    for close in (NOON, NOON + timedelta(minutes=15)):
        save(desk.database, close, instance="EURUSD")
    key = "EURUSD|M15|2026-02-13T11:45:00Z"
    record = '{"now": "2026-02-13T12:00:00Z"}'
    desk.sql(
        "INSERT INTO journal (torra_key, record, action, reason, elapsed_ms, provider, cost_usd, "
        "at) VALUES (?, ?, '', '', 0, '', 0, '')",
        (key, record),
    )
    fill(desk.database, bar_time=NOON - timedelta(minutes=15))
    end(desk.database)
    assert desk.look() == []
    fill(desk.database, "T2", bar_time=NOON)
    assert desk.look() == ["EURUSD: bought 0.20 lots at 1.18340"]


def spend(desk: ToldDesk, usd: float, *, settled: bool = True) -> None:
    booking = Booking("analysts", "technical", 1, 1, "anthropic", "m", usd)
    now = desk.clock.now()
    (row,) = desk.database.book("default", "k", [booking], at=now, until=now)
    if settled:
        desk.database.settle(row, Settlement(usd, now))


def test_most_of_the_ceiling_is_told_once_an_hour(tmp_path: Path) -> None:
    desk = ToldDesk(tmp_path, Pager(), profile=PAID)
    assert desk.look() == []
    spend(desk, 0.79)
    spend(desk, 0.2, settled=False)  # reserved alone: it may never be asked
    assert desk.later_look() == []
    spend(desk, 0.02)
    assert desk.later_look() == ["Torra: cost at 81% of the ceiling"]
    assert "profile default: 0.8100 of 1.0000 USD" in desk.texts()[-1]
    desk.later(minutes=30)
    spend(desk, 0.1)
    assert desk.later_look() == []
    desk.later(minutes=31)
    spend(desk, 0.9)
    assert desk.later_look() == ["Torra: cost at 100% of the ceiling"]


def skip(desk: ToldDesk, reason: str, first: int, last: int, instance: str = "EURUSD") -> None:
    """Let closes number `first` to `last` after noon be skipped, a quarter each."""
    for number in range(first, last + 1):
        close = NOON + timedelta(minutes=15 * number)
        bar = close - timedelta(minutes=15)
        desk.sql(
            "INSERT INTO ticks (instance, timeframe, bar_time, close_time, state, reason, "
            " detail, at) VALUES (?, 'M15', ?, ?, 'skipped', ?, '', '')",
            (instance, *(f"{one:%Y-%m-%dT%H:%M:%SZ}" for one in (bar, close)), reason),
        )


def walk(desk: ToldDesk, **span: float) -> list[str]:
    """Let time pass as a desk that is awake lives it; return what is told on the way."""
    left, found = timedelta(**span), []
    while left > timedelta(0):
        found += desk.later_look()
        desk.later(seconds=74)
        left -= timedelta(seconds=90)
    return found


def test_a_feed_that_fails_is_silent_after_a_few_bars_and_told_once(desk: ToldDesk) -> None:
    save(desk.database, NOON, instance="EURUSD")
    skip(desk, "no_file", 1, 8)
    assert walk(desk, minutes=36) == []
    assert walk(desk, minutes=10) == ["EURUSD: no bars"]
    assert "No bar of M15 for 37 minutes" in desk.texts()[-1]
    assert walk(desk, hours=2) == []
    save(desk.database, desk.clock.now(), instance="EURUSD")
    assert walk(desk, minutes=55) == ["EURUSD: no bars"]


@pytest.mark.journey
def test_a_market_without_bars_is_silent_after_hours_and_a_weekend_is_none(
    desk: ToldDesk,
) -> None:
    desk.instances[:] = [EUR, BTC]
    for name in ("EURUSD", "BTCUSD"):
        save(desk.database, NOON, instance=name)  # a Friday
        skip(desk, "no_bar", 1, 300, name)
    assert walk(desk, hours=1, minutes=57) == []
    assert walk(desk, minutes=6) == ["BTCUSD: no bars"]
    assert walk(desk, hours=3, minutes=50) == []
    assert walk(desk, minutes=12) == ["EURUSD: no bars"]


def test_an_hour_without_a_bar_is_no_silence_until_the_close_is_written_off(
    desk: ToldDesk,
) -> None:
    """A close is owed for two bars before it is written off: until then nobody knows why."""
    save(desk.database, NOON, instance="EURUSD")
    assert walk(desk, minutes=51) == []
    assert walk(desk, minutes=4) == ["EURUSD: no bars"]


def test_an_order_that_opened_nothing_is_told_with_its_reason(desk: ToldDesk) -> None:
    for number, (state, detail, said, why) in enumerate((
        ("REJECTED", "deviation: 31", "an order was refused", "the price has moved too far"),
        ("EXPIRED", "SIGNAL_EXPIRED", "an order expired", ""),
        ("REJECTED", "broker 4711 says no", "an order was refused", ""),
    )):  # fmt: skip
        sid = f"T{number}"
        levels = {"entry": 1.1834, "stop": 1.179, "target": 1.1922}
        row = opening(sid, instance="EURUSD", symbol="EURUSD", lots=0.2, **levels)
        assert desk.database.enqueue_signal(row)
        desk.database.move_signal(sid, "PUBLISHED")
        desk.database.move_signal(sid, state, detail=detail)
        assert desk.look() == [f"EURUSD: {said}"]
        text = desk.texts()[-1]
        assert f"{said}. The order to buy 0.20 lots near 1.18340 was not filled" in text
        assert why in text and "4711" not in text and text.endswith(".")
    desk.database.enqueue_signal(closing("C1", "T1", instance="EURUSD", symbol="EURUSD"))
    desk.database.move_signal("C1", "PUBLISHED")
    desk.database.move_signal("C1", "REJECTED", detail="deviation")
    assert desk.look() == []


@pytest.mark.journey
def test_a_weekend_is_no_silence(desk: ToldDesk) -> None:
    friday = NOON + timedelta(hours=8, minutes=45)
    save(desk.database, friday, instance="EURUSD")
    skip(desk, "no_bar", 36, 300)
    desk.clock.set(friday)
    desk.instances[:] = [EUR]
    assert walk(desk, hours=55) == []
    assert walk(desk, hours=3) == ["EURUSD: no bars"]  # Monday 05:00


def test_a_machine_that_slept_counts_no_silence(desk: ToldDesk) -> None:
    save(desk.database, NOON, instance="EURUSD")
    skip(desk, "no_file", 1, 8)
    desk.later(hours=9)
    assert desk.look() == []
    assert walk(desk, minutes=30) == []
    assert walk(desk, minutes=15) == ["EURUSD: no bars"]


def test_weekends_are_counted_from_friday_evening_to_sunday_night() -> None:
    monday = NOON - timedelta(days=4, hours=12)
    assert weekends(monday, monday + timedelta(days=4)) == timedelta(0)
    assert weekends(monday, monday + timedelta(days=14)) == timedelta(hours=102)
    saturday = monday + timedelta(days=5)
    assert weekends(saturday, saturday + timedelta(hours=3)) == timedelta(hours=3)


def test_a_desk_without_its_lock_tells_nothing(desk: ToldDesk) -> None:
    fill(desk.database)
    desk.ours = False
    assert desk.look() == []
    desk.ours = True
    assert desk.look() == ["EURUSD: bought 0.20 lots at 1.18340"]

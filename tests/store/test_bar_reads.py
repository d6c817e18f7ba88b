"""Bars and ranges as pages and lessons read them."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pandas as pd

from instance_database import Database
from tests.worlds.stores import NOON, frame
from torra.clock import duration, iso
from torra.config import Instance
from torra.lessons.facts import PriceRange
from torra.store import bars as bar_table

BTC = ("BTCUSD", "M15")
STEP = timedelta(minutes=15)
END = NOON + timedelta(days=9)


def test_the_last_close_of_each_day(database: Database) -> None:
    night = NOON.replace(hour=23, minute=30)
    database.store_bars(*BTC, frame([1.0, 2.0, 3.0, 4.0], night))
    database.store_bars(*BTC, frame([7.0], night + timedelta(days=2)))
    closes = database.daily_closes(*BTC, date(2026, 2, 13), date(2026, 2, 14))
    assert closes == [(date(2026, 2, 13), 2.0), (date(2026, 2, 14), 4.0)]
    assert database.daily_closes(*BTC, date(2026, 2, 15), date(2026, 2, 15)) == [
        (date(2026, 2, 15), 7.0)
    ]


def test_a_bar_without_volume_is_a_bar_and_sets_records(database: Database) -> None:
    bars = frame([100.0, 150.0, 101.0])
    bars.loc[bars.index[1], "volume"] = 0.0
    assert database.store_bars(*BTC, bars) == 3
    assert len(database.load_bars(*BTC, as_of=END)) == 3
    records = database.records(*BTC, as_of=END)
    assert records is not None and records.high == 151.0
    assert database.records(*BTC, as_of=NOON + STEP) == (101.0, 99.0, NOON)


def test_what_is_stored_between_two_bars(database: Database) -> None:
    assert bar_table.bar_span(database, *BTC) is None
    database.store_bars(*BTC, frame([100.0, 101.0, 102.0]))
    database.store_bars(*BTC, frame([100.0, 109.0]))
    assert bar_table.bar_rows(database, *BTC) == 4
    assert bar_table.count_times(database, *BTC, NOON, NOON + STEP) == 2
    assert bar_table.count_times(database, *BTC, NOON + 3 * STEP, END) == 0
    assert bar_table.bar_span(database, *BTC) == (iso(NOON), iso(NOON + 2 * STEP))
    assert bar_table.has_bar(database, *BTC, NOON + STEP, NOON + STEP)
    assert not bar_table.has_bar(database, *BTC, NOON + timedelta(minutes=1), NOON + STEP / 2)
    rows = bar_table.newest_bars(database, *BTC, as_of=NOON + 3 * STEP, limit=2)
    assert [(row["close"], row["revision"]) for row in rows] == [(109.0, 1), (102.0, 0)]
    assert len(bar_table.newest_bars(database, *BTC, as_of=NOON + 2 * STEP)) == 2
    assert bar_table.newest_bars(database, "EURUSD", "M15", as_of=END) == []


def test_closes_of_the_shortest_timeframe_that_is_stored(database: Database) -> None:
    assert bar_table.any_closes(database, "BTCUSD", as_of=END) is None
    database.store_bars("BTCUSD", "H1", frame([1.0]))
    database.store_bars(*BTC, frame([100.0, 101.0]))
    found = bar_table.any_closes(database, "BTCUSD", as_of=NOON + STEP)
    assert found is not None and found["close"].tolist() == [100.0]
    since = bar_table.closes(database, *BTC, since=NOON + STEP, as_of=NOON + 2 * STEP)
    assert since["close"].tolist() == [101.0] and since.index[0] == NOON + STEP


def test_the_close_that_ended_last_of_several_timeframes(database: Database) -> None:
    database.store_bars("BTCUSD", "H1", frame([50.0]))
    database.store_bars(*BTC, frame([100.0, 101.0, 102.0, 103.0, 104.0]))

    def newest(quarters: int, *timeframes: str) -> float | None:
        moment = NOON + quarters * STEP
        return bar_table.newest_close(database, "BTCUSD", timeframes, moment)

    assert newest(3, "H1", "M15") == 102.0 and newest(5, "M15", "H1") == 104.0
    assert newest(5, "H1") == 50.0 and newest(3, "H1") is None and newest(9) is None
    assert bar_table.last_close(database, *BTC, NOON + 2 * STEP) == (iso(NOON + STEP), 101.0)
    database.change("UPDATE bars SET close = 'many' WHERE timeframe = 'H1'")
    assert bar_table.last_close(database, "BTCUSD", "H1", END) is None


def test_the_range_of_prices_is_of_bars_that_lie_wholly_within(database: Database) -> None:
    assert database.price_range("BTCUSD", NOON, END) is None
    database.store_bars(*BTC, frame([100.0, 150.0, 90.0, 200.0]))
    hours = pd.DataFrame(frame([70.0], NOON))
    database.store_bars("BTCUSD", "H1", hours)
    database.store_bars("EURUSD", "M15", frame([1.0]))

    def range_of(first: int, last: int) -> PriceRange | None:
        return database.price_range("BTCUSD", NOON + first * STEP, NOON + last * STEP)

    assert range_of(0, 2) == PriceRange(99.0, 151.0)
    assert range_of(1, 3) == PriceRange(89.0, 151.0)
    assert range_of(0, 4) == PriceRange(69.0, 201.0), "the hour has closed too"
    assert duration("H1") == 4 * STEP and range_of(2, 2) is None


def test_the_newest_bar_of_a_companion_wherever_it_is_stored(database: Database) -> None:
    instance = Instance(symbol="BTCUSD")

    def newest() -> datetime | None:
        return bar_table.newest_companion(database, instance, "Nas100", "M15")

    assert newest() is None
    database.store_bars("NAS100", "M15", frame([1.0]))
    assert newest() == NOON, "as `torra import` stores it"
    database.store_bars(instance.companion_stream("Nas100"), "M15", frame([1.0, 2.0]))
    assert newest() == NOON + STEP

"""Headlines and fundamentals are stored once, and known from the moment they were first seen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from instance_database import Database
from torra.evidence.news_digest import READ_ITEMS, NewsItem
from torra.store import news as news_table

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ITEM = NewsItem(
    "a1", "finnhub", "finnhub:forex", "Dollar slips", NOON - HOUR, NOON, -0.5, "macro",
    "A summary", "https://news.example/1", ("FOREX:USD",),
)  # fmt: skip


def test_an_item_comes_back_as_it_was_first_seen(database: Database) -> None:
    assert database.store_news([ITEM]) == 1
    assert database.news(since=NOON - HOUR, as_of=NOON) == [ITEM]
    later = replace(ITEM, first_seen=NOON + HOUR, headline="Dollar slips again")
    assert database.store_news([later, replace(ITEM, id="a2")]) == 1
    assert news_table.news_items(database, ["unknown", "a1"]) == [ITEM]


def test_nothing_first_seen_later_is_known(database: Database) -> None:
    rows = [replace(ITEM, id=str(n), first_seen=NOON + n * HOUR) for n in range(4)]
    database.store_news(rows)
    assert database.news(since=NOON - HOUR, as_of=NOON + HOUR) == rows[:2]
    assert database.news(since=NOON, as_of=NOON + HOUR) == rows[1:2]


def test_of_many_headlines_those_seen_last_are_read(database: Database) -> None:
    rows = [
        replace(ITEM, id=f"{n:05d}", first_seen=NOON - n // 3 * timedelta(seconds=1))
        for n in range(READ_ITEMS + 50)
    ]
    database.store_news(rows)
    found = database.news(since=NOON - 9 * HOUR, as_of=NOON)
    newest = sorted(rows, key=lambda row: (row.first_seen, row.id))[-READ_ITEMS:]
    assert found == newest


def test_fundamentals_are_those_known_then(database: Database) -> None:
    assert database.store_fundamentals("AAPL", {"pe": 30.0}, NOON)
    assert not database.store_fundamentals("AAPL", {"pe": 30.0}, NOON + HOUR)
    assert database.store_fundamentals("AAPL", {"pe": 31.0}, NOON + 2 * HOUR)
    assert database.fundamentals("AAPL", as_of=NOON - HOUR) == {}
    assert database.fundamentals("AAPL", as_of=NOON + HOUR) == {"pe": 30.0}
    assert database.fundamentals("AAPL", as_of=NOON + 3 * HOUR) == {"pe": 31.0}
    assert database.fundamentals("MSFT", as_of=NOON + 3 * HOUR) == {}


def test_old_headlines_are_pruned_by_the_moment_of_storing(tmp_path: Path) -> None:
    now = [NOON]
    database = Database.open(tmp_path / "torra.db", now=lambda: now[0])
    database.store_news([ITEM])
    now[0] += timedelta(days=100)
    database.store_news([replace(ITEM, id="a2")])
    assert news_table.prune_news(database, NOON + timedelta(days=10), limit=10) == 1
    assert [item.id for item in news_table.news_items(database, ["a1", "a2"])] == ["a2"]


def test_a_part_that_comes_alone_leaves_the_others_as_they_are(database: Database) -> None:
    store = database.store_fundamentals
    assert store("AAPL", {"pe": 30.0, "beta": 1.0}, NOON)
    assert store("AAPL", {"rating.buy": 3.0}, NOON, "rating"), "in the same second"
    assert not store("AAPL", {"rating.buy": 3.0}, NOON + timedelta(minutes=1), "rating")
    assert not store("AAPL", {"pe": 30.0, "beta": 1.0}, NOON + timedelta(minutes=2))
    assert store("AAPL", {"pe": 31.0}, NOON + timedelta(minutes=3))
    assert store("AAPL", {}, NOON + timedelta(minutes=4), "rating")
    assert news_table.figures_of(database, "AAPL") == [
        (NOON, {"beta": 1.0, "pe": 30.0}),
        (NOON + timedelta(seconds=1), {"beta": 1.0, "pe": 30.0, "rating.buy": 3.0}),
        (NOON + timedelta(minutes=3), {"pe": 31.0, "rating.buy": 3.0}),
        (NOON + timedelta(minutes=4), {"pe": 31.0}),
    ]

"""Finnhub's numbers of a company: by names of ours, known from first sight and never before.

Metrics, ratings, peers and earnings are snapshots of now. A refusal of one is that of one.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.features import ids_of
from instance_database import Database
from tests.conftest import Scale
from tests.doubles.finnhub_server import FinnhubServer, apple, quarter, rating
from tests.examples import examples
from tests.worlds.news_desks import APPLE, FINNHUB, NewsDesk
from tests.worlds.stores import NOON, open_database
from torra.evidence.news_digest import RATIOS, NewsStatus, NewsSubject
from torra.news import company_reading as reading
from torra.news.source import open_sources
from torra.store import news as news_table

DAY = 86_400.0
S = NewsStatus


@pytest.fixture
def server() -> Iterator[FinnhubServer]:
    with apple() as made:
        yield made


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = open_database(tmp_path)
    yield found
    found.close()


def desk_of(server: FinnhubServer, database: Database, *subjects: NewsSubject) -> NewsDesk:
    sources = open_sources(FINNHUB, server.environment, Path("/nowhere"))
    about = subjects or (APPLE,)
    return NewsDesk(sources.vendors, *about, store=database, settings=FINNHUB, step=1.2)


# --- what is asked, and what is stored ------------------------------------------------------------


def test_all_that_is_known_of_a_company_stands_under_its_ticker(
    server: FinnhubServer, database: Database
) -> None:
    found = desk_of(server, database).later(30).figures()
    assert {name: one for name, one in found.items() if "." not in name} == {
        "pe": 30.5, "pb": 45.0, "ps": 8.0, "roe_pct": 150.0, "beta": 1.2, "gross_margin_pct": 46.0,
        "market_cap_millions": 3.5e6, "debt_to_equity": 1.5,
    }  # fmt: skip
    assert {name: one for name, one in found.items() if name.startswith("rating.")} == {
        "rating.strong_buy": 13, "rating.buy": 24, "rating.hold": 7, "rating.sell": 1,
        "rating.strong_sell": 0, "rating.period": 20260201,
    }  # fmt: skip
    peers = {name: one for name, one in found.items() if name.startswith("peer.")}
    assert len(peers) == 8 and peers["peer.DELL"] == 1 and "peer.AAPL" not in peers
    assert [found[f"earnings.{place}.period"] for place in (1, 2, 3, 4)] == [
        20251231, 20250930, 20250630, 20250331,
    ]  # fmt: skip
    newest = [found[f"earnings.1.{name}"] for name in ("actual", "estimate", "surprise_pct")]
    assert newest == [2.84, 2.67, 6.4] and "earnings.5.actual" not in found


@pytest.mark.journey
def test_a_day_asks_each_at_its_pace_and_never_60_a_minute(
    server: FinnhubServer, database: Database
) -> None:
    desk = desk_of(server, database)
    moments: list[float] = []
    table = server._table
    server.play(lambda path, query: (moments.append(desk.seconds), table(path, query))[1])
    desk.later(120)
    assert max(sum(begin <= one < begin + 60.0 for one in moments) for begin in moments) <= 60
    server.asked.clear()
    desk.later(DAY / 12, step=30.0)
    assert 50 < Counter(server.topics())["company-news AAPL"] <= 61
    desk.later(DAY * 11 / 12, step=600.0).later(120)
    asked = Counter(server.topics())
    assert asked["metric AAPL"] in (3, 4)
    daily = ("recommendation AAPL", "peers AAPL", "earnings AAPL", "metric DELL", "metric STX")
    assert {asked[one] for one in daily} == {1} and asked["metric XRX"] == 0


def test_a_peer_that_is_a_symbol_of_the_desk_is_asked_for_once(
    server: FinnhubServer, database: Database
) -> None:
    dell = NewsSubject("DELL", "stock", ticker="DELL")
    desk = desk_of(server, database, APPLE, dell).later(40)
    topics = {state.topic for state in desk.collector.status()}
    assert "figures.DELL" in topics and "peer.DELL" not in topics and "peer.HPQ" in topics


@pytest.mark.journey
def test_who_is_no_peer_any_more_is_asked_no_more(
    server: FinnhubServer, database: Database
) -> None:
    desk = desk_of(server, database).later(30)
    server.peers["AAPL"] = ["AAPL", "HPQ", "XRX"]
    desk.later(DAY, step=examples(300, 1800)).later(60)
    known = [name for name in desk.figures() if name.startswith("peer.")]
    assert known == ["peer.HPQ", "peer.XRX"] and desk.figures("XRX")["pe"] == 18.0
    topics = [state.topic for state in desk.collector.status() if state.topic[:5] == "peer."]
    assert topics == ["peer.HPQ", "peer.XRX"]
    server.peers["AAPL"] = ["AAPL"]
    desk.later(DAY, step=examples(300, 1800)).later(60)
    assert not [name for name in desk.figures() if name.startswith("peer.")]


# --- first sight ----------------------------------------------------------------------------------


def test_today_s_peers_are_none_of_a_past_date(server: FinnhubServer, database: Database) -> None:
    """Nor its ratings and ratios: a replay of yesterday sees nothing of what was seen today."""
    desk = desk_of(server, database).later(30)
    for ticker in ("AAPL", "DELL"):
        seen = [moment for moment, _ in news_table.figures_of(database, ticker)]
        assert min(seen) > NOON
        assert database.fundamentals(ticker, as_of=NOON) == {}
        assert database.fundamentals(ticker, as_of=min(seen) - timedelta(seconds=1)) == {}
    assert desk.figures(days=1) == {} and desk.figures()
    view = desk.collector.latest(APPLE, NOON, FINNHUB)
    assert view.fundamentals == {}


def test_what_was_known_stays_known_at_every_moment(
    server: FinnhubServer, database: Database, scaled: Scale
) -> None:
    """25 cuts in each half day: whatever comes later, what a moment knew is the same."""
    desk, told = desk_of(server, database), {}
    chance = random.Random(3)
    halves = scaled(40, least=8)
    for number in range(halves):
        server.metrics["AAPL"]["peTTM"] = float(chance.randrange(50))
        server.ratings["AAPL"] = [rating("2026-02-01", buy=chance.randrange(9))]
        chance.shuffle(server.peers["AAPL"])
        desk.later(DAY / 2, step=DAY / (60 if scaled.whole else 24))
        for back in range(25):
            moment = desk.now() - timedelta(hours=chance.uniform(0, 12 * (number + 1)))
            told[moment] = database.fundamentals("AAPL", as_of=moment)
            del back
    assert len(told) == 25 * halves
    assert len({json.dumps(one) for one in told.values()}) > halves / 2
    for moment, known in told.items():
        assert database.fundamentals("AAPL", as_of=moment) == known


def test_beside_the_news_stand_ratios_and_what_is_made_of_the_rest(
    server: FinnhubServer, database: Database
) -> None:
    desk = desk_of(server, database).later(30)
    view = desk.view(after=0)
    assert view.fundamentals == {
        "pe": 30.5,
        "pb": 45.0,
        "pe_to_peers": pytest.approx(30.5 / 13.5),
        "analyst_rating": pytest.approx(0.5444444444),
        "earnings_surprise_pct": 6.4,
    }
    assert view.fundamentals_status is S.AVAILABLE
    assert {*RATIOS} <= {*reading.METRICS} and len(reading.METRICS) == 27
    assert {*(f"fundamentals.{name}" for name in RATIOS)} <= {*ids_of("fundamentals")}


# --- refusals and faults --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paid", "ticker", "statuses"),
    [
        ("recommendation peers", "AAPL", (S.EMPTY, S.AVAILABLE)),
        ("recommendation peers earnings company-news", "AAPL", (S.REFUSED, S.AVAILABLE)),
        ("company-news", "AAPL", (S.REFUSED, S.AVAILABLE)),
        ("metric", "X", (S.EMPTY, S.REFUSED)),
    ],
)
def test_a_paid_endpoint_is_a_refusal_of_that_topic_alone(
    server: FinnhubServer, database: Database, paid: str, ticker: str, statuses: Any
) -> None:
    server.paid = {*paid.split()}
    desk = desk_of(server, database, NewsSubject(ticker, "stock", ticker=ticker)).later(30)
    refused = {state.topic.partition(".")[0] for state in desk.collector.status()
               if state.status is S.REFUSED}  # fmt: skip
    names = {"recommendation": "ratings", "company-news": "company", "metric": "figures"}
    assert refused == {names.get(word, word) for word in server.paid}
    view = desk.view(after=0)
    assert (view.status, view.fundamentals_status) == statuses
    server.asked.clear()
    if "peers" in server.paid:
        desk.later(3500, step=60.0)
        assert Counter(server.topics())["peers AAPL"] == 0, "a refusal waits for an hour"


# --- what they say --------------------------------------------------------------------------------


def test_the_newest_ratings_count_wherever_they_stand_and_only_whole() -> None:
    rows = [rating("2026-01-01", buy=20), rating("2026-02-01", buy=5), rating("2025-12-01")]
    for order in (rows, rows[::-1]):
        assert reading.ratings(order).figures == {
            "rating.strong_buy": 13, "rating.buy": 5, "rating.hold": 7, "rating.sell": 1,
            "rating.strong_sell": 0, "rating.period": 20260201,
        }  # fmt: skip
    for odd in (None, True, "5", -1, 1001, float("nan"), 10**400):
        found = reading.ratings([rating("2026-02-01", sell=odd)])
        assert (found.status, found.figures) == (S.BROKEN, None), odd
    assert reading.ratings([]).status is S.EMPTY


def test_a_quarter_that_is_not_reported_yet_has_an_estimate_alone() -> None:
    found = reading.earnings([quarter("2026-03-31", None, 1.7, None), quarter("2025-12-31", 2, 1)])
    assert found.figures == {
        "earnings.1.estimate": 1.7, "earnings.1.period": 20260331, "earnings.2.actual": 2,
        "earnings.2.estimate": 1, "earnings.2.surprise_pct": 4.1, "earnings.2.period": 20251231,
    }  # fmt: skip
    assert reading.earnings([quarter("31.12.2025", 1, 1)]).status is S.BROKEN


def test_peers_are_other_tickers_each_once() -> None:
    found = reading.peers(["aapl", "MSFT", " msft ", "", 5, None, "A B", "<x>", "BRK.B"], "AAPL")
    assert found.figures == {"peer.MSFT": 1, "peer.BRK.B": 2}
    assert reading.peers(["AAPL"], "AAPL").status is S.EMPTY
    assert reading.peers([5, {}], "AAPL").status is S.BROKEN

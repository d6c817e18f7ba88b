"""When a source is asked, what a failure does, what a tick is told, and how it ends."""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from news_collector import (
    ALL_LATER,
    Collector,
)
from tests.cases import cases
from tests.conftest import Scale
from tests.doubles.news_server import NewsServer
from tests.tries import until
from tests.worlds.stores import Hand, open_database
from torra.collecting.asking import FETCH_SECONDS, LATE_PACES, MAX_ABANDONED, WAITS_S
from torra.config import NewsSettings
from torra.errors import StoreUnavailable
from torra.evidence.news_digest import NewsAnswer, NewsItem, NewsStatus, NewsSubject
from torra.news.lexicon import score
from torra.news.source import ALPHA_VANTAGE_SPACING_S, AlphaVantage, Finnhub, open_sources
from torra.providers.vendors.addresses import address

NOON = datetime(2026, 2, 13, 12, tzinfo=UTC)
GOLD = NewsSubject("XAUUSD", "gold")
APPLE = NewsSubject("AAPL", "stock", ticker="AAPL")
BOTH = NewsSettings()
ONE = NewsSettings(sources=("finnhub",))
S = NewsStatus
OK = NewsAnswer(S.EMPTY)


def news(name: str, hours: float = 1.0, **changes: Any) -> NewsItem:
    moment = NOON - timedelta(hours=hours)
    made = NewsItem(name, "finnhub", "finnhub:news", f"Gold rises {name}", moment, moment)
    return dataclasses.replace(made, **changes)


class Vendor:
    """A source that gives the answers of a list; the last one repeats."""

    def __init__(
        self, *answers: Any, topics: tuple[str, ...] = ("news",), spacing: float = 1.0
    ) -> None:
        self.answers = list(answers)
        self.spacing = spacing
        self.asked: list[str] = []
        self._topics = topics

    def topics(self, subject: NewsSubject) -> tuple[str, ...]:
        return self._topics

    def every(self, topic: str) -> float:
        return 120.0

    def fetch(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        self.asked.append(topic)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer


class Shelf:
    """The tables in memory; `broken` makes them fail."""

    def __init__(self) -> None:
        self.items: dict[str, NewsItem] = {}
        self.figures: dict[str, dict[str, float]] = {}
        self.broken: Exception | None = None

    def store_news(self, items: Any) -> int:
        if self.broken:
            raise self.broken
        return sum(self.items.setdefault(item.id, item) is item for item in items)

    def news(self, *, since: datetime, as_of: datetime) -> list[NewsItem]:
        if self.broken:
            raise self.broken
        return [item for item in self.items.values() if since < item.first_seen <= as_of]

    def store_fundamentals(
        self, ticker: str, figures: Any, first_seen: datetime, part: str = ""
    ) -> bool:
        self.figures[ticker] = dict(figures)
        return True

    def fundamentals(self, ticker: str, *, as_of: datetime) -> dict[str, float]:
        return self.figures.get(ticker, {})


class Desk:
    """A collector with clocks that are set by hand."""

    def __init__(self, store: Any = None, *, subject: NewsSubject = GOLD, **sources: Any) -> None:
        self.store = store or Shelf()
        self.now = Hand(NOON)
        self.seconds = 1000.0
        seconds, files = sources.pop("fetch_seconds", FETCH_SECONDS), sources.pop("files", None)
        scorer = sources.pop("scorer", score)
        self.collector = Collector(
            sources, files or {}, self.store, now=self.now, monotonic=lambda: self.seconds,
            score=scorer, fetch_seconds=seconds,
        )  # fmt: skip
        self.subject = subject
        self.collector.watch(subject)

    def later(self, seconds: float) -> Desk:
        self.seconds += seconds
        self.now.pass_by(seconds)
        self.collector.poll()
        return self

    def seen(self, settings: NewsSettings = ONE, after: float = 1.0):
        return self.collector.latest(self.subject, self.now() + timedelta(seconds=after), settings)


# --- when -----------------------------------------------------------------------------------------


def test_each_topic_is_asked_at_its_pace_and_the_source_not_too_fast() -> None:
    vendor = Vendor(OK, topics=("a", "b"), spacing=1.0)
    desk = Desk(finnhub=vendor)
    desk.later(0)
    assert vendor.asked == ["a"]
    desk.later(0.9)
    assert vendor.asked == ["a"]
    desk.later(0.2)
    assert vendor.asked == ["a", "b"]
    desk.later(118)
    assert len(vendor.asked) == 2
    desk.later(1)
    desk.later(2)
    assert vendor.asked == ["a", "b", "a", "b"]


def test_a_topic_that_two_subjects_share_is_asked_once() -> None:
    vendor = Vendor(OK)
    desk = Desk(finnhub=vendor)
    desk.collector.watch(NewsSubject("EURUSD", "fx"))
    desk.later(0).later(5)
    assert vendor.asked == ["news"] and len(desk.collector.status()) == 1


def test_alpha_vantage_is_asked_less_than_its_day_allows(scaled: Scale) -> None:
    vendor = Vendor(OK, topics=("a", "b", "c"), spacing=ALPHA_VANTAGE_SPACING_S)
    desk = Desk(alpha_vantage=vendor)
    for _ in range(24 * 12):
        desk.later(300)
    assert len(vendor.asked) <= 25
    assert {vendor.asked.count(topic) for topic in "abc"} == {8}


@pytest.mark.parametrize("status", sorted(WAITS_S))
def test_after_a_failure_the_next_question_waits_longer(status: NewsStatus) -> None:
    vendor = Vendor(NewsAnswer(status))
    desk = Desk(finnhub=vendor)
    first, longest = WAITS_S[status]
    wait = first
    desk.later(0)
    for count in range(1, 12):
        assert len(vendor.asked) == count
        desk.later(wait - 0.5)
        assert len(vendor.asked) == count, wait
        desk.later(0.5)
        wait = min(longest, wait * 2)
    vendor.answers = [OK]
    desk.later(wait)
    desk.later(120)
    assert desk.collector.status()[0].failures == 0
    vendor.answers = [NewsAnswer(status)]
    count = len(vendor.asked)
    desk.later(120)
    desk.later(first)
    assert len(vendor.asked) == count + 2


def test_a_rate_limit_rests_the_whole_source_and_a_refusal_one_topic() -> None:
    limited = Vendor(NewsAnswer(S.RATE_LIMITED), topics=("a", "b"))
    desk = Desk(finnhub=limited)
    desk.later(0).later(30)
    assert limited.asked == ["a"]
    assert {state.status for state in desk.collector.status()} == {S.RATE_LIMITED}
    refused = Vendor(NewsAnswer(S.REFUSED), OK, topics=("a", "b"))
    desk = Desk(finnhub=refused)
    desk.later(0).later(30)
    assert refused.asked == ["a", "b"]
    assert [state.status for state in desk.collector.status()] == [S.REFUSED, S.EMPTY]


# --- what is stored -------------------------------------------------------------------------------


def test_a_first_sight_is_rounded_up_and_stays(tmp_path: Path) -> None:
    store = open_database(tmp_path)
    desk = Desk(store, finnhub=Vendor(NewsAnswer(S.AVAILABLE, (news("1"),))))
    desk.now.pass_by(0.25)
    desk.later(0).later(500)
    (kept,) = store.news(since=NOON - timedelta(days=1), as_of=NOON + timedelta(days=1))
    assert kept.first_seen == NOON + timedelta(seconds=1)
    assert kept.score == 0.5 and kept.event == "other"
    assert desk.collector.latest(GOLD, NOON, ONE).unique == 0
    assert desk.collector.latest(GOLD, NOON + timedelta(seconds=1), ONE).unique == 1


def test_what_says_it_comes_from_the_future_is_refused_and_what_is_old_left() -> None:
    rows = (
        news("fits", -4.9 / 60),
        news("future", -6 / 60),
        news("old", 31 * 24),
    )
    desk = Desk(finnhub=Vendor(NewsAnswer(S.AVAILABLE, rows, dropped=2))).later(0)
    assert list(desk.store.items) == ["fits"]
    state = desk.collector.status()[0]
    assert (state.items, state.dropped, state.status) == (1, 3, S.AVAILABLE)
    desk = Desk(finnhub=Vendor(NewsAnswer(S.AVAILABLE, rows[1:]))).later(0)
    state = desk.collector.status()[0]
    assert state.status is S.EMPTY and state.detail == ALL_LATER
    assert desk.seen().status is S.EMPTY
    desk = Desk(finnhub=Vendor(NewsAnswer(S.AVAILABLE, rows[2:]))).later(0)
    assert desk.collector.status()[0].detail == "all items are older than 30 days"


@pytest.mark.parametrize(("said", "kept"), [(math.nan, 0.0), (math.inf, 0.0), (7, 1.0), (-7, -1.0)])
def test_whatever_the_scorer_says_can_be_stored(tmp_path: Path, said: float, kept: float) -> None:
    """A tick stores what it saw, in its own transaction."""
    store = open_database(tmp_path)
    source = Vendor(NewsAnswer(S.AVAILABLE, (news("1"),)))
    desk = Desk(store, scorer=lambda _: said, finnhub=source).later(0)
    assert desk.collector.status()[0].status is S.AVAILABLE
    assert desk.seen().items[0].item.score == kept


def test_a_store_that_fails_is_told_and_tried_again() -> None:
    desk = Desk(finnhub=Vendor(NewsAnswer(S.AVAILABLE, (news("1"),))))
    desk.store.broken = StoreUnavailable("locked")
    desk.later(0)
    assert desk.collector.status()[0].status is S.BROKEN
    assert desk.seen().status is S.BROKEN
    desk.store.broken = None
    desk.later(60)
    assert desk.seen().status is S.AVAILABLE


# --- what a tick is told --------------------------------------------------------------------------


@cases("status", [S.RATE_LIMITED, S.REFUSED, S.UNREACHABLE, S.BROKEN, S.EMPTY])
def test_without_items_the_last_answer_says_why(status: NewsStatus) -> None:
    desk = Desk(finnhub=Vendor(NewsAnswer(status)))
    assert desk.seen().status is S.NOT_YET
    desk.later(0)
    found = desk.seen()
    assert found.status is status and found.items == () and found.score is None


def test_items_that_count_outlive_a_dead_source() -> None:
    desk = Desk(finnhub=Vendor(NewsAnswer(S.AVAILABLE, (news("1"),)), NewsAnswer(S.UNREACHABLE)))
    desk.later(0).later(120)
    assert desk.seen().status is S.AVAILABLE
    assert desk.seen(after=86_400).status is S.UNREACHABLE


def test_one_source_that_works_is_enough() -> None:
    desk = Desk(finnhub=Vendor(NewsAnswer(S.REFUSED)), alpha_vantage=Vendor(OK)).later(0)
    assert desk.seen(BOTH).status is S.EMPTY
    assert desk.seen(ONE).status is S.REFUSED


def test_nobody_to_ask() -> None:
    desk = Desk()
    assert desk.seen().status is S.NO_KEY
    only_file = NewsSettings(sources=("file",), file="x")
    assert desk.seen(only_file).status is S.NO_FILE
    assert desk.collector.status() == ()


def test_news_of_a_source_that_the_settings_do_not_name_do_not_count() -> None:
    desk = Desk(finnhub=Vendor(NewsAnswer(S.AVAILABLE, (news("1"),)))).later(0)
    assert desk.seen(NewsSettings(sources=("alpha_vantage",))).unique == 0


def test_reading_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(finnhub=Vendor(OK))
    desk.store.broken = RuntimeError("https://host/?token=CANARY")
    assert desk.seen().status is S.BROKEN
    assert "CANARY" not in caplog.text and "RuntimeError" in caplog.text


def test_fundamentals_are_for_stocks() -> None:
    answer = NewsAnswer(S.AVAILABLE, figures={"pe": 20.0})
    vendor = Vendor(OK, answer, topics=("company.AAPL", "figures.AAPL"))
    desk = Desk(subject=APPLE, finnhub=vendor)
    assert desk.seen().fundamentals_status is S.NOT_YET
    desk.later(0).later(2)
    found = desk.seen()
    assert found.fundamentals == {"pe": 20.0} and found.fundamentals_status is S.AVAILABLE
    assert found.status is S.EMPTY
    assert Desk(finnhub=Vendor(OK)).seen().fundamentals_status is S.OFF
    assert Desk(subject=APPLE).seen().fundamentals_status is S.NO_KEY


def test_later_sights_never_change_an_earlier_view(tmp_path: Path) -> None:
    store = open_database(tmp_path)
    answers = [NewsAnswer(S.AVAILABLE, (news(str(n), 1 - n / 10),)) for n in range(8)]
    desk = Desk(store, finnhub=Vendor(*answers))
    views = []
    for _ in range(8):
        desk.later(120)
        views.append((desk.now(), desk.seen(after=0)))
    assert [view.unique for _, view in views] == list(range(1, 9))
    for moment, view in views:
        assert desk.collector.latest(GOLD, moment, ONE) == view


# --- slowness and the end -------------------------------------------------------------------------


def test_a_source_that_hangs_is_given_up_and_their_number_is_bounded() -> None:
    gate = threading.Event()

    def hang() -> NewsAnswer:
        gate.wait(30)
        return NewsAnswer(S.AVAILABLE, (news("late"),))

    vendor = Vendor(hang)
    desk = Desk(finnhub=vendor, fetch_seconds=0.02)
    for _ in range(MAX_ABANDONED + 3):
        desk.later(2000)
    assert len(vendor.asked) == MAX_ABANDONED
    assert desk.collector.status()[0].status is S.UNREACHABLE
    workers = list(desk.collector._abandoned["finnhub"])
    gate.set()
    for worker in workers:
        worker.join(5)
    assert desk.store.items == {}, "what comes late is not stored"
    vendor.answers = [OK]
    desk.later(4000)
    assert desk.collector.status()[0].status is S.EMPTY


def test_a_source_that_hangs_does_not_silence_another() -> None:
    gate = threading.Event()
    hangs, works = Vendor(lambda: gate.wait(30)), Vendor(OK)
    desk = Desk(fetch_seconds=0.02, alpha_vantage=hangs, finnhub=works)
    for _ in range(8):
        desk.later(2000)
    gate.set()
    assert len(works.asked) == 8 and len(hangs.asked) == MAX_ABANDONED
    assert {s.source: s.status for s in desk.collector.status()} == {
        "alpha_vantage": S.UNREACHABLE, "finnhub": S.EMPTY,
    }  # fmt: skip


def test_a_status_without_an_answer_grows_old() -> None:
    desk = Desk(finnhub=Vendor(OK)).later(0)
    desk.seconds += 120 + LATE_PACES * 120
    assert desk.seen().status is S.EMPTY
    desk.seconds += 1
    assert desk.seen().status is S.UNREACHABLE
    assert desk.collector.status()[0].detail == "no answer for a long time"
    desk.collector.poll()
    assert desk.seen().status is S.EMPTY


def test_turns_are_no_lateness() -> None:
    """Twelve topics of a source that is asked once an hour: half a day is their pace."""
    topics = tuple("abcdefghijkl")
    desk = Desk(finnhub=Vendor(OK, topics=topics, spacing=3600.0)).later(0)
    for _ in range(30):
        desk.later(3600)
        assert not {state.status for state in desk.collector.status()} - {S.EMPTY, S.NOT_YET}


def test_each_change_of_a_source_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    limited = NewsAnswer(S.RATE_LIMITED, detail="HTTP status 429")
    vendor = Vendor(OK, OK, limited, limited, limited, OK, topics=("a", "b"))
    desk = Desk(finnhub=vendor)
    caplog.set_level(logging.DEBUG, "news_collector")
    for _ in range(12):
        desk.later(1000)
    vendor.answers = [NewsAnswer(S.REFUSED), OK]
    for _ in range(12):
        desk.later(1000)
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert lines == [
        ("WARNING", "news of finnhub: rate_limited, HTTP status 429"),
        ("WARNING", "news of finnhub: empty"),
        ("WARNING", "news of finnhub, a: refused"),
        ("WARNING", "news of finnhub, a: empty"),
    ]
    assert len(vendor.asked) > 20


def test_what_a_source_raises_is_told_by_its_type_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    desk = Desk(finnhub=Vendor(OSError("https://host/?token=CANARY"))).later(0)
    state = desk.collector.status()[0]
    assert state.status is S.BROKEN and "OSError" in state.detail
    assert "CANARY" not in repr(state) + caplog.text


def running(vendor: Vendor, **how: Any) -> Collector:
    collector = Collector(
        {"finnhub": vendor}, {}, Shelf(), now=Hand(NOON), monotonic=time.monotonic, score=score,
        **how,
    )  # fmt: skip
    collector.watch(GOLD)
    collector.start()
    return collector


class Hasty(Vendor):
    """A source that may be asked all the time; `wrong` makes the collector itself stumble."""

    wrong = False

    def every(self, topic: str) -> float:
        if self.wrong:
            raise MemoryError("https://host/?token=CANARY")
        return 0.0


def test_the_thread_survives_whatever_happens(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("torra.collecting.asking.LONGEST_PAUSE_S", 0.05)
    vendor = Hasty(OK, spacing=0.0)
    collector = running(vendor)
    until(lambda: vendor.asked)
    vendor.wrong = True
    until(lambda: "stumbled" in caplog.text)
    vendor.wrong = False
    count = len(vendor.asked)
    until(lambda: len(vendor.asked) > count)
    collector.close()
    assert "CANARY" not in caplog.text and "MemoryError" in caplog.text


def test_a_machine_without_threads_is_a_source_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    desk = Desk(finnhub=Vendor(OK))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_more)
        desk.later(0)
        desk.collector.start()
    assert desk.seen().status is S.UNREACHABLE
    assert desk.later(30).seen().status is S.EMPTY
    desk.collector.start()
    assert desk.collector._threads
    desk.collector.close()


def test_a_collector_that_rests_asks_nobody_and_can_be_woken() -> None:
    vendor = Hasty(NewsAnswer(S.AVAILABLE, (news("1"),)), spacing=0.0)
    collector = running(vendor)
    until(lambda: collector.latest(GOLD, NOON, ONE).unique)
    threads = list(collector._threads)
    collector.rest()
    for thread in threads:
        thread.join(5)
    assert not any(thread.is_alive() for thread in threads)
    count = len(vendor.asked)
    collector.rest()
    assert collector.latest(GOLD, NOON, ONE).unique == 1
    assert len(vendor.asked) == count
    collector.start()
    collector.start()
    assert len(collector._threads) == 1
    until(lambda: len(vendor.asked) > count)
    collector.close()
    collector.start()
    assert not any(thread.is_alive() for thread in collector._threads)


@pytest.mark.parametrize("end", [Collector.rest, Collector.close])
def test_a_rest_and_an_end_give_up_what_is_under_way(end: Callable[[Collector], None]) -> None:
    gate = threading.Event()
    vendor = Vendor(lambda: gate.wait(30) and NewsAnswer(S.AVAILABLE, (news("late"),)))
    collector = running(vendor)
    until(lambda: vendor.asked)
    threads, began = list(collector._threads), time.monotonic()
    end(collector)
    threads[0].join(5)
    assert not threads[0].is_alive() and time.monotonic() - began < 2.0
    (asker,) = collector._abandoned["finnhub"]
    gate.set()
    asker.join(5)
    assert cast(Any, collector._store).items == {}
    collector.close()


# --- who is asked, and where ----------------------------------------------------------------------


def test_a_vendor_without_a_key_is_left_out(tmp_path: Path) -> None:
    sources = open_sources(BOTH, {"FINNHUB_API_KEY": "k" * 20}, tmp_path)
    assert list(sources.vendors) == ["finnhub"]
    assert [*sources.described()] == [
        ("finnhub can be asked", "ok", ""),
        ("alpha_vantage has no key and is not asked", "ok", "set ALPHAVANTAGE_API_KEY"),
    ]
    nobody = open_sources(BOTH, {}, tmp_path)
    assert {level for _, level, _ in nobody.described()} == {"warning"}
    one = NewsSettings(sources=("alpha_vantage",))
    assert not open_sources(one, {"FINNHUB_API_KEY": "k" * 20}, tmp_path).vendors


TOPICS = """
XAUUSD gold                | forex general | theme.economy_monetary
EURUSD fx EUR USD          | forex general | FOREX:EUR
USDJPY fx USD JPY          | forex general | FOREX:JPY
BTCUSD crypto              | crypto        | CRYPTO:BTC
WTI oil                    | general       | theme.energy_transportation
US500 index                | general       | theme.financial_markets
X other                    | general       | theme.financial_markets
AAPL stock.AAPL | company.AAPL figures.AAPL ratings.AAPL peers.AAPL earnings.AAPL | company.AAPL
S stock                    | general       | theme.financial_markets
"""
"""Symbol, asset, ticker and currencies; the topics of Finnhub; those of Alpha Vantage."""


@cases("line", TOPICS.strip().split("\n"))
def test_what_is_asked_about_a_subject(line: str) -> None:
    about, *topics = (part.split() for part in line.split("|"))
    asset, _, ticker = about[1].partition(".")
    subject = NewsSubject(about[0], asset, ticker, tuple(about[2:]))
    place = address("finnhub", {"FINNHUB_API_KEY": "k" * 20})
    assert [[*kind(place).topics(subject)] for kind in (Finnhub, AlphaVantage)] == topics


def test_the_questions_are_the_vendors(tmp_path: Path) -> None:
    with NewsServer() as server:
        variables = ("TORRA_FINNHUB_BASE_URL", "TORRA_ALPHAVANTAGE_BASE_URL")
        sources = open_sources(BOTH, dict.fromkeys(variables, server.url), tmp_path)
        finnhub, alpha = sources.vendors["finnhub"], sources.vendors["alpha_vantage"]
        for topic in ("forex", "company.AAPL", "figures.AAPL"):
            finnhub.fetch(topic, NOON, 5.0)
        for topic in ("company.AAPL", "theme.economy_monetary"):
            alpha.fetch(topic, NOON, 5.0)
        paths = [path.replace("//", "/") for path, _ in server.asked]
        assert paths == [
            "/api/v1/news", "/api/v1/company-news", "/api/v1/stock/metric",
            "/api/v1/query", "/api/v1/query",
        ]  # fmt: skip
        queries = [query for _, query in server.asked]
        assert queries[0]["category"] == "forex"
        assert (queries[1]["symbol"], queries[1]["from"], queries[1]["to"]) == (
            "AAPL", "2026-02-10", "2026-02-13",
        )  # fmt: skip
        assert queries[3]["tickers"] == "AAPL" and queries[3]["function"] == "NEWS_SENTIMENT"
        assert queries[4]["topics"] == "economy_monetary" and queries[4]["sort"] == "LATEST"

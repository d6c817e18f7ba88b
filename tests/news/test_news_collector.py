"""When a source is asked, what a failure does, what a tick is told, and how it ends."""

from __future__ import annotations

import logging
import math
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from news_collector import (
    ALL_LATER,
    Collector,
)
from tests.cases import cases
from tests.doubles.news_server import NewsServer
from tests.tries import until
from tests.worlds.news_desks import APPLE, FINNHUB, GOLD, NewsDesk, ScriptedSource
from tests.worlds.stores import NOON, open_database
from torra.collecting.asking import LATE_PACES, MAX_ABANDONED, WAITS_S, TopicState
from torra.config import NewsSettings
from torra.errors import StoreUnavailable
from torra.evidence.news_digest import NewsAnswer, NewsItem, NewsStatus, NewsSubject
from torra.news.source import ALPHA_VANTAGE_SPACING_S, AlphaVantage, Finnhub, open_sources
from torra.providers.vendors.addresses import address

BOTH = NewsSettings()
S = NewsStatus
OK = NewsAnswer(S.EMPTY)


def news(name: str, hours: float = 1.0) -> NewsItem:
    moment = NOON - timedelta(hours=hours)
    return NewsItem(name, "finnhub", "finnhub:news", f"Gold rises {name}", moment, moment)


def some(*items: NewsItem) -> NewsAnswer:
    return NewsAnswer(S.AVAILABLE, items)


def desk_of(*answers: Any, **how: Any) -> tuple[NewsDesk, ScriptedSource]:
    """Return a desk of one source, and the source."""
    kept = {name: how.pop(name) for name in ("topics", "spacing") if name in how}
    source = ScriptedSource(*answers, **kept)
    return NewsDesk({"finnhub": source}, **how), source


def state_of(desk: NewsDesk) -> TopicState:
    return desk.collector.status()[0]


# --- when -----------------------------------------------------------------------------------------


def test_each_topic_is_asked_at_its_pace_and_the_source_not_too_fast() -> None:
    desk, source = desk_of(OK, topics=("a", "b"))
    for wait, topics in ((0, "a"), (0.9, "a"), (0.2, "ab"), (118, "ab"), (1, "aba"), (2, "abab")):
        desk.later(wait)
        assert source.questions == [*topics]


def test_a_topic_that_two_subjects_share_is_asked_once() -> None:
    source = ScriptedSource(OK)
    desk = NewsDesk({"finnhub": source}, GOLD, NewsSubject("EURUSD", "fx"))
    desk.later(0).later(5)
    assert source.questions == ["news"] and len(desk.collector.status()) == 1


def test_alpha_vantage_is_asked_less_than_its_day_allows() -> None:
    desk, source = desk_of(OK, topics=("a", "b", "c"), spacing=ALPHA_VANTAGE_SPACING_S)
    desk.later(86_400, step=300)
    assert len(source.questions) <= 25
    assert {source.questions.count(topic) for topic in "abc"} == {8}


@pytest.mark.parametrize("status", sorted(WAITS_S))
def test_after_a_failure_the_next_question_waits_longer(status: NewsStatus) -> None:
    desk, source = desk_of(NewsAnswer(status))
    first, longest = WAITS_S[status]
    wait = first
    desk.later(0)
    for count in range(1, 12):
        assert len(source.questions) == count
        desk.later(wait - 0.5, step=(wait - 0.5) / 64)
        assert len(source.questions) == count, wait
        desk.later(0.5)
        wait = min(longest, wait * 2)
    source.answers = [OK]
    desk.later(wait).later(120)
    assert state_of(desk).failures == 0
    source.answers, count = [NewsAnswer(status)], len(source.questions)
    desk.later(120).later(first)
    assert len(source.questions) == count + 2


@cases(
    ("status", "topics", "statuses"),
    [(S.RATE_LIMITED, "a", {S.RATE_LIMITED}), (S.REFUSED, "ab", {S.REFUSED, S.EMPTY})],
)
def test_a_rate_limit_rests_the_whole_source_and_a_refusal_one_topic(
    status: NewsStatus, topics: str, statuses: set[NewsStatus]
) -> None:
    desk, source = desk_of(NewsAnswer(status), OK, topics=("a", "b"))
    desk.later(0).later(30)
    assert source.questions == [*topics]
    assert {state.status for state in desk.collector.status()} == statuses


# --- what is stored, and what a tick is told ------------------------------------------------------


@cases(
    ("hours", "detail"),
    [((-6 / 60, 31 * 24), ALL_LATER), ((31 * 24,), "all items are older than 30 days")],
)
def test_items_that_are_later_or_old_are_no_news(hours: tuple[float, ...], detail: str) -> None:
    desk, _ = desk_of(some(*(news(str(hour), hour) for hour in hours)))
    assert desk.later(0).view().status is S.EMPTY
    assert (state_of(desk).status, state_of(desk).detail) == (S.EMPTY, detail)
    assert not desk.store.items


def test_whatever_the_scorer_says_can_be_stored(tmp_path: Path) -> None:
    """A tick stores what it saw, in its own transaction."""
    desk, _ = desk_of(some(news("1")), store=open_database(tmp_path), scorer=lambda _: math.nan)
    assert desk.later(0).view().items[0].item.score == 0.0
    assert state_of(desk).status is S.AVAILABLE


def test_a_store_that_fails_is_told_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    desk, _ = desk_of(some(news("1")))
    desk.store.broken = StoreUnavailable("https://host/?token=CANARY")
    assert desk.later(0).view().status is state_of(desk).status is S.BROKEN
    assert "CANARY" not in caplog.text and "StoreUnavailable" in caplog.text
    desk.store.broken = None
    assert desk.later(60).view().status is S.AVAILABLE


@cases("status", [S.RATE_LIMITED, S.REFUSED, S.UNREACHABLE, S.BROKEN, S.EMPTY])
def test_without_items_the_last_answer_says_why(status: NewsStatus) -> None:
    desk, source = desk_of(NewsAnswer(status))
    assert desk.view().status is S.NOT_YET
    view = desk.later(0).view()
    assert view.status is status and view.items == () and view.score is None
    source.answers = [some(news("1")), NewsAnswer(status)]
    desk.later(3600).later(3600)
    assert desk.view().status is S.AVAILABLE, "items that count outlive a dead source"
    assert desk.view(after=86_400).status is status


def test_the_settings_say_which_sources_count() -> None:
    refused, works = ScriptedSource(NewsAnswer(S.REFUSED)), ScriptedSource(some(news("1")))
    desk = NewsDesk({"alpha_vantage": refused, "finnhub": works}).later(0)
    for sources, status, count in (
        (("finnhub",), S.AVAILABLE, 1), (("alpha_vantage",), S.REFUSED, 0),
        (("alpha_vantage", "finnhub"), S.AVAILABLE, 1),
    ):  # fmt: skip
        view = desk.view(NewsSettings(sources=sources))
        assert (view.status, view.unique) == (status, count)
    later = desk.view(BOTH, after=86_400)
    assert later.status is S.EMPTY, "one that works is enough"


def test_nobody_to_ask() -> None:
    desk = NewsDesk()
    assert desk.view().status is S.NO_KEY
    assert desk.view(NewsSettings(sources=("file",), file="x")).status is S.NO_FILE
    assert desk.collector.status() == ()


def test_fundamentals_are_for_stocks() -> None:
    figures = NewsAnswer(S.AVAILABLE, figures={"pe": 20.0})
    source = ScriptedSource(OK, figures, topics=("company.AAPL", "figures.AAPL"))
    desk = NewsDesk({"finnhub": source}, APPLE)
    assert desk.view().fundamentals_status is S.NOT_YET
    view = desk.later(0).later(2).view()
    assert view.fundamentals == {"pe": 20.0} and view.fundamentals_status is S.AVAILABLE
    assert view.status is S.EMPTY
    assert NewsDesk({"finnhub": source}).view().fundamentals_status is S.OFF
    assert NewsDesk({}, APPLE).view().fundamentals_status is S.NO_KEY


def test_later_sights_never_change_an_earlier_view(tmp_path: Path) -> None:
    """A first sight is rounded up to a second, and stays."""
    store = open_database(tmp_path)
    desk, _ = desk_of(*(some(news(str(n), 1 - n / 10)) for n in range(8)), store=store)
    desk.now.pass_by(0.25)
    views = []
    for count in range(8):
        desk.later(120)
        assert desk.view(after=0).unique == count
        views.append((desk.now() + timedelta(seconds=1), desk.view()))
    assert [view.unique for _, view in views] == list(range(1, 9))
    for moment, view in views:
        assert desk.collector.latest(GOLD, moment, FINNHUB) == view


# --- slowness and the end -------------------------------------------------------------------------


def test_a_source_that_hangs_is_given_up_and_their_number_is_bounded() -> None:
    gate = threading.Event()
    hangs = ScriptedSource(lambda: gate.wait(30) and some(news("late")))
    works = ScriptedSource(OK)
    desk = NewsDesk({"alpha_vantage": hangs, "finnhub": works}, fetch_seconds=0.02)
    for _ in range(MAX_ABANDONED + 3):
        desk.later(2000)
    assert len(hangs.questions) == MAX_ABANDONED
    assert len(works.questions) == MAX_ABANDONED + 3, "it silences no other"
    statuses = [state.status for state in desk.collector.status()]
    assert statuses == [S.UNREACHABLE, S.EMPTY]
    workers = [*desk.collector._abandoned["alpha_vantage"]]
    gate.set()
    for worker in workers:
        worker.join(5)
    assert desk.store.items == {}, "what comes late is not stored"
    hangs.answers = [OK]
    assert state_of(desk.later(4000)).status is S.EMPTY


def test_a_status_without_an_answer_grows_old() -> None:
    desk, _ = desk_of(OK)
    desk.later(0)
    desk.seconds += 120 + LATE_PACES * 120
    assert desk.view().status is S.EMPTY
    desk.seconds += 1
    assert desk.view().status is S.UNREACHABLE
    assert state_of(desk).detail == "no answer for a long time"
    assert desk.later(0).view().status is S.EMPTY


def test_turns_are_no_lateness() -> None:
    """Twelve topics of a source that is asked once an hour: half a day is their pace."""
    desk, _ = desk_of(OK, topics=tuple("abcdefghijkl"), spacing=3600.0)
    for _ in range(30):
        desk.later(3600)
        assert not {state.status for state in desk.collector.status()} - {S.EMPTY, S.NOT_YET}


def test_each_change_of_a_source_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    limited = NewsAnswer(S.RATE_LIMITED, detail="HTTP status 429")
    desk, source = desk_of(OK, OK, limited, limited, limited, OK, topics=("a", "b"))
    caplog.set_level(logging.DEBUG, "news_collector")
    desk.later(12_000, step=1000)
    source.answers = [NewsAnswer(S.REFUSED), OK]
    desk.later(12_000, step=1000)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "news of finnhub: rate_limited, HTTP status 429"),
        ("WARNING", "news of finnhub: empty"),
        ("WARNING", "news of finnhub, a: refused"),
        ("WARNING", "news of finnhub, a: empty"),
    ]
    assert len(source.questions) > 20


def test_what_a_source_raises_is_told_by_its_type_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    desk, _ = desk_of(OSError("https://host/?token=CANARY"))
    state = state_of(desk.later(0))
    assert state.status is S.BROKEN and "OSError" in state.detail
    assert "CANARY" not in repr(state) + caplog.text


def running(source: ScriptedSource) -> Collector:
    collector = NewsDesk({"finnhub": source}, monotonic=time.monotonic).collector
    collector.start()
    return collector


class Hasty(ScriptedSource):
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
    source = Hasty(OK, spacing=0.0)
    collector = running(source)
    until(lambda: source.questions)
    source.wrong = True
    until(lambda: "MemoryError" in caplog.text)
    source.wrong, count = False, len(source.questions)
    until(lambda: len(source.questions) > count)
    collector.close()
    assert "CANARY" not in caplog.text and "MemoryError" in caplog.text


def test_a_machine_without_threads_is_a_source_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    desk, _ = desk_of(OK)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_more)
        desk.later(0).collector.start()
    assert desk.view().status is S.UNREACHABLE
    assert desk.later(30).view().status is S.EMPTY
    desk.collector.start()
    assert desk.collector.running
    desk.collector.close()


def test_an_end_gives_up_what_is_under_way() -> None:
    gate = threading.Event()
    source = ScriptedSource(lambda: gate.wait(30) and some(news("late")))
    collector = running(source)
    until(lambda: source.questions)
    collector.close()
    assert collector._thread is not None
    collector._thread.join(15)
    assert not collector._thread.is_alive()
    (asker,) = collector._abandoned["finnhub"]
    gate.set()
    asker.join(5)
    assert cast(Any, collector._store).items == {}


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

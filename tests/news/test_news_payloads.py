"""News payloads, good and broken, of both vendors, from a loopback server through the real client.

What is put into a payload is known, so it is known what must come out: exactly these items, this
status, this many dropped. Nothing is raised, the deadline is kept, and the key is in no log, no
item, no status.
"""

from __future__ import annotations

import gzip
import html
import json
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.conftest import Scale
from tests.doubles.news_server import FAULTS, SLOW, NewsServer, Said
from tests.worlds.news_desks import APPLE, GOLD, NewsDesk
from torra.config import NewsSettings
from torra.evidence.news_digest import RATIOS, NewsStatus, NewsSubject
from torra.news.company_reading import METRICS
from torra.news.reading import listed, of_finnhub
from torra.news.source import open_sources

CANARY = "CANARY-7f3a/9c+1d=5e"
START = datetime(2026, 2, 13, 12, 0, 0, 250_000, tzinfo=UTC)
SOON, PATIENT = 0.4, 8.0
"""Seconds that a slow vendor is given here, and any other."""

VENDORS = {"finnhub": ("FINNHUB", "token"), "alpha_vantage": ("ALPHAVANTAGE", "apikey")}
"""The name of a vendor's variables, and of the key in a request."""

COIN = NewsSubject("BTCUSD", "crypto")
EURO = NewsSubject("EURUSD", "fx", currencies=("EUR", "USD"))
S = NewsStatus

Item = tuple[str, datetime, str, str, tuple[str, ...]]
"""Headline, time, URL, summary and tickers, as they are to be stored."""

Row = tuple[Any, Item | None, str]
"""A row of a reply, the item that comes of it, and its kind: good, broken, later or old."""


# --- rows -----------------------------------------------------------------------------------------

HEADLINES = [
    ("Gold rises", "Gold rises"), ("Gold\t\x00\nrises", "Gold rises"),
    ("\u202e Gold rises\u200b\ufeff  ", "Gold rises"), ("Gold\u2028rises\ud800", "Gold rises"),
    ("x" * 100_000, "x" * 300),
]  # fmt: skip
SUMMARIES: list[tuple[Any, str]] = [
    ("Some words", "Some words"), ("", ""), ("Ünï · 金 €", "Ünï · 金 €"), (None, ""), (7, ""),
    (["x"], ""), ("y" * 100_000, "y" * 500),
]  # fmt: skip
URLS: list[Any] = [
    "https://example.org/{}?a=1#b", "", None, 3, "javascript:alert(1)", "https://u:p@a.b/c",
    f"https://example.org/{'z' * 500}",
]  # fmt: skip
TICKERS: list[tuple[str, ...]] = [(), ("AAPL",), ("AAPL", "MSFT")]
NO_ROWS: list[Any] = [None, 5, "text", [], {}, [[]], True, 1.5]
NO_HEADLINES = [None, 5, [], {}, "", " ", "\u200b\x07", "...", True]
NO_TIMES: dict[str, list[Any]] = {
    "finnhub": [None, "12", True, -1, 0, 1e20, float("nan"), float("inf"), 10**400,
                1_770_000_000_000, [], {}],
    "alpha_vantage": [None, 20260213, "", "yesterday", "20261399T000000", "19991231T235959",
                      "21000101T000000", "2026-02-13T12:00:00", "20260213T120000Z", "20260213T12",
                      "20260213T1", []],
}  # fmt: skip


def vendor_row(
    vendor: str, title: Any, when: Any, tickers: tuple[str, ...] = (), **rest: Any
) -> Any:
    """Return a row as its vendor writes it."""
    if vendor == "finnhub":
        stamp = int(when.timestamp()) if isinstance(when, datetime) else when
        return {"category": "x", "id": 1, "image": None, "source": "Somebody", "headline": title,
                "datetime": stamp, "related": ",".join(tickers), **rest}  # fmt: skip
    stamp = when.strftime("%Y%m%dT%H%M%S") if isinstance(when, datetime) else when
    sentiments = [{"ticker": ticker, "ticker_sentiment_score": "0.1"} for ticker in tickers]
    return {"title": title, "time_published": stamp, "overall_sentiment_score": "x",
            "ticker_sentiment": sentiments, **rest}  # fmt: skip


def payload(vendor: str, rows: list[Any]) -> bytes:
    whole = rows if vendor == "finnhub" else {"items": str(len(rows)), "feed": rows}
    return json.dumps(whole).encode()


def good_rows(vendor: str) -> Iterator[Row]:
    """Yield rows that can be read, each of its own."""
    kinds = zip(cycle(HEADLINES), cycle(SUMMARIES), cycle(URLS), cycle(TICKERS), strict=False)
    for number, ((text, title), (words, summary), link, tickers) in enumerate(kinds):
        when = (START - timedelta(minutes=7 * number)).replace(microsecond=0)
        url = link.format(number) if isinstance(link, str) else link
        row = vendor_row(vendor, f"{number} {text}", when, tickers, summary=words, url=url)
        item = f"{number} {title}"[:300], when, url if link is URLS[0] else "", summary, tickers
        yield row, item, "good"


def all_rows(vendor: str) -> list[Row]:
    """Return rows of all kinds: good ones, broken ones, of the future and too old."""
    broken = [
        *NO_ROWS, *(vendor_row(vendor, title, START) for title in NO_HEADLINES),
        *(vendor_row(vendor, "Gold", when) for when in NO_TIMES[vendor]),
    ]  # fmt: skip
    return [
        *islice(good_rows(vendor), len(broken)),
        *((row, None, "broken") for row in broken),
        (vendor_row(vendor, "Gold", START + timedelta(minutes=6)), None, "later"),
        (vendor_row(vendor, "Gold", START - timedelta(days=31)), None, "old"),
    ]


# --- a desk asks once -----------------------------------------------------------------------------


class Exchange:
    """A server that is asked by a desk of its own for each reply, and all that the desks told."""

    def __init__(self, server: NewsServer) -> None:
        self.server = server
        self.key = CANARY
        self.statements: list[str] = []

    def desk(self, vendor: str, reply: Said, subject: NewsSubject = GOLD) -> NewsDesk:
        variable, _ = VENDORS[vendor]
        environment = {
            f"TORRA_{variable}_BASE_URL": self.server.play(reply).url,
            f"TORRA_{variable}_CUSTOM_KEY": self.key,
        }
        settings = NewsSettings(sources=(vendor,))
        sources = open_sources(settings, environment, Path("/nowhere"))
        seconds = SOON if reply.how in {*SLOW, "drip"} else PATIENT
        return NewsDesk(sources.vendors, subject, fetch_seconds=seconds, now=START)

    def ask(self, vendor: str, reply: Said, subject: NewsSubject = GOLD) -> Any:
        """Ask once; return the status, how many rows were dropped, and the items."""
        desk, began = self.desk(vendor, reply, subject), time.monotonic()
        desk.collector.turn()
        assert time.monotonic() - began < desk.collector._fetch_seconds + 1.5
        ((path, query),) = self.server.asked
        assert query[VENDORS[vendor][1]] == self.key and path.startswith("/api/v1/")
        stored = desk.store.items.values()
        self.statements.append(f"{desk.collector.status()!r} {stored!r}")
        state = next(state for state in desk.collector.status() if state.polled_at is not None)
        assert state.items == len(stored)
        for item in stored:
            assert item.first_seen == START.replace(second=1, microsecond=0)
            assert item.topic == f"{vendor}:{state.topic}" and -1 <= item.score <= 1
        items = {(item.headline, item.published, item.url, item.summary, item.tickers)
                 for item in stored}  # fmt: skip
        return state.status, state.dropped, items


@pytest.fixture
def exchange(caplog: pytest.LogCaptureFixture) -> Iterator[Exchange]:
    """Yield what asks; afterwards the key, plain or quoted, must be nowhere."""
    for name in (None, "urllib3", "requests", "urllib3.connectionpool"):
        caplog.set_level(logging.DEBUG, name)
    with NewsServer() as server:
        exchange = Exchange(server)
        yield exchange
    records = [*caplog.get_records("call")]
    assert "urllib3.connectionpool" in {record.name for record in records}
    logged = [f"{line.getMessage()} {line.args!r} {line.exc_text}" for line in records]
    for text in (*exchange.statements, *logged):
        for form in (CANARY, "CANARY", "canary", quote(CANARY, safe="")[-8:]):
            assert form not in text


def test_of_any_mix_of_rows_the_right_items_are_stored(exchange: Exchange, scaled: Scale) -> None:
    for case in range(scaled(1000, 30)):
        chance = random.Random(case)
        vendor = chance.choice([*VENDORS])
        mixed = chance.sample(all_rows(vendor), chance.choice((0, 1, 2, 5, 50)))
        items = {item for _, item, _ in mixed if item is not None}
        kinds = Counter(kind for _, _, kind in mixed)
        status = S.BROKEN if mixed and kinds["broken"] == len(mixed) else S.EMPTY
        reply = Said(payload(vendor, [row for row, _, _ in mixed]))
        answer = exchange.ask(vendor, reply, chance.choice((GOLD, COIN, EURO, APPLE)))
        dropped = kinds["broken"] + kinds["later"]
        assert answer == (S.AVAILABLE if items else status, dropped, items), case


# --- replies --------------------------------------------------------------------------------------

SHAPES: list[Any] = [
    None, 5, "text", True, float("nan"), {}, {"feed": None}, {"feed": {}}, {"feed": "x"},
    {"items": []}, {"data": [1]},
]  # fmt: skip
LIMIT = f"We have detected your API key as {CANARY} and our rate limit is 25 requests per day."
NOTES = {
    "finnhub": [{"error": f"API limit reached by {CANARY}. Please try again later."}],
    "alpha_vantage": [{"Note": LIMIT}, {"Information": LIMIT}],
}


def replies(vendor: str, row: Any) -> Iterator[tuple[Said, NewsStatus, int]]:
    """Yield replies that hold one row or none, their status and the count of items."""
    body = payload(vendor, [row])
    utf_16 = body.decode().encode("utf-16")
    yield Said(gzip.compress(body), headers={"content-encoding": "gzip"}), S.AVAILABLE, 1
    # What the header says counts; JSON in another encoding than it says cannot be read.
    declared = {"content-type": "application/json; charset=utf-16"}
    yield Said(utf_16, headers=declared), S.AVAILABLE, 1
    yield Said(utf_16), S.BROKEN, 0
    yield Said(b"\xef\xbb\xbf" + body), S.BROKEN, 0
    yield Said(body.replace(b"Gold", b"G\xffold")), S.AVAILABLE, 1
    yield Said(payload(vendor, [row] * 199 + [None, row])), S.AVAILABLE, 1
    yield Said(payload(vendor, [None] * 200 + [row])), S.BROKEN, 0
    for how in ("short", "midway", "drip"):
        yield Said(payload(vendor, [row] * 3), how=how), S.UNREACHABLE, 0
    for shape in SHAPES:
        yield Said(json.dumps(shape).encode()), S.BROKEN, 0
    for note in NOTES[vendor]:
        yield Said(json.dumps(note).encode()), S.RATE_LIMITED, 0
    for reply, status in FAULTS.values():
        yield reply, status, 0


@pytest.mark.parametrize("vendor", VENDORS)
def test_each_reply_has_its_status(exchange: Exchange, vendor: str) -> None:
    for reply, status, kept in replies(vendor, vendor_row(vendor, "Gold", START)):
        answer = exchange.ask(vendor, reply)
        assert (answer[0], len(answer[2])) == (status, kept), (reply.how, reply.body[:80])


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_redirect_is_not_followed(exchange: Exchange, vendor: str) -> None:
    """No other host is asked, nor this one twice."""
    with NewsServer() as elsewhere:
        for url in (elsewhere.url, exchange.server.url):
            reply = Said(b"", code=302, headers={"location": f"{url}/?k={CANARY}"})
            assert exchange.ask(vendor, reply) == (S.BROKEN, 0, set())
        assert elsewhere.asked == []


# --- the key --------------------------------------------------------------------------------------

SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    lambda key: key.replace("/", "\\/"),
    quote,
    lambda key: quote(key, safe=""),
    lambda key: quote(quote(key, safe=""), safe=""),
    lambda key: quote(key, safe="").lower(),
    html.escape,
    lambda key: "".join(f"&#{ord(sign)};" for sign in key),
    lambda key: "".join(f"\\u{ord(sign):04x}" for sign in key),
    lambda key: "".join(f"%{ord(sign):02X}" for sign in key),
    "\u200b".join,
    str.upper,
)
"""How a reply may quote a key, as the headline is before it is written as JSON."""


@pytest.mark.parametrize("key", [CANARY, "aB&<3'\"x.*[z)", "0123456789abcdef"])
def test_a_key_in_a_headline_is_struck_out_however_it_is_spelt(
    exchange: Exchange, key: str
) -> None:
    exchange.key = key
    for vendor, spelt in product(VENDORS, SPELLINGS):
        body = payload(vendor, [vendor_row(vendor, f"{spelt(key)} rises", START)])
        for quoted in (body, body.replace(b"/", rb"\/")):
            _, _, ((headline, *_),) = exchange.ask(vendor, Said(quoted))
            assert headline == "[key] rises"


# --- one item and figures -------------------------------------------------------------------------


def test_a_headline_without_a_link_is_known_by_its_day() -> None:
    """Some come again: with a link, or on the same day, it is the same item."""

    def items(*hours: float, url: str = "") -> Any:
        stamps = [(START + timedelta(hours=hour)).timestamp() for hour in hours]
        rows = [{"headline": "Gold steady", "url": url, "datetime": stamp} for stamp in stamps]
        return listed(rows, rows, lambda row: of_finnhub(row, "forex")).items

    link = "https://example.org/1"
    assert len(items(0, -5)) == len(items(0, 24, url=link)) == 1 and len(items(0, 24)) == 2
    assert items(0)[0].id != items(0, url=link)[0].id
    (first,) = items(0, -5)
    assert first.published == START.replace(microsecond=0), "of two alike the first, the newer"


NO_NUMBERS: tuple[Any, ...] = (None, "12", True, float("nan"), float("-inf"), [], {}, 10**400)
SECOND = {name: 1.0 for name in RATIOS if len(METRICS[name]) > 1}
"""The figures that Finnhub has under another name too, where the first one holds no number."""


def odd_first(odd: Any) -> dict[str, Any]:
    """Return metrics with no number under the first name of each figure."""
    return {key: place or odd for keys in METRICS.values() for place, key in enumerate(keys)}


METRIC_REPLIES: list[tuple[Any, NewsStatus, dict[str, float]]] = [
    *(({"metric": odd_first(odd)}, S.AVAILABLE, SECOND) for odd in NO_NUMBERS),
    ({"metric": {"52WeekHigh": 3}}, S.EMPTY, {}),
    ({"metric": []}, S.BROKEN, {}),
    ([], S.BROKEN, {}),
]


def test_fundamentals_are_the_first_finite_numbers(exchange: Exchange) -> None:
    for reply, status, expected in METRIC_REPLIES:
        desk = exchange.desk("finnhub", Said(json.dumps(reply).encode()), APPLE)
        view = desk.later(4, step=1.2).view()
        assert (view.fundamentals, view.fundamentals_status) == (expected, status), reply
        assert exchange.server.asked[2][1]["metric"] == "all"

"""News payloads, good and broken, of both vendors, from a loopback server through the real client.

What is put into a payload is known, so it is known what must come out: exactly these items, this
status, this many dropped. Nothing is raised, the deadline is kept, and the key is in no log, no
database, no status.
"""

from __future__ import annotations

import gzip
import html
import json
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from news_collector import Collector
from tests.cases import cases
from tests.conftest import Scale
from tests.doubles.news_server import FAULTS, NewsServer, Said
from tests.worlds.stores import Hand, open_database
from torra.config import NewsSettings
from torra.evidence.news_digest import RATIOS, NewsStatus, NewsSubject
from torra.news.company_reading import METRICS
from torra.news.lexicon import score
from torra.news.reading import listed, of_finnhub, redacted, spellings
from torra.news.source import open_sources

CANARY = "CANARY-7f3a/9c+1d=5e"
START = datetime(2026, 2, 13, 12, 0, 0, 250_000, tzinfo=UTC)
SOON = 0.4
"""Seconds that a slow vendor is given here."""
PATIENT = 8.0
WORDS = ("gold", "dollar", "euro", "rises", "falls", "after", "central bank", "wait for oil")
SUBJECTS = {
    "finnhub": (
        NewsSubject("XAUUSD", "gold"),
        NewsSubject("BTCUSD", "crypto"),
        NewsSubject("US500", "index"),
        NewsSubject("AAPL", "stock", ticker="AAPL"),
    ),
    "alpha_vantage": (
        NewsSubject("XAUUSD", "gold"),
        NewsSubject("BTCUSD", "crypto"),
        NewsSubject("EURUSD", "fx", currencies=("EUR", "USD")),
        NewsSubject("AAPL", "stock", ticker="AAPL"),
    ),
}
KEYED = {"finnhub": "token", "alpha_vantage": "apikey"}

Truth = tuple[str, datetime, str, str, tuple[str, ...]]


@dataclass
class Expected:
    """What must come of a payload."""

    status: NewsStatus
    items: dict[tuple[str, str], Truth] = field(default_factory=dict)
    dropped: int = 0


# --- rows -----------------------------------------------------------------------------------------


class Writer:
    """Writes rows of one vendor; every headline is its own, so that no case meets another."""

    def __init__(self, vendor: str, case: int, now: datetime, chance: random.Random) -> None:
        self.vendor = vendor
        self.case = case
        self.now = now
        self.chance = chance
        self.count = 0

    def row(self, **changes: Any) -> tuple[dict[str, Any], Truth]:
        """Return a row that can be read, and what it says."""
        self.count += 1
        words = " ".join(self.chance.choices(WORDS, k=self.chance.randint(2, 9)))
        title = f"{words} case {self.case} number {self.count}"
        published = (self.now - timedelta(minutes=self.chance.randint(0, 4000))).replace(
            microsecond=0
        )
        published = changes.get("published", published)
        summary = self.chance.choice(("", "Some words more.", "Ünï · 金 €"))
        url = self.chance.choice(("", f"https://example.org/{self.case}/{self.count}?a=1#b"))
        tickers = self.chance.choice(((), ("AAPL",), ("AAPL", "MSFT")))
        written = {
            "title": self.decorated(title),
            "summary": summary or self.chance.choice(("", None, 7, ["x"])),
            "url": url
            or self.chance.choice(("", None, 3, "javascript:alert(1)", "https://u:p@a.b/c")),
        }
        return self.as_vendor(written, published, tickers), (
            title, published, url, summary, tickers,
        )  # fmt: skip

    def decorated(self, title: str) -> str:
        """Return a title with signs that are to vanish."""
        kind = self.chance.randrange(5)
        if kind == 0:
            return title.replace(" ", "\t\x00\n", 1)
        if kind == 1:
            return f"\u202e {title}\u200b\ufeff  "
        if kind == 2:
            return title.replace(" ", "\u2028", 1) + "\ud800"
        return title

    def as_vendor(
        self, written: dict[str, Any], published: datetime, tickers: tuple[str, ...]
    ) -> dict[str, Any]:
        rest = {"summary": written["summary"], "url": written["url"]}
        if self.vendor == "finnhub":
            return {
                "category": "x", "id": self.count, "image": None, "source": "Somebody",
                "headline": written["title"], "datetime": int(published.timestamp()),
                "related": ",".join(tickers), **rest,
            }  # fmt: skip
        return {
            "title": written["title"], "time_published": published.strftime("%Y%m%dT%H%M%S"),
            "overall_sentiment_score": self.chance.choice((0.2, "0.2", None, "x")),
            "ticker_sentiment": [{"ticker": t, "ticker_sentiment_score": "0.1"} for t in tickers],
            **rest,
        }  # fmt: skip

    def broken(self) -> Any:
        """Return a row that cannot be read."""
        if self.chance.random() < 0.25:
            return self.chance.choice((None, 5, "text", [], {}, [[]], True, 1.5))
        row, _ = self.row()
        title, when = (
            ("headline", "datetime") if self.vendor == "finnhub" else ("title", "time_published")
        )
        if self.chance.random() < 0.5:
            row[title] = self.chance.choice((None, 5, [], {}, "", " ", "\u200b\x07", "...", True))
            return row
        bad: tuple[Any, ...]
        if self.vendor == "finnhub":
            bad = (None, "12", True, -1, 0, 1e20, float("nan"), float("inf"), 10**400,
                   1_770_000_000_000, [], {})  # fmt: skip
        else:
            bad = (None, 20260213, "", "yesterday", "20261399T000000", "19991231T235959",
                   "21000101T000000", "2026-02-13T12:00:00", "20260213T120000Z", [])  # fmt: skip
        row[when] = self.chance.choice(bad)
        return row

    def payload(self, rows: list[Any]) -> Any:
        return rows if self.vendor == "finnhub" else {"items": str(len(rows)), "feed": rows}


def key_of(truth: Truth) -> tuple[str, str]:
    return truth[0], truth[2]


def mixed(writer: Writer) -> tuple[list[Any], Expected]:
    """Rows of all kinds, and what must come of them."""
    rows: list[Any] = []
    expected = Expected(NewsStatus.EMPTY)
    readable = 0
    for _ in range(writer.chance.choice((0, 1, 2, 5, 12))):
        kind = writer.chance.choice(("good", "good", "good", "broken", "twice", "future", "old"))
        if kind == "broken":
            rows.append(writer.broken())
            expected.dropped += 1
            continue
        readable += 1
        when = {
            "future": writer.now + timedelta(minutes=6),
            "old": writer.now - timedelta(days=31),
        }.get(kind)
        change = {} if when is None else {"published": when.replace(microsecond=0)}
        row, truth = writer.row(**change)
        rows += [row, row] if kind == "twice" else [row]
        expected.dropped += kind == "future"
        if kind in {"good", "twice"}:
            expected.items[key_of(truth)] = truth
    if expected.items:
        expected.status = NewsStatus.AVAILABLE
    elif rows and not readable:
        expected.status = NewsStatus.BROKEN
    return rows, expected


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


# --- payloads -------------------------------------------------------------------------------------

Case = tuple[Said, Expected]


def good(writer: Writer) -> Case:
    rows, expected = mixed(writer)
    body = dumped(writer.payload(rows))
    if writer.chance.random() < 0.3:
        return Said(gzip.compress(body), headers={"content-encoding": "gzip"}), expected
    return Said(body), expected


def many(writer: Writer) -> Case:
    """More than two hundred: the first two hundred count."""
    rows = [writer.row() for _ in range(writer.chance.randint(195, 230))]
    kept = {key_of(truth): truth for _, truth in rows[:200]}
    return Said(dumped(writer.payload([row for row, _ in rows]))), Expected(
        NewsStatus.AVAILABLE, kept
    )


def long_texts(writer: Writer) -> Case:
    row, truth = writer.row()
    title = "headline" if writer.vendor == "finnhub" else "title"
    row[title] = truth[0] + "x" * 100_000
    row["summary"] = "y" * 100_000
    row["url"] = "https://example.org/" + "z" * 500
    told = ((truth[0] + "x" * 300)[:300], truth[1], "", "y" * 500, truth[4])
    return Said(dumped(writer.payload([row]))), Expected(NewsStatus.AVAILABLE, {key_of(told): told})


def other_encoding(writer: Writer) -> Case:
    """What the header says counts; JSON in another encoding than it says cannot be read."""
    rows, expected = mixed(writer)
    text = json.dumps(writer.payload(rows))
    kind = writer.chance.choice(("utf-16", "bom", "declared"))
    if kind == "declared":
        body = text.encode("utf-16")
        return Said(body, headers={"content-type": "application/json; charset=utf-16"}), expected
    body = text.encode("utf-16") if kind == "utf-16" else b"\xef\xbb\xbf" + text.encode()
    return Said(body), Expected(NewsStatus.BROKEN)


def not_utf8(writer: Writer) -> Case:
    row, truth = writer.row()
    body = dumped(writer.payload([row])).replace(b"number", b"num\xffber")
    told = (truth[0].replace("number", "num\ufffdber"), *truth[1:])
    return Said(body), Expected(NewsStatus.AVAILABLE, {key_of(told): told})


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


def echo(writer: Writer) -> Case:
    """A server that quotes the key in a headline, somehow: what is kept does not hold it."""
    row, truth = writer.row()
    title = "headline" if writer.vendor == "finnhub" else "title"
    row[title] = f"{writer.chance.choice(SPELLINGS)(CANARY)} {truth[0]}"
    told = (f"[key] {truth[0]}", *truth[1:])
    body = dumped(writer.payload([row]))
    if writer.chance.random() < 0.5:
        body = body.replace(b"/", rb"\/")
    return Said(body), Expected(
        NewsStatus.AVAILABLE, {key_of(told): told}
    )  # fmt: skip


@cases("spelt", SPELLINGS)
@cases("key", [CANARY, "aB&<3'\"x.*[z)", "0123456789abcdef"])
def test_a_key_is_struck_out_however_it_is_spelt(key: str, spelt: Callable[[str], str]) -> None:
    text = f"before {spelt(key)} after"
    for quoted in (text, json.loads(json.dumps(text).replace("/", "\\/"))):
        found = redacted({"a": [quoted, 5, None], "b": "nothing"}, spellings(key))
        assert found == {"a": ["before [key] after", 5, None], "b": "nothing"}


def test_a_headline_without_a_link_is_known_by_its_day() -> None:
    """Some come again: with a link, or on the same day, it is the same item."""

    def name(hours: float, url: str = "") -> str:
        stamp = (START + timedelta(hours=hours)).timestamp()
        row = {"headline": "Gold steady", "datetime": stamp, "url": url}
        found = of_finnhub(row, "forex")
        assert found is not None
        return found.id

    assert name(0) == name(-5) != name(24)
    link = "https://example.org/1"
    assert name(0, link) == name(24, link) != name(0)
    rows = [{"headline": "Gold", "datetime": START.timestamp() - n, "url": link} for n in (0, 9)]
    (kept,) = listed(rows, rows, lambda row: of_finnhub(row, "forex")).items
    assert kept.published == START.replace(microsecond=0), "of two alike the first, the newer"


def other_shape(writer: Writer) -> Case:
    shapes: tuple[Any, ...] = (
        None, 5, "text", True, float("nan"), {}, {"feed": None}, {"feed": {}}, {"feed": "x"},
        {"items": []}, {"data": [1]},
    )  # fmt: skip
    return Said(dumped(writer.chance.choice(shapes))), Expected(NewsStatus.BROKEN)


def note(writer: Writer) -> Case:
    """A rate limit that comes as a good reply."""
    key = writer.chance.choice(("Note", "Information"))
    said = f"We have detected your API key as {CANARY} and our rate limit is 25 requests per day."
    if writer.vendor == "finnhub":
        key, said = "error", f"API limit reached by {CANARY}. Please try again later."
    return Said(dumped({key: said})), Expected(NewsStatus.RATE_LIMITED)


def fault(writer: Writer) -> Case:
    """A reply that is none, half of one, or comes too slowly."""
    if writer.chance.random() < 0.3:
        whole = dumped(writer.payload([writer.row()[0] for _ in range(3)]))
        how = writer.chance.choice(("short", "midway", "drip"))
        return Said(whole, how=how), Expected(NewsStatus.UNREACHABLE)
    said, status = FAULTS[writer.chance.choice([*FAULTS])]
    return said, Expected(status)


KINDS: dict[Callable[[Writer], Case], int] = {
    good: 40, many: 2, long_texts: 4, other_encoding: 4, not_utf8: 2, echo: 3, other_shape: 8,
    note: 6, fault: 30,
}  # fmt: skip


# --- the test -------------------------------------------------------------------------------------


def collector_of(
    server: NewsServer, store: Any, vendor: str, now: Any, seconds: float
) -> Collector:
    variable = {"finnhub": "FINNHUB", "alpha_vantage": "ALPHAVANTAGE"}[vendor]
    environment = {
        f"TORRA_{variable}_BASE_URL": server.url,
        f"TORRA_{variable}_CUSTOM_KEY": CANARY,
    }
    sources = open_sources(NewsSettings(sources=(vendor,)), environment, store.path.parent)
    return Collector(
        sources.vendors,
        {},
        store,
        now=now,
        monotonic=time.monotonic,
        score=score,
        fetch_seconds=seconds,
    )


def test_a_thousand_payloads(
    scaled: Scale, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("urllib3", "requests", "urllib3.connectionpool"):
        caplog.set_level(logging.DEBUG, name)
    score("ready")  # the dictionary is read before anything is timed, as the desk's thread does
    store = open_database(tmp_path)
    seen: set[str] = set()
    told: list[str] = []
    with NewsServer() as server, NewsServer() as elsewhere:
        for case in range(scaled(1000, 60)):
            chance = random.Random(case)
            vendor = ("finnhub", "alpha_vantage")[case % 2]
            now = Hand(START + timedelta(minutes=case))
            writer = Writer(vendor, case, now(), chance)
            if case % 25 in {23, 24}:
                told.append(redirected(server, elsewhere, store, vendor, now))
                continue
            kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
            said, expected = kind(writer)
            seen.add(kind.__name__)
            subject = chance.choice(SUBJECTS[vendor])
            slow = said.how in {"drip", "hang", "header_drip"}
            seconds = SOON if slow else PATIENT
            collector = collector_of(server.play(said), store, vendor, now, seconds)
            told.append(run(collector, subject, server, vendor, seconds))
            check(collector, store, vendor, now(), expected, f"case {case}, {kind.__name__}")
        assert elsewhere.asked == []
    store.close()
    assert seen == {kind.__name__ for kind in KINDS} or len(told) < 200
    hidden(told, caplog, tmp_path)


def run(
    collector: Collector, subject: NewsSubject, server: NewsServer, vendor: str, seconds: float
) -> str:
    """Ask once, as a desk does; return everything that it tells."""
    collector.watch(subject)
    began = time.monotonic()
    collector.poll()
    assert time.monotonic() - began < seconds + 1.5
    path, query = server.asked[0]
    assert len(server.asked) == 1 and query[KEYED[vendor]] == CANARY
    assert path.startswith("/api/v1/")
    found = collector.latest(subject, START + timedelta(days=9), NewsSettings(sources=(vendor,)))
    collector.close()
    return f"{collector.status()!r} {found!r}"


def check(
    collector: Collector, store: Any, vendor: str, now: datetime, expected: Expected, what: str
) -> None:
    asked = next(state for state in collector.status() if state.asked_at is not None)
    assert asked.status is expected.status, (what, asked)
    up = (now + timedelta(seconds=1)).replace(microsecond=0)
    stored = store.news(since=up - timedelta(seconds=1), as_of=up)
    found = {
        (item.headline, item.url): (
            item.headline, item.published, item.url, item.summary, item.tickers,
        )
        for item in stored
    }  # fmt: skip
    assert found == expected.items and len(stored) == len(expected.items), what
    assert asked.dropped == expected.dropped and asked.items == len(stored), (what, asked)
    for item in stored:
        assert item.first_seen == up and item.topic == f"{vendor}:{asked.topic}"
        assert -1 <= item.score <= 1 and len(item.id) == 24


def redirected(
    server: NewsServer, elsewhere: NewsServer, store: Any, vendor: str, now: Hand
) -> str:
    """A redirect is not followed: no other host hears anything, nor this one twice."""
    to = (elsewhere if vendor == "finnhub" else server).url
    server.play(Said(b"", code=302, headers={"location": f"{to}/?k={CANARY}"}))
    collector = collector_of(server, store, vendor, now, PATIENT)
    text = run(collector, SUBJECTS[vendor][0], server, vendor, PATIENT)
    check(collector, store, vendor, now(), Expected(NewsStatus.BROKEN), "redirect")
    return text


def hidden(told: list[str], caplog: pytest.LogCaptureFixture, folder: Any) -> None:
    """Assert that the key, plain or quoted, is nowhere."""
    assert "urllib3.connectionpool" in {record.name for record in caplog.records}
    logged = [
        f"{record.getMessage()} {record.args!r} {record.exc_text}" for record in caplog.records
    ]
    kept = [
        path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file()
    ]
    for text in (*told, *logged, caplog.text, *kept):
        for form in (CANARY, "CANARY", "canary", quote(CANARY, safe="")[-8:]):
            assert form not in text


# --- figures --------------------------------------------------------------------------------------

NO_NUMBERS: tuple[Any, ...] = (None, "12", True, float("nan"), float("-inf"), [], {}, 10**400)


def test_fundamentals_are_finite_numbers_only(scaled: Scale, tmp_path: Path) -> None:
    store = open_database(tmp_path)
    subject = NewsSubject("AAPL", "stock", ticker="AAPL")
    settings = NewsSettings(sources=("finnhub",))
    with NewsServer() as server:
        for case in range(scaled(200, 12)):
            chance = random.Random(case)
            metric: dict[str, Any] = {"52WeekHigh": 3}
            expected: dict[str, Any] = {}
            for name in RATIOS:
                for key in METRICS[name]:
                    if chance.random() < 0.6:
                        number = round(chance.uniform(-50, 90), 3)
                        metric[key] = chance.choice((number, *NO_NUMBERS))
                        if metric[key] == number:
                            expected.setdefault(name, number)
            payload: Any = chance.choice(
                ({"metric": metric}, {"metric": metric}, {"metric": []}, [], None)
            )
            server.play(Said(dumped(payload)))
            now = Hand(START + timedelta(minutes=case))
            found = collector_of(server, store, "finnhub", now, PATIENT)
            found.watch(NewsSubject("AAPL", "stock", ticker=f"T{case}"))
            found._states = {
                place: state for place, state in found._states.items() if "fig" in place[1]
            }
            found.poll()
            subject = NewsSubject("AAPL", "stock", ticker=f"T{case}")
            view = found.latest(subject, now() + timedelta(seconds=1), settings)
            early = found.latest(subject, now(), settings)
            assert early.fundamentals == {}
            if isinstance(payload, dict) and payload["metric"] == metric:
                assert view.fundamentals == expected
                state = NewsStatus.AVAILABLE if expected else NewsStatus.EMPTY
            else:
                state = NewsStatus.BROKEN
            assert view.fundamentals_status is state
            assert server.asked[0][1]["metric"] == "all"
    store.close()

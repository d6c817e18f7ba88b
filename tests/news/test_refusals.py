"""Each refusal that a vendor or publisher documents has its own word and remedy, and its own wait.

The answers are those that users and the vendors' pages quote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pytest

from docs import generate
from tests.doubles.news_server import NewsServer, Said
from torra.collecting.asking import WAITS_S, WHOLE_SOURCE
from torra.collecting.line import SourceError
from torra.collecting.refusals import COMMON, REFUSALS, refusal
from torra.config import ROOT
from torra.evidence.news_digest import NewsAnswer, NewsStatus
from torra.news.source import AlphaVantage, Finnhub
from torra.outside.publisher import open_publishers
from torra.providers.vendors.addresses import address

S: Final = NewsStatus
NOW: Final = datetime(2026, 2, 13, 12, tzinfo=UTC)
PATIENT: Final = 8.0
THANKS: Final = "Thank you for using Alpha Vantage! "
PREMIUM: Final = "https://www.alphavantage.co/premium/"
NO_ACCESS: Final = "You don't have access to this resource."
PAGE: Final = b"\n<!DOCTYPE html>\n<html><head><title>Markets</title></head></html>"


class Row(NamedTuple):
    """An answer of a vendor, and what is told of it: the status, and words of the detail."""

    vendor: str
    said: Any
    status: NewsStatus
    word: str
    remedy: str
    code: int = 200
    topic: str = ""


def note(text: str) -> dict[str, str]:
    return {"Note": THANKS + text}


def information(text: str) -> dict[str, str]:
    return {"Information": text}


AV: Final = "alpha_vantage"
FH: Final = "finnhub"

ROWS: Final = {
    "calls a minute": Row(AV, note(
        "Our standard API call frequency is 5 calls per minute and 500 calls per day. Please visit "
        f"{PREMIUM} if you would like to target a higher API call frequency."),
        S.RATE_LIMITED, "too many requests", "asked again later"),
    "requests a second": Row(AV, information(
        THANKS + "Please consider spreading out your free API requests more sparingly (1 request "
        f"per second). You may subscribe to any of the premium plans at {PREMIUM} to lift the free "
        "key rate limit (25 requests per day), raise the per-second burst limit, and instantly "
        "unlock all premium endpoints"),
        S.RATE_LIMITED, "too many requests", "asked again later"),
    "requests a day": Row(AV, information(
        "We have detected your API key as CANARY and our standard API rate limit is 25 requests "
        f"per day. Please subscribe to any of the premium plans at {PREMIUM} to instantly remove "
        "all daily rate limits."),
        S.RATE_LIMITED, "requests of the day are used up", "wait a day"),
    "call volume": Row(AV, note(
        f"Please visit {PREMIUM} if you would like to have a higher API call volume."),
        S.RATE_LIMITED, "used up", "asked again later"),
    "premium": Row(AV, information(
        THANKS + "This is a premium endpoint. You may subscribe to any of the premium plans at "
        f"{PREMIUM} to instantly unlock all premium endpoints"),
        S.REFUSED, "plan has no such news", "take another plan"),
    "demo": Row(AV, information(
        "The **demo** API key is for demo purposes only. Please claim your free API key at "
        "(https://www.alphavantage.co/support/#api-key)"),
        S.REFUSED, "demo key", "set ALPHAVANTAGE_API_KEY"),
    "no key": Row(AV, {"Error Message":
        "the parameter apikey is invalid or missing. Please claim your free API key on "
        "(https://www.alphavantage.co/support/#api-key)."},
        S.REFUSED, "not valid", "set ALPHAVANTAGE_API_KEY"),
    "mistyped ticker": Row(AV, information(
        "Invalid inputs. Please refer to the API documentation "
        "https://www.alphavantage.co/documentation#newsapi and try again."),
        S.REFUSED, "no such ticker", "correct symbols.SYMBOL.ticker"),
    "mistyped ticker as an error": Row(AV, {"Error Message":
        "Invalid inputs. Please refer to the API documentation and try again."},
        S.REFUSED, "no such ticker", "correct symbols.SYMBOL.ticker"),
    "invalid call": Row(AV, {"Error Message":
        "Invalid API call. Please retry or visit the documentation "
        "(https://www.alphavantage.co/documentation/) for NEWS_SENTIMENT."},
        S.REFUSED, "does not know the question", "correct symbols.SYMBOL.ticker"),
    "no articles": Row(AV, information("No articles found. Please adjust the time range."),
        S.EMPTY, "no articles", ""),
    "no items": Row(AV, {"items": "0", "feed": []}, S.EMPTY, "", ""),
    "a word of its own": Row(AV, information("We will be back after a short break."),
        S.REFUSED, "an error instead of an answer", "look at"),
    "alpha vantage's page": Row(AV, PAGE, S.BROKEN, "web page", "look at the address"),
    "finnhub's key": Row(FH, {"error": "Invalid API key."},
        S.REFUSED, "not valid", "set FINNHUB_API_KEY", 401),
    "finnhub without a key": Row(FH, {"error": "Please use an API key."},
        S.REFUSED, "no key", "set FINNHUB_API_KEY", 401),
    "finnhub with an empty key": Row(FH, {"error":
        "API limit reached. Please sign up for a free account to continue using the API."},
        S.REFUSED, "no key", "set FINNHUB_API_KEY", 429),
    "finnhub's plan": Row(FH, {"error": NO_ACCESS}, S.REFUSED, "plan", "take another plan", 403),
    "finnhub's plan of old": Row(FH, {"error": NO_ACCESS},
        S.REFUSED, "plan", "take another plan", 401),
    "finnhub's limit": Row(FH, {"error":
        "API limit reached. Please try again later. Remaining Limit: 0"},
        S.RATE_LIMITED, "used up", "asked again later", 429),
    "finnhub's limit without a word": Row(FH, {},
        S.RATE_LIMITED, "too many requests", "later", 429),
    "finnhub's error as a good reply": Row(FH, {"error": NO_ACCESS},
        S.REFUSED, "plan", "take another plan"),
    "finnhub's ticker": Row(FH, {"error": "Symbol not supported."},
        S.REFUSED, "no such ticker", "correct symbols.SYMBOL.ticker"),
    "finnhub's figures": Row(FH, {"error": NO_ACCESS},
        S.REFUSED, "plan", "take another plan", 403, "figures.AAPL"),
    "figures as a good reply": Row(FH, {"error": "Invalid API key."},
        S.REFUSED, "not valid", "set FINNHUB_API_KEY", 200, "figures.AAPL"),
    "finnhub's page": Row(FH, PAGE, S.BROKEN, "web page", "look at the address"),
    "fred's series": Row("fred", PAGE, S.BROKEN, "no such series", "newer Torra", 404),
    "fred's door": Row("fred", PAGE, S.REFUSED, "does not answer this machine", "wait", 403),
    "fred's limit": Row("fred", b"", S.RATE_LIMITED, "too many requests", "later", 429),
    "fred's page": Row("fred", PAGE, S.BROKEN, "web page", "look at the address"),
    "the token": Row("cftc", {"code": "permission_denied", "error": True,
        "message": "Invalid app_token specified"},
        S.REFUSED, "token", "correct TORRA_CFTC_APP_TOKEN", 403),
    "a report that is not shown": Row("cftc", {"error": True, "message": "no"},
        S.REFUSED, "does not show", "newer Torra", 403),
    "a column": Row("cftc", {"code": "query.soql.no-such-column", "error": True},
        S.BROKEN, "does not know the question", "newer Torra", 400),
    "a report that is gone": Row("cftc", {"code": "dataset.missing", "error": True},
        S.BROKEN, "no such report", "newer Torra", 404),
    "the cftc's limit": Row("cftc", {"code": "too_many_requests"},
        S.RATE_LIMITED, "too many requests", "set TORRA_CFTC_APP_TOKEN", 429),
    "still at work": Row("cftc", {}, S.UNREACHABLE, "still at work", "asked again later", 202),
    "out of order": Row("cftc", b"", S.UNREACHABLE, "out of order", "asked again later", 503),
}  # fmt: skip

TOPICS: Final = {AV: "company.AAPL", FH: "company.AAPL", "fred": "DGS10", "cftc": "gold"}
ENVIRONMENT: Final[dict[str, tuple[str, Any]]] = {
    AV: ("ALPHAVANTAGE", AlphaVantage), FH: ("FINNHUB", Finnhub),
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[NewsServer]:
    with NewsServer() as found:
        yield found


def answer(server: NewsServer, row: Row) -> Any:
    body = row.said if isinstance(row.said, bytes) else json.dumps(row.said).encode()
    server.play(Said(body, code=row.code))
    topic = row.topic or TOPICS[row.vendor]
    if row.vendor in ENVIRONMENT:
        name, kind = ENVIRONMENT[row.vendor]
        where = {f"TORRA_{name}_BASE_URL": server.url, f"TORRA_{name}_CUSTOM_KEY": "CANARY"}
        return kind(address(row.vendor, where)).fetch(topic, NOW, PATIENT)
    where = {f"TORRA_{row.vendor.upper()}_BASE_URL": server.url}
    return open_publishers(where)[row.vendor].fetch(topic, NOW, PATIENT)


@pytest.mark.parametrize("case", ROWS)
def test_a_refusal_has_its_own_word_and_remedy(server: NewsServer, case: str) -> None:
    row = ROWS[case]
    found = answer(server, row)
    assert (found.status, found.items) == (row.status, ()), found.detail
    assert row.word in found.detail and row.remedy in found.detail, found.detail
    assert "CANARY" not in found.detail and len(server.asked) == 1


def test_only_a_limit_makes_the_next_wait_longer() -> None:
    """A key, a plan or a name that is refused waits an hour, however often it is."""
    waits = {row.status: WAITS_S.get(row.status, (0.0, 0.0)) for row in ROWS.values()}
    first, most = waits[S.REFUSED]
    assert first == most == 3600.0 and S.REFUSED not in WHOLE_SOURCE
    assert waits[S.RATE_LIMITED][0] < waits[S.RATE_LIMITED][1]


def test_every_row_of_the_table_is_met_and_none_hides_another() -> None:
    told = {(row.vendor, refusal(row.vendor, row.code, text_of(row))[1]) for row in ROWS.values()}
    for vendor in (AV, FH, "fred", "cftc"):
        rows = {(vendor, one.detail) for one in REFUSALS[vendor]}
        assert rows <= told, rows - told
    for row in (row for rows in (*REFUSALS.values(), COMMON) for row in rows):
        assert row.words == row.words.lower()


def text_of(row: Row) -> str:
    return row.said.decode() if isinstance(row.said, bytes) else json.dumps(row.said)


def test_edgar_s_two_pages_are_told_apart() -> None:
    limit = "<title>SEC.gov | Request Rate Threshold Exceeded</title>"
    stranger = "<title>SEC.gov | Your Request Originates from an Undeclared Automated Tool</title>"
    for vendor in ("edgar", "edgar_files"):
        assert refusal(vendor, 403, limit)[0] is S.RATE_LIMITED
        status, detail = refusal(vendor, 403, stranger)
        assert status is S.REFUSED and "TORRA_EDGAR_CONTACT" in detail
    assert SourceError(*refusal("edgar", 404, ""), 404).code == 404


def test_a_refusal_says_whose_error_it_was_without_quoting_it() -> None:
    assert refusal("somebody", 200, "the words of a stranger") == (COMMON[-1].status, COMMON[-1][3])
    assert NewsAnswer(*refusal("somebody", 418, "")[:1]).status is S.BROKEN


def test_the_page_on_news_has_the_table() -> None:
    page = (ROOT / "docs" / "news.md").read_text(encoding="utf-8")
    assert page == generate.news_tables(page), "python -m docs.generate"
    assert all(one.detail in page for rows in REFUSALS.values() for one in rows)

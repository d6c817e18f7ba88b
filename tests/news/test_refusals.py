"""Each refusal that a vendor or publisher documents has its own word and remedy, and its own wait.

The answers are those that users and the vendors' pages quote.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from docs import generate
from tests.doubles.news_server import NewsServer, Said
from torra.collecting.asking import WAITS_S, WHOLE_SOURCE
from torra.collecting.line import SourceError
from torra.collecting.refusals import COMMON, refusal, refusals
from torra.config import ROOT
from torra.evidence.news_digest import NewsStatus
from torra.news.source import AlphaVantage, Finnhub
from torra.outside.publisher import open_publishers
from torra.providers.vendors.addresses import address

S: Final = NewsStatus
NOW: Final = datetime(2026, 2, 13, 12, tzinfo=UTC)
PATIENT: Final = 8.0


class Row(NamedTuple):
    """A line of refusals.txt: a reply of a vendor, its status, and words of the detail."""

    case: str
    vendor: str
    topic: str
    code: str
    status: str
    word: str
    remedy: str
    reply: str


LINES: Final = Path(__file__).with_name("refusals.txt").read_text("utf-8").splitlines()[1:]
ROWS: Final = {row.case: row for row in (Row(*map(str.strip, one.split("|"))) for one in LINES)}
AV, FH = "alpha_vantage", "finnhub"
ENVIRONMENT: Final[dict[str, tuple[str, Any]]] = {
    AV: ("ALPHAVANTAGE", AlphaVantage), FH: ("FINNHUB", Finnhub),
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[NewsServer]:
    with NewsServer() as found:
        yield found


def answer(server: NewsServer, row: Row) -> Any:
    server.play(Said(row.reply.encode(), code=int(row.code)))
    if row.vendor in ENVIRONMENT:
        name, kind = ENVIRONMENT[row.vendor]
        where = {f"TORRA_{name}_BASE_URL": server.url, f"TORRA_{name}_CUSTOM_KEY": "CANARY"}
        return kind(address(row.vendor, where)).fetch(row.topic, NOW, PATIENT)
    where = {f"TORRA_{row.vendor.upper()}_BASE_URL": server.url}
    return open_publishers(where)[row.vendor].fetch(row.topic, NOW, PATIENT)


@pytest.mark.parametrize("case", ROWS)
def test_a_refusal_has_its_own_word_and_remedy(server: NewsServer, case: str) -> None:
    row = ROWS[case]
    found = answer(server, row)
    assert (found.status, found.items) == (row.status, ()), found.detail
    assert row.word in found.detail and row.remedy in found.detail, found.detail
    assert "CANARY" not in found.detail and len(server.asked) == 1


def test_only_a_limit_makes_the_next_wait_longer() -> None:
    """A key, a plan or a name that is refused waits an hour, however often it is."""
    waits = {S(row.status): WAITS_S.get(S(row.status), (0.0, 0.0)) for row in ROWS.values()}
    first, most = waits[S.REFUSED]
    assert first == most == 3600.0 and S.REFUSED not in WHOLE_SOURCE
    assert waits[S.RATE_LIMITED][0] < waits[S.RATE_LIMITED][1]


def test_every_row_of_the_table_is_met_and_none_hides_another() -> None:
    told = {(row.vendor, refusal(row.vendor, int(row.code), row.reply)[1]) for row in ROWS.values()}
    for vendor in (AV, FH, "fred", "cftc"):
        rows = {(vendor, one.detail) for one in refusals()[vendor]}
        assert rows <= told, rows - told
    for row in (row for rows in (*refusals().values(), COMMON) for row in rows):
        assert row.words == row.words.lower()


def test_edgar_s_two_pages_are_told_apart() -> None:
    limit = "<title>SEC.gov | Request Rate Threshold Exceeded</title>"
    stranger = "<title>SEC.gov | Your Request Originates from an Undeclared Automated Tool</title>"
    for vendor in ("edgar", "edgar_files"):
        assert refusal(vendor, 403, limit)[0] is S.RATE_LIMITED
        status, detail = refusal(vendor, 403, stranger)
        assert status is S.REFUSED and "TORRA_EDGAR_CONTACT" in detail
    assert SourceError(*refusal("edgar", 404, ""), 404).code == 404


def test_the_page_on_news_has_the_table() -> None:
    page = (ROOT / "docs" / "news.md").read_text(encoding="utf-8")
    assert page == generate.news_tables(page), "python -m docs.generate"
    assert all(one.detail in page for rows in refusals().values() for one in rows)

"""FRED and the CFTC on the loopback, with every fault that a host has: a word, and no exception.

What is asked, and where, is the publishers' own; no proxy is used, no redirect followed, 2 MB at
most are read, the deadline is kept, and the token goes out in its header and is nowhere else.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import pytest

from tests.doubles import edgar_payloads, edgar_server, news_server
from tests.doubles.news_server import SLOW, NewsServer, Said
from tests.doubles.outside_server import HTML, OutsideServer, week, weekdays
from tests.outside.test_edgar_wire import knowing
from tests.tries import Tries
from torra.evidence.news_digest import NewsStatus
from torra.outside.answers import SeriesAnswer
from torra.outside.cftc import PAGE
from torra.outside.publisher import open_publishers

NOW = datetime(2026, 2, 13, 12, tzinfo=UTC)
TOKEN = "CANARY-7f3a/9c+1d=5e"
S = NewsStatus
TOPICS = {"fred": "DGS10", "cftc": "gold"}
PATIENT = 8.0


@pytest.fixture
def server() -> Iterator[OutsideServer]:
    with OutsideServer() as made:
        made.days["DGS10"] = dict.fromkeys(weekdays("2026-01-05", 25), "4.25")
        made.weeks = [week("gold", f"2026-{day}") for day in ("01-20", "01-27", "02-03")]
        made.weeks.append(week("oil", "2026-02-03", long=999))
        yield made


def ask(server: OutsideServer, source: str, seconds: float = PATIENT, **more: Any) -> SeriesAnswer:
    environment = {**server.environment, "TORRA_CFTC_CUSTOM_KEY": TOKEN}
    return open_publishers(environment)[source].fetch(TOPICS[source], NOW, seconds, **more)


# --- what is asked --------------------------------------------------------------------------------


def test_fred_is_asked_for_a_series_since_a_day(server: OutsideServer) -> None:
    found = ask(server, "fred")
    assert (found.status, len(found.items), found.dropped) == (S.AVAILABLE, 25, 0)
    assert server.asked == [("/graph/fredgraph.csv", {"id": "DGS10", "cosd": "2016-02-13"})]
    later = ask(server, "fred", since=date(2026, 1, 30))
    assert len(later.items) == 6 and server.asked[1][1]["cosd"] == "2026-01-30"
    assert server.headers[0]["user-agent"] == "Torra"


def test_the_cftc_is_asked_for_a_market_in_one_page(server: OutsideServer) -> None:
    found = ask(server, "cftc")
    assert (found.status, len(found.items), found.dropped) == (S.AVAILABLE, 9, 0)
    ((path, query),) = server.asked
    assert path == "/resource/72hh-3qpy.json"
    assert query == {
        "$select": "report_date_as_yyyy_mm_dd,cftc_contract_market_code,open_interest_all,"
        "m_money_positions_long_all,m_money_positions_short_all",
        "$where": "cftc_contract_market_code='088691' AND "
        "report_date_as_yyyy_mm_dd>='2016-02-13T00:00:00.000'",
        "$order": "report_date_as_yyyy_mm_dd DESC",
        "$limit": str(PAGE),
    }
    later = ask(server, "cftc", since=date(2026, 1, 27))
    assert len(later.items) == 6
    assert PAGE > 10 * 53


REPORTS = {"oil": "72hh-3qpy", "eur": "gpe5-46if", "sp500": "gpe5-46if", "btc": "gpe5-46if"}


@pytest.mark.parametrize("market", REPORTS)
def test_each_market_stands_in_its_report(server: OutsideServer, market: str) -> None:
    server.weeks = [week(market, "2026-01-27", long=11, short=12, interest=13)]
    found = open_publishers(server.environment)["cftc"].fetch(market, NOW, PATIENT)
    assert [row.value for row in found.items] == [11, 13, 12]  # long, open interest, short
    assert server.asked[0][0] == f"/resource/{REPORTS[market]}.json"


def test_their_own_addresses_are_known() -> None:
    found = open_publishers({})
    assert {name: one.place.origin[1] for name, one in found.items()} == {
        "fred": "fred.stlouisfed.org", "cftc": "publicreporting.cftc.gov",
    }  # fmt: skip
    assert all(one.place.official and one.spacing == 2.0 for one in found.values())
    assert {one.every("x") for one in found.values()} == {6 * 3600.0}


# --- the token ------------------------------------------------------------------------------------


def test_the_token_goes_out_in_its_header_and_is_nowhere_else(
    server: OutsideServer, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("", "urllib3", "requests", "urllib3.connectionpool"):
        caplog.set_level(logging.DEBUG, name or None)
    rows = json.dumps([TOKEN, {**week("gold", "2026-02-03"), "open_interest_all": TOKEN}])
    found = ask(server.play(Said(rows.encode())), "cftc")
    assert server.headers[-1]["x-app-token"] == TOKEN
    assert "CANARY" not in repr(server.asked)
    told = [f"{record.getMessage()} {record.args!r}" for record in caplog.records]
    assert told and "CANARY" not in f"{found!r} {told!r}"
    ask(server.mend(), "fred")
    assert "CANARY" not in repr(server.headers[-1])


def test_without_a_token_there_is_no_header(server: OutsideServer) -> None:
    publishers = open_publishers({**server.environment, "TORRA_CFTC_APP_TOKEN": "CANARY-12345"})
    assert publishers["cftc"].fetch("gold", NOW, PATIENT).status is S.AVAILABLE
    assert "x-app-token" not in server.headers[0] and "CANARY" not in repr(server.headers)


# --- faults ---------------------------------------------------------------------------------------

WHOLE = {
    "fred": b"observation_date,DGS10\n2026-02-05,4.21\n2026-02-06,4.25\n",
    "cftc": json.dumps([week("gold", "2026-01-27"), week("gold", "2026-02-03")]).encode(),
}
ASSETS = json.dumps(edgar_payloads.aapl_assets()).encode()
COMMON: dict[str, tuple[Said, NewsStatus]] = {
    **news_server.FAULTS,
    "html": (Said(HTML, headers=edgar_server.HTML), S.BROKEN),
    "moved": (Said(b"", code=301, headers={"location": "/other"}), S.BROKEN),
    "forbidden": (Said(b"", code=403), S.REFUSED),
    "a page": (Said(HTML, code=403), S.REFUSED),
}
OWN: dict[str, dict[str, tuple[Said, NewsStatus]]] = {
    "edgar": {
        "other_columns": (Said(ASSETS.replace(b'"units"', b'"values"')), S.BROKEN),
        "another_company": (Said(ASSETS.replace(b"320193", b"320194")), S.BROKEN),
        "undeclared": (edgar_server.UNDECLARED, S.REFUSED),
        "threshold": (edgar_server.TOO_MANY, S.RATE_LIMITED),
    },
    # Half a table would be a table, and half a number a number.
    **{
        source: {
            "not_found": (Said(HTML, code=404), S.BROKEN),
            **{how: (Said(whole, how=how), S.UNREACHABLE) for how in ("short", "midway", "drip")},
        }
        for source, whole in WHOLE.items()
    },
}
FAULTS = [
    pytest.param(source, *case, 0.4 if name in {*SLOW, "drip"} else PATIENT, id=f"{source}-{name}")
    for source, own in OWN.items()
    for name, case in {**COMMON, **own}.items()
]


def fetching(server: Any, source: str) -> Callable[[float], Any]:
    """Return how a source is asked about its topic; EDGAR knows the company already."""
    if source == "edgar":
        return partial(knowing(server.mend()).fetch, "AAPL assets", NOW)
    return partial(open_publishers(server.environment)[source].fetch, TOPICS[source], NOW)


@pytest.mark.by_day(8)
@pytest.mark.parametrize(("source", "said", "status", "seconds"), FAULTS)
def test_a_fault_has_its_word(
    source: str, said: Said, status: NewsStatus, seconds: float, tries: Tries
) -> None:
    with edgar_server.apple() if source == "edgar" else OutsideServer() as server:
        for attempt in tries():
            fetch = fetching(server, source)
            server.play(said)
            began = time.monotonic()
            found = fetch(seconds)
            assert (found.status, found.items) == (status, ()), found
            assert found.detail and "http:" not in found.detail and len(server.asked) <= 1
            with attempt:
                assert time.monotonic() - began < seconds + 1.5
    gone = fetch(PATIENT)
    assert (gone.status, gone.items) == (S.UNREACHABLE, ()), "a host that is not there"


def test_no_proxy_is_used(server: OutsideServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with NewsServer() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_address[1]}")
        for source in TOPICS:
            assert ask(server, source).status is S.AVAILABLE
        assert len(server.asked) == 2 and proxy.asked == []

"""EDGAR on the loopback: who asks names a contact, keeps the pace, and takes every fault as a word.

What is asked, and where, is EDGAR's own; without a contact there is no request, and the contact is
in the header of each and nowhere else.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.doubles import edgar_payloads as edgar
from tests.doubles.edgar_server import (
    CONTACT,
    HTML,
    TOO_MANY,
    EdgarServer,
    apple,
    page,
)  # fmt: skip
from tests.doubles.news_server import BIG, Said
from tests.tries import Tries
from torra.collecting.line import HEAD, SourceError
from torra.errors import ConfigError
from torra.evidence.news_digest import NewsStatus
from torra.outside.answers import FactsAnswer
from torra.outside.concepts import concepts_of
from torra.outside.edgar import (
    LONG_LIST,
    REQUEST_GAP_S,
    Edgar,
    RequestSpacer,
    contact_of,
    open_edgar,
)

NOW = datetime(2026, 2, 13, 12, tzinfo=UTC)
S = NewsStatus
PATIENT = 8.0
ASSETS = "/edgar/api/xbrl/companyconcept/CIK0000320193/us-gaap/Assets.json"


@pytest.fixture
def server() -> Iterator[EdgarServer]:
    with apple() as made:
        yield made


def opened(environment: dict[str, str]) -> Edgar:
    """Return EDGAR without its pace: a test has no minute."""
    return open_edgar(environment, RequestSpacer(time.monotonic, time.sleep, 0.0))


def knowing(server: EdgarServer, ticker: str = "AAPL") -> Edgar:
    """Return EDGAR as it knows a company and its filings, and forget what that asked."""
    found = opened(server.environment)
    for topic in ("tickers", f"{ticker} filings"):
        assert found.fetch(topic, NOW, PATIENT).status is S.AVAILABLE
    server.asked.clear()
    server.headers.clear()
    return found


def ask(
    server: EdgarServer, said: Any = None, topic: str = "AAPL assets", seconds: float = PATIENT
) -> FactsAnswer:
    found = knowing(server)
    if said is not None:
        server.play(said)
    return found.fetch(topic, NOW, seconds)


# --- what is asked --------------------------------------------------------------------------------


def test_a_company_is_found_by_its_ticker_and_asked_for_a_figure(server: EdgarServer) -> None:
    found = opened(server.environment)
    assert found.fetch("AAPL filings", NOW, PATIENT).detail == "EDGAR knows no such ticker"
    assert server.asked == []
    assert found.fetch("tickers", NOW, PATIENT).status is S.AVAILABLE
    assert found.fetch("AAPL assets", NOW, PATIENT).status is S.NOT_YET
    assert found.fetch("AAPL filings", NOW, PATIENT).status is S.AVAILABLE
    answer = found.fetch("AAPL assets", NOW, PATIENT)
    assert [path for path, _ in server.asked] == [
        "/files/company_tickers.json", "/edgar/submissions/CIK0000320193.json", ASSETS,
    ]  # fmt: skip
    assert (answer.status, len(answer.items)) == (S.AVAILABLE, 4)
    newest = answer.items[-1]
    assert (newest.ticker, newest.value) == ("AAPL", 352_583e6)
    assert newest.known_at == datetime(2023, 11, 3, 2, 8, 27, tzinfo=UTC)
    assert newest.source == "edgar 10-K 0000320193-23-000106"


def test_all_concepts_of_a_chain_are_asked_and_one_never_used_is_no_failure(
    server: EdgarServer,
) -> None:
    server.add(*edgar.two_revenues("PG"))
    server.file(edgar.PG, (edgar.PG_2014, "10-K", "2014-08-08", "2014-08-08T11:00:00.000Z"))
    found = knowing(server, "PG").fetch("PG revenue", NOW, PATIENT)
    assert [row.value for row in found.items] == [83_062e6]
    assert [path.rpartition("/")[2] for path, _ in server.asked] == [
        f"{name}.json" for _, name, *_ in concepts_of("revenue", foreign=False)
    ]
    nothing = knowing(server, "PG").fetch("PG gross_profit", NOW, PATIENT)
    assert (nothing.status, nothing.items) == (S.EMPTY, ())


def test_where_one_concept_of_a_chain_does_not_answer_there_is_no_figure(
    server: EdgarServer,
) -> None:
    """The one that failed may be the whole: what is stored of a filing stays."""
    server.add(*edgar.two_revenues("PG"))
    server.file(edgar.PG, (edgar.PG_2014, "10-K", "2014-08-08", "2014-08-08T11:00:00.000Z"))
    found = knowing(server, "PG")
    answer = server._answer
    server.play(lambda path, q: Said(code=503) if "SalesRevenueNet" in path else answer(path, q))
    broken = found.fetch("PG revenue", NOW, PATIENT)
    assert (broken.status, broken.items) == (S.UNREACHABLE, ())
    server.mend()
    assert [row.value for row in found.fetch("PG revenue", NOW, PATIENT).items] == [83_062e6]


def test_a_foreign_company_is_asked_for_its_concepts_by_ifrs_too(server: EdgarServer) -> None:
    server.file(edgar.GIS, ("0001193125-24-000001", "20-F", "2024-03-01", ""))
    knowing(server, "GIS").fetch("GIS assets", NOW, PATIENT)
    assert [path.split("/")[-2] for path, _ in server.asked] == ["us-gaap", "ifrs-full"]


def test_its_own_addresses_are_known() -> None:
    found = opened({"TORRA_EDGAR_CONTACT": CONTACT})
    assert (found.data.origin[1], found.official, found.enabled) == ("data.sec.gov", True, True)
    assert [found.every(one) for one in ("tickers", "AAPL filings", "AAPL revenue")] == [
        7 * 86_400.0, 3600.0, 43_200.0,
    ]  # fmt: skip
    mirror = opened({"TORRA_EDGAR_FILES_BASE_URL": "https://example.org/files"})
    assert not mirror.official


# --- the contact ----------------------------------------------------------------------------------


def test_the_contact_is_in_each_request_and_nowhere_else(
    server: EdgarServer, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("", "urllib3", "requests", "urllib3.connectionpool"):
        caplog.set_level(logging.DEBUG, name or None)
    found = opened(server.environment)
    answers = [found.fetch(one, NOW, PATIENT) for one in ("tickers", "AAPL filings", "AAPL assets")]
    quoting = edgar.aapl_assets() | {"entityName": CONTACT}
    row = edgar.value("2023-09-30", CONTACT, CONTACT, CONTACT, form=f"10-K {CONTACT}")
    quoting["units"][CONTACT] = [row]
    quoting["units"]["USD"].append(row | {"form": "10-K"})
    server.play(Said(json.dumps(quoting).encode()))
    answers.append(found.fetch("AAPL assets", NOW, PATIENT))
    server.play(page(f"Forbidden to {CONTACT}"))
    answers.append(found.fetch("AAPL assets", NOW, PATIENT))
    assert {one["user-agent"] for one in server.headers} == {f"Torra {CONTACT}"}
    assert len(server.headers) == 5 and "canary" not in repr(server.asked)
    told = [f"{record.getMessage()} {record.args!r}" for record in caplog.records]
    assert told and "canary" not in f"{answers!r} {told!r} {found.__dict__!r}"


CONTACTS = """
a.b+c@example.org
https://example.org/contact
x@y.z.example
"""
NO_CONTACTS = r"""
CANARY
CANARY@
@CANARY.org
CANARY@x
a b@CANARY.org
a@CANARY.org\r\nX: y
ftp://CANARY.org
https://
https://user:CANARY@example.org
https://CANARY
CANÄRY@example.org
https://[CANARY
"""


def test_a_contact_is_an_address_or_a_url_and_a_wrong_one_is_not_quoted() -> None:
    for contact in CONTACTS.split():
        assert contact_of({"TORRA_EDGAR_CONTACT": f" {contact} "}) == contact
    for line in (*NO_CONTACTS.strip().split("\n"), f"{'CANARY' * 40}@example.org"):
        with pytest.raises(ConfigError, match="TORRA_EDGAR_CONTACT") as refused:
            contact_of({"TORRA_EDGAR_CONTACT": line.replace(r"\r\n", "\r\n")})
        assert "CANARY" not in str(refused.value) and "CANÄRY" not in str(refused.value)


# --- faults ---------------------------------------------------------------------------------------


def test_a_list_of_filings_that_is_too_long_costs_the_hour_and_not_the_figures(
    server: EdgarServer,
) -> None:
    """A bank that files notes all day: its values count from the end of their days."""
    found = knowing(server)
    known = found.fetch("AAPL assets", NOW, PATIENT).items[-1].known_at
    server.play(Said(BIG))
    answer = found.fetch("AAPL filings", NOW, PATIENT)
    assert (answer.status, answer.detail) == (S.AVAILABLE, LONG_LIST)
    server.play(Said(b"", code=404))
    for topic in ("tickers", "AAPL filings"):
        assert found.fetch(topic, NOW, PATIENT).status is S.BROKEN, "only a concept may be missing"
    server.mend()
    newest = found.fetch("AAPL assets", NOW, PATIENT).items[-1]
    assert newest.value == 352_583e6 and known < newest.known_at
    assert newest.known_at == datetime(2023, 11, 4, 3, 59, 59, tzinfo=UTC)


def test_of_a_refusal_no_more_is_read_than_tells_what_it_is(server: EdgarServer) -> None:
    """A page that is endless behind its title, and one that never ends its title."""
    began = time.monotonic()
    title = TOO_MANY.body[: TOO_MANY.body.index(b"<style>")]
    dripping = Said(title + b" " * 20_000, 403, HTML, how="drip", every=0.001)
    assert ask(server, dripping).status is S.RATE_LIMITED
    assert time.monotonic() - began < PATIENT
    late = Said(b"<html>" + b" " * (HEAD + 9) + b"Request Rate Threshold Exceeded", 403, HTML)
    assert ask(server.mend(), late).status is S.REFUSED
    assert ask(server.mend(), Said(TOO_MANY.body, 403, HTML, how="reset")).status is S.UNREACHABLE
    half = Said(TOO_MANY.body, 403, HTML, how="short")
    assert ask(server.mend(), half).status is S.RATE_LIMITED


# --- the pace -------------------------------------------------------------------------------------


@pytest.mark.journey
def test_all_threads_share_one_pace(tries: Tries) -> None:
    for attempt in tries():
        gate = RequestSpacer(time.monotonic, time.sleep, 0.02)

        def moment_of_passing(_: int, gate: RequestSpacer = gate) -> float:
            gate.wait(9.0)
            return time.monotonic()

        with ThreadPoolExecutor(25) as pool:
            moments = [*pool.map(moment_of_passing, range(25))]
        with attempt:
            assert max(moments) - min(moments) >= 24 * 0.02 * 0.95


def test_a_place_that_lies_too_late_is_not_taken() -> None:
    gate = RequestSpacer(lambda: 1000.0, lambda _: None)
    gate.wait(0.0)
    with pytest.raises(SourceError) as late:
        gate.wait(0.1)
    assert late.value.status is S.UNREACHABLE
    gate.wait(REQUEST_GAP_S)

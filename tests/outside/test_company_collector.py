"""When EDGAR is asked, what is stored of companies, and for how long it is left alone."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.doubles import edgar_payloads as edgar
from tests.doubles.edgar_server import CONTACT, TOO_MANY, UNDECLARED, EdgarServer, apple
from tests.doubles.news_server import Said
from tests.worlds.stores import Hand, open_database
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import kind_of_source
from torra.outside.company_collector import KEPT, REST_S, ROUNDS, FactsCollector
from torra.outside.concepts import CHAINS, concepts_of
from torra.outside.edgar import (
    FIGURES_S,
    FILINGS_S,
    REQUEST_GAP_S,
    TICKERS_S,
    Edgar,
    RequestSpacer,
    open_edgar,
)
from torra.store import series as series_table

NOON = datetime(2026, 2, 13, 12, tzinfo=UTC)
S = NewsStatus
ONE_ROUND = sum(len(concepts_of(figure, foreign=False)) for figure in CHAINS)
NEXT = "0000320193-26-000006"


class Desk:
    """A collector with clocks that are set by hand; its pace waits on them too."""

    def __init__(
        self, server: EdgarServer, store: Any, *tickers: str, contact: str = CONTACT
    ) -> None:
        self.store = store
        self.now = Hand(NOON)
        self.seconds = 1000.0
        self.server = server
        self.moments: list[float] = []
        gate = RequestSpacer(lambda: self.seconds, self.pass_by)
        found = open_edgar(server.environment | {"TORRA_EDGAR_CONTACT": contact}, gate)
        found._monotonic = lambda: self.seconds
        self.edgar: Edgar = found
        self.collector = FactsCollector(
            found, store, now=self.now, monotonic=lambda: self.seconds, fetch_seconds=30.0
        )
        for ticker in tickers:
            self.collector.watch(ticker)

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds
        self.now.pass_by(seconds)

    def later(self, seconds: float, step: float = 1.0) -> Desk:
        """Let time pass, and ask what is due at each step."""
        end = self.seconds + seconds
        while self.seconds < end:
            before = len(self.server.asked)
            self.collector.turn()
            self.moments += [self.seconds] * (len(self.server.asked) - before)
            self.pass_by(min(step, max(end - self.seconds, 0.001)))
        return self

    def paths(self) -> list[str]:
        """Return what was asked since the last look, in short."""
        found = [path.removeprefix("/edgar/").split("/")[-1] for path, _ in self.server.asked]
        self.server.asked.clear()
        return found


Desks = Callable[..., Desk]


@pytest.fixture
def desks(tmp_path: Path) -> Iterator[Desks]:
    """Make desks of one server and one store, which collect companies from nothing."""
    database = open_database(tmp_path)
    with apple() as server:
        yield partial(Desk, server, database)
    database.close()


# --- what is asked, and when ----------------------------------------------------------------------


def test_the_table_the_filings_and_the_figures_are_asked_in_turn(desks: Desks) -> None:
    desk = desks("AAPL").later(60)
    paths = desk.paths()
    assert paths[:2] == ["company_tickers.json", "CIK0000320193.json"]
    assert len(paths) == 2 + ONE_ROUND and len({*paths[2:]}) == len(paths[2:]) == ONE_ROUND
    told = series_table.facts_of(desk.store, "AAPL", NOON)
    assert Counter(row.figure for row in told) == {"assets": 4, "equity": 5}
    newest = max((row for row in told if row.figure == "assets"), key=lambda row: row.ends)
    assert newest.value == 352_583e6 and kind_of_source(newest.source) == "edgar"


@pytest.mark.journey
def test_a_day_asks_two_rounds_and_an_hourly_look(desks: Desks) -> None:
    desk = desks("AAPL").later(60)
    desk.paths()
    desk.later(24 * 3600, step=20.0)
    asked = Counter(desk.paths())
    assert asked.pop("CIK0000320193.json") in (23, 24)
    assert {*asked.values()} <= {1, 2} and sum(asked.values()) <= 2 * ONE_ROUND
    assert (FILINGS_S, FIGURES_S) == (3600.0, 12 * 3600.0)


def test_no_second_holds_more_than_eight_requests(desks: Desks) -> None:
    """Sixty seconds with five companies, from nothing."""
    desk, sent = desks(*edgar.CIKS), list[float]()
    for cik in edgar.CIKS.values():
        filed = (f"{cik:010d}-24-000001", "10-K", "2024-02-02", "2024-02-02T21:00:00Z")
        desk.server.file(cik, filed)
    answer = desk.server._answer
    desk.server.play(lambda path, query: (sent.append(desk.seconds), answer(path, query))[1])
    desk.later(60, step=0.05)
    assert len(sent) == len(desk.server.asked) > 60
    assert max(sum(begin <= one <= begin + 1.0 for one in sent) for begin in sent) <= 8
    gaps = [later - sooner for sooner, later in pairwise(sent)]
    assert min(gaps) >= REQUEST_GAP_S - 1e-6, "also between the concepts of one figure"
    assert {one["user-agent"] for one in desk.server.headers} == {f"Torra {CONTACT}"}


@pytest.mark.journey
def test_a_new_filing_is_read_at_once_and_again_because_its_values_may_come_late(
    desks: Desks,
) -> None:
    desk = desks("AAPL").later(60)
    desk.paths()
    listed = [
        (NEXT, "10-Q", "2026-02-13", "2026-02-13T11:01:00.000Z"),
        ("0000320193-26-000005", "8-K", "2026-02-13", "2026-02-13T11:00:00.000Z"),
        (edgar.AAPL_2023, "10-K", "2023-11-03", "2023-11-02T22:08:27.000Z"),
    ]
    desk.server.file(edgar.AAPL, *listed[1:])
    desk.later(3600)
    assert Counter(desk.paths()) == {"CIK0000320193.json": 1}, "an 8-K brings no figures"
    desk.server.file(edgar.AAPL, *listed)
    desk.later(3540)
    assert len(desk.paths()) in (0, 1 + ONE_ROUND)
    desk.later(60)
    value = edgar.value("2025-12-27", 371e9, NEXT, "2026-02-13", form="10-Q", fp="Q1", fy=2026)
    desk.server.files[edgar.AAPL, "us-gaap", "Assets"]["units"]["USD"].append(value)
    desk.later(3 * 3600)
    rounds = Counter(desk.paths())["Assets.json"]
    assert ROUNDS - 1 <= rounds <= ROUNDS
    assert [
        row.value
        for row in series_table.facts_of(desk.store, "AAPL", desk.now())
        if NEXT in row.source
    ] == [371e9]
    desk.later(3 * 3600)
    assert {*desk.paths()} == {"CIK0000320193.json"}


@pytest.mark.journey
def test_the_table_of_tickers_is_asked_once_a_week_also_by_the_next_process(desks: Desks) -> None:
    first = desks("AAPL", "SAP").later(60)
    assert first.paths().count("company_tickers.json") == 1
    (told,) = [one for one in first.collector.status() if one.topic == "tickers"]
    assert (told.status, told.detail) == (S.AVAILABLE, "EDGAR knows no SAP")
    second = desks("AAPL", "SAP").later(60)
    paths = second.paths()
    assert "company_tickers.json" not in paths and "CIK0000320193.json" in paths
    other = desks("AAPL", "AMZN").later(60)
    assert other.paths().count("company_tickers.json") == 1, "one that was not kept"
    late = desks("AAPL")
    late.later(TICKERS_S + 120, step=600.0)
    assert late.paths().count("company_tickers.json") == 1
    kept = late.store.fundamentals(KEPT, as_of=late.now())
    assert kept["AAPL"] == edgar.AAPL


def test_a_company_that_is_watched_later_is_asked_without_a_new_table(desks: Desks) -> None:
    desk = desks("AAPL").later(60)
    desk.paths()
    desk.collector.watch("AMZN")
    desk.collector.watch("AMZN")
    desk.later(60)
    paths = desk.paths()
    assert paths[0] == "CIK0001018724.json" and "company_tickers.json" not in paths
    shares = [row.value for row in series_table.facts_of(desk.store, "AMZN", NOON)]
    assert shares == [510e6, 10_198e6]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.journey
@pytest.mark.parametrize(
    ("said", "status"),
    [(TOO_MANY, S.RATE_LIMITED), (Said(b"", code=429), S.RATE_LIMITED), (UNDECLARED, S.REFUSED)],
)
def test_a_refusal_leaves_edgar_alone_for_ten_minutes(
    desks: Desks, said: Said, status: NewsStatus
) -> None:
    desk = desks("AAPL", "AMZN").later(5)
    desk.server.play(said)
    desk.later(3)
    assert len(desk.server.asked) == 1, "one question, and no more of any company"
    assert desk.collector.trouble("edgar") == status
    assert {one.status for one in desk.collector.status()} == {status}
    desk.moments.clear()
    desk.later(4 * REST_S)
    gaps = [later - sooner for sooner, later in pairwise(desk.moments)]
    assert len(desk.moments) in (3, 4) and all(REST_S <= gap <= REST_S + 3 for gap in gaps)
    desk.server.mend()
    desk.later(REST_S + 60)
    assert desk.collector.trouble("edgar") == "" and series_table.facts_of(desk.store, "AMZN", NOON)


def test_without_a_contact_nobody_is_asked_and_the_status_says_why(
    desks: Desks, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        desk = desks("AAPL", contact="").later(8 * 3600, step=60.0)
    assert desk.server.asked == [] and desk.collector.trouble("edgar") == "no_key"
    (told,) = desk.collector.status()
    assert (told.status, told.detail) == (S.NO_KEY, "TORRA_EDGAR_CONTACT is not set")
    assert len(caplog.records) == 1


# --- what is stored -------------------------------------------------------------------------------


@pytest.mark.journey
def test_a_value_that_is_stored_is_not_stored_twice(desks: Desks) -> None:
    first, second, third = (desks("AAPL") for _ in range(3))
    told = series_table.facts_summary(first.later(60).store)
    assert series_table.facts_summary(second.later(60).store) == told
    # The submissions list recent filings only: without its stamp it is still the same value.
    third.server.file(edgar.AAPL, (NEXT, "8-K", "2026-02-13", "2026-02-13T11:01:00.000Z"))
    assert series_table.facts_summary(third.later(60).store) == told

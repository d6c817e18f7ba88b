"""A desk's outlook asks FRED on its own threads; a tick reads what is stored and waits for none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from instance_database import Database
from tests.doubles.edgar_server import CONTACT, apple
from tests.doubles.outside_server import OutsideServer
from tests.tries import until
from tests.worlds.homes import desk_file, profile_file
from torra.clock import System
from torra.config import Instance, Profile, validate
from torra.desk import wiring
from torra.desk.outlook import ContextFeeds
from torra.evidence.outside_readings import OutsideView
from torra.store import series as series_table

PAIR = Instance(symbol="EURUSD", timeframes=("H1",), feed="store")
DEAD = {"TORRA_FRED_BASE_URL": "http://127.0.0.1:9", "TORRA_CFTC_BASE_URL": "http://127.0.0.1:9"}


def profile(*sources: str) -> Profile:
    return validate(Profile, {"outside": {"sources": [*sources]}}, "a test")


Opened = Callable[[dict[str, str], Profile], ContextFeeds]


@pytest.fixture
def opened(database: Database, tmp_path: Path) -> Iterator[Opened]:
    made: list[ContextFeeds] = []

    def begin(environment: dict[str, str], settings: Profile) -> ContextFeeds:
        made.append(
            ContextFeeds(tmp_path, database, environment, [settings], now=System().real_now)
        )
        return made[-1]

    yield begin
    for outlook in made:
        outlook.close()


def seen(outlook: ContextFeeds, settings: Profile) -> OutsideView:
    """Return what a tick of now would see."""
    read = outlook.outside(PAIR, settings)
    assert read is not None
    return read(datetime.now(UTC) + timedelta(seconds=2), lambda _span: ())


def test_what_a_publisher_answers_is_read_by_the_next_tick(
    opened: Opened, database: Database
) -> None:
    settings = profile("fred", "file")
    with OutsideServer() as server:
        days = [(datetime.now(UTC) - timedelta(days=number)).date() for number in range(4, 34)]
        server.days = {name: {f"{day}": "4.25" for day in days} for name in ("DGS2", "DGS10")}
        outlook = opened(server.environment, settings)
        assert seen(outlook, settings).numbers["macro.slope"] is None
        outlook.start()
        until(lambda: len({one.row.name for one in database.series_rows(["DGS2", "DGS10"])}) == 2)
        found = seen(outlook, settings)
        assert found.numbers["macro.slope"] == 0.0
        assert found.statuses["macro"] == "available"
        assert {one.source for one in found.seen.values()} == {"fred"}
        # Who does not name FRED reads nothing of it, on the same desk.
        assert seen(outlook, profile("file")).numbers["macro.slope"] is None


def test_a_dead_network_costs_the_numbers_and_says_so(
    opened: Opened,
) -> None:
    settings = profile("fred", "cftc")
    outlook = opened(DEAD, settings)
    assert seen(outlook, settings).statuses["macro"] in ("not_yet", "unreachable")
    outlook.start()
    until(lambda: seen(outlook, settings).statuses["macro"] == "unreachable")
    assert set(seen(outlook, settings).numbers.values()) == {None}


def test_a_desk_that_names_edgar_starts_without_a_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The collector is asked what it kept while the desk is put together: there is no clock yet."""
    profile = {
        "outside": {"sources": ["edgar"]},
        "symbols": {"EURUSD": {"asset": "stock", "ticker": "ACME"}},
    }
    profile_file(tmp_path, profile, "own")
    desk_file(tmp_path, {"symbol": "EURUSD", "timeframes": ["H1"], "profile": "own"})
    for _ in range(2):
        desk, _ = wiring.open_desk(tmp_path)
        desk.close()
    assert "cannot be read" not in caplog.text


def test_a_file_alone_opens_no_collector(
    opened: Opened,
) -> None:
    outlook = opened({}, profile("file"))
    assert outlook.series is None and outlook.filings is None
    assert seen(outlook, profile("file")).statuses == {
        "macro": "empty", "cot": "empty", "derivs": "empty", "company": "empty",
    }  # fmt: skip
    assert outlook.outside(PAIR, profile()) is None


def company(*sources: str) -> Profile:
    told = {
        "outside": {"sources": [*sources]},
        "symbols": {"EURUSD": {"asset": "stock", "ticker": "AAPL"}},
    }
    return validate(Profile, told, "a test")


def test_the_filings_of_a_symbols_company_are_collected(opened: Opened, database: Database) -> None:
    with apple() as server:
        outlook = opened(server.environment, company("edgar"))
        assert outlook.series is None and outlook.filings is not None
        outlook.outside(PAIR, profile("edgar"))
        assert outlook.filings.status() == ()
        outlook.outside(PAIR, company("edgar"))
        outlook.start()
        until(lambda: len(series_table.facts_of(database, "AAPL", datetime.now(UTC))) >= 4)
        outlook.close()
        assert {one["user-agent"] for one in server.headers} == {f"Torra {CONTACT}"}


def test_each_publisher_tells_its_own_trouble(
    opened: Opened,
) -> None:
    """FRED answers, EDGAR is not asked without a contact."""
    settings = company("fred", "edgar")
    outlook = opened({}, settings)
    outlook.outside(PAIR, settings)
    assert outlook.filings is not None
    outlook.filings.turn()
    assert (outlook._trouble("edgar"), outlook._trouble("fred")) == ("no_key", "")

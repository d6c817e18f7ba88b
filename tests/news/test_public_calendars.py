"""Calendars as public sources write them: the shape, the clock, what is left out and what refused.

Each sample has the columns and the forms of its source, with events of the writer's own: the weekly
export of ForexFactory (nfs.faireconomy.media, CSV and JSON), the download of FXStreet's calendar,
the table of Investing.com that investpy writes, the calendars of Trading Economics
(docs.tradingeconomics.com/economic_calendar/schema), Financial Modeling Prep and Finnhub, and the
columns of docs/events.md with times as MetaTrader 5 writes them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from agents.features import rows_of
from tests.cases import cases
from torra.commands.command_line import main
from torra.config import ROOT
from torra.errors import ConfigError
from torra.news import public_calendars
from torra.news.event_file import read_events
from torra.news.public_calendars import COUNTRIES, NO_CURRENCY, NO_IMPACT, NO_TIME, shapes

CPI = datetime(2026, 2, 13, 13, 30, tzinfo=UTC)
"""08:30 in New York."""


class Source(NamedTuple):
    """A sample of the folder calendars: its shape, and how many rows are left out, and why."""

    shape: str
    omissions: dict[str, int]
    clock: str = ""
    """What --clock has to say; "" where the file says it."""
    used: str = ""


SOURCES = {
    "forexfactory-csv.csv": Source("ForexFactory (CSV)", {NO_IMPACT: 1, NO_TIME: 2}, "utc"),
    "forexfactory-json.json": Source("ForexFactory (JSON)", {NO_IMPACT: 1}),
    "fxstreet.csv": Source("FXStreet", {NO_IMPACT: 1}, "+00:00"),
    "investing.csv": Source(
        "Investing.com", {NO_IMPACT: 1, NO_TIME: 1, NO_CURRENCY: 1}, "Europe/Athens"
    ),
    "trading-economics.json": Source("Trading Economics", {}, used="utc"),
    "financial-modeling-prep.json": Source("Financial Modeling Prep", {NO_CURRENCY: 1}, "utc"),
    "finnhub.json": Source("Finnhub", {}, "utc"),
    "metatrader.csv": Source("Torra's own columns", {NO_IMPACT: 1}, "new_york+7"),
}  # fmt: skip
SAMPLES = Path(__file__).with_name("calendars")


def text_of(name: str) -> str:
    return (SAMPLES / name).read_text("utf-8")


def write(folder: Path, name: str, text: str | None = None) -> Path:
    path = folder / f"download{Path(name).suffix}"
    path.write_text(text_of(name) if text is None else text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_is_read_by_its_columns(tmp_path: Path, name: str) -> None:
    source = SOURCES[name]
    found = public_calendars.read(write(tmp_path, name), source.clock)
    assert (found.name, found.clock) == (source.shape, source.used or source.clock)
    assert dict(found.omissions) == source.omissions
    (release,) = [event for event in found.events if event.impact == "high"]
    assert (release.time, release.currency) == (CPI, "USD")
    assert any(word in release.name for word in ("CPI", "Inflation", "Consumer Price Index"))


def test_a_table_may_end_in_empty_columns(tmp_path: Path) -> None:
    line = FOREX_HEAD.strip() + ",,\nCPI,USD,02-13-2026,8:30am,High,,\n"
    (event,) = public_calendars.read(write(tmp_path, "a.csv", line), "utc").events
    assert event.name == "CPI"


def test_every_shape_has_its_sample() -> None:
    assert {source.shape for source in SOURCES.values()} == {shape["name"] for shape in shapes()}


@pytest.mark.parametrize("name", [name for name in SOURCES if SOURCES[name].clock])
def test_a_time_without_a_zone_asks_for_the_clock(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"has no zone: say with --clock.*new_york\+7"):
        public_calendars.read(write(tmp_path, name))


FOREX_HEAD = "Title,Country,Date,Time,Impact\n"
REFUSED = {
    "": "has the columns ''",
    "Date,Open,High\n1,2,3\n": "has the columns 'date, high, open', which no",
    FOREX_HEAD + "CPI,USD,02-13-2026,8:30am,Red\n": "line 2: impact is 'red'",
    FOREX_HEAD + "CPI,USD,13-02-2026,8:30am,High\n": "line 2: the time '13-02-2026",
    FOREX_HEAD + "CPI,USD,03-29-2026,3:30am,High\n": "does not exist",
    FOREX_HEAD + "X,USD,02-13-2026,All Day,Holiday\n": "without an event",
}


@cases("content", REFUSED)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: str) -> None:
    path = write(tmp_path, "fxstreet.csv", content)
    with pytest.raises(ConfigError) as caught:
        public_calendars.read(path, "Europe/Athens")
    assert REFUSED[content] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_country_has_a_currency_of_three_letters() -> None:
    assert public_calendars.currency_of("euro area") == public_calendars.currency_of("DE") == "EUR"
    assert public_calendars.currency_of("United States") == "USD"
    assert public_calendars.currency_of("USD") == "USD" and not public_calendars.currency_of("usd")
    every = [name for row in rows_of(COUNTRIES) for name in row["names"].split(";")]
    assert len(every) == len(set(every))


# --- the command ----------------------------------------------------------------------------------


def run(home: Path, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["--home", str(home), "calendar", *words])
    assert result.exit_code == code, result.output
    return result.output


def test_the_command_adds_to_a_calendar_that_a_desk_reads(tmp_path: Path) -> None:
    weekly, daily = "forexfactory-csv.csv", "trading-economics.json"
    said = run(tmp_path, str(write(tmp_path, weekly)), "--clock", "utc")
    assert "ForexFactory (CSV), clock utc. 2 events (1 high)" in said
    assert f"left out: 1 with {NO_IMPACT}; 2 with {NO_TIME}." in said
    assert '"events": {"calendar": "events.csv"}' in said
    target = tmp_path / "events.csv"
    first = read_events(target)
    assert [event.name for event in first] == ["Speech, governor", "CPI m/m"]
    assert first[-1].time == CPI
    told = json.loads(run(tmp_path, str(write(tmp_path, daily)), "--json"))
    assert (told["events"], told["new"], told["total"]) == (2, 2, 4)
    assert {*first} < {*read_events(target)}
    again = json.loads(run(tmp_path, str(write(tmp_path, daily)), "--json"))
    assert (again["new"], again["total"]) == (0, 4)


@pytest.mark.parametrize("into", ["../events.csv", "/tmp/events.csv", "events.json", "", ".."])
def test_a_calendar_is_a_table_in_the_home(tmp_path: Path, into: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = write(tmp_path, "forexfactory-json.json")
    assert "can be no calendar" in run(home, str(path), "--into", into, code=2)
    assert not list(home.iterdir())


def test_a_refused_file_leaves_the_calendar_as_it_was(tmp_path: Path) -> None:
    name = "forexfactory-csv.csv"
    run(tmp_path, str(write(tmp_path, name)), "--clock", "utc")
    before = (tmp_path / "events.csv").read_bytes()
    broken = write(tmp_path, name, text_of(name) + "X,USD,02-30-2026,8:30am,High,,,\n")
    said = run(tmp_path, str(broken), "--clock", "utc", code=2)
    assert "line 7: the time '02-30-2026 8:30am'" in said
    assert (tmp_path / "events.csv").read_bytes() == before


def test_the_desk_s_reader_names_the_command_for_a_public_file(tmp_path: Path) -> None:
    for name in ("forexfactory-csv.csv", "forexfactory-json.json", "finnhub.json"):
        with pytest.raises(ConfigError, match="torra calendar FILE"):
            read_events(write(tmp_path, name))


def test_the_page_names_every_shape() -> None:
    page = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
    assert not [shape for shape in shapes() if f"| {shape['name']} |" not in page]

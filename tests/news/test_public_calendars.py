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
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from torra.commands.command_line import main
from torra.config import ROOT
from torra.errors import ConfigError
from torra.news import public_calendars
from torra.news.event_file import read_events
from torra.news.public_calendars import COUNTRIES, NO_CURRENCY, NO_IMPACT, NO_TIME, shapes

CPI = datetime(2026, 2, 13, 13, 30, tzinfo=UTC)
"""08:30 in New York."""


class Source(NamedTuple):
    shape: str
    text: str
    omissions: dict[str, int]
    clock: str = ""
    """What --clock has to say; "" where the file says it."""
    used: str = ""
    suffix: str = ".csv"


def as_json(*rows: dict[str, Any], under: str = "") -> str:
    return json.dumps({under: rows} if under else rows)


SOURCES = {
    "forexfactory-csv": Source(
        "ForexFactory (CSV)",
        "Title,Country,Date,Time,Impact,Forecast,Previous,URL\n"
        'CPI m/m,USD,02-13-2026,1:30pm,High,0.3%,0.2%,https://x.test/1\n'
        '"Speech, governor",GBP,02-13-2026,9:00am,Low,,,https://x.test/2\n'
        "Bank Holiday,JPY,02-11-2026,All Day,Holiday,,,https://x.test/3\n"
        "Auction,EUR,02-12-2026,Tentative,Medium,,,https://x.test/4\n"
        "G20 Meetings,All,02-14-2026,All Day,Medium,,,https://x.test/5\n",
        {NO_IMPACT: 1, NO_TIME: 2},
        clock="utc",
        used="utc",
    ),
    "forexfactory-json": Source(
        "ForexFactory (JSON)",
        as_json(
            {"title": "CPI m/m", "country": "USD", "date": "2026-02-13T08:30:00-05:00",
             "impact": "High", "forecast": "0.3%", "previous": "0.2%"},
            {"title": "Family Day", "country": "CAD", "date": "2026-02-16T08:00:00-05:00",
             "impact": "Holiday", "forecast": "", "previous": ""},
        ),
        {NO_IMPACT: 1},
        suffix=".json",
    ),
    "fxstreet": Source(
        "FXStreet",
        "Id,Start,Name,Impact,Currency\n"
        "f7cf329c,02/13/2026 13:30:00,Consumer Price Index (MoM),HIGH,USD\n"
        "8927f9bb,02/13/2026 10:00,Trade Balance,NONE,EUR\n"
        "8927f9bc,02/13/2026 10:00,Gross Domestic Product,MEDIUM,EUR\n",
        {NO_IMPACT: 1},
        clock="+00:00",
        used="+00:00",
    ),
    "investing": Source(
        "Investing.com",
        "id,date,time,zone,currency,importance,event,actual,forecast,previous\n"
        "1,13/02/2026,15:30,united states,USD,high,CPI (MoM),,0.3%,0.2%\n"
        "2,13/02/2026,16:30,euro zone,,medium,Current Account,,,\n"
        "3,16/02/2026,All Day,united states,,,Washington's Birthday,,,\n"
        "4,16/02/2026,Tentative,china,CNY,low,Foreign Direct Investment,,,\n"
        "5,13/02/2026,12:00,atlantis,,high,Tide,,,\n",
        {NO_IMPACT: 1, NO_TIME: 1, NO_CURRENCY: 1},
        clock="Europe/Athens",
        used="Europe/Athens",
    ),
    "trading-economics": Source(
        "Trading Economics",
        as_json(
            {"CalendarId": "1", "Date": "2026-02-13T13:30:00", "Country": "United States",
             "Category": "Inflation Rate", "Event": "Inflation Rate MoM", "Importance": 3,
             "Currency": "", "Previous": "0.2%"},
            {"CalendarId": "2", "Date": "2026-02-13T07:00:00", "Country": "Germany",
             "Category": "Wholesale Prices", "Event": "Wholesale Prices MoM", "Importance": 1,
             "Currency": None, "Previous": ""},
        ),
        {},
        used="utc",
        suffix=".json",
    ),
    "financial-modeling-prep": Source(
        "Financial Modeling Prep",
        as_json(
            {"date": "2026-02-13 13:30:00", "country": "US", "event": "CPI MoM", "currency": "USD",
             "previous": 0.2, "estimate": 0.3, "actual": None, "change": None, "impact": "High"},
            {"date": "2026-02-12 00:00:00", "country": "XX", "event": "Odd", "currency": "",
             "previous": None, "estimate": None, "actual": None, "change": 0, "impact": "Low"},
        ),
        {NO_CURRENCY: 1},
        clock="utc",
        used="utc",
        suffix=".json",
    ),
    "finnhub": Source(
        "Finnhub",
        as_json(
            {"actual": None, "country": "US", "estimate": 0.3, "event": "CPI MoM",
             "impact": "high", "prev": 0.2, "time": "2026-02-13 13:30:00", "unit": "%"},
            {"actual": None, "country": "DE", "estimate": None, "event": "GDP", "impact": "medium",
             "prev": None, "time": "2026-02-13 07:00:00", "unit": "%"},
            under="economicCalendar",
        ),
        {},
        clock="utc",
        used="utc",
        suffix=".json",
    ),
    "metatrader": Source(
        "Torra's own columns",
        "time;currency;impact;name\n2026.02.13 15:30;USD;high;CPI m/m\n"
        "2026.02.12 11:00:00;EUR;moderate;GDP q/q\n2026.02.16 00:00;USD;none;Washington's\n",
        {NO_IMPACT: 1},
        clock="new_york+7",
        used="new_york+7",
    ),
}  # fmt: skip


def write(folder: Path, source: Source, text: str | bytes | None = None) -> Path:
    path = folder / f"download{source.suffix}"
    content = source.text if text is None else text
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_is_read_by_its_columns(tmp_path: Path, name: str) -> None:
    source = SOURCES[name]
    found = public_calendars.read(write(tmp_path, source), source.clock)
    assert (found.name, found.clock) == (source.shape, source.used)
    assert dict(found.omissions) == source.omissions
    (release,) = [event for event in found.events if event.impact == "high"]
    assert (release.time, release.currency) == (CPI, "USD")
    assert any(word in release.name for word in ("CPI", "Inflation", "Consumer Price Index"))


def test_every_shape_has_its_sample() -> None:
    assert {source.shape for source in SOURCES.values()} == {shape["name"] for shape in shapes()}


@pytest.mark.parametrize("name", [name for name in SOURCES if SOURCES[name].clock])
def test_a_time_without_a_zone_asks_for_the_clock(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"has no zone: say with --clock.*new_york\+7"):
        public_calendars.read(write(tmp_path, SOURCES[name]))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_writing_of_a_table_does_not_matter(
    tmp_path: Path, encoding: str, delimiter: str, end: str
) -> None:
    source = SOURCES["fxstreet"]
    plain = public_calendars.read(write(tmp_path, source), "utc")
    text = source.text.replace(",", delimiter).replace("\n", end)
    path = write(tmp_path, source, text.encode(encoding))
    found = public_calendars.read(path, "utc")
    assert (found.events, found.omissions) == (plain.events, plain.omissions)


FOREX_HEAD = "Title,Country,Date,Time,Impact\n"
REFUSED: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "has the columns ''"),
    "other columns": ("Date,Open,High\n1,2,3\n", "has the columns 'date, high, open', which no"),
    "a page": ("<!DOCTYPE html><html>", "is XML or a page of the web: save the calendar as CSV"),
    "xml": ('<?xml version="1.0"?><weeklyevents>', "is XML or a page"),
    "half a list": ('[{"title": 1', "line 1: "),
    "deep": ("[" * 100_000, "is no calendar in JSON"),
    "no list": ('{"error": "limit"}', "holds no list of events"),
    "a list of numbers": ("[1, 2]", "holds no list of events"),
    "impact": (FOREX_HEAD + "CPI,USD,02-13-2026,8:30am,Red\n", "line 2: impact is 'red'"),
    "day first": (FOREX_HEAD + "CPI,USD,13-02-2026,8:30am,High\n", "line 2: the time '13-02-2026"),
    "comma": (FOREX_HEAD + "Speech, x,USD,02-13-2026,8:30am,High\n", "6 cells where the header"),
    "quote": (FOREX_HEAD + '"CPI,USD,02-13-2026,8:30am,High\n', "mend the line"),
    "no such hour": (FOREX_HEAD + "CPI,USD,03-29-2026,3:30am,High\n", "does not exist"),
    "only holidays": (FOREX_HEAD + "X,USD,02-13-2026,All Day,Holiday\n", "without an event"),
    "latin-1": (FOREX_HEAD.encode() + b"Caf\xe9,USD,02-13-2026,8:30am,High\n", "is not UTF-8"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_cannot_be_read_is_named(tmp_path: Path, fault: str) -> None:
    content, said = REFUSED[fault]
    path = write(tmp_path, SOURCES["fxstreet"], content)
    with pytest.raises(ConfigError) as caught:
        public_calendars.read(path, "Europe/Athens")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_country_has_a_currency_of_three_letters() -> None:
    assert public_calendars.currency_of("euro area") == public_calendars.currency_of("DE") == "EUR"
    assert public_calendars.currency_of("United States") == "USD"
    assert public_calendars.currency_of("USD") == "USD" and not public_calendars.currency_of("usd")
    names = [line.split(" ", 2)[2] for line in COUNTRIES.read_text("utf-8").splitlines()[1:]]
    every = [name for line in names for name in line.split(";")]
    assert len(every) == len(set(every))


# --- the command ----------------------------------------------------------------------------------


def run(home: Path, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["--home", str(home), "calendar", *words])
    assert result.exit_code == code, result.output
    return result.output


def test_the_command_adds_to_a_calendar_that_a_desk_reads(tmp_path: Path) -> None:
    weekly, daily = SOURCES["forexfactory-csv"], SOURCES["trading-economics"]
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
    path = write(tmp_path, SOURCES["forexfactory-json"])
    assert "can be no calendar" in run(home, str(path), "--into", into, code=2)
    assert not list(home.iterdir())


def test_a_refused_file_leaves_the_calendar_as_it_was(tmp_path: Path) -> None:
    source = SOURCES["forexfactory-csv"]
    run(tmp_path, str(write(tmp_path, source)), "--clock", "utc")
    before = (tmp_path / "events.csv").read_bytes()
    broken = write(tmp_path, source, source.text + "X,USD,02-30-2026,8:30am,High,,,\n")
    said = run(tmp_path, str(broken), "--clock", "utc", code=2)
    assert "line 7: the time '02-30-2026 8:30am'" in said
    assert (tmp_path / "events.csv").read_bytes() == before


def test_the_desk_s_reader_names_the_command_for_a_public_file(tmp_path: Path) -> None:
    for name in ("forexfactory-csv", "forexfactory-json", "finnhub"):
        with pytest.raises(ConfigError, match="torra calendar FILE"):
            read_events(write(tmp_path, SOURCES[name]))


def test_the_page_names_every_shape() -> None:
    page = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
    assert not [shape for shape in shapes() if f"| {shape['name']} |" not in page]

"""A calendar file: two formats, errors that say what to mend, and a file that changes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from torra.config import ROOT
from torra.errors import ConfigError
from torra.evidence.scheduled_events import ScheduledEvent
from torra.news import event_file
from torra.news.event_file import FIELDS, IMPACTS, MAX_NAME, read_events

HEADER = "time,currency,impact,name"
PAYROLLS = "2021-11-05T12:30:00Z,USD,high,US nonfarm payrolls"
EVENT = dict(zip(FIELDS, ("2021-11-05T12:30:00Z", "USD", "high", "payrolls"), strict=True))
RATES = '2021-11-04T08:00:00-04:00,GBP,high,"Bank of England, rate decision"'


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join((HEADER, *lines)) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def calendar(tmp_path: Path) -> Path:
    return tmp_path / "events.csv"


# --- what can be read -----------------------------------------------------------------------------


def test_a_table_is_read_oldest_first_in_utc(calendar: Path) -> None:
    assert read_events(write(calendar, PAYROLLS, RATES, PAYROLLS)) == (
        ScheduledEvent(
            datetime(2021, 11, 4, 12, tzinfo=UTC), "GBP", "high", "Bank of England, rate decision"
        ),
        ScheduledEvent(
            datetime(2021, 11, 5, 12, 30, tzinfo=UTC), "USD", "high", "US nonfarm payrolls"
        ),
    )


@cases(
    "text",
    [
        f"\ufeff{HEADER}\r\n{PAYROLLS}\r\n",
        f"{HEADER}\n\n  \n{PAYROLLS}",
        f"\n{HEADER.upper()}\n{PAYROLLS}\n\n".replace(",", ";"),
        f"{HEADER}\n{PAYROLLS}".replace(",", "\t").encode("utf-16"),
        "name, impact,currency,time\nUS nonfarm payrolls, high ,USD , 2021-11-05 13:30:00+01:00\n",
        json.dumps([{**EVENT, "name": "US nonfarm payrolls"}]),
    ],
)
def test_small_differences_in_writing_do_not_matter(calendar: Path, text: str | bytes) -> None:
    plain = read_events(write(calendar, PAYROLLS))
    calendar.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert read_events(calendar) == plain


@pytest.mark.journey
@given(
    st.lists(
        st.builds(
            ScheduledEvent,
            st.integers(0, 4_000_000_000).map(lambda second: datetime.fromtimestamp(second, UTC)),
            st.sampled_from(["USD", "EUR", "ALL", "XAU"]),
            st.sampled_from(IMPACTS),
            st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=MAX_NAME),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, given_: list[ScheduledEvent]
) -> None:
    path = tmp_path_factory.getbasetemp() / "written.csv"
    path.write_text(event_file.table(given_), encoding="utf-8")
    found = read_events(path)
    assert set(found) == set(given_)
    assert [event.time for event in found] == sorted(event.time for event in set(given_))


def test_the_shipped_examples_are_read() -> None:
    found = read_events(ROOT / "examples" / "events.csv")
    assert {event.impact for event in found} >= {"high", "medium"}
    assert {"USD", "EUR", "ALL"} <= {event.currency for event in found}
    assert found == read_events(ROOT / "examples" / "events.json")


def test_the_page_shows_what_can_be_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
    table, listed = re.findall(r"```(?:csv|json)\n(.*?)```", page, re.DOTALL)
    paths = tmp_path / "a.csv", tmp_path / "a.json"
    for path, text in zip(paths, (table, listed), strict=True):
        path.write_text(text, encoding="utf-8")
    assert read_events(paths[0]) == read_events(paths[1])
    for limit in (f"{event_file.MAX_EVENTS:,}", f"{event_file.MAX_BYTES // 1_000_000} MB"):
        assert limit in page
    assert f"{MAX_NAME} characters" in page


# --- what cannot ----------------------------------------------------------------------------------

WRONG_LINES = rf"""
2021-11-05T12:30:00,USD,high,payrolls | time is '2021-11-05T12:30:00'; say which zone
2021-11-05,USD,high,payrolls | say which zone
05.11.2021 12:30Z,USD,high,payrolls | time is '05.11.2021 12:30Z'; write it like
9999-12-31T23:59:59-05:00,USD,high,x | write it like
,USD,high,payrolls | time is ''; write it like
2021-11-05T12:30:00Z,usd,high,payrolls | currency is 'usd'; write three capitals
2021-11-05T12:30:00Z,,high,payrolls | currency is ''; write three capitals
2021-11-05T12:30:00Z,USD,High,payrolls | impact is 'High'; write high, medium, low
2021-11-05T12:30:00Z,USD,3,payrolls | impact is '3'
2021-11-05T12:30:00Z,USD,high, | name is ''; write 1 to 80 characters
2021-11-05T12:30:00Z,USD,high,{"x" * 81} | write 1 to 80 characters
2021-11-05T12:30:00Z,USD,high,pay{chr(9)}rolls | name is 'pay\\trolls'; write 1 to 80
2021-11-05T12:30:00Z,USD,high,pay{chr(0x202E)}rolls | write 1 to 80
2021-11-05T12:30:00Z,USD,high,rates, London | 5 cells where the header has 4; .*"quotes"
2021-11-05T12:30:00Z,USD,high | 3 cells where the header has 4
2021-11-05T12:30:00Z,USD,high,"rates | mend the line
"""


@cases("row", WRONG_LINES.strip().split("\n"))
def test_a_wrong_line_is_named_with_its_remedy(calendar: Path, row: str) -> None:
    line, words = row.split(" | ")
    write(calendar, PAYROLLS, line, RATES)
    with pytest.raises(ConfigError) as caught:
        read_events(calendar)
    place = r"line [34]" if line.count('"') == 1 else "line 3"
    message = str(caught.value)
    assert re.search(f"^{re.escape(str(calendar))}, {place}: .*{words}", message), message
    assert len(message) < len(str(calendar)) + 160


def row(**changes: object) -> str:
    return json.dumps([EVENT | changes])


COLUMNS = "the columns are 'time,currency,impact,name,forecast'; write time,currency,impact,name"
WRONG_FILES: dict[str | bytes, str] = {
    "": "holds no events",
    f"{HEADER}\n": "holds no events",
    f"{PAYROLLS}\n{RATES}\n": "line 2: the columns are",
    f"{HEADER},forecast\n{PAYROLLS},x\n": f"line 2: {COLUMNS}",
    f"{HEADER},time\n{PAYROLLS},x\n": "line 1: a column stands twice",
    f"{HEADER}\n{PAYROLLS} \xe9".encode("latin-1"): "line 2: not UTF-8",
    HEADER + "\n" + "x" * 200_000: "line 2: field larger",
    "<!DOCTYPE html><html>": "is XML or a page of the web: save the calendar as CSV or JSON",
    '<?xml version="1.0"?><weeklyevents>': "is XML or a page",
    "[\n{": "line 2: ",
    "[" * 100_000: "no calendar in JSON",
    "[1" + "0" * 5000 + "]": "no calendar in JSON",
    '{"error": "limit"}': "holds no list of events",
    json.dumps({"january": [EVENT], "february": [EVENT]}): "holds no list of events",
    json.dumps([EVENT | {"Impact": "low"}]): "event 1: a name stands twice in",
    json.dumps([EVENT]).replace('"impact"', '"impact": "low", "impact"'): "no calendar in JSON",
    "[]": "holds no events",
    "[1, 2]": "holds no list of events",
    '[{"time": "2021-11-05T12:30:00Z"}]': "event 1: the columns are 'time'",
    row(forecast=1): f"event 1: {COLUMNS}",
    row(time=1636115400): "event 1: time is 1636115400; write it as text",
    row(name=None): "event 1: name is None; write it as text",
    row(time="2021-11-05T12:30:00"): "time is '2021-11-05T12:30:00'; say which",
    row(name="a\nb"): r"event 1: name is 'a\nb'",
    row(currency="US"): "currency is 'US'",
}


@cases("content", WRONG_FILES)
def test_a_wrong_file_is_named_with_its_remedy(calendar: Path, content: str | bytes) -> None:
    calendar.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=re.escape(WRONG_FILES[content])):
        read_events(calendar)


def test_a_calendar_has_its_bounds(calendar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_file, "MAX_EVENTS", 3)
    lines = [f"2021-11-0{day}T12:30:00Z,USD,high,payrolls" for day in range(1, 5)]
    assert len(read_events(write(calendar, *lines[:3]))) == 3
    with pytest.raises(ConfigError, match="more than 3 events: cut off"):
        read_events(write(calendar, *lines))
    monkeypatch.setattr(event_file, "MAX_BYTES", calendar.stat().st_size - 1)
    with pytest.raises(ConfigError, match="is larger than"):
        read_events(calendar)

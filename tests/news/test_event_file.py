"""A calendar file: two formats, errors that say what to mend, and a file that changes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torra.config import ROOT
from torra.errors import ConfigError
from torra.evidence.scheduled_events import ScheduledEvent
from torra.news import event_file
from torra.news.event_file import FIELDS, IMPACTS, MAX_NAME, read_events

HEADER = "time,currency,impact,name"
PAYROLLS = "2021-11-05T12:30:00Z,USD,high,US nonfarm payrolls"
RATES = '2021-11-04T08:00:00-04:00,GBP,high,"Bank of England, rate decision"'


def write(path: Path, *lines: str, header: str = HEADER) -> Path:
    path.write_text("\n".join((header, *lines)) + "\n", encoding="utf-8")
    return path


def entry(**changes: Any) -> dict[str, Any]:
    words = {
        "time": "2021-11-05T12:30:00Z",
        "currency": "USD",
        "impact": "high",
        "name": "payrolls",
    }
    return {**words, **changes}


def write_json(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
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


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{HEADER}\r\n{PAYROLLS}\r\n",
        f"{HEADER}\n\n  \n{PAYROLLS}",
        f"\n{HEADER.upper()}\n{PAYROLLS}\n\n",
        "name, impact,currency,time\nUS nonfarm payrolls, high ,USD , 2021-11-05 13:30:00+01:00\n",
    ],
)
def test_small_differences_in_writing_do_not_matter(calendar: Path, text: str) -> None:
    plain = read_events(write(calendar, PAYROLLS))
    calendar.write_bytes(text.encode())
    assert read_events(calendar) == plain


def test_json_says_the_same(tmp_path: Path) -> None:
    csv = read_events(write(tmp_path / "events.csv", PAYROLLS))
    listed = [entry(name="US nonfarm payrolls")]
    assert read_events(write_json(tmp_path / "events.JSON", listed)) == csv


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
    path = tmp_path_factory.getbasetemp() / "written.json"
    entries = [{**{n: getattr(e, n) for n in FIELDS}, "time": e.time.isoformat()} for e in given_]
    found = read_events(write_json(path, entries))
    assert set(found) == set(given_)
    assert [event.time for event in found] == sorted(event.time for event in set(given_))


@pytest.mark.parametrize("name", ["events.csv", "events.json"])
def test_the_shipped_examples_are_read(name: str) -> None:
    found = read_events(ROOT / "examples" / name)
    assert {event.impact for event in found} >= {"high", "medium"}
    assert {"USD", "EUR", "ALL"} <= {event.currency for event in found}
    assert found == read_events(ROOT / "examples" / "events.csv")


def test_the_page_shows_what_can_be_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
    table, listed = re.findall(r"```(?:csv|json)\n(.*?)```", page, re.DOTALL)
    (tmp_path / "a.csv").write_text(table, encoding="utf-8")
    assert read_events(tmp_path / "a.csv") == read_events(write_json(tmp_path / "a.json", listed))
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


@pytest.mark.parametrize("row", WRONG_LINES.strip().split("\n"))
def test_a_wrong_line_is_named_with_its_remedy(calendar: Path, row: str) -> None:
    line, words = row.split(" | ")
    write(calendar, PAYROLLS, line, RATES)
    with pytest.raises(ConfigError) as caught:
        read_events(calendar)
    said = str(caught.value)
    place = r"line [34]" if line.count('"') == 1 else "line 3"
    assert re.search(f"^{re.escape(str(calendar))}, {place}: .*{words}", said), said
    assert len(said) < len(str(calendar)) + 160


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "holds no events"),
        (f"{HEADER}\n", "holds no events"),
        (
            f"{HEADER.replace(',', ';')}\n",
            "line 1: the header is 'time;currency;impact;name'; write",
        ),
        (f"{PAYROLLS}\n", "line 1: the header is"),
        (f"{HEADER},forecast\n", "line 1: the header is"),
        (f"{HEADER.replace('name', 'time')}\n", "line 1: the header is"),
        (b"\xff\xfe" + HEADER.encode("utf-16-le"), "line 1: not UTF-8"),
        (f"{HEADER}\n{PAYROLLS} \xe9".encode("latin-1"), "line 2: not UTF-8"),
        (HEADER + "\n" + "x" * 200_000, "line 2: field larger"),
    ],
)
def test_a_wrong_table_is_named_with_its_remedy(calendar: Path, content: Any, said: str) -> None:
    calendar.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=re.escape(said)):
        read_events(calendar)


EVENT = '"currency":"USD","impact":"high"'
WRONG_JSON = rf"""
{{}} | holds no list
[] | holds no events
["payrolls"] | event 1: write an object with time, currency, impact, name
[{{"time":"2021-11-05T12:30:00Z"}}] | event 1: write an object
[{{"time":"2021-11-05T12:30:00Z","name":"x","forecast":1,{EVENT}}}] | event 1: write an object
[{{"time":1636115400,"name":"x",{EVENT}}}] | event 1: time is 1636115400; write it as text
[{{"time":"2021-11-05T12:30:00Z","name":null,{EVENT}}}] | event 1: name is None; write it as text
[{{"time":"2021-11-05T12:30:00","name":"x",{EVENT}}}] | time is '2021-11-05T12:30:00'; say which
[{{"time":"2021-11-05T12:30:00Z","name":"a\nb",{EVENT}}}] | event 1: name is 'a\nb'
[{{"time":"2021-11-05T12:30:00Z","name":"x",{EVENT.replace("USD", "US")}}}] | currency is 'US'
"""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[\n{", "line 2: "),
        ("[" * 100_000, "no calendar in JSON"),
        ("[1" + "0" * 5000 + "]", "no calendar in JSON"),
        *(row.split(" | ") for row in WRONG_JSON.strip().split("\n")),
    ],
)
def test_wrong_json_is_named_with_its_remedy(tmp_path: Path, content: Any, said: str) -> None:
    path = write_json(tmp_path / "events.json", content)
    with pytest.raises(ConfigError, match=re.escape(said)):
        read_events(path)


def test_a_calendar_has_its_bounds(calendar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_file, "MAX_EVENTS", 3)
    lines = [f"2021-11-0{day}T12:30:00Z,USD,high,payrolls" for day in range(1, 5)]
    assert len(read_events(write(calendar, *lines[:3]))) == 3
    with pytest.raises(ConfigError, match="more than 3 events: cut off"):
        read_events(write(calendar, *lines))
    monkeypatch.setattr(event_file, "MAX_BYTES", calendar.stat().st_size - 1)
    with pytest.raises(ConfigError, match="is larger than"):
        read_events(calendar)

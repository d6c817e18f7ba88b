"""Series as their publishers write them: which columns are which series, holes, and when known.

The samples have the columns of FRED's graph as CSV (fred.stlouisfed.org/graph), of the par yield
curves of the US Treasury (home.treasury.gov, newest day first), of the monthly funding rates of
Binance (data.binance.vision), of the ECB Data Portal's csvdata (data.ecb.europa.eu/help/api/data)
and of the daily prices of Yahoo, Stooq and Cboe; the values are the writer's own.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from torra.commands.command_line import main
from torra.config import ROOT
from torra.errors import ConfigError
from torra.evidence.outside_numbers import SeriesRow
from torra.outside import tables
from torra.outside.tables import PUBLIC


class Publisher(NamedTuple):
    """A file of a publisher; its shape, holes, and the rows that come of it."""

    shape: str
    name: str
    holes: int
    rows: str
    """Series, day, moment of knowing, value."""

    text: str


PUBLISHERS = {
    # known at 22:00 UTC of the next business day
    "fred": Publisher(
        "FRED", "", 2, "DGS10 2026-02-06 2026-02-09T22:00 4.21",
        "observation_date,DGS10\n2026-02-06,4.21\n2026-02-09,.\n2026-02-10,\n",
    ),
    "fred, as it was": Publisher(
        "FRED", "", 0, "VIXCLS 2026-02-06 2026-02-09T22:00 17.5",
        "DATE,VIXCLS\n2026-02-06,17.5\n",
    ),
    "fred, several": Publisher(
        "FRED", "", 0,
        "DGS2 2026-02-06 2026-02-09T22:00 3.5, DTWEXBGS 2026-02-06 2026-02-09T22:00 121.3",
        "observation_date,DGS2,UNRATE,DTWEXBGS\n2026-02-06,3.5,4.1,121.3\n",
    ),
    "fred, one of several": Publisher(
        "FRED", "DGS10", 0, "DGS10 2026-02-06 2026-02-09T22:00 4.2",
        "observation_date,DGS2,DGS10\n2026-02-06,3.5,4.2\n",
    ),
    "treasury": Publisher(
        "US Treasury, yields", "", 1,
        "DGS2 2026-02-09 2026-02-10T22:00 3.5, DGS10 2026-02-09 2026-02-10T22:00 4.2, "
        "DGS2 2026-02-06 2026-02-09T22:00 3.4",
        'Date,"1 Mo","2 Yr","5 Yr","10 Yr"\n02/09/2026,3.7,3.5,3.8,4.2\n'
        "02/06/2026,3.7,3.4,3.8,N/A\n",
    ),
    "treasury, real": Publisher(
        "US Treasury, real yields", "", 0, "DFII10 2026-02-06 2026-02-09T22:00 1.8",
        "Date,5 YR,7 YR,10 YR,20 YR,30 YR\n02/06/2026,1.4,1.6,1.8,2.2,2.4\n",
    ),
    "binance": Publisher(
        "Binance, funding rates", "derivs.funding.BTCUSD", 0,
        "derivs.funding.BTCUSD 2026-02-10 2026-02-10 0.01, "
        "derivs.funding.BTCUSD 2026-02-10 2026-02-10T08:00:01 -0.0025",
        "calc_time,funding_interval_hours,last_funding_rate\n"
        "1770681600000,8,0.00010000\n1770710400005,8,-0.00002500\n",
    ),
    "ecb": Publisher(
        "ECB Data Portal", "yield_2y.EUR", 1, "yield_2y.EUR 2026-02-06 2026-02-09T22:00 2.15",
        "KEY,FREQ,TIME_PERIOD,OBS_VALUE,OBS_STATUS,TITLE\n"
        'YC.B.U2,B,2026-02-06,2.15,A,"Yield curve, 2 years"\nYC.B.U2,B,2026-02-09,NaN,M,x\n',
    ),
    "yahoo": Publisher(
        "a day and its close", "VIXCLS", 1, "VIXCLS 2026-02-06 2026-02-09T22:00 17.5",
        "Date,Open,High,Low,Close,Adj Close,Volume\n2026-02-06,17,18,16,17.5,17.5,0\n"
        "2026-02-09,null,null,null,null,null,null\n",
    ),
    "cboe": Publisher(
        "a day and its close", "VIXCLS", 0, "VIXCLS 2026-02-06 2026-02-09T22:00 17.5",
        "DATE,OPEN,HIGH,LOW,CLOSE\n02/06/2026,17.0,18.0,16.0,17.5\n",
    ),
}  # fmt: skip


def write(folder: Path, text: str) -> Path:
    path = folder / "download.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", PUBLISHERS)
def test_each_publisher_is_read_by_its_columns(tmp_path: Path, name: str) -> None:
    publisher = PUBLISHERS[name]
    found = tables.read(write(tmp_path, publisher.text), publisher.name)
    assert (found.shape, found.holes, found.faults) == (publisher.shape, publisher.holes, ())
    assert [
        f"{row.name} {row.at:%Y-%m-%d} {row.known_at.isoformat()} {row.value:g} {row.source}"
        for row in found.rows
        if isinstance(row, SeriesRow)
    ] == [
        f"{name} {at} {datetime.fromisoformat(known).replace(tzinfo=UTC).isoformat()} {value} "
        "download.csv"
        for name, at, known, value in (row.split() for row in publisher.rows.split(","))
    ]


def test_every_shape_has_its_sample_and_its_line_on_the_page() -> None:
    assert {publisher.shape for publisher in PUBLISHERS.values()} == {
        shape["name"] for shape in PUBLIC
    }
    page = (ROOT / "docs" / "outside.md").read_text(encoding="utf-8")
    assert not [shape for shape in PUBLIC if f"| {shape['name']} |" not in page]


@pytest.mark.parametrize("hole", ["", ".", "-", "NaN", "null", "ND", "NA", "N/A", "#N/A", " . "])
def test_a_hole_is_no_value_and_no_fault(tmp_path: Path, hole: str) -> None:
    text = f"observation_date,DGS2\n2026-02-06,3.5\n2026-02-09,{hole}\n"
    found = tables.read(write(tmp_path, text))
    assert (len(found.rows), found.holes, found.faults) == (1, 1, ())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("2026-02-06,4.2 %", "value '4.2 %' is no number"),
        ("2026-02-06,inf", "is no number"),
        ("13/02/2026,4.2", "'13/02/2026' is no day of the form 02/13/2026"),
        ("2026-02,4.2", "the day '2026-02' is no time"),
        ("1026-02-06,4.2", "lies outside of 1900"),
        ("2026-02-06,4.2,1", "it has 3 values, the header 2"),
        ("2026-02-05,3.6", "another line has another value of this moment"),
    ],
)
def test_a_line_that_cannot_be_read_is_a_fault(tmp_path: Path, line: str, reason: str) -> None:
    found = tables.read(write(tmp_path, f"observation_date,DGS2\n2026-02-05,3.5\n{line}\n"))
    assert len(found.rows) == 1
    (fault,) = found.faults
    assert fault.line == 3 and reason in fault.reason


@pytest.mark.parametrize(
    ("publisher", "name", "reason"),
    [
        ("yahoo", "", "does not say which series it is: add --name"),
        ("yahoo", "SP500", "has no 'SP500'; torra data lists the names"),
        ("ecb", "yield_2y.USD", "has no 'yield_2y.USD'; the dollar's is DGS2"),
        ("fred", "DGS2", "has no 'DGS2', but DGS10"),
        ("treasury", "DFII10", "has no 'DFII10', but DGS2, DGS10"),
    ],
)
def test_a_series_that_is_not_in_the_file_is_refused(
    tmp_path: Path, publisher: str, name: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        tables.read(write(tmp_path, PUBLISHERS[publisher].text), name)
    assert reason in str(caught.value)


def test_other_columns_are_refused_with_what_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'date, cpi'; a table of series.*of publishers: FRED"):
        tables.read(write(tmp_path, "date,cpi\n2026-02-05,3.5\n"))


def run(home: Path, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["--home", str(home), "data", *words])
    assert result.exit_code == code, result.output
    return result.output


def test_a_publisher_s_file_is_stored_and_shown(tmp_path: Path) -> None:
    path, home = write(tmp_path, PUBLISHERS["yahoo"].text), tmp_path / "home"
    checked = run(home, "check", str(path), "--name", "VIXCLS")
    assert "1 value can be read, all of it (as of a day and its close; 1 hole left out)." in checked
    stored = json.loads(run(home, "import", str(path), "--name", "VIXCLS", "--json"))
    assert (stored["stored"], stored["holes"]) == (1, 1)
    assert "17.5" in run(home, "VIXCLS")
    assert "add --name" in run(home, "import", str(path), code=2)


def test_the_newest_day_may_be_known_on_its_next_business_day(tmp_path: Path) -> None:
    """A file of a Friday evening; and a day that has not come yet is refused."""
    today = datetime.now(UTC).date()  # the command reads the machine's clock
    for ahead, code in ((0, 0), (30, 2)):
        text = f"observation_date,DGS2\n{today + timedelta(days=ahead)},3.5\n"
        run(tmp_path / "home", "check", str(write(tmp_path, text)), code=code)

"""Files of series and of company figures: a value, or a reason with its line."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from torra.errors import ConfigError
from torra.evidence.outside_numbers import FactRow, SeriesRow
from torra.outside import tables

SERIES = "name,at,known_at,value\n"
FACTS = "ticker,figure,begins,ends,known_at,value,unit\n"
GOOD = "DGS2,2026-02-12,2026-02-13T22:00:00Z,4.25"
FACT = "ACME,net_income,2025-10-01,2025-12-31,2026-02-05T21:30:00Z,1.5e9,USD"


def read(
    folder: Path, text: str | bytes
) -> tables.ParsedTable[SeriesRow] | tables.ParsedTable[FactRow]:
    path = folder / "made.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return tables.read(path)


TURNED = "\ufeffValue, Name ,known_at,at\n4.25,DGS2,2026-02-13T23:00:00+01:00,2026-02-12\n\n"
READ = {
    SERIES + GOOD + "\n": "DGS2 2026-02-12 2026-02-13 22:00:00 4.25 made.csv",
    TURNED: "DGS2 2026-02-12 2026-02-13 22:00:00 4.25 made.csv",
    # A day of release means its end, and part of a second makes nothing known earlier.
    f"{SERIES}DGS2,2026-02-12,2026-02-13,4": "DGS2 2026-02-12 2026-02-13 23:59:59 4.0 made.csv",
    f"{SERIES}DGS2,2026-02-12,2026-02-13T22:00:00.001Z,4": (
        "DGS2 2026-02-12 2026-02-13 22:00:01 4.0 made.csv"
    ),
    # A day has one value, whatever its time of day.
    f"{SERIES}VIXCLS,2026-02-12T21:00:00Z,2026-02-13,15": (
        "VIXCLS 2026-02-12 2026-02-13 23:59:59 15.0 made.csv"
    ),
    FACTS
    + FACT: "ACME net_income 2025-10-01 2025-12-31 2026-02-05 21:30:00 1500000000.0 USD made.csv",
}


@pytest.mark.parametrize("text", READ)
def test_a_line_is_a_row(tmp_path: Path, text: str) -> None:
    table = read(tmp_path, text)
    ((*values, known, value, unit, source),) = [
        row if isinstance(row, FactRow) else (*row[:4], "", row.source) for row in table.rows
    ]
    days = [str(word)[:10] if isinstance(word, datetime) else word for word in values]
    words = [*days, f"{known:%Y-%m-%d %H:%M:%S}", str(value), unit, source]
    assert " ".join(filter(None, words)) == READ[text] and not table.faults
    (tmp_path / "made.csv").rename(tmp_path / "fred")
    assert tables.read(tmp_path / "fred").rows[0].source == "file fred", "a file is no publisher"
    with pytest.raises(ConfigError, match=r"made\.csv cannot be read"):
        tables.read(tmp_path / "made.csv")


WRONG_SERIES = """
dgs2,2026-02-12,2026-02-13,4                 write DGS2
MADE,2026-02-12,2026-02-13,4                 torra data lists the names
yield_2y,2026-02-12,2026-02-13,4             such as yield_2y.EUR
yield_2y.USD,2026-02-12,2026-02-13,4         the dollar's is DGS2
DGS2,12.02.2026,2026-02-13,4                 write 2026-02-13
DGS2,2026-02-12,2026-02-13T22:00:00,4        add Z for UTC
DGS2,2026-02-12,,4                           known_at is empty
DGS2,2026-02-12,2026-02-11,4                 before what the value is about
DGS2,0001-01-01,2026-02-11,4                 lies outside of 1900 to 2200
DGS2,2026-02-12,2026-02-13,                  is no number
DGS2,2026-02-12,2026-02-13,nan               is no number
DGS2,2026-02-12,2026-02-13,1_000             is no number
DGS2,2026-02-12,2026-02-13,1e16              is no number
DGS2,2026-02-12,2026-02-13                   it has 3 values, the header 4
DGS2,2026-02-12,2026-02-13T22:00:00Z,42.5    another value of this moment
"""
WRONG_FACTS = """
acme,net_income,2025-10-01,2025-12-31,2026-02-06,1,USD        such as AAPL
ACME,Net Income,2025-10-01,2025-12-31,2026-02-06,1,USD        write net_income
ACME,tips,2025-10-01,2025-12-31,2026-02-06,1,USD              write one of revenue, cost_of_revenue
ACME,net_income,2025-10-01,2025-12-31,2026-02-06,1,US$        such as USD
ACME,net_income,2025-10-01,2025-12-31,2026-02-06,1,shares     such as USD
ACME,net_income,2025-12-01,2025-12-31,2026-02-06,1,USD        a period of 31 days is no quarter
ACME,net_income,2025-12-31,2025-12-31,2026-02-06,1,USD        its first and its last day
ACME,net_income,2026-10-01,2025-12-31,2026-02-06,1,USD        it begins after it ends
ACME,equity,2025-10-01,2025-12-31,2026-02-06,1,USD            that very day twice
ACME,diluted_shares,2025-10-01,2025-12-31,2026-02-06,1,USD    write shares
ACME,diluted_shares,2025-10-01,2025-12-31,2026-02-06,-2,shares no company has so few shares
"""


@pytest.mark.parametrize("row", WRONG_SERIES.strip().split("\n"))
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, row: str) -> None:
    line, _, reason = row.partition("  ")
    found = read(tmp_path, f"{SERIES}{GOOD}\n{line}\n{GOOD}\n")
    assert len(found.rows) == 2
    (fault,) = found.faults
    assert fault.line == 3 and reason.strip() in fault.reason


@pytest.mark.parametrize("row", WRONG_FACTS.strip().split("\n"))
def test_a_figure_that_cannot_be_read_is_named(tmp_path: Path, row: str) -> None:
    line, unit, reason = re.split("(USD|US[$]|shares)(?= )", row, maxsplit=1)
    (fault,) = read(tmp_path, f"{FACTS}{line}{unit}\n").faults
    assert reason.strip() in fault.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "has the columns"),
        (b"date,value\n1,2\n", "a table of series has name, at, known_at, value"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"name,at,known_at,value,value\n", "has the columns"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, text: bytes, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        read(tmp_path, text)


def test_too_long_a_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    with pytest.raises(ConfigError, match="more than 2 lines"):
        read(tmp_path, SERIES + f"{GOOD}\n" * 3)
    monkeypatch.setattr(tables, "MAX_BYTES", 10)
    with pytest.raises(ConfigError, match="is larger than"):
        read(tmp_path, SERIES)

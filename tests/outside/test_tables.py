"""Files of series and of company figures: a value, or a reason with its line."""

from __future__ import annotations

import re
from datetime import UTC, datetime
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


def test_a_series_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, SERIES + GOOD + "\n")
    assert not found.faults
    assert found.rows == (
        SeriesRow(
            "DGS2",
            datetime(2026, 2, 12, tzinfo=UTC),
            datetime(2026, 2, 13, 22, tzinfo=UTC),
            4.25,
            "made.csv",
        ),
    )


def test_a_companys_figure_is_read(tmp_path: Path) -> None:
    (row,) = read(tmp_path, FACTS + FACT).rows
    assert isinstance(row, FactRow)
    assert (row.ticker, row.figure, row.value, row.unit) == ("ACME", "net_income", 1.5e9, "USD")


def test_columns_may_stand_in_any_order_and_a_mark_before_them(tmp_path: Path) -> None:
    text = "\ufeffValue, Name ,known_at,at\n4.25,DGS2,2026-02-13T23:00:00+01:00,2026-02-12\n\n"
    (row,) = read(tmp_path, text).rows
    assert row.value == 4.25
    assert row.known_at == datetime(2026, 2, 13, 22, tzinfo=UTC)


def test_a_day_of_release_means_its_end(tmp_path: Path) -> None:
    (row,) = read(tmp_path, SERIES + "DGS2,2026-02-12,2026-02-13,4.25").rows
    assert row.known_at == datetime(2026, 2, 13, 23, 59, 59, tzinfo=UTC)


def test_a_day_has_one_value_whatever_its_time_of_day(tmp_path: Path) -> None:
    (row,) = read(tmp_path, SERIES + "VIXCLS,2026-02-12T21:00:00Z,2026-02-13,15").rows
    assert isinstance(row, SeriesRow)
    assert row.at == datetime(2026, 2, 12, tzinfo=UTC)


def test_a_file_called_as_a_publisher_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "fred"
    path.write_text(SERIES + GOOD)
    assert tables.read(path).rows[0].source == "file fred"


def test_part_of_a_second_makes_nothing_known_earlier(tmp_path: Path) -> None:
    (row,) = read(tmp_path, SERIES + "DGS2,2026-02-12,2026-02-13T22:00:00.001Z,4.25").rows
    assert row.known_at == datetime(2026, 2, 13, 22, 0, 1, tzinfo=UTC)


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


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.csv cannot be read"):
        tables.read(tmp_path / "none.csv")


def test_too_long_a_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    with pytest.raises(ConfigError, match="more than 2 lines"):
        read(tmp_path, SERIES + f"{GOOD}\n" * 3)
    monkeypatch.setattr(tables, "MAX_BYTES", 10)
    with pytest.raises(ConfigError, match="is larger than"):
        read(tmp_path, SERIES)

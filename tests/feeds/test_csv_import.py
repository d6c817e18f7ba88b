"""MetaTrader exports in all their variants, the broker's clock, and errors that name their line."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torra.config import ROOT
from torra.errors import ConfigError
from torra.feeds import door
from torra.feeds.csv_file import ClockMissing, read_bars
from torra.feeds.protocol import COLUMNS

Write = Callable[..., Path]

ROWS = (
    ("2024.01.02", "00:00:00", "2062.94", "2064.31", "2062.10", "2063.55", "412", "0", "28"),
    ("2024.01.02", "00:15:00", "2063.55", "2063.90", "2061.00", "2061.20", "388", "0", "27"),
    ("2024.01.02", "00:30:00", "2061.20", "2062.00", "2060.75", "2061.99", "301", "0", "28"),
)
HEADER = (
    "<DATE>",
    "<TIME>",
    "<OPEN>",
    "<HIGH>",
    "<LOW>",
    "<CLOSE>",
    "<TICKVOL>",
    "<VOL>",
    "<SPREAD>",
)
VALUES = [
    [2062.94, 2064.31, 2062.10, 2063.55, 412.0],
    [2063.55, 2063.90, 2061.00, 2061.20, 388.0],
    [2061.20, 2062.00, 2060.75, 2061.99, 301.0],
]
MIDNIGHT = datetime(2024, 1, 2, tzinfo=UTC)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(
        rows: tuple[tuple[str, ...], ...],
        separator: str = "\t",
        encoding: str = "utf-8",
        mark: bytes = b"",
        newline: str = "\r\n",
    ) -> Path:
        path = tmp_path / "XAUUSD_M15.csv"
        text = newline.join(separator.join(row) for row in rows) + newline
        path.write_bytes(mark + text.encode(encoding))
        return path

    return put


def without_seconds(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    return tuple((row[0], row[1][:5], *row[2:]) for row in rows)


def one_cell_time(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    return tuple((f"{row[0]} {row[1]}", *row[2:]) for row in rows)


SHIPPED = (
    ("time", "open", "high", "low", "close", "volume"),
    *((f"{r[0].replace('.', '-')}T{r[1]}Z", *r[2:7]) for r in ROWS),
)
VARIANTS = {
    "terminal export": (HEADER, *ROWS),
    "times without seconds": (HEADER, *without_seconds(ROWS)),
    "small letters, no brackets": (tuple(h.strip("<>").lower() for h in HEADER), *ROWS),
    "chart export": without_seconds(ROWS),
    "chart export, date and time in one cell": one_cell_time(ROWS),
    "chart export without volume and spread of a real kind": tuple(row[:7] for row in ROWS),
    "header, date and time in one cell": (("Time", *HEADER[2:]), *one_cell_time(ROWS)),
    "header, datetime": (("datetime", *HEADER[2:]), *one_cell_time(ROWS)),
    "columns in another order": tuple((r[0], r[1], *r[:1:-1]) for r in (HEADER, *ROWS)),
    "dates with dashes": (HEADER, *((r[0].replace(".", "-"), *r[1:]) for r in ROWS)),
    "dates with slashes": (HEADER, *((r[0].replace(".", "/"), *r[1:]) for r in ROWS)),
    "shipped format": SHIPPED,
    "an extra column": tuple((*row, "x") for row in (HEADER, *ROWS)),
}


@pytest.mark.by_day(8)
@pytest.mark.parametrize("separator", ["\t", ",", ";"], ids=["tab", "comma", "semicolon"])
@pytest.mark.parametrize("rows", VARIANTS.values(), ids=VARIANTS)
def test_every_variant_gives_the_same_bars(
    write: Write, rows: tuple[tuple[str, ...], ...], separator: str
) -> None:
    frame = read_bars(write(rows, separator), clock="utc")
    assert frame[list(COLUMNS)].to_numpy().tolist() == VALUES
    assert frame.index.tolist() == [MIDNIGHT + at * timedelta(minutes=15) for at in range(3)]
    # three bars of a file of nobody knows whom tell no point (test_spreads_of_files.py)
    spread = ["spread"] if rows[0][0] == "<DATE>" else []
    assert list(frame.columns) == ["open", "high", "low", "close", "volume", *spread]
    assert frame.index.name == "time"
    assert len(door.check(frame, "M15", as_of=MIDNIGHT + timedelta(minutes=45), minimum=3)) == 3


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-16-le", b""),
        ("utf-16-be", b""),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_encoding_gives_the_same_bars(
    write: Write, encoding: str, mark: bytes, newline: str
) -> None:
    path = write((HEADER, *ROWS), encoding=encoding, mark=mark, newline=newline)
    assert read_bars(path, clock="utc")[list(COLUMNS)].to_numpy().tolist() == VALUES


def test_daily_bars_come_without_a_time_column(write: Write) -> None:
    rows = (
        (HEADER[0], *HEADER[2:]),
        *((f"2024.01.0{at + 2}", *r[2:]) for at, r in enumerate(ROWS)),
    )
    frame = read_bars(write(rows), clock="utc")
    assert frame.index.tolist() == [MIDNIGHT + at * timedelta(days=1) for at in range(3)]
    assert read_bars(write(rows[1:]), clock="utc").index.tolist() == frame.index.tolist()


def test_tick_volume_wins_and_real_volume_serves_where_there_is_no_other(write: Write) -> None:
    def volume(name: str, *rows: str) -> float:
        head = ("time", "open", "high", "low", "close", *name.split())
        row = ("2024.01.02 00:00", "1", "1", "1", "1", *rows)
        return float(read_bars(write((head, row)), clock="utc")["volume"].iloc[0])

    assert volume("<VOL> <TICKVOL>", "0", "412") == 412
    assert volume("volume tick_volume", "7", "412") == 412
    assert volume("real_volume", "9") == 9


def test_numbers_are_read_to_the_last_digit(write: Write) -> None:
    texts = ("1.0523600000000001", "1.0542599999999998", "0.1", "2.675", "144")
    frame = read_bars(write((("2024.01.02 00:00", *texts),)), clock="utc")
    assert frame.iloc[0].tolist() == [float(text) for text in texts]


def test_the_shipped_files_are_read_as_they_are() -> None:
    path = ROOT / "sample_data" / "EURUSD_H1.csv"
    frame = read_bars(path, clock="utc")
    assert len(frame) == 6225
    assert frame.index[0] == datetime(2017, 1, 1, 22, tzinfo=UTC)
    assert frame.iloc[0].tolist() == [1.05236, 1.05253, 1.05221, 1.05227, 144.0]


# --- the broker's clock ---------------------------------------------------------------------------


def opened(write: Write, clock: str, *times: str) -> list[datetime]:
    rows = tuple((time, "1", "1", "1", "1", "1") for time in times)
    return [t.to_pydatetime() for t in read_bars(write(rows, ","), clock=clock).index]


@pytest.mark.parametrize(
    ("server", "utc"),
    [
        ("2026.01.15 12:00", datetime(2026, 1, 15, 10, tzinfo=UTC)),
        ("2026.03.06 23:45", datetime(2026, 3, 6, 21, 45, tzinfo=UTC)),
        ("2026.03.09 00:00", datetime(2026, 3, 8, 21, tzinfo=UTC)),
        ("2026.03.10 12:00", datetime(2026, 3, 10, 9, tzinfo=UTC)),
        ("2026.07.01 12:00", datetime(2026, 7, 1, 9, tzinfo=UTC)),
        ("2026.10.27 12:00", datetime(2026, 10, 27, 9, tzinfo=UTC)),
        ("2026.11.02 00:00", datetime(2026, 11, 1, 22, tzinfo=UTC)),
    ],
)
def test_the_server_follows_the_american_dates(write: Write, server: str, utc: datetime) -> None:
    assert opened(write, "new_york+7", server) == [utc]


def test_fixed_offsets(write: Write) -> None:
    assert opened(write, "+03:00", "2026.01.15 12:00") == [datetime(2026, 1, 15, 9, tzinfo=UTC)]
    assert opened(write, "-05:30", "2026.01.15 12:00") == [
        datetime(2026, 1, 15, 17, 30, tzinfo=UTC)
    ]


@pytest.mark.journey
@settings(max_examples=80, deadline=None)
@given(st.integers(0, 20 * 365 * 96))
def test_every_quarter_hour_of_twenty_years_comes_back(
    tmp_path_factory: pytest.TempPathFactory, quarter: int
) -> None:
    moment = datetime(2010, 1, 1, tzinfo=UTC) + quarter * timedelta(minutes=15)
    wall = moment.astimezone(ZoneInfo("America/New_York"))
    if wall.fold:
        return
    server = wall.replace(tzinfo=None) + timedelta(hours=7)
    path = tmp_path_factory.getbasetemp() / "one.csv"
    path.write_text(f"{server:%Y.%m.%d %H:%M},1,1,1,1,1\n")
    assert read_bars(path, clock="new_york+7").index[0] == moment


def test_the_hour_that_comes_twice_in_autumn(write: Write) -> None:
    quarters = [f"2026.11.01 08:{m:02}" for m in (0, 15, 30, 45)]
    twice = opened(
        write, "new_york+7", "2026.11.01 07:45", *quarters, *quarters, "2026.11.01 09:00"
    )
    start = datetime(2026, 11, 1, 4, 45, tzinfo=UTC)
    assert twice == [start + at * timedelta(minutes=15) for at in range(10)]


def test_an_hour_that_could_come_twice_but_stands_there_once_is_the_first(write: Write) -> None:
    assert opened(write, "new_york+7", "2026.11.01 08:30") == [
        datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    ]


def test_the_hour_that_does_not_exist_in_spring_is_refused(write: Write) -> None:
    assert opened(write, "new_york+7", "2026.03.08 08:45", "2026.03.08 10:00") == [
        datetime(2026, 3, 8, 6, 45, tzinfo=UTC),
        datetime(2026, 3, 8, 7, tzinfo=UTC),
    ]
    with pytest.raises(ConfigError, match=r"M15\.csv, line 2: .*09:00.*does not exist.*clock"):
        opened(write, "new_york+7", "2026.03.08 08:45", "2026.03.08 09:00")


def test_times_with_a_zone_are_taken_at_their_word(write: Write) -> None:
    assert opened(write, "utc", "2024-01-02T02:00:00+02:00") == [MIDNIGHT]
    with pytest.raises(ConfigError, match=r"line 1: .*zone Z; use clock utc"):
        opened(write, "new_york+7", "2024-01-02T02:00:00Z")
    with pytest.raises(ConfigError, match=r"line 2: the time has no zone"):
        opened(write, "utc", "2024-01-02T02:00:00Z", "2024-01-02T02:15:00")


def test_the_offsets_that_were_used_are_recorded(write: Write) -> None:
    def offsets(clock: str, *times: str) -> object:
        rows = tuple((time, "1", "1", "1", "1", "1") for time in times)
        frame = read_bars(write(rows), clock=clock)
        assert frame.attrs["clock"] == clock
        return frame.attrs["utc_offsets"]

    assert offsets("new_york+7", "2026.03.06 12:00", "2026.03.10 12:00") == ("+02:00", "+03:00")
    assert offsets("-05:30", "2026.03.06 12:00") == ("-05:30",)
    assert offsets("utc", "2026.03.06 12:00") == ("+00:00",)


@pytest.mark.parametrize(
    "clock", ["", "UTC+3", "+3", "+15:00", "+03:60", "Europe/Atlantis", "new york+7"]
)
def test_an_unknown_clock_names_the_known_ones(write: Write, clock: str) -> None:
    with pytest.raises(ConfigError, match=r"use utc, new_york\+7, .* such as Europe/Athens"):
        read_bars(write(ROWS), clock=clock)


@pytest.mark.parametrize(
    ("server", "utc"),
    [
        ("2026.03.10 12:00", datetime(2026, 3, 10, 10, tzinfo=UTC)),  # New York is a week ahead
        ("2026.03.30 12:00", datetime(2026, 3, 30, 9, tzinfo=UTC)),
        ("2026.10.27 12:00", datetime(2026, 10, 27, 10, tzinfo=UTC)),
        ("2026.01.15 12:00", datetime(2026, 1, 15, 10, tzinfo=UTC)),
    ],
)
def test_an_export_in_eastern_european_time_follows_the_european_dates(
    write: Write, server: str, utc: datetime
) -> None:
    assert opened(write, "Europe/Athens", server) == [utc]


def test_an_hour_that_a_zone_skips_is_refused_by_its_name(write: Write) -> None:
    with pytest.raises(ConfigError, match=r"03:30.*does not exist on a server of Europe/Athens"):
        opened(write, "Europe/Athens", "2026.03.29 03:30")


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_an_export_with_metatraders_header_demands_a_clock(write: Write, newline: str) -> None:
    path = write((HEADER, *ROWS), newline=newline)
    with pytest.raises(ConfigError) as caught:
        read_bars(path, clock=None)
    told = str(caught.value)
    assert told.count("\n") == 0
    assert "XAUUSD_M15.csv" in told
    for words in ("--clock", "utc, new_york+7", "+03:00", "Europe/Athens"):
        assert words in told
    assert read_bars(path, clock="utc").index[0] == MIDNIGHT


@pytest.mark.parametrize("name", ["chart export", "small letters, no brackets"])
def test_what_is_written_as_metatrader_writes_demands_a_clock(write: Write, name: str) -> None:
    with pytest.raises(ClockMissing, match="--clock"):
        read_bars(write(VARIANTS[name]), clock=None)


@pytest.mark.parametrize("zone", ["Z", ""])
def test_iso_times_are_utc_where_nothing_is_said(write: Write, zone: str) -> None:
    rows = tuple((row[0].replace("Z", zone), *row[1:]) for row in SHIPPED)
    frame = read_bars(write(rows), clock=None)
    assert frame.index[0] == MIDNIGHT
    assert frame.attrs["clock"] == "utc"


# --- errors ---------------------------------------------------------------------------------------


def changed(row: int, column: int, cell: str) -> tuple[tuple[str, ...], ...]:
    rows = [list(r) for r in (HEADER, *ROWS)]
    rows[row][column] = cell
    return tuple(tuple(r) for r in rows)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (changed(2, 5, "none"), r"M15\.csv, line 3: close is 'none', not a number; .* with a dot"),
        (changed(3, 3, "2064,31"), r"line 4: high is '2064,31'"),
        (changed(1, 2, ""), r"line 2: open is ''"),
        (changed(1, 2, "nan"), r"line 2: open is 'nan'"),
        (changed(1, 2, "inf"), r"line 2: open is 'inf'"),
        (
            changed(2, 0, "02.01.2024"),
            r"line 3: '02\.01\.2024 00:15:00' is not a time; write it like",
        ),
        (changed(3, 0, "2024.13.02"), r"line 4: .* is not a time"),
        (changed(3, 1, "25:00:00"), r"line 4: .* is not a time"),
        (
            changed(0, 5, "<LAST>"),
            r"csv needs time, open, high, low, close; found date, time, open, high, low, "
            r"last, tickvol, vol, spread: export bars, or name its columns so",
        ),
        (changed(0, 0, "<DAY>"), r"line 2: '00:00:00' is not a time"),
        (changed(0, 6, "<OPEN>"), r"has the column open twice"),
        ((HEADER,), r"holds no bars"),
        ((HEADER, *ROWS, ROWS[0][:4]), r"line 5: "),
        (
            (HEADER, ROWS[0], (*ROWS[1], "1"), ROWS[2]),
            r"line 3: 10 cells .* first line has 9; mend",
        ),
        ((HEADER, ROWS[0], ("",), ROWS[1]), r"line 3: '' is not a time"),
        ((("",), ("",), HEADER, ROWS[0], ("x", *ROWS[1][1:])), r"line 5: "),
        (tuple(row[:5] for row in ROWS), r"close; found no header and 5 cells: export"),
        (
            (("<DATE>", "<TIME>", "<BID>", "<ASK>"), ("2024.01.02", "00:00", "1", "2")),
            r"holds ticks",
        ),
        ((("hello",), ("world",)), r"needs time, .*; found hello: export bars"),
        ((("bid only",),), r"needs time, .*; found bid only: export bars"),
    ],
)
@pytest.mark.parametrize("separator", ["\t", ";"])
def test_an_error_names_file_line_and_remedy(
    write: Write, rows: tuple[tuple[str, ...], ...], message: str, separator: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        read_bars(write(rows, separator), clock="utc")
    assert "XAUUSD_M15.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty"),
        (b"\r\n\r\n", "is empty"),
        (codecs.BOM_UTF16_LE, "is empty"),
        (b"\xff\x00\x81 \xfe", "not text"),
        (bytes(range(256)) * 4, "not text"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "bars.csv"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=message):
        read_bars(path, clock="utc")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*gone\.csv"):
        read_bars(tmp_path / "gone.csv", clock="utc")
    with pytest.raises(ConfigError, match="cannot read"):
        read_bars(tmp_path, clock="utc")


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_file_raises_anything_but_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(raw)
    with pytest.raises(ConfigError):
        read_bars(path, clock="new_york+7")


@pytest.mark.journey
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 250), st.sampled_from(list("\t;,\n\r\0x-9.\"'<")), st.booleans())
def test_a_damaged_export_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, letter: str, insert: bool
) -> None:
    text = "\n".join("\t".join(row) for row in (HEADER, *ROWS))
    damaged = text[:at] + letter + text[at + (not insert) :]
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    path.write_text(damaged, newline="")
    try:
        frame = read_bars(path, clock="utc")
    except ConfigError:
        return
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) <= 4

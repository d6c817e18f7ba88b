"""Reads tables of outside numbers that a person brings: series.csv, facts.csv, publishers' files.

    series.csv   name, at, known_at, value
    facts.csv    ticker, figure, begins, ends, known_at, value, unit

A series also comes as its publisher writes it: PUBLIC has the shapes, told by their columns. There
`known_at` follows from the publisher's rule (torra.outside.releases), and a hole, as publishers
write one, is no value and no fault: it is counted.

`read` never raises for what stands in a file: a line that cannot be read is a fault with its number
and the reason, and the others are rows. A file that cannot be read at all, has no such columns or
more than MAX_ROWS lines raises ConfigError. `known_at` is when the public could know the value; a
day there means its last second in UTC, so that nothing is known too early. A time of day without a
zone is refused. docs/outside.md has the names.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from torra.errors import ConfigError
from torra.evidence.company_facts import ANNUAL, FIGURES, TO_DATE, days
from torra.evidence.outside_numbers import (
    FRED,
    SERIES,
    FactRow,
    SeriesRow,
    kind_of_source,
    series_of,
)
from torra.outside.releases import fred_known_at
from torra.regular_files import read_regular
from torra.trading_terms import TICKER

MAX_BYTES: Final = 64_000_000
MAX_ROWS: Final = 500_000
"""A file above either is no table of outside numbers."""

SHOWN: Final = 40
"""Characters of a wrong value that a fault quotes."""

LARGEST: Final = 1e15
"""No figure of a market or a company is larger."""

FIRST_DAY: Final = date(1900, 1, 1)
LAST_DAY: Final = date(2200, 1, 1)

SERIES_COLUMNS: Final = ("name", "at", "known_at", "value")
FACT_COLUMNS: Final = ("ticker", "figure", "begins", "ends", "known_at", "value", "unit")

UNITS: Final = {"money": re.compile("[A-Z]{3}"), "shares": re.compile("shares")}
"""The unit of a figure, by its kind."""

Row = TypeVar("Row", SeriesRow, FactRow)

HOLES: Final = frozenset(("", ".", "-", "nan", "null", "none", "nd", "na", "n/a", "#n/a"))
"""What publishers write where there is no value, in small letters."""

US_DAY: Final = "%m/%d/%Y"
MILLISECONDS: Final = re.compile(r"\d{13}", re.ASCII)


class PublicShape(NamedTuple):
    """How a publisher writes series: the column of the day, and which column is which series.

    A series "" is the one that the user names. `scale` makes Torra's unit of the publisher's. A
    file has the shape that has all of its columns; of a `loose` one, any.
    """

    name: str
    day: str
    series: Mapping[str, str]
    scale: float = 1.0
    loose: bool = False

    def of(self, header: tuple[str, ...]) -> Mapping[str, str]:
        """Return which columns of a file are which series; none for a file of another shape."""
        columns = {column: self.series[column] for column in header if column in self.series}
        whole = self.loose or len(columns) == len(self.series)
        return columns if whole and self.day in header else {}


_OF_FRED: Final = {name.lower(): name for name in FRED}
PUBLIC: Final = (
    PublicShape("FRED", "observation_date", _OF_FRED, loose=True),
    PublicShape("FRED", "date", _OF_FRED, loose=True),
    PublicShape("US Treasury, yields", "date", {"2 yr": "DGS2", "10 yr": "DGS10"}),
    PublicShape("US Treasury, real yields", "date", {"5 yr": "", "10 yr": "DFII10"}),
    PublicShape("Binance, funding rates", "calc_time", {"last_funding_rate": ""}, 100.0),
    PublicShape("ECB Data Portal", "time_period", {"obs_value": ""}),
    PublicShape("a day and its close", "date", {"close": ""}),
)
"""The first that a file has counts. Yahoo, Stooq and Cboe write a day and its close."""


class Fault(NamedTuple):
    """A line that cannot be read: its number, counted from 1 with the header, and why."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ParsedTable(Generic[Row]):
    """What a file holds: the rows that can be read, and the lines that cannot."""

    rows: tuple[Row, ...]
    faults: tuple[Fault, ...]
    shape: str = ""
    """The publisher's shape, "" of a table that states `known_at`."""

    holes: int = 0


class _Wrong(Exception):
    """Raised for a value that cannot be taken, with the reason."""


def read(path: Path, name: str = "") -> ParsedTable[SeriesRow] | ParsedTable[FactRow]:
    """Return what a file of series or facts holds, told apart by its header.

    `name` says which series a publisher's file is, where its columns do not, or which one of it is
    wanted.
    """
    try:
        held = read_regular(path, MAX_BYTES + 1)
        text = held.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: save it as CSV in UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(held) > MAX_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_BYTES // 1_000_000} MB: split it")
    first, *lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    try:
        header = tuple(name.strip().lower() for name in _cells(first))
    except _Wrong as wrong:
        raise ConfigError(f"{path}: its first line cannot be read: {wrong}") from wrong
    if len(lines) > MAX_ROWS:
        raise ConfigError(f"{path} has more than {MAX_ROWS:,} lines: split it")
    if sorted(header) == sorted(SERIES_COLUMNS):
        return _read(path, lines, header, lambda *row: [_series(*row)])
    if sorted(header) == sorted(FACT_COLUMNS):
        return _read(path, lines, header, lambda *row: [_fact(*row)])
    for shape in PUBLIC:
        if columns := shape.of(header):
            public = _PublicRows(shape, _series_columns(path, shape, columns, name))
            table = _read(path, lines, header, public.rows)
            return replace(table, shape=shape.name, holes=public.holes)
    raise ConfigError(
        f"{path} has the columns {_quoted(', '.join(header))}; a table of series has "
        f"{', '.join(SERIES_COLUMNS)}, one of a company's figures {', '.join(FACT_COLUMNS)}; "
        f"of publishers: {'; '.join(dict.fromkeys(shape.name for shape in PUBLIC))}"
    )


def _series_columns(
    path: Path, shape: PublicShape, columns: Mapping[str, str], name: str
) -> Mapping[str, str]:
    """Return the columns that are read with the names of their series; raises ConfigError."""
    named = {column: series for column, series in columns.items() if series}
    if not name and named:
        return named
    if not name:
        raise ConfigError(
            f"{path}, {shape.name}, does not say which series it is: add --name, such as --name "
            "VIXCLS (docs/outside.md has the names)"
        )
    key = name if named else ""
    chosen = {column: name for column, series in columns.items() if series == key}
    if series_of(name) is None or not chosen:
        raise ConfigError(
            f"{path}, {shape.name}, has no {_quoted(name)}"
            + (f", but {', '.join(named.values())}" if named else f"; {_near(name)}")
        )
    return chosen


class _PublicRows:
    """Makes rows of a publisher's lines, and counts the holes."""

    def __init__(self, shape: PublicShape, columns: Mapping[str, str]) -> None:
        self._shape, self._columns = shape, columns
        self.holes = 0

    def rows(self, cells: Mapping[str, str], source: str) -> list[SeriesRow]:
        """Return the rows of a line; raises _Wrong."""
        day = cells[self._shape.day]
        about = _public_moment(day)
        at = about.replace(hour=0, minute=0, second=0, microsecond=0)
        rows = []
        for column, name in self._columns.items():
            if cells[column].lower() in HOLES:
                self.holes += 1
                continue
            known = about if MILLISECONDS.fullmatch(day) else fred_known_at(name, at.date())
            value = round(_number(cells[column]) * self._shape.scale, 12)
            rows.append(SeriesRow(name, at, known, value, source))
        return rows


def _public_moment(text: str) -> datetime:
    """Return the moment of a publisher's day, or of the milliseconds since 1970."""
    try:
        if MILLISECONDS.fullmatch(text):
            return datetime.fromtimestamp(-(-int(text) // 1000), UTC)
        if "/" in text:
            text = datetime.strptime(text, US_DAY).date().isoformat()  # noqa: DTZ007  a day
    except ValueError as error:
        raise _Wrong(f"{_quoted(text)} is no day of the form 02/13/2026") from error
    return _begin("the day", text)


def _read(
    path: Path,
    lines: Iterable[str],
    header: tuple[str, ...],
    make: Callable[[Mapping[str, str], str], Sequence[Row]],
) -> ParsedTable[Row]:
    rows, faults = [], []
    said: dict[tuple[object, ...], float] = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip(" \t,"):
            continue
        try:
            for row in make(_by_name(header, _cells(line)), _source(path)):
                _once(said, row)
                rows.append(row)
        except _Wrong as wrong:
            faults.append(Fault(number, str(wrong)))
    return ParsedTable(tuple(rows), tuple(faults))


def _source(path: Path) -> str:
    """Return what a file is called as a source: not as a publisher is."""
    return path.name if kind_of_source(path.name) == "file" else f"file {path.name}"


def _once(said: dict[tuple[object, ...], float], row: SeriesRow | FactRow) -> None:
    """Refuse a second value of the same thing and the same moment."""
    key = (row[:3] if isinstance(row, SeriesRow) else row[:5],)
    if said.setdefault(key, row.value) != row.value:
        raise _Wrong(
            "another line has another value of this moment: give the later one its own known_at"
        )


def _cells(line: str) -> list[str]:
    """Return the values of one line: a stray quotation mark must not swallow those after it."""
    try:
        return next(csv.reader([line.replace("\0", "\N{REPLACEMENT CHARACTER}")]), [])
    except csv.Error as error:
        raise _Wrong(f"it cannot be read as CSV ({error})") from error


def _by_name(header: tuple[str, ...], cells: list[str]) -> Mapping[str, str]:
    if len(cells) != len(header):
        raise _Wrong(f"it has {len(cells)} values, the header {len(header)}")
    return dict(zip(header, (cell.strip() for cell in cells), strict=True))


def _series(told: Mapping[str, str], source: str) -> SeriesRow:
    name = told["name"]
    if series_of(name) is None:
        raise _Wrong(f"name {_quoted(name)} is no series; {_near(name)}")
    about = _begin("at", told["at"])
    # A day has one value, whatever time of day a file gives it.
    at = about.replace(hour=0, minute=0, second=0, microsecond=0)
    return SeriesRow(name, at, _known(told["known_at"], about), _number(told["value"]), source)


def _fact(told: Mapping[str, str], source: str) -> FactRow:
    if not TICKER.fullmatch(told["ticker"]):
        raise _Wrong(
            f"ticker {_quoted(told['ticker'])} cannot be taken: capital letters, digits and "
            ". : _ -, such as AAPL"
        )
    figure = FIGURES.get(told["figure"])
    if figure is None:
        raise _Wrong(f"figure {_quoted(told['figure'])} is none: {_near_figure(told['figure'])}")
    if not UNITS[figure.unit].fullmatch(told["unit"]):
        wanted = "a currency, such as USD" if figure.unit == "money" else "shares"
        raise _Wrong(f"unit {_quoted(told['unit'])} cannot be taken: write {wanted}")
    begins, ends = _day("begins", told["begins"]), _day("ends", told["ends"])
    if begins > ends:
        raise _Wrong("it begins after it ends")
    if (begins == ends) is not (figure.over == "day"):
        wanted = "that very day twice" if figure.over == "day" else "its first and its last day"
        raise _Wrong(f"{told['figure']} is of a {figure.over}: as begins and ends write {wanted}")
    length = days((begins.date(), ends.date()))
    if figure.over == "period" and length not in ANNUAL and length not in TO_DATE:
        raise _Wrong(
            f"a period of {length} days is no quarter, half, nine months or year: no year can be "
            "made of it"
        )
    known, value = _known(told["known_at"], ends), _number(told["value"])
    if figure.unit == "shares" and value <= 0.0:
        raise _Wrong("no company has so few shares")
    return FactRow(told["ticker"], told["figure"], begins, ends, known, value, told["unit"], source)


def _near_figure(name: str) -> str:
    """Return what a wrong figure may have meant, else all of them."""
    like = difflib.get_close_matches(name.lower(), FIGURES, 1)
    return f"write {like[0]}" if like else f"write one of {', '.join(FIGURES)}"


def _near(name: str) -> str:
    """Return what a wrong name may have meant, or where the names stand."""
    stem = name.rpartition(".")[0] or name
    found = SERIES.get(name) or SERIES.get(stem)
    if found is not None and found.own == "currency":
        if name.endswith(".USD"):
            return "the dollar's is DGS2"
        return f"write the currency after it, such as {name.partition('.')[0]}.EUR"
    like = [known for known in SERIES if known.lower() == name.lower()]
    return f"write {like[0]}" if like else "torra data lists the names"


def _moment(column: str, text: str) -> datetime | date:
    try:
        day = date.fromisoformat(text) if len(text) <= len("2026-01-01") else None
        found = day or datetime.fromisoformat(text)
    except ValueError as error:
        raise _Wrong(
            f"{column} {_quoted(text)} is no time: write 2026-02-13 or 2026-02-13T21:00:00Z"
        ) from error
    if isinstance(found, datetime):
        if found.tzinfo is None:
            raise _Wrong(f"{column} {_quoted(text)} has no zone: add Z for UTC, or +01:00")
        try:
            found = found.astimezone(UTC)
        except OverflowError as error:
            raise _Wrong(f"{column} {_quoted(text)} lies outside of all time") from error
    plain = found.date() if isinstance(found, datetime) else found
    if not FIRST_DAY <= plain <= LAST_DAY:
        raise _Wrong(
            f"{column} {_quoted(text)} lies outside of {FIRST_DAY.year} to {LAST_DAY.year}"
        )
    return found


def _day(column: str, text: str) -> datetime:
    return _begin(column, text).replace(hour=0, minute=0, second=0, microsecond=0)


def _begin(column: str, text: str) -> datetime:
    found = _moment(column, text)
    return found if isinstance(found, datetime) else datetime.combine(found, time(), UTC)


def _known(text: str, about: datetime) -> datetime:
    if not text:
        raise _Wrong("known_at is empty: a value without the moment of its release is no evidence")
    found = _moment("known_at", text)
    if not isinstance(found, datetime):
        found = datetime.combine(found, time(), UTC) + timedelta(days=1, seconds=-1)
    if found < about:
        raise _Wrong("known_at lies before what the value is about")
    return found.replace(microsecond=0) + timedelta(seconds=bool(found.microsecond))


def _number(text: str) -> float:
    # Python would read 1_000 and full-width digits as well.
    plain = text.isascii() and "_" not in text
    try:
        found = float(text) if plain else math.nan
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or abs(found) > LARGEST:
        raise _Wrong(f"value {_quoted(text)} is no number: write digits with a point, such as 4.25")
    return found


def _quoted(text: str) -> str:
    cut = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    return ascii(cut)

"""Reads tables of outside numbers that a person brings: series.csv, facts.csv, publishers' files.

    series.csv   name, at, known_at, value
    facts.csv    ticker, figure, begins, ends, known_at, value, unit

A series also comes as its publisher writes it: PUBLIC has the shapes, told by their columns. There
`known_at` follows from the publisher's rule (torra.outside.releases), and a hole, as publishers
write one, is no value and no fault: it is counted.

`read` never raises for the contents of a line: a line that cannot be read is a fault with its
number and the reason, and the others are rows. A file that cannot be read at all, has no such
columns or more than MAX_ROWS lines raises ConfigError. `known_at` is when the public could know the
value; a day there means its last second in UTC, so that nothing is known too early. A time of day
without a zone is refused. docs/outside.md has the names.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Final, Generic, NamedTuple

from agents.features import rows_of
from torra.errors import ConfigError
from torra.evidence.company_facts import ANNUAL, FIGURES, TO_DATE, days
from torra.evidence.outside_numbers import (
    FRED,
    SERIES,
    FactRow,
    Row,
    SeriesRow,
    kind_of_source,
    series_of,
)
from torra.outside.answers import FIRST_DAY, LARGEST, LAST_DAY
from torra.outside.releases import fred_known_at
from torra.regular_files import read_regular
from torra.trading_terms import TICKER

MAX_BYTES: Final = 64_000_000
MAX_ROWS: Final = 500_000
"""A file above either is no table of outside numbers."""

SHOWN: Final = 40
"""Characters of a wrong value that a fault quotes."""

SERIES_COLUMNS: Final = ("name", "at", "known_at", "value")
FACT_COLUMNS: Final = ("ticker", "figure", "begins", "ends", "known_at", "value", "unit")

UNITS: Final = {
    "money": (re.compile("[A-Z]{3}"), "a currency, such as USD"),
    "shares": (re.compile("shares"), "shares"),
}
"""The unit of a figure by its kind, and its words."""

HOLES: Final = frozenset(("", ".", "-", "nan", "null", "none", "nd", "na", "n/a", "#n/a"))
"""What publishers write where there is no value, in small letters."""

US_DAY: Final = "%m/%d/%Y"
MILLISECONDS: Final = re.compile(r"\d{13}", re.ASCII)
NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

Line = Mapping[str, str]
"""The values of a line by their columns."""


PUBLIC: Final = rows_of(Path(__file__).with_name("series_shapes.csv"))
"""How publishers write series: the column of the day, and which column is which series.

A file has the first shape whose columns it has all; without columns, any of FRED's series. A series
"" is the one that the user names. `scale` makes Torra's unit of the publisher's. Yahoo, Stooq and
Cboe write a day and its close.
"""


class Fault(NamedTuple):
    """A line that cannot be read: its number, counted from 1 with the header, and why."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ParsedTable(Generic[Row]):
    """The contents of a file: the rows that can be read, and the lines that cannot."""

    rows: tuple[Row, ...]
    faults: tuple[Fault, ...]
    shape: str = ""
    """The publisher's shape, "" of a table that states `known_at`."""

    holes: int = 0


def read(path: Path, name: str = "") -> ParsedTable[SeriesRow] | ParsedTable[FactRow]:
    """Return the contents of a file of series or facts, recognised by its header.

    `name` says which series a publisher's file is, where its columns do not, or which one of it is
    wanted.
    """
    try:
        raw = read_regular(path, MAX_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: save it as CSV in UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_BYTES // 1_000_000} MB: split it")
    first, *lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(lines) > MAX_ROWS:
        raise ConfigError(f"{path} has more than {MAX_ROWS:,} lines: split it")
    try:
        header = [column.lower() for column in _cells(first)]
    except ValueError as error:
        raise ConfigError(f"{path}: its first line cannot be read: {error}") from error
    # A file is not called as a publisher is.
    source = path.name if kind_of_source(path.name) == "file" else f"file {path.name}"
    if sorted(header) == sorted(SERIES_COLUMNS):
        return _parsed(lines, header, partial(_series, source))
    if sorted(header) == sorted(FACT_COLUMNS):
        return _parsed(lines, header, partial(_fact, source))
    for shape in PUBLIC:
        if columns := _columns(shape, header):
            wanted = _wanted(path, shape["name"], columns, name)
            return _parsed(lines, header, partial(_public, source, shape, wanted), shape["name"])
    raise ConfigError(
        f"{path} has the columns {_quoted(', '.join(header))}; a table of series has "
        f"{', '.join(SERIES_COLUMNS)}, one of a company's figures {', '.join(FACT_COLUMNS)}; "
        f"of publishers: {'; '.join(dict.fromkeys(shape['name'] for shape in PUBLIC))}"
    )


def _parsed(
    lines: Iterable[str],
    header: list[str],
    parse: Callable[[Line], Iterable[Row | None]],
    shape: str = "",
) -> ParsedTable[Row]:
    """Return the rows of all lines; `parse` yields None for a hole and raises ValueError."""
    rows: list[Row] = []
    faults: list[Fault] = []
    values: dict[tuple[object, ...], float] = {}
    holes = 0
    for number, line in enumerate(lines, start=2):
        if not line.strip(" \t,"):
            continue
        try:
            cells = _cells(line)
            if len(cells) != len(header):
                raise ValueError(f"it has {len(cells)} values, the header {len(header)}")  # noqa: TRY301
            for row in parse(dict(zip(header, cells, strict=True))):
                if row is None:
                    holes += 1
                    continue
                key = row[:3] if isinstance(row, SeriesRow) else row[:5]
                if values.setdefault(key, row.value) != row.value:
                    raise ValueError(  # noqa: TRY301
                        "another line has another value of this moment: give the later one its "
                        "own known_at"
                    )
                rows.append(row)
        except ValueError as error:
            faults.append(Fault(number, str(error)))
    return ParsedTable(tuple(rows), tuple(faults), shape, holes)


def _cells(line: str) -> list[str]:
    """Return the values of one line: a stray quotation mark must not swallow those after it."""
    try:
        cells = next(csv.reader([line.replace("\0", "\N{REPLACEMENT CHARACTER}")]), [])
    except csv.Error as error:
        raise ValueError(f"it cannot be read as CSV ({error})") from error
    return [cell.strip() for cell in cells]


# --- a publisher's file ---------------------------------------------------------------------------


def _columns(shape: Mapping[str, str], header: list[str]) -> Mapping[str, str]:
    """Return which columns of a file are which series; none for a file of another shape."""
    series = {name.lower(): name for name in FRED}
    if shape["columns"]:
        pairs = zip(shape["columns"].split("|"), shape["series"].split("|"), strict=True)
        series = dict(pairs)
    columns = {column: series[column] for column in header if column in series}
    whole = not shape["columns"] or len(columns) == len(series)
    return columns if whole and shape["day"] in header else {}


def _wanted(path: Path, shape: str, columns: Mapping[str, str], name: str) -> Mapping[str, str]:
    """Return the columns that are read with the names of their series; raises ConfigError."""
    named = {column: series for column, series in columns.items() if series}
    if not name and named:
        return named
    if not name:
        raise ConfigError(
            f"{path}, {shape}, does not say which series it is: add --name, such as --name "
            "VIXCLS (docs/outside.md has the names)"
        )
    key = name if named else ""
    chosen = {column: name for column, series in columns.items() if series == key}
    if series_of(name) is None or not chosen:
        others = f", but {', '.join(named.values())}" if named else f"; {_near(name)}"
        raise ConfigError(f"{path}, {shape}, has no {_quoted(name)}{others}")
    return chosen


def _public(
    source: str, shape: Mapping[str, str], columns: Mapping[str, str], line: Line
) -> Iterator[SeriesRow | None]:
    text = line[shape["day"]]
    by_millisecond = MILLISECONDS.fullmatch(text) is not None
    if by_millisecond:
        about = datetime.fromtimestamp(-(-int(text) // 1000), UTC)
    else:
        try:
            if "/" in text:
                text = datetime.strptime(text, US_DAY).date().isoformat()  # noqa: DTZ007 - a day
        except ValueError as error:
            raise ValueError(f"{_quoted(text)} is no day of the form 02/13/2026") from error
        about = _moment("the day", text)
    for column, name in columns.items():
        if line[column].lower() in HOLES:
            yield None
            continue
        known = about if by_millisecond else fred_known_at(name, about.date())
        value = round(_number(line[column]) * float(shape["scale"]), 12)
        yield SeriesRow(name, _midnight(about), known, value, source)


# --- a table of one's own -------------------------------------------------------------------------


def _series(source: str, line: Line) -> Iterator[SeriesRow]:
    name = line["name"]
    if series_of(name) is None:
        raise ValueError(f"name {_quoted(name)} is no series; {_near(name)}")
    about = _moment("at", line["at"])
    # A day has one value, whatever time of day a file gives it.
    at, known = _midnight(about), _known(line["known_at"], about)
    yield SeriesRow(name, at, known, _number(line["value"]), source)


def _fact(source: str, line: Line) -> Iterator[FactRow]:
    ticker, name, unit = line["ticker"], line["figure"], line["unit"]
    if not TICKER.fullmatch(ticker):
        raise ValueError(
            f"ticker {_quoted(ticker)} cannot be taken: capital letters, digits and . : _ -, such "
            "as AAPL"
        )
    figure = FIGURES.get(name)
    if figure is None:
        like = difflib.get_close_matches(name.lower(), FIGURES, 1)
        remedy = f"write {like[0]}" if like else f"write one of {', '.join(FIGURES)}"
        raise ValueError(f"figure {_quoted(name)} is none: {remedy}")
    form, words = UNITS[figure.unit]
    if not form.fullmatch(unit):
        raise ValueError(f"unit {_quoted(unit)} cannot be taken: write {words}")
    begins, ends = (_midnight(_moment(column, line[column])) for column in ("begins", "ends"))
    if begins > ends:
        raise ValueError("it begins after it ends")
    if (begins == ends) is not (figure.over == "day"):
        wanted = "that very day twice" if figure.over == "day" else "its first and its last day"
        raise ValueError(f"{name} is of a {figure.over}: as begins and ends write {wanted}")
    length = days((begins.date(), ends.date()))
    if figure.over == "period" and length not in ANNUAL and length not in TO_DATE:
        raise ValueError(
            f"a period of {length} days is no quarter, half, nine months or year: no year can be "
            "made of it"
        )
    known, value = _known(line["known_at"], ends), _number(line["value"])
    if figure.unit == "shares" and value <= 0.0:
        raise ValueError("no company has so few shares")
    yield FactRow(ticker, name, begins, ends, known, value, unit, source)


def _near(name: str) -> str:
    """Return what a wrong name may have meant, or where the names stand."""
    series = SERIES.get(name) or SERIES.get(name.rpartition(".")[0])
    if series is not None and series.own == "currency":
        if name.endswith(".USD"):
            return "the dollar's is DGS2"
        return f"write the currency after it, such as {name.partition('.')[0]}.EUR"
    like = [known for known in SERIES if known.lower() == name.lower()]
    return f"write {like[0]}" if like else "torra data lists the names"


def _moment(column: str, text: str) -> datetime:
    """Return a moment in UTC, of a day its midnight; raises ValueError."""
    try:
        day = date.fromisoformat(text) if _is_day(text) else None
        moment = datetime.combine(day, time(), UTC) if day else datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(
            f"{column} {_quoted(text)} is no time: write 2026-02-13 or 2026-02-13T21:00:00Z"
        ) from error
    if moment.tzinfo is None:
        raise ValueError(f"{column} {_quoted(text)} has no zone: add Z for UTC, or +01:00")
    # A year's room for the zone: at the ends of all time it has none.
    within = FIRST_DAY.year <= moment.year <= LAST_DAY.year
    if not within or not FIRST_DAY <= moment.astimezone(UTC).date() <= LAST_DAY:
        raise ValueError(
            f"{column} {_quoted(text)} lies outside of {FIRST_DAY.year} to {LAST_DAY.year}"
        )
    return moment.astimezone(UTC)


def _is_day(text: str) -> bool:
    return len(text) <= len("2026-01-01")


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time(), UTC)


def _known(text: str, about: datetime) -> datetime:
    if not text:
        raise ValueError(
            "known_at is empty: a value without the moment of its release is no evidence"
        )
    known = _moment("known_at", text)
    if _is_day(text):
        known += timedelta(days=1, seconds=-1)
    if known < about:
        raise ValueError("known_at lies before what the value is about")
    return known.replace(microsecond=0) + timedelta(seconds=bool(known.microsecond))


def _number(text: str) -> float:
    if not NUMBER.fullmatch(text) or not -LARGEST <= (number := float(text)) <= LARGEST:
        raise ValueError(
            f"value {_quoted(text)} is no number: write digits with a point, such as 4.25"
        )
    return number


def _quoted(text: str) -> str:
    return ascii(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")

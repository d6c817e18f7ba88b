"""Reads bars from a file as the world writes it, by the shape of its head and of its times.

Among the shapes are MetaTrader 5's exports with and without brackets and its chart's "Save as", the
MetaTrader5 package, TradingView, Binance, Dukascopy, HistData, pandas, and
`time,open,high,low,close,volume`. The text is UTF-8 or UTF-16, plain, gzip or a zip of one file,
with tabs, commas or semicolons, with or without quotation marks. A file without a volume has a
volume of 0. What cannot be read is a ConfigError that names the file, the line and the remedy; no
line is skipped and no value guessed. The door decides whether the bars make sense.

A file says its clock by zones in its times, by its head ("Gmt time", "Time (EET)"), or by what
writes it (Unix seconds are UTC, HistData is New York's winter time). Where it says none, ISO dates
count as UTC, and everything else is a question, for MetaTrader stamps bars with the broker's wall
clock. `clock` answers it, by any name that torra.market.broker_clock knows. The usual clock,
"new_york+7", is that of New York and 7 hours, which follows the daylight saving dates of the USA.
It jumps at 09:00 on a Sunday:

- In spring 09:00 to 10:00 does not exist on the server; a bar there means that the clock is wrong,
  and is refused.
- In autumn 08:00 to 09:00 comes twice. A time that stands twice in the file is read as summer time
  first and winter time second; one that stands there once is read as the first, unless a later time
  of that hour stands above it.

Both fall on a Sunday morning, when only round-the-clock markets trade. torra.market.broker_clock
has the arithmetic.

The spread of a bar, a column `spread` or the last of eight without a header, is counted in points.
The decimals of the prices tell the point (torra.feeds.frame). A spread is never needed: where the
point is not told, or a cell is no whole number of points, it is NaN, and
`frame.attrs["no_spreads"]` says why. Other attributes are `shape`, `clock`, `clock_reason` and
`utc_offsets`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import lzma
import re
import zipfile
import zlib
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.errors import ConfigError
from torra.feeds import bar_times
from torra.feeds.bar_times import COMPACT, DOTS, ISO, TIME_OF_DAY, BadTime, BarTimes
from torra.feeds.frame import decimals_of, in_price
from torra.feeds.protocol import COLUMNS
from torra.market.broker_clock import KNOWN, UTC_CLOCK, ServerClock, ahead_of, offsets_used
from torra.market.spreads import SPREAD
from torra.regular_files import read_regular

SEPARATORS: Final = "\t;,"
ENCODINGS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The mark at the beginning of a text, and its encoding."""

GZIP: Final = b"\x1f\x8b"
ZIP: Final = b"PK\x03\x04"
"""The mark at the beginning of a packed file."""

UNREADABLE: Final = (
    OSError, EOFError, RuntimeError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
)  # fmt: skip
"""What reading a damaged or locked packed file may raise."""

WORKBOOK: Final = "[Content_Types].xml"
"""What a packed Excel workbook begins with."""

NO_TEXT: Final = {
    b"par1": "Parquet",
    b"\xd0\xcf\x11\xe0": "an Excel workbook",
    b"<!": "a page (HTML)",
    b"<html": "a page (HTML)",
    b"{": "JSON",
    b"[": "JSON",
}
"""How files begin that are no table of text."""

MOST_UNPACKED: Final = 1 << 28
"""Most bytes of a packed file of bars: a small file may hold more than the memory."""

CUT_SHORT: Final = "the line ends too early: export the bars again, or remove the line"
"""Remedy where a cell is empty."""

PREAMBLE: Final = 5
"""Lines among which the head stands: some sources write a title above it."""

MEANINGS: Final = {
    "tickvol": "tick_volume",
    "tickvolume": "tick_volume",
    "vol": "real_volume",
    "realvolume": "real_volume",
}
"""Our names of columns whose heads, in small letters and without signs, are other words."""

VOLUMES: Final = ("tick_volume", "volume", "real_volume")
"""Where the volume comes from: the first of these that the file has.

Real volume is 0 for currencies and metals.
"""

TIME_HEADS: Final = (
    "unix", "timestamp", "opentime", "opentimestamp", "gmttime", "localtime", "datetime", "time",
    "date", "dtyyyymmdd", "index", "unnamed0", "",
)  # fmt: skip
"""Heads of the column of times, in small letters and without signs, the preferred first."""

ZONED: Final = re.compile(r"(?:date ?)?time ?\(([A-Za-z_/]+)\)", re.IGNORECASE)
"""A head that names a clock, such as Time (EET)."""

NEW_YORK_WINTER: Final = "-05:00"
"""Clock of HistData's files, which have no daylight saving."""

PRICES: Final = COLUMNS[:-1]
BY_POSITION: Final = (*PRICES, "tick_volume", "real_volume", SPREAD)
"""Columns after the time where there is no header."""

KRAKEN: Final = 8
"""Columns of Kraken's bars without a header: a mean price stands before the volume."""

READ_FOR_POINT: Final = 2_500
"""Newest bars whose prices tell the point."""

NO_SPREADS: Final = "no_spreads"
"""Name in the attributes of a frame of why spreads of the file are none."""

NEEDS: Final = f"needs {', '.join(('time', *PRICES))}"
"""What every file must have."""

SHOWN: Final = 12
SHOWN_LETTERS: Final = 24
"""Heads of a file's columns, and letters of each, that an error shows."""

GIVEN, ASSUMED = "it was given", "nothing says another"
"""Reasons of a clock that the file itself does not say."""

MOST_COLUMNS: Final = 200

DECIMAL_COMMA: Final = re.compile(r" *-?\d+,(\d{1,2}|\d{4,}) *")

QUOTES: Final = ('"', "'")
TICK_COLUMNS: Final = {"bid", "ask"}


class ClockMissing(ConfigError):
    """A file does not say by which clock its times are, and nobody else did."""


def read_bars(path: Path, *, clock: str | None, most: int = MOST_UNPACKED) -> pd.DataFrame:
    """Return the bars of a file, oldest first, float64 on a UTC index of open times named "time".

    A file that has spreads gives a column of them, in units of the price. `clock` names that of the
    times, None where nobody said it; ClockMissing where the file needs one. A packed file may hold
    `most` bytes. Raises ConfigError.
    """
    sheet = _sheet(path, most)
    try:
        times = bar_times.parse(sheet.times)
    except BadTime as error:
        raise sheet.fault_in(error.row, str(error)) from None
    server, reason = _clock(sheet, times, clock)
    steps = np.diff(times.wall.asi8)
    traits = sheet.traits
    if (steps < 0).sum() > (steps > 0).sum():
        sheet, traits = sheet.reversed(), (*traits, "newest first")
        times = bar_times.parse(sheet.times)
    volume = next((name for name in VOLUMES if name in sheet.cells), None)
    index = _to_utc(sheet, times, server)
    columns = {name: _numbers(sheet, name) for name in PRICES}
    if volume is None:
        traits = (*traits, "no volume")
    columns["volume"] = np.zeros(len(index)) if volume is None else _numbers(sheet, volume)
    spreads, why = _spreads(sheet)
    if spreads is not None:
        columns[SPREAD] = spreads
    frame = pd.DataFrame(columns, index=index.rename("time"))
    if why:
        frame.attrs[NO_SPREADS] = why
    frame.attrs.update(
        shape=f"{_source(sheet, times)}: {', '.join((times.form, *traits))}",
        clock=server.name, clock_reason=reason, utc_offsets=offsets_used(times.wall, index),
    )  # fmt: skip
    return frame


@dataclass(frozen=True, slots=True)
class _Sheet:
    """The cells of a file as text, by meaning; their index is the number of each row's line.

    `times` are its times, a text each, and `head` is that of their column, None without heads.
    `split` says that date and time of day stood apart.
    """

    path: Path
    cells: pd.DataFrame
    times: pd.Series[str]
    head: str | None
    split: bool
    traits: tuple[str, ...]

    @property
    def terminal(self) -> bool:
        """Whether its heads are those of MetaTrader 5's export."""
        return (self.head or "").startswith("<")

    @property
    def of_broker(self) -> bool:
        """Whether its heads are MetaTrader's, of which ticks are the volume."""
        return self.terminal or (self.head is not None and "tick_volume" in self.cells)

    @property
    def time_head(self) -> str | None:
        """The head of the times in small letters and without signs, None without heads."""
        return None if self.head is None else _plain(self.head)

    @property
    def zone(self) -> str:
        """The clock that the head names, "" without one."""
        if self.time_head == "gmttime":
            return UTC_CLOCK
        named = ZONED.fullmatch(self.head or "")
        return named.group(1) if named else ""

    def fault_in(self, row: int, problem: str) -> ConfigError:
        """Return the error of a row."""
        return ConfigError(f"{self.path}, line {self.cells.index[row]}: {problem}")

    def fault(self, broken: npt.ArrayLike, problem: str) -> ConfigError:
        """Return the error of the first row that is broken."""
        return self.fault_in(int(np.argmax(np.asarray(broken))), problem)

    def reversed(self) -> _Sheet:
        """Return the sheet from its last row to its first."""
        return replace(self, cells=self.cells.iloc[::-1], times=self.times.iloc[::-1])


# --- text into cells ------------------------------------------------------------------------------


def _sheet(path: Path, most: int) -> _Sheet:
    text = _text(path, most)
    body = text.lstrip("\n")
    if not body:
        raise ConfigError(f"{path} is empty: export the bars again")
    top = body.split("\n", PREAMBLE + 2)
    columns = max(line.count(mark) for line in top[:PREAMBLE] for mark in SEPARATORS)
    if columns > MOST_COLUMNS:
        raise ConfigError(f"{path} has {columns + 1:,} columns: bars have some ten")
    above, heads = _head(path, top)
    if above == len(top):
        raise ConfigError(f"{path} holds no bars: export them again, with a longer range of dates")
    rows = body.split("\n", above)[above].lstrip("\n")
    first = rows.split("\n", 1)[0]
    separator = max(SEPARATORS, key=first.count)
    line = text.count("\n", 0, len(text) - len(rows)) + 1
    cells = _cells(path, rows, separator, line)
    names = _names(path, heads, cells.iloc[0].to_list())
    if heads and len(names) != cells.shape[1]:
        raise ConfigError(
            f"{path}, line {line}: {cells.shape[1]} cells where the head has {len(names)}; mend or "
            "remove the line"
        )
    cells = cells.iloc[:, : len(names)].set_axis(names, axis=1)
    cells.index += line
    date, clock = _time_columns(names, cells.iloc[0].to_list())
    times = cells.iloc[:, date].str.strip()
    if clock is not None:
        times = (times + " " + cells.iloc[:, clock].str.strip()).str.strip()
    commas = separator != "," and _decimal_commas(cells[list(PRICES)])
    marks = (("semicolons", separator == ";"), ("quoted", QUOTES[0] in first),
             ("decimal commas", commas))  # fmt: skip
    return _Sheet(
        path,
        cells.replace(",", ".", regex=True) if commas else cells,
        times,
        heads[date] if heads else None,
        clock is not None,
        tuple(name for name, there in marks if there),
    )


def _decimal_commas(prices: pd.DataFrame) -> bool:
    """Return whether commas stand for dots: with three digits behind each they may be thousands."""
    text = prices.to_numpy().ravel().tolist()
    return any(map(DECIMAL_COMMA.fullmatch, text)) and not any("." in cell for cell in text)


def _head(path: Path, top: list[str]) -> tuple[int, list[str]]:
    """Return how many lines stand above the bars, and the heads of their columns if it has any."""
    for at, line in enumerate(top[:PREAMBLE], start=1):
        heads = _split(line)
        if {*PRICES} <= {*_meanings(heads)}:
            # yfinance writes the symbol and the name of the index below its heads.
            below = top[at : at + 2]
            if len(below) == 2 and _plain(_split(below[0])[0]) == "ticker":
                return at + 2, [_split(below[1])[0], *heads[1:]]
            return at, heads
    heads = _split(top[0])
    # A file without a header begins with a date.
    if heads[0][:1].isdigit():
        return 0, []
    if {*_meanings(heads)} >= TICK_COLUMNS:
        raise ConfigError(f"{path} holds ticks, not bars: export bars of one timeframe")
    raise _wrong_columns(path, heads)


def _wrong_columns(path: Path, heads: list[str]) -> ConfigError:
    words = (head.strip("<>").lower()[:SHOWN_LETTERS] for head in heads[:SHOWN])
    shown = ", ".join(filter(None, words)) or "no word"
    return ConfigError(f"{path} {NEEDS}; found {shown}: export bars, or name its columns so")


def _split(line: str) -> list[str]:
    """Return the cells of one line, without their quotation marks."""
    separator = max(SEPARATORS, key=line.count)
    return [cell.strip().strip("".join(QUOTES)).strip() for cell in line.split(separator)]


def _plain(head: str) -> str:
    return "time" if ZONED.fullmatch(head) else re.sub(r"[^a-z0-9]", "", head.lower())


def _meanings(heads: list[str]) -> list[str]:
    """Return our names of the columns of some heads."""
    names = [MEANINGS.get(plain, plain) for plain in map(_plain, heads)]
    # Some sources call the close the price, and name the unit of the volume.
    names = names if "close" in names else ["close" if n == "price" else n for n in names]
    of_units = [name for name in names if re.match("volume(?!ma)", name)]
    if not {*VOLUMES} & {*names} and of_units:
        names[names.index(of_units[0])] = VOLUMES[1]
    return names


def _names(path: Path, heads: list[str], first: list[str]) -> list[str]:
    """Return the names of a file's columns; raises ConfigError where some are missing or twice."""
    if not heads:
        epoch = bar_times.EPOCH.fullmatch(first[0].strip())
        names = ["time", *(COLUMNS if epoch else BY_POSITION)]
        if epoch and len(first) == KRAKEN:
            names.insert(-1, "vwap")
        if len(first) > 1 and TIME_OF_DAY.fullmatch(first[1].strip()):
            names.insert(0, "date")
        if "close" not in names[: len(first)]:
            raise _wrong_columns(path, [f"no header and {len(first)} cells"])
        return names[: len(first)]
    names = _meanings(heads)
    for name in (*COLUMNS, *VOLUMES, *TIME_HEADS[:-1]):
        if names.count(name) > 1:
            raise ConfigError(f"{path} has the column {name} twice: remove one")
    if not {*names} & {*TIME_HEADS}:
        raise _wrong_columns(path, heads)
    return names


def _time_columns(names: list[str], first: list[str]) -> tuple[int, int | None]:
    """Return the place of the column of times or dates, and that of a time of day beside it."""
    places = [names.index(name) for name in TIME_HEADS if name in names]
    of_day = [at for at in places if TIME_OF_DAY.fullmatch(first[at].strip())]
    whole = next((at for at in places if at not in of_day), places[0])
    date = ":" not in first[whole] and not bar_times.EPOCH.fullmatch(first[whole].strip())
    times = [at for at in of_day if date and at != whole]
    return whole, times[0] if times else None


def _text(path: Path, most: int) -> str:
    try:
        raw = _unpacked(path, read_regular(path), most)
    except UNREADABLE as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    beginning = raw[:100].lstrip().lower()
    for mark, kind in NO_TEXT.items():
        if beginning.startswith(mark):
            raise ConfigError(f"{path} is {kind}, no table of text: save or export it as CSV")
    encoding = next((name for mark, name in ENCODINGS if raw.startswith(mark)), "utf-8")
    # UTF-16 without its mark: of a digit or a letter one of the two bytes is 0.
    if encoding == "utf-8" and b"\0" in raw[:2]:
        encoding = "utf-16-be" if raw.startswith(b"\0") else "utf-16-le"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not text in UTF-8 or UTF-16 ({error.reason}): export the bars as CSV"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip()


def _unpacked(path: Path, raw: bytes, most: int) -> bytes:
    """Return what a packed file holds, and any other as it is."""
    if raw.startswith(GZIP):
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
            content = packed.read(most + 1)
    elif raw.startswith(ZIP):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            names = archive.namelist()
            if WORKBOOK in names:
                raise ConfigError(f"{path} is an Excel workbook: save it as CSV")
            tables = [name for name in names if name.lower().endswith(".csv")]
            if len(tables) != 1:
                raise ConfigError(
                    f"{path} is packed (zip) with {len(tables)} files of bars in it: unpack it and "
                    "name one"
                )
            with archive.open(tables[0]) as member:
                content = member.read(most + 1)
    else:
        return raw
    if len(content) > most:
        raise ConfigError(f"{path} holds more than {most:,} bytes: cut its oldest bars off")
    return content


def _cells(path: Path, rows: str, separator: str, line: int) -> pd.DataFrame:
    first = rows.split("\n", 1)[0]
    quote = next((mark for mark in QUOTES if first.lstrip().startswith(mark)), None)
    try:
        cells = pd.read_csv(
            io.StringIO(rows),
            sep=separator,
            header=None,
            dtype=str,
            na_filter=False,
            # Else the numbers of lines in errors would not be the file's.
            skip_blank_lines=False,
            # In a file without quotes a stray quotation mark must not join lines.
            quoting=csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL,
            quotechar=quote or QUOTES[0],
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        match = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if match is None:
            raise ConfigError(f"{path} is not a table: {error}") from error
        expected, at, saw = map(int, match.groups())
        raise ConfigError(
            f"{path}, line {at + line - 1}: {saw} cells where the first line has {expected};"
            " mend or remove the line"
        ) from error
    if quote is None and cells.shape[1] != first.count(separator) + 1:
        raise ConfigError(f"{path} is not a table: export the bars as CSV")
    return cells.fillna("")


# --- cells into numbers and times -----------------------------------------------------------------


def _numbers(sheet: _Sheet, name: str) -> npt.NDArray[np.float64]:
    cells = sheet.cells[name]
    try:
        # Here numbers are read to the last digit; pandas' own reader may round them.
        numbers = np.array(cells.to_list(), dtype=np.float64)
    except ValueError:
        # One by one, to find the first cell that is no number.
        numbers = np.array([_number(cell) for cell in cells])
    # Python reads 1_000 as a number.
    broken = ~np.isfinite(numbers) | cells.str.contains("_", regex=False).to_numpy()
    if broken.any():
        cell = cells.iloc[int(np.argmax(broken))]
        remedy = "write numbers with a dot, such as 1.2345" if cell.strip() else CUT_SHORT
        raise sheet.fault(broken, f"{name} is {cell[:SHOWN_LETTERS]!r}, not a number; {remedy}")
    return numbers


def _spreads(sheet: _Sheet) -> tuple[npt.NDArray[np.float64] | None, str]:
    """Return the spreads of a file in units of the price, None without the column, and a fault."""
    names = sheet.cells.columns.to_list()
    if names.count(SPREAD) != 1:
        return None, f"it has the column {SPREAD} twice" if SPREAD in names else ""
    newest = sheet.cells[list(PRICES)].iloc[-READ_FOR_POINT:].to_numpy().ravel().tolist()
    decimals = decimals_of(newest, terminal=sheet.terminal)
    if decimals is None:
        return None, "its prices do not tell how large a point is"
    counted = np.array([_number(cell) for cell in sheet.cells[SPREAD]])
    # Of what is no whole number nobody knows the unit.
    broken = ~np.isfinite(counted) | (counted < 0.0) | (counted != np.floor(counted))
    if not broken.any():
        return in_price(counted, decimals), ""
    counted[broken] = np.nan
    cell = sheet.cells[SPREAD].iloc[int(np.argmax(broken))]
    problem = f"{SPREAD} is {cell!r}, not a number of points; so are {int(broken.sum())} in all"
    return in_price(counted, decimals), str(sheet.fault(broken, problem))


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


# --- clocks ---------------------------------------------------------------------------------------


def _source(sheet: _Sheet, times: BarTimes) -> str:
    """Return who writes such files."""
    writers = (
        ("the MetaTrader5 package", sheet.of_broker and (times.epoch or times.form == ISO)),
        ("MetaTrader 5", sheet.of_broker or (sheet.head is None and times.form == DOTS)),
        ("Dukascopy", bool(sheet.zone) or sheet.time_head == "localtime"),
        ("HistData", _winter(sheet, times)),
        ("Binance", times.epoch and ("closetime" in sheet.cells or sheet.head is None)),
        ("TradingView", times.epoch and sheet.time_head == "time"),
        ("pandas", sheet.time_head in ("", "index", "unnamed0")),
    )
    return next((name for name, fits in writers if fits), "a table")


def _winter(sheet: _Sheet, times: BarTimes) -> bool:
    """Return whether a file is HistData's, which knows no volume; other programs write this too."""
    shape = sheet.head is None and times.form == COMPACT and "semicolons" in sheet.traits
    return shape and {*sheet.cells.get("tick_volume", ())} == {"0"}


def _clock(sheet: _Sheet, times: BarTimes, named: str | None) -> tuple[ServerClock, str]:
    """Return the clock of a file's times, and why it is that; raises ConfigError."""
    given = None if named is None else ServerClock.parse(named)
    if (times.zones != "").any():
        return given or ServerClock.parse(UTC_CLOCK), "its times carry a zone"
    zone, reason = sheet.zone, f"its head is {sheet.head}"
    if times.epoch and not sheet.of_broker:
        zone, reason = UTC_CLOCK, "its times count from 1970, in UTC"
    if zone:
        own = ServerClock.parse(zone)
        if given is not None and given.name != own.name:
            raise ConfigError(
                f"{sheet.path}: {reason}, so its clock is {own.name}: use that; if MetaTrader "
                "wrote it, name its columns time and tick_volume"
            )
        return own, reason
    if given is not None:
        return given, GIVEN
    if _winter(sheet, times):
        return ServerClock.parse(NEW_YORK_WINTER), "HistData writes New York's winter time"
    if sheet.of_broker or sheet.split or times.form != ISO:
        raise ClockMissing(_question(sheet))
    return ServerClock.parse(UTC_CLOCK), ASSUMED


def _question(sheet: _Sheet) -> str:
    if sheet.terminal:
        cause = "is an export of MetaTrader 5, and its times are of the broker's clock"
    elif sheet.of_broker:
        cause = "has the columns of MetaTrader 5, whose times are of the broker's clock"
    else:
        cause = f"writes its times as {sheet.times.iloc[0][:SHOWN_LETTERS]} and names no clock"
    return (
        f"{sheet.path} {cause}: say which with --clock, at most brokers new_york+7 "
        f"(there are {KNOWN})"
    )


def _to_utc(sheet: _Sheet, times: BarTimes, server: ServerClock) -> pd.DatetimeIndex:
    naive, zones = times.wall, times.zones
    zoned = zones != ""
    if zoned.any():
        if server.name != UTC_CLOCK:
            raise sheet.fault(
                zoned, f"the time carries the zone {zones[zoned].iloc[0]}; use clock utc"
            )
        if not zoned.all():
            raise sheet.fault(~zoned, "the time has no zone, others have; mend the line")
        return (naive - pd.TimedeltaIndex(zones.map(ahead_of))).tz_localize(UTC)
    index = server.to_utc_index(naive.asi8 // 1_000_000)
    if index.hasnans:
        missing = index.isna()
        raise sheet.fault(
            missing,
            f"{naive[missing][0]} does not exist on a server of {server.name}, whose clock went "
            "forward then; say with --clock which clock the file has",
        )
    return index

"""Reads bars from a file: what MetaTrader 5 exports, and the format that Torra ships.

It reads the terminal's export (Symbols, Bars, Export: tabs, header in <>), the chart's "Save as"
(no header, often UTF-16), both with commas or semicolons, with or without a time column, and
`time,open,high,low,close,volume`. What cannot be read is a ConfigError that names the file, the
line and the remedy; no line is skipped and no value guessed. The door decides whether the bars make
sense, as for any other feed.

MetaTrader stamps bars with the broker's wall clock. `clock` says which, by any name that
torra.market.broker_clock knows; without one times are UTC, and an export with MetaTrader 5's header
is refused, for its times hardly ever are. The usual clock, "new_york+7", is that of New York and 7
hours, which follows the daylight saving dates of the USA. It jumps at 09:00 on a Sunday:

- In spring 09:00 to 10:00 does not exist on the server; a bar there means that the clock is wrong,
  and is refused.
- In autumn 08:00 to 09:00 comes twice. A time that stands twice in the file is read as summer time
  first and winter time second; one that stands there once is read as the first, unless a later time
  of that hour stands above it.

The spread of a bar, a column `spread` or the last of eight without a header, is counted in points.
The decimals of the prices tell the point (torra.feeds.points). A spread is never needed: where the
point is not told, or a cell is no whole number of points, it is NaN, and
`frame.attrs["no_spreads"]` says why.

Both fall on a Sunday morning, when only round-the-clock markets trade. torra.market.broker_clock
has the arithmetic. The offsets that were used are kept in `frame.attrs["utc_offsets"]`, the clock
in `frame.attrs["clock"]`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import tempfile
import zlib
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.errors import ConfigError
from torra.feeds import points
from torra.feeds.protocol import COLUMNS
from torra.market.broker_clock import KNOWN, UTC_CLOCK, ServerClock, ahead_of, offsets_used
from torra.market.spreads import SPREAD
from torra.regular_files import open_regular, read_regular

STAMP: Final = r"^(\d{4})[-./](\d\d)[-./](\d\d)(?:[T ]+(\d\d:\d\d(?::\d\d)?))?(Z|[+-]\d\d:\d\d)?$"
"""A time: date, time of day, zone; the latter two may be missing."""

TIME_OF_DAY: Final = re.compile(r"\d\d:\d\d(:\d\d)?")
SEPARATORS: Final = "\t;,"
ENCODINGS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The mark at the beginning of a text, and its encoding."""

HEAD: Final = 4
"""Bytes at the beginning of a text that tell an export of MetaTrader 5, a mark included."""

PACKED: Final = ((b"\x1f\x8b", "gzip"), (b"PK\x03\x04", "zip"))
"""The mark at the beginning of a packed file, and what packed it."""

MOST_UNPACKED: Final = 1 << 30
"""Most bytes of a packed file of bars: a small file may hold more than the memory."""

CUT_SHORT: Final = "the line ends too early: export the bars again, or remove the line"
NO_BAR: Final = "the line has no bar: remove empty and padded lines"
"""Remedies where a cell is empty."""

QUOTES: Final = ('"', "'")

MEANINGS: Final = {
    "datetime": "time",
    "tickvol": "tick_volume",
    "vol": "real_volume",
}
"""Our names of columns whose headers, in small letters without <>, are other words."""

BY_POSITION: Final = ("open", "high", "low", "close", "tick_volume", "real_volume", SPREAD)
"""Columns after date and time where there is no header."""

VOLUMES: Final = ("tick_volume", "volume", "real_volume")
"""Where the volume comes from: the first of these that the file has.

Real volume is 0 for currencies and metals.
"""

WHEN: Final = ("time", "date")
NEEDED: Final = COLUMNS[:-1]
READ_FOR_POINT: Final = 2_500
"""Newest bars whose prices tell the point."""

NO_SPREADS: Final = "no_spreads"
"""Name in the attributes of a frame of why spreads of the file are none."""

NEEDS: Final = f"needs {', '.join((WHEN[0], *COLUMNS))}"
"""What every file must have: a time, four prices and a volume."""

SHOWN: Final = 12
SHOWN_LETTERS: Final = 24
"""Heads of a file's columns, and letters of each, that an error shows."""

TERMINAL_MARK: Final = "<"
"""What the header of MetaTrader 5's export begins with: <DATE>."""

TICK_COLUMNS: Final = {"bid", "ask"}


def is_export(head: bytes) -> bool:
    """Tell by a text's first HEAD bytes whether it is an export of MetaTrader 5, with <DATE>."""
    return b"<" in head[:HEAD]


def read_bars(path: Path, *, clock: str | None) -> pd.DataFrame:
    """Return the bars of a file, in its order, float64 on a UTC index of open times named "time".

    A file that has spreads gives a column of them, in units of the price. `clock` names that of the
    times; None is UTC, and an error for MetaTrader 5's export. Times that carry a zone of their own
    are taken at their word and want "utc". Raises ConfigError.
    """
    server = ServerClock.parse(UTC_CLOCK if clock is None else clock)
    sheet = _sheet(path)
    if sheet.of_terminal and clock is None:
        raise ConfigError(
            f"{path} is an export of MetaTrader 5, and its times are of the broker's clock: say "
            f"which with --clock, at most brokers new_york+7 (there are {KNOWN})"
        )
    volume = next((name for name in VOLUMES if name in sheet.cells), VOLUMES[1])
    sources = dict(zip(COLUMNS, (*COLUMNS[:-1], volume), strict=True))
    naive, zones = _times(sheet)
    index = _to_utc(sheet, naive, zones, server)
    columns = {name: _numbers(sheet, source) for name, source in sources.items()}
    spreads, why = _spreads(sheet)
    if spreads is not None:
        columns[SPREAD] = spreads
    frame = pd.DataFrame(columns, index=index.rename("time"))
    if why:
        frame.attrs[NO_SPREADS] = why
    frame.attrs["clock"] = server.name
    frame.attrs["utc_offsets"] = offsets_used(naive, index)
    return frame


def read_file(path: Path, *, clock: str | None, most: int = MOST_UNPACKED) -> pd.DataFrame:
    """Return the bars of a file as `read_bars` does; one whose name ends with .gz is unpacked.

    Raises ConfigError, and for a packed one that holds more than `most` bytes.
    """
    if path.suffix != ".gz":
        return read_bars(path, clock=clock)
    content = unpacked(path, most)
    with tempfile.TemporaryDirectory(prefix="torra-bars-") as folder:
        plain = Path(folder) / path.stem
        plain.write_bytes(content)
        try:
            return read_bars(plain, clock=clock)
        except ConfigError as error:
            # The user knows the packed file, not our temporary one.
            raise ConfigError(str(error).replace(str(plain), str(path))) from None


def unpacked(file: Path, most: int = MOST_UNPACKED) -> bytes:
    """Return what a packed file holds; raises ConfigError, and for more than so many bytes."""
    try:
        with open_regular(file) as raw, gzip.GzipFile(fileobj=raw) as packed:
            content = packed.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"cannot read {file}: {error}") from error
    if len(content) > most:
        raise ConfigError(f"{file} holds more than {most:,} bytes: cut its oldest bars off")
    return content


@dataclass(frozen=True, slots=True)
class _Sheet:
    """The cells of a file as text, by meaning, and the number of the line of the first row.

    `of_terminal` says that its header is MetaTrader 5's.
    """

    path: Path
    cells: pd.DataFrame
    first_line: int
    of_terminal: bool = False

    def column(self, name: str) -> pd.Series[str]:
        return self.cells[name]

    def fault(self, broken: npt.ArrayLike, problem: str) -> ConfigError:
        """Return the error of the first row that is broken."""
        line = int(np.argmax(np.asarray(broken))) + self.first_line
        return ConfigError(f"{self.path}, line {line}: {problem}")


# --- text into cells ------------------------------------------------------------------------------


def _sheet(path: Path) -> _Sheet:
    text = _text(path)
    body = text.lstrip("\n")
    line = text[: len(text) - len(body)].count("\n") + 1
    if not body:
        raise ConfigError(f"{path} is empty: export the bars again")
    first = body.split("\n", 1)[0]
    separator = max(SEPARATORS, key=first.count)
    if first.lstrip().startswith(QUOTES):
        raise ConfigError(
            f"{path} has its cells in quotation marks: save it as CSV without them, or remove them"
        )
    heads = [cell.strip().strip("<>").lower() for cell in first.split(separator)]
    # A file without a header begins with a date.
    if heads[0][:1].isdigit():
        names = _by_position(heads)
        _check_columns(path, names[: len(heads)], f"no header and {len(heads)} cells in a line")
        cells = _cells(path, body, separator, line).iloc[:, : len(names)]
        return _Sheet(path, cells.set_axis(names[: cells.shape[1]], axis=1), line)
    names = _by_header(path, heads)
    shown = [head[:SHOWN_LETTERS] for head in heads[:SHOWN]]
    _check_columns(path, names, ", ".join(filter(None, shown)) or "no word")
    cells = _cells(path, body, separator, line)
    if len(cells) == 1:
        raise ConfigError(f"{path} holds no bars: export them again, with a longer range of dates")
    rows = cells.iloc[1:].set_axis(names, axis=1)
    return _Sheet(path, rows, line + 1, first.lstrip().startswith(TERMINAL_MARK))


def _check_columns(path: Path, names: list[str], found: str) -> None:
    """Raise ConfigError unless there are a time, four prices and a volume."""
    has = set(names)
    if has & {*WHEN} and has >= {*NEEDED} and has & {*VOLUMES}:
        return
    raise ConfigError(f"{path} {NEEDS}; found {found}: export bars, or name its columns so")


def _text(path: Path) -> str:
    try:
        raw = read_regular(path)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    for mark, packed in PACKED:
        if raw.startswith(mark):
            raise ConfigError(f"{path} is packed ({packed}): unpack it and name the file inside")
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


def _cells(path: Path, body: str, separator: str, line: int) -> pd.DataFrame:
    try:
        cells = pd.read_csv(
            io.StringIO(body),
            sep=separator,
            header=None,
            dtype=str,
            na_filter=False,
            # Else the numbers of lines in errors would not be the file's.
            skip_blank_lines=False,
            # No export quotes its cells: a stray quotation mark must not join lines.
            quoting=csv.QUOTE_NONE,
        )
    except pd.errors.ParserError as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found is None:
            raise ConfigError(f"{path} is not a table: {error}") from error
        expected, at, saw = map(int, found.groups())
        raise ConfigError(
            f"{path}, line {at + line - 1}: {saw} cells where the first line has {expected};"
            " mend or remove the line"
        ) from error
    if cells.shape[1] != body.split("\n", 1)[0].count(separator) + 1:
        raise ConfigError(f"{path} is not a table: export the bars as CSV")
    return cells.fillna("")


def _by_position(first: list[str]) -> list[str]:
    when = ["date", "clock"] if len(first) > 1 and TIME_OF_DAY.fullmatch(first[1]) else ["time"]
    return [*when, *BY_POSITION]


def _by_header(path: Path, heads: list[str]) -> list[str]:
    names = [MEANINGS.get(head, head) for head in heads]
    # Beside a date, `time` is the time of day.
    if "date" in names:
        names = ["clock" if name == "time" else name for name in names]
    if set(names) >= TICK_COLUMNS:
        raise ConfigError(f"{path} holds ticks, not bars: export bars of one timeframe")
    for name in (*COLUMNS, *VOLUMES, "date", "time", "clock"):
        if names.count(name) > 1:
            raise ConfigError(f"{path} has the column {name} twice: remove one")
    return names


# --- cells into numbers and times -----------------------------------------------------------------


def _numbers(sheet: _Sheet, name: str) -> npt.NDArray[np.float64]:
    cells = sheet.column(name)
    try:
        # Here numbers are read to the last digit; pandas' own reader may round them.
        numbers = np.array(cells.to_list(), dtype=np.float64)
    except ValueError:
        # One by one, to find the first cell that is no number.
        numbers = np.array([_number(cell) for cell in cells])
    broken = ~np.isfinite(numbers)
    if broken.any():
        cell = cells.iloc[int(np.argmax(broken))]
        remedy = "write numbers with a dot, such as 1.2345" if cell.strip() else CUT_SHORT
        raise sheet.fault(broken, f"{name} is {cell!r}, not a number; {remedy}")
    return numbers


def _spreads(sheet: _Sheet) -> tuple[npt.NDArray[np.float64] | None, str]:
    """Return the spreads of a file in units of the price, None without the column, and a fault."""
    names = sheet.cells.columns.to_list()
    if names.count(SPREAD) != 1:
        return None, f"it has the column {SPREAD} twice" if SPREAD in names else ""
    newest = sheet.cells[list(NEEDED)].iloc[-READ_FOR_POINT:].to_numpy().ravel().tolist()
    decimals = points.decimals_of(newest, terminal=sheet.of_terminal)
    if decimals is None:
        return None, "its prices do not tell how large a point is"
    counted = np.array([_number(cell) for cell in sheet.column(SPREAD)])
    # Of what is no whole number nobody knows the unit.
    broken = ~np.isfinite(counted) | (counted < 0.0) | (counted != np.floor(counted))
    if not broken.any():
        return points.in_price(counted, decimals), ""
    counted[broken] = np.nan
    cell = sheet.column(SPREAD).iloc[int(np.argmax(broken))]
    problem = f"{SPREAD} is {cell!r}, not a number of points; so are {int(broken.sum())} in all"
    return points.in_price(counted, decimals), str(sheet.fault(broken, problem))


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _times(sheet: _Sheet) -> tuple[pd.DatetimeIndex, pd.Series[str]]:
    """Return the times as they stand in the file, and their zones ("" where there is none)."""
    text = sheet.column("date" if "date" in sheet.cells else "time").str.strip()
    if "clock" in sheet.cells:
        text = (text + " " + sheet.cells["clock"].str.strip()).str.strip()
    parts = text.str.extract(STAMP)
    day = parts[0] + "-" + parts[1] + "-" + parts[2]
    time = parts[3].fillna("00:00")
    stamps = day + " " + time.where(time.str.len() == len("00:00:00"), time + ":00")
    naive = pd.to_datetime(stamps, format="%Y-%m-%d %H:%M:%S", errors="coerce")
    if naive.isna().any():
        cell = text.iloc[int(np.argmax(naive.isna()))]
        remedy = "write it like 2024.01.31 13:45" if cell else NO_BAR
        raise sheet.fault(naive.isna(), f"{cell!r} is not a time; {remedy}")
    return pd.DatetimeIndex(naive).as_unit("us"), parts[4].fillna("")


# --- clocks ---------------------------------------------------------------------------------------


def _to_utc(
    sheet: _Sheet, naive: pd.DatetimeIndex, zones: pd.Series[str], server: ServerClock
) -> pd.DatetimeIndex:
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

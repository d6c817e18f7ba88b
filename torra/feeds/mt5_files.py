"""The bars and the order flow that the Expert Advisor writes into the channel's folder.

bars/<BROKER_SYMBOL>_<TIMEFRAME>.csv holds the newest closed bars, oldest first, stamped with the
server's wall clock; the symbol's name is percent-escaped there (`file_of`). Its first line says
whose bars they are: the protocol's version, channel, account, broker symbol and timeframe; how
many; and the seconds by which the server is ahead of UTC. Its last line is the HMAC of all lines
above it under the channel key. A file counts when all of that is right and it is the very file that
is wanted: who may write into the folder can put an authentic file in another's place, and channels
may share a key. A file that is missing, half-written, cut, forged or another's changes nothing: the
last good copy stands, which is logged once, and grows too old for the door if nothing better comes.
DataUnavailable (`no_file`, `bad_file`) is raised while there has never been a good one.

The spread of a bar is counted in points; the decimals of the prices, which the Expert Advisor
writes in full, tell the point (torra.feeds.frame).

The channel's clock turns times into UTC. Where that clock is not what the Expert Advisor says of
its server, no hour can be trusted: DataUnavailable (`server_clock`). Where the server shows an hour
twice in autumn, bars of that hour at the file's head may belong to either; they are left out.
Nothing else is repaired: the door checks the bars, and the store keeps a rewritten bar as a
revision.

flow/, with files named alike, has the order flow: a line for each of the newest closed bars that
were counted whole (docs/mt5.md). It counts when everything is right that has to be of a file of
bars. Nothing is raised for it: a status says why there is no row (torra.evidence.flow_readings). A
file of long ago has no line of the bar that is asked for, and so says nothing of it. An Expert
Advisor of before writes no such file: `no_file`. Distances are in points there; the first line says
with how many decimals the symbol is quoted.

A file is read again when its time, size or number has changed. Threads may share a feed.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import compress
from pathlib import Path
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.advisor_protocol import PROTOCOL, difference
from torra.clock import EPOCH, duration
from torra.errors import ConfigError, DataUnavailable
from torra.evidence.flow_readings import FlowRow, FlowThen, missing
from torra.evidence.news_digest import NewsStatus
from torra.feeds.csv_file import ENCODINGS
from torra.feeds.frame import (
    MOST_DECIMALS,
    broker_name,
    clock_fault,
    decimals_of,
    in_price,
    in_utc,
    newest_of,
)
from torra.feeds.limited import LiveFeed
from torra.feeds.protocol import NO_FILE, SERVER_CLOCK
from torra.market.broker_clock import Seconds, ServerClock, check
from torra.regular_files import read_regular

BAD_FILE: Final = "bad_file"
"""Reason of DataUnavailable."""

FOLDER: Final = "bars"
HEADER: Final = "time,open,high,low,close,tick_volume,spread"
VERSION: Final = re.compile(r'\{"v":([0-9]{1,9}),"msg":"[a-z]{1,16}",')
WHOSE: Final = (
    r'"channel":"([ !#-\[\]-~]*)","account":([0-9]{1,18}),'
    r'"broker_symbol":"([^\x00-\x1f"\\\x7f]*)","tf":"([A-Z0-9]{1,8})","count":([0-9]{1,7}),'
)
OFFSET: Final = r'"server_offset_s":(-?[0-9]{1,6})\}'
FIRST: Final = re.compile(r'\{"v":([0-9]{1,9}),"msg":"bars",' + WHOSE + OFFSET)
"""The first line: version, whose bars, how many, by how much the server is ahead of UTC."""

ROW: Final = re.compile(r"\d{1,10}(?:,-?\d{1,12}(?:\.\d{1,12})?){4},\d{1,19},\d{1,9}", re.ASCII)
END: Final = re.compile(r"end,([0-9a-f]{64})")
ESCAPED: Final = re.compile(rb"[^A-Za-z0-9_-]")
"""Bytes of a symbol's name that are %XX in the name of a file."""

FLOW_FOLDER: Final = "flow"
SOURCE: Final = "mt5_files"
FLOW_HEADER: Final = (
    "time,ticks,up,down,spread_mean,spread_widest,levels,bid_volume,ask_volume,imbalance,slippage,"
    "events"
)
FLOW_FIRST: Final = re.compile(
    r'\{"v":([0-9]{1,9}),"msg":"flow",' + WHOSE + r'"digits":([0-9]{1,2}),' + OFFSET
)
_COUNT, _AMOUNT = r"\d{1,12}", r"\d{1,12}(?:\.\d{1,8})?"
FLOW_ROW: Final = re.compile(
    rf"\d{{1,10}},{_COUNT},{_COUNT},{_COUNT},(?:{_AMOUNT},{_COUNT}|,),"
    rf"(?:{_COUNT},{_AMOUNT},{_AMOUNT},(?:-?{_AMOUNT})?,(?:{_AMOUNT})?,{_COUNT}|,,,,,)",
    re.ASCII,
)
FLOW_FORMS: Final = (float, float, int, float, float, float, float, int)
"""How the cells of a row behind its counts of ticks are read; an empty one is None."""

AGAIN: Final = "compile and attach mql5/TorraBridge.mq5 anew"
MAX_BYTES: Final = 4_000_000
"""A longer file is cut, and so refused; a thousand bars have a fiftieth of this."""

log = logging.getLogger("torra")


@dataclass(frozen=True, slots=True)
class BarFileOwner:
    """Whose bars a file holds."""

    channel: str
    account: int
    broker_symbol: str
    timeframe: str

    def __str__(self) -> str:
        """Name all four, as a sentence goes on."""
        return (
            f"channel {self.channel}, account {self.account}, {self.broker_symbol} {self.timeframe}"
        )


class BarSheet(NamedTuple):
    """A file's contents: each bar's wall seconds, its open to spread, the server's offset.

    The spread is in units of the price, NaN where the point is not known.
    """

    wall: Seconds
    bars: npt.NDArray[np.float64]
    offset: int


Content = TypeVar("Content")


class SignedFiles(Generic[Content]):
    """The signed files of one channel, each with its last good copy; bars and order flow alike.

    `symbols` gives the broker's name of each canonical symbol. `channel` and `account` are what the
    Expert Advisor has to sign its files with. `faults` are the sentences about a file that cannot
    be read, by its status.
    """

    faults: ClassVar[Mapping[NewsStatus, str]]

    def __init__(
        self,
        folder: Path,
        symbols: Mapping[str, str],
        clock: ServerClock,
        key: str,
        *,
        channel: str,
        account: int,
    ) -> None:
        if not key:
            raise ConfigError(
                f"bars in {folder} are signed and no channel key is set: put the key of the "
                "Expert Advisor into the environment"
            )
        self._folder = folder
        self._symbols = dict(symbols)
        self._clock = clock
        self._key = key
        self._channel = channel
        self._account = account
        self._copies: dict[BarFileOwner, tuple[tuple[int, int, int], Content]] = {}
        self._faults: dict[BarFileOwner, str] = {}

    def read(self, raw: bytes, wanted: BarFileOwner, modified: datetime) -> Content:
        """Return the contents of a file's bytes; raises ValueError for anything wrong."""
        raise NotImplementedError

    def complain(self, status: NewsStatus, fault: str, *, kept: bool) -> None:
        """Log a fault that is new; `kept` says that there is a last good copy, which stands."""
        raise NotImplementedError

    def newest_copy(
        self, path: Path, wanted: BarFileOwner
    ) -> tuple[Content | None, NewsStatus, str]:
        """Return the last good copy of a file, None before there is one, and what is wrong now."""
        status, why = NewsStatus.AVAILABLE, ""
        try:
            stat = path.stat()
            signature = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            # The file that comes back after a fault may be the good one of before.
            if wanted not in self._copies or self._copies[wanted][0] != signature:
                written = EPOCH + timedelta(microseconds=stat.st_mtime_ns // 1_000)
                content = self.read(read_regular(path, MAX_BYTES), wanted, written)
                self._copies[wanted] = signature, content
        except FileNotFoundError:
            status = NewsStatus.NO_FILE
        except OSError as error:
            status, why = NewsStatus.UNREACHABLE, str(error.strerror)
        except ValueError as error:
            status, why = NewsStatus.BROKEN, str(error)
        kept = wanted in self._copies
        fault = self.faults.get(status, "").format(
            path=path, why=why, symbol=wanted.broker_symbol, timeframe=wanted.timeframe
        )
        if fault and self._faults.get(wanted) != fault:
            self.complain(status, fault, kept=kept)
        self._faults[wanted] = fault
        return self._copies[wanted][1] if kept else None, status, fault


class Mt5FilesFeed(SignedFiles[tuple[pd.DataFrame, str]], LiveFeed):
    """The bars of one channel; of each file the `newest` bars are read, None: all.

    A copy has its bars, and the fault of its clock if any.
    """

    newest: int | None = None
    faults: ClassVar[Mapping[NewsStatus, str]] = {
        NewsStatus.NO_FILE: "there is no {path}; does the Expert Advisor run, with {symbol} in its "
        "input bar_symbols and {timeframe} in bar_timeframes?",
        NewsStatus.UNREACHABLE: "cannot read {path}: {why}",
        NewsStatus.BROKEN: "{path} cannot be used: {why}",
    }

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` bars closed at `as_of`, oldest first; all when it is None.

        Raises ConfigError for a symbol without a broker's name, and DataUnavailable.
        """
        step = duration(timeframe)
        name = broker_name(self._symbols, symbol)
        wanted = BarFileOwner(self._channel, self._account, name, timeframe)
        content, status, fault = self.newest_copy(file_of(self._folder / FOLDER, wanted), wanted)
        if content is None:
            raise DataUnavailable(NO_FILE if status == NewsStatus.NO_FILE else BAD_FILE, fault)
        frame, clock_fault = content
        if clock_fault:
            raise DataUnavailable(SERVER_CLOCK, clock_fault)
        return newest_of(frame[frame.index <= pd.Timestamp(as_of - step)], limit)

    def read(
        self, raw: bytes, wanted: BarFileOwner, modified: datetime
    ) -> tuple[pd.DataFrame, str]:
        """Return the bars of a file in UTC, and how its offset contradicts the clock."""
        sheet = read_sheet(raw, self._key, wanted, self.newest)
        start = _doubtful(self._clock, sheet.wall)
        frame, fault = in_utc(sheet.wall[start:], sheet.bars[start:], self._clock)
        # The offset is of the moment of writing. That is when the file changed last or, for a file
        # that was copied since, soon after the newest bar's close.
        moments = [modified]
        if len(sheet.wall):
            closed = int(sheet.wall[-1]) - sheet.offset
            moments.append(EPOCH + timedelta(seconds=closed) + duration(wanted.timeframe))
        faults = [check(self._clock, sheet.offset, moment) for moment in moments]
        # One of the two moments is enough: around a change of the clock they differ.
        return frame, faults[-1] if all(faults) else fault

    def complain(self, status: NewsStatus, fault: str, *, kept: bool) -> None:
        """Log a fault where an older copy stands: without one the tick tells it."""
        del status
        if kept:
            log.warning("bars: %s; the last good copy stands", fault)


def file_of(folder: Path, wanted: BarFileOwner) -> Path:
    """Return where the bars or the order flow of a symbol lie.

    No two names share a file, and none is one that Windows reserves, for the timeframe is part of
    it. Names that differ in case alone would share one there, where the first line refuses one of
    them.
    """
    symbol = ESCAPED.sub(lambda match: b"%%%02X" % ord(match[0]), wanted.broker_symbol.encode())
    return folder / f"{symbol.decode()}_{wanted.timeframe}.csv"


def read_sheet(raw: bytes, key: str, wanted: BarFileOwner, newest: int | None = None) -> BarSheet:
    """Return the contents of a file's bytes, of its bars the `newest`.

    Raises ValueError when anything about it is wrong, its version first, then whose bars it holds.
    """
    (offset,), rows = signed_rows(raw, key, wanted, FIRST, HEADER, ROW, newest)
    split = [row.split(",") for row in rows]
    # reshape: of no rows at all numpy makes a table without columns.
    cells = np.array(split, dtype=np.float64).reshape(-1, 7)
    decimals = decimals_of([cell for row in split for cell in row[1:5]], terminal=True)
    cells[:, 6] = in_price(cells[:, 6], decimals)
    return BarSheet(cells[:, 0].astype(np.int64), cells[:, 1:], offset)


def signed_rows(
    raw: bytes,
    key: str,
    wanted: BarFileOwner,
    first: re.Pattern[str],
    header: str,
    row: re.Pattern[str],
    newest: int | None = None,
) -> tuple[list[int], list[str]]:
    """Return the rows of a signed file, or the `newest`, and the numbers behind their count.

    Raises ValueError when anything about it is wrong, its version first, then whose bars it holds.
    """
    lines = _signed_lines(raw, key)
    count, more = _parse_head(lines[0] if lines else "", wanted, first)
    if lines[1:2] != [header]:
        raise ValueError(f"its columns are not {header}: {AGAIN}")
    rows = lines[2:]
    if len(rows) != count:
        raise ValueError(f"it has {len(rows)} bars and says {count}")
    before = max(0, len(rows) - newest) if newest is not None else 0
    for number, text in enumerate(rows[before:], start=3 + before):
        if not row.fullmatch(text):
            raise ValueError(f"line {number} is not a bar")
    return more, rows[before:]


def _signed_lines(raw: bytes, key: str) -> list[str]:
    """Return the lines above the signature; ValueError for one that is missing or wrong."""
    encoding = next((name for mark, name in ENCODINGS if raw.startswith(mark)), "utf-8")
    body, newline, last = raw.decode(encoding).rstrip("\r\n").rpartition("\n")
    last = last.rstrip("\r")
    if not (end := END.fullmatch(last)):
        raise ValueError("its last line is missing; it may be half-written")
    # The signature before the contents: no line of a forged file is looked at.
    digest = hmac.new(key.encode(), (body + newline).encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(digest, end[1]):
        raise ValueError("its signature is wrong: do both sides have the same channel key?")
    return (body + newline).replace("\r\n", "\n").split("\n")[:-1]


def _parse_head(line: str, wanted: BarFileOwner, first: re.Pattern[str]) -> tuple[int, list[int]]:
    """Return how many bars and what follows; ValueError where it names others than wanted."""
    head, match = VERSION.match(line), first.fullmatch(line)
    if head and int(head[1]) != PROTOCOL:
        raise ValueError(difference(wanted.channel, int(head[1])))
    if not match:
        raise ValueError(f"its first line does not say whose bars they are: {AGAIN}")
    channel, account, symbol, timeframe, count, *more = match.groups()[1:]
    owner = BarFileOwner(channel, int(account), symbol, timeframe)
    if owner != wanted:
        raise ValueError(f"it holds the bars of {owner}, not of {wanted}: {_mend(owner, wanted)}")
    return int(count), [*map(int, more)]


def _mend(owner: BarFileOwner, wanted: BarFileOwner) -> str:
    """Return the remedy where a file holds other bars than those that are wanted."""
    name = wanted.channel
    if owner.channel != name:
        return f"is its folder that of channel {name}, and is {name} the Expert Advisor's channel?"
    if owner.account != wanted.account:
        return f"log MetaTrader in to {wanted.account}, or set channels.{name}.account"
    return "somebody has put it there under another's name; the next bar brings the right one back"


def _doubtful(clock: ServerClock, wall: Seconds) -> int:
    """Return how many bars at the file's head may be of either hour of an hour shown twice."""
    for count, time in enumerate(wall.tolist()):
        if not clock.shown_twice(time):
            return count
        if count and time <= wall[count - 1]:
            return 0
    return len(wall)


# --- order flow ---------------------------------------------------------------------------------


class FlowFiles(SignedFiles[dict[datetime, FlowRow]]):
    """The order flow of one account in one channel's folder: its rows by the open time of a bar."""

    faults: ClassVar[Mapping[NewsStatus, str]] = {
        NewsStatus.NO_FILE: "{path} is not there",
        NewsStatus.UNREACHABLE: "{path} cannot be read: {why}",
        NewsStatus.BROKEN: "{path} cannot be used: {why}",
    }

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        """Return what is known of the bars up to the one that opened last of `times`."""
        wanted = BarFileOwner(self._channel, self._account, self._symbols[symbol], timeframe)
        rows, status, _ = self.newest_copy(file_of(self._folder / FLOW_FOLDER, wanted), wanted)
        if rows is None:
            return FlowThen({}, str(status), SOURCE)
        if times[-1] in rows:
            return FlowThen(rows, str(NewsStatus.AVAILABLE), SOURCE)
        # One that cannot be opened may be about to be replaced: it is as if it had no such row.
        broken = status == NewsStatus.BROKEN
        return FlowThen(rows, str(status) if broken else missing(rows, times), SOURCE)

    def read(self, raw: bytes, wanted: BarFileOwner, modified: datetime) -> dict[datetime, FlowRow]:
        """Return the rows of a file's bytes; raises ValueError for anything wrong."""
        del modified
        return {row.bar_time: row for row in read_flow(raw, self._key, wanted, self._clock)}

    def complain(self, status: NewsStatus, fault: str, *, kept: bool) -> None:
        """Log a fault: an Expert Advisor of before writes no such file."""
        del kept
        level = logging.INFO if status is NewsStatus.NO_FILE else logging.WARNING
        log.log(level, "order flow: %s; ticks go on without, or with the last good copy", fault)


def read_flow(raw: bytes, key: str, wanted: BarFileOwner, clock: ServerClock) -> list[FlowRow]:
    """Return the rows of a file's bytes; raises ValueError when anything about it is wrong.

    Of an hour that the server shows twice no row is taken: with bars left out, nothing tells which
    of the two it is of.
    """
    (digits, _), lines = signed_rows(raw, key, wanted, FLOW_FIRST, FLOW_HEADER, FLOW_ROW)
    if digits > MOST_DECIMALS:
        raise ValueError(f"no symbol is quoted with {digits} decimals")
    cells = [line.split(",") for line in lines]
    wall = np.array([int(row[0]) for row in cells], dtype=np.int64)
    once = ~clock.all_shown_twice(wall)
    wall = wall[once]
    if (np.diff(wall) <= 0).any():
        raise ValueError("its bars are not in the order of their times")
    index = clock.to_utc_index(wall)
    if fault := clock_fault(wall, index, clock):
        raise ValueError(fault)
    times, kept = index.to_pydatetime().tolist(), compress(cells, once)
    return [_row(time, row, 10.0**-digits) for time, row in zip(times, kept, strict=True)]


def _row(time: datetime, cells: Sequence[str], point: float) -> FlowRow:
    """Return the row of a line; what is empty is None."""
    ticks, up, down = map(int, cells[1:4])
    if up + down > ticks:
        raise ValueError(f"the bar {time:%Y-%m-%d %H:%M} has more moves than ticks")
    mean, widest, levels, bids, asks, imbalance, slippage, events = (
        form(cell) if cell else None for form, cell in zip(FLOW_FORMS, cells[4:], strict=True)
    )
    # Rounded: 28 points of 0.01 are 0.28 and no 0.28000000000000003.
    mean, widest, slippage = (
        None if counted is None else round(counted * point, MOST_DECIMALS + 2)
        for counted in (mean, widest, slippage)
    )
    return FlowRow(
        time, ticks, up, down, mean, widest, levels, bids, asks, imbalance, slippage, events
    )

"""A feed of the bars that the Expert Advisor writes into the channel's folder.

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
writes in full, tell the point (torra.feeds.points).

The channel's clock turns times into UTC. Where that clock is not what the Expert Advisor says of
its server, no hour can be trusted: DataUnavailable (`server_clock`). Where the server shows an hour
twice in autumn, bars of that hour at the file's head may belong to either; they are left out.
Nothing else is repaired: the door checks the bars, and the store keeps a rewritten bar as a
revision.

A file is read again when its time, size or number has changed. Threads may share a feed.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.advisor_protocol import PROTOCOL, difference
from torra.clock import EPOCH, duration
from torra.errors import ConfigError, DataUnavailable
from torra.feeds import points
from torra.feeds.csv_file import ENCODINGS
from torra.feeds.protocol import COLUMNS, NO_FILE, SERVER_CLOCK
from torra.market.broker_clock import Seconds, ServerClock, check, offsets_used, shown
from torra.market.spreads import SPREAD
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
        told = f"channel {self.channel}, account {self.account}"
        return f"{told}, {self.broker_symbol} {self.timeframe}"


@dataclass(frozen=True, slots=True)
class BarSheet:
    """A file's contents: each bar's wall seconds, its open to spread, the server's offset.

    The spread is in units of the price, NaN where the point is not known.
    """

    wall: Seconds
    bars: npt.NDArray[np.float64]
    offset: int


@dataclass(frozen=True, slots=True)
class _Copy:
    """A good file: its signature on the disk, its bars, and the fault of its clock if any."""

    seen: tuple[int, int, int]
    frame: pd.DataFrame
    fault: str


class Mt5FilesFeed:
    """The bars of one channel; `symbols` gives the broker's name of each canonical symbol.

    `channel` and `account` are what the Expert Advisor has to sign its files with. Of each file the
    `newest` bars are read, None: all.
    """

    def __init__(
        self,
        folder: Path,
        symbols: Mapping[str, str],
        clock: ServerClock,
        key: str,
        *,
        channel: str,
        account: int,
        newest: int | None = None,
    ) -> None:
        if not key:
            raise ConfigError(
                f"bars in {folder} are signed and no channel key is set: put the key of the "
                "Expert Advisor into the environment"
            )
        self._folder = folder / FOLDER
        self._symbols = dict(symbols)
        self._clock = clock
        self._key = key
        self._channel = channel
        self._account = account
        self._newest = newest
        self._copies: dict[BarFileOwner, _Copy] = {}
        self._troubles: dict[BarFileOwner, str] = {}

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` bars closed at `as_of`, oldest first; all when it is None.

        Raises ConfigError for a symbol without a broker's name, and DataUnavailable.
        """
        step = duration(timeframe)
        if symbol not in self._symbols:
            known = ", ".join(self._symbols)
            raise ConfigError(f"the channel brings no bars of {symbol}; it brings {known}")
        wanted = BarFileOwner(self._channel, self._account, self._symbols[symbol], timeframe)
        copy = self._copy(wanted, step)
        if copy.fault:
            raise DataUnavailable(SERVER_CLOCK, copy.fault)
        closed = copy.frame[copy.frame.index <= pd.Timestamp(as_of - step)]
        # Not [-limit:], which is everything for a limit of 0.
        return closed if limit is None else closed.iloc[max(0, len(closed) - limit) :]

    def period(self) -> None:
        """Return None: the feed lives in real time."""
        return

    def _copy(self, wanted: BarFileOwner, step: timedelta) -> _Copy:
        """Return the file as it is now, or the last good copy of it."""
        path = file_of(self._folder, wanted)
        held = self._copies.get(wanted)
        try:
            found = path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            # Also after a trouble: the file that comes back may be the good one of before.
            if held is not None and held.seen == seen:
                self._troubles.pop(wanted, None)
                return held
            raw = read_regular(path, MAX_BYTES)
            copy = self._judge(read_sheet(raw, self._key, wanted, self._newest), seen, step)
        except FileNotFoundError:
            return self._last_good(wanted, NO_FILE, f"there is no {path}; {_remedy(wanted)}")
        except OSError as error:
            return self._last_good(wanted, BAD_FILE, f"cannot read {path}: {error.strerror}")
        except ValueError as error:
            return self._last_good(wanted, BAD_FILE, f"{path} cannot be used: {error}")
        self._copies[wanted] = copy
        self._troubles.pop(wanted, None)
        return copy

    def _last_good(self, wanted: BarFileOwner, reason: str, trouble: str) -> _Copy:
        held = self._copies.get(wanted)
        if held is None:
            raise DataUnavailable(reason, trouble)
        if self._troubles.get(wanted) != trouble:
            log.warning("bars: %s; the last good copy stands", trouble)
        self._troubles[wanted] = trouble
        return held

    def _judge(self, sheet: BarSheet, seen: tuple[int, int, int], step: timedelta) -> _Copy:
        """Convert the times of a good file, and hold its offset against the clock."""
        start = _doubtful(self._clock, sheet.wall)
        wall, bars = sheet.wall[start:], sheet.bars[start:]
        index = self._clock.to_utc_index(wall)
        fault = self._clock_fault(sheet, seen[0], step)
        if index.hasnans and not fault:
            first = shown(int(wall[index.isna()][0]))
            fault = f"{first} does not exist on a server of {self._clock.name}: set server_clock"
        frame = pd.DataFrame(bars, index=index.rename("time"), columns=[*COLUMNS, SPREAD])
        if not fault:
            stamps = pd.DatetimeIndex((wall * 1_000_000).view("M8[us]"))
            frame.attrs["clock"] = self._clock.name
            frame.attrs["utc_offsets"] = offsets_used(stamps, index)
        return _Copy(seen, frame, fault)

    def _clock_fault(self, sheet: BarSheet, modified: int, step: timedelta) -> str:
        """Say how the clock differs from the server's; empty when it fits.

        The offset is of the moment of writing. That is when the file changed last or, for a file
        that was copied since, soon after the newest bar's close.
        """
        moments = [EPOCH + timedelta(microseconds=modified // 1_000)]
        if len(sheet.wall):
            moments.append(EPOCH + timedelta(seconds=int(sheet.wall[-1]) - sheet.offset) + step)
        faults = [check(self._clock, sheet.offset, moment) for moment in moments]
        # One of the two moments is enough: around a change of the clock they differ.
        return faults[-1] if all(faults) else ""


def file_of(folder: Path, wanted: BarFileOwner) -> Path:
    """Return where the bars or the order flow of a symbol lie.

    No two names share a file, and none is one that Windows reserves, for the timeframe is part of
    it. Names that differ in case alone would share one there, where the first line refuses one of
    them.
    """
    symbol = ESCAPED.sub(lambda found: b"%%%02X" % ord(found[0]), wanted.broker_symbol.encode())
    return folder / f"{symbol.decode()}_{wanted.timeframe}.csv"


def read_sheet(raw: bytes, key: str, wanted: BarFileOwner, newest: int | None = None) -> BarSheet:
    """Return the contents of a file's bytes, of its bars the `newest`.

    Raises ValueError when anything about it is wrong, its version first, then whose bars it holds.
    """
    (offset,), rows = signed_rows(raw, key, wanted, FIRST, HEADER, ROW, newest)
    split = [row.split(",") for row in rows]
    # reshape: of no rows at all numpy makes a table without columns.
    cells = np.array(split, dtype=np.float64).reshape(-1, 7)
    decimals = points.decimals_of([cell for row in split for cell in row[1:5]], terminal=True)
    cells[:, 6] = points.in_price(cells[:, 6], decimals)
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
    body, newline, last = _text(raw).rstrip("\r\n").rpartition("\n")
    last = last.rstrip("\r")
    if not (end := END.fullmatch(last)):
        raise ValueError("its last line is missing; it may be half-written")
    # The signature before the contents: no line of a forged file is looked at.
    told = hmac.new(key.encode(), (body + newline).encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(told, end[1]):
        raise ValueError("its signature is wrong: do both sides have the same channel key?")
    return (body + newline).replace("\r\n", "\n").split("\n")[:-1]


def _parse_head(line: str, wanted: BarFileOwner, first: re.Pattern[str]) -> tuple[int, list[int]]:
    """Return how many bars and what follows; ValueError where it names others than wanted."""
    head, found = VERSION.match(line), first.fullmatch(line)
    if head and int(head[1]) != PROTOCOL:
        raise ValueError(difference(wanted.channel, int(head[1])))
    if not found:
        raise ValueError(f"its first line does not say whose bars they are: {AGAIN}")
    channel, account, symbol, timeframe, count, *more = found.groups()[1:]
    told = BarFileOwner(channel, int(account), symbol, timeframe)
    if told != wanted:
        raise ValueError(f"it holds the bars of {told}, not of {wanted}: {_mend(told, wanted)}")
    return int(count), [*map(int, more)]


def _mend(told: BarFileOwner, wanted: BarFileOwner) -> str:
    """Return the remedy where a file holds other bars than those that are wanted."""
    name = wanted.channel
    if told.channel != name:
        return f"is its folder that of channel {name}, and is {name} the Expert Advisor's channel?"
    if told.account != wanted.account:
        return f"log MetaTrader in to {wanted.account}, or set channels.{name}.account"
    return "somebody has put it there under another's name; the next bar brings the right one back"


def _text(raw: bytes) -> str:
    encoding = next((name for mark, name in ENCODINGS if raw.startswith(mark)), "utf-8")
    return raw.decode(encoding)


def _doubtful(clock: ServerClock, wall: Seconds) -> int:
    """Return how many bars at the file's head may be of either hour of an hour shown twice."""
    for count, time in enumerate(wall.tolist()):
        if not clock.shown_twice(time):
            return count
        if count and time <= wall[count - 1]:
            return 0
    return len(wall)


def _remedy(wanted: BarFileOwner) -> str:
    return (
        f"does the Expert Advisor run, with {wanted.broker_symbol} in its input bar_symbols and "
        f"{wanted.timeframe} in bar_timeframes?"
    )

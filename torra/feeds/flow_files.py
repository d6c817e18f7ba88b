"""The order flow that the Expert Advisor writes beside its bars, read as the bars are.

flow/<BROKER_SYMBOL>_<TIMEFRAME>.csv, named like the file of bars, has a line for each of the newest
closed bars that were counted whole (docs/mt5.md). It counts when everything is right that has to be
of a file of bars: version, channel, account, broker symbol, timeframe, number and signature. A file
that is missing, half-written, forged or another's changes nothing: the last good copy stands, which
is logged once, and where that has no row of the bar the status is `broken`. A file of long ago has
no line of the bar that is asked for, and so says nothing of it.

Nothing is raised: the status says why there is no row (torra.evidence.flow_readings). An Expert
Advisor of before writes no such file: `no_file`. Distances are in points there; the first line says
with how many decimals the symbol is quoted. Threads may share one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from torra.evidence.flow_readings import FlowRow, FlowThen, missing
from torra.evidence.news_digest import NewsStatus
from torra.feeds.mt5_files import OFFSET, WHOSE, BarFileOwner, file_of, signed_rows
from torra.feeds.points import MOST_DECIMALS
from torra.market.broker_clock import ServerClock, shown
from torra.regular_files import read_regular

FOLDER: Final = "flow"
SOURCE: Final = "mt5_files"
HEADER: Final = (
    "time,ticks,up,down,spread_mean,spread_widest,levels,bid_volume,ask_volume,imbalance,slippage,"
    "events"
)
FIRST: Final = re.compile(
    r'\{"v":([0-9]{1,9}),"msg":"flow",' + WHOSE + r'"digits":([0-9]{1,2}),' + OFFSET
)
_COUNT, _AMOUNT = r"\d{1,12}", r"\d{1,12}(?:\.\d{1,8})?"
ROW: Final = re.compile(
    rf"\d{{1,10}},{_COUNT},{_COUNT},{_COUNT},(?:{_AMOUNT},{_COUNT}|,),"
    rf"(?:{_COUNT},{_AMOUNT},{_AMOUNT},(?:-?{_AMOUNT})?,(?:{_AMOUNT})?,{_COUNT}|,,,,,)",
    re.ASCII,
)
MAX_BYTES: Final = 4_000_000

log = logging.getLogger("torra")


class _Copy(NamedTuple):
    """A good file: its signature on the disk, and its rows by the open time of their bar."""

    seen: tuple[int, int, int]
    rows: dict[datetime, FlowRow]


class FlowFiles:
    """The order flow of one account in one channel's folder; `symbols` are the broker's names."""

    def __init__(
        self,
        folder: Path,
        symbols: dict[str, str],
        clock: ServerClock,
        key: str,
        *,
        channel: str,
        account: int,
    ) -> None:
        self._folder = folder / FOLDER
        self._symbols = symbols
        self._clock = clock
        self._key = key
        self._channel = channel
        self._account = account
        self._copies: dict[BarFileOwner, _Copy] = {}
        self._troubles: dict[BarFileOwner, str] = {}

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        """Return what is known of the bars up to the one that opened last of `times`."""
        wanted = BarFileOwner(self._channel, self._account, self._symbols[symbol], timeframe)
        trouble = self._look(wanted)
        held = self._copies.get(wanted)
        if held is None:
            return FlowThen({}, trouble, SOURCE)
        if times[-1] in held.rows:
            return FlowThen(held.rows, str(NewsStatus.AVAILABLE), SOURCE)
        # One that cannot be opened may be about to be replaced: it is as if it had no such row.
        status = trouble if trouble == NewsStatus.BROKEN else missing(held.rows, times)
        return FlowThen(held.rows, status, SOURCE)

    def _look(self, wanted: BarFileOwner) -> str:
        """Read the file again if it has changed; return what is wrong with it, "" for nothing."""
        path = file_of(self._folder, wanted)
        trouble = partial(self._trouble, wanted, path)
        try:
            found = path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            held = self._copies.get(wanted)
            if held is None or held.seen != seen:
                rows = read_flow(read_regular(path, MAX_BYTES), self._key, wanted, self._clock)
                self._copies[wanted] = _Copy(seen, {row.bar_time: row for row in rows})
        except FileNotFoundError:
            return trouble(NewsStatus.NO_FILE, "is not there")
        except OSError as error:
            return trouble(NewsStatus.UNREACHABLE, f"cannot be read: {error.strerror}")
        except ValueError as error:
            return trouble(NewsStatus.BROKEN, f"cannot be used: {error}")
        self._troubles.pop(wanted, None)
        return ""

    def _trouble(self, wanted: BarFileOwner, path: Path, status: NewsStatus, what: str) -> str:
        if self._troubles.get(wanted) != what:
            tell = log.info if status is NewsStatus.NO_FILE else log.warning
            tell("order flow: %s %s; ticks go on without, or with the last good copy", path, what)
        self._troubles[wanted] = what
        return str(status)


def read_flow(raw: bytes, key: str, wanted: BarFileOwner, clock: ServerClock) -> list[FlowRow]:
    """Return the rows of a file's bytes; raises ValueError when anything about it is wrong.

    Of an hour that the server shows twice no row is taken: with bars left out, nothing tells which
    of the two it is of.
    """
    (digits, _), lines = signed_rows(raw, key, wanted, FIRST, HEADER, ROW)
    if digits > MOST_DECIMALS:
        raise ValueError(f"no symbol is quoted with {digits} decimals")
    cells = [line.split(",") for line in lines]
    wall = np.array([int(row[0]) for row in cells], dtype=np.int64)
    once = ~clock.all_shown_twice(wall)
    wall = wall[once]
    if (np.diff(wall) <= 0).any():
        raise ValueError("its bars are not in the order of their times")
    index = clock.to_utc_index(wall)
    if index.hasnans:
        first = shown(int(wall[index.isna()][0]))
        raise ValueError(f"{first} does not exist on a server of {clock.name}: set server_clock")
    times, kept = index.to_pydatetime().tolist(), compress(cells, once)
    return [_row(time, row, 10.0**-digits) for time, row in zip(times, kept, strict=True)]


def _row(time: datetime, cells: Sequence[str], point: float) -> FlowRow:
    """Return the row of a line; what is empty is None."""
    ticks, up, down = map(int, cells[1:4])
    if up + down > ticks:
        raise ValueError(f"the bar {time:%Y-%m-%d %H:%M} has more moves than ticks")
    mean, widest, slippage = (_distance(cells[at], point) for at in (4, 5, 10))
    levels, events = (_whole(cells[at]) for at in (6, 11))
    bids, asks, imbalance = (float(cell) if cell else None for cell in cells[7:10])
    return FlowRow(
        time, ticks, up, down, mean, widest, levels, bids, asks, imbalance, slippage, events
    )


def _distance(points: str, point: float) -> float | None:
    # Rounded: 28 points of 0.01 are 0.28 and no 0.28000000000000003.
    return round(float(points) * point, MOST_DECIMALS + 2) if points else None


def _whole(cell: str) -> int | None:
    return int(cell) if cell else None

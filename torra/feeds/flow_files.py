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
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import compress
from typing import ClassVar, Final

import numpy as np

from torra.evidence.flow_readings import FlowRow, FlowThen, missing
from torra.evidence.news_digest import NewsStatus
from torra.feeds.frame import clock_fault
from torra.feeds.mt5_files import (
    OFFSET,
    WHOSE,
    BarFileOwner,
    SignedFiles,
    file_of,
    signed_rows,
)
from torra.feeds.points import MOST_DECIMALS
from torra.market.broker_clock import ServerClock

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
FORMS: Final = (float, float, int, float, float, float, float, int)
"""How the cells of a row behind its counts of ticks are read; an empty one is None."""

log = logging.getLogger("torra")


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
        rows, status, _ = self.newest_copy(file_of(self._folder / FOLDER, wanted), wanted)
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
        form(cell) if cell else None for form, cell in zip(FORMS, cells[4:], strict=True)
    )
    # Rounded: 28 points of 0.01 are 0.28 and no 0.28000000000000003.
    mean, widest, slippage = (
        None if counted is None else round(counted * point, MOST_DECIMALS + 2)
        for counted in (mean, widest, slippage)
    )
    return FlowRow(
        time, ticks, up, down, mean, widest, levels, bids, asks, imbalance, slippage, events
    )

"""The order flow of a bar, and what a tick reads of it: ticks, moves, spreads and the order book.

A `FlowRow` is what the terminal counted inside one closed bar (docs/outside.md, "Order flow"). A
tick reads the rows of its last 20 bars. Nothing is told where the deciding bar has none, and of the
book where the broker sent none: a market without a book is not one with an empty book.

    ticks_ratio       ticks / mean of the ticks of the last 20 bars, the deciding one among them
    up_share          up / (up + down)
    spread_mean_atr   mean spread over the bar's ticks / ATR14; spread_widest_atr of the widest
    book_imbalance    (bid volume - ask volume) / (bid volume + ask volume), at the close
    slippage_atr      what one lot costs beyond the best price, on the dearer side / ATR14

`known` gives the stored rows of a replay as a live feed does, `older` makes the placebo of them and
`with_other_future` another future; torra.replay.outlook_then reads what a desk has stored. Pure
values and functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from numpy.random import Generator

from agents.features import ids_of
from torra.clock import duration
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_readings import OutsideView, SeriesValue

BLOCK: Final = "flow"
MEAN_BARS: Final = 20
"""Bars of the mean of ticks; without a row of each of them there is no ratio."""

DELTA: Final = "liquidity.delta20"
"""Delta of these bars: evidence of the liquidity expert, and no feature of this block."""


class FlowRow(NamedTuple):
    """What moved inside one bar; distances in units of the price, volumes in lots.

    `up` and `down` are moves of the bid, or of the price of trades where the broker sends them.
    Spreads are None where no tick had both sides, everything of the book where there was none, and
    `slippage` where one of its sides did not hold a lot. `events` is None where nobody counted.
    """

    bar_time: datetime
    ticks: int
    up: int
    down: int
    spread_mean: float | None = None
    spread_widest: float | None = None
    levels: int | None = None
    bid_volume: float | None = None
    ask_volume: float | None = None
    imbalance: float | None = None
    slippage: float | None = None
    events: int | None = None


class FlowThen(NamedTuple):
    """The rows of a tick's bars, and why there is none of the deciding bar.

    `source` names who counted: mt5_files (the Expert Advisor) or mt5_direct.
    """

    rows: Mapping[datetime, FlowRow]
    status: str = str(NewsStatus.AVAILABLE)
    source: str = ""


Flow = Callable[[str, Sequence[datetime]], FlowThen]
"""Returns what is known of the bars of a timeframe that opened at some times."""

FlowRows = Mapping[str, tuple[FlowRow, ...]]
"""Rows by timeframe, oldest first: those of a replay, each known from the close of its bar."""

STORED: Final = "store"
"""The source of order flow that a desk has kept."""

NO_FLOW: Final = FlowThen({}, str(NewsStatus.OFF))
"""Of a feed that brings none."""

NAMES: Final = [name.partition(".")[2] for name in ids_of(BLOCK)]
"""Features of the block, in order."""

STALE: Final = "stale"
LEFT_OUT: Final = "left_out"
FAULTS: Final = (str(NewsStatus.BROKEN), str(NewsStatus.UNREACHABLE), STALE)
"""States that somebody has to look into; an older Expert Advisor just writes nothing."""

RECENT: Final = 3
"""Bars, the deciding one among them, whose newest row is one that only comes a little late."""


def missing(rows: Mapping[datetime, FlowRow], times: Sequence[datetime]) -> str:
    """Return why a source that answered has no row of the last of some bars.

    It was left out, does not stand there yet, or nothing is counted any more (`stale`).
    """
    newest = max(rows, default=None)
    if newest is not None and newest > times[-1]:
        return LEFT_OUT
    late = newest is not None and newest >= times[-RECENT:][0]
    return str(NewsStatus.NOT_YET) if late else STALE


def read(
    then: FlowThen,
    times: Sequence[datetime],
    close: datetime,
    atr: float,
    *,
    experts: bool = False,
) -> OutsideView:
    """Return the features of the bars that opened at `times`, the last one closed at `close`.

    For `experts` the delta of those bars is among them.
    """
    newest = [then.rows[time] for time in times[-MEAN_BARS:] if time in then.rows]
    whole = newest if len(newest) == MEAN_BARS else []
    up, down = sum(row.up for row in whole), sum(row.down for row in whole)
    delta = {DELTA: _share(up - down, up + down)} if experts else {}
    row = then.rows.get(times[-1])
    if row is None:
        status = LEFT_OUT if then.status == NewsStatus.AVAILABLE else then.status
        return OutsideView(dict.fromkeys(ids_of(BLOCK)) | delta, {BLOCK: status})

    def in_atr(distance: float | None) -> float | None:
        return distance / atr if distance is not None and 0.0 < atr < math.inf else None

    numbers: dict[str, float | str | None] = {
        "flow.ticks": float(row.ticks),
        "flow.ticks_ratio": _share(row.ticks * MEAN_BARS, sum(bar.ticks for bar in whole)),
        "flow.up_share": _share(row.up, row.up + row.down),
        "flow.spread_mean_atr": in_atr(row.spread_mean),
        "flow.spread_widest_atr": in_atr(row.spread_widest),
        "flow.book_levels": _number(row.levels),
        "flow.book_imbalance": row.imbalance,
        "flow.slippage_atr": in_atr(row.slippage),
        "flow.book_events": _number(row.events),
    }
    value = SeriesValue(float(row.ticks), row.bar_time, close, then.source)
    return OutsideView(numbers | delta, {BLOCK: str(NewsStatus.AVAILABLE)}, {BLOCK: value})


def _number(count: int | None) -> float | None:
    return None if count is None else float(count)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


# --- of a replay ----------------------------------------------------------------------------------


def flow_by_time(flow: FlowRows) -> Flow:
    """Return the function that gives the rows of bars by their open times."""
    by_time = {name: {row.bar_time: row for row in rows} for name, rows in flow.items()}

    def then(timeframe: str, times: Sequence[datetime]) -> FlowThen:
        stored = by_time.get(timeframe, {})
        rows = {time: stored[time] for time in times if time in stored}
        status = str(NewsStatus.AVAILABLE) if times[-1] in rows else LEFT_OUT
        return FlowThen(rows, status, STORED)

    return then


def name_of(timeframe: str) -> str:
    """Return what the order flow of a timeframe is called among the series."""
    return f"order flow of {timeframe}"


def older(flow: FlowRows, shift: timedelta, short: Sequence[str]) -> FlowRows:
    """Return each bar's row as that of the bar so much before; without those that are too short."""
    return {
        name: tuple(row._replace(bar_time=row.bar_time + shift) for row in rows)
        for name, rows in flow.items()
        if name_of(name) not in short
    }


def with_other_future(flow: FlowRows, as_of: datetime, rng: Generator) -> FlowRows:
    """Return it with other values for all bars that were not closed at a moment."""
    return {
        name: tuple(
            row if row.bar_time + duration(name) <= as_of else _other(row, rng) for row in rows
        )
        for name, rows in flow.items()
    }


def _other(row: FlowRow, rng: Generator) -> FlowRow:
    """Return another row of a bar; what has no book has none there either."""
    numbers: dict[str, Any] = {
        name: int(rng.integers(1, 1000)) if isinstance(value, int) else float(rng.uniform(1e-3, 1))
        for name, value in row._asdict().items()
        if isinstance(value, int | float)
    }
    return row._replace(**numbers)

"""The order flow of a bar, and what a tick reads of it: ticks, moves, spreads and the order book.

A `FlowRow` is what the terminal counted inside one closed bar (docs/outside.md, "Order flow"). A
tick reads the rows of its last 20 bars. Nothing is told where the deciding bar has none, and of the
book where the broker sent none: a market without a book is not one with an empty book.

    ticks_ratio       ticks / mean of the ticks of the last 20 bars, the deciding one among them
    up_share          up / (up + down)
    spread_mean_atr   mean spread over the bar's ticks / ATR14; spread_widest_atr of the widest
    book_imbalance    (bid volume - ask volume) / (bid volume + ask volume), at the close
    slippage_atr      what one lot costs beyond the best price, on the dearer side / ATR14

Pure values and functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_readings import NO_OUTSIDE, OutsideView, SeriesValue

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

NO_FLOW: Final = FlowThen({}, str(NewsStatus.OFF))
"""Of a feed that brings none."""

NAMES: Final = (
    *("ticks", "ticks_ratio", "up_share", "spread_mean_atr", "spread_widest_atr"),
    *("book_levels", "book_imbalance", "slippage_atr", "book_events"),
)
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
    found = _read(then, times, close, atr)
    if not experts:
        return found
    return replace(found, numbers={**found.numbers, DELTA: _delta(then.rows, times)})


def _read(then: FlowThen, times: Sequence[datetime], close: datetime, atr: float) -> OutsideView:
    row = then.rows.get(times[-1])
    if row is None:
        known = LEFT_OUT if then.status == NewsStatus.AVAILABLE else then.status
        nothing = {f"{BLOCK}.{name}": None for name in NAMES}
        return OutsideView(nothing, {BLOCK: known})
    values = (
        float(row.ticks),
        _ratio(then.rows, times),
        row.up / (row.up + row.down) if row.up + row.down else None,
        _in_atr(row.spread_mean, atr),
        _in_atr(row.spread_widest, atr),
        _number(row.levels),
        row.imbalance,
        _in_atr(row.slippage, atr),
        _number(row.events),
    )
    numbers = {f"{BLOCK}.{name}": value for name, value in zip(NAMES, values, strict=True)}
    seen = SeriesValue(float(row.ticks), row.bar_time, close, then.source)
    return OutsideView(numbers, {BLOCK: str(NewsStatus.AVAILABLE)}, {BLOCK: seen})


def beside(outside: OutsideView | None, flow: OutsideView) -> OutsideView:
    """Return the outside numbers with the order flow among them."""
    known = outside or NO_OUTSIDE
    return replace(
        known,
        numbers={**known.numbers, **flow.numbers},
        statuses={**known.statuses, **flow.statuses},
        seen={**known.seen, **flow.seen},
    )


def _ratio(rows: Mapping[datetime, FlowRow], times: Sequence[datetime]) -> float | None:
    ticks = [rows[time].ticks for time in times[-MEAN_BARS:] if time in rows]
    if len(ticks) < MEAN_BARS or not sum(ticks):
        return None
    return ticks[-1] * len(ticks) / sum(ticks)


def _delta(rows: Mapping[datetime, FlowRow], times: Sequence[datetime]) -> float | None:
    """Return the moves up less those down as a share of both; None without a row of each bar."""
    known = [rows[time] for time in times[-MEAN_BARS:] if time in rows]
    up, down = sum(row.up for row in known), sum(row.down for row in known)
    return (up - down) / (up + down) if len(known) == MEAN_BARS and up + down else None


def _in_atr(distance: float | None, atr: float) -> float | None:
    if distance is None or not math.isfinite(atr) or atr <= 0.0:
        return None
    return distance / atr


def _number(count: int | None) -> float | None:
    return None if count is None else float(count)

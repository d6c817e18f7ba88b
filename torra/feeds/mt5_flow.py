"""The order flow of a bar that just closed, from the MetaTrader5 package.

It is counted as the Expert Advisor counts (docs/mt5.md): from the terminal's ticks of the bar, and
from the order book. The package tells a book only as it is now, so it counts for the newest bar
alone, and for BOOK_SECONDS after its close; its changes nobody can count. A bar of which fewer
ticks are there than WHOLE of those that it counts itself has a gap, and is left out; so is one in
an hour that the server shows twice, whose ticks nobody can tell apart. Bars of before are not asked
for: the desk has kept theirs.

An answer that does not come is a status, and nothing is raised for it. Threads may share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from torra.clock import Clock, duration
from torra.errors import BridgeUnavailable
from torra.evidence.flow_readings import LEFT_OUT, FlowRow, FlowThen
from torra.evidence.news_digest import NewsStatus
from torra.market.broker_clock import ServerClock

if TYPE_CHECKING:
    from torra.feeds.mt5_direct import TerminalPackage

SOURCE: Final = "mt5_direct"
WHOLE: Final = 0.9
"""Share of a bar's ticks without which it is left out."""

BOOK_SECONDS: Final = timedelta(seconds=10)
"""How long after a close the book of now counts as that of the close."""

TRADE: Final = 8
"""TICK_FLAG_LAST: the tick brings the price of a trade."""

SELL, BUY = 1, 2
"""Types of the entries of a book; those of orders at the market have no price and count not."""

LOT: Final = 1.0
DUST: Final = 1e-8
"""Less than this is no volume."""

DECIMALS: Final = 10


class BookSummary(NamedTuple):
    """An order book: its levels, the lots of both sides, and what one lot costs beyond the best."""

    levels: int
    bids: float
    asks: float
    slippage: float | None


class Mt5DirectFlow:
    """The order flow of one terminal; `symbols` are the broker's names."""

    def __init__(
        self,
        terminal: TerminalPackage,
        symbols: Mapping[str, str],
        server: ServerClock,
        clock: Clock,
    ) -> None:
        self._terminal = terminal
        self._symbols = dict(symbols)
        self._server = server
        self._clock = clock
        self._watched: set[str] = set()

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        """Return the row of the bar that opened last of `times`."""
        name, bar_time = self._symbols[symbol], times[-1]
        try:
            row = self._row(name, timeframe, bar_time)
        except BridgeUnavailable:
            return FlowThen({}, str(NewsStatus.UNREACHABLE), SOURCE)
        if row is None:
            return FlowThen({}, LEFT_OUT, SOURCE)
        return FlowThen({bar_time: row}, str(NewsStatus.AVAILABLE), SOURCE)

    def _row(self, name: str, timeframe: str, bar_time: datetime) -> FlowRow | None:
        step = duration(timeframe)
        wall = self._server.from_utc(bar_time)
        # First: the book goes on, the ticks stay.
        book = self._book(name, bar_time + step)
        end = wall + int(step.total_seconds())
        if self._server.shown_twice(wall):
            return None
        every = self._terminal.number("COPY_TICKS_ALL")
        found = self._ask("copy_ticks_range", name, wall, end, every)
        period = self._terminal.number(f"TIMEFRAME_{timeframe}")
        bars = self._ask("copy_rates_range", name, period, wall, wall)
        digits = getattr(self._ask("symbol_info", name), "digits", None)
        if found is None or bars is None or not len(bars) or digits is None:
            return None
        ticks = found[(found["time_msc"] >= wall * 1000) & (found["time_msc"] < end * 1000)]
        if not len(ticks) or len(ticks) < WHOLE * float(bars["tick_volume"][-1]):
            return None
        return counted(bar_time, ticks, int(digits), book)

    def _book(self, name: str, close: datetime) -> BookSummary | None:
        """Return the book as it is now, where that is as good as at the close."""
        if name not in self._watched and self._ask("market_book_add", name):
            self._watched.add(name)
        entries = self._ask("market_book_get", name)
        late = self._clock.now() - close
        return summed(entries) if entries and late <= BOOK_SECONDS else None

    def _ask(self, function: str, *args: Any) -> Any:
        return self._terminal.ask(function, *args).value


def counted(
    bar_time: datetime, ticks: np.ndarray[Any, Any], digits: int, book: BookSummary | None
) -> FlowRow:
    """Return the row of a bar's ticks and of the book at its close."""
    trades = ticks[(ticks["flags"].astype(np.int64) & TRADE > 0) & (ticks["last"] > 0)]
    prices = trades["last"] if len(trades) else ticks["bid"][ticks["bid"] > 0]
    scale = 10.0**digits
    steps = [now - then for then, now in pairwise(np.round(prices * scale).tolist())]
    both = ticks[(ticks["bid"] > 0) & (ticks["ask"] >= ticks["bid"])]
    spreads = np.round((both["ask"] - both["bid"]) * scale)
    row = FlowRow(
        bar_time,
        len(ticks),
        sum(step > 0 for step in steps),
        sum(step < 0 for step in steps),
        round(float(spreads.mean()) / scale, DECIMALS) if len(both) else None,
        round(float(spreads.max()) / scale, DECIMALS) if len(both) else None,
    )
    if book is None:
        return row
    lots = book.bids + book.asks
    return row._replace(
        levels=book.levels,
        bid_volume=book.bids,
        ask_volume=book.asks,
        imbalance=round((book.bids - book.asks) / lots, 4) if lots else None,
        slippage=book.slippage,
    )


def summed(entries: Iterable[Any]) -> BookSummary | None:
    """Return what an order book comes to; None of one without a price."""
    priced = [
        (int(one.type), float(one.price), float(one.volume_dbl) or float(one.volume))
        for one in entries
        if int(one.type) in (SELL, BUY) and one.price > 0
    ]
    if not priced:
        return None
    sides = {side: sorted((p, v) for kind, p, v in priced if kind == side) for side in (SELL, BUY)}
    bids, asks = (float(sum(volume for _, volume in sides[side])) for side in (BUY, SELL))
    slips = [_slipped(sides[SELL]), _slipped(sides[BUY][::-1])]
    worse = [slip for slip in slips if slip is not None]
    return BookSummary(len(priced), bids, asks, max(worse) if len(worse) == len(slips) else None)


def _slipped(side: Sequence[tuple[float, float]]) -> float | None:
    """Return how much worse than the best price one lot is; None where the side holds none."""
    left = LOT
    cost = 0.0
    for price, volume in side:
        taken = min(left, volume)
        cost += taken * abs(price - side[0][0])
        left -= taken
        if left <= DUST:
            return round(cost, DECIMALS)
    return None

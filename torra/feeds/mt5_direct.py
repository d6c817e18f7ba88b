"""What the MetaTrader5 package gives: bars, and the order flow of a bar that just closed.

The connection to the terminal comes in as a value (torra.bridges.mt5.terminal.Terminal fits, and a
bridge to the same terminal shares it). The package stamps bars with the server's wall clock; the
channel's clock turns them into UTC. Position 0 of its bars is the one that is still forming. A bar
counts as closed when its time is over and either a later bar has begun or SETTLE has passed: a
trade in its last second arrives a little later, and in a quiet market no bar follows.

Two things are DataUnavailable: an answer of None (`no_bars`), with the words of last_error, and a
time that the server never shows (`server_clock`), because no hour can be trusted then. Nothing is
repaired and no gap is filled: the door checks the bars. The volume is the tick volume: the real one
is 0 for currencies and metals. The spread comes in points, whose size the terminal says of the
symbol; where it does not, no spread is known. Threads may share a feed.

Order flow is counted as the Expert Advisor counts (docs/mt5.md): from the terminal's ticks of the
bar, and from the order book. The package tells a book only as it is now, so it counts for the
newest bar alone, and for BOOK_SECONDS after its close; its changes nobody can count. A bar of which
fewer ticks are there than WHOLE of those that it counts itself has a gap, and is left out; so is
one in an hour that the server shows twice, whose ticks nobody can tell apart. Bars of before are
not asked for: the desk has kept theirs. An answer that does not come is a status, and nothing is
raised for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from torra.clock import Clock, duration
from torra.errors import BridgeUnavailable, DataUnavailable
from torra.evidence.flow_readings import LEFT_OUT, FlowRow, FlowThen
from torra.evidence.news_digest import NewsStatus
from torra.feeds.frame import (
    broker_name,
    in_price,
    in_utc,
    newest_of,
)
from torra.feeds.limited import LimitedFlow, LiveFeed
from torra.feeds.protocol import NO_BARS, SERVER_CLOCK
from torra.market.broker_clock import Seconds, ServerClock
from torra.market.spreads import SPREAD

SETTLE: Final = timedelta(seconds=5)
"""How long after its time a bar without a follower may still change."""

MOST_BARS: Final = 50_000
"""More are asked for by time, not by number: terminals keep 100,000 by default."""

WEEKENDS: Final = 2
"""Bars that are asked for by time cover this many times the wanted length, and a fortnight."""

FORTNIGHT: Final = timedelta(days=14)
HEAD: Final = timedelta(hours=2)
"""Time that is asked for beyond what is wanted.

The first bars may lie in an hour that the server shows twice, where only what came before tells
which of the two it is.
"""

FIRST_SECOND: Final = 86_400
"""Wall seconds of the oldest bar that is asked for: the second day of 1970."""

SOURCES: Final = ("open", "high", "low", "close", "tick_volume")


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


Book = dict[str, Any]
"""An order book: its levels, the lots of both sides, which of them leans, and what one lot costs
beyond the best price.
"""


class TerminalPackage(Protocol):
    """The package behind a time limit (torra.bridges.mt5.terminal.Terminal)."""

    def ask(self, name: str, *args: Any) -> Any:
        """Call a function of the package; raises BridgeUnavailable when it does not return.

        The answer has a `value`, None for none, and then a `fault`, the words of last_error.
        """
        ...

    def number(self, name: str) -> int:
        """Return a constant of the package."""
        ...


class Mt5DirectFeed(LiveFeed):
    """The bars of one terminal; `symbols` gives the broker's name of each canonical symbol."""

    def __init__(
        self,
        terminal: TerminalPackage,
        symbols: Mapping[str, str],
        server: ServerClock,
        clock: Clock,
        flow: LimitedFlow | None = None,
    ) -> None:
        self._flow = flow
        self._terminal = terminal
        self._symbols = dict(symbols)
        self._server = server
        self._clock = clock
        self._selected: set[str] = set()
        self._decimals: dict[str, int] = {}

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` bars closed at `as_of`, oldest first; all when it is None.

        Raises ConfigError for a symbol without a broker's name, and DataUnavailable.
        """
        step = duration(timeframe)
        name = broker_name(self._symbols, symbol)
        period = self._terminal.number(f"TIMEFRAME_{timeframe}")
        self._select(name)
        decimals = self._decimals_of(name)
        rates = self._rates(name, period, step, as_of, limit)
        frame = self._frame(rates, name, decimals)
        settled = min(as_of, self._clock.now() - SETTLE)
        closed = frame.index <= pd.Timestamp(as_of - step)
        # No bar follows the last one: a late trade may still change it.
        if len(frame) and frame.index[-1] > pd.Timestamp(settled - step):
            closed[-1] = False
        return newest_of(frame[closed], limit)

    def _select(self, name: str) -> None:
        """Put a symbol into Market Watch: the terminal keeps bars of no others up to date."""
        if name in self._selected:
            return
        if not self._ask(name, "symbol_select", name, True):
            raise DataUnavailable(
                NO_BARS, f"the broker has no symbol {name}: name it as Market Watch does"
            )
        self._selected.add(name)

    def _rates(
        self, name: str, period: int, step: timedelta, as_of: datetime, limit: int | None
    ) -> Any:
        """Ask by number from the newest bar backwards where that is few, else by time."""
        since_then = max(timedelta(0), self._clock.now() - as_of)
        # Two more: the bar that is forming, and the one that the division cuts off.
        count = (limit or 0) + (since_then + HEAD) // step + 2
        if limit is not None and count <= MOST_BARS:
            return self._ask(name, "copy_rates_from_pos", name, period, 0, count)
        start = FIRST_SECOND
        if limit is not None:
            start = self._server.from_utc(as_of - WEEKENDS * limit * step - FORTNIGHT)
        end = self._server.from_utc(as_of)
        return self._ask(name, "copy_rates_range", name, period, max(start, FIRST_SECOND), end)

    def _ask(self, name: str, function: str, *args: Any) -> Any:
        try:
            answer = self._terminal.ask(function, *args)
        except BridgeUnavailable as error:
            raise DataUnavailable(NO_BARS, str(error)) from error
        if answer.value is None:
            raise DataUnavailable(
                NO_BARS, f"MetaTrader 5 gives no bars of {name}: {function}: {answer.fault}"
            )
        return answer.value

    def _decimals_of(self, name: str) -> int | None:
        """Return with how many decimals the symbol is quoted; None while nobody says it."""
        if name not in self._decimals:
            # A spread is never needed: no bar waits for it, and none is refused.
            with suppress(BridgeUnavailable, AttributeError, TypeError, ValueError):
                self._decimals[name] = int(self._terminal.ask("symbol_info", name).value.digits)
        return self._decimals.get(name)

    def _frame(self, rates: Any, name: str, decimals: int | None) -> pd.DataFrame:
        """Return the package's bars, in UTC."""
        wall: Seconds = np.asarray(rates["time"], dtype=np.int64)
        columns = [np.asarray(rates[source], np.float64) for source in SOURCES]
        counted = np.asarray(rates[SPREAD], np.float64)
        columns.append(in_price(counted, decimals))
        frame, fault = in_utc(wall, np.column_stack(columns), self._server)
        if fault:
            raise DataUnavailable(SERVER_CLOCK, f"{name}: {fault}")
        return frame


# --- order flow ---------------------------------------------------------------------------------


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
        rows = self._ask("copy_ticks_range", name, wall, end, every)
        period = self._terminal.number(f"TIMEFRAME_{timeframe}")
        bars = self._ask("copy_rates_range", name, period, wall, wall)
        digits = getattr(self._ask("symbol_info", name), "digits", None)
        if rows is None or bars is None or not len(bars) or digits is None:
            return None
        ticks = rows[(rows["time_msc"] >= wall * 1000) & (rows["time_msc"] < end * 1000)]
        if not len(ticks) or len(ticks) < WHOLE * float(bars["tick_volume"][-1]):
            return None
        return counted(bar_time, ticks, int(digits), book)

    def _book(self, name: str, close: datetime) -> Book | None:
        """Return the book as it is now, where that is as good as at the close."""
        if name not in self._watched and self._ask("market_book_add", name):
            self._watched.add(name)
        entries = self._ask("market_book_get", name)
        late = self._clock.now() - close
        return summed(entries) if entries and late <= BOOK_SECONDS else None

    def _ask(self, function: str, *args: Any) -> Any:
        return self._terminal.ask(function, *args).value


def counted(
    bar_time: datetime, ticks: np.ndarray[Any, Any], digits: int, book: Book | None
) -> FlowRow:
    """Return the row of a bar's ticks and of the book at its close."""
    trades = ticks[(ticks["flags"].astype(np.int64) & TRADE > 0) & (ticks["last"] > 0)]
    prices = trades["last"] if len(trades) else ticks["bid"][ticks["bid"] > 0]
    scale = 10.0**digits
    steps = np.diff(np.round(prices * scale))
    both = ticks[(ticks["bid"] > 0) & (ticks["ask"] >= ticks["bid"])]
    spreads = np.round((both["ask"] - both["bid"]) * scale)
    sizes = (spreads.mean(), spreads.max()) if len(both) else ()
    mean, widest = [round(float(size) / scale, DECIMALS) for size in sizes] or (None, None)
    ups, downs = (int(np.count_nonzero(way)) for way in (steps > 0, steps < 0))
    return FlowRow(bar_time, len(ticks), ups, downs, mean, widest)._replace(**(book or {}))


def summed(entries: Iterable[Any]) -> Book | None:
    """Return what an order book comes to, by fields of a FlowRow; None of one without a price."""
    sides: dict[int, list[tuple[float, float]]] = {SELL: [], BUY: []}
    for one in entries:
        if int(one.type) in sides and one.price > 0:
            lots = float(one.volume_dbl) or float(one.volume)
            sides[int(one.type)].append((float(one.price), lots))
    asks, bids = sorted(sides[SELL]), sorted(sides[BUY], reverse=True)
    if not (asks or bids):
        return None
    offered, wanted = (float(sum(lots for _, lots in side)) for side in (asks, bids))
    slips, both = (_slipped(asks), _slipped(bids)), wanted + offered
    return {
        "levels": len(asks) + len(bids),
        "bid_volume": wanted,
        "ask_volume": offered,
        "imbalance": round((wanted - offered) / both, 4) if both else None,
        "slippage": None if slips[0] is None or slips[1] is None else max(slips[0], slips[1]),
    }


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

"""A feed of the bars that the MetaTrader5 package gives.

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
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from torra.clock import Clock, duration
from torra.errors import BridgeUnavailable, DataUnavailable
from torra.feeds import points
from torra.feeds.frame import broker_name, in_utc, newest_of
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
        columns.append(points.in_price(counted, decimals))
        frame, fault = in_utc(wall, np.column_stack(columns), self._server)
        if fault:
            raise DataUnavailable(SERVER_CLOCK, f"{name}: {fault}")
        return frame

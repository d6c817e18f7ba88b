"""A terminal of the MetaTrader5 package full of bars, with a clock and the feed that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pandas as pd

from tests.doubles.fake_metatrader5 import RATES, FakeMetaTrader5
from tests.doubles.hand_clock import HandClock
from torra.bridges.mt5.terminal import Terminal
from torra.clock import duration
from torra.feeds.limited import LimitedFlow
from torra.feeds.mt5_direct import Mt5DirectFeed, Mt5DirectFlow
from torra.market.broker_clock import ServerClock

NOON: Final = datetime(2026, 3, 4, 12, tzinfo=UTC)
PERIODS: Final = {
    "M1": 1, "M5": 5, "M15": 15, "M30": 30, "H1": 16385, "H4": 16388, "D1": 16408,
}  # fmt: skip


class TerminalDesk:
    """A terminal, and what a feed of it is made of; XAUUSD is XAUUSD.m there, GOLD is nothing."""

    def __init__(
        self,
        server: str = "new_york+7",
        now: datetime = NOON,
        *,
        seconds: float = 5.0,
        package: type[FakeMetaTrader5] = FakeMetaTrader5,
    ) -> None:
        self.clock = HandClock(now)
        self.server = ServerClock.parse(server)
        self.package: Any = package(self.clock, self.server)
        self.terminal = Terminal(self.package, seconds=seconds)
        self.open({"XAUUSD": "XAUUSD.m", "GOLD": "NOWHERE"})

    def open(self, symbols: dict[str, str]) -> None:
        """Open a feed anew, with order flow beside its bars."""
        self.told = self.terminal, symbols, self.server, self.clock
        self.feed = Mt5DirectFeed(*self.told, LimitedFlow(Mt5DirectFlow(*self.told)))

    def fill(self, timeframe: str, opens: Sequence[datetime], symbol: str = "XAUUSD.m") -> None:
        """Give the terminal bars, each with a range of 4 around a price of its own."""
        rates = np.zeros(len(opens), dtype=RATES)
        rates["time"] = [self.server.from_utc(at) for at in opens]
        base = np.array([(at - opens[0]).total_seconds() / 1e6 for at in opens]) + 2000
        for column, more in (("open", 0), ("high", 2), ("low", -2), ("close", 1)):
            rates[column] = base + more
        rates["tick_volume"], rates["spread"] = 2**40, 20
        self.package.rates[symbol, PERIODS[timeframe]] = rates

    def bars(self, timeframe: str, as_of: datetime, limit: int | None = 750) -> pd.DataFrame:
        """Return what the feed brings of gold."""
        return self.feed.bars("XAUUSD", timeframe, as_of, limit)


def grid(timeframe: str, start: datetime, end: datetime) -> list[datetime]:
    """Return every open time in [start, end], round the clock."""
    count = (end - start) // duration(timeframe) + 1
    return [start + at * duration(timeframe) for at in range(count)]

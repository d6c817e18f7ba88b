"""Companions at a terminal of the MetaTrader5 package, which answers one question after the other.

There a companion that is slow does hold up the desk's own questions. The terminal is
the real one over a package that does not answer for one symbol.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from tests.doubles.fake_metatrader5 import RATES, FakeMetaTrader5
from tests.doubles.hand_clock import HandClock
from tests.feeds.test_companions import BOTH, NOW, STEPS, Counted, own
from tests.tries import until
from torra.bridges.mt5.terminal import Terminal
from torra.errors import DataUnavailable
from torra.feeds.close_reader import WAIT
from torra.feeds.mt5_direct import Mt5DirectFeed
from torra.market.broker_clock import ServerClock

M15 = STEPS["M15"]
QUARTER = 15
"""The package's number of that timeframe."""


class SlowOfOne(FakeMetaTrader5):
    """A package that does not answer for the bars of the dollar while its gate is shut."""

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.gate, self.held_up = threading.Event(), threading.Event()
        self.gate.set()
        self.bars_of: list[str] = []

    def copy_rates_from_pos(self, symbol: str, *words: Any) -> np.ndarray | None:
        self.bars_of.append(symbol)
        if symbol == "USDX.f" and not self.gate.is_set():
            self.held_up.set()
            self.gate.wait(30.0)
        return super().copy_rates_from_pos(symbol, *words)


class Place:
    """One terminal, the feed of an instance and the reader of its two companions."""

    def __init__(self, seconds: float) -> None:
        self.clock, server = HandClock(NOW + timedelta(seconds=10)), ServerClock.parse("new_york+7")
        self.package = SlowOfOne(self.clock, server)
        opens = [NOW + number * M15 for number in range(-400, 1)]
        rates = np.zeros(len(opens), dtype=RATES)
        rates["time"] = [server.from_utc(at) for at in opens]
        for column in ("open", "high", "low", "close"):
            rates[column] = 100.0
        rates["tick_volume"] = 5
        for symbol in ("XAUUSD", "USDX.f", "VIX"):
            self.package.quotes[symbol] = (100.0, 100.1)
            self.package.rates[symbol, QUARTER] = rates
        self.terminal = Terminal(self.package, seconds=seconds)
        told = self.terminal, {one: one for one in ("XAUUSD", "USDX.f", "VIX")}, server, self.clock
        self.feed = Mt5DirectFeed(*told)
        self.reader = Counted(BOTH, Mt5DirectFeed(*told), wait=WAIT)

    def own_bars(self, as_of: datetime) -> Any:
        return self.feed.bars("XAUUSD", "M15", as_of, 300)

    def begin(self, as_of: datetime) -> None:
        """Begin a reading, at ten seconds past the close."""
        self.clock.moment = as_of + timedelta(seconds=10)
        self.reader.begin("M15", as_of)

    def tick(self, as_of: datetime) -> Any:
        self.begin(as_of)
        return self.reader.known("M15", as_of, own(as_of))


@pytest.fixture
def at_short_terminal() -> Iterator[Place]:
    made = Place(0.2)
    with closing(made.terminal), closing(made.reader):
        yield made
        made.package.gate.set()


def test_a_terminal_that_hangs_at_a_companion_answers_nobody_until_it_comes_back(
    at_short_terminal: Place,
) -> None:
    package, reader = at_short_terminal.package, at_short_terminal.reader
    at_short_terminal.own_bars(NOW)
    package.gate.clear()
    package.bars_of.clear()
    found = at_short_terminal.tick(NOW)
    assert found.statuses["companion"] == "unread"
    assert package.held_up.wait(20.0)
    with pytest.raises(DataUnavailable, match="MetaTrader 5 has not returned"):
        at_short_terminal.own_bars(NOW)
    assert until(lambda: reader._newest["M15"].complete)
    package.gate.set()
    assert until(lambda: _answers(at_short_terminal))
    assert package.bars_of.count("USDX.f") == 1
    assert reader.told()[0].bars.detail.startswith("MetaTrader 5 has not returned")


def _answers(at: Place) -> bool:
    try:
        return len(at.own_bars(NOW)) > 0
    except DataUnavailable:
        return False

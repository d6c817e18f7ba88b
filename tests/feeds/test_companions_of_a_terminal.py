"""Companions at a terminal of the MetaTrader5 package, which answers one question after the other.

There a companion that is slow does hold up the desk's own questions. The terminal is
the real one over a package that does not answer for one symbol.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from tests.doubles.fake_metatrader5 import FakeMetaTrader5
from tests.feeds.test_companions import BOTH, NOW, STEPS, Counted, own
from tests.tries import until
from tests.worlds.terminals import TerminalDesk, grid
from torra.errors import DataUnavailable
from torra.feeds.close_reader import WAIT

M15 = STEPS["M15"]
SYMBOLS = ("XAUUSD", "USDX.f", "VIX")


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


@pytest.fixture
def at_terminal() -> Iterator[TerminalDesk]:
    made = TerminalDesk(now=NOW + timedelta(seconds=10), seconds=0.2, package=SlowOfOne)
    for symbol in SYMBOLS:
        made.package.quotes[symbol] = (100.0, 100.1)
        made.fill("M15", grid("M15", NOW - 400 * M15, NOW), symbol)
    made.open({symbol: symbol for symbol in SYMBOLS})
    with closing(made.terminal):
        yield made
        made.package.gate.set()


def own_bars(at: TerminalDesk) -> int:
    return len(at.bars("M15", NOW, 300))


def answers(at: TerminalDesk) -> bool:
    with suppress(DataUnavailable):
        return own_bars(at) > 0
    return False


def test_a_terminal_that_hangs_at_a_companion_answers_nobody_until_it_comes_back(
    at_terminal: TerminalDesk,
) -> None:
    package, reader = at_terminal.package, Counted(BOTH, at_terminal.feed, wait=WAIT)
    with closing(reader):
        assert own_bars(at_terminal)
        package.gate.clear()
        package.bars_of.clear()
        reader.begin("M15", NOW)
        assert reader.known("M15", NOW, own(NOW)).statuses["companion"] == "unread"
        assert package.held_up.wait(20.0)
        with pytest.raises(DataUnavailable, match="MetaTrader 5 has not returned"):
            own_bars(at_terminal)
        assert until(lambda: reader._newest["M15"].complete)
        package.gate.set()
        assert until(lambda: answers(at_terminal))
        assert package.bars_of.count("USDX.f") == 1
        assert reader.readings()[0].bars.detail.startswith("MetaTrader 5 has not returned")

"""Companions at a terminal of the MetaTrader5 package, which answers one question after the other.

There a companion that is slow does hold up the desk's own questions: once, and then companions are
left alone. The terminal is the real one over a package that does not answer for one symbol.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.doubles.fake_metatrader5 import RATES, FakeMetaTrader5
from tests.doubles.hand_clock import HandClock
from tests.feeds.test_companions import BOTH, NOW, STEPS, Counted, own
from tests.tries import until
from torra.bridges.mt5.terminal import Terminal
from torra.config import DeskSettings
from torra.desk import wiring
from torra.errors import DataUnavailable
from torra.evidence import companion_readings
from torra.feeds import companions
from torra.feeds.companions import PATIENCE, REST, RESTING
from torra.feeds.mt5_direct import Mt5DirectFeed
from torra.market.broker_clock import ServerClock

M15 = STEPS["M15"]
QUARTER = 15
"""The package's number of that timeframe."""

CLOSES = 40
"""Closes of ten hours."""


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
        opens = [NOW + number * M15 for number in range(-400, CLOSES + 1)]
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
        self.reader = Counted(
            BOTH, Mt5DirectFeed(*told), patience=PATIENCE, afterwards=3600.0, rest=3600.0
        )

    def own_bars(self, as_of: datetime) -> Any:
        return self.feed.bars("XAUUSD", "M15", as_of, 300)

    def begin(self, as_of: datetime) -> None:
        """Begin a reading, at ten seconds past the close."""
        self.clock.moment = as_of + timedelta(seconds=10)
        self.reader.begin("M15", as_of)

    def tick(self, as_of: datetime) -> Any:
        self.begin(as_of)
        return self.reader.known("M15", as_of, own(as_of))

    def read(self) -> bool:
        """Wait until the newest reading is over."""
        return bool(until(lambda: self.reader._newest["M15"].complete))


def place(seconds: float) -> Iterator[Place]:
    made = Place(seconds)
    with closing(made.terminal), closing(made.reader):
        yield made
        made.package.gate.set()


@pytest.fixture
def at_terminal() -> Iterator[Place]:
    yield from place(30.0)


@pytest.fixture
def at_short_terminal() -> Iterator[Place]:
    yield from place(0.2)


def test_a_slow_companion_holds_up_one_question_and_then_companions_are_left_alone(
    at_terminal: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, reader = at_terminal.package, at_terminal.reader
    at_terminal.begin(NOW)
    assert at_terminal.read()
    assert reader.known("M15", NOW, own(NOW)).statuses == {"companion": "available"}
    reader._quick = True  # as on a machine that was not busy: the next tick waits
    package.gate.clear()
    monkeypatch.setattr(companions, "SLOW", 0.0)
    package.bars_of.clear()
    found = at_terminal.tick(NOW + M15)
    assert found.statuses["companion"] == "unread"
    assert package.held_up.wait(20.0)
    answers: list[Any] = []
    asking = [
        threading.Thread(target=lambda: answers.append(at_terminal.own_bars(NOW + M15))),
        threading.Thread(target=lambda: answers.append(at_terminal.terminal.ask("positions_get"))),
    ]
    for one in asking:
        one.start()
        one.join(0.1)
    assert not answers, "one question after the other: neither bars nor the account"
    at_terminal.begin(NOW + 2 * M15)  # the next close begins meanwhile
    package.gate.set()
    for one in asking:
        one.join(20.0)
    assert len(answers) == 2 and at_terminal.read()
    for number in range(3, CLOSES):
        moment = NOW + number * M15
        assert {*at_terminal.tick(moment).statuses.values()} == {"unread"}
        assert at_terminal.own_bars(moment).index[-1] == moment - M15
    assert [symbol for symbol in package.bars_of if symbol != "XAUUSD"] == ["USDX.f"]
    assert len(reader.waits) == 1 and reader.waits[0] <= PATIENCE
    reader._rested = 0.0
    at_terminal.begin(NOW + CLOSES * M15)
    assert at_terminal.read() and package.bars_of[-1] != "XAUUSD"


def test_a_terminal_that_hangs_at_a_companion_answers_nobody_until_it_comes_back(
    at_short_terminal: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, reader = at_short_terminal.package, at_short_terminal.reader
    at_short_terminal.own_bars(NOW)
    package.gate.clear()
    monkeypatch.setattr(companions, "SLOW", 0.0)
    package.bars_of.clear()
    at_short_terminal.begin(NOW)
    assert package.held_up.wait(20.0) and at_short_terminal.read()
    with pytest.raises(DataUnavailable, match="MetaTrader 5 has not returned"):
        at_short_terminal.own_bars(NOW)
    assert {*at_short_terminal.tick(NOW + M15).statuses.values()} == {"unread"}
    package.gate.set()
    assert until(lambda: _answers(at_short_terminal))
    assert package.bars_of.count("USDX.f") == 1 and "VIX" not in package.bars_of
    assert reader.told()[0].bars.detail.startswith("MetaTrader 5 has not returned")


def _answers(at: Place) -> bool:
    try:
        return len(at.own_bars(NOW)) > 0
    except DataUnavailable:
        return False


def test_people_are_told_why_a_companion_is_not_read(
    at_terminal: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(companions, "SLOW", 0.0)
    told: list[Any] = []
    real = companion_readings.read
    monkeypatch.setattr(
        companions, "read", lambda found, *words: told.append(found) or real(found, *words)
    )
    at_terminal.begin(NOW)
    assert at_terminal.read()
    at_terminal.tick(NOW + M15)
    assert {bars.detail for bars in told[-1].values()} == {RESTING}


@pytest.mark.parametrize(("feed", "rests"), [("mt5_direct", REST), ("mt5_files", 0.0)])
def test_only_at_such_a_terminal_companions_rest(
    feed: str, rests: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(wiring, "_opened", lambda *_, **__: {BOTH.id: object()})
    instance = BOTH.model_copy(update={"feed": feed})
    readers = wiring.open_companions([instance], DeskSettings(), tmp_path, None)
    assert readers[BOTH.id]._rest == rests

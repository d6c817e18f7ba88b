"""Companions are read beside a tick: each fault is a word, and no tick waits where none may come.

Waiting is counted where it happens (`Counted._wait`), not by a clock on the wall.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.tries import until
from tests.worlds import desks, mt5_bars
from tests.worlds.mt5_bars import ACCOUNT, new_york_plus_7, offset, put, rows, text
from torra.clock import duration
from torra.config import Channel, Instance
from torra.errors import ConfigError, DataUnavailable
from torra.evidence import companion_readings
from torra.evidence.companion_readings import NUMBERS, CompanionBars
from torra.feeds import close_reader, companions
from torra.feeds.close_reader import WAIT
from torra.feeds.companions import CompanionReader
from torra.feeds.mt5_files import BarFileOwner
from torra.feeds.registry import FeedPlace, open_feed
from torra.market.bar_view import BarView

GOLD = Instance(symbol="XAUUSD", timeframes=("M15", "H1"), companions={"dxy": "USDX.f"})
BOTH = GOLD.model_copy(update={"companions": {"dxy": "USDX.f", "vix": "VIX"}})
NOW = desks.START
STEPS = {name: duration(name) for name in ("M15", "H1")}


def frame(as_of: datetime, timeframe: str = "M15", count: int = 300, seed: int = 1) -> pd.DataFrame:
    """Return bars of which the newest closes at a moment."""
    step = STEPS[timeframe]
    index = pd.date_range(end=as_of - step, periods=count, freq=step, name="time")
    closes = 100.0 * np.exp(np.cumsum(np.random.default_rng(seed).normal(0.0, 0.002, count)))
    columns = {"open": closes, "high": closes * 1.001, "low": closes * 0.999, "close": closes}
    return pd.DataFrame({**columns, "volume": 5.0}, index=index)


def own(as_of: datetime, timeframe: str = "M15") -> BarView:
    return BarView.of(frame(as_of, timeframe, 750, seed=2))


class Answers:
    """A feed that answers as a function of symbol, timeframe and moment says."""

    def __init__(self, answer: Callable[[str, str, datetime], pd.DataFrame]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, datetime]] = []

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        self.asked.append((symbol, timeframe, as_of))
        found = self.answer(symbol, timeframe, as_of)
        return found if limit is None else found.tail(limit)

    def period(self) -> None:
        return


class Counted(CompanionReader):
    """Counts the waits of ticks, and how long each may last."""

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.waits: list[float] = []

    def _wait(self, reading: Any) -> None:
        self.waits.append(reading.remaining(self._wait_s))
        super()._wait(reading)


Make = Callable[..., Counted]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Counted] = []

    def reader(feed: Any, instance: Instance = GOLD, **named: Any) -> Counted:
        made.append(Counted(instance, feed, **{"wait": 20.0, **named}))
        return made[-1]

    yield reader
    for one in made:
        one.close()


def sound(_symbol: str, timeframe: str, as_of: datetime) -> pd.DataFrame:
    return frame(as_of, timeframe)


def tick(reader: CompanionReader, as_of: datetime, timeframe: str = "M15") -> Any:
    reader.begin(timeframe, as_of)
    return reader.known(timeframe, as_of, own(as_of, timeframe))


def test_a_tick_has_the_numbers_of_its_close(make: Make) -> None:
    found = tick(make(Answers(sound)), NOW)
    assert found.statuses == {"companion": "available"}
    assert set(found.numbers) == {f"companion.dxy.{name}" for name in NUMBERS}
    assert None not in found.numbers.values()
    assert found.seen["companion.dxy"].source == "USDX.f"


def raises(error: Exception) -> Callable[..., pd.DataFrame]:
    def answer(*_: Any) -> pd.DataFrame:
        raise error

    return answer


def shifted(hours: float) -> Callable[..., pd.DataFrame]:
    def answer(_symbol: str, timeframe: str, as_of: datetime) -> pd.DataFrame:
        return frame(as_of + timedelta(hours=hours), timeframe)

    return answer


def spoilt(column: str, value: float) -> Callable[..., pd.DataFrame]:
    def answer(_symbol: str, timeframe: str, as_of: datetime) -> pd.DataFrame:
        found = frame(as_of, timeframe)
        found.iloc[-3, list(found.columns).index(column)] = value
        return found

    return answer


def twice(_symbol: str, timeframe: str, as_of: datetime) -> pd.DataFrame:
    found = frame(as_of, timeframe)
    return pd.concat([found, found.tail(1)])


def without_zone(_symbol: str, timeframe: str, as_of: datetime) -> pd.DataFrame:
    found = frame(as_of, timeframe)
    return found.tz_localize(None)


FAULTS: dict[str, tuple[Callable[..., Any], str]] = {
    "a bar late": (shifted(-0.25), "late"),
    "days old": (shifted(-48), "stale"),
    "no file": (raises(DataUnavailable("no_file", "there is no file")), "missing"),
    "no bars of it": (raises(DataUnavailable("no_bars", "the broker has none")), "missing"),
    "no bar at all": (lambda *_: frame(NOW).iloc[:0], "missing"),
    "a symbol that the feed lacks": (raises(ConfigError("it brings others")), "missing"),
    "another symbol's file": (raises(DataUnavailable("bad_file", "of EURUSD")), "broken"),
    "another clock, by the server": (raises(DataUnavailable("server_clock", "+3 h")), "clock"),
    "another clock, ahead": (shifted(2), "clock"),
    "another clock, behind": (shifted(-0.5), "late"),
    "another clock, off the grid": (shifted(-1 / 30), "clock"),
    "no zone": (without_zone, "clock"),
    "no answer": (raises(DataUnavailable("no_answer", "a dead share")), "unread"),
    "half a file": (raises(DataUnavailable("bad_file", "half-written")), "broken"),
    "no number": (spoilt("close", float("nan")), "broken"),
    "no price": (spoilt("low", -1.0), "broken"),
    "a bar twice": (twice, "broken"),
    "nothing like bars": (lambda *_: None, "broken"),
    "a fault of its own": (raises(ZeroDivisionError()), "broken"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_that_fails_costs_the_others_nothing(make: Make, fault: str) -> None:
    answer, lack = FAULTS[fault]

    def mixed(symbol: str, timeframe: str, as_of: datetime) -> pd.DataFrame:
        return (answer if symbol == "USDX.f" else sound)(symbol, timeframe, as_of)

    found = tick(make(Answers(mixed), BOTH), NOW)
    assert found.statuses == {"companion": "available", "companion.dxy": lack}
    assert found.numbers["companion.vix.change_1"] is not None
    assert {found.numbers[f"companion.dxy.{name}"] for name in NUMBERS} == {None}


# --- files of the Expert Advisor ------------------------------------------------------------------


OPENS = mt5_bars.quarters(NOW - 300 * STEPS["M15"], 300)
USDX = BarFileOwner("main", ACCOUNT, "USDX.f", "M15")
OFFSET = offset(new_york_plus_7, NOW)


def sheet(opens: list[datetime] = OPENS, source: BarFileOwner = USDX, **more: Any) -> str:
    return text(rows(opens), more.pop("told", OFFSET), source, **more)


FILES: dict[str, tuple[Any, str]] = {
    "as it is written": (sheet(), "available"),
    "none": (None, "missing"),
    "another symbol's": (sheet(source=replace(USDX, broker_symbol="EURUSD")), "broken"),
    "signed with another key": (sheet(key="another"), "broken"),
    "of a server on another clock": (sheet(told=OFFSET + 7200), "clock"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_the_advisor_is_judged_as_the_own_is(
    make: Make, tmp_path: Path, kind: str
) -> None:
    content, status = FILES[kind]
    if content is not None:
        put(tmp_path / "bars" / "USDX%2Ef_M15.csv", content, NOW)
    instance = GOLD.model_copy(update={"feed": "mt5_files"})
    place = FeedPlace(
        instance, tmp_path, {}, lambda: None, desks.sample, Channel(account=ACCOUNT),
        folder=lambda: tmp_path, key=lambda: mt5_bars.KEY, related=True,
    )  # fmt: skip
    found = tick(make(open_feed(place, no_plug_in), instance), NOW)
    assert found.statuses["companion"] == status
    assert (None in found.numbers.values()) is (status != "available")


def no_plug_in(name: str) -> Any:
    raise AssertionError(name)


# --- waiting --------------------------------------------------------------------------------------


class Hanging(Answers):
    """A feed that does not come back until it is let go, from a question on."""

    def __init__(self, symbol: str = "USDX.f") -> None:
        super().__init__(sound)
        self.hangs = threading.Event()
        self.free = threading.Event()
        self.symbol = symbol

    def bars(self, symbol: str, *words: Any) -> pd.DataFrame:
        if self.hangs.is_set() and symbol == self.symbol:
            self.free.wait(30.0)
        return super().bars(symbol, *words)


@pytest.mark.parametrize("symbol", ["USDX.f", "VIX"])
def test_a_feed_that_hangs_is_waited_for_once_and_never_again(make: Make, symbol: str) -> None:
    feed = Hanging(symbol)
    reader = make(feed, BOTH, wait=WAIT)
    feed.hangs.set()
    for number in range(50):
        found = tick(reader, NOW + number * STEPS["M15"])
        assert found.statuses[f"companion.{'dxy' if symbol == 'USDX.f' else 'vix'}"] == "unread"
    assert len(reader.waits) == 1 and reader.waits[0] <= WAIT
    feed.hangs.clear()
    feed.free.set()
    assert until(lambda: reader._under_way is None)
    later = NOW + 50 * STEPS["M15"]
    reader.begin("M15", later)
    assert until(lambda: reader._newest["M15"].complete)
    assert reader.known("M15", later, own(later)).statuses == {"companion": "available"}
    assert len(reader.waits) == 1, "what is there is not waited for"


def test_the_timeframes_of_a_close_wait_for_no_longer_than_one(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [0.0]
    monkeypatch.setattr(close_reader, "monotonic", lambda: moments[-1])
    feed = Hanging()
    feed.hangs.set()
    reader = make(feed, wait=WAIT)
    for timeframe in ("M15", "H1"):
        reader.begin(timeframe, NOW)
    for timeframe in ("M15", "H1"):
        reader.known(timeframe, NOW, own(NOW, timeframe))
        moments.append(0.1)
    assert reader.waits == [WAIT, 0.0]
    feed.free.set()


def test_a_bar_that_comes_a_little_later_is_waited_for(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files of a close are written at about one moment; the own may be the first."""
    monkeypatch.setattr(close_reader, "WAIT", 20.0)
    looks = []

    def late(_symbol: str, timeframe: str, as_of: datetime) -> pd.DataFrame:
        looks.append(as_of)
        return frame(as_of - STEPS["M15"] if len(looks) <= 3 else as_of, timeframe)

    assert tick(make(Answers(late)), NOW).statuses == {"companion": "available"}
    assert len(looks) == 4


def test_a_bar_that_does_not_come_is_given_up_whether_a_tick_takes_it_or_not(make: Make) -> None:
    reader = make(Answers(shifted(-30)))
    reader.begin("M15", NOW)
    assert until(lambda: reader._newest["M15"].complete)
    assert reader.known("M15", NOW, own(NOW)).statuses["companion"] == "stale"
    assert reader.waits == []


# --- afterwards -----------------------------------------------------------------------------------


def test_bars_are_stored_after_the_tick_and_by_the_thread(make: Make) -> None:
    kept: list[tuple[str, str, int, str]] = []

    def keep(symbol: str, timeframe: str, bars: pd.DataFrame) -> None:
        kept.append((symbol, timeframe, len(bars), threading.current_thread().name))

    reader = make(Answers(sound), keep=keep)
    tick(reader, NOW)
    assert until(lambda: bool(kept))
    assert kept[0] == ("USDX.f", "M15", 250, "companions XAUUSD")


def test_a_store_that_fails_costs_no_later_tick(make: Make) -> None:
    tried = threading.Event()

    def keep(*_: Any) -> None:
        tried.set()
        raise OSError("a full disk")

    reader = make(Answers(sound), keep=keep)
    tick(reader, NOW)
    assert tried.wait(20.0)
    assert tick(reader, NOW + STEPS["M15"]).statuses == {"companion": "available"}


def test_people_are_told_what_was_read_last(make: Make) -> None:
    reader = make(Answers(sound), BOTH)
    tick(reader, NOW)
    assert [(one.name, one.timeframe, one.bars.symbol) for one in reader.readings()] == [
        ("dxy", "M15", "USDX.f"), ("vix", "M15", "VIX"),
    ]  # fmt: skip


def test_a_reader_that_was_closed_reads_no_more(make: Make) -> None:
    feed = Answers(sound)
    reader = make(feed)
    tick(reader, NOW)
    reader.close()
    asked = len(feed.asked)
    found = tick(reader, NOW + STEPS["M15"])
    assert found.statuses["companion"] == "unread" and len(feed.asked) == asked
    until(lambda: reader._thread is None, what="its thread has ended")


def test_a_reading_that_breaks_is_a_word_too(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = make(Answers(sound))
    real, calls = companion_readings.read, list[Any]()

    def breaks(found: dict[str, CompanionBars], *words: Any) -> Any:
        calls.append(found)
        if len(calls) == 1:
            raise ValueError("a test")
        return real(found, *words)

    monkeypatch.setattr(companions, "read", breaks)
    assert tick(reader, NOW).statuses["companion"] == "broken"

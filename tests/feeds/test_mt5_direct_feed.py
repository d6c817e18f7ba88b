"""Bars through the MetaTrader5 package: closed ones, in UTC, whatever the server's clock does."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.worlds.price_series import times_of
from tests.worlds.terminals import NOON, TerminalDesk, grid
from torra.clock import duration
from torra.config import Channel, Instance
from torra.errors import ConfigError, DataUnavailable
from torra.feeds import door, mt5_direct
from torra.feeds.companions import fetch
from torra.feeds.mt5_direct import SETTLE
from torra.feeds.registry import FeedPlace, open_feed

Scaled = Callable[..., int]


@pytest.fixture
def desk() -> Iterator[TerminalDesk]:
    made = TerminalDesk()
    yield made
    made.terminal.close()


@pytest.mark.parametrize("timeframe", ["M15", "H1"])
def test_bars_come_as_the_door_wants_them(desk: TerminalDesk, timeframe: str) -> None:
    desk.fill(timeframe, grid(timeframe, NOON - 800 * duration(timeframe), NOON))
    frame = desk.bars(timeframe, NOON)
    assert list(frame.columns) == ["open", "high", "low", "close", "volume", "spread"]
    assert frame.index.name == "time"
    assert str(times_of(frame).tz) == "UTC"
    assert len(frame) == 750
    assert set(frame.dtypes) == {np.dtype("float64")}
    assert frame["volume"].iloc[-1] == 2**40
    assert frame.index[-1] == pd.Timestamp(NOON - duration(timeframe))
    assert frame.attrs["utc_offsets"] == ("+02:00",)
    assert frame.attrs["clock"] == "new_york+7"
    door.check(frame, timeframe, as_of=NOON)
    assert desk.feed.period() is None


@pytest.mark.parametrize("limit", [1, 750, 60_000, None])
def test_a_moment_of_the_past_sees_nothing_later(desk: TerminalDesk, limit: int | None) -> None:
    opens = grid("M15", NOON - timedelta(days=60), NOON)
    desk.fill("M15", opens)
    as_of = NOON - timedelta(days=20, minutes=7)
    frame = desk.bars("M15", as_of, limit)
    closed = [at for at in opens if at + timedelta(minutes=15) <= as_of]
    assert list(frame.index) == [pd.Timestamp(at) for at in closed[-(limit or len(closed)) :]]
    by_number = limit is not None and limit < mt5_direct.MOST_BARS
    assert desk.package.calls[-1] == ("copy_rates_from_pos" if by_number else "copy_rates_range")


def test_weekends_do_not_shorten_what_is_asked_for(desk: TerminalDesk) -> None:
    week = [at for at in grid("H1", NOON - timedelta(days=90), NOON) if at.weekday() < 5]
    desk.fill("H1", week)
    assert len(desk.bars("H1", NOON, 750)) == 750
    assert len(desk.bars("H1", NOON - timedelta(days=30), 750)) == 750


TURNS = [
    ("new_york+7", datetime(2026, 3, 8, tzinfo=UTC)),
    ("new_york+7", datetime(2026, 11, 1, tzinfo=UTC)),
    ("Europe/Athens", datetime(2026, 3, 29, tzinfo=UTC)),
    ("Europe/Athens", datetime(2026, 10, 25, tzinfo=UTC)),
    ("+03:00", datetime(2026, 3, 8, tzinfo=UTC)),
]


@pytest.mark.by_day(4)
@pytest.mark.parametrize("timeframe", ["M15", "H1"])
@pytest.mark.parametrize(("server", "day"), TURNS)
def test_every_bar_of_a_week_with_a_clock_change_has_its_own_time(
    server: str, day: datetime, timeframe: str
) -> None:
    desk = TerminalDesk(server, day + timedelta(days=5))
    opens = grid(timeframe, day - timedelta(days=5), day + timedelta(days=5))
    desk.fill(timeframe, opens)
    frame = desk.bars(timeframe, desk.clock.moment, None)
    assert list(frame.index) == [pd.Timestamp(at) for at in opens[:-1]]
    for hours in range(0, 216, 13):
        as_of = day + timedelta(days=-4, hours=hours)
        found = desk.bars(timeframe, as_of, 40)
        closed = [at for at in opens if at + duration(timeframe) <= as_of][-40:]
        assert list(found.index) == [pd.Timestamp(at) for at in closed]
    desk.terminal.close()


def test_the_hour_that_comes_twice_is_told_apart_at_the_head_of_the_frame_too() -> None:
    turn = datetime(2026, 11, 1, 6, 0, tzinfo=UTC)  # 09:00 on the server becomes 08:00
    desk = TerminalDesk("new_york+7", turn + timedelta(days=1))
    opens = grid("M15", turn - timedelta(days=1), turn + timedelta(days=1))
    desk.fill("M15", opens)
    for quarters in range(-8, 16):
        as_of = turn + quarters * timedelta(minutes=15)
        for limit in (1, 3, 6):
            frame = desk.bars("M15", as_of, limit)
            closed = [at for at in opens if at + timedelta(minutes=15) <= as_of]
            assert list(frame.index) == [pd.Timestamp(at) for at in closed[-limit:]]
    desk.terminal.close()


def test_random_moments_see_closed_bars_only(desk: TerminalDesk, scaled: Scaled) -> None:
    dice = random.Random(7)
    opens = [at for at in grid("M15", NOON - timedelta(days=8), NOON) if dice.random() < 0.9]
    desk.fill("M15", opens)
    for _ in range(scaled(20_000, least=100)):
        now = NOON - timedelta(seconds=dice.randrange(1, 5 * 86_400))
        as_of = now - timedelta(seconds=dice.choice([0, 0, 1, 600, 86_400]))
        desk.clock.moment = now
        limit = dice.choice([1, 5, 100])
        frame = desk.bars("M15", as_of, limit)
        begun = [at for at in opens if at <= now]
        sure = [
            at
            for number, at in enumerate(begun)
            if at + timedelta(minutes=15) <= as_of
            and (number < len(begun) - 1 or at + timedelta(minutes=15) <= now - SETTLE)
        ]
        assert list(frame.index) == [pd.Timestamp(at) for at in sure[-limit:]]


def test_what_the_package_does_not_tell_says_so_in_its_words(desk: TerminalDesk) -> None:
    desk.package.silent["copy_rates_from_pos"] = (-1, "Terminal: Call failed")
    with pytest.raises(DataUnavailable, match=r"XAUUSD\.m.*Call failed \(-1\)") as found:
        desk.bars("M15", NOON)
    assert found.value.reason == "no_bars"
    desk.package.silent = {"initialize": (-10005, "IPC timeout")}
    desk.package.initialized = False
    desk.terminal._connected = False
    with pytest.raises(DataUnavailable, match="IPC timeout"):
        desk.bars("M15", NOON)


def test_a_symbol_without_a_name_or_a_broker_that_knows_it(desk: TerminalDesk) -> None:
    with pytest.raises(ConfigError, match="no bars of EURUSD; it brings XAUUSD, GOLD"):
        desk.feed.bars("EURUSD", "M15", NOON)
    with pytest.raises(DataUnavailable, match="no symbol NOWHERE"):
        desk.feed.bars("GOLD", "M15", NOON)
    with pytest.raises(ValueError, match="unknown timeframe"):
        desk.bars("M7", NOON)


def test_a_terminal_without_bars_gives_an_empty_frame(desk: TerminalDesk) -> None:
    desk.fill("M15", [NOON])
    for limit in (750, None):
        frame = desk.bars("M15", NOON, limit)
        assert len(frame) == 0
        assert list(frame.columns) == ["open", "high", "low", "close", "volume", "spread"]


def test_a_time_that_the_server_never_shows_condemns_its_clock() -> None:
    desk = TerminalDesk("new_york+7", datetime(2026, 3, 9, tzinfo=UTC))
    opens = grid("M15", datetime(2026, 3, 7, tzinfo=UTC), datetime(2026, 3, 9, tzinfo=UTC))
    desk.fill("M15", opens)
    rates = desk.package.rates["XAUUSD.m", 15]
    rates["time"] = [int(at.timestamp()) + 7200 for at in opens]
    with pytest.raises(DataUnavailable, match="2026-03-08 09:00:00 does not exist") as found:
        desk.bars("M15", desk.clock.moment)
    assert found.value.reason == "server_clock"
    desk.terminal.close()


def test_a_terminal_that_hangs_is_data_unavailable() -> None:
    desk = TerminalDesk(seconds=0.02)
    desk.fill("M15", grid("M15", NOON - timedelta(days=1), NOON))
    released = threading.Event()
    desk.package.blocked["copy_rates_from_pos"] = released
    with pytest.raises(DataUnavailable, match="has not returned from copy_rates_from_pos"):
        desk.bars("M15", NOON)
    released.set()
    desk.terminal.close()


def test_a_companion_comes_from_the_same_terminal_under_the_brokers_name(
    desk: TerminalDesk,
) -> None:
    desk.fill("M15", grid("M15", NOON - timedelta(days=4), NOON))
    instance = Instance(
        symbol="EURUSD", feed="mt5_direct", companions={"gold": "XAUUSD.m", "vix": "NOWHERE"}
    )
    place = FeedPlace(
        instance, Path(), {}, lambda: None, lambda: None, Channel(account=1),
        terminal=lambda: desk.terminal, related=True,
    )  # fmt: skip
    feed = open_feed(place, pytest.fail)
    bars, frame = fetch(feed, "XAUUSD.m", "M15", NOON)
    assert bars.lack == "" and len(bars.times) == 250 and frame is not None
    assert bars.closed_at(duration("M15")) == NOON
    other, _ = fetch(feed, "NOWHERE", "M15", NOON)
    assert other.lack == "missing" and "name it as Market Watch does" in other.detail

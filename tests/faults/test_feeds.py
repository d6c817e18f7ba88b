"""Feeds that stop answering, lie or fall behind: each instance alone has the damage (M1, L3, T2).

A feed that blocks for ever stops neither other instances nor the sign of life, and behind its time
limit not even its own: the closes get rows that say so. What a feed must not do ends in a row as
well. No signal is written on bars, or at a moment, that are too old.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import torra_trader
from tests.tries import Tries, until
from tests.worlds import desks
from tests.worlds.mt5_bars import GOLD, WALLS, offset, put, quarters, rows, text
from tests.worlds.mt5_bars import feed as bars_feed
from torra.clock import Scaled, Simulated, System, duration, iso, parse
from torra.config import Instance, Profile, validate
from torra.desk.roster import InstanceRuntime
from torra.errors import ConfigError, DataUnavailable
from torra.feeds import mt5_files
from torra.feeds.frame import FrameFeed
from torra.feeds.limited import NO_ANSWER, LimitedFeed
from torra.market.broker_clock import ServerClock
from torra.store import tick_queries
from torra.store import ticks as claim_table
from torra.tick.bar_window import LiveWindow
from torra.time_limit import TimeLimit
from torra.verdict import sentiment_rules
from torra.verdict.risk_engine import DenyReason
from torra_trader import TickOutcome

TIMEFRAMES = ("M1", "M5", "M15", "M30", "H1", "H4", "D1")


def states(
    desk: Any, instance: str, timeframe: str = "H1", limit: int = 1000
) -> dict[str, tuple[str, str]]:
    found = tick_queries.tick_states(desk.database, instance, timeframe, limit)
    return {row["bar_time"]: (row["state"], row["reason"]) for row in found}


class Mute:
    """The sample, until it is told to be silent; whoever asks then waits for `speak`."""

    def __init__(self) -> None:
        self.silent = threading.Event()
        self.spoke = threading.Event()
        self.waiting = 0

    def bars(self, *words: Any) -> Any:
        if self.silent.is_set():
            self.waiting += 1
            self.spoke.wait(60)
        return desks.sample().bars(*words)

    def period(self) -> tuple[datetime, datetime]:
        return desks.sample().period()

    def speak(self) -> None:
        self.silent.clear()
        self.spoke.set()


@contextmanager
def silenced() -> Iterator[Mute]:
    """A feed that speaks again in the end, so that nobody waits for it any more."""
    feed = Mute()
    try:
        yield feed
    finally:
        feed.speak()
        for thread in threading.enumerate():
            if thread.name == "limited":
                thread.join(10)


@pytest.fixture
def mute() -> Iterator[Mute]:
    with silenced() as feed:
        yield feed


def give(desk: Any, name: str, feed: Any) -> None:
    """Give one instance of a desk a feed of its own."""
    old = desk.setups[name]
    new = InstanceRuntime(old.instance, old.profile, feed, old.provider, threading.Lock())
    desk.roster.setups = {**desk.setups, name: new}


# --- feeds that do not answer ---------------------------------------------------------------------


def test_a_feed_that_blocks_for_ever_stops_no_other_instance_and_no_sign_of_life(
    tmp_path: Path, tries: Tries
) -> None:
    """(L3) Even one without a limit: its instance waits, all others tick, the desk closes."""
    for attempt in tries():
        with silenced() as mute:
            seen, closing = beside_a_feed_that_blocks(attempt.folder(tmp_path), mute)
        with attempt:
            assert seen < 3.0 and closing < 2.0


def beside_a_feed_that_blocks(folder: Path, mute: Mute) -> tuple[float, float]:
    """Let a desk tick beside it; return the age of its last sign of life, and of its closing."""
    desk = desks.open_desk(
        folder,
        (desks.BTC, desks.EUR),
        make_clock=lambda stood: Scaled(stood or desks.START, rate=3600.0),
    )
    give(desk, "EURUSD", mute)
    mute.silent.set()
    desk.open()
    desk.start()
    try:
        until(lambda: len(states(desk, "BTCUSD", "M15")) >= 6, 30, "the other instance ticks")
        run = claim_table.desk_run(desk.database) or {}
        seen = (System().real_now() - parse(run["seen_at"])).total_seconds()
        assert mute.waiting == 1, "wakes do not pile up behind it"
        assert states(desk, "EURUSD") == {}
    finally:
        begin = System().monotonic()
        closed = desk.close(within=0.2)
        closing = System().monotonic() - begin
    assert not closed, "its wake is left behind"
    desk.lock.release()  # as the end of its process would
    return seen, closing


def test_behind_its_limit_a_silent_feed_gets_its_rows_and_comes_back(
    tmp_path: Path, mute: Mute
) -> None:
    """(T2) Late, then skipped with the reason, and run again as soon as the feed answers."""
    limit = TimeLimit("//server/share", 0.05)
    desk = desks.open_desk(tmp_path, (desks.EUR,))
    give(desk, "EURUSD", LimitedFeed(mute, limit))
    desks.open_for_work(desk)
    desk.wake("EURUSD")
    mute.silent.set()
    for _ in range(5):
        desks.step(desk)
    assert mute.waiting == 1, "one call is waited for, the others are refused at once"
    found = states(desk, "EURUSD")
    lost = iso(desks.START)
    assert found[lost] == ("skipped", NO_ANSWER)
    row = next(
        r for r in tick_queries.tick_states(desk.database, "EURUSD", "H1") if r["bar_time"] == lost
    )
    assert "//server/share" in row["detail"] and "look at its" in row["detail"]
    mute.speak()
    until(lambda: not limit.silent, 10, "the call comes back")
    desk.wake("EURUSD")
    assert [state for state, _ in states(desk, "EURUSD").values()].count("done") >= 3
    desk.database.close()


def test_a_bars_file_that_blocks_its_reader_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(L3) A share blocks its reader whose server is gone."""
    server, wall = ServerClock.parse("new_york+7"), WALLS["new_york+7"]
    feed = bars_feed(tmp_path, {"BTCUSD": "BTCUSD"}, server)
    limit = TimeLimit(str(tmp_path), 0.1)
    limited = LimitedFeed(feed, limit)
    path = tmp_path / "bars" / "BTCUSD_M15.csv"
    path.parent.mkdir()
    path.touch()
    back = threading.Event()

    def blocks(*_: Any) -> bytes:
        back.wait(30)
        raise OSError(5, "the share was gone")

    monkeypatch.setattr(mt5_files, "read_regular", blocks)
    for _ in range(3):
        with pytest.raises(DataUnavailable, match="no answer within") as caught:
            limited.bars("BTCUSD", "M15", desks.START, 1)
        assert caught.value.reason == NO_ANSWER
    assert sum(thread.name == "limited" for thread in threading.enumerate()) == 1
    back.set()
    until(lambda: not limit.silent, 10, "the call comes back")
    monkeypatch.undo()
    opens = quarters(desks.START - 10 * desks.QUARTER, 10)
    source = replace(GOLD, broker_symbol="BTCUSD")
    put(path, text(rows(opens, wall), offset(wall, desks.START), source), desks.START)
    assert limited.bars("BTCUSD", "M15", desks.START, 1).index[-1] == opens[-1]


def fail(error: Exception) -> None:
    raise error


def test_a_limit_passes_everything_else_on() -> None:
    limit = TimeLimit("it", 5.0)
    assert limit.run(lambda: 7) == 7
    for error in (KeyError("x"), TimeoutError("its own"), ConfigError("no")):
        with pytest.raises(type(error)) as caught:
            limit.run(partial(fail, error))
        assert caught.value is error
    assert not limit.silent


# --- feeds that lie -------------------------------------------------------------------------------


def flawed(frame: pd.DataFrame, dice: np.random.Generator) -> pd.DataFrame:
    """Return bars with one flaw near their end, or all of them at another time."""
    kind, frame, at = int(dice.integers(8)), frame.copy(), -int(dice.integers(1, 4))
    if kind < 4:
        value = (float("nan"), float("inf"), 0.0, -1.0)[kind]
        frame.iloc[at, int(dice.integers(4))] = value
    elif kind == 4:
        high, low = frame.iloc[at, [1, 2]].to_numpy()
        frame.iloc[at, [1, 2]] = [low - 1.0, high + 1.0]
    elif kind == 5:
        frame = pd.concat([frame, frame.iloc[-1:]])
    elif kind == 6:
        frame = frame.set_axis(frame.index + timedelta(days=float(dice.choice((-3, 1)))))
    else:
        frame = frame.iloc[::-1]
    return frame


class Liar:
    """A feed that does a wrong thing each time, as long as it is told to."""

    def __init__(self, seed: int) -> None:
        self.dice = np.random.default_rng(seed)
        self.lying = False
        self.lies = 0

    def bars(self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None) -> Any:
        frame = desks.sample().bars(symbol, timeframe, as_of, limit)
        if not self.lying:
            return frame
        self.lies += 1
        kind = int(self.dice.integers(9))
        if kind < 4:
            raise (ValueError("?"), OSError(5, "?"), MemoryError(), ConfigError("?"))[kind]
        if kind == 4:
            raise DataUnavailable("bad_file", "it says nothing")
        if kind == 5:
            return None
        if kind == 6:
            return frame.reset_index()
        return flawed(frame, self.dice)

    def period(self) -> tuple[datetime, datetime]:
        return desks.sample().period()


@pytest.mark.journey
def test_a_feed_that_lies_costs_its_own_closes_and_nothing_else(
    tmp_path: Path, scaled: Any, record_property: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """(M2) No exception leaves a wake, no tick is done on a lie, each close has its reason."""
    closes = scaled(1000, least=16)
    liar = Liar(closes)
    desk = desks.open_desk(tmp_path, (desks.BTC, desks.EUR))
    give(desk, "BTCUSD", liar)
    desks.open_for_work(desk)
    told: dict[str, tuple[str, str]] = {}
    with caplog.at_level(logging.CRITICAL):
        for number in range(closes):
            liar.lying = number % 8 >= 2  # two good closes, then six with lies
            desks.step(desk)
            for row in tick_queries.tick_states(desk.database, "BTCUSD", "M15", 10):
                if row["state"] == "released":
                    continue  # it is tried again
                now = (row["state"], row["reason"])
                assert told.setdefault(row["bar_time"], now) == now, "a row has changed"
        liar.lying = False
        for _ in range(3):
            desks.step(desk)
    assert liar.lies > closes // 2
    last = desk.clock.now() - 3 * desks.QUARTER
    owed = {iso(at) for name, at in desks.closes_of(desks.BTC, desks.START, last) if name == "M15"}
    ended = states(desk, "BTCUSD", "M15", limit=closes + 10)
    assert all(ended[at][0] in ("done", "skipped") for at in owed), "a close has no end"
    assert told.items() <= ended.items()
    told = ended
    reasons = {reason for state, reason in told.values() if state == "skipped"}
    assert {"feed_fault", "bad_file"} & reasons and "" not in reasons
    other = set(states(desk, "EURUSD").values())
    assert ("done", "") in other and other <= {("done", ""), ("skipped", "no_bar")}, "and weekends"
    record_property("seen", f"{liar.lies} lies, {len(reasons)} reasons, every close has a row")
    desk.database.close()


# --- data that is too old -------------------------------------------------------------------------


PROFILE = validate(
    Profile,
    {
        "timeframe_weights": dict.fromkeys(TIMEFRAMES, 1.0),
        "risk": {"capital": 1_000_000.0, "max_notional_pct": 1e6, "exposure_cap_pct": 1e6},
    },
    "a test of every timeframe",
)
LIMIT = PROFILE.gate.max_bar_age
NEWEST_STALE = 2
"""Bars by which the door lets a feed lag; its newest bar is then not the one that is asked for."""

MIDNIGHT = datetime.fromisoformat("2021-11-10T00:00:00+00:00")
"""A close of every timeframe."""


def bars_of(timeframe: str, end: datetime, dice: np.random.Generator) -> pd.DataFrame:
    """Return 300 bars that close at `end`: a lively walk, so that no spread is too wide."""
    step = duration(timeframe)
    close = 50_000.0 + np.cumsum(dice.normal(0.0, 150.0, 300))
    index = pd.date_range(end=end - step, periods=300, freq=step, name="time")
    columns = {"open": close, "high": close + 200, "low": close - 200, "close": close}
    return pd.DataFrame({**columns, "volume": 9.0}, index=index)


def tick(
    folder: Path, timeframe: str, frame: pd.DataFrame, as_of: datetime, age: float
) -> TickOutcome:
    """Run the tick of the bar that closes at `as_of` on these bars, `age` bars after its close."""
    instance = Instance(symbol="BTCUSD", timeframes=(timeframe,))
    now = as_of + age * duration(timeframe)
    desk = desks.open_desk(
        folder, [instance], profile=PROFILE, feed=FrameFeed({timeframe: frame}),
        make_clock=lambda _: Simulated(now),
    )  # fmt: skip
    desks.open_for_work(desk)
    setup = desk.setups["BTCUSD"]
    edges = desk._edges(setup, LiveWindow(instance, setup.feed, desk.database))
    bar_time = as_of - duration(timeframe)
    due = desk.clock.monotonic()
    outcome = torra_trader.run_tick(
        instance, timeframe, bar_time, due, profile=PROFILE, edges=edges
    )
    signals = desk.database.signals()
    row = next(iter(tick_queries.tick_states(desk.database, "BTCUSD", timeframe, 1)))
    assert (row["state"], row["reason"]) == (outcome.state, outcome.reason)
    assert bool(signals) == bool(outcome.result and outcome.result.signals)
    desk.database.close()
    return outcome


def late(folder: Path, timeframe: str, dice: np.random.Generator) -> str:
    """Run a tick around the limit after its close; check and return what it came to."""
    step = duration(timeframe)
    age = float(dice.choice((LIMIT, LIMIT - 1e-3, LIMIT + 1e-3, dice.uniform(0, 2 * LIMIT))))
    outcome = tick(folder, timeframe, bars_of(timeframe, MIDNIGHT, dice), MIDNIGHT, age)
    assert outcome.result is not None
    denied = outcome.result.action.denied
    too_old = round(age * step.total_seconds(), 6) / step.total_seconds() > LIMIT
    assert (DenyReason.STALE_BAR in denied) == too_old, (timeframe, age, denied)
    assert not (too_old and outcome.result.signals), (timeframe, age)
    if too_old:
        return "STALE_BAR"
    return "sent" if outcome.result.signals else "denied for another reason"


def early(folder: Path, timeframe: str, dice: np.random.Generator) -> str:
    """Run a tick on bars that end too early; check and return what it came to."""
    lag = int(dice.integers(0, 2 * NEWEST_STALE + 1))
    frame = bars_of(timeframe, MIDNIGHT - lag * duration(timeframe), dice)
    outcome = tick(folder, timeframe, frame, MIDNIGHT, 0.0)
    wanted = "" if not lag else "no_bar" if lag <= NEWEST_STALE else "stale"
    assert (outcome.state, outcome.reason) == ("skipped" if lag else "done", wanted), lag
    return wanted or "in time"


def test_nothing_is_sent_on_data_that_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scaled: Any, record_property: Any
) -> None:
    """(M1) A tick that comes late opens nothing past gate.max_bar_age; bars that end early give no
    tick at all. Up to the limit both do what they should.
    """
    monkeypatch.setattr(sentiment_rules, "verdict", lambda *_: "BUY")
    monkeypatch.setattr(sentiment_rules, "opening_stands", lambda *_: True)
    cases = scaled(1000, least=28)
    seen: Counter[str] = Counter()
    for number in range(cases):
        dice, folder = np.random.default_rng(number), tmp_path / str(number)
        run = late if number // len(TIMEFRAMES) % 3 else early
        seen[run(folder, TIMEFRAMES[number % len(TIMEFRAMES)], dice)] += 1
    assert min(seen[word] for word in ("sent", "STALE_BAR", "no_bar", "stale")) >= 1, seen
    assert seen["denied for another reason"] <= seen["sent"] / 4, seen
    told = ", ".join(f"{count} {word}" for word, count in sorted(seen.items()))
    record_property("seen", f"{cases} cases: {told}")

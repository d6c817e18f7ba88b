"""Bursts, ticks that last, weeks of absence: every close is run once or has a row that says why.

(T1) fifty instances that are due in the same moment on four threads; (T2) a tick that lasts longer
than its bar; sixty days off, whose thousands of rows are written a few hundred at a time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from apscheduler.events import EVENT_JOB_MISSED

from instance_database import TickKey
from technical_calculator import HISTORY
from tests.tries import until
from tests.worlds import desks
from torra.clock import Scaled, iso
from torra.config import Instance
from torra.desk import schedule, write_off
from torra.desk.timers import Timers
from torra.errors import StoreUnavailable
from torra.store import tick_queries
from torra.tick.edges import TickDeps
from torra_trader import ClosedBar, TickOutcome

INSTANCES = 50
POOL = 4
BURSTS = 2
DAYS_OFF = 60


def rows(desk: Any, sql: str) -> list[dict[str, Any]]:
    return list(desk.database.connection().query(sql))


def states(desk: Any, timeframe: str, instance: str = "BTCUSD") -> dict[str, str]:
    found = tick_queries.tick_states(desk.database, instance, timeframe, 10_000)
    return {row["bar_time"]: row["state"] for row in found}


# --- a burst --------------------------------------------------------------------------------------


class SlowTicks:
    """Stands for run_close: claims, takes its time, finishes; counts who is at it at once."""

    def __init__(self, desk: Any, seconds: float) -> None:
        self.desk, self.seconds = desk, seconds
        self.now: Counter[str] = Counter()
        self.most = 0
        self.overlaps = 0
        self._lock = threading.Lock()

    def __call__(
        self, instance: Instance, bars: Sequence[ClosedBar], *, edges: TickDeps
    ) -> list[TickOutcome]:
        with self._lock:
            self.now[instance.id] += 1
            self.overlaps += self.now[instance.id] > 1
            self.most = max(self.most, self.now.total())
        try:
            keys = [TickKey(instance.id, bar.timeframe, bar.bar_time) for bar in bars]
            return [self._ticked(key) for key in keys]
        finally:
            with self._lock:
                self.now[instance.id] -= 1

    def _ticked(self, key: TickKey) -> TickOutcome:
        if not self.desk.database.claim_tick(key):
            return TickOutcome(key, "taken")
        time.sleep(self.seconds)
        self.desk.database.finish_tick(key)
        return TickOutcome(key, "done")


def test_fifty_instances_due_at_once_all_run_on_four_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scaled: Any, record_property: Any
) -> None:
    """(T1) Some wait for a thread, none is dropped; a close that comes meanwhile is run too."""
    seconds = scaled(1500, least=15) / 1000
    burst = seconds * INSTANCES / POOL
    rate = 900.0 / (2 * burst + 2.5)  # desk seconds in one: a burst takes less than half a bar
    monkeypatch.setattr(schedule, "Timers", lambda _: Timers(POOL))
    several = [
        Instance(symbol="BTCUSD", name=f"I{n}", timeframes=("M15",)) for n in range(INSTANCES)
    ]
    desk = desks.open_desk(tmp_path, several, make_clock=lambda _: Scaled(desks.START, rate))
    events: list[Any] = []
    desk._timers._scheduler.add_listener(events.append, EVENT_JOB_MISSED)
    ticks = SlowTicks(desk, seconds)
    monkeypatch.setattr(schedule, "run_close", ticks)
    desk.open()
    desk.start()
    try:
        upto = desks.START + (BURSTS - 1) * desks.QUARTER
        wanted = INSTANCES * BURSTS
        sql = f"select 1 from ticks where bar_time < '{iso(upto)}'"
        until(lambda: len(rows(desk, sql)) >= wanted, seconds * wanted + 30, "all of them ran")
    finally:
        assert desk.close(within=60)
    database = desks.open_database(tmp_path)
    found = list(database.connection().query("select instance, state from ticks"))
    database.close()
    per_instance = Counter(row["instance"] for row in found if row["state"] == "done")
    assert len(per_instance) == INSTANCES and min(per_instance.values()) >= BURSTS
    assert {row["state"] for row in found} == {"done"}
    assert not events and ticks.overlaps == 0 and ticks.most <= POOL
    record_property("seen", f"{len(found)} ticks of {seconds:g} s, 0 misfired, 0 overlaps")


# --- a tick that lasts ----------------------------------------------------------------------------


class Slow:
    """The sample; the first time that a tick reads its bars the clock goes on by `minutes`."""

    def __init__(self, minutes: int) -> None:
        self.minutes = minutes
        self.desk: Any = None

    def bars(self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None) -> Any:
        if limit == HISTORY and self.minutes:
            minutes, self.minutes = self.minutes, 0
            self.desk.clock.set(self.desk.clock.now() + timedelta(minutes=minutes))
        return desks.sample().bars(symbol, timeframe, as_of, limit)

    def period(self) -> tuple[datetime, datetime]:
        return desks.sample().period()


@pytest.mark.parametrize(
    ("minutes", "following"),
    [
        pytest.param(14, "", id="14 minutes"),
        pytest.param(40, "done done", id="40 minutes"),
        pytest.param(70, "skipped skipped done done", id="70 minutes"),
    ],
)
def test_after_a_tick_that_lasted_its_own_wake_runs_what_is_worth_it(
    tmp_path: Path, minutes: int, following: str
) -> None:
    """(T2) Closes up to two bars old are run, oldest first; older ones get a row that says why."""
    feed, instance = Slow(minutes), Instance(symbol="BTCUSD", timeframes=("M15",))
    desk = feed.desk = desks.open_desk(tmp_path, [instance], feed=feed)
    desks.open_for_work(desk)
    outcomes = desk.wake("BTCUSD")
    assert " ".join(one.state for one in outcomes[1:]) == following
    assert {one.reason for one in outcomes if one.state == "skipped"} <= {"missed"}
    times = [one.key.bar_time for one in outcomes]
    assert times == [desks.START + n * desks.QUARTER - desks.QUARTER for n in range(len(times))]
    assert desk.wake("BTCUSD") == [], "nothing is left for another wake"
    desk.database.close()


def test_wakes_that_pile_up_behind_a_tick_run_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(T2) Eight wakes while a tick lasts: no two at once, and one row for each close."""
    desk = desks.open_desk(tmp_path)
    desks.open_for_work(desk)
    ticks = SlowTicks(desk, 0.05)
    monkeypatch.setattr(schedule, "run_close", ticks)
    with ThreadPoolExecutor(8) as pool:
        found = [item for some in pool.map(desk.wake, ["BTCUSD"] * 8) for item in some]
    assert ticks.overlaps == 0
    assert Counter(one.state for one in found) == {"done": 2}, "M15 and H1, once each"
    desk.database.close()


# --- weeks of absence -----------------------------------------------------------------------------


def away(desk: Any, days: float = DAYS_OFF) -> int:
    """Let the desk tick once and come back after so long; return how many closes it owes."""
    desk.wake("BTCUSD")
    desk.clock.set(desk.clock.now() + timedelta(days=days))
    return len(desks.closes_of(desks.BTC, desks.START, desk.clock.now()))


@pytest.mark.journey
def test_after_sixty_days_the_rows_come_in_parts_and_the_feed_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(T2) So the first tick is not late, and nobody else waits long for the database."""
    asked: list[Any] = []

    class Counting(desks.Holed):
        def bars(self, *words: Any) -> Any:
            asked.append(words)
            return super().bars(*words)

    desk = desks.open_desk(tmp_path, feed=Counting({desks.START + 96 * desks.QUARTER}))
    desks.open_for_work(desk)
    owed = away(desk)
    parts: list[int] = []
    skip = type(desk.database).skip_ticks

    def counted(self: Any, reasons: Any) -> int:
        parts.append(len(reasons))
        return skip(self, reasons)

    monkeypatch.setattr(type(desk.database), "skip_ticks", counted)
    asked.clear()
    outcomes = desk.wake("BTCUSD")
    skipped = [one for one in outcomes if one.state == "skipped"]
    done = [one for one in outcomes if one.state == "done"]
    assert len(skipped) + len(done) == owed and 2 <= len(done) <= 6
    assert max(parts) <= write_off.ROWS and len(parts) <= 20
    assert len(asked) < 40
    told = rows(desk, "select reason, count(*) as n from ticks where state='skipped' group by 1")
    reasons = {row["reason"]: row["n"] for row in told}
    assert reasons["no_bar"] >= 1 and reasons["missed"] > 0.9 * len(skipped)
    assert sum(reasons.values()) == len(skipped)
    assert desk.wake("BTCUSD") == []
    desk.database.close()


def test_rows_that_could_not_be_written_are_owed_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """(T2) A lock in the middle of the parts: what is written stands, the rest comes next time."""
    desk = desks.open_desk(tmp_path)
    desks.open_for_work(desk)
    owed = away(desk, days=14)
    skip, calls = type(desk.database).skip_ticks, iter(range(9))

    def locked(self: Any, reasons: Any) -> int:
        if next(calls) == 1:
            raise StoreUnavailable("locked")
        return skip(self, reasons)

    with monkeypatch.context() as patch, caplog.at_level(logging.CRITICAL):
        patch.setattr(type(desk.database), "skip_ticks", locked)
        desk.wake("BTCUSD")
    first = len(rows(desk, "select 1 from ticks where state = 'skipped'"))
    assert first == write_off.ROWS
    desk.wake("BTCUSD")
    assert len(rows(desk, "select 1 from ticks")) == owed + 2  # and the two of the first wake
    desk.database.close()


def test_a_desk_that_loses_its_lock_writes_no_more_of_them(tmp_path: Path) -> None:
    """(T5) Neither between two parts nor, behind the fence, inside one."""
    desk = desks.open_desk(tmp_path)
    desks.open_for_work(desk)
    keys = [TickKey("BTCUSD", "M15", desks.START + n * desks.QUARTER) for n in range(1200)]
    turns = iter((True, False))
    some = partial(write_off.mark_missed, desk.database, desks.BTC, desks.sample(), keys)
    written = some(known={}, goes_on=lambda: next(turns))
    assert len(written) == write_off.ROWS == len(rows(desk, "select 1 from ticks"))
    desk.lock.release()
    with pytest.raises(StoreUnavailable, match="lost the lock"):
        some(known={})
    desk.database.close()

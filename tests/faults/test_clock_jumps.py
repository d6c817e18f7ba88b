"""A wall clock that jumps, timers that die and a process that is stopped do no harm (T4).

In a simulated world: no bar twice, none without a row, no signal that is older than it says, and
whatever happens to clock or timers, the desk wakes again within two intervals. With a real process:
a desk that is stopped keeps every other out, and goes on when it wakes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import signal_bridge
import torra_trader
from instance_database import Database
from tests.faults.jumping_world import World, any_jump, live, open_desk
from tests.tries import until
from tests.worlds import desks, stores
from torra.clock import Scaled, iso, parse
from torra.desk import schedule, timers
from torra.desk.timers import BarCloses
from torra.desk_lock import DeskLock
from torra.errors import ConfigError
from torra.store import ticks as claim_table
from torra.verdict import sentiment_rules
from torra.verdict.signal_states import SIGNAL_LIFE

STOP_SECONDS = 600.0
PLAGUES_IN_A_LIFE = 20
INTERVALS = timedelta(minutes=30)
"""Two of the instance's shortest: how long a desk may sleep through whatever happened."""


LONGEST = 2 * SIGNAL_LIFE + signal_bridge.AHEAD
"""Real time from a decision to the last moment at which it may go out: its life, by a clock that
may be set back by as long as nobody can tell. Its row says when its bar closed, which is up to one
life before the decision, and may lie AHEAD in the future.
"""


class Life:
    """One desk in one world, with what happened to it and what it did."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.dice = np.random.default_rng(seed)
        self.world = World(desks.START + timedelta(seconds=float(self.dice.uniform(0, 900))))
        self.desk = open_desk(folder, self.world, self.in_the_middle)
        self.ran: Counter[str] = Counter()
        self.sent_after: list[float] = []
        self.wakes: list[float] = [0.0]
        self.stopped = 0.0
        self.rouses = self.plagues = 0
        self._decided: dict[str, float] = {}
        self._inside = 0.0

    def in_the_middle(self) -> None:
        """Perhaps jump or stop in the middle of whatever the desk is doing."""
        if self.dice.random() < self._inside:
            self._inside = 0.0
            self.strike()

    def strike(self) -> None:
        """Do one thing to the clock, to the timers or to the process."""
        kind = self.dice.choice(("jump", "jump", "jump", "back", "stop", "sleep", "timers"))
        timers_now: Any = self.desk._timers
        if kind == "jump":
            self.world.offset = any_jump(self.dice)
        elif kind == "back":
            self.world.offset = timedelta(0)
        elif kind == "stop":
            self.world.elapsed += STOP_SECONDS
            self.stopped += STOP_SECONDS
        elif kind == "sleep":  # of the machine: monotonic time stands, the wall goes on
            self.world.start += timedelta(seconds=STOP_SECONDS)
        else:
            timers_now.broken, timers_now.alarm = True, float("inf")
        self.plagues += 1

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Note what ran, what was decided and sent, and when the desk woke."""
        run, write, wake = torra_trader.run_close, signal_bridge.write_signal, self.desk.wake
        rouse, afterwards = self.desk._rouse, torra_trader._afterwards
        publish = signal_bridge.publish_pending

        def run_close(*words: Any, **more: Any) -> Any:
            outcomes = run(*words, **more)
            for outcome in outcomes:
                self.ran[outcome.key.text] += outcome.state == "done"
            return outcomes

        def write_signal(*words: Any, **more: Any) -> Any:
            row = write(*words, **more)
            self._decided[row["sid"]] = self.world.elapsed
            return row

        def publish_pending(*words: Any, **more: Any) -> Any:
            sent = publish(*words, **more)
            self.sent_after += [self.world.elapsed - self._decided[row["sid"]] for row in sent]
            return sent

        def woken(name: str) -> Any:
            self.wakes.append(self.world.elapsed - self.stopped)
            return wake(name)

        def roused(name: str) -> None:
            self.rouses += 1
            rouse(name)

        def fails_at_times(*words: Any) -> None:
            if self.dice.random() < 0.5:  # what was decided waits for the next wake
                afterwards(*words)

        patch.setattr(schedule, "run_close", run_close)
        patch.setattr(signal_bridge, "write_signal", write_signal)
        patch.setattr(signal_bridge, "publish_pending", publish_pending)
        patch.setattr(torra_trader, "_afterwards", fails_at_times)
        patch.setattr(self.desk, "wake", woken)
        patch.setattr(self.desk, "_rouse", roused)
        patch.setattr(sentiment_rules, "verdict", self.verdict)
        patch.setattr(sentiment_rules, "opening_stands", lambda *_: True)

    def verdict(self, *_: Any) -> str:
        return str(self.dice.choice(("BUY", "SELL", "HOLD")))

    def live(self) -> None:
        self.desk.open()
        self.desk.start()
        for _ in range(PLAGUES_IN_A_LIFE):
            live(self.desk, self.world, float(self.dice.uniform(10, 1500)))
            self._inside = 0.2 if self.dice.random() < 0.5 else 1.0
            if self._inside == 1.0:
                self._inside = 0.0
                self.strike()
        self.world.offset = timedelta(0)
        self._inside = 0.0
        live(self.desk, self.world, 3 * 3600.0)


def rows(database: Database, sql: str) -> list[dict[str, Any]]:
    return list(database.connection().query(sql))


def check(life: Life, begin: datetime) -> None:
    database, truth = life.desk.database, life.world.truth
    ticks = rows(database, "select timeframe, bar_time, state from ticks where instance='BTCUSD'")
    states = {(row["timeframe"], parse(row["bar_time"])): row["state"] for row in ticks}
    for timeframe, bar_time in desks.closes_of(desks.BTC, begin, truth - timedelta(hours=3)):
        assert states.get((timeframe, bar_time)) in {"done", "skipped"}, (timeframe, bar_time)
    assert max(life.ran.values()) == 1, "a bar ran twice"
    twins = rows(database, "select torra_key, count(*) as n from sentiment group by torra_key")
    assert {row["torra_key"]: row["n"] for row in twins} == dict(+life.ran)
    gaps = np.diff([*life.wakes, life.world.elapsed - life.stopped])
    assert gaps.max() <= INTERVALS.total_seconds(), "the desk slept on"
    assert max(life.sent_after, default=0.0) <= LONGEST.total_seconds(), "a stale signal went out"


@pytest.mark.journey
@pytest.mark.timeout(900)  # the nightly count, on a machine that is busy
def test_jumps_stops_and_dead_timers_do_no_harm(
    tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    """(T4) Lives of twenty plagues each: jumps either way, 10-minute stops, sleep, dead timers."""
    wanted = scaled(500, least=10)
    plagues = ran = sent = rouses = seed = 0
    while plagues < wanted:
        life = Life(tmp_path / str(seed), seed)
        begin, seed = life.world.truth, seed + 1
        with pytest.MonkeyPatch.context() as patch:
            life.watch(patch)
            life.live()
        check(life, begin)
        life.desk.close()
        plagues, rouses = plagues + life.plagues, rouses + life.rouses
        ran, sent = ran + life.ran.total(), sent + len(life.sent_after)
    assert sent and rouses, "nothing was sent, or no watchdog was needed: this shows nothing"
    record_property("seen", f"{plagues} plagues over {ran} ticks, {sent} signals, {rouses} rescues")


def test_a_signal_from_the_future_is_not_sent_when_the_clock_was_set_back(tmp_path: Path) -> None:
    """(T4) Decided under a wrong clock: by the right one it would live for hours."""
    for back, state in ((timedelta(seconds=30), "PUBLISHED"), (timedelta(hours=2), "EXPIRED")):
        database = stores.open_database(tmp_path / state)
        with database.transaction():
            database.enqueue_signal(
                {
                    **stores.opening(),
                    "bar_time": iso(stores.NOON - timedelta(minutes=15)),
                    "decided_at": iso(stores.NOON),
                    "expires": iso(stores.NOON + timedelta(minutes=3)),
                    "closes": None,
                    "after": None,
                    "state": "PENDING",
                    "bridge": "paper",
                }
            )
        signal_bridge.publish_pending(database, now=stores.NOON - back, state="ACTIVE")
        assert [row["state"] for row in database.signals()] == [state]
        database.close()


# --- real timers, real processes ------------------------------------------------------------------


def count(database: Database, where: str = "state = 'done'") -> int:
    return int(rows(database, f"select count(*) as n from ticks where {where}")[0]["n"])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_timers_that_die_are_noticed_and_set_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(T4) The scheduler's thread is killed; the watch brings ticks back and a new thread."""
    monkeypatch.setattr(timers, "OVERDUE_SECONDS", 0.3)
    desk = desks.open_desk(
        tmp_path,
        make_clock=lambda stood: Scaled(stood or desks.START, rate=1800.0),
    )
    desk.open()
    desk.start()
    try:
        until(lambda: count(desk.database) >= 2, 20, "the desk ticks")
        with monkeypatch.context() as patch:
            patch.setattr(BarCloses, "get_next_fire_time", lambda *_: 1 / 0)
            until(lambda: desk._timers._scheduler.dead, 20, "its timers are dead")
        before = count(desk.database)
        until(lambda: count(desk.database) >= before + 3, 20, "it ticks again")
        assert not desk._timers._scheduler.dead
        assert desk._timers.job("prune") is not None, "and what else it had to do is kept"
    finally:
        desk.close(within=10)


def life(folder: str) -> None:
    desk = desks.open_desk(
        Path(folder),
        make_clock=lambda stood: Scaled(stood or desks.START, rate=1800.0),
    )
    desk.open()
    desk.start()
    time.sleep(120)


@pytest.mark.journey
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP") or not hasattr(os, "fork"), reason="no SIGSTOP")
def test_a_desk_that_is_stopped_keeps_every_other_out_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(T4, T6) A rival is refused with the process that is stopped, and writes nothing."""
    desks.sample()
    monkeypatch.setattr(DeskLock.acquire, "__defaults__", (0.1,))
    database = desks.open_database(tmp_path)
    first = multiprocessing.get_context("fork").Process(
        target=life, args=(str(tmp_path),), daemon=True
    )
    first.start()
    try:
        until(lambda: count(database) >= 2, 20, "the desk ticks")
        assert first.pid is not None
        os.kill(first.pid, signal.SIGSTOP)
        before = (tmp_path / "torra.db-wal").stat().st_size, claim_table.desk_run(database)
        rival = desks.open_desk(tmp_path)
        with pytest.raises(
            ConfigError, match=rf"another desk \(process {first.pid}, since 20.*--w"
        ):
            rival.open()
        assert not rival.active and rival.wake("BTCUSD") == []
        assert (
            (tmp_path / "torra.db-wal").stat().st_size,
            claim_table.desk_run(database),
        ) == before
        rival.close()
        done = count(database)
        os.kill(first.pid, signal.SIGCONT)
        until(lambda: count(database) >= done + 3, 20, "it goes on")
    finally:
        first.kill()
        first.join()
    done = count(database)
    twins = rows(database, "select count(*) as n, count(distinct torra_key) as d from sentiment")
    assert twins == [{"n": done, "d": done}]
    database.close()

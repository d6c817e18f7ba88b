"""A world for a whole desk whose wall clock anybody may set, and whose process may be stopped.

Monotonic time runs by itself; the wall is it plus an offset. Timers behave as APScheduler's do:
they wait for a stretch of monotonic time that was reckoned by the wall when they were last set. The
feed brings what has really closed, whatever the wall says. Everything runs in one thread, so that a
seed makes the same story each time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tests.worlds import desks, stores
from torra.clock import System
from torra.config import Profile, validate
from torra.desk.roster import InstanceRuntime
from torra.desk.schedule import Desk
from torra.desk.timers import Timers
from torra.providers.registry import open_provider

LIFE_SECONDS = 80.0
"""Long, so that a simulated day has fewer renewals; the desk looks at itself every third of it."""

OPEN_HANDED = {
    "risk": {"max_signals_per_hour": 1000, "max_positions": 100, "daily_loss_cap_pct": 99.0},
    "on_opposite": "close",
}
"""A profile that trades whenever it is told to, so that there are signals to go wrong."""


class World(System):
    """The desk's clock, the database's and the timers'."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self.elapsed = 0.0
        self.offset = timedelta(0)

    @property
    def truth(self) -> datetime:
        return self.start + timedelta(seconds=self.elapsed)

    def now(self) -> datetime:
        return self.truth + self.offset

    real_now = now

    def monotonic(self) -> float:
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        self.elapsed += max(0.0, seconds)


class HandTimers(Timers):
    """Timers without a thread: `alarm` is when, in monotonic time, they look next."""

    def __init__(self, world: World) -> None:
        super().__init__(1)
        self.world = world
        self.alarm = math.inf
        self.broken = False
        self._jobs: dict[str, list[Any]] = {}

    def start(self) -> None: ...

    def every(self, name: str, work: Any, period: timedelta, first: datetime) -> None: ...

    def set(self, name: str, work: Any, trigger: Any, first: datetime) -> None:
        self.broken = False
        self._jobs[name] = [work, trigger, first]
        self._reckon()

    def clear(self, names: Iterable[str]) -> None:
        for name in names:
            self._expected.pop(name, None)
            self._jobs.pop(name, None)
        self._reckon()

    def bring_forward(self, name: str, moment: datetime, now: datetime) -> None:
        if name in self._jobs and not now < self._jobs[name][2] <= moment:
            self._jobs[name][2] = moment
            self._reckon()

    def fire(self) -> None:
        """Do what APScheduler does when its wait is over."""
        for job in list(self._jobs.values()):
            work, trigger, moment = job
            if moment <= self.world.real_now():
                job[2] = trigger.get_next_fire_time(moment, self.world.real_now())
                work()
        self._reckon()

    def _reckon(self) -> None:
        left = [(job[2] - self.world.real_now()).total_seconds() for job in self._jobs.values()]
        self.alarm = (
            math.inf if self.broken else self.world.elapsed + max(0.0, min(left, default=1e9))
        )


class TruthfulFeed:
    """The sample as far as it has really closed; `hook` may do something to the world first."""

    def __init__(self, world: World, hook: Callable[[], None]) -> None:
        self._world, self._hook = world, hook

    def bars(self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None) -> Any:
        self._hook()
        return desks.sample().bars(symbol, timeframe, min(as_of, self._world.truth), limit)

    def period(self) -> None:
        return


def open_desk(folder: Path, world: World, hook: Callable[[], None]) -> Desk:
    profile = validate(Profile, OPEN_HANDED, "a test")
    provider = open_provider(profile.agents)
    feed = TruthfulFeed(world, hook)
    setup = InstanceRuntime(desks.BTC, profile, feed, provider, threading.Lock())
    database = stores.open_database(folder, now=world.now)
    desk = Desk(database, [setup], lambda _: world, life_seconds=LIFE_SECONDS)
    desk._timers = HandTimers(world)
    return desk


def live(desk: Desk, world: World, seconds: float) -> None:
    """Let the desk's two threads, that of life and the timers', have their turns."""
    timers: Any = desk._timers
    end = world.elapsed + seconds
    while world.elapsed < end:
        turn = math.floor(world.elapsed / (LIFE_SECONDS) + 1) * LIFE_SECONDS
        world.elapsed = max(world.elapsed, min(turn, timers.alarm, end))
        if world.elapsed >= timers.alarm:
            timers.fire()
        elif world.elapsed >= turn:
            desk.keep()
            for thread in threading.enumerate():
                if thread.name.startswith("rouse"):
                    thread.join()


def any_jump(dice: np.random.Generator) -> timedelta:
    """Return a jump of one second to two hours, either way, every order of magnitude alike."""
    size = math.exp(dice.uniform(0.0, math.log(7200.0)))
    return timedelta(seconds=float(dice.choice((-1.0, 1.0)) * size))

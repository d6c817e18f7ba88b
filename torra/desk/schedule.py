"""The desk's schedule: the lock, the wakes at each bar's close, the catch-up and the warm-up.

One desk works on a home at a time (torra.desk_lock); a second one is refused. A wake lists every
close that has neither a finished nor a skipped tick and runs them oldest first, the longer
timeframe first where two close together. Closes more than two bars old get a row `skipped(missed)`.
At its end a wake looks for closes that came meanwhile. So it does not matter whether a wake comes
late, comes twice or is replaced by another. A tick that raises is tried again at the next wake
until it is too old. The timers live in real time; the desk's clock says when, in real time, a bar
closes.

One thread shows by monotonic time that the desk lives, and sees that its lock is still its own: a
desk that has lost it to another one ends. It also sets the timers anew when the clock has jumped,
and wakes an instance itself whose wake did not come.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

import signal_bridge
from instance_database import Database, TickKey
from torra.clock import Clock, Simulated, duration, floor, iso, token
from torra.config import LONGEST_NEWS_HOURS, Profile
from torra.desk import adoption, timeframe_clocks
from torra.desk.bar_closes import BarCloses, next_close
from torra.desk.event_stream import EventStream
from torra.desk.memory.experts_past import ExpertsPast
from torra.desk.memory.shelves import DeskLessons
from torra.desk.outlook import with_invented
from torra.desk.promotion import Promotions, PromotionSubject, subjects_of
from torra.desk.roster import InstanceRegistry, InstanceRuntime
from torra.desk.timers import Timers
from torra.desk.warm_up import WARM_UP_BARS, WarmUp, plan
from torra.desk.watches import CLOCK_TOLERANCE, TIMER_TOLERANCE, ClockWatch, LockWatch
from torra.desk.write_off import NO_BAR, Reason, mark_missed, missing_bar_reason
from torra.desk_lock import DeskLock
from torra.errors import ConfigError, StoreBroken, StoreUnavailable
from torra.home import DATABASE
from torra.services import Service, Services, in_background
from torra.store import ledger as ledger_table
from torra.store import news as news_table
from torra.store import streams as stream_table
from torra.store import ticks as claim_table
from torra.store.connection import connect_reader
from torra.store.faults import LOCKED
from torra.tick.bar_window import LiveWindow, Window
from torra.tick.edges import MarketRoute, TickDeps
from torra.trading.kill_switch import KillSwitch
from torra_trader import ClosedBar, TickOutcome, run_close

LIFE_SECONDS: Final = 2.0
"""Real seconds between two signs of life, and between two looks at the lock."""

BAR_GRACE: Final = timedelta(seconds=20)
"""Desk time that a tick waits for its closed bar to arrive."""

BAR_POLL: Final = 1.0
"""Desk seconds between two looks for a bar."""

LOOKS_FOR_A_BAR: Final = round(BAR_GRACE.total_seconds() / BAR_POLL) + 2

OLDEST_BARS: Final = 2
"""A close more than this many bars ago is not worth a tick any more."""

RETRY_SHARE: Final = 1 / 15
"""Share of its timeframe after which a late bar is looked for again."""

CLOSING_SECONDS: Final = 1.0
"""Real seconds that a desk which is told to stop gives a running tick."""

STORE_RETRY: Final = timedelta(seconds=5)
"""Real time after which an instance looks again when the database could not be used."""

PRUNE_EVERY: Final = timedelta(hours=1)
"""Real time between two removals of old texts."""

PRUNE_FIRST: Final = timedelta(minutes=1)
"""Real time from the start of a desk to the first removal."""

PRUNE_ROWS: Final = 200
"""Rows of one transaction: the longest that a tick waits to write."""

PRUNE_SECONDS: Final = 1.0
"""Real seconds after which the rest waits for the next time."""

LOOK_EVERY: Final = timedelta(hours=1)
LOOK_FIRST: Final = timedelta(minutes=3)
"""Real time between two checks for a due look at agents that earn their influence, and from the
start of a desk to the first check. Looks fall due by the number of ticks, not by time.
"""

CLOCKS_EVERY: Final = timedelta(days=1)
CLOCKS_FIRST: Final = timedelta(minutes=5)
"""Real time between two looks whether an instance's timeframes are of one clock, and from the start
of a desk to the first: after the warm-up, which stores bars.
"""

KEEP_CALLS: Final = timedelta(days=90)
"""Age at which the texts of calls and headlines are removed, unless desk.json says otherwise."""

KEEP_NEWS: Final = timedelta(hours=LONGEST_NEWS_HOURS) + timedelta(days=2)
"""Younger headlines stay, however short texts are kept: a tick may still use them."""

log = logging.getLogger("torra")


class Desk:
    """All instances of one process: takes the lock, wakes at closes, runs what is due.

    `lock` is the lock of the database's home, which may be held already. `lost` says why the desk
    had to give up its work, "" while it need not. `services` begin with `start` and end with
    `close`; `route` takes signals to a market. Both may be set until then.
    """

    def __init__(
        self,
        database: Database,
        setups: Sequence[InstanceRuntime],
        make_clock: Callable[[datetime | None], Clock],
        *,
        events: EventStream | None = None,
        lock: DeskLock | None = None,
        life_seconds: float = LIFE_SECONDS,
        route: MarketRoute | None = None,
        kill_switch: KillSwitch | None = None,
        keep_calls: timedelta = KEEP_CALLS,
        lessons: DeskLessons | None = None,
    ) -> None:
        self._keep_calls = keep_calls
        self.route = route
        self.kill_switch = kill_switch or KillSwitch({}, database)
        self.services = Services()
        self._life = Service("life", life_seconds, self.keep)
        self.lock = lock or DeskLock(database.path.parent)
        self.active = False
        self.lost = ""
        self.run = ""
        self.clock = make_clock(database.desk_time())
        self._make_clock = make_clock
        self.roster = InstanceRegistry(
            database,
            {item.instance.id: item for item in setups},
            monotonic=lambda: self.clock.monotonic(),  # noqa: PLW0108 - the clock may be replaced
        )
        self.events = events
        self.lessons = lessons or DeskLessons(database)
        self.past = ExpertsPast(database)
        self.promotions = Promotions(database, self._subjects)
        self._owed: dict[TickKey, Reason] = {}
        self._running = False
        self._closing = False
        self._clocks = ClockWatch()
        self._lock_watch = LockWatch(3 * life_seconds)
        self._woken: dict[str, datetime] = {}
        self._timers = Timers(len(self.setups) + 2)

    @property
    def database(self) -> Database:
        """The desk's database: the roster's, so that an adoption writes where the ticks do."""
        return self.roster.database

    @property
    def setups(self) -> Mapping[str, InstanceRuntime]:
        """The instances as they stand now, by name."""
        return self.roster.setups

    # --- life -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take the lock and what the desk before left behind; raises ConfigError where it is held.

        From now on this desk shows that it lives.
        """
        self._take_up()
        self._life.start()
        now = self.clock.real_now()
        self._timers.every("prune", self.prune, PRUNE_EVERY, now + PRUNE_FIRST)
        self._timers.every("agents", self.look_at_agents, LOOK_EVERY, now + LOOK_FIRST)
        self._timers.every("clocks", self.look_at_clocks, CLOCKS_EVERY, now + CLOCKS_FIRST)
        self._timers.start()

    def _take_up(self) -> None:
        if not self.lock.acquire():
            raise ConfigError(refusal(self.database.path.parent))
        self.database.fence = self.lock.is_held
        self.run = token(8)
        with self.database.transaction():
            claim_table.begin_run(self.database, self.run, os.getpid())
            # Whoever starts a desk has looked after its keys.
            ledger_table.clear_blocks(self.database)
            ledger_table.begin_calls(self.database)
            for setup in self.setups.values():
                adoption.put_on_record(self.database, setup)
        self.active = True

    def start(self) -> None:
        """Start the clock where the desk stood and wake at every close from now on."""
        self.clock = self._make_clock(self.database.desk_time())
        self._running = True
        self._prepare_memory()
        self.services.start()
        self._ask_for_flow()
        self._set_timers()

    def close(self, within: float = CLOSING_SECONDS) -> bool:
        """Stop the timers and release the lock; return whether every tick had ended in time.

        A tick that runs on is left behind with its claim, as by a crash, and the lock is kept until
        the process ends.
        """
        self._closing = True
        self._life.close(0.0)
        self._timers.stop()
        end = self.clock.monotonic() + within
        for setup in self.setups.values():
            left = max(0.0, end - self.clock.monotonic())
            if not setup.lock.acquire(timeout=left):
                return False
            setup.lock.release()  # from here on a wake sees that the desk is closing
        self.services.close()
        if self.active:
            self.active = False
            self._try_to_tell(partial(claim_table.end_run, self.database))
        self.database.close()
        # Last: the next desk may begin at once.
        self.lock.release()
        return True

    def _prepare_memory(self) -> None:
        """Let lessons and experts' past be read before the first tick asks."""
        setups = [*self.setups.values()]
        self.lessons.prepare((item.profile, item.feed) for item in setups)
        self.past.prepare(
            ((item.instance, item.profile, item.provider.name, item.feed) for item in setups),
            self.clock.now(),
        )

    def keep(self) -> None:
        """See that the lock is ours, show life, and see that every instance is woken in time."""
        if self._closing or not self._keep_lock():
            return
        self._try_to_tell(lambda: self.database.show_life(self._desk_time()))
        if not self._running:
            return
        if abs(self._jump(None)) > TIMER_TOLERANCE:
            self._set_timers()
        if self._timers.revive():
            log.error("the timers had died and are set anew")
        overdue = self._timers.overdue(self.clock.monotonic())
        for name, setup in self.setups.items():
            if job_id(name) in overdue and not setup.lock.locked():  # else it is at work
                self._rouse(name)

    def _keep_lock(self) -> bool:
        """Return whether this desk still has its lock; one that lost it to another rests."""
        if not self.active:
            return False
        if self.lock.is_held():
            return True
        try:
            restored = self.lock.restore(self._alone_since)
        except (ConfigError, StoreUnavailable) as error:  # a share that is away: nothing is written
            log.error("the lock of the desk: %s", error)
            return False
        if restored:
            log.warning("%s was deleted or replaced: it is locked anew", self.lock.path)
            return True
        self.active = False
        self._timers.clear(map(job_id, self.setups))
        whose = _of_whom(self.database.path)
        self.lost = f"{self.lock.path} was deleted, and another desk{whose} took up the work"
        log.error("this desk ends: %s", self.lost)
        return False

    def _alone_since(self) -> bool:
        """Return whether no other desk has begun since this one did."""
        run = claim_table.desk_run(self.database)
        return run is not None and run["run"] == self.run

    def _rouse(self, name: str) -> None:
        """Wake an instance whose timer did not fire, and set that timer anew."""
        log.warning("%s was not woken in time: it is now", name)
        self._set_timer(name)
        in_background(f"rouse {name}", partial(self.wake, name))

    def _desk_time(self) -> datetime | None:
        return self.clock.now() if self._running else None

    def _try_to_tell(self, sign: Callable[[], None]) -> None:
        """Give a sign of life, and say it when the database's lock does not go away."""
        begun = self.clock.monotonic()
        try:
            sign()
        except StoreUnavailable as error:
            self._halt_if_broken(error)
            log.error("a sign of life: %s", error)
            if LOCKED in str(error):
                told = self._lock_watch.locked(begun, self.clock.monotonic())
                if told:
                    log.error("%s", told)
        else:
            if told := self._lock_watch.free(self.clock.monotonic()):
                log.warning("%s", told)

    @property
    def held_up(self) -> str:
        """Why this desk cannot write, for a person; "" when it can, as far as it knows."""
        return self._lock_watch.words

    def _ask_for_flow(self) -> None:
        """Let feeds begin to read order flow: a terminal's first answer may take long."""
        for setup in self.setups.values():
            if setup.profile.outside.sources:
                window = LiveWindow(setup.instance, setup.feed, self.database)
                longest = max(setup.instance.timeframes, key=duration)
                newest = floor(self.clock.now(), longest) - duration(longest)
                window.begin_flow(longest, [newest])

    def adopt(self, profile_name: str, profile: Profile) -> None:
        """Let a profile's instances go on with it, each between two ticks; raises ConfigError."""
        adoption.adopt(self.roster, profile_name, profile)

    def _set_timers(self) -> None:
        for name in self.setups:
            self._set_timer(name)

    def _set_timer(self, name: str) -> None:
        """Wake an instance now, and a moment after each of its closes."""
        trigger = BarCloses(self.clock, self.setups[name].instance.timeframes)
        work = partial(self.wake, name)
        self._timers.set(job_id(name), work, trigger, self.clock.real_now())
        self._timers.expect(job_id(name), self.clock.monotonic())

    def prune(self) -> int:
        """Remove old calls, headlines, streams and ledger rows, for a second at most.

        Returns how many rows of calls, pictures, headlines and streams went. A database that fails
        is logged.
        """
        end, gone = self.clock.monotonic() + PRUNE_SECONDS, 0
        now = self.clock.real_now()
        before, news = now - self._keep_calls, now - max(self._keep_calls, KEEP_NEWS)
        try:
            while self.active and not self._closing and self.clock.monotonic() < end:
                went = self.database.prune(before, limit=PRUNE_ROWS)
                went += news_table.prune_news(self.database, news, limit=PRUNE_ROWS)
                went += stream_table.prune_streams(self.database, before, limit=PRUNE_ROWS)
                gone += went
                if not went:
                    ledger_table.prune_ledger(self.database, before)
                    break
        except StoreUnavailable as error:
            log.error("pruning: %s", error)
        return gone

    def look_at_agents(self) -> int:
        """Let the promotion rule look at agents that have to earn their influence.

        Returns how many looks were taken. Nothing here can fail.
        """
        if not self.active or self._closing:
            return 0
        return len(self.promotions.look())

    def look_at_clocks(self) -> int:
        """Look whether the timeframes of each instance are of one clock (desk.timeframe_clocks).

        Returns how many instances are shifted. A database that fails is logged.
        """
        if not self.active or self._closing:
            return 0
        try:
            instances = [item.instance for item in self.setups.values()]
            return timeframe_clocks.record_timeframe_clocks(
                self.database, instances, self.clock.now()
            )
        except StoreUnavailable as error:
            log.error("clocks: %s", error)
            return 0

    def _subjects(self) -> tuple[PromotionSubject, ...]:
        return subjects_of((item.instance, item.profile) for item in self.setups.values())

    # --- a wake -----------------------------------------------------------------------------------

    def wake(self, name: str) -> list[TickOutcome]:
        """Run what is due for an instance, and what closes meanwhile; return what became of it."""
        outcomes: list[TickOutcome] = []
        with self.setups[name].lock:
            more = True
            while more:
                # Read before the round: a bar that closes while it runs is found by the next turn.
                began = self.clock.now()
                outcomes += self._round(name)
                again = next_close(began, self.setups[name].instance.timeframes)
                more = self.active and not self._closing and again <= self.clock.now()
            left = (self.clock.real_time_of(again) - self.clock.real_now()).total_seconds()
            if self.active:
                self._timers.expect(job_id(name), self.clock.monotonic() + max(0.0, left))
        return outcomes

    def _round(self, name: str) -> list[TickOutcome]:
        """Run what is due now; the caller holds the instance's lock."""
        outcomes: list[TickOutcome] = []
        setup = self.setups[name]  # here: an adoption may have changed it
        if not self.active or self._closing:
            return outcomes
        window = LiveWindow(setup.instance, setup.feed, self.database)
        edges = self._edges(setup, window)
        if setup.profile.outside.sources and not edges.invented:
            edges = replace(edges, flow=window.flow, begin_flow=window.begin_flow)
        try:
            if self._clock_jumped(name):
                return outcomes
            # Before `_due`: a claim that was not released would hide its close.
            self._pay_debts(name)
            # Before the ticks: what waits is sent, or taken back by a halt, before more is decided.
            edges.publish(setup.instance)
            due = self._due(setup)
            # Only once the closes are known: after a failed look the next wake is still the first.
            before, self._woken[name] = self._woken.get(name), self.clock.now()
            old = {key: None for key in due if self._too_old(key)}
            outcomes.extend(self._pass_over(setup, [*old]))
            fresh = [key for key in due if key not in old]
            for _, close in groupby(fresh, key=lambda key: key.close_time):
                outcomes += self._close(setup, [*close], edges, before)
        except StoreUnavailable as error:
            self._halt_if_broken(error)
            log.error("%s: %s", name, error)
            self._wake_again(name, self.clock.now() + STORE_RETRY * (self.clock.rate or 1.0))
        return outcomes

    def _clock_jumped(self, name: str) -> bool:
        """Return whether the clock jumped since the instance's last wake; then wake again soon."""
        if abs(self._jump(name)) <= CLOCK_TOLERANCE:
            return False
        self._wake_again(name, self.clock.now() + CLOCK_TOLERANCE * (self.clock.rate or 1.0))
        return True

    def _jump(self, instance: str | None) -> timedelta:
        """Return by how much the clock jumped since an instance, or all of them, looked last.

        When it was set back, nothing of the instance, or of all, goes out that was decided before.
        """
        jump = self._clocks.jump(instance or "all", self.clock)
        if jump < -CLOCK_TOLERANCE:
            signal_bridge.doubt(self.database, instance)
        return jump

    def timers(self) -> dict[str, tuple[datetime | None, datetime | None]]:
        """Return by instance when it wakes next (real time) and when it woke last (desk time)."""
        jobs = {name: self._timers.job(job_id(name)) for name in self.setups}
        return {n: (job and job.next_run_time, self._woken.get(n)) for n, job in jobs.items()}

    @property
    def settling(self) -> bool:
        """Whether the clock jumped not long ago: it may be corrected, so nothing is written off."""
        return self._clocks.settling(self.clock)

    def _due(self, setup: InstanceRuntime) -> list[TickKey]:
        now = self.clock.now()
        name = setup.instance.id
        # `start`: a stream without any tick begins with its newest close, not with all its history.
        keys = [
            TickKey(name, timeframe, bar_time)
            for timeframe in setup.instance.timeframes
            for bar_time in self.database.due(
                name, timeframe, upto=now, start=now - duration(timeframe)
            )
        ]
        return sorted(keys, key=running_order)

    def _too_old(self, key: TickKey) -> bool:
        step = duration(key.timeframe)
        return self.clock.now() - (key.bar_time + step) > OLDEST_BARS * step

    def _pass_over(self, setup: InstanceRuntime, keys: Sequence[TickKey]) -> list[TickOutcome]:
        """Give closes that are too old their rows, unless the clock may be wrong."""
        # A clock that is ahead makes every close look too old, and a row cannot be taken back.
        if self.settling:
            told = "the clock jumped a while ago"
            return [TickOutcome(key, "late", reason="clock", detail=told) for key in keys]
        known = {key: self._owed.pop(key) for key in keys if key in self._owed}
        done = mark_missed(
            self.database, setup.instance, setup.feed, keys,
            known=known, goes_on=lambda: self.active and not self._closing,
        )  # fmt: skip
        return [
            TickOutcome(key, "skipped", reason=why, detail=what)
            for key, (why, what) in done.items()
        ]

    def _close(
        self,
        setup: InstanceRuntime,
        keys: Sequence[TickKey],
        edges: TickDeps,
        before: datetime | None,
    ) -> list[TickOutcome]:
        """Run what closed together: what is there once all is, or once a look brings nothing more.

        A channel writes one file after the other, so a look may come between two of them. What
        comes later is a close of its own; a bar that does not come within its grace is late.
        """
        outcomes: list[TickOutcome] = []
        waiting, due = list(keys), dict[TickKey, float]()
        for turn in range(LOOKS_FOR_A_BAR):  # no more: the clock may be set back meanwhile
            old = [key for key in waiting if self._too_old(key)]  # by now: ticks took their time
            outcomes += self._pass_over(setup, old) if old else []
            waiting = [key for key in waiting if key not in old]
            came = [
                key
                for key in waiting
                if key not in due and missing_bar_reason(setup.instance, setup.feed, key) is None
            ]
            for key in came:
                due[key] = self.clock.monotonic() if turn else self._due_moment(key, before)
            there = {key: due[key] for key in waiting if key in due}
            over = not waiting or self.clock.now() - waiting[0].close_time > BAR_GRACE
            if there and (over or not came or len(there) == len(waiting)):
                outcomes += self._run(setup, there, edges)
                waiting = [key for key in waiting if key not in there]
            if over or not waiting:
                break
            self.clock.sleep(BAR_POLL)
        return outcomes + [self._late(setup, key) for key in waiting]

    def _late(self, setup: InstanceRuntime, key: TickKey) -> TickOutcome:
        """Put off a tick whose bar has not come."""
        self._owed[key] = missing_bar_reason(setup.instance, setup.feed, key) or NO_BAR
        self._retry(setup, key)
        return TickOutcome(key, "late", reason="late", detail=f"no bar {iso(key.bar_time)} yet")

    def _overtaken(self, key: TickKey) -> bool:
        """Return whether a newer tick of the stream is done; then this one must not trade."""
        newest = claim_table.newest_claim(self.database, key.instance, key.timeframe)
        return newest is not None and newest > key.bar_time

    def _run(
        self, setup: InstanceRuntime, due: Mapping[TickKey, float], edges: TickDeps
    ) -> list[TickOutcome]:
        """Run the ticks of a close; `due` has the moment from which each one's deadline counts."""
        bars = [
            ClosedBar(
                key.timeframe,
                key.bar_time,
                moment,
                _silenced(setup.profile) if self._overtaken(key) else setup.profile,
            )
            for key, moment in due.items()
        ]
        return [self._taken_in(setup, one) for one in run_close(setup.instance, bars, edges=edges)]

    def _taken_in(self, setup: InstanceRuntime, outcome: TickOutcome) -> TickOutcome:
        """Take in how a tick ended; one that failed is tried again when next due."""
        key, error = outcome.key, outcome.error
        if not isinstance(error, Exception):
            self._owed.pop(key, None)
            return outcome
        self._halt_if_broken(error)
        # A database that was locked, or a lock that was lost, is no defect: a line will do.
        trace = None if isinstance(error, StoreUnavailable) else error
        log.error("%s failed: %s", key.text, error, exc_info=trace)
        # The reason of its row, should every later try fail as well.
        self._owed[key] = ("error", f"{type(error).__name__}: {error}")
        self._retry(setup, key)
        return TickOutcome(key, "late", reason="error", detail=str(error))

    def _due_moment(self, key: TickKey, before: datetime | None) -> float:
        """Return the monotonic moment of the close if this is the first wake since it.

        Then queueing behind other ticks counts. A close that is caught up on counts from now.
        """
        now, as_of = self.clock.monotonic(), key.close_time
        fresh = before is not None and as_of > before
        # A desk that was off would begin with a deadline long past.
        if not fresh or self.clock.now() - as_of >= duration(key.timeframe):
            return now
        lag = (self.clock.real_now() - self.clock.real_time_of(as_of)).total_seconds()
        return now - max(0.0, lag)

    def _retry(self, setup: InstanceRuntime, key: TickKey) -> None:
        now, as_of = self.clock.now(), key.close_time
        # One wake just past the limit, so that a close whose bar never came gets its row.
        last = as_of + OLDEST_BARS * duration(key.timeframe) + timedelta(seconds=1)
        moment = min(now + RETRY_SHARE * duration(key.timeframe), max(last, now))
        self._wake_again(setup.instance.id, moment)

    def _wake_again(self, name: str, moment: datetime) -> None:
        """Wake an instance at a moment of the desk's clock, or at its next close if that is first.

        Without timers (in warm-up, while closing) the next wake comes anyhow.
        """
        timeframes = self.setups[name].instance.timeframes
        moment = min(moment, next_close(self.clock.now(), timeframes))
        real = self.clock.real_time_of(moment)
        self._timers.bring_forward(job_id(name), real, self.clock.real_now())

    def _pay_debts(self, name: str) -> None:
        """Give back an instance's claims that could not even be released when a tick failed."""
        for key in [key for key in self._owed if key.instance == name]:
            self.database.release_claim(key)

    def _edges(
        self, setup: InstanceRuntime, window: Window, clock: Clock | None = None
    ) -> TickDeps:
        edges = TickDeps(
            database=self.database,
            window=window,
            submit=setup.provider.submit,
            provider=setup.provider.name,
            clock=clock or self.clock,
            on_event=self.events.on_event if self.events else None,
            account=setup.account,
            news=setup.news,
            events=setup.events,
            outside=setup.outside,
            lessons=self.lessons.of(setup.profile, setup.feed),
            standing=self.past.of(setup.profile, setup.provider.name, setup.feed),
            companions=setup.companions,
            route=None if setup.instance.bridge == "paper" else self.route,
            halted=self.kill_switch.engaged,
            on_error=self._halt_if_broken,
            promoted=partial(self.promotions.promoted, setup.instance.profile, setup.profile),
        )
        return with_invented(edges, setup.instance, setup.profile, setup.feed, self.database)

    def _halt_if_broken(self, error: Exception) -> None:
        """Halt when the database is broken: what was decided can no longer be remembered."""
        if isinstance(error, StoreBroken):
            self.kill_switch.fault(f"store: {error}")

    # --- warm-up ----------------------------------------------------------------------------------

    def warm_up(self, upto: datetime, bars: int = WARM_UP_BARS) -> Iterator[tuple[int, int]]:
        """Run the ticks before `upto` of every instance that has none yet; yield (done, all).

        The ticks of all instances run in the order of their closes, as they would have. No vendor
        is asked: the past is not worth its time and money. Ticks of such a profile are L1_ONLY.
        Nothing of the past goes to a market, to a person or into a stream of events, and no
        companion is read; on paper its trades are made.
        """
        found = (plan(item, self.database, upto, bars) for item in self.setups.values())
        plans = [one for one in found if one]
        todo = [(key, one) for one in plans for key in one.keys]
        clock = Simulated(upto)
        # All instances in one order: they share the account, and exposure of then depends on it.
        todo.sort(key=lambda item: (item[0].close_time, item[0].instance))
        done = 0
        for (moment, _), close in groupby(
            todo, key=lambda item: (item[0].close_time, item[0].instance)
        ):
            if not self.active:
                return  # it has lost its lock
            clock.set(moment)
            ticks = [*close]
            self._warm(ticks[0][1], [key for key, _ in ticks], clock)
            done += len(ticks)
            yield done, len(todo)

    def _warm(self, one: WarmUp, keys: Sequence[TickKey], clock: Simulated) -> None:
        """Run the ticks of a close of the past."""
        setup = one.setup
        silent = setup.instance.bridge != "paper" or setup.profile.execution == "approve"
        profile = _silenced(setup.profile) if silent else setup.profile
        with setup.lock:
            # Their reader is made for the bars of now: each close of the past would wait for it,
            # mostly in vain.
            edges = replace(
                self._edges(setup, one.window, clock),
                on_event=None,
                companions=None,
                lessons=None,
                standing=None,
            )
            # An account means that calls cost money; free providers do answer.
            if setup.account is not None:
                edges = replace(edges, submit=None)
            due = clock.monotonic()
            bars = [ClosedBar(key.timeframe, key.bar_time, due, profile) for key in keys]
            for outcome in run_close(setup.instance, bars, edges=edges):
                self._taken_in(setup, outcome)


def refusal(home: Path) -> str:
    """Return why a desk may not work on a home: another one does."""
    return (
        f"another desk{_of_whom(home / DATABASE)} works on {home.absolute()}: end it, or start "
        "this one with `torra run --wait`"
    )


def _of_whom(database: Path) -> str:
    try:
        with closing(connect_reader(database)) as db:
            sql = "SELECT process, substr(started_at, 1, 19) FROM desk_run"
            found = db.execute(sql).fetchone()
    except sqlite3.DatabaseError:  # made just now, or of an older program
        return ""
    return f" (process {found[0]}, since {found[1]}Z)" if found and found[0] else ""


def job_id(instance: str) -> str:
    """Name the job that wakes an instance."""
    return f"bars {instance}"


def _silenced(profile: Profile) -> Profile:
    """Return a profile with which a tick is a record and trades nothing."""
    return profile.model_copy(update={"execution": "off"})


def running_order(key: TickKey) -> tuple[datetime, timedelta]:
    """Sort by close, and at the same close the longer timeframe first."""
    return key.close_time, -duration(key.timeframe)

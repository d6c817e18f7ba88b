"""The desk's schedule: the lock, the wakes at each bar's close, the catch-up and the warm-up.

One desk works on a home at a time (torra.desk_lock); a second one is refused. A wake lists every
close that has neither a finished nor a skipped tick and runs them oldest first, the longer
timeframe first where two close together. Closes more than two bars old get a row `skipped(missed)`.
At its end a wake looks for closes that came meanwhile. So it does not matter whether a wake comes
late, comes twice or is replaced by another. A tick that raises is tried again at the next wake
until it is too old.

One thread shows by monotonic time that the desk lives, sees that its lock is still its own, sets
the timers anew when the clock has jumped, and wakes an instance itself whose wake did not come.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Final

import signal_bridge
from instance_database import Database, TickKey
from torra.clock import Clock, Simulated, duration, iso, token
from torra.config import Profile
from torra.desk import pruning, timeframe_clocks, watches
from torra.desk.event_stream import EventStream
from torra.desk.memory.experts_past import ExpertsPast
from torra.desk.memory.shelves import DeskLessons
from torra.desk.outlook import begin_flow, with_invented
from torra.desk.promotion import Promotions, PromotionSubject, subjects_of
from torra.desk.roster import InstanceRegistry, InstanceRuntime
from torra.desk.timers import BarCloses, Timers, job_id, next_close, running_order
from torra.desk.warm_up import WARM_UP_BARS, WarmUp, in_order, plan
from torra.desk.write_off import NO_BAR, Reason, mark_missed, missing_bar_reason
from torra.desk_lock import DeskLock
from torra.errors import ConfigError, StoreBroken, StoreUnavailable
from torra.services import Service, Services, in_background
from torra.store import ledger as ledger_table
from torra.store import ticks as claim_table
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

CHORES: Final = {
    "prune": (timedelta(hours=1), timedelta(minutes=1)),
    # Looks at agents fall due by the number of ticks, not by time.
    "agents": (timedelta(hours=1), timedelta(minutes=3)),
    # After the warm-up, which stores bars.
    "clocks": (timedelta(days=1), timedelta(minutes=5)),
}
"""Real time between two turns of what is done beside the ticks, and from a start to the first."""

KEEP_CALLS: Final = timedelta(days=90)
"""Age at which the texts of calls and headlines are removed, unless desk.json says otherwise."""

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
        by_name = {item.instance.id: item for item in setups}
        self.roster = InstanceRegistry(
            database,
            by_name,
            lambda: self.clock.monotonic(),  # noqa: PLW0108 - the clock may be replaced
        )
        self.events = events
        self.lessons = DeskLessons(database)
        self.past = ExpertsPast(database)
        self.promotions = Promotions(database, self.subjects)
        self._owed: dict[TickKey, Reason] = {}
        self._running = False
        self._closing = False
        self._clocks = watches.ClockWatch()
        self._lock_watch = watches.LockWatch(3 * life_seconds)
        self._woken: dict[str, datetime] = {}
        self._timers = Timers(len(self.setups) + 2)

    @property
    def database(self) -> Database:
        """The desk's database: the roster's, so that an adoption writes where the ticks do."""
        return self.roster.database

    @property
    def _works(self) -> bool:
        return self.active and not self._closing

    @property
    def setups(self) -> Mapping[str, InstanceRuntime]:
        """The instances as they stand now, by name."""
        return self.roster.setups

    def subjects(self) -> tuple[PromotionSubject, ...]:
        """Return the profiles by which the instances run now."""
        return subjects_of((item.instance, item.profile) for item in self.setups.values())

    # --- life -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take the lock and show from now on that this desk lives; ConfigError where it is held."""
        self._take_up()
        self._life.start()
        now = self.clock.real_now()
        works = (self.prune, self.look_at_agents, self.look_at_clocks)
        for (name, (every, first)), work in zip(CHORES.items(), works, strict=True):
            self._timers.every(name, work, every, now + first)
        self._timers.start()

    def _take_up(self) -> None:
        if not self.lock.acquire():
            raise ConfigError(watches.refusal(self.database.path.parent))
        self.database.fence = self.lock.is_owned
        self.run = token(8)
        with self.database.transaction():
            claim_table.begin_run(self.database, self.run, os.getpid())
            # Whoever starts a desk has looked after its keys.
            ledger_table.clear_blocks(self.database)
            ledger_table.begin_calls(self.database)
            for setup in self.setups.values():
                self.roster.record_profile(setup)
        self.active = True

    def start(self) -> None:
        """Start the clock where the desk stood and wake at every close from now on."""
        self.clock = self._make_clock(self.database.desk_time())
        self._running = True
        setups = [*self.setups.values()]
        # Lessons and experts' past are read before the first tick asks.
        self.lessons.prepare((item.profile, item.feed) for item in setups)
        self.past.prepare(
            ((item.instance, item.profile, item.provider.name, item.feed) for item in setups),
            self.clock.now(),
        )
        self.services.start()
        begin_flow(setups, self.database, self.clock.now())
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

    def keep(self) -> None:
        """See that the lock is ours, show life, and see that every instance is woken in time."""
        if self._closing or not self._keep_lock():
            return
        desk_time = self.clock.now() if self._running else None
        self._try_to_tell(lambda: self.database.show_life(desk_time))
        if not self._running:
            return
        if abs(self._jump(None)) > watches.TIMER_TOLERANCE:
            self._set_timers()
        if self._timers.revive():
            log.error("the timers had died and are set anew")
        overdue = self._timers.overdue(self.clock.monotonic())
        for name, setup in self.setups.items():
            if job_id(name) in overdue and not setup.lock.locked():  # else it is at work
                self._rouse(name)

    def _keep_lock(self) -> bool:
        """Return whether this desk still has its lock; one that lost it to another rests."""
        if not self.active or self.lock.is_owned():
            return self.active
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
        whose = watches.owner_of(self.database.path)
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

    def _try_to_tell(self, sign: Callable[[], None]) -> None:
        """Give a sign of life, and say it when the database's lock does not go away."""
        begun = self.clock.monotonic()
        try:
            sign()
        except StoreUnavailable as error:
            self._halt_if_broken(error)
            log.error("a sign of life: %s", error)
            locked = LOCKED in str(error)
            if locked and (line := self._lock_watch.locked(begun, self.clock.monotonic())):
                log.error("%s", line)
        else:
            if line := self._lock_watch.free(self.clock.monotonic()):
                log.warning("%s", line)

    @property
    def pause_reason(self) -> str:
        """Why this desk cannot write, for a person; "" when it can, as far as it knows."""
        return self._lock_watch.words

    def adopt(self, profile_name: str, profile: Profile) -> None:
        """Let a profile's instances go on with it, each between two ticks; raises ConfigError."""
        self.roster.adopt(profile_name, profile)

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
        """Remove old calls, headlines, streams and ledger rows; return how many rows went."""
        what = (self.database, self.clock, self._keep_calls, lambda: self._works)
        return self._run_chore("pruning", lambda: pruning.prune(*what))

    def look_at_agents(self) -> int:
        """Let the promotion rule look at agents; return how many looks were taken."""
        return self._run_chore("agents", lambda: len(self.promotions.look()))

    def look_at_clocks(self) -> int:
        """Return how many instances have timeframes that are not of one clock."""
        instances = [item.instance for item in self.setups.values()]
        look = timeframe_clocks.record_timeframe_clocks
        return self._run_chore("clocks", lambda: look(self.database, instances, self.clock.now()))

    def _run_chore(self, name: str, work: Callable[[], int]) -> int:
        """Run a chore between the ticks; 0 where a database fails, which is logged."""
        try:
            return work() if self._works else 0
        except StoreUnavailable as error:
            log.error("%s: %s", name, error)
            return 0

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
                more = self._works and again <= self.clock.now()
            left = (self.clock.real_time_of(again) - self.clock.real_now()).total_seconds()
            if self.active:
                self._timers.expect(job_id(name), self.clock.monotonic() + max(0.0, left))
        return outcomes

    def _round(self, name: str) -> list[TickOutcome]:
        """Run what is due now; the caller holds the instance's lock."""
        outcomes: list[TickOutcome] = []
        setup = self.setups[name]  # here: an adoption may have changed it
        if not self._works:
            return outcomes
        window = LiveWindow(setup.instance, setup.feed, self.database)
        edges = self._edges(setup, window)
        if setup.profile.outside.sources and not edges.invented:
            edges = replace(edges, flow=window.flow, begin_flow=window.begin_flow)
        try:
            if abs(self._jump(name)) > watches.CLOCK_TOLERANCE:
                moment = self.clock.now() + watches.CLOCK_TOLERANCE * (self.clock.rate or 1.0)
                self._wake_again(name, moment)
                return outcomes
            # Before `_due`: a claim that could not even be released would hide its close.
            for key in [key for key in self._owed if key.instance == name]:
                self.database.release_claim(key)
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

    def _jump(self, instance: str | None) -> timedelta:
        """Return by how much the clock jumped since an instance, or all of them, looked last.

        When it was set back, nothing of the instance, or of all, goes out that was decided before.
        """
        jump = self._clocks.jump(instance or "all", self.clock)
        if jump < -watches.CLOCK_TOLERANCE:
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
            detail = "the clock jumped a while ago"
            return [TickOutcome(key, "late", reason="clock", detail=detail) for key in keys]
        known = {key: self._owed.pop(key) for key in keys if key in self._owed}
        done = mark_missed(
            self.database, setup.instance, setup.feed, keys,
            known=known, goes_on=lambda: self._works,
        )  # fmt: skip
        return [TickOutcome(key, "skipped", None, *reason) for key, reason in done.items()]

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
        for key in waiting:  # they are put off
            self._owed[key] = missing_bar_reason(setup.instance, setup.feed, key) or NO_BAR
            self._retry(setup, key)
            no_bar = f"no bar {iso(key.bar_time)} yet"
            outcomes.append(TickOutcome(key, "late", reason="late", detail=no_bar))
        return outcomes

    def _run(
        self, setup: InstanceRuntime, due: Mapping[TickKey, float], edges: TickDeps
    ) -> list[TickOutcome]:
        """Run the ticks of a close; `due` has the moment from which each one's deadline counts."""
        bars = [
            ClosedBar(
                key.timeframe,
                key.bar_time,
                moment,
                # Once a newer tick of the stream is done this one must not trade.
                _silenced(setup.profile)
                if (newest := claim_table.newest_claim(self.database, key.instance, key.timeframe))
                and newest > key.bar_time
                else setup.profile,
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

        No vendor is asked, no companion is read, and nothing goes to a market, to a person or into
        a stream of events; on paper its trades are made.
        """
        plans = (plan(item, self.database, upto, bars) for item in self.setups.values())
        yield from in_order([one for one in plans if one], lambda: self.active, self._warm)

    def _warm(self, one: WarmUp, keys: Sequence[TickKey], clock: Simulated) -> None:
        """Run the ticks of a close of the past."""
        setup = one.setup
        silent = setup.instance.bridge != "paper" or setup.profile.execution == "approve"
        profile = _silenced(setup.profile) if silent else setup.profile
        with setup.lock:
            edges = self._edges(setup, one.window, clock)
            edges = replace(
                edges,
                # An account means that calls cost money; free providers do answer.
                submit=None if setup.account is not None else edges.submit,
                on_event=None,
                # Its reader is made for the bars of now: each close would wait, mostly in vain.
                companions=None,
                lessons=None,
                standing=None,
            )
            due = clock.monotonic()
            bars = [ClosedBar(key.timeframe, key.bar_time, due, profile) for key in keys]
            for outcome in run_close(setup.instance, bars, edges=edges):
                self._taken_in(setup, outcome)


def _silenced(profile: Profile) -> Profile:
    """Return a profile with which a tick is a record and trades nothing."""
    return profile.model_copy(update={"execution": "off"})

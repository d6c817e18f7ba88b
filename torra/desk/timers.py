"""The desk's timers: APScheduler behind a few verbs, and a watch over wakes that did not come.

A wake that comes late is never dropped, several that are due at once come once, and no instance is
woken while it is at work. Timers depend on the wall clock and on one thread; where either fails, a
wake would be lost until the next close. So every wake is expected by monotonic time too: `overdue`
names those that did not come, and `revive` replaces dead timers. torra.desk.schedule decides who is
woken then, and how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.interval import IntervalTrigger

from instance_database import TickKey
from torra.clock import Clock, closes, duration

TIMER_SLACK: Final = timedelta(milliseconds=10)
"""Delay of a wake after the close, so that it never comes before it."""

OVERDUE_SECONDS: Final = 5.0
"""Real seconds after which an expected wake counts as lost."""


class _Scheduler(BackgroundScheduler):  # type: ignore[misc]
    """APScheduler's own, which does not report that its thread has died."""

    @property
    def dead(self) -> bool:
        """Whether it was started and runs no more."""
        thread = getattr(self, "_thread", None)
        return thread is not None and not thread.is_alive()


class Timers:
    """Jobs by name. Any thread may set them."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._scheduler = self._made()
        self._expected: dict[str, float] = {}

    def _made(self) -> _Scheduler:
        return _Scheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(self._workers)},
            # By default a wake a second late is dropped, and its bar would wait for the next close.
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )

    def start(self) -> None:
        """Let the timers run."""
        self._scheduler.start()

    def stop(self) -> None:
        """Let no timer fire any more; what one has begun runs on."""
        self._expected = {}
        if self._scheduler.running and not self._scheduler.dead:
            self._scheduler.shutdown(wait=False)

    def every(self, name: str, work: Callable[[], Any], period: timedelta, first: datetime) -> None:
        """Call `work` from a moment on, again and again; a period has whole seconds."""
        trigger = IntervalTrigger(seconds=int(period.total_seconds()), timezone=UTC)
        self._scheduler.add_job(work, trigger, id=name, next_run_time=first)

    def set(
        self, name: str, work: Callable[[], Any], trigger: BaseTrigger, first: datetime
    ) -> None:
        """Call `work` at a moment and whenever a trigger fires, in place of what was set before."""
        self._scheduler.add_job(work, trigger, id=name, next_run_time=first, replace_existing=True)

    def clear(self, names: Iterable[str]) -> None:
        """Forget timers and what is expected of them."""
        for name in names:
            self._expected.pop(name, None)
            with suppress(JobLookupError):
                self._scheduler.remove_job(name)

    def job(self, name: str) -> Any:
        """Return APScheduler's job of a name, None when there is none."""
        return self._scheduler.get_job(name)

    def bring_forward(self, name: str, moment: datetime, now: datetime) -> None:
        """Let a timer that is set fire at a moment, unless it does so earlier anyhow."""
        job = self.job(name)
        if job is None or job.next_run_time is None or now < job.next_run_time <= moment:
            return
        # It may have fired, or been cleared, since it was looked up.
        with suppress(JobLookupError):
            self._scheduler.modify_job(name, next_run_time=moment)

    # --- the watch --------------------------------------------------------------------------------

    def expect(self, name: str, moment: float) -> None:
        """Expect a wake at a monotonic moment."""
        self._expected[name] = moment

    def overdue(self, monotonic: float) -> list[str]:
        """Return the names of the wakes that should have come OVERDUE_SECONDS ago."""
        late = monotonic - OVERDUE_SECONDS
        # A copy: wakes on other threads write to it meanwhile.
        return [name for name, moment in list(self._expected.items()) if moment < late]

    def revive(self) -> bool:
        """Replace timers whose thread died, as they were set; return whether it had."""
        old = self._scheduler
        if not old.dead:
            return False
        self._scheduler = self._made()
        for job in old.get_jobs():
            self._scheduler.add_job(
                job.func, job.trigger, args=job.args, id=job.id, next_run_time=job.next_run_time
            )
        self._scheduler.start()
        return True


class BarCloses(BaseTrigger):  # type: ignore[misc]
    """Fires a moment after each close of the given timeframes, on the desk's clock."""

    def __init__(self, clock: Clock, timeframes: Sequence[str]) -> None:
        self._clock = clock
        self._timeframes = timeframes

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """Return the real time of the next close."""
        del now
        moment = next_close(self._clock.now(), self._timeframes)
        fire = self._clock.real_time_of(moment) + TIMER_SLACK
        if previous is None or previous > self._clock.real_now() + TIMER_SLACK:
            return fire  # nothing fired yet, or under a clock that has been set back since
        # APScheduler asks again at once: a clock a hair behind would name the same close twice.
        return max(fire, previous + TIMER_SLACK)


def next_close(now: datetime, timeframes: Sequence[str]) -> datetime:
    """Return the next moment at which a bar of one of the timeframes closes."""
    return min(next(closes(name, after=now, upto=now + duration(name))) for name in timeframes)


def job_id(instance: str) -> str:
    """Name the job that wakes an instance."""
    return f"bars {instance}"


def running_order(key: TickKey) -> tuple[datetime, timedelta]:
    """Sort by close, and at the same close the longer timeframe first."""
    return key.close_time, -duration(key.timeframe)

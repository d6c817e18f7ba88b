"""The trigger that wakes a desk at each bar close, and the next close of any timeframe.

The desk's clock says when, in real time, a bar closes; APScheduler keeps the timer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from apscheduler.triggers.base import BaseTrigger

from torra.clock import Clock, closes, duration

TIMER_SLACK: Final = timedelta(milliseconds=10)
"""Delay of a wake after the close, so that it never comes before it."""


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

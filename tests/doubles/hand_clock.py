"""A clock that a test moves by hand, for the worlds of a terminal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from torra.clock import System

START = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


class HandClock(System):
    """A clock that only moves when it is told to; whoever sleeps lets the others work."""

    accelerated = False
    rate = None

    def __init__(self, start: datetime = START) -> None:
        self.moment = start
        self.elapsed = 0.0
        self.others: list[Callable[[], None]] = []

    def now(self) -> datetime:
        return self.moment

    def real_now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.elapsed

    def real_time_of(self, moment: datetime) -> datetime:
        return moment

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
        self.elapsed += seconds
        for work in self.others:
            work()

    def pass_by(self, seconds: float, step: float = 0.25) -> None:
        end = self.elapsed + seconds
        while self.elapsed < end - 1e-9:
            self.sleep(min(step, end - self.elapsed))

"""Time and chance: the only module that reads either; also the arithmetic of the bar grid (UTC).

`now` is the desk's clock (UTC, aware); `monotonic` is real elapsed seconds. In production the two
run alike; for the accelerated demo `Scaled` maps real time onto the sample's period. Feed, door,
expiry and pages ask the desk's clock. Deadlines, leases and the scheduler's own timers use real
time: `real_time_of` says when, in real time, a moment of the desk's clock comes.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

TEXTS: Final = 4096
"""How many times keep their text, and texts their time: a tick asks for the same ones repeatedly.
"""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
TIMEFRAMES: Final = {
    "M1": timedelta(minutes=1),
    "M5": timedelta(minutes=5),
    "M15": timedelta(minutes=15),
    "M30": timedelta(minutes=30),
    "H1": timedelta(hours=1),
    "H4": timedelta(hours=4),
    "D1": timedelta(days=1),
}

SAMPLE_RATE: Final = 180.0
"""How much faster than real time a sample is replayed: a 15-minute bar every 5 seconds."""


class System:
    """What a part of Torra may know about time; this clock is a live desk's: real time.

    `accelerated`: desk time runs through a past period, and the desk shows itself as a DEMO. `rate`
    is desk seconds in a real second, None for a clock that is set by hand.
    """

    accelerated = False
    rate: float | None = 1.0

    def now(self) -> datetime:
        """Return the desk's time, aware, in UTC."""
        return datetime.now(UTC)

    def real_now(self) -> datetime:
        """Return real time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return real elapsed seconds from an arbitrary start; never runs backwards."""
        return time.monotonic()

    def real_time_of(self, moment: datetime) -> datetime:
        """Return the real time at which the desk's clock shows `moment`."""
        return moment

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds of the desk's time."""
        time.sleep(max(0.0, seconds))


Clock = System
"""The type of any clock: `Scaled` and `Simulated` are System with another time."""


class Scaled(System):
    """A clock that starts at `start` and runs `rate` times as fast as monotonic time."""

    accelerated = True

    def __init__(self, start: datetime, rate: float) -> None:
        if rate <= 0:
            raise ValueError("rate must be positive")
        self.rate = rate
        # `rate` may be None by its type; the arithmetic needs a plain float.
        self._pace = rate
        self._start = start
        self._zero = time.monotonic()

    def now(self) -> datetime:
        """Return the desk's time."""
        return self._start + timedelta(seconds=(self.monotonic() - self._zero) * self._pace)

    def real_time_of(self, moment: datetime) -> datetime:
        """Return the real time at which this clock shows `moment`."""
        return self.real_now() + (moment - self.now()) / self._pace

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds of the desk's time."""
        time.sleep(max(0.0, seconds) / self._pace)


class Simulated(System):
    """A clock that stands still until it is set: for replay, warm-up, one-off ticks and tests."""

    rate = None

    def __init__(self, moment: datetime) -> None:
        self._lock = threading.Lock()
        self._moment = moment

    def now(self) -> datetime:
        """Return the moment that was set last."""
        with self._lock:
            return self._moment

    def real_time_of(self, moment: datetime) -> datetime:
        """Return real time for the moment that is shown, and as far from it as `moment` is."""
        return self.real_now() + (moment - self.now())

    def set(self, moment: datetime) -> None:
        """Show `moment` from now on."""
        with self._lock:
            self._moment = moment

    def sleep(self, seconds: float) -> None:
        """Let this many seconds pass at once."""
        with self._lock:
            self._moment += timedelta(seconds=max(0.0, seconds))


real_sleep: Final = System().sleep
"""Waits for some real seconds."""


def duration(timeframe: str) -> timedelta:
    """Return the length of a bar; raises ValueError for a timeframe that Torra does not know."""
    try:
        return TIMEFRAMES[timeframe]
    except KeyError:
        known = ", ".join(TIMEFRAMES)
        raise ValueError(f"unknown timeframe {timeframe!r}; known: {known}") from None


def floor(moment: datetime, timeframe: str) -> datetime:
    """Return the newest moment on the timeframe's UTC grid that is not after `moment`."""
    # In whole timedeltas: seconds as floats could round a close into its neighbour.
    return EPOCH + (moment - EPOCH) // duration(timeframe) * duration(timeframe)


def closes(timeframe: str, after: datetime, upto: datetime) -> Iterator[datetime]:
    """Yield the moments on the grid in (after, upto], oldest first."""
    step = duration(timeframe)
    moment = floor(after, timeframe) + step
    while moment <= upto:
        yield moment
        moment += step


def iso(moment: datetime) -> str:
    """Write an aware time as 2021-12-01T10:00:00Z, with fractions only when there are any."""
    # Equal times of other zones hash alike: without this one text would be cached for the other's.
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return _written(moment)


@lru_cache(maxsize=TEXTS)
def _written(moment: datetime) -> str:
    """Write a time in UTC, where equal times have equal texts."""
    return moment.isoformat().replace("+00:00", "Z")


@lru_cache(maxsize=TEXTS)
def parse(text: str) -> datetime:
    """Read ISO 8601; a time without a zone is taken as UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def time_of(value: str | datetime) -> datetime:
    """Return a time that may still be the text it is stored as. Raises ValueError."""
    return value if isinstance(value, datetime) else parse(value)


def token(size: int = 12) -> str:
    """Return fresh random hexadecimal text: a fence's nonce, an owner's name."""
    return secrets.token_hex(size)

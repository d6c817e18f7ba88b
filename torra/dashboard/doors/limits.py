"""How often somebody may ask: a bucket for each visitor, and a growing wait after failures.

Both keep what they know in memory, of a bounded number of visitors, the least recent forgotten
first: a restart forgets all, which does no harm with one process. Time comes in as a function.
Nothing here refuses a request; `wait` says for how many seconds to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

MINUTE: Final = 60.0
MOST_VISITORS: Final = 10_000
"""Entries that are kept of each kind; one takes some 300 bytes."""

ROUNDING: Final = 1e-9
FREE_FAILURES: Final = 2
LONGEST_WAIT: Final = 300.0
"""Seconds after which anybody may try again, however often it failed."""

FORGOTTEN: Final = 3600.0
"""Seconds after its last failure that somebody is as good as new."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


@dataclass(slots=True)
class _Failures:
    count: int
    at: float


class RateLimits:
    """A bucket for each key: full at first, emptied one by one, refilled evenly in a minute."""

    def __init__(self, monotonic: Callable[[], float], most: int = MOST_VISITORS) -> None:
        self._monotonic = monotonic
        self._most = most
        self._lock = threading.Lock()
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()

    def wait(self, key: Hashable, per_minute: int) -> float:
        """Return 0.0 and count this one, or the seconds until there is room for one."""
        now = self._monotonic()
        with self._lock:
            bucket = self._buckets.setdefault(key, _Bucket(per_minute, now))
            self._buckets.move_to_end(key)
            gained = (now - bucket.at) * per_minute / MINUTE
            bucket.left = min(float(per_minute), bucket.left + gained)
            bucket.at = now
            while len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
            if bucket.left < 1.0 - ROUNDING:
                return (1.0 - bucket.left) * MINUTE / per_minute
            bucket.left = max(0.0, bucket.left - 1.0)
            return 0.0


class BackOff:
    """Who failed lately waits: 1 second after the third failure, twice as long after each more."""

    def __init__(self, monotonic: Callable[[], float], most: int = MOST_VISITORS) -> None:
        self._monotonic = monotonic
        self._most = most
        self._lock = threading.Lock()
        self._failed: OrderedDict[str, _Failures] = OrderedDict()

    def wait(self, who: str) -> float:
        """Return the seconds until this one may try again, 0.0 for now."""
        with self._lock:
            known = self._failed.get(who)
            if known is None or known.count <= FREE_FAILURES:
                return 0.0
            pause = min(LONGEST_WAIT, 2.0 ** min(known.count - FREE_FAILURES - 1, 30))
            return max(0.0, known.at + pause - self._monotonic())

    def failed(self, who: str) -> None:
        """Count a failure."""
        now = self._monotonic()
        with self._lock:
            known = self._failed.setdefault(who, _Failures(0, now))
            if now - known.at > FORGOTTEN:
                known.count = 0
            known.count, known.at = known.count + 1, now
            self._failed.move_to_end(who)
            while len(self._failed) > self._most:
                self._failed.popitem(last=False)

    def succeeded(self, who: str) -> None:
        """Forget the failures of this one."""
        with self._lock:
            self._failed.pop(who, None)

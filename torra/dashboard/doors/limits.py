"""Rate limits: a token bucket for each visitor, and a growing wait after failed logins.

Both classes keep their counts in memory, for a bounded number of visitors, and drop the least
recent first. A restart forgets everything, which does no harm with one process. The clock is passed
in as a function. Nothing here refuses a request; `wait` returns the seconds to wait.
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
"""Seconds of the longest wait, however many failures there were."""

FORGOTTEN: Final = 3600.0
"""Seconds after the last failure until a visitor's failures are forgotten."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


@dataclass(slots=True)
class _Failures:
    count: int
    at: float


class RateLimits:
    """A bucket for each key: full at first, one taken per request, refilled evenly in a minute."""

    def __init__(self, monotonic: Callable[[], float], most: int = MOST_VISITORS) -> None:
        self._monotonic = monotonic
        self._most = most
        self._lock = threading.Lock()
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()

    def wait(self, key: Hashable, per_minute: int) -> float:
        """Take one and return 0.0, or take none and return the seconds until there is one."""
        now = self._monotonic()
        with self._lock:
            bucket = self._buckets.setdefault(key, _Bucket(per_minute, now))
            self._buckets.move_to_end(key)
            gained = (now - bucket.at) * per_minute / MINUTE
            bucket.left = min(float(per_minute), bucket.left + gained)
            bucket.at = now
            while len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
            # a bucket that was refilled in parts comes to a little less than one
            if bucket.left < 1.0 - ROUNDING:
                return (1.0 - bucket.left) * MINUTE / per_minute
            bucket.left = max(0.0, bucket.left - 1.0)
            return 0.0


class BackOff:
    """A growing wait: 1 second after the third failure, doubled by each further one."""

    def __init__(self, monotonic: Callable[[], float], most: int = MOST_VISITORS) -> None:
        self._monotonic = monotonic
        self._most = most
        self._lock = threading.Lock()
        self._failed: OrderedDict[str, _Failures] = OrderedDict()

    def wait(self, who: str) -> float:
        """Return the seconds until this visitor may try again, 0.0 for now."""
        with self._lock:
            known = self._failed.get(who)
            if known is None or known.count <= FREE_FAILURES:
                return 0.0
            # 30: a power of a large count would overflow before min() sees it
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

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
class _Count:
    amount: float
    at: float


class _Counts:
    """What is counted of each visitor, for `most` of them."""

    def __init__(self, monotonic: Callable[[], float], most: int = MOST_VISITORS) -> None:
        self._monotonic = monotonic
        self._most = most
        self._lock = threading.Lock()
        self._counts: OrderedDict[Hashable, _Count] = OrderedDict()

    def _touch(self, key: Hashable, first: float, now: float) -> _Count:
        """Return a visitor's count, from now on the most recent; a new one begins at `first`."""
        count = self._counts.setdefault(key, _Count(first, now))
        self._counts.move_to_end(key)
        while len(self._counts) > self._most:
            self._counts.popitem(last=False)
        return count


class RateLimits(_Counts):
    """A bucket for each key: full at first, one taken per request, refilled evenly in a minute."""

    def wait(self, key: Hashable, per_minute: int) -> float:
        """Take one and return 0.0, or take none and return the seconds until there is one."""
        now = self._monotonic()
        with self._lock:
            bucket = self._touch(key, per_minute, now)
            gained = (now - bucket.at) * per_minute / MINUTE
            bucket.amount = min(float(per_minute), bucket.amount + gained)
            bucket.at = now
            # a bucket that was refilled in parts comes to a little less than one
            if bucket.amount < 1.0 - ROUNDING:
                return (1.0 - bucket.amount) * MINUTE / per_minute
            bucket.amount = max(0.0, bucket.amount - 1.0)
            return 0.0


class BackOff(_Counts):
    """A growing wait: 1 second after the third failure, doubled by each further one."""

    def wait(self, who: str) -> float:
        """Return the seconds until this visitor may try again, 0.0 for now."""
        with self._lock:
            failures = self._counts.get(who)
            if failures is None or failures.amount <= FREE_FAILURES:
                return 0.0
            # 30: a power of a large count would overflow before min() sees it
            steps = min(failures.amount - FREE_FAILURES - 1, 30)
            pause: float = min(LONGEST_WAIT, 2.0**steps)
            return max(0.0, failures.at + pause - self._monotonic())

    def failed(self, who: str) -> None:
        """Count a failure."""
        now = self._monotonic()
        with self._lock:
            failures = self._touch(who, 0, now)
            if now - failures.at > FORGOTTEN:
                failures.amount = 0
            failures.amount, failures.at = failures.amount + 1, now

    def succeeded(self, who: str) -> None:
        """Forget the failures of this one."""
        with self._lock:
            self._counts.pop(who, None)

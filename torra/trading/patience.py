"""The demo's clock stands while a proposal waits for a person, for a while.

The sample runs 180 times faster than real time: a proposal of fifteen minutes would be gone in five
seconds, before anybody has read it. So the clock stands while one waits, at most LONGEST real
seconds each. Real time cannot stand: a desk that lives in it never waits, as the market does not.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

from torra.clock import Clock

LONGEST: Final = 120.0
"""Real seconds for which one proposal lets the clock stand."""


class Patience:
    """Since when each proposal has been waiting, in real time."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._until = -math.inf

    def look(self, clock: Clock, waiting: Collection[str]) -> bool:
        """Let a clock stand while one of these proposals waits and was not waited for enough.

        Returns whether it goes on earlier than it was to: then every timer that was set for it in
        real time comes too late.
        """
        now = clock.monotonic()
        self._since = {sid: self._since.get(sid, now) for sid in waiting}
        until = max((begun + LONGEST for begun in self._since.values()), default=now)
        if until > now:
            clock.hold(until - now)
        else:
            clock.go_on()
        before, self._until = self._until, until
        return max(until, now) < before

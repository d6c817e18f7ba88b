"""The demo's clock stands while a proposal waits for a person, for a while.

The sample runs 180 times faster than real time: a proposal of fifteen minutes would be gone in five
seconds, before anybody has read it. So the clock stands while one waits, at most LONGEST real
seconds each. Real time cannot stand: a desk that lives in it never waits, as the market does not.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from torra.clock import Clock

LONGEST: Final = 120.0
"""Real seconds for which one proposal lets the clock stand."""


class Patience:
    """Since when each proposal has been waiting, in real time."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def look(self, clock: Clock, waiting: Collection[str]) -> None:
        """Let a clock stand while one of these proposals waits and was not waited for enough."""
        now = clock.monotonic()
        self._since = {sid: self._since.get(sid, now) for sid in waiting}
        left = max((begun + LONGEST - now for begun in self._since.values()), default=0.0)
        if left > 0:
            clock.hold(left)
        else:
            clock.go_on()

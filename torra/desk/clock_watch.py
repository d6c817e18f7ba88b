"""The watch over the desk's clock: compares wall time with monotonic time, which nobody sets.

People, time servers and a machine that wakes from sleep set a wall clock forwards and backwards.
`jump` returns how far the two clocks have parted since the same caller asked last. After a jump the
clock may be corrected again, so for a while nothing that depends on it is final (`settling`).
"""

from __future__ import annotations

import logging
import math
from datetime import datetime, timedelta
from typing import Final

from torra.clock import Clock

SETTLING_SECONDS: Final = 600.0
"""Real seconds after a jump of the clock during which no bar is written off as missed."""

CLOCK_TOLERANCE: Final = timedelta(seconds=30)
"""Real time by which desk clock and monotonic time may part between two looks.

More is a jump, after which the desk waits as long before it believes the clock.
"""

TIMER_TOLERANCE: Final = timedelta(seconds=1)
"""Real time by which they may part before timers are set anew, which would come that late."""

log = logging.getLogger("torra")


class ClockWatch:
    """The last looks at a desk's clocks, by caller."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[datetime, float]] = {}
        self._jumped = -math.inf

    def jump(self, who: str, clock: Clock) -> timedelta:
        """Return the real time by which the clock has jumped since `who` asked last.

        Zero at the first look, and for a clock that is set by hand.
        """
        now, monotonic, rate = clock.now(), clock.monotonic(), clock.rate
        seen, self._seen[who] = self._seen.get(who), (now, monotonic)
        if seen is None or rate is None:
            return timedelta(0)
        # Desk time divided by its rate is real time, so an accelerated clock does not seem to jump.
        jump = (now - seen[0]) / rate - timedelta(seconds=monotonic - seen[1])
        if abs(jump) > CLOCK_TOLERANCE:
            log.warning("the clock jumped by %s", jump)
            self._jumped = monotonic
        return jump

    def settling(self, clock: Clock) -> bool:
        """Return whether the clock jumped not long ago."""
        return clock.monotonic() - self._jumped < SETTLING_SECONDS

    def forget(self) -> None:
        """Begin anew: the desk has another clock."""
        self._seen.clear()

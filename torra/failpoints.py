"""Named points at which a test can end the process, as a power cut would.

`failpoint` does nothing unless the environment variable TORRA_CRASH_AT names its point; then the
process kills itself at once, with nothing flushed and nothing tidied. `POINT:3` names the third
time that the process comes there. POINTS lists every name, so that a test can go through all of
them and find a misspelt one.
"""

from __future__ import annotations

import os
import signal
from typing import Final

VARIABLE: Final = "TORRA_CRASH_AT"

IN_A_TICK: Final = (
    "claimed",
    "moved",
    "scored",
    "reserved",
    "asked",
    "settled",
    "debated",
    "saved",
    "recorded",
    "finished",
    "published",
)
"""The points from a claim to what goes out on paper, in that order.

Ticks that pay pass `reserved`, `asked` and `settled`; `moved` lies inside the transaction in which
the paper bridge reports; `saved`, `recorded` and `finished` inside the one that stores the tick;
`published` inside the one that marks a signal.
"""

ON_THE_WAY: Final = (
    "enqueued",
    "committed",
    "tmp_half",
    "tmp_done",
    "renamed",
    "marked",
    "ack_read",
    "ack_committed",
    "archived",
)
"""Between a verdict and its acknowledgement, in that order."""

POINTS: Final = IN_A_TICK + ON_THE_WAY

_passed: dict[str, int] = {}


def failpoint(point: str) -> None:
    """Pass a point, unless the environment says that the process ends here."""
    named = os.environ.get(VARIABLE)
    if named and named.partition(":")[0] == point:
        _passed[point] = _passed.get(point, 0) + 1
        if _passed[point] == int(named.partition(":")[2] or 1):
            strike()


def strike() -> None:
    """End the process at once."""
    # SIGKILL runs no finally, no atexit and no flush: nothing that a power cut would not run.
    os.kill(os.getpid(), signal.SIGKILL)

"""Named points at which a test can end the process, as a power cut would.

`reach` does nothing unless the environment variable TORRA_CRASH_AT names its point; then the
process kills itself at once, with nothing flushed and nothing tidied. Every name is in POINTS, so
that a test can go through all of them and a misspelt one is found.
"""

from __future__ import annotations

import os
import signal
from typing import Final

VARIABLE: Final = "TORRA_CRASH_AT"

POINTS: Final = (
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


def reach(point: str) -> None:
    """Pass a point, unless the environment says that the process ends here."""
    if os.environ.get(VARIABLE) == point:
        os.kill(os.getpid(), signal.SIGKILL)

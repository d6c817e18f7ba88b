"""Who holds a claim: a process by its number, and whether it is still there.

A number alone is given again, and means another process in another container. So an owner is named
with its machine, its name space and, where the system tells it, when it started. Whether one of
another machine lives is not known here: its claim ends with its time.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
ENDED: Final = "ended"

STARTED_AT: Final = 19
"""Place of the start time in /proc/<pid>/stat, counted behind the name in parentheses."""


def this_process() -> str:
    """Return the name of this process."""
    return f"{_place()}|{os.getpid()}|{_started(os.getpid())}"


def lives(owner: str) -> bool:
    """Return whether an owner's process lives; True where that is not known.

    What stands behind a further bar, such as a thread, is not looked at.
    """
    place, number, started = (*owner.split("|"), "", "", "")[:3]
    if place != _place() or not number.isdigit() or os.name != "posix":
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is there, and somebody else's
    now = _started(int(number))
    return now != ENDED and (not started or not now or started == now)


@lru_cache(maxsize=1)
def _place() -> str:
    space = ""
    with suppress(OSError):
        space = str((PROC / "self/ns/pid").readlink())
    return f"{platform.node()} {space}".strip().replace("|", " ")


def _started(number: int) -> str:
    """Return when a process started, in ticks since the machine did; "" where that is not told."""
    try:
        content = (PROC / str(number) / "stat").read_bytes()
    except OSError:
        return ""
    # Its name stands in parentheses, and may hold anything.
    fields = content.rpartition(b")")[2].split()
    # One that was killed stays in the list until its parent looks after it.
    return ENDED if fields[0] in (b"Z", b"X") else fields[STARTED_AT].decode()

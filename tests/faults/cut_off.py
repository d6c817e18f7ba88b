"""Work that is killed at a step on a file: the first, the second, and so on until it is all done.

A step is an fsync, a rename or a removal; the process dies by SIGKILL right before it. What SQLite
does inside a file is SQLite's own to keep whole.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tests.faults.kills import run


def died_at(nth: int, work: Callable[[], object]) -> bool:
    """Run work in a child that dies at its nth step; return whether it did before it had ended."""

    def doomed() -> None:
        _doom(nth)
        work()

    return run(doomed)


def until_whole(one: Callable[[int], bool], every: int = 1) -> int:
    """Let `one` die at its first step, then `every` steps on, until it ends; return the deaths."""
    return next(turn for turn, nth in enumerate(count(1, every)) if not one(nth))


def _doom(nth: int) -> None:
    left = [nth]

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **named)

        return step

    os.fsync = deadly(os.fsync)
    for name in ("replace", "unlink"):
        setattr(Path, name, deadly(getattr(Path, name)))

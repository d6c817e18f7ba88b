"""The place of a process behind all others at the processor: work beside a desk takes the lowest.

Processes that it starts later have the same place. Where the system refuses, nothing changes.
"""

from __future__ import annotations

import os
import sys
from typing import Final

NICENESS: Final = 19
"""The lowest priority that a process can have (nice(2))."""

IDLE_PRIORITY_CLASS: Final = 0x40
"""The same on Windows (SetPriorityClass); processes that are started inherit it."""


def step_back(niceness: int = NICENESS) -> None:
    """Let every other process go first from now on; `niceness` is that of nice(2)."""
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415

        kernel = ctypes.WinDLL("kernel32")
        kernel.GetCurrentProcess.restype = ctypes.c_void_p
        kernel.SetPriorityClass(ctypes.c_void_p(kernel.GetCurrentProcess()), IDLE_PRIORITY_CLASS)
        return
    os.nice(niceness)

"""One heap for all threads of a desk.

glibc gives each thread that meets another one a heap of its own, up to eight a processor, and keeps
what is free in each of them. A desk's threads wait for most of their life, and what they do they do
one after the other, under Python's lock: heaps of their own save them nothing and hold 6 MB.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

M_ARENA_MAX: Final = -8
"""Number of the option in glibc's malloc.h."""

CHOSEN: Final = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")
"""Variables by which a user chooses himself."""


def limit_malloc_arenas() -> bool:
    """Let threads to come share the heap of the first; return whether they do.

    Nothing changes where the user has chosen himself, or without glibc.
    """
    if sys.platform != "linux" or any(name in os.environ for name in CHOSEN):
        return False
    try:
        return bool(ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1))
    except (OSError, AttributeError):
        return False

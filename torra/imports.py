"""When a process of Torra's looks for garbage: not while it imports, and seldom afterwards.

Modules make objects that stay: a desk's some 200,000, a vendor's SDK's more. The collector would
look through them a few hundred times and find next to nothing, for a seventh of the time that they
take to import. So it rests, and what is there afterwards counts as old: else the next tick would
look through all of it.

A desk that stands does more: what is there is taken out of the collector's sight, and new objects
may be more before it looks. Else it looks through the whole desk in the middle of a close, and all
ticks that are due together stand still for 0.3 s.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG: Final = 20_000
"""New objects after which a process of Torra's own looks for garbage: Python's own is below."""

_SETTLED: Final = threading.Event()


@contextmanager
def importing() -> Iterator[None]:
    """Collect no garbage inside; where a host collects none, or froze some, that stays as it is.

    In a process that has settled, what came in is kept out of sight like all before it.
    """
    if not gc.isenabled():
        yield
        return
    if _SETTLED.is_set():
        gc.collect()  # what is garbage now would be kept out of sight with the rest, for ever
    gc.disable()
    try:
        yield
        if _SETTLED.is_set():
            gc.freeze()
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # back among the oldest, without a look at any
        gc.enable()


def freeze_gc() -> None:
    """Look for garbage after more new objects than usual: in a process of Torra's own alone."""
    young, *older = gc.get_threshold()
    if young:  # at 0 somebody chose that nobody looks
        gc.set_threshold(max(young, YOUNG), *older)


def settle() -> None:
    """Look seldom, and never again at what is there or what `importing` brings: a desk's parts.

    For a process of Torra's own that lives long: a host decides for itself.
    """
    gc.collect()
    gc.freeze()
    _SETTLED.set()
    freeze_gc()

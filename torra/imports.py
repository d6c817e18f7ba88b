"""Much code imported at once, while nobody looks for garbage.

Modules make objects that stay: a desk's some 200,000, a vendor's SDK's more. The collector would
look through them a few hundred times and find next to nothing, for a seventh of the time that they
take to import. So it rests, and what is there afterwards counts as old: else the next tick would
look through all of it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Collect no garbage inside; where a host collects none, or froze some, that stays as it is."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # back among the oldest, without a look at any
        gc.enable()

"""What was read once and never changes: a bounded memory for records that are stored for good.

A key must name everything that its value depends on; then nothing old can be shown. The oldest
entry that was not asked for goes when there is no room. Any thread may ask; two that ask for the
same new entry at once may both make it, which costs time and nothing else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """Values by key, `room` of them at most."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key; `make` makes it where it is not here."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        value = make()
        with self._lock:
            self._entries[key] = value
            while len(self._entries) > self._room:
                self._entries.popitem(last=False)
        return value

    def __len__(self) -> int:
        return len(self._entries)

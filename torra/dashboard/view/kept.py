"""A bounded cache for values that never change, such as stored records.

A key must name everything that its value depends on; then no outdated value can be shown. If there
is no room, the entry that was unused for longest goes. Any thread may use it. Two threads that want
the same new entry at once may both make it, which costs time and nothing else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Same:
    """A part of a key that equals itself alone: for a value that never changes and has no hash."""

    def __init__(self, value: object) -> None:
        self._value = value  # kept with the key, so that no other value gets its id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


class LruCache(Generic[Value]):
    """Values by key, at most `room` of them."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key; `make` makes it if it is not here."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        # outside of the lock: `make` reads the database, and other threads would wait for it
        value = make()
        with self._lock:
            self._entries[key] = value
            while len(self._entries) > self._room:
                self._entries.popitem(last=False)
        return value

    def __len__(self) -> int:
        return len(self._entries)

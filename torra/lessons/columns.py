"""Rows that are added one by one and read all at once: numpy arrays that grow."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FIRST_ROOM: Final = 64
"""Rows for which there is room at first; it doubles."""


class Column:
    """One value, or one row of `width` values, for each row that was added."""

    def __init__(self, dtype: type[Any], width: int | None = None) -> None:
        shape = (FIRST_ROOM,) if width is None else (FIRST_ROOM, width)
        self._room: NDArray[Any] = np.zeros(shape, dtype)
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def append(self, value: Any) -> None:
        """Add a row."""
        if self._rows == len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
        self._room[self._rows] = value
        self._rows += 1

    @property
    def rows(self) -> NDArray[Any]:
        """All rows; a view, which later rows do not reach."""
        return self._room[: self._rows]

"""The bars of one tick: a stretch of a frame, read without being cut out.

Most ticks of a long history need two times, two prices and a count of their 750 bars. `BarView`
returns those at once, and makes the frame itself only when it is asked for. All views of a history
share its arrays. Spreads stand beside the bars, not among their numbers. A view never changes, and
the frame behind it must not change either. torra.feeds.door checks the bars.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torra.clock import EPOCH
from torra.market.spreads import SPREAD


class BarArrays:
    """A whole frame of bars as arrays, made once: columns of floats on an index of UTC times.

    `spreads` are apart from the other columns, None for a frame without.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        """Read a frame; its rows are bars, the oldest first."""
        index = pd.DatetimeIndex(frame.index)
        self.frame = frame
        self.names = [name for name in frame.columns if name != SPREAD]
        self.spreads: NDArray[np.float64] | None = None
        numbers: NDArray[np.float64] = frame.to_numpy(dtype=np.float64)
        if len(self.names) < numbers.shape[1]:
            at = list(frame.columns).index(SPREAD)
            numbers, self.spreads = np.delete(numbers, at, axis=1), numbers[:, at].copy()
        self.numbers: NDArray[np.float64] = np.ascontiguousarray(numbers)
        # pandas indexes come in several units; asi8 means microseconds only after this.
        self.times: NDArray[np.int64] = index.as_unit("us").asi8

    @cached_property
    def moments(self) -> list[datetime]:
        """The open times; a tick alone asks for two of them, a replay for all."""
        return list(pd.DatetimeIndex(self.frame.index).to_pydatetime())

    def moment(self, at: int) -> datetime:
        """Return one open time."""
        return EPOCH + timedelta(microseconds=int(self.times[at]))

    def column(self, name: str) -> NDArray[np.float64]:
        """Return one column; KeyError for a name that is none."""
        try:
            at = self.names.index(name)
        except ValueError:
            raise KeyError(name) from None
        return self.numbers[:, at]


class BarView:
    """The bars from `start` to before `end` of a shelf, oldest first."""

    __slots__ = ("_end", "_frame", "_shelf", "_start")

    def __init__(self, shelf: BarArrays, start: int, end: int) -> None:
        self._shelf = shelf
        self._start = start
        self._end = end
        self._frame: pd.DataFrame | None = None

    @classmethod
    def of(cls, frame: pd.DataFrame) -> BarView:
        """Return the view of a whole frame."""
        view = cls(BarArrays(frame), 0, len(frame))
        view._frame = frame
        return view

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def first(self) -> datetime:
        """When the first bar opened; IndexError without one."""
        if self._start == self._end:
            raise IndexError("there is no bar")
        return self._shelf.moment(self._start)

    @property
    def last(self) -> datetime:
        """When the newest bar opened; IndexError without one."""
        if self._start == self._end:
            raise IndexError("there is no bar")
        return self._shelf.moment(self._end - 1)

    @property
    def frame(self) -> pd.DataFrame:
        """The bars as a frame of their own."""
        if self._frame is None:
            self._frame = self._shelf.frame.iloc[self._start : self._end]
        return self._frame

    @property
    def times(self) -> NDArray[np.int64]:
        """Open times, microseconds since 1970 in UTC."""
        return self._shelf.times[self._start : self._end]

    @property
    def numbers(self) -> NDArray[np.float64]:
        """All columns but the spreads, a row for each bar."""
        return self._shelf.numbers[self._start : self._end]

    @property
    def spreads(self) -> NDArray[np.float64] | None:
        """The spread of each bar in units of the price, NaN where unknown; None where all are."""
        known = self._shelf.spreads
        return None if known is None else known[self._start : self._end]

    def newest_times(self, count: int) -> list[datetime]:
        """Return when the newest `count` bars opened, oldest first."""
        first = max(self._start, self._end - count)
        return [self._shelf.moment(at) for at in range(first, self._end)]

    def newest(self, name: str, count: int) -> list[Any]:
        """Return the newest `count` numbers of a column, fewer where there are fewer bars."""
        # Not before our own start: the arrays go on into bars that this tick must not see.
        start = max(self._start, self._end - count)
        numbers: list[Any] = self._shelf.column(name)[start : self._end].tolist()
        return numbers

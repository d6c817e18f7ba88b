"""The bars of a stream that are known to be stored, so that a tick need not read them again.

A tick brings 750 bars of which one is new. Rows of bars are never changed, and taken away only in
throw-away copies: where as many rows of a range are there as were, they are those that were. So the
newest bars that were read stay in memory, and a count tells whether they are still all.

Only what was committed may stand here: a row that its own transaction has written may be undone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Stream = tuple[str, str]
"""Instance and timeframe."""

MOST: Final = 2_000
"""Bars of a stream that are remembered: 100 kB. A tick brings 750."""


class BarMatrix(NamedTuple):
    """Bars as arrays: open times in microseconds since 1970, and a row of numbers for each."""

    times: NDArray[np.int64]
    numbers: NDArray[np.float64]

    def part(self, start: int, end: int) -> BarMatrix:
        """Return the bars from `start` to before `end`."""
        return BarMatrix(self.times[start:end], self.numbers[start:end])


class KnownBars:
    """What one store knows of its streams; any thread may use it inside a transaction that writes.

    `turn` is the number of that transaction.
    """

    def __init__(self) -> None:
        self._known: dict[Stream, BarMatrix] = {}
        self._written: dict[Stream, int] = {}

    def head(self, stream: Stream, bars: BarMatrix) -> int:
        """Return how many of the first bars are known as they are; whether all are is not said."""
        known = self._known.get(stream)
        if known is None or not len(bars.times):
            return 0
        start = int(np.searchsorted(known.times, bars.times[0]))
        count = min(len(known.times) - start, len(bars.times))
        ours = known.part(start, start + count)
        pairs = zip(ours, bars.part(0, count), strict=True)
        return count if all(np.array_equal(one, other) for one, other in pairs) else 0

    def keep(self, stream: Stream, bars: BarMatrix, turn: int) -> None:
        """Remember bars that were read: all that are stored between the first and the last of them.

        Those of a stream to which this transaction has written are not remembered.
        """
        times = bars.times
        if self._written.get(stream) == turn or not (times[1:] > times[:-1]).all():
            self._known.pop(stream, None)
            return
        newest = bars.part(max(0, len(times) - MOST), len(times))
        self._known[stream] = BarMatrix(newest.times.copy(), newest.numbers.copy())

    def wrote(self, stream: Stream, turn: int) -> None:
        """Note that a transaction has written bars of a stream, and may yet be undone."""
        self._written[stream] = turn

    def forget(self) -> None:
        """Forget all: rows were taken away."""
        self._known.clear()

"""Finds the altered bar of a hosted stream: the ticks that see other bars all see it.

And no tick whose bars are as they were does. Each question hands over its own range, and a bar may
have several revisions, so what is compared are stored rows: bar time and revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from instance_database import Database
from torra.clock import parse
from torra.replay.rerun.causes import Cause, TickDiffers
from torra.replay.rerun.inputs_then import LEFT
from torra.replay.rerun.journal_replay import RECORD, Comparison

Rows = NDArray[np.bool_]
"""Which of the stream's rows."""

NEVER: Final = np.iinfo(np.int64).max
"""Revision of a bar that has no later one."""


class HostedWindows:
    """The ranges of bars that the ticks of a hosted stream saw."""

    def __init__(self, source: Database, instance: str) -> None:
        self._source = source
        self._instance = instance
        self._sound: dict[str, list[Mapping[str, Any]]] = {}
        self._spoilt: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        self._closes: dict[str, dict[tuple[str, int], float]] = {}
        self._causes: dict[str, Cause] | None = None

    def add(self, one: Comparison) -> None:
        """Take in a tick, in the order in which they ran."""
        if one.state in LEFT or RECORD in one.differences:
            return
        timeframe, told = one.then["timeframe"], one.then["hosted"]["handed"]
        close = float(one.then["close"])
        self._closes.setdefault(timeframe, {})[one.then["bar_time"], told["revision"] or 0] = close
        if one.record is not None:
            self._sound.setdefault(timeframe, []).append(told)
        elif "bars" in one.differences:
            self._spoilt.setdefault(timeframe, []).append((one.key, told))

    def named(self, one: TickDiffers) -> TickDiffers:
        """Return a tick that differs with the bar named that was altered, where it is known."""
        if self._causes is None:
            self._causes = {}
            for timeframe, spoilt in self._spoilt.items():
                self._causes |= self._found(timeframe, spoilt)
        found = self._causes.get(one.key)
        return one if found is None else TickDiffers(one.key, one.first, found)

    def _found(
        self, timeframe: str, spoilt: list[tuple[str, Mapping[str, Any]]]
    ) -> dict[str, Cause]:
        seen = _Seen(self._source.bar_revisions(self._instance, timeframe))
        sound = np.zeros(len(seen), dtype=bool)
        for told in self._sound.get(timeframe, ()):
            sound |= seen.by(told)
        # One altered bar is seen by all of a group; what does not fit is of another one.
        groups: list[tuple[Rows, list[str]]] = []
        for key, told in spoilt:
            suspects = seen.by(told) & ~sound
            if groups and (both := groups[-1][0] & suspects).any():
                groups[-1] = (both, [*groups[-1][1], key])
            else:
                groups.append((suspects, [key]))
        return {
            key: cause
            for suspects, keys in groups
            for cause in [self._cause(timeframe, seen, suspects)]
            for key in keys
        }

    def _cause(self, timeframe: str, seen: _Seen, suspects: Rows) -> Cause:
        times = sorted({seen.times[number] for number in np.flatnonzero(suspects).tolist()})
        if not times:
            return Cause("record", "journal: hosted.handed, for other ticks have the same bars")
        for (time, revision), close in self._closes.get(timeframe, {}).items():
            if time not in times:
                continue
            now = self._close(timeframe, time, revision)
            if now is not None and now != close:
                return Cause("bar", f"{timeframe} bar of {time}, close was {close}, is {now}")
        if len(times) == 1:
            return Cause("bar", f"{timeframe} bar of {times[0]}")
        return Cause("bar", f"one of the {timeframe} bars from {times[0]} to {times[-1]}")

    def _close(self, timeframe: str, time: str, revision: int) -> float | None:
        opened = parse(time)
        rows = self._source.bars_then(self._instance, timeframe, opened, opened, revision)
        return float(rows["close"].iloc[0]) if len(rows) else None


class _Seen:
    """The stored rows of a stream, and which of them a range with a revision shows."""

    def __init__(self, rows: list[tuple[str, int]]) -> None:
        self.times = [time for time, _ in rows]
        self._times = np.array(self.times, dtype="U20")
        self._revisions = np.array([revision for _, revision in rows], dtype=np.int64)
        # A row is seen until the next revision of its bar.
        self._until = np.full(len(rows), NEVER, dtype=np.int64)
        again = self._times[1:] == self._times[:-1]
        self._until[:-1][again] = self._revisions[1:][again]

    def __len__(self) -> int:
        return len(self.times)

    def by(self, told: Mapping[str, Any]) -> Rows:
        """Return the rows that a tick saw whose record tells so of its bars."""
        first = np.searchsorted(self._times, told["from"])
        end = np.searchsorted(self._times, told["to"], side="right")
        revision = told["revision"] or 0
        found = np.zeros(len(self), dtype=bool)
        some = slice(first, end)
        found[some] = (self._revisions[some] <= revision) & (revision < self._until[some])
        return found

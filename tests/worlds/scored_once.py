"""Bars that were scored before have their scores still: three fifths of a tick are its scoring.

The newest row of a tick's bars is kept, and the indicators of the tables that were asked for of
late. Both are looked up by every number of the bars.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pandas as pd

import technical_calculator
from torra.market import library, structure, windows
from torra.replay.rerun import edges_then
from torra.tick import bar_window

MOST: Final = 5_000
"""Rows that are kept; then all are forgotten."""

TABLES: Final = 50
"""Tables whose indicators are kept: the one that was not asked for longest goes first."""

SCORER: Final = (technical_calculator, structure, windows, library)
"""Modules that a test may change something of."""


class Kept:
    """What is known, and whether the scorer is still the one that it is known of."""

    def __init__(self) -> None:
        self.rows: dict[bytes, dict[str, float]] = {}
        self.tables: OrderedDict[bytes, technical_calculator.Columns] = OrderedDict()
        self.forgotten = False
        """All bars are scored anew: for the tests of the scorer itself."""
        self._own = {module: dict(vars(module)) for module in SCORER}

    def usable(self) -> bool:
        """Tell whether no test has changed something of the scorer."""
        return not self.forgotten and all(
            vars(module).get(name) is value
            for module, own in self._own.items()
            for name, value in own.items()
        )


@contextmanager
def scored_once() -> Iterator[Kept]:
    """Score the same bars once for all ticks, unless a test has changed something of the scorer."""
    score, indicators = bar_window.last_row, technical_calculator._indicators
    users: tuple[Any, ...] = (bar_window, edges_then)

    def last_row(frame: pd.DataFrame) -> Mapping[str, float]:
        if not kept.usable():
            return score(frame)
        bars = _digest(frame[[*technical_calculator.BAR_COLUMNS]].to_numpy(dtype=float).T)
        if bars not in kept.rows:
            if len(kept.rows) >= MOST:
                kept.rows.clear()
            kept.rows[bars] = dict(score(frame))
        return dict(kept.rows[bars])

    def looked_up(bars: technical_calculator.Columns) -> technical_calculator.Columns:
        if not kept.usable():
            return indicators(bars)
        key = _digest(bars[name] for name in technical_calculator.BAR_COLUMNS)
        if key not in kept.tables:
            kept.tables[key] = indicators(bars)
            if len(kept.tables) > TABLES:
                kept.tables.popitem(last=False)
        kept.tables.move_to_end(key)
        return dict(kept.tables[key])

    for user in users:
        user.last_row = last_row
    technical_calculator._indicators = looked_up
    kept = Kept()
    try:
        yield kept
    finally:
        technical_calculator._indicators = indicators
        for user in users:
            user.last_row = score


def _digest(columns: Iterable[technical_calculator.Array]) -> bytes:
    return hashlib.sha256(b"".join(values.tobytes() for values in columns)).digest()

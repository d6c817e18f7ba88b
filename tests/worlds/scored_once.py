"""Bars that were scored before have their scores still: three fifths of a tick are its scoring."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pandas as pd

import technical_calculator
from torra.replay.rerun import edges_then
from torra.tick import bar_window

MOST: Final = 5_000
"""Rows that are kept; then all are forgotten."""


@contextmanager
def scored_once() -> Iterator[None]:
    """Score the same bars once for all ticks, unless a test has changed something of the scorer."""
    score, known = bar_window.last_row, dict[bytes, dict[str, float]]()
    own = dict(vars(technical_calculator))

    def changed() -> bool:
        now = vars(technical_calculator)
        return any(now.get(name) is not value for name, value in own.items())

    def last_row(frame: pd.DataFrame) -> Mapping[str, float]:
        if changed():
            return score(frame)
        columns = [*technical_calculator.BAR_COLUMNS]
        bars = hashlib.sha256(frame[columns].to_numpy(dtype=float).tobytes()).digest()
        if bars not in known:
            if len(known) >= MOST:
                known.clear()
            known[bars] = score(frame)
        return dict(known[bars])

    users: tuple[Any, ...] = (bar_window, edges_then)
    for user in users:
        user.last_row = last_row
    try:
        yield
    finally:
        for user in users:
            user.last_row = score

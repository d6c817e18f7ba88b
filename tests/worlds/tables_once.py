"""Whole tables of scores: a test that asks for the same bars again and again has them scored once.

Beside `scored_once`, which looks up the indicators alone, and by day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pandas as pd
import pytest

import technical_calculator

MOST: Final = 300
"""Tables that are kept; then all are forgotten."""


class Tables:
    """Scores bars, the same ones once; `known` has what they came to, and may be cleared."""

    def __init__(self, score: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
        self._score = score
        self.known: dict[bytes, pd.DataFrame] = {}

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        key = frame[[*technical_calculator.BAR_COLUMNS]].to_numpy(dtype=float).tobytes()
        if key not in self.known:
            if len(self.known) >= MOST:
                self.known.clear()
            self.known[key] = self._score(frame)
        return self.known[key].set_axis(frame.index).copy()


@contextmanager
def tables_once(*users: Any) -> Iterator[Tables]:
    """Let these modules have the tables of the same bars from one place."""
    found = Tables(technical_calculator.score_frame)
    with pytest.MonkeyPatch.context() as patch:
        for user in users:
            patch.setattr(user, "score_frame", found)
        yield found

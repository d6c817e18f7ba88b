"""Hand-made bars for the experts' evidence: straight legs between turns, one bar a step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from torra.evidence.expert_bars import ExpertBars

REACH = 0.25
"""How far each bar reaches above and below its close."""


def path(*turns: float, leg: int = 12) -> list[float]:
    """Return closes that go straight from turn to turn in so many bars."""
    found = [float(turns[0])]
    for start, end in pairwise(turns):
        found += [start + (end - start) * step / leg for step in range(1, leg + 1)]
    return found


def bars(closes: Sequence[float], *, atr: float = 1.0, volume: float = 100.0) -> ExpertBars:
    """Return bars around closes, behind a flat past so that there are enough of them."""
    past = [closes[0]] * max(0, 210 - len(closes))
    close = np.array([*past, *closes], dtype=float)
    traded = np.full(len(close), volume)
    return ExpertBars(close + REACH, close - REACH, close, traded, atr)


def added(made: ExpertBars, *rows: tuple[float, float, float]) -> ExpertBars:
    """Return the bars and more of (high, low, close)."""
    for high, low, close in rows:
        more = zip(made[:4], (high, low, close, made.volume[-1]), strict=True)
        made = ExpertBars._make([*(np.append(column, value) for column, value in more), made.atr])
    return made


def with_close(made: ExpertBars, close: float) -> ExpertBars:
    """Return the bars and one more."""
    return added(made, (close + REACH, close - REACH, close))

"""Scores how near the price is to its all-time high, in [-1, +1].

The caller carries the high from tick to tick: no window of bars contains it. No finite price makes
it fail. The database stores the high between ticks.
"""

from __future__ import annotations

import math
from typing import Final

import pandas as pd

ATH_SCALE_ATR: Final = 20.0
"""Distance from the high, in ATR(14), at which the score has fallen to 1 - 2 tanh(1) = -0.52."""


def ath_score(close: float, ath: float, atr: float) -> float:
    """Return 1 - 2 tanh((ATH - close) / (20 ATR)), in [-1, +1].

    A close above the carried high counts as at the high. In a flat market (ATR 0) the score is 1
    at the high and -1 below it, the limits of the formula.
    """
    distance = max(0.0, ath - close)
    if atr <= 0.0:
        return 1.0 if distance == 0.0 else -1.0
    return 1.0 - 2.0 * math.tanh(distance / (ATH_SCALE_ATR * atr))


def carry(previous: float | None, bars: pd.DataFrame) -> float:
    """Return the highest price seen: the larger of the carried high and the bars' highs.

    Raises ValueError when there is neither.
    """
    highest = None if bars.empty else float(bars["high"].max())
    seen = [value for value in (previous, highest) if value is not None]
    if not seen:
        raise ValueError("no bar and no carried high: there is no all-time high yet")
    return max(seen)

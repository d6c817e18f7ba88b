"""Scores where the price stands between its record high and its record low, in [-1, +1].

The caller carries both records from tick to tick: no window of bars contains them. No finite price
makes it fail. The database stores the records between ticks.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]

ATH_SCALE_ATR: Final = 20.0
"""Distance from a record, in ATR(14), at which its part of a score has fallen to 1 - tanh(1)."""

RecordScore = Literal["both", "high"]
"""Which records a score is made of (`record_score` of a profile)."""


class Records(NamedTuple):
    """The highest and the lowest price of a stream's longest known history, up to a moment.

    `since` is the open time of the first bar of that history, UTC; None where nobody knows it.
    """

    high: float
    low: float
    since: datetime | None = None


def score(close: float, high: float, low: float, atr: float, form: RecordScore = "both") -> float:
    """Return the score of a close by its records, in [-1, +1]; `form` is a profile's."""
    return ath_score(close, high, atr) if form == "high" else record_score(close, high, low, atr)


def record_score(close: float, high: float, low: float, atr: float) -> float:
    """Return (1 - tanh((high - close) / (20 ATR))) - (1 - tanh((close - low) / (20 ATR))).

    Towards +1 at the record high, towards -1 at the record low, 0 far from both; the same market
    upside down has the same score with the other sign, to the last bit. A close beyond a record
    counts as at it. In a flat market (ATR 0) it is sign(close - low) - sign(high - close).
    """
    above, below = max(0.0, high - close), max(0.0, close - low)
    if atr <= 0.0:
        return float((below > 0.0) - (above > 0.0))
    width = ATH_SCALE_ATR * atr
    return (1.0 - math.tanh(above / width)) - (1.0 - math.tanh(below / width))


def ath_score(close: float, ath: float, atr: float) -> float:
    """Return 1 - 2 tanh((ATH - close) / (20 ATR)), in [-1, +1].

    A close above the carried high counts as at the high. In a flat market (ATR 0) the score is 1
    at the high and -1 below it, the limits of the formula.
    """
    distance = max(0.0, ath - close)
    if atr <= 0.0:
        return 1.0 if distance == 0.0 else -1.0
    return 1.0 - 2.0 * math.tanh(distance / (ATH_SCALE_ATR * atr))


def record_scores(close: Array, high: Array, low: Array, atr: Array) -> dict[RecordScore, Array]:
    """Return the scores of many closes in both forms, each to the last bit that of `score`."""
    above, below = np.maximum(high - close, 0.0), np.maximum(close - low, 0.0)
    moves = atr > 0.0
    width = np.where(moves, ATH_SCALE_ATR * atr, np.inf)
    far, near = _tanh(above / width), _tanh(below / width)
    flat = (below > 0.0).astype(np.float64) - (above > 0.0)
    return {
        "both": np.where(moves, (1.0 - far) - (1.0 - near), flat),
        "high": np.where(moves, 1.0 - 2.0 * far, np.where(above == 0.0, 1.0, -1.0)),
    }


def _tanh(values: Array) -> Array:
    # numpy's may differ from math's in the last bit.
    return np.fromiter(map(math.tanh, values.tolist()), np.float64, len(values))


def carry(previous: Records | None, bars: pd.DataFrame) -> Records:
    """Return the records carried on over more bars (UTC index of open times, high, low).

    The larger of both highs, the smaller of both lows, the earlier of both beginnings. Raises
    ValueError when there is neither a bar nor a carried record.
    """
    if bars.empty:
        if previous is None:
            raise ValueError("no bar and no carried record: there is no record yet")
        return previous
    first = pd.DatetimeIndex(bars.index).min().to_pydatetime()
    records = Records(float(bars["high"].max()), float(bars["low"].min()), first)
    if previous is None:
        return records
    begun = first if previous.since is None else min(previous.since, first)
    return Records(max(previous.high, records.high), min(previous.low, records.low), begun)

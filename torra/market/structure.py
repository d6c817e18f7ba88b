"""Finds where the market turned: confirmed swings, and the levels and states that follow from them.

A swing high is a bar whose high tops the `PIVOT_BARS` bars on each side. It is known when the last
of those bars has closed: it appears at that bar (its confirmation) and never moves afterwards.
Nothing here repaints. Memory is bounded: a swing older than `SWING_MEMORY` bars is forgotten, and
levels come from the `LEVEL_SWINGS` newest highs and lows. So the value at a bar is the same from
the whole history as from the last 750 bars.

Everything is the mirror image of itself: turn the prices upside down, and support becomes
resistance and +1 becomes -1. Where there is no swing the level is NaN and the state 0. Finite
prices never fail; torra.feeds.door checks them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torra.market.windows import extremes

Array = NDArray[np.float64]

PIVOT_BARS: Final = 5
"""Bars on each side that a swing must top; also the delay of its confirmation, in bars."""

SPAN: Final = 2 * PIVOT_BARS + 1
"""Bars of a swing: itself and those that it must top."""

SWING_MEMORY: Final = 500
"""A swing is forgotten when its bar is more than this many bars ago."""

LEVEL_SWINGS: Final = 6
"""Support and resistance are sought among this many newest swing highs and swing lows."""

FIBONACCI: Final = {"fib_382": 0.382, "fib_500": 0.5, "fib_618": 0.618}
"""Retracement levels as shares of the newest leg."""

COLUMNS: Final = (
    "swing_high",
    "swing_low",
    "prev_swing_high",
    "prev_swing_low",
    "support",
    "resistance",
    *FIBONACCI,
    "trend_state",
    "bos",
)


class Swings(NamedTuple):
    """The newest confirmed swings at every bar: row j is the j-th newest, NaN when there is none.

    `level` is its price, `bar` the number of its bar.
    """

    level: Array
    bar: Array


def structure(high: Array, low: Array, close: Array) -> dict[str, Array]:
    """Return one array per name in COLUMNS, as long as the bars.

    `trend_state` is +1 where both of the newest two swing highs and lows rise, -1 where both fall,
    else 0. `bos` (break of structure) is +1 while the close is above the newest swing high, -1
    while it is below the newest swing low, else 0.
    """
    highs, hanging = swings(high), swings(-low)
    lows = Swings(-hanging.level, hanging.bar)
    levels = np.vstack([highs.level, lows.level])
    below = np.where(levels <= close, levels, -np.inf).max(axis=0)
    above = np.where(levels >= close, levels, np.inf).min(axis=0)
    rising = np.sign(highs.level[0] - highs.level[1]) + np.sign(lows.level[0] - lows.level[1])
    broken = (close > highs.level[0]).astype(float) - (close < lows.level[0])
    return {
        "swing_high": highs.level[0],
        "swing_low": lows.level[0],
        "prev_swing_high": highs.level[1],
        "prev_swing_low": lows.level[1],
        "support": np.where(np.isinf(below), np.nan, below),
        "resistance": np.where(np.isinf(above), np.nan, above),
        **_retracements(highs, lows),
        # Only +2 and -2 are a trend: highs and lows must move the same way.
        "trend_state": np.trunc(np.nan_to_num(rising) / 2),
        "bos": broken,
    }


def swings(values: Array) -> Swings:
    """Return the newest confirmed peaks of `values` at every bar."""
    length = len(values)
    if length < SPAN:
        return Swings(*np.full((2, LEVEL_SWINGS, length), np.nan))
    places = peaks(values)
    confirmed, forgotten = places + PIVOT_BARS, places + SWING_MEMORY + 1
    # Which peaks are known changes at these bars only: found there, it stands until the next.
    turns = np.unique(np.concatenate([[0], confirmed, forgotten[forgotten < length]]))
    # Counted by confirmation, not by the bar itself: no row may know a peak before it is one.
    known = np.searchsorted(confirmed, turns, side="right")
    number = known - 1 - np.arange(LEVEL_SWINGS)[:, None]
    # The appended 0 is what the index -1 finds where there is no such peak; `valid` drops it.
    peak = np.append(places, 0)[np.maximum(number, -1)]
    valid = (number >= 0) & (turns - peak <= SWING_MEMORY)
    lasting = np.diff(turns, append=length)
    level, bar = np.where(valid, values[peak], np.nan), np.where(valid, peak, np.nan)
    return Swings(level.repeat(lasting, axis=1), bar.repeat(lasting, axis=1))


def peaks(values: Array) -> NDArray[np.intp]:
    """Return the numbers of the bars that are peaks of `values` and confirmed by the last one."""
    if len(values) < SPAN:
        return np.array([], dtype=np.intp)
    tops = extremes(values, PIVOT_BARS, np.maximum)
    middle = values[PIVOT_BARS:-PIVOT_BARS]
    # Of equal bars the first is the peak: above the bars before it, not below those after.
    is_peak = (middle > tops[: len(middle)]) & (middle >= tops[PIVOT_BARS + 1 :])
    return np.flatnonzero(is_peak) + PIVOT_BARS


def _retracements(highs: Swings, lows: Swings) -> dict[str, Array]:
    """Return the retracements of the leg between the newest swing high and swing low.

    They count back from its end; NaN where one bar is both, or the low is not below the high.
    """
    top, bottom = highs.level[0], lows.level[0]
    upward = highs.bar[0] > lows.bar[0]
    known = (top > bottom) & (upward | (highs.bar[0] < lows.bar[0]))
    leg = np.where(known, top - bottom, np.nan)
    return {
        name: np.where(upward, top - share * leg, bottom + share * leg)
        for name, share in FIBONACCI.items()
    }

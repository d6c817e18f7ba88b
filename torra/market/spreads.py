"""The spread of each bar: which are known, and what a tick sees of them.

Bars may have a column `spread` beside their prices: ask less bid in units of the price, NaN where
nobody knows it. It is no part of a bar: no score is made of it, no hash of bars has it, and a bar
without one is as good as any. `seen` reads a tick's own bars alone, the deciding one last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SPREAD: Final = "spread"
"""Name of the column."""

MEAN_BARS: Final = 20
"""Bars of the mean; without a spread on each of them there is none."""

RANK_BARS: Final = 500
"""Bars among which the last spread is ranked, as volatility_percentile ranks the ATR."""

RANK_LEAST: Final = 100
"""Spreads among them without which there is no rank."""

HOUR_BARS: Final = 750
"""Newest bars among which those of the same hour of the day are sought: as many as a tick holds."""

HOUR_LEAST: Final = 30
"""Spreads of that hour without which there is no rank among them."""

HOUR_US: Final = 3_600_000_000
"""Microseconds of an hour."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HourSpread:
    """The deciding bar's spread among those of bars that opened in the same UTC hour of the day.

    Every market is thin at its own hours. The hour of the week would be finer, but 750 bars of M15
    hold five bars of one or so.

    `percentile` is its rank of 100, `jump` how many times their median it is; None where fewer than
    30 are known, and `jump` where the median is 0. `count` counts those that are known.
    """

    count: int
    percentile: float | None = None
    jump: float | None = None


@dataclass(frozen=True, slots=True)
class SpreadView:
    """The spreads that a tick sees, in units of the price; None for what is not known.

    `last` is the deciding bar's; without it nothing is told. `mean` is that of the last 20 bars,
    `percentile` the rank of the last one among the last 500, of 100: half of what equals it counts
    as below it. `hour` is told only to who asks for it.
    """

    last: float | None = None
    mean: float | None = None
    percentile: float | None = None
    hour: HourSpread | None = None


NO_SPREADS: Final = SpreadView()


def spread_view(spreads: Floats | None, times: NDArray[np.int64] | None = None) -> SpreadView:
    """Return what the spreads of a tick's bars tell, oldest first; None is a feed without any.

    With the open times of the bars, microseconds since 1970, it is told of their hour as well.
    """
    if spreads is None or not len(spreads):
        return NO_SPREADS
    newest: list[float] = spreads[-MEAN_BARS:].tolist()
    last = newest[-1]
    if math.isnan(last):
        return NO_SPREADS
    # A sum with a NaN in it is one: a hole among the twenty leaves no mean.
    mean = math.fsum(newest) / MEAN_BARS if len(newest) == MEAN_BARS else math.nan
    ranked = spreads[-RANK_BARS:]
    known = int((~np.isnan(ranked)).sum())
    rank = _rank(ranked, last, known) if known >= RANK_LEAST else None
    hour = None if times is None else _of_hour(spreads[-HOUR_BARS:], times[-HOUR_BARS:])
    return SpreadView(last, None if math.isnan(mean) else mean, rank, hour)


def _rank(ranked: Floats, last: float, known: int) -> float:
    # Comparisons with a NaN are false: what is not known is neither below nor equal.
    below, equal = int((ranked < last).sum()), int((ranked == last).sum())
    return 100.0 * (below + (equal + 1) / 2) / known


def _of_hour(spreads: Floats, times: NDArray[np.int64]) -> HourSpread:
    hours = times // HOUR_US % 24
    alike = spreads[(hours == hours[-1]) & ~np.isnan(spreads)]
    if len(alike) < HOUR_LEAST:
        return HourSpread(len(alike))
    last, median = float(spreads[-1]), float(np.median(alike))
    jump = last / median if median > 0.0 else None
    return HourSpread(len(alike), _rank(alike, last, len(alike)), jump)


def of_frame(frame: pd.DataFrame) -> tuple[Floats | None, str]:
    """Return the spreads of a frame of bars and "", or NaN for each that is none and why.

    A spread is a finite number of 0 or more. A NaN is a spread that nobody knows, and no fault.
    None for a frame without the column.
    """
    if SPREAD not in frame.columns:
        return None, ""
    column = frame[SPREAD]
    # pandas allows a name twice, and then gives a table where a column is meant.
    if isinstance(column, pd.DataFrame):
        return None, f"column {SPREAD} appears more than once"
    if getattr(column.dtype, "kind", "O") not in "fiu":
        return None, f"column {SPREAD} holds {column.dtype}, not numbers"
    # + 0.0: a copy, and no negative zero.
    values = column.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0
    broken = np.isinf(values) | (values < 0.0)
    if not broken.any():
        return values, ""
    first = int(broken.argmax())
    bar = str(column.index[first].isoformat()).replace("+00:00", "Z")
    fault = f"no spread of {int(broken.sum())} bars, the first {bar}: {float(values[first])!r}"
    values[broken] = np.nan
    return values, fault

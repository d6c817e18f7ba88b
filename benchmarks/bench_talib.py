"""L1's indicators beside TA-Lib's: whether they agree, and what each takes, on the same bars.

The 23 columns that both have. They are compared from the first bar that L1 scores on: before it the
seeds of the recursions differ, as docs/scores.md says. What is a price, or a distance in price,
differs by so many ATR; an oscillator by so much of its range, which is 100; volume by its share.
"""

from __future__ import annotations

import statistics
import time
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import technical_calculator
from benchmarks import guest
from benchmarks.histories import shipped, stirred
from benchmarks.rows import Part, Row, at_most, exactly, ready
from technical_calculator import BAR_COLUMNS, HISTORY, WARM_UP, score_frame
from torra.market import library

Array = NDArray[np.float64]

SIZES: Final = {"window": HISTORY, "sample": 6_000, "long": 100_000}
"""Bars of a live tick, of the shipped sample, of a long replay."""

TRIAL_LONG: Final = 10_000
PASSES: Final = {"window": 15, "sample": 5, "long": 1}
COLUMNS: Final = 23
RANGE: Final = 100.0
OSCILLATORS: Final = ("rsi14", "stoch_k", "stoch_d", "cci20", "adx14", "plus_di", "minus_di")
VOLUMES: Final = ("volume_sma20",)
AGREED: Final = 1e-6
"""How far two right implementations may be apart once they have forgotten their seeds."""


def bars_of(name: str, trial: bool) -> pd.DataFrame:
    """Return the bars of a size."""
    if name == "long":
        return stirred("EURUSD", "H1", TRIAL_LONG if trial else SIZES[name], decimals=5)
    return shipped("EURUSD", "H1").iloc[-SIZES[name] :]


def ours(bars: dict[str, Array]) -> dict[str, Array]:
    """Return L1's columns that TA-Lib has too."""
    means = technical_calculator._of_windows  # noqa: SLF001 (its share is what is asked here)
    return library.columns(bars) | means(bars)


def taken(work: object, passes: int) -> float:
    """Return the median milliseconds of processor time of a pass."""
    assert callable(work)
    spent = []
    for _ in range(passes):
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return 1e3 * statistics.median(spent)


def apart(mine: dict[str, Array], theirs: dict[str, Array]) -> dict[str, float]:
    """Return how far each column is from the other's at most, from bar WARM_UP on.

    Raises ValueError when one has a value where the other has none.
    """
    found = {}
    for name, values in theirs.items():
        one, other = mine[name][WARM_UP - 1 :], values[WARM_UP - 1 :]
        if np.isnan(one).any() or np.isnan(other).any():
            raise ValueError(f"{name} is not there on every bar")
        scale = np.full(len(one), RANGE) if name in OSCILLATORS else mine["atr14"][WARM_UP - 1 :]
        scale = np.maximum(one, 1.0) if name in VOLUMES else scale
        found[name] = float(np.max(np.abs(one - other) / scale))
    return found


def measure(trial: bool) -> dict[str, float]:
    """Return milliseconds by size, and how far the columns are apart."""
    found: dict[str, float] = {}
    worst: list[float] = []
    for name in SIZES:
        frame = bars_of(name, trial)
        bars = {one: frame[one].to_numpy(float) for one in BAR_COLUMNS}
        said, theirs = guest.ask("columns", bars)
        distance = apart(ours(bars), theirs)
        worst.append(max(distance.values()))
        found |= {
            f"columns_{name}": len(distance),
            f"talib_{name}_ms": said["ms"],
            f"ours_{name}_ms": taken(lambda bars=bars: ours(bars), PASSES[name]),
            f"scores_{name}_ms": taken(lambda frame=frame: score_frame(frame), PASSES[name]),
        }
        found[f"ratio_{name}"] = found[f"ours_{name}_ms"] / said["ms"]
    return found | {
        "columns": min(found[f"columns_{name}"] for name in SIZES),
        "apart": max(worst),
    }


def rows() -> tuple[Row, ...]:
    """Return the rows: agreement first, then the times of every size."""
    times = [
        Row(f"{who}_{name}_ms", f"{words}, {size:,} bars, CPU", "{:,.2f} ms")
        for name, size in SIZES.items()
        for who, words in (
            ("talib", f"TA-Lib, {COLUMNS} columns"),
            ("ours", "L1, the same columns"),
            ("scores", "L1, the whole `score_frame`"),
        )
    ]
    ratios = [
        Row(f"ratio_{name}", f"L1's columns, times TA-Lib's time, {size:,} bars", "{:.0f}")
        for name, size in SIZES.items()
    ]
    return (
        Row("columns", "columns that both have", target=exactly(COLUMNS)),
        Row("apart", "farthest apart, as a share of ATR or range", "{:.1e}", at_most(AGREED)),
        *times,
        *ratios,
    )


PART: Final = Part(
    "indicators",
    "The indicators beside TA-Lib",
    ready(measure),
    rows(),
    'Measured by `make bench BENCH="--only indicators"`. RSI, MACD, stochastic, CCI, ADX and both '
    "directional lines, EMA20, SMA 20, 50 and 200, ATR, Bollinger bands, Ichimoku and the mean "
    "volume, compared from bar 210 on, the first that is scored. L1 has RSI, MACD, EMA20, ATR and "
    "Ichimoku's lines of TA-Lib too, by pandas-ta-classic, which takes and gives pandas. Its ADX "
    "and both directional lines are made of TA-Lib's averages of moves that it compares itself: "
    "they are TA-Lib's of prices in whole points, which is what they are compared with "
    "(docs/scores.md). Its means, deviations and ranges are numpy's, because TA-Lib's running sums "
    "depend on where they began. A live tick needs one pass over 750 bars, a replay one over all "
    "of them.",
    guests=True,
)

if __name__ == "__main__":
    print(measure(trial=True))

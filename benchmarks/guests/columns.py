"""The indicators of L1 as TA-Lib computes them: `python -m benchmarks.guests.columns IN OUT`.

IN is an .npz of bars (open, high, low, close, volume), OUT one of the columns under L1's names; the
milliseconds of processor time that a pass took are printed as JSON, the median of several.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any, Final

import numpy as np
import talib
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST: Final = 0.5
"""Seconds that passes are repeated for, of processor time."""

FEWEST: Final = 5

POINTS: Final = 1e8
"""Whole points of a price of 1."""


def columns(high: Array, low: Array, close: Array, volume: Array) -> dict[str, Array]:
    """Return the columns; TA-Lib has no Ichimoku, its lines are made of its highest and lowest."""
    macd, signal, histogram = talib.MACD(close, 12, 26, 9)
    stoch_k, stoch_d = talib.STOCH(high, low, close, 14, slowk_period=3, slowd_period=3)
    upper, middle, lower = talib.BBANDS(close, 20, 2.0, 2.0)
    # In whole points equal moves are equal, as L1 counts them.
    above, below, last = (np.rint(prices * POINTS) for prices in (high, low, close))
    tenkan, kijun, wide = (_middle(high, low, length) for length in (9, 26, 52))
    return {
        "rsi14": talib.RSI(close, 14),
        "macd": macd,
        "macd_signal": signal,
        "macd_hist": histogram,
        "stoch_k": stoch_k,
        "stoch_d": stoch_d,
        "cci20": talib.CCI(high, low, close, 20),
        "adx14": talib.ADX(above, below, last, 14),
        "plus_di": talib.PLUS_DI(above, below, last, 14),
        "minus_di": talib.MINUS_DI(above, below, last, 14),
        "ema20": talib.EMA(close, 20),
        "sma20": talib.SMA(close, 20),
        "sma50": talib.SMA(close, 50),
        "sma200": talib.SMA(close, 200),
        "atr14": talib.ATR(high, low, close, 14),
        "bb_lower": lower,
        "bb_mid": middle,
        "bb_upper": upper,
        "tenkan": tenkan,
        "kijun": kijun,
        "span_a": _ahead((tenkan + kijun) / 2.0),
        "span_b": _ahead(wide),
        "volume_sma20": talib.SMA(volume, 20),
    }


def _middle(high: Array, low: Array, length: int) -> Array:
    middle: Array = (talib.MAX(high, length) + talib.MIN(low, length)) / 2.0
    return middle


def _ahead(values: Array) -> Array:
    """Return a span where it is drawn: 26 bars later."""
    moved = np.full_like(values, np.nan)
    moved[26:] = values[:-26]
    return moved


def timed(*bars: Array) -> float:
    """Return the median milliseconds of a pass, of processor time."""
    columns(*bars)
    taken: list[float] = []
    while len(taken) < FEWEST or sum(taken) < LEAST:
        begin = time.process_time()
        columns(*bars)
        taken.append(time.process_time() - begin)
    return 1e3 * statistics.median(taken)


def main() -> None:
    """Compute, time and tell."""
    given: Any = np.load(sys.argv[1])
    bars = [given[name] for name in ("high", "low", "close", "volume")]
    made: dict[str, Any] = columns(*bars)
    np.savez(sys.argv[2], **made)
    print(json.dumps({"ms": timed(*bars), "version": talib.__version__}))


if __name__ == "__main__":
    main()

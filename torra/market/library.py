"""The columns of L1 that libraries compute: pandas-ta-classic, most of them on TA-Lib below it.

Recursions forget where they began, so TA-Lib's are the same from 750 bars as from all. Its sums of
windows run on from the first bar and are not: those are torra.market.windows' part. Where nothing
moves technical_calculator says what a column is.

Importing this module imports both libraries, 7 MB with them: do it where bars are scored. Without
TA-Lib that import fails. pandas-ta-classic alone would compute other numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd
import talib
from numpy.typing import NDArray

from torra.market.windows import before

with warnings.catch_warnings():
    # It stamps its presets with the date when it is imported, in a way pandas 3 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    import pandas_ta_classic as ta

Array = NDArray[np.float64]

TENKAN, KIJUN, SENKOU = 9, 26, 52
"""Bars of Ichimoku's three middles; the cloud is drawn KIJUN bars ahead."""

MACD: Final = {
    "MACD_12_26_9": "macd",
    "MACDs_12_26_9": "macd_signal",
    "MACDh_12_26_9": "macd_hist",
}
"""The columns of the library's frame, and our names of them."""

DI_BARS: Final = 14
"""Bars of Wilder's averages in DI and ADX."""

MOVE_TIE: Final = 1e-12
"""Two moves that differ by a smaller share of the price are equal: far less than a tick, and far
more than the rounding of a decimal price.
"""


def columns(bars: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns of bars (high, low, close) under our names, NaN before their seeds.

    The library's are found by name, never by place. It returns None for bars that are fewer than a
    length, so there must be technical_calculator.WARM_UP.
    """
    high, low, close = (pd.Series(bars[name]) for name in ("high", "low", "close"))
    series = {
        "rsi14": ta.rsi(close, length=14, talib=True),
        "ema20": ta.ema(close, length=20, talib=True),
        "atr14": ta.atr(high, low, close, length=14, talib=True),
    }
    table = {name: values.to_numpy() for name, values in series.items()}
    macd = ta.macd(close, fast=12, slow=26, signal=9, talib=True)
    table |= {name: macd[column].to_numpy() for column, name in MACD.items()}
    table |= _directional(bars["high"], bars["low"], bars["close"])
    return table | _ichimoku(high, low)


def _directional(high: Array, low: Array, close: Array) -> dict[str, Array]:
    """Return Wilder's DI and ADX, as TA-Lib has them of prices in whole points.

    TA-Lib's own compare moves to the last bit: of two equal ones, which count as none, the rounding
    of 1.1 or of 11.0 makes one the larger.
    """
    up, down = np.diff(high, prepend=high[0]), -np.diff(low, prepend=low[0])
    tie = MOVE_TIE * close
    plus = np.where(up - down > tie, np.maximum(up, 0.0), 0.0)
    minus = np.where(down - up > tie, np.maximum(down, 0.0), 0.0)
    moves = np.nan_to_num([plus, minus, talib.TRANGE(high, low, close)])
    # TA-Lib's sums begin with one bar less than Wilder's.
    moves[:, :DI_BARS] *= 1.0 - 1.0 / DI_BARS
    plus, minus, whole = map(_wilder, moves)
    dx = 100.0 * _share(np.abs(plus - minus), plus + minus)
    dx[DI_BARS - 1] = 0.0  # an ATR leaves its first value out
    return {
        "plus_di": 100.0 * _share(plus, whole),
        "minus_di": 100.0 * _share(minus, whole),
        "adx14": _wilder(dx),
    }


def _wilder(values: Array) -> Array:
    """Return Wilder's average: the ATR of bars that reach from 0 to each value."""
    floor = np.zeros_like(values)
    averages: Array = talib.ATR(values, floor, floor, DI_BARS)
    return averages


def _share(part: Array, whole: Array) -> Array:
    """Return part / whole; 0 where the whole is 0."""
    return part / np.where(whole == 0.0, np.inf, whole)


def _ichimoku(high: pd.Series[float], low: pd.Series[float]) -> dict[str, Array]:
    """Return the lines and the cloud of Ichimoku, middles of the library each.

    Its `ichimoku` makes two frames and the rows of a future cloud too, for twenty times the time.
    """
    tenkan, kijun, senkou = (
        ta.midprice(high, low, length=bars, talib=True).to_numpy()
        for bars in (TENKAN, KIJUN, SENKOU)
    )
    return {
        "tenkan": tenkan,
        "kijun": kijun,
        "span_a": before((tenkan + kijun) / 2.0, KIJUN),
        "span_b": before(senkou, KIJUN),
    }

"""The columns of L1 that TA-Lib computes.

Recursions forget where they began, so TA-Lib's are the same from 750 bars as from all. Its sums of
windows run on from the first bar and are not: those are torra.market.windows' part. Where nothing
moves technical_calculator says what a column is.

Arrays go in and come out: a pandas index of each column would take thirty times as long as what
is computed. pandas-ta-classic, which is told by name in every record, asks TA-Lib for the same.

Importing this module imports TA-Lib, 5 MB with it: do it where bars are scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import talib
from numpy.typing import NDArray

from torra.market.windows import before

Array = NDArray[np.float64]

TENKAN, KIJUN, SENKOU = 9, 26, 52
"""Bars of Ichimoku's three middles; the cloud is drawn KIJUN bars ahead."""

LENGTH: Final = 14
"""Bars of Wilder's averages: RSI, ATR, ADX and both DI."""


def columns(bars: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns of bars (high, low, close) under our names, NaN before their seeds."""
    high, low, close = bars["high"], bars["low"], bars["close"]
    macd, signal, apart = talib.MACD(close, fastperiod=12, slowperiod=26, signalperiod=9)
    found: dict[str, Array] = {
        "rsi14": talib.RSI(close, LENGTH),
        "ema20": talib.EMA(close, 20),
        "atr14": talib.ATR(high, low, close, LENGTH),
        "macd": macd,
        "macd_signal": signal,
        "macd_hist": apart,
        "adx14": talib.ADX(high, low, close, LENGTH),
        "plus_di": talib.PLUS_DI(high, low, close, LENGTH),
        "minus_di": talib.MINUS_DI(high, low, close, LENGTH),
    }
    return found | _ichimoku(high, low)


def _ichimoku(high: Array, low: Array) -> dict[str, Array]:
    """Return the lines and the cloud of Ichimoku."""
    tenkan, kijun, senkou = (talib.MIDPRICE(high, low, bars) for bars in (TENKAN, KIJUN, SENKOU))
    return {
        "tenkan": tenkan,
        "kijun": kijun,
        "span_a": before((tenkan + kijun) / 2.0, KIJUN),
        "span_b": before(senkou, KIJUN),
    }

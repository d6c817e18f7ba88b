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
import talib  # noqa: F401 - pandas-ta-classic does without it, and says nothing
from numpy.typing import NDArray

from torra.market.windows import before

with warnings.catch_warnings():
    # It stamps its presets with the date when it is imported, in a way pandas 3 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    import pandas_ta_classic as ta

Array = NDArray[np.float64]

TENKAN, KIJUN, SENKOU = 9, 26, 52
"""Bars of Ichimoku's three middles; the cloud is drawn KIJUN bars ahead."""

FRAMES: Final = {
    "MACD_12_26_9": "macd",
    "MACDs_12_26_9": "macd_signal",
    "MACDh_12_26_9": "macd_hist",
    "ADX_14": "adx14",
    "DMP_14": "plus_di",
    "DMN_14": "minus_di",
}
"""The columns of the library's frames, and our names of them."""


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
    found = {name: values.to_numpy() for name, values in series.items()}
    found |= _named(ta.macd(close, fast=12, slow=26, signal=9, talib=True))
    found |= _named(ta.adx(high, low, close, length=14, talib=True))
    return found | _ichimoku(high, low)


def _named(frame: pd.DataFrame) -> dict[str, Array]:
    values = frame.to_numpy().T
    return {FRAMES[str(name)]: column for name, column in zip(frame, values, strict=True)}


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

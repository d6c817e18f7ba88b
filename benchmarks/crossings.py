"""The task that engines are compared on: crossing averages with a stop and a target.

EMA 12 crosses EMA 50 at a close: long above, short below, a reversal where the other side is held.
The order fills at the next open; the stop lies 0.4 % from the close of the signal, the target twice
as far, both in whole ticks as torra.verdict.order_levels makes them. Stop before target within a
bar, and a gap through either fills at the open. `plain` is the task as a loop and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from agents.contracts import VECTORS
from technical_calculator import WARM_UP, score_frame
from torra.config import Profile
from torra.verdict.order_levels import STOP_ATR, Levels, levels

FAST, SLOW = 12, 50
STOP: Final = 0.004
DECIMALS: Final = 8

Arrays = dict[str, NDArray[Any]]


class Trade(NamedTuple):
    """Bars of entry and exit, side (1 or -1), both prices."""

    opened: int
    closed: int
    side: int
    entry: float
    exit: float


def ranges(bars: pd.DataFrame) -> NDArray[np.float64]:
    """Return what stands for ATR, so that the stop lies STOP of the close away."""
    return bars["close"].to_numpy() * STOP / STOP_ATR


def signals(bars: pd.DataFrame) -> NDArray[np.int8]:
    """Return 1, -1 or 0 for every close; none in the warm-up, nor at the last bar."""
    fast, slow = (bars["close"].ewm(span=n, adjust=False).mean().to_numpy() for n in (FAST, SLOW))
    above = np.sign(fast - slow)
    found = np.zeros(len(bars), dtype=np.int8)
    found[1:] = np.where(above[1:] != above[:-1], above[1:], 0)
    found[: WARM_UP - 1] = 0
    found[-1] = 0
    return found


def given(bars: pd.DataFrame, profile: Profile, symbol: str) -> Arrays:
    """Return the task as every engine gets it: bars, signals, and the levels of each signal.

    A signal after which the next bar opens beyond the stop or the target is left out: no two
    engines agree on what that order is, and Torra does not fill it.
    """
    sign, spec, size = signals(bars), profile.symbol(symbol), ranges(bars)
    close, opens = bars["close"].to_numpy(), bars["open"].to_numpy()
    stop, target = np.full(len(bars), np.nan), np.full(len(bars), np.nan)
    for at in np.flatnonzero(sign):
        side = "BUY" if sign[at] > 0 else "SELL"
        found = levels(side, float(close[at]), float(size[at]), spec)
        assert isinstance(found, Levels), found
        stop[at], target[at] = found.stop, found.target
        if not min(stop[at], target[at]) < opens[at + 1] < max(stop[at], target[at]):
            sign[at] = 0
    seconds = pd.DatetimeIndex(bars.index).as_unit("s").asi8
    prices = {name: bars[name].to_numpy() for name in ("open", "high", "low", "close")}
    return {**prices, "time": seconds, "signal": sign, "stop": stop, "target": target}


def scored(bars: pd.DataFrame, task: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """Return the score_frame of the bars with the signals in the place of the four scores."""
    sign = task["signal"].astype(float)
    return score_frame(bars).assign(atr14=ranges(bars), **dict.fromkeys(VECTORS, sign))


def plain(task: Mapping[str, NDArray[Any]]) -> list[Trade]:
    """Return the task's trades."""
    opens, highs, lows = (task[name].tolist() for name in ("open", "high", "low"))
    signal, stops, targets = (task[name].tolist() for name in ("signal", "stop", "target"))
    trades: list[Trade] = []
    side, since, entry, stop, target = 0, 0, 0.0, 0.0, 0.0
    for bar in range(1, len(opens)):
        price, sign = opens[bar], signal[bar - 1]
        beyond = (price - stop) * side <= 0 or (price - target) * side >= 0
        if side and (beyond or sign == -side):
            trades.append(Trade(since, bar, side, entry, price))
            side = 0
        if sign and not side:
            side, since, entry, stop, target = sign, bar, price, stops[bar - 1], targets[bar - 1]
        if side:
            worst, best = (lows[bar], highs[bar]) if side > 0 else (highs[bar], lows[bar])
            if (worst - stop) * side <= 0 or (best - target) * side >= 0:
                left = stop if (worst - stop) * side <= 0 else target
                trades.append(Trade(since, bar, side, entry, left))
                side = 0
    return trades


def stops_first(task: Mapping[str, NDArray[Any]]) -> list[Trade]:
    """Return the task's trades as vectorbt understands it.

    The bar of an entry can not end a trade; in any later one stop and target come before an order
    that is due at its open, and the order is then dropped.
    """
    opens, highs, lows = (task[name].tolist() for name in ("open", "high", "low"))
    signal, stops, targets = (task[name].tolist() for name in ("signal", "stop", "target"))
    trades: list[Trade] = []
    side, since, entry, stop, target = 0, 0, 0.0, 0.0, 0.0
    for bar in range(1, len(opens)):
        price, sign = opens[bar], signal[bar - 1]
        if side and bar > since:
            worst, best = (lows[bar], highs[bar]) if side > 0 else (highs[bar], lows[bar])
            left = None
            if (worst - stop) * side <= 0:
                left = price if (price - stop) * side <= 0 else stop
            elif (best - target) * side >= 0:
                left = price if (price - target) * side >= 0 else target
            if left is not None:
                trades.append(Trade(since, bar, side, entry, left))
                side = 0
                continue
        if sign and sign != side:
            if side:
                trades.append(Trade(since, bar, side, entry, price))
            side, since, entry, stop, target = sign, bar, price, stops[bar - 1], targets[bar - 1]
    return trades

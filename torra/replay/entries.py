"""Compares an arm's trades with random entries: of any time, and of the days after each trade."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray

from torra.config import Profile
from torra.evaluation.observations import ArmObservation, TradeObservation
from torra.evaluation.random_entries import (
    DRAWS,
    RandomEntries,
    VersusRandom,
    delayed_entries,
    drawn,
    outcomes,
    pool_entries,
)
from torra.replay.l1.trades import END

Ranges = NDArray[np.float64]
"""ATR of each bar of a timeframe, NaN where no entry begins."""


def beside_random(
    arm: ArmObservation,
    frames: Mapping[str, Mapping[str, pd.DataFrame]],
    profile: Profile,
    rng: Generator,
    draws: int = DRAWS,
) -> VersusRandom:
    """Return an arm beside random entries at its own ticks; see `entry_comparison`."""
    ranges = partial(_atr, arm, frames)
    return entry_comparison(arm.name, arm.trades, frames, ranges, profile, rng, draws)


def entry_comparison(
    name: str,
    trades: Sequence[TradeObservation],
    frames: Mapping[str, Mapping[str, pd.DataFrame]],
    ranges: Callable[[str, str], Ranges],
    profile: Profile,
    rng: Generator,
    draws: int = DRAWS,
) -> VersusRandom:
    """Return trades beside random entries: as many on each stream and side.

    `frames` are the bars by symbol and timeframe, `ranges` returns their ATR. A stream without bars
    is left out of both, and so are trades that the end of the history closed.
    """
    # Random entries run to an exit of their own; a trade that the end of the bars cut off had none.
    ended = [trade for trade in trades if trade.reason != END]
    # A stream of its own: what is drawn soon after trades moves no other draw.
    (later,) = rng.spawn(1)
    parts, delayed, results = list[RandomEntries](), list[RandomEntries](), 0.0
    for symbol, timeframe in dict.fromkeys((one.symbol, one.timeframe) for one in ended):
        frame = frames.get(symbol, {}).get(timeframe)
        if frame is None:
            continue
        mine = [one for one in ended if (one.symbol, one.timeframe) == (symbol, timeframe)]
        spec, farthest = profile.symbol(symbol), profile.risk.price_collar_atr
        found = outcomes(frame, ranges(symbol, timeframe), spec, farthest=farthest)
        buys = sum(trade.side == "BUY" for trade in mine)
        some = drawn(found, buys, len(mine) - buys, rng, draws)
        # No entry of this kind could be drawn: the stream is left out of both sides.
        if not len(some.expectancies):
            continue
        parts.append(some)
        delayed.append(delayed_entries(found, pd.DatetimeIndex(frame.index), mine, later, draws))
        results += sum(trade.r for trade in mine)
    whole = pool_entries(parts, len(trades) - len(ended))
    expectancy = results / whole.count if whole.count else None
    return VersusRandom(name, expectancy, whole, pool_entries(delayed))


def _atr(
    arm: ArmObservation,
    frames: Mapping[str, Mapping[str, pd.DataFrame]],
    symbol: str,
    timeframe: str,
) -> Ranges:
    """Return ATR at the bars that the arm saw, NaN at the others."""
    seen = {
        tick.bar_time: tick.atr
        for tick in arm.ticks
        if (tick.symbol, tick.timeframe) == (symbol, timeframe)
    }
    times = frames[symbol][timeframe].index
    return np.array([seen.get(time.to_pydatetime(), np.nan) for time in times])

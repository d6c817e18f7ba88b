"""Compares an arm's trades with random entries: of any time, and of the days after each trade."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.random import Generator

from torra.config import Profile
from torra.evaluation.observations import ArmSeen
from torra.evaluation.random_entries import (
    DRAWS,
    Beside,
    RandomEntries,
    delayed_entries,
    drawn,
    outcomes,
    pool_entries,
)
from torra.replay.l1.trades import END


def beside_random(
    arm: ArmSeen,
    frames: Mapping[str, Mapping[str, pd.DataFrame]],
    profile: Profile,
    rng: Generator,
    draws: int = DRAWS,
) -> Beside:
    """Return an arm beside random entries: as many on each stream and side, at its own ticks.

    `frames` are the bars by symbol and timeframe. A stream without bars is left out of both, and so
    are trades that the end of the history closed.
    """
    # Random entries run to an exit of their own; a trade that the end of the bars cut off had none.
    ended = [trade for trade in arm.trades if trade.reason != END]
    left_out = len(arm.trades) - len(ended)
    # A stream of its own: what is drawn soon after trades moves no other draw.
    (later,) = rng.spawn(1)
    parts, delayed, results = list[RandomEntries](), list[RandomEntries](), 0.0
    for symbol, name in dict.fromkeys((trade.symbol, trade.timeframe) for trade in ended):
        frame = frames.get(symbol, {}).get(name)
        if frame is None:
            continue
        mine = [trade for trade in ended if (trade.symbol, trade.timeframe) == (symbol, name)]
        found = outcomes(
            frame,
            _atr(arm, symbol, name, frame),
            profile.symbol(symbol),
            farthest=profile.risk.price_collar_atr,
        )
        buys = sum(trade.side == "BUY" for trade in mine)
        some = drawn(found, buys, len(mine) - buys, rng, draws)
        # No entry of this kind could be drawn: the stream is left out of both sides.
        if not len(some.expectancies):
            continue
        parts.append(some)
        delayed.append(delayed_entries(found, pd.DatetimeIndex(frame.index), mine, later, draws))
        results += sum(trade.r for trade in mine)
    whole = pool_entries(parts, left_out)
    expectancy = results / whole.count if whole.count else None
    return Beside(arm.name, expectancy, whole, pool_entries(delayed))


def _atr(
    arm: ArmSeen, symbol: str, timeframe: str, frame: pd.DataFrame
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return ATR at the bars that the arm saw, NaN at the others."""
    seen = {
        tick.bar_time: tick.atr
        for tick in arm.ticks
        if (tick.symbol, tick.timeframe) == (symbol, timeframe)
    }
    return np.array([seen.get(time.to_pydatetime(), np.nan) for time in frame.index])

"""Forward outcomes of ticks: the move after each one over fixed horizons, in units of ATR.

A tick that is decided at its close can be acted on at the open of the next bar. So an outcome runs
from that open to the close h bars on. Bars are bid: a long pays the spread when it enters, a short
when it leaves, and each pays the commission of a round trip. Nothing else here looks ahead, and no
future is made up: if the bars end before the horizon does, there is no outcome.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from torra.evaluation.intervals import Floats
from torra.evaluation.observations import TickObservation
from torra.evaluation.opinion_table import Whole

HORIZONS: Final = (1, 4, 16)
"""Horizons of outcomes, in bars."""


class RoundTripCosts(NamedTuple):
    """The costs of a round trip in units of the price: the spread, and the commission."""

    spread: float
    commission: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes of ticks in their order, (ticks, horizons), in ATR of the tick; NaN where unknown.

    `forward` is the move of the price alone; `long` and `short` are net of costs.
    """

    horizons: tuple[int, ...]
    forward: Floats
    long: Floats
    short: Floats

    def place(self, horizon: int) -> int:
        """Return the column of a horizon; raises ValueError for one that was not computed."""
        return self.horizons.index(horizon)

    def net(self, tick: int, horizon: int, side: str) -> float | None:
        """Return the net outcome of a BUY or SELL on a tick, None where the future is missing."""
        table = self.long if side == "BUY" else self.short
        value = float(table[tick, self.place(horizon)])
        return None if np.isnan(value) else value


def outcomes(
    ticks: Sequence[TickObservation],
    frames: Mapping[tuple[str, str], pd.DataFrame],
    costs: Mapping[str, RoundTripCosts],
    horizons: Sequence[int] = HORIZONS,
) -> Outcomes:
    """Return the forward outcomes of ticks.

    `frames` holds closed bars by (symbol, timeframe): columns open and close on an ascending UTC
    index of open times; a stream without a frame has no outcomes. `costs` is by symbol; KeyError
    for a symbol without, because no market is free.
    """
    forward = np.full((len(ticks), len(horizons)), np.nan)
    paid = np.full((len(ticks), 1), np.nan)
    for stream in dict.fromkeys((tick.symbol, tick.timeframe) for tick in ticks):
        frame = frames.get(stream)
        if frame is None or not len(frame):
            continue
        rows = [n for n, tick in enumerate(ticks) if (tick.symbol, tick.timeframe) == stream]
        own = [ticks[row] for row in rows]
        forward[rows], scale = _stream(own, frame, horizons)
        paid[rows, 0] = sum(costs[stream[0]]) * scale
    return Outcomes(tuple(horizons), forward, forward - paid, -forward - paid)


def _stream(
    ticks: Sequence[TickObservation], frame: pd.DataFrame, horizons: Sequence[int]
) -> tuple[Floats, Floats]:
    """Return the moves of one stream's ticks by horizon, and 1 / ATR of each tick."""
    atr = np.array([tick.atr for tick in ticks])
    with np.errstate(divide="ignore", invalid="ignore"):
        # without an ATR there is no unit to measure in
        scale = np.where(atr > 0.0, 1.0 / atr, np.nan)
    entry = entry_bars(ticks, frame)
    opens = _at(frame["open"], entry)
    # - 1: the bar of the entry is the first of the horizon
    moves = [_at(frame["close"], entry + horizon - 1) - opens for horizon in horizons]
    return np.stack(moves, axis=1) * scale[:, None], scale


def entry_bars(ticks: Sequence[TickObservation], frame: pd.DataFrame) -> Whole:
    """Return the number of the first bar that opens at each tick's close or, after a gap, later."""
    # one unit for both: pandas may keep them in different ones, and only the numbers are compared
    closes = pd.DatetimeIndex([tick.close_time for tick in ticks]).as_unit("us").asi8
    bars = pd.DatetimeIndex(frame.index).as_unit("us").asi8
    return np.searchsorted(bars, closes, side="left").astype(np.int64)


def _at(column: pd.Series[float], bars: Whole) -> Floats:
    """Return the values at the bars of these numbers, NaN beyond the end."""
    values = np.append(column.to_numpy(dtype=float), np.nan)
    # every place beyond the end is the NaN that was appended
    return np.asarray(values[np.minimum(bars, len(values) - 1)])

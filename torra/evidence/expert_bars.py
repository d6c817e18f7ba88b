"""The bars that the experts' evidence is read from: the newest 510 of a tick, and their swings.

510 hold every swing that torra.market.structure still remembers, with the bars that confirm it. So
what is read of them is the same from 750 bars as from the whole history. `upside_down` turns prices
round exactly: what is read of a low is what is read of a high of the turned bars.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from technical_calculator import WARM_UP
from torra.market import structure
from torra.market.bar_view import BarView

Array = NDArray[np.float64]

WINDOW: Final = structure.SWING_MEMORY + 2 * structure.PIVOT_BARS
"""Bars that are read."""

PROFILE_BARS: Final = 200
"""Bars whose volume is laid out by price."""

PROFILE_BINS: Final = 50
"""Steps of price in which it is laid out, between the highest and the lowest price of the bars."""

NEARLY_MOST: Final = 1.0 - 1e-9
"""Share of the largest volume from which a step has as much: sums are not exact."""

Numbers = dict[str, float | str | None]
"""Readings by the name of their feature after the block's."""


class ExpertBars(NamedTuple):
    """Bars, oldest first, and the ATR of the last one; NaN or 0 where there is none.

    Volumes count beside each other alone, so `of` gives them as shares of the largest one.
    """

    high: Array
    low: Array
    close: Array
    volume: Array
    atr: float

    @classmethod
    def of(cls, view: BarView | None, row: Mapping[str, float]) -> ExpertBars | None:
        """Return the newest bars of a tick, by its row; None for fewer than a warm-up."""
        if view is None or len(view) < WARM_UP:
            return None
        high, low, close, volume = (
            np.array(view.newest(name, WINDOW)) for name in ("high", "low", "close", "volume")
        )
        return cls(high, low, close, volume / (float(volume.max()) or 1.0), row["atr14"])

    @property
    def last(self) -> int:
        """The number of the deciding bar."""
        return len(self.close) - 1

    def upside_down(self) -> ExpertBars:
        """Return the bars with their prices turned round."""
        return self._replace(high=-self.low, low=-self.high, close=-self.close)

    def peaks(self) -> list[int]:
        """Return the bars of the confirmed swing highs that are remembered, oldest first."""
        peaks = structure.peaks(self.high)
        known: list[int] = peaks[self.last - peaks <= structure.SWING_MEMORY].tolist()
        return known

    def in_atr(self, distance: float) -> float | None:
        """Return a distance in ATR; None in a market that does not move."""
        return distance / self.atr if 0.0 < self.atr < math.inf else None

    def above(self, price: float | None) -> float | None:
        """Return how far the close lies above a price, in ATR; None without a price."""
        return None if price is None else self.in_atr(float(self.close[-1]) - price)


def most_traded(bars: ExpertBars) -> float | None:
    """Return the price at which most was traded (point of control); None without any volume.

    The volume of a bar lies evenly over its range, half a step wider on each side. Of steps with
    equal volume those nearest to the close count, and of two of them the middle.
    """
    high, low, volume = (a[-PROFILE_BARS:] for a in (bars.high, bars.low, bars.volume))
    top, bottom, total = float(high.max()), float(low.min()), float(volume.sum())
    if total <= 0.0:
        return None
    step = (top - bottom) / PROFILE_BINS
    if step <= 0.0:
        return top
    edges = np.linspace(bottom, top, PROFILE_BINS + 1)
    over = np.minimum.outer(edges[1:], high + step / 2) - np.maximum.outer(
        edges[:-1], low - step / 2
    )
    traded = np.maximum(over, 0.0) @ (volume / (high - low + step))
    prices = (edges[1:] + edges[:-1])[traded >= traded.max() * NEARLY_MOST] / 2.0
    away = np.abs(prices - bars.close[-1])
    return float(prices[away <= away.min() + step * (1.0 - NEARLY_MOST)].mean())

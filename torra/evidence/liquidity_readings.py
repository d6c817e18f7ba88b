"""The evidence of the liquidity expert: where orders were taken, where they rest, what was traded.

A level is a confirmed swing high or low. Its stops are taken by the first bar that goes beyond it.

    sweep_high, sweep_low   1 where one of the last 5 bars took a level and closed back inside
    sweep_age               bars since a level was last taken so, on either side
    pool_above_atr          way to the nearest two or more levels above the close that lie within
                            0.1 ATR of each other and were not taken; pool_below_atr of those below
    pool_*_touches          how many levels the pool has; 0 where there is none
    effort                  volume over its mean of 20 / range over its mean of 20
    vwap_atr                (close - mean price of 100 bars by volume) / ATR
    poc_atr                 (close - most traded price of 200 bars) / ATR
    delta20                 (up - down) / (up + down) of the moves of 20 bars
    divergence              +1 where price fell by 0.5 ATR over those bars while delta rose, -1 the
                            mirror image, else 0

Everything is None below 210 bars; a distance is None in a market that does not move, and what needs
volume where there was none. Pure; nothing raises.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from agents.features import ids_of
from torra.evidence.expert_bars import ExpertBars, Numbers, most_traded

SWEEP_BARS: Final = 5
"""Bars in which a sweep is recent."""

POOL_ATR: Final = 0.1
"""How far the levels of a pool may lie apart, in ATR."""

POOL_LEAST: Final = 2
"""Levels of a pool at least."""

MEAN_BARS: Final = 20
"""Bars of the means of volume and range, and of delta."""

VWAP_BARS: Final = 100

DIVERGENCE_ATR: Final = 0.5
"""How far price must have gone against delta, in ATR."""


def read(bars: ExpertBars | None, delta: float | None) -> Numbers:
    """Return the numbers of the block; `delta` is that of the last 20 bars, None where unknown."""
    if bars is None:
        return dict.fromkeys(ids_of("liquidity"))
    turned = bars.upside_down()
    swept_high, swept_low = _sweeps(bars), _sweeps(turned)
    above, touches_above = _pool(bars)
    below, touches_below = _pool(turned)
    return {
        "liquidity.sweep_high": _recent(swept_high),
        "liquidity.sweep_low": _recent(swept_low),
        "liquidity.sweep_age": min(swept_high + swept_low, default=None),
        "liquidity.pool_above_atr": above,
        "liquidity.pool_below_atr": below,
        "liquidity.pool_above_touches": touches_above,
        "liquidity.pool_below_touches": touches_below,
        "liquidity.effort": _effort(bars),
        "liquidity.vwap_atr": _vwap(bars),
        "liquidity.poc_atr": bars.above(most_traded(bars)),
        "liquidity.delta20": delta,
        "liquidity.divergence": _divergence(bars, delta),
    }


def _sweeps(bars: ExpertBars) -> list[float]:
    """Return how many bars ago each swing high was taken by a bar that closed back below it."""
    ages = []
    for peak in bars.peaks():
        level = bars.high[peak]
        after = bars.high[peak + 1 :] > level
        taken = peak + 1 + int(after.argmax())
        if after.any() and bars.close[taken] < level:
            ages.append(float(bars.last - taken))
    return ages


def _recent(ages: list[float]) -> float:
    return float(min(ages, default=SWEEP_BARS) < SWEEP_BARS)


def _pool(bars: ExpertBars) -> tuple[float | None, float | None]:
    """Return how far the nearest pool above the close is, in ATR, and how many levels it has."""
    width = POOL_ATR * bars.atr
    if bars.in_atr(width) is None:
        return None, None
    levels = sorted(
        float(bars.high[peak])
        for peak in bars.peaks()
        # A swing is confirmed by later bars, so there are some.
        if bars.high[peak] >= bars.close[-1]
        and bars.high[peak + 1 :].max() <= bars.high[peak] + width
    )
    for level in levels:
        touches = sum(level <= other <= level + width for other in levels)
        if touches >= POOL_LEAST:
            return bars.in_atr(level - float(bars.close[-1])), float(touches)
    return None, 0.0


def _effort(bars: ExpertBars) -> float | None:
    volume, moved = bars.volume[-MEAN_BARS:], (bars.high - bars.low)[-MEAN_BARS:]
    usual, result = float(volume.mean()), float(moved[-1])
    if usual <= 0.0 or result <= 0.0:
        return None
    return float(volume[-1]) / usual / (result / float(moved.mean()))


def _vwap(bars: ExpertBars) -> float | None:
    volume = bars.volume[-VWAP_BARS:]
    total = float(volume.sum())
    if total <= 0.0:
        return None
    typical = ((bars.high + bars.low + bars.close) / 3.0)[-VWAP_BARS:]
    return bars.above(float(np.dot(typical, volume)) / total)


def _divergence(bars: ExpertBars, delta: float | None) -> float | None:
    moved = bars.in_atr(float(bars.close[-1] - bars.close[-1 - MEAN_BARS]))
    if delta is None or moved is None:
        return None
    if abs(moved) < DIVERGENCE_ATR or moved * delta >= 0.0:
        return 0.0
    return 1.0 if delta > 0.0 else -1.0

"""The evidence of the chart expert: channel, compression, tops, retracements, levels and patterns.

    channel_slope_atr   slope of the straight line through 100 closes, in ATR a bar
    channel_r2          how well it fits (R²)
    channel_place       where the close stands between the parallels that hold all highs and lows:
                        0 at the lower one, 1 at the upper
    compression         range of 20 bars / range of 100
    double_top_gap_atr  how far the two newest swing highs lie apart; double_bottom_gap_atr the lows
    neckline_atr        (close - neckline) / ATR, of the double top or bottom or the head and
                        shoulders that was found last
    fib_nearest         which retracement of the newest leg is nearest to the close
    fib_distance_atr    (close - that retracement) / ATR
    level.1 .. level.8  prices that code computed, the nearest to the close first: the newest swings
                        on each side, both lines of the channel, retracements, neckline, most traded
                        price; of two within 0.1 ATR the nearer one
    pattern.NAME        1 where torra.evidence.chart_patterns finds it, else 0
    pattern_done        1 where a close completed all that were found, else 0

Everything is None below 210 bars, and in a market that does not move all but the patterns. Pure;
nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from agents.contracts import PATTERNS
from agents.features import ids_of
from torra.evidence import chart_patterns
from torra.evidence.chart_patterns import NECKED, ChartPattern
from torra.evidence.expert_bars import ExpertBars, Numbers, most_traded
from torra.market.regime import DISTANCE_DECIMALS
from torra.market.structure import FIBONACCI, LEVEL_SWINGS

CHANNEL_BARS: Final = 100
NARROW_BARS: Final = 20
"""Bars whose range is held against that of the channel's."""

LEVELS: Final = 8
MERGED_ATR: Final = 0.1
"""A level this near to a nearer one adds nothing."""

LEVEL_IDS: Final = [f"geometry.level.{number}" for number in range(1, LEVELS + 1)]


def read(bars: ExpertBars | None, row: Mapping[str, float]) -> Numbers:
    """Return the numbers of the block; `row` has the retracements of the newest leg."""
    if bars is None:
        return dict.fromkeys(sorted(ids_of("geometry"), key=LEVEL_IDS.__contains__))
    close, wide = float(bars.close[-1]), _range(bars, CHANNEL_BARS)
    slope, r2, lower, upper = channel_of(bars)
    patterns = chart_patterns.find(bars)
    neckline = _neckline(patterns)
    retracements = {name: row[name] for name in FIBONACCI if np.isfinite(row[name])}
    nearest = min(retracements, key=lambda name: abs(close - retracements[name]), default=None)
    computed = (lower, upper, *retracements.values(), neckline, most_traded(bars))
    return {
        "geometry.channel_slope_atr": bars.in_atr(slope),
        "geometry.channel_r2": r2,
        "geometry.channel_place": (close - lower) / (upper - lower) if upper > lower else None,
        "geometry.compression": _range(bars, NARROW_BARS) / wide if wide > 0.0 else None,
        "geometry.double_top_gap_atr": _gap(bars),
        "geometry.double_bottom_gap_atr": _gap(bars.upside_down()),
        "geometry.neckline_atr": bars.above(neckline),
        "geometry.fib_nearest": nearest,
        "geometry.fib_distance_atr": bars.above(retracements[nearest] if nearest else None),
        **_nearest_levels(bars, (price for price in computed if price is not None)),
        **{f"geometry.pattern.{name}": float(name in patterns) for name in PATTERNS},
        "geometry.pattern_done": float(
            bool(patterns) and all(pattern.done for pattern in patterns.values())
        ),
    }


def channel_of(bars: ExpertBars) -> tuple[float, float | None, float, float]:
    """Return slope and R² of the line through the newest closes, and its parallels' last prices.

    The lower one comes first. R² is None where the closes are all the same.
    """
    high, low, close = (a[-CHANNEL_BARS:] for a in (bars.high, bars.low, bars.close))
    steps = np.arange(len(close)) - (len(close) - 1) / 2
    away = close - close.mean()
    slope = float(steps @ away / (steps @ steps))
    line = close.mean() + slope * steps
    left = float(((close - line) ** 2).sum())
    # The mean of equal closes may be a hair off them, and the squares of the smallest prices are 0.
    whole = float(away @ away) if close.max() > close.min() else 0.0
    r2 = max(0.0, 1.0 - left / whole) if whole > 0.0 else None
    end = float(line[-1])
    return slope, r2, end - float((line - low).max()), end + float((high - line).max())


def _range(bars: ExpertBars, count: int) -> float:
    return float(bars.high[-count:].max() - bars.low[-count:].min())


def _gap(bars: ExpertBars) -> float | None:
    newest = bars.high[bars.peaks()[-2:]]
    return bars.in_atr(float(np.ptp(newest))) if len(newest) == 2 else None


def _neckline(patterns: Mapping[str, ChartPattern]) -> float | None:
    """Return the neckline of the pattern whose last swing is newest; None where two are."""
    necked = [pattern for name, pattern in patterns.items() if name in NECKED]
    last = max((pattern.last for pattern in necked), default=0)
    newest = {pattern.line for pattern in necked if pattern.last == last}
    return newest.pop() if len(newest) == 1 else None


def _nearest_levels(bars: ExpertBars, computed: Iterable[float]) -> Numbers:
    """Return the levels by name, those of the newest swings among them; None where there is none.

    Of two that are as far, that to which price has moved comes first: so upside down the same ones
    are kept. None of all in a market that does not move: there every price is the same one.
    """
    close, kept = float(bars.close[-1]), list[float]()
    if bars.in_atr(0.0) is None:
        return dict.fromkeys(LEVEL_IDS)
    heading = close - float(bars.close[-1 - NARROW_BARS])

    def order(price: float) -> tuple[float, bool]:
        away = price - close
        return round(abs(away) / bars.atr, DISTANCE_DECIMALS), away * heading < 0.0

    swings = [*bars.high[bars.peaks()[-LEVEL_SWINGS:]]]
    swings += [*bars.low[bars.upside_down().peaks()[-LEVEL_SWINGS:]]]
    for price in sorted(map(float, (*swings, *computed)), key=order):
        if all(abs(price - other) > MERGED_ATR * bars.atr for other in kept):
            kept.append(price)
    return dict(zip(LEVEL_IDS, [*kept, *[None] * LEVELS][:LEVELS], strict=True))

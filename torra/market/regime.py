"""Names the kind of market and what is odd about its newest bar, in words that code chose.

`read` names the regime of one row of `technical_calculator.score_frame`, by the first that holds:

    volatile             ATR/close ranks at VOLATILE_FROM or above in its own past, trend or not
    trend_up, trend_down ADX at TREND_ADX or above, in the direction of the larger DI
    quiet                no trend, and ATR/close ranks at QUIET_UPTO or below
    range                all else

Volatile comes first because levels and stretched oscillators mean little in such a market, trending
or not. A quiet trend is a trend. With the directional movement turned round trend_up becomes
trend_down, and nothing else changes. `triage` flags what deserves a second look; it judges nothing.

Both round their numbers as the bundle shows them, so a reader of the numbers finds the same words.
An unknown number fulfils no condition: with none known the regime is range, and no flag is set.
Pure; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

RegimeName = Literal["trend_up", "trend_down", "range", "volatile", "quiet"]
REGIMES: Final[tuple[RegimeName, ...]] = ("trend_up", "trend_down", "range", "volatile", "quiet")

TREND_ADX: Final = 25.0
"""ADX from which there is a trend (Wilder, New Concepts in Technical Trading Systems: 20 to 25)."""

VOLATILE_FROM: Final = 90.0
"""Percentile of ATR/close among its last 500 bars from which a market is volatile. The risk gate
takes 30 % off above the 95th (agent_config.GateSettings); this is said a little earlier.
"""

QUIET_UPTO: Final = 25.0
"""Percentile up to which a market without a trend is quiet: the lowest quarter."""

PERCENTILE_DECIMALS: Final = 2
DISTANCE_DECIMALS: Final = 4
"""Decimals, wherever it is shown, of a number out of 100, and of one in ATR or as a ratio."""

ADX, PLUS, MINUS = "technical.adx14", "technical.plus_di", "technical.minus_di"
PERCENTILE: Final = "technical.volatility_percentile"
REGIME_READS: Final = (ADX, PLUS, MINUS, PERCENTILE)
"""Features that a regime is read from."""

COLUMNS: Final = {name: name.partition(".")[2] for name in REGIME_READS}
"""Columns of score_frame by the id of their feature."""

RANGE_SPIKE_ATR: Final = 2.5
"""High less low of a bar, in ATR, from which its range is a spike: one or two bars in a hundred."""

VOLUME_SPIKE: Final = 3.0
"""Volume over its average of 20 bars from which it is a spike."""

BROAD_RANGE_ATR: Final = 1.5
BROAD_VOLUME: Final = 2.0
"""Range in ATR and volume over its average from which a bar is broad enough to break out or to
exhaust itself (document 003: 150 % and 200 %). Both spikes at once are one bar in 500.
"""

GAP_ATR: Final = 0.5
"""Open less the close before, in ATR and either way, from which there is a gap."""

STALE_BARS: Final = 1.0
"""Age of the newest bar's close, in bars, from which a newer bar is missing. The gate vetoes later,
at GateSettings.max_bar_age.
"""

TRIAGE_FLAGS: Final = ("range_spike", "volume_spike", "gap", "stale", "breakout", "exhaustion")
"""The flags of `triage`, in their order; the last two are a swarm's."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """The newest bar beside the last confirmed swing high and low, in units of the price.

    NaN is not known.
    """

    high: float
    low: float
    close: float
    swing_high: float
    swing_low: float

    @property
    def broke(self) -> bool:
        """Whether the bar went through a swing: it was there, and closed beyond."""
        up = self.low <= self.swing_high < self.close
        return up or self.high >= self.swing_low > self.close

    @property
    def came_back(self) -> bool:
        """Whether the bar went beyond a swing and closed between the two."""
        went = self.high > self.swing_high or self.low < self.swing_low
        return went and self.swing_low <= self.close <= self.swing_high


@dataclass(frozen=True, slots=True)
class Regime:
    """The kind of market, and the features with their values that it was read from."""

    name: RegimeName
    reads: Mapping[str, float | None]


def read(row: Mapping[str, float]) -> Regime:
    """Return the regime of one row of score_frame."""
    reads = {name: _round(row.get(column), PERCENTILE_DECIMALS) for name, column in COLUMNS.items()}
    return Regime(_name(*reads.values()), MappingProxyType(reads))


def triage(
    *,
    range_atr: float | None,
    volume_ratio: float | None,
    gap_atr: float | None,
    bar_age: float | None,
    beyond: Beyond | None = None,
) -> tuple[str, ...]:
    """Return the flags of the newest bar, in the order of TRIAGE_FLAGS; None is not known.

    `range_atr` and `gap_atr` are in ATR, `volume_ratio` is over the average, `bar_age` in bars.
    A broad bar is a `breakout` where it closed beyond a swing, and an `exhaustion` where it came
    back; without `beyond` neither is sought.
    """
    wide, ratio, gap = (
        _round(value, DISTANCE_DECIMALS) for value in (range_atr, volume_ratio, gap_atr)
    )
    flags = {
        "range_spike": _reaches(wide, RANGE_SPIKE_ATR),
        "volume_spike": _reaches(ratio, VOLUME_SPIKE),
        "gap": _reaches(None if gap is None else abs(gap), GAP_ATR),
        "stale": _reaches(_round(bar_age, PERCENTILE_DECIMALS), STALE_BARS),
    }
    if beyond is not None and _reaches(ratio, BROAD_VOLUME) and _reaches(wide, BROAD_RANGE_ATR):
        flags |= {"breakout": beyond.broke, "exhaustion": beyond.came_back}
    return tuple(name for name in TRIAGE_FLAGS if flags.get(name))


def _name(
    adx: float | None, plus: float | None, minus: float | None, percentile: float | None
) -> RegimeName:
    if _reaches(percentile, VOLATILE_FROM):
        return "volatile"
    # Equal DI have no direction, however large the ADX is.
    if _reaches(adx, TREND_ADX) and plus is not None and minus is not None and plus != minus:
        return "trend_up" if plus > minus else "trend_down"
    return "quiet" if percentile is not None and percentile <= QUIET_UPTO else "range"


def _reaches(value: float | None, limit: float) -> bool:
    return value is not None and value >= limit


def _round(value: float | None, decimals: int) -> float | None:
    """Return a number rounded as it is shown; None for what is not finite."""
    return round(value, decimals) if value is not None and math.isfinite(value) else None

"""How the rules read a market: one row per piece of evidence, and what it is worth in which regime.

A `Reader` turns a few features into a lean in [-1, +1] (bearish to bullish). Its weight depends on
the regime, which is read from ADX: in a trend, what follows the trend counts; in a range, what is
stretched is faded, so that the weight of RSI, of the stochastic and of the Bollinger bands is
negative there. Between the two the weights move in a straight line.

A reader whose features are not there, or are not what they should be, is silent. Nothing here
raises for any features, remembers anything or knows who asks. The weights are a textbook's, set to
be sensible and never fitted to results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from agents.contracts import Feature

RANGE_ADX: Final = 20.0
TREND_ADX: Final = 30.0
"""At or below the first ADX there is a range, at or above the second a trend (Wilder: 20 to 25)."""

FULL_ADX: Final = 50.0
"""ADX at which a direction counts in full."""

ADX: Final = "technical.adx14"
HEADINGS: Final = {"rising": 1.0, "falling": -1.0, "flat": 0.0}


@dataclass(frozen=True, slots=True)
class Regime:
    """How much of a trend there is, 0 (range) to 1, and the ADX that says so."""

    trend: float
    adx: float | None

    @property
    def name(self) -> str:
        """The regime in words."""
        if self.adx is None:
            return "no ADX to tell trend from range"
        if self.trend >= 0.75:
            return f"ADX {self.adx:.1f}, a trend"
        between = "between range and trend" if self.trend > 0.25 else "a range"
        return f"ADX {self.adx:.1f}, {between}"


@dataclass(frozen=True, slots=True)
class Reader:
    """One row: what is read, how it leans, and its weight in a trend and in a range.

    A negative weight fades: the lean counts against itself. `fact` is a format of the values read.
    Where the features are not shown, the score's own `component` stands for them. A `sparse` reader
    (an event) weighs nothing while its lean is 0.
    """

    vector: str
    reads: tuple[str, ...]
    lean: Callable[..., float]
    trend: float
    range: float
    fact: str
    component: str = ""
    sparse: bool = False
    words: bool = False

    def read(self, features: Mapping[str, Feature], regime: Regime) -> Reading | None:
        """Return what this row says, or None when it has nothing to go on."""
        seen = self._seen(features)
        if seen is None:
            return None
        lean = max(-1.0, min(1.0, seen.lean))
        weight = self.range + (self.trend - self.range) * regime.trend
        if weight == 0.0 or (self.sparse and lean == 0.0):
            return None
        fact = seen.fact + (" (faded)" if weight < 0 else "")
        return Reading(seen.reads, seen.values, fact, lean if weight > 0 else -lean, abs(weight))

    def _seen(self, features: Mapping[str, Feature]) -> _Seen | None:
        take = word if self.words else number
        values = tuple(take(features.get(name)) for name in self.reads)
        if None not in values:
            return _Seen(self.reads, values, self.lean(*values), self.fact)
        name = f"component.{self.component}"
        component = number(features.get(name))
        if component is None:
            return None
        return _Seen((name,), (component,), component, self.component + " {0:+.2f}")


class _Seen(NamedTuple):
    """What a row found to read."""

    reads: tuple[str, ...]
    values: tuple[Any, ...]
    lean: float
    fact: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What one row says now: what it read, a lean in [-1, +1] after any fading, and its weight."""

    reads: tuple[str, ...]
    values: tuple[Any, ...]
    fact: str
    lean: float
    weight: float

    @property
    def says(self) -> str:
        """The reading in words."""
        return self.fact.format(*self.values)


def regime(features: Mapping[str, Feature]) -> Regime:
    """Read the regime; half a trend when there is no ADX."""
    adx = number(features.get(ADX))
    if adx is None:
        return Regime(0.5, None)
    return Regime(ramp(adx, RANGE_ADX, TREND_ADX), adx)


def readings(
    features: Mapping[str, Feature], now: Regime, vectors: Iterable[str]
) -> dict[str, list[Reading]]:
    """Return what can be read about each of the vectors; a vector without evidence is left out."""
    found: dict[str, list[Reading]] = {}
    for vector in vectors:
        heard = [reader.read(features, now) for reader in READERS if reader.vector == vector]
        if spoken := [reading for reading in heard if reading is not None]:
            found[vector] = spoken
    return found


def ramp(value: float, start: float, end: float) -> float:
    """Return 0 up to `start`, 1 from `end` on, a straight line between."""
    return max(0.0, min(1.0, (value - start) / (end - start)))


def readable(value: object) -> bool:
    """Tell whether a feature's value is a word or a finite number."""
    if isinstance(value, bool):
        return False
    return isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value))


def number(feature: Feature | None) -> float | None:
    """Return a feature's value as a number; None when it is absent, a word or not finite."""
    value = None if feature is None else feature.value
    return float(value) if readable(value) and not isinstance(value, str | None) else None


def word(feature: Feature | None) -> str | None:
    """Return a feature's value as a word; None when it is absent or a number."""
    value = None if feature is None else feature.value
    return value if isinstance(value, str) else None


# --- leans ----------------------------------------------------------------------------------------


def _squash(amount: float, unit: float) -> float:
    """Return the amount in units, squashed into (-1, +1); 0 where there is no unit."""
    return math.tanh(amount / unit) if unit > 0.0 else 0.0


def _distance(width: float) -> Callable[[float, float, float], float]:
    """Return the lean of one price above another, in `width` ATR."""
    return lambda price, other, atr: _squash(price - other, width * atr)


def _outside(close: float, one: float, other: float, atr: float) -> float:
    above = max(close - max(one, other), 0.0)
    below = max(min(one, other) - close, 0.0)
    return _squash(above - below, 2.0 * atr)


def _nearness(distance: float) -> float:
    return math.exp(-max(distance, 0.0))


def _direction(adx: float, plus: float, minus: float) -> float:
    share = (plus - minus) / (plus + minus) if plus + minus > 0.0 else 0.0
    return share * ramp(adx, 0.0, FULL_ADX)


def _technical(*names: str) -> tuple[str, ...]:
    return tuple(f"technical.{name}" for name in names)


READERS: Final = (
    Reader(
        "price_action",
        _technical("close", "ema20", "atr14"),
        _distance(1.5),
        trend=1.0,
        range=0.3,
        fact="close {0:.6g} against EMA20 {1:.6g}",
        component="pa_trend",
    ),
    Reader(
        "price_action",
        _technical("body_atr"),
        math.tanh,
        trend=0.5,
        range=0.1,
        fact="body {0:+.2f} ATR",
        component="pa_body",
    ),
    Reader(
        "price_action",
        _technical("body_atr", "volume_ratio"),
        lambda body, volume: math.tanh(body) * math.tanh(max(volume - 1.0, 0.0)),
        trend=0.4,
        range=0.2,
        fact="volume {1:.1f} x its average behind a body of {0:+.2f} ATR",
        component="pa_volume",
        sparse=True,
    ),
    Reader(
        "price_action",
        _technical("lower_wick", "upper_wick"),
        lambda lower, upper: lower - upper,
        trend=0.2,
        range=0.7,
        fact="lower wick {0:.0%} of the range, upper {1:.0%}",
        component="pa_wicks",
    ),
    Reader(
        "price_action",
        _technical("engulfing"),
        float,
        trend=0.4,
        range=0.4,
        fact="engulfing bar {0:+.0f}",
        component="pa_pattern",
        sparse=True,
    ),
    Reader(
        "price_action",
        _technical("hammer"),
        float,
        trend=0.2,
        range=0.5,
        fact="hammer {0:+.0f}",
        sparse=True,
    ),
    Reader(
        "price_action",
        ("forecast.drift_pct", "forecast.low_pct", "forecast.high_pct"),
        lambda drift, low, high: _squash(drift, (high - low) / 2.0),
        trend=0.3,
        range=0.1,
        fact="drift {0:+.2f} % in a band of {1:+.2f} to {2:+.2f} %",
    ),
    Reader(
        "key_levels",
        _technical("support_distance_atr"),
        _nearness,
        trend=0.4,
        range=0.9,
        fact="support {0:.1f} ATR below",
    ),
    Reader(
        "key_levels",
        _technical("resistance_distance_atr"),
        lambda distance: -_nearness(distance),
        trend=0.4,
        range=0.9,
        fact="resistance {0:.1f} ATR above",
    ),
    Reader(
        "key_levels",
        _technical("close", "bb_lower", "bb_mid", "bb_upper"),
        lambda close, low, mid, high: _squash(close - mid, (high - low) / 2.0),
        trend=0.5,
        range=-0.8,
        fact="close {0:.6g} in Bollinger {1:.6g} to {3:.6g}",
        component="kl_bollinger",
    ),
    Reader(
        "key_levels",
        _technical("close", "span_a", "span_b", "atr14"),
        _outside,
        trend=0.9,
        range=0.2,
        fact="close {0:.6g} against the cloud {1:.6g}, {2:.6g}",
        component="kl_cloud",
    ),
    Reader(
        "key_levels",
        _technical("tenkan", "kijun", "atr14"),
        _distance(1.0),
        trend=0.4,
        range=0.1,
        fact="tenkan {0:.6g} against kijun {1:.6g}",
        component="kl_lines",
    ),
    Reader(
        "momentum",
        _technical("adx14", "plus_di", "minus_di"),
        _direction,
        trend=1.0,
        range=0.2,
        fact="+DI {1:.1f} against -DI {2:.1f} at ADX {0:.1f}",
    ),
    Reader(
        "momentum",
        _technical("macd_hist", "atr14"),
        lambda histogram, atr: _squash(histogram, 0.25 * atr),
        trend=0.6,
        range=0.2,
        fact="MACD histogram {0:+.4g}",
        component="mo_histogram",
    ),
    Reader(
        "momentum",
        _technical("macd", "atr14"),
        _squash,
        trend=0.7,
        range=0.1,
        fact="MACD {0:+.4g}",
        component="mo_macd",
    ),
    Reader(
        "momentum",
        _technical("rsi14"),
        lambda rsi: _squash(rsi - 50.0, 15.0),
        trend=0.4,
        range=-0.9,
        fact="RSI14 {0:.1f}",
    ),
    Reader(
        "momentum",
        _technical("stoch_k"),
        lambda k: (k - 50.0) / 50.0,
        trend=0.1,
        range=-0.6,
        fact="stochastic {0:.1f}",
    ),
    Reader(
        "momentum",
        _technical("cci20"),
        lambda cci: _squash(cci, 100.0),
        trend=0.3,
        range=-0.3,
        fact="CCI20 {0:+.0f}",
    ),
    Reader(
        "momentum",
        ("memory.trend_direction",),
        lambda heading: HEADINGS.get(heading, 0.0),
        trend=0.3,
        range=0.1,
        fact="the consensus is {0}",
        sparse=True,
        words=True,
    ),
    Reader(
        "structure",
        _technical("trend_state"),
        float,
        trend=0.7,
        range=0.3,
        fact="trend state {0:+.0f}",
    ),
    Reader(
        "structure",
        _technical("bos"),
        float,
        trend=0.9,
        range=0.3,
        fact="break of structure {0:+.0f}",
        sparse=True,
    ),
    Reader(
        "structure",
        _technical("close", "sma50", "atr14"),
        _distance(3.0),
        trend=0.8,
        range=0.3,
        fact="close {0:.6g} against SMA50 {1:.6g}",
        component="st_medium",
    ),
    Reader(
        "structure",
        _technical("sma50", "sma200", "atr14"),
        _distance(5.0),
        trend=0.6,
        range=0.4,
        fact="SMA50 {0:.6g} against SMA200 {1:.6g}",
        component="st_long",
    ),
    Reader(
        "structure",
        ("memory.next_bullish", "memory.next_bearish"),
        lambda bullish, bearish: bullish - bearish,
        trend=0.4,
        range=0.4,
        fact="the next state is bullish with {0:.0%}, bearish with {1:.0%}",
    ),
)
"""Everything that the rules can read, in the order of the vectors."""

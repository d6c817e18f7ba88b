"""The rules' table of readings: one row per piece of evidence, and its weight in each regime.

A `Reader` turns a few features into a lean in [-1, +1] (bearish to bullish). Its weight depends on
the regime, which is read from ADX. In a trend, what follows the trend counts. In a range, what is
stretched is faded: the weight of RSI, of the stochastic and of the Bollinger bands is negative
there. Between the two the weights move in a straight line.

A reader whose features are missing or malformed is silent. Nothing here raises, whatever the
features, and nothing depends on who asks. Only the last reading is remembered, for the next agent
that is shown the same features. `specialists` reads what only some agents are shown. The weights
are a textbook's, set to be sensible and never fitted to results.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from agents.contracts import VECTORS, Feature

RANGE_ADX: Final = 20.0
TREND_ADX: Final = 30.0
"""At or below the first ADX there is a range, at or above the second a trend (Wilder: 20 to 25)."""

FULL_ADX: Final = 50.0
"""ADX at which a direction counts in full."""

ADX: Final = "technical.adx14"
NAMED: Final = "market.regime"
"""The regime by its name (torra.market.regime); it is said, the weights go by ADX."""

NUMBERS: Final = re.compile(r"[ ,]*\{[0-9][^}]*\}")
"""Values in a format, with what parts them.

A component knows that EMA20 was passed, not where.
"""
HEADINGS: Final = {"rising": 1.0, "falling": -1.0, "flat": 0.0}


@dataclass(frozen=True, slots=True)
class TrendStrength:
    """How much of a trend there is, 0 (range) to 1, and the ADX that says so.

    `named` is the market's regime as the evidence names it, "" when it does not.
    """

    trend: float
    adx: float | None
    named: str = ""

    @property
    def name(self) -> str:
        """The regime in words."""
        return f"{self._ramp}; regime {self.named}" if self.named else self._ramp

    @property
    def _ramp(self) -> str:
        if self.adx is None:
            return "no ADX to tell trend from range"
        if self.trend >= 0.75:
            return f"ADX {self.adx:.1f}, a trend"
        between = "between range and trend" if self.trend > 0.25 else "a range"
        return f"ADX {self.adx:.1f}, {between}"


@dataclass(frozen=True, slots=True)
class Reader:
    """One row: what is read, how it leans, and its weight in a trend and in a range.

    A negative weight fades: the lean counts against itself. `fact` is a format of the values read,
    `turn` one of what would end it, with {way} for below (a bullish lean) or above. Where the
    features are not shown, the score's own `component` stands for them. A `sparse` reader (an
    event) weighs nothing while its lean is 0.
    """

    vector: str
    reads: tuple[str, ...]
    lean: Callable[..., float]
    trend: float
    range: float
    fact: str
    turn: str
    component: str = ""
    sparse: bool = False
    words: bool = False

    def read(self, features: Mapping[str, Feature], regime: TrendStrength) -> Reading | None:
        """Return what this row says, or None when it has nothing to go on."""
        weight = self.range + (self.trend - self.range) * regime.trend
        if weight == 0.0:
            return None
        seen = self._seen(features)
        if seen is None:
            return None
        reads, values, lean, fact, turn = seen
        lean = max(-1.0, min(1.0, lean))
        if self.sparse and lean == 0.0:
            return None
        if weight < 0.0:
            # A faded reading ends with the range, not with its own value.
            turn = f"ADX above {TREND_ADX:.0f} with {fact}"
            return Reading(reads, values, f"{fact} (faded)", -lean, -weight, turn)
        return Reading(reads, values, fact, lean, weight, turn)

    def _seen(
        self, features: Mapping[str, Feature]
    ) -> tuple[tuple[str, ...], tuple[Any, ...], float, str, str] | None:
        """Return what is read, the values, the lean, fact and turn; None without evidence."""
        take = word if self.words else number
        values = []
        for name in self.reads:
            value = take(features.get(name))
            if value is None:
                return self._component(features)
            values.append(value)
        return self.reads, tuple(values), self.lean(*values), self.fact, self.turn

    def _component(
        self, features: Mapping[str, Feature]
    ) -> tuple[tuple[str, ...], tuple[Any, ...], float, str, str] | None:
        """Return the same of the score's own component."""
        if not self.component:
            return None
        name = f"component.{self.component}"
        value = number(features.get(name))
        if value is None:
            return None
        fact, turn = self.component + " {0:+.2f}", _without_numbers(self.turn)
        return (name,), (value,), value, fact, turn


class Reading(NamedTuple):
    """What one row says now: what it read, a lean in [-1, +1] after any fading, and its weight."""

    reads: tuple[str, ...]
    values: tuple[Any, ...]
    fact: str
    lean: float
    weight: float
    turn: str

    @property
    def says(self) -> str:
        """The reading in words."""
        return self.fact.format(*self.values)

    @property
    def falsifier(self) -> str:
        """What would end it, in words."""
        turn = self.turn.replace("{way}", "below" if self.lean > 0.0 else "above")
        return turn.format(*self.values)


@lru_cache(maxsize=256)
def _without_numbers(turn: str) -> str:
    return NUMBERS.sub("", turn)


def regime(features: Mapping[str, Feature]) -> TrendStrength:
    """Read the regime; half a trend when there is no ADX."""
    adx, named = number(features.get(ADX)), word(features.get(NAMED)) or ""
    if adx is None:
        return TrendStrength(0.5, None, named)
    return TrendStrength(ramp(adx, RANGE_ADX, TREND_ADX), adx, named)


def readings(
    features: Mapping[str, Feature],
    now: TrendStrength,
    vectors: Iterable[str],
    readers: Iterable[Reader] | None = None,
) -> dict[str, list[Reading]]:
    """Return what can be read about each of the vectors; a vector without evidence is left out."""
    table = READERS if readers is None else tuple(readers)
    found: dict[str, list[Reading]] = {}
    for vector in vectors:
        heard = [
            reading
            for reader in table
            if reader.vector == vector and (reading := reader.read(features, now)) is not None
        ]
        if heard:
            found[vector] = heard
    return found


def common_readings(
    features: Mapping[str, Feature], now: TrendStrength
) -> dict[str, list[Reading]]:
    """Return what `READERS` read of every vector; for the same features it is worked out once.

    Bull and bear are shown the same, one after the other. The caller must not change the result.
    """
    seen = [features.get(name) for name in _COMMON]
    kept, found = _last[0]
    if len(kept) != len(seen) or not all(map(operator.is_, kept, seen)):
        found = readings(features, now, VECTORS)
        # One assignment: another thread sees the old pair or the new one, never half of each.
        _last[0] = seen, found
    return found


def ramp(value: float, start: float, end: float) -> float:
    """Return 0 up to `start`, 1 from `end` on, a straight line between."""
    return max(0.0, min(1.0, (value - start) / (end - start)))


def readable(value: object) -> bool:
    """Return whether a feature's value is a word or a finite number."""
    # True is an int in Python.
    if isinstance(value, bool):
        return False
    return isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value))


def number(feature: Feature | None) -> float | None:
    """Return a feature's value as a number; None when it is absent, a word or not finite."""
    value = None if feature is None else feature.value
    if type(value) is float:
        return value if math.isfinite(value) else None
    if value is None:
        return None
    return float(value) if readable(value) and not isinstance(value, str | None) else None


def word(feature: Feature | None) -> str | None:
    """Return a feature's value as a word; None when it is absent or a number."""
    value = None if feature is None else feature.value
    return value if isinstance(value, str) else None


# --- leans ----------------------------------------------------------------------------------------


def squash(amount: float, unit: float) -> float:
    """Return the amount in units, squashed into (-1, +1); 0 where there is no unit."""
    # A market that does not move has an ATR of 0.
    return math.tanh(amount / unit) if unit > 0.0 else 0.0


def distance(width: float) -> Callable[[float, float, float], float]:
    """Return the lean of one price above another, in `width` ATR."""
    return lambda price, other, atr: squash(price - other, width * atr)


def outside(close: float, one: float, other: float, atr: float) -> float:
    """Return the lean of a close outside two prices, 0 between them."""
    above = max(close - max(one, other), 0.0)
    below = max(min(one, other) - close, 0.0)
    return squash(above - below, 2.0 * atr)


def _nearness(distance: float) -> float:
    return math.exp(-max(distance, 0.0))


def direction(adx: float, plus: float, minus: float) -> float:
    """Return the lean of the directional movement, as far as ADX gives it weight."""
    share = (plus - minus) / (plus + minus) if plus + minus > 0.0 else 0.0
    return share * ramp(adx, 0.0, FULL_ADX)


def technical(*names: str) -> tuple[str, ...]:
    """Return the ids of indicators."""
    return tuple(f"technical.{name}" for name in names)


READERS: Final = (
    Reader(
        "price_action",
        technical("close", "ema20", "atr14"),
        distance(1.5),
        trend=1.0,
        range=0.3,
        fact="close {0:.6g} against EMA20 {1:.6g}",
        turn="close {way} EMA20 {1:.6g}",
        component="pa_trend",
    ),
    Reader(
        "price_action",
        technical("body_atr"),
        math.tanh,
        trend=0.5,
        range=0.1,
        fact="body {0:+.2f} ATR",
        turn="the next close {way} this bar's body",
        component="pa_body",
    ),
    Reader(
        "price_action",
        technical("body_atr", "volume_ratio"),
        lambda body, volume: math.tanh(body) * math.tanh(max(volume - 1.0, 0.0)),
        trend=0.4,
        range=0.2,
        fact="volume {1:.1f} x its average behind a body of {0:+.2f} ATR",
        turn="the next close {way} this bar of much volume",
        component="pa_volume",
        sparse=True,
    ),
    Reader(
        "price_action",
        technical("lower_wick", "upper_wick"),
        lambda lower, upper: lower - upper,
        trend=0.2,
        range=0.7,
        fact="lower wick {0:.0%} of the range, upper {1:.0%}",
        turn="the next close {way} this bar's range",
        component="pa_wicks",
    ),
    Reader(
        "price_action",
        technical("engulfing"),
        float,
        trend=0.4,
        range=0.4,
        fact="engulfing bar {0:+.0f}",
        turn="the next close {way} the engulfing bar",
        component="pa_pattern",
        sparse=True,
    ),
    Reader(
        "price_action",
        technical("hammer"),
        float,
        trend=0.2,
        range=0.5,
        fact="hammer {0:+.0f}",
        turn="the next close {way} the hammer",
        sparse=True,
    ),
    Reader(
        "price_action",
        ("forecast.drift_pct", "forecast.low_pct", "forecast.high_pct"),
        lambda drift, low, high: squash(drift, (high - low) / 2.0),
        trend=0.3,
        range=0.1,
        fact="drift {0:+.2f} % in a band of {1:+.2f} to {2:+.2f} %",
        turn="a drift {way} 0 %",
    ),
    Reader(
        "key_levels",
        technical("support_distance_atr"),
        _nearness,
        trend=0.4,
        range=0.9,
        fact="support {0:.1f} ATR below",
        turn="close {way} the support {0:.1f} ATR away",
    ),
    Reader(
        "key_levels",
        technical("resistance_distance_atr"),
        lambda distance: -_nearness(distance),
        trend=0.4,
        range=0.9,
        fact="resistance {0:.1f} ATR above",
        turn="close {way} the resistance {0:.1f} ATR away",
    ),
    Reader(
        "key_levels",
        technical("close", "bb_lower", "bb_mid", "bb_upper"),
        lambda close, low, mid, high: squash(close - mid, (high - low) / 2.0),
        trend=0.5,
        range=-0.8,
        fact="close {0:.6g} in Bollinger {1:.6g} to {3:.6g}",
        turn="close {way} the Bollinger middle {2:.6g}",
        component="kl_bollinger",
    ),
    Reader(
        "key_levels",
        technical("close", "span_a", "span_b", "atr14"),
        outside,
        trend=0.9,
        range=0.2,
        fact="close {0:.6g} against the cloud {1:.6g}, {2:.6g}",
        turn="close {way} the cloud {1:.6g}, {2:.6g}",
        component="kl_cloud",
    ),
    Reader(
        "key_levels",
        technical("tenkan", "kijun", "atr14"),
        distance(1.0),
        trend=0.4,
        range=0.1,
        fact="tenkan {0:.6g} against kijun {1:.6g}",
        turn="tenkan {way} kijun {1:.6g}",
        component="kl_lines",
    ),
    Reader(
        "momentum",
        technical("adx14", "plus_di", "minus_di"),
        direction,
        trend=1.0,
        range=0.2,
        fact="+DI {1:.1f} against -DI {2:.1f} at ADX {0:.1f}",
        turn="+DI {1:.1f} {way} -DI {2:.1f}",
    ),
    Reader(
        "momentum",
        technical("macd_hist", "atr14"),
        lambda histogram, atr: squash(histogram, 0.25 * atr),
        trend=0.6,
        range=0.2,
        fact="MACD histogram {0:+.4g}",
        turn="MACD histogram {way} 0",
        component="mo_histogram",
    ),
    Reader(
        "momentum",
        technical("macd", "atr14"),
        squash,
        trend=0.7,
        range=0.1,
        fact="MACD {0:+.4g}",
        turn="MACD {way} 0",
        component="mo_macd",
    ),
    Reader(
        "momentum",
        technical("rsi14"),
        lambda rsi: squash(rsi - 50.0, 15.0),
        trend=0.4,
        range=-0.9,
        fact="RSI14 {0:.1f}",
        turn="RSI14 {way} 50",
    ),
    Reader(
        "momentum",
        technical("stoch_k"),
        lambda k: (k - 50.0) / 50.0,
        trend=0.1,
        range=-0.6,
        fact="stochastic {0:.1f}",
        turn="stochastic {way} 50",
    ),
    Reader(
        "momentum",
        technical("cci20"),
        lambda cci: squash(cci, 100.0),
        trend=0.3,
        range=-0.3,
        fact="CCI20 {0:+.0f}",
        turn="CCI20 {way} 0",
    ),
    Reader(
        "momentum",
        ("memory.trend_direction",),
        lambda heading: HEADINGS.get(heading, 0.0),
        trend=0.3,
        range=0.1,
        fact="the consensus is {0}",
        turn="a consensus {way} its last",
        sparse=True,
        words=True,
    ),
    Reader(
        "structure",
        technical("trend_state"),
        float,
        trend=0.7,
        range=0.3,
        fact="trend state {0:+.0f}",
        turn="trend state {way} 0",
    ),
    Reader(
        "structure",
        technical("bos"),
        float,
        trend=0.9,
        range=0.3,
        fact="break of structure {0:+.0f}",
        turn="close {way} the broken swing",
        sparse=True,
    ),
    Reader(
        "structure",
        technical("close", "sma50", "atr14"),
        distance(3.0),
        trend=0.8,
        range=0.3,
        fact="close {0:.6g} against SMA50 {1:.6g}",
        turn="close {way} SMA50 {1:.6g}",
        component="st_medium",
    ),
    Reader(
        "structure",
        technical("sma50", "sma200", "atr14"),
        distance(5.0),
        trend=0.6,
        range=0.4,
        fact="SMA50 {0:.6g} against SMA200 {1:.6g}",
        turn="SMA50 {way} SMA200 {1:.6g}",
        component="st_long",
    ),
    Reader(
        "structure",
        ("memory.next_bullish", "memory.next_bearish"),
        lambda bullish, bearish: bullish - bearish,
        trend=0.4,
        range=0.4,
        fact="the next state is bullish with {0:.0%}, bearish with {1:.0%}",
        turn="the chance of a bullish next state {way} that of a bearish one",
    ),
)
"""Everything that the rules can read, in the order of the vectors."""

_COMMON: Final = tuple(
    dict.fromkeys(
        (
            *(ADX, NAMED),
            *(name for reader in READERS for name in reader.reads),
            *(f"component.{reader.component}" for reader in READERS if reader.component),
        )
    )
)
"""Every feature that READERS may read."""

_last: Final[list[tuple[list[Feature | None], dict[str, list[Reading]]]]] = [([], {})]
"""The features that READERS read last, by identity, and the readings.

The features are held, so that no new one can have the identity of an old one.
"""

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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from agents.contracts import VECTORS, Feature
from agents.phrases import PHRASES, Phrase

RANGE_ADX: Final = 20.0
TREND_ADX: Final = 30.0
"""At or below the first ADX there is a range, at or above the second a trend (Wilder: 20 to 25)."""

FULL_ADX: Final = 50.0
"""ADX at which a direction counts in full."""

ADX: Final = "technical.adx14"
CLOSE: Final = "technical.close"
NAMED: Final = "market.regime"
"""The regime by its name (torra.market.regime); it is cited, the weights go by ADX."""

HEADINGS: Final = {"rising": 1.0, "falling": -1.0, "flat": 0.0}


class TrendStrength(NamedTuple):
    """How much of a trend there is, 0 (range) to 1, and the ADX that says so; None without one."""

    trend: float
    adx: float | None


@dataclass(frozen=True, slots=True)
class ReadingRule:
    """One row: what is read, how it leans, and its weight in a trend and in a range.

    A negative weight fades: the lean counts against itself. Where the features are not shown, the
    score's own `component` stands for them. A `sparse` reader (an event) weighs nothing while its
    lean is 0. agents.phrases has the words for what is read; a row whose features a user named
    brings its `own`.
    """

    vector: str
    reads: tuple[str, ...]
    lean: Callable[..., float]
    trend: float
    range: float
    component: str = ""
    sparse: bool = False
    words: bool = False
    own: Phrase | None = None

    def read(self, features: Mapping[str, Feature], regime: TrendStrength) -> RuleSignal | None:
        """Return what this row says, or None when it has nothing to go on."""
        weight = self.range + (self.trend - self.range) * regime.trend
        if weight == 0.0:
            return None
        seen = self._seen(features)
        if seen is None:
            return None
        reads, values, lean = seen
        if not -1.0 <= lean <= 1.0:
            lean = max(-1.0, min(1.0, lean))
        if lean == 0.0 and self.sparse:
            return None
        if weight < 0.0:
            return RuleSignal(reads, values, -lean, -weight, True, self.own)
        return RuleSignal(reads, values, lean, weight, False, self.own)

    def _seen(
        self, features: Mapping[str, Feature]
    ) -> tuple[tuple[str, ...], tuple[Any, ...], float] | None:
        """Return what is read, the values and the lean; None without evidence."""
        take = word if self.words else number
        values = tuple([take(features.get(name)) for name in self.reads])
        if None in values:
            return self._component(features)
        return self.reads, values, self.lean(*values)

    def _component(
        self, features: Mapping[str, Feature]
    ) -> tuple[tuple[str, ...], tuple[Any, ...], float] | None:
        """Return the same of the score's own component."""
        if not self.component:
            return None
        name = f"component.{self.component}"
        value = number(features.get(name))
        return None if value is None else ((name,), (value,), value)


class RuleSignal(NamedTuple):
    """What one row says now: what it read, a lean in [-1, +1] after any fading, and its weight."""

    reads: tuple[str, ...]
    values: tuple[Any, ...]
    lean: float
    weight: float
    fades: bool = False
    own: Phrase | None = None

    @property
    def side(self) -> int:
        """The side for which it speaks: +1, -1, 0 for neither."""
        return (self.lean > 0.0) - (self.lean < 0.0)

    @property
    def main(self) -> str:
        """The feature that it is about: what price, which all are measured by, is held against."""
        return self.reads[1] if self.reads[0] == CLOSE else self.reads[0]

    @property
    def told(self) -> Phrase:
        """The words for what it read, clear or not; KeyError for what is never said."""
        return self.own or PHRASES[self.reads]

    @property
    def saying(self) -> Phrase | None:
        """The words for it; None for what is counted and not said."""
        found = self.own or PHRASES.get(self.reads)
        return found if found is not None and found.fits(self.values, fades=self.fades) else None


def regime(features: Mapping[str, Feature]) -> TrendStrength:
    """Read the regime; half a trend when there is no ADX."""
    adx = number(features.get(ADX))
    if adx is None:
        return TrendStrength(0.5, None)
    return TrendStrength(ramp(adx, RANGE_ADX, TREND_ADX), adx)


def readings(
    features: Mapping[str, Feature],
    now: TrendStrength,
    vectors: Iterable[str],
    readers: Iterable[ReadingRule] | None = None,
) -> dict[str, list[RuleSignal]]:
    """Return what can be read about each of the vectors; a vector without evidence is left out."""
    found: dict[str, list[RuleSignal]] = {vector: [] for vector in vectors}
    for reader in READERS if readers is None else readers:
        heard = found.get(reader.vector)
        if heard is not None and (reading := reader.read(features, now)) is not None:
            heard.append(reading)
    return {vector: heard for vector, heard in found.items() if heard}


def common_readings(
    features: Mapping[str, Feature], now: TrendStrength
) -> dict[str, list[RuleSignal]]:
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


def mean_lean(found: Iterable[RuleSignal]) -> float:
    """Return the mean lean of readings by their weight, 0 without any."""
    lean = weight = 0.0
    for one in found:
        lean += one.weight * one.lean
        weight += one.weight
    return lean / weight if weight else 0.0


def ramp(value: float, start: float, end: float) -> float:
    """Return 0 up to `start`, 1 from `end` on, a straight line between."""
    return max(0.0, min(1.0, (value - start) / (end - start)))


def readable(value: object) -> bool:
    """Return whether a feature's value is a word or a finite number."""
    if type(value) is float:  # nearly every one
        return math.isfinite(value)
    # True is an int in Python.
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return True
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


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


def tanh_of(amount: float, unit: float) -> float:
    """Return the amount in units, squashed into (-1, +1); 0 where there is no unit."""
    # A market that does not move has an ATR of 0.
    return math.tanh(amount / unit) if unit > 0.0 else 0.0


def distance(width: float) -> Callable[[float, float, float], float]:
    """Return the lean of one price above another, in `width` ATR."""
    return lambda price, other, atr: tanh_of(price - other, width * atr)


def outside(close: float, one: float, other: float, atr: float) -> float:
    """Return the lean of a close outside two prices, 0 between them."""
    above = max(close - max(one, other), 0.0)
    below = max(min(one, other) - close, 0.0)
    return tanh_of(above - below, 2.0 * atr)


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
    ReadingRule(
        "price_action",
        technical("close", "ema20", "atr14"),
        distance(1.5),
        trend=1.0,
        range=0.3,
        component="pa_trend",
    ),
    ReadingRule(
        "price_action",
        technical("body_atr"),
        math.tanh,
        trend=0.5,
        range=0.1,
        component="pa_body",
    ),
    ReadingRule(
        "price_action",
        technical("body_atr", "volume_ratio"),
        lambda body, volume: math.tanh(body) * math.tanh(max(volume - 1.0, 0.0)),
        trend=0.4,
        range=0.2,
        component="pa_volume",
        sparse=True,
    ),
    ReadingRule(
        "price_action",
        technical("lower_wick", "upper_wick"),
        lambda lower, upper: lower - upper,
        trend=0.2,
        range=0.7,
        component="pa_wicks",
    ),
    ReadingRule(
        "price_action",
        technical("engulfing"),
        float,
        trend=0.4,
        range=0.4,
        component="pa_pattern",
        sparse=True,
    ),
    ReadingRule(
        "price_action",
        technical("hammer"),
        float,
        trend=0.2,
        range=0.5,
        sparse=True,
    ),
    ReadingRule(
        "price_action",
        ("forecast.drift_pct", "forecast.low_pct", "forecast.high_pct"),
        lambda drift, low, high: tanh_of(drift, (high - low) / 2.0),
        trend=0.3,
        range=0.1,
    ),
    ReadingRule(
        "key_levels",
        technical("support_distance_atr"),
        _nearness,
        trend=0.4,
        range=0.9,
    ),
    ReadingRule(
        "key_levels",
        technical("resistance_distance_atr"),
        lambda distance: -_nearness(distance),
        trend=0.4,
        range=0.9,
    ),
    ReadingRule(
        "key_levels",
        technical("close", "bb_lower", "bb_mid", "bb_upper"),
        lambda close, low, mid, high: tanh_of(close - mid, (high - low) / 2.0),
        trend=0.5,
        range=-0.8,
        component="kl_bollinger",
    ),
    ReadingRule(
        "key_levels",
        technical("close", "span_a", "span_b", "atr14"),
        outside,
        trend=0.9,
        range=0.2,
        component="kl_cloud",
    ),
    ReadingRule(
        "key_levels",
        technical("tenkan", "kijun", "atr14"),
        distance(1.0),
        trend=0.4,
        range=0.1,
        component="kl_lines",
    ),
    ReadingRule(
        "momentum",
        technical("adx14", "plus_di", "minus_di"),
        direction,
        trend=1.0,
        range=0.2,
    ),
    ReadingRule(
        "momentum",
        technical("macd_hist", "atr14"),
        lambda histogram, atr: tanh_of(histogram, 0.25 * atr),
        trend=0.6,
        range=0.2,
        component="mo_histogram",
    ),
    ReadingRule(
        "momentum",
        technical("macd", "atr14"),
        tanh_of,
        trend=0.7,
        range=0.1,
        component="mo_macd",
    ),
    ReadingRule(
        "momentum",
        technical("rsi14"),
        lambda rsi: tanh_of(rsi - 50.0, 15.0),
        trend=0.4,
        range=-0.9,
    ),
    ReadingRule(
        "momentum",
        technical("stoch_k"),
        lambda k: (k - 50.0) / 50.0,
        trend=0.1,
        range=-0.6,
    ),
    ReadingRule(
        "momentum",
        technical("cci20"),
        lambda cci: tanh_of(cci, 100.0),
        trend=0.3,
        range=-0.3,
    ),
    ReadingRule(
        "momentum",
        ("memory.trend_direction",),
        lambda heading: HEADINGS.get(heading, 0.0),
        trend=0.3,
        range=0.1,
        sparse=True,
        words=True,
    ),
    ReadingRule(
        "structure",
        technical("trend_state"),
        float,
        trend=0.7,
        range=0.3,
    ),
    ReadingRule(
        "structure",
        technical("bos"),
        float,
        trend=0.9,
        range=0.3,
        sparse=True,
    ),
    ReadingRule(
        "structure",
        technical("close", "sma50", "atr14"),
        distance(3.0),
        trend=0.8,
        range=0.3,
        component="st_medium",
    ),
    ReadingRule(
        "structure",
        technical("sma50", "sma200", "atr14"),
        distance(5.0),
        trend=0.6,
        range=0.4,
        component="st_long",
    ),
    ReadingRule(
        "structure",
        ("memory.next_bullish", "memory.next_bearish"),
        lambda bullish, bearish: bullish - bearish,
        trend=0.4,
        range=0.4,
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

_last: Final[list[tuple[list[Feature | None], dict[str, list[RuleSignal]]]]] = [([], {})]
"""The features that READERS read last, by identity, and the readings.

The features are held, so that no new one can have the identity of an old one.
"""

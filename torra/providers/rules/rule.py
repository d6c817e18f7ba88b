"""How the rules read: a row turns a few features into a lean, weighed by how much of a trend is on.

A `Rule` is a row of `torra.providers.rules.tables`; what it reads now is a `Signal`, a lean in
[-1, +1] (bearish to bullish). The weight depends on the regime, which is read from ADX. In a trend,
what follows the trend counts. In a range, what is stretched is faded: the weight of RSI, of the
stochastic and of the Bollinger bands is negative there. Between the two the weights move in a
straight line.

A rule whose features are missing or malformed is silent. Pure functions; nothing raises, whatever
the features, and nothing depends on who asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agents.features import Features, number
from agents.phrases import Phrase

RANGE_ADX: Final = 20.0
TREND_ADX: Final = 30.0
"""At or below the first ADX there is a range, at or above the second a trend (Wilder: 20 to 25)."""

ADX: Final = "technical.adx14"
CLOSE: Final = "technical.close"
REGIME: Final = "market.regime"
"""The regime by its name (torra.market.regime)."""

TREND_IN: Final = {"trend_up": 1.0, "trend_down": 1.0, "range": 0.0, "quiet": 0.0}
"""How much of a trend a regime is; a volatile one is half of it, as without a name."""

NO_WORDS: Final = Phrase("", "", lambda *_: math.inf, "")
"""The words of what is counted and never said: no number is clear enough for them."""


class RuleSignal(NamedTuple):
    """What one rule says now: what it read, a lean in [-1, +1] after any fading, and its weight."""

    reads: tuple[str, ...]
    values: tuple[Any, ...]
    lean: float
    weight: float
    fades: bool
    phrase: Phrase

    @property
    def main(self) -> str:
        """The feature that it is about: what price, which all are measured by, is held against."""
        return self.reads[self.reads[0] == CLOSE]


Signals = Mapping[str, Sequence[RuleSignal]]
"""What can be read about each vector; a vector without evidence is left out."""


class EvidenceRule(NamedTuple):
    """One row: what is read, how it leans, and its weight in a trend and in a range.

    A negative weight fades: the lean counts against itself. Where the features are not shown,
    `component`, the rule of the score's own component, reads in its place. A `sparse` rule (an
    event) weighs nothing while its lean is 0.
    """

    reads: tuple[str, ...]
    lean: Callable[..., float]
    trend: float
    range: float
    sparse: bool
    value: Callable[[Features, str], Any]
    phrase: Phrase
    component: EvidenceRule | None = None

    def read(self, features: Features, trend: float) -> RuleSignal | None:
        """Return what this row says, or None when it has nothing to go on."""
        reads, lean_of, in_trend, in_range, sparse, value, phrase, component = self
        weight = in_range + (in_trend - in_range) * trend
        if weight == 0.0:
            return None
        values = tuple([value(features, name) for name in reads])
        if None in values:
            return component.read(features, trend) if component else None
        lean = lean_of(*values)
        if not -1.0 <= lean <= 1.0:
            lean = max(-1.0, min(1.0, lean))
        if lean == 0.0 and sparse:
            return None
        if weight < 0.0:
            return RuleSignal(reads, values, -lean, -weight, True, phrase)
        return RuleSignal(reads, values, lean, weight, False, phrase)


def read(rules: Iterable[EvidenceRule], features: Features, trend: float) -> list[RuleSignal]:
    """Return what rules say now."""
    return [signal for rule in rules if (signal := rule.read(features, trend)) is not None]


def trend_of(features: Features, *, by_name: bool = False) -> float:
    """Return how much of a trend there is, 0 (range) to 1, by ADX; half a trend without one.

    `by_name`: without an ADX the regime's name tells it.
    """
    adx = number(features, ADX)
    if adx is not None:
        return ramp(adx, RANGE_ADX, TREND_ADX)
    return TREND_IN.get(word(features, REGIME) or "", 0.5) if by_name else 0.5


def mean_lean(signals: Iterable[RuleSignal]) -> float:
    """Return the mean lean of signals by their weight, 0 without any."""
    lean = weight = 0.0
    for signal in signals:
        lean += signal.weight * signal.lean
        weight += signal.weight
    return lean / weight if weight else 0.0


def side_of(value: float, least: float = 0.0) -> int:
    """Return +1 or -1 by the sign of a value; 0 for 0, and for less than `least` either way."""
    return 0 if abs(value) < least else (value > 0.0) - (value < 0.0)


def ramp(value: float, start: float, end: float) -> float:
    """Return 0 up to `start`, 1 from `end` on, a straight line between."""
    return max(0.0, min(1.0, (value - start) / (end - start)))


def tanh_of(amount: float, unit: float) -> float:
    """Return the amount in units, squashed into (-1, +1); 0 where there is no unit."""
    # A market that does not move has an ATR of 0.
    return math.tanh(amount / unit) if unit > 0.0 else 0.0


def word(features: Features, name: str) -> str | None:
    """Return a feature's value as a word; None when it is absent or a number."""
    feature = features.get(name)
    return feature.value if feature and isinstance(feature.value, str) else None


def linear_factor(value: float, start: float, end: float, least: float) -> float:
    """Return the factor of a danger: 1 up to `start`, `least` from `end` on."""
    return 1.0 - (1.0 - least) * ramp(value, start, end)

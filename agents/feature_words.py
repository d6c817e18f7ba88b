"""The words for the evidence: what each feature is called, which way it leans, how it is said.

`FEATURES` names every feature of a bundle for people, with what a high and a low value of it mean,
and says which way a value leans; `sides` is that as a check. `SAYINGS` says what one or several
features together read, as a half-sentence with one number and, apart, why it matters for the next
bars. Only the bullish wording is written down: the bearish one is its mirror, word by word, so the
mirrored market is told in mirrored words.

Pure values and functions. A feature that is not in the table, a host's own, has its id as its name
and may stand on either side.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from .contracts import EVENT_CLASSES, VECTORS, Feature

UP: Final = 1
DOWN: Final = -1
EITHER: Final = (UP, DOWN)
LARGEST: Final = 1e6
"""A number from here on is not said: no market has one."""

NEAR_ATR: Final = 1.0
"""ATR up to which a support or a resistance is near: then it stands on its own side alone."""

PAIRS: Final = (
    ("technical.tenkan", "technical.kijun"),
    ("technical.ema20", "technical.sma50"),
    ("technical.ema20", "technical.sma200"),
    ("technical.sma20", "technical.sma50"),
    ("technical.sma50", "technical.sma200"),
    ("technical.span_a", "technical.span_b"),
    ("technical.swing_high", "technical.prev_swing_high"),
    ("technical.swing_low", "technical.prev_swing_low"),
    ("technical.macd", "technical.macd_signal"),
)
"""Features that are also held against each other: the first above the second leans up."""

ALIKE: Final[Mapping[str, int]] = {
    "rising": UP,
    "BULLISH": UP,
    "STRONG_BULLISH": UP,
    "trend_up": UP,
    "falling": DOWN,
    "BEARISH": DOWN,
    "STRONG_BEARISH": DOWN,
    "trend_down": DOWN,
}
"""Words of the evidence that lean; all others have no side."""

_PAIRS: Final = (
    ("above", "below"), ("up", "down"), ("upwards", "downwards"), ("rising", "falling"),
    ("rose", "fell"), ("buyers", "sellers"), ("high", "low"),
    ("highs", "lows"), ("upper", "lower"), ("bullish", "bearish"), ("support", "resistance"),
    ("floor", "ceiling"), ("strength", "weakness"), ("good", "bad"), ("+DI", "−DI"),
)  # fmt: skip
_SWAPPED: Final = {a: b for one, other in _PAIRS for a, b in ((one, other), (other, one))}
_WORD: Final = re.compile(r"[+−]?[A-Za-z]+")


@lru_cache(maxsize=512)  # the table's own halves, over and over
def mirrored(text: str) -> str:
    """Return the words for the other side: above for below, buyers for sellers."""
    return _WORD.sub(_swapped, text)


def _swapped(found: re.Match[str]) -> str:
    word = found[0]
    if word in _SWAPPED or not word[:1].isupper():
        return _SWAPPED.get(word, word)
    # the first of a sentence
    other = _SWAPPED.get(word[:1].lower() + word[1:])
    return word if other is None else other[:1].upper() + other[1:]


Lean = Callable[[float, Mapping[str, Feature]], int | None]
"""Which way a value leans: +1, -1, 0 for neither, None where it cannot be told."""


@dataclass(frozen=True, slots=True)
class FeatureWords:
    """A feature for people: its name in a sentence, and what a high and a low value mean.

    `lean` is None for a feature without a side; one that is `two_sided` may stand on either, as
    strength is followed in a trend and faded in a range. `falling` is one whose high value leans
    down.
    """

    name: str
    high: str
    low: str
    lean: Lean | None = None
    two_sided: bool = False
    falling: bool = False


@dataclass(frozen=True, slots=True)
class Saying:
    """What features read, for the bullish side: a half-sentence with one number {n}, and why.

    `number` makes it of the values read, `shown` is its format. `faded` and `faded_why` say the
    same high value as an argument for lower prices. `line` is the place, among the values, of the
    price that would end it, and `line_name` its name. `about` is the place of the feature that it
    is about, the first that is not the close without it. What is not clear is not said: a number
    that lies less than `least` from its `middle`, or `least_faded` where it is faded, that would be
    written as its middle, or that reaches `most`.
    """

    half: str
    why: str
    number: Callable[..., float]
    shown: str
    faded: str = ""
    faded_why: str = ""
    line: int | None = None
    line_name: str = ""
    middle: float = 0.0
    least: float = 0.0
    least_faded: float = 0.0
    most: float = LARGEST
    about: Callable[..., int] | None = None

    def fits(self, values: tuple[Any, ...], *, fades: bool = False) -> bool:
        """Return whether the number can be said: finite, not monstrous, and clear enough.

        One close is no row of closes, and RSI at 51 is no strength.
        """
        number = self.number(*values)
        least = self.least_faded if fades and self.faded else self.least
        return abs(number) < self.most and abs(number - self.middle) >= max(
            least, _shown_from(self.shown)
        )

    def told(self, values: tuple[Any, ...], side: int, *, fades: bool = False) -> str:
        """Return the half-sentence for a side; `fades`: the value itself leans the other way."""
        text = self._side(self.faded if fades else self.half, side, fades=fades)
        return text.format(n=self._number(values))

    def reason(self, side: int, *, fades: bool = False) -> str:
        """Return why it matters for the next bars."""
        return self._side(self.faded_why if fades else self.why, side, fades=fades)

    def _side(self, text: str, side: int, *, fades: bool) -> str:
        # A high value that is faded argues for lower prices: that is how it is written down.
        return mirrored(text) if (side == UP) is fades else text

    def _number(self, values: tuple[Any, ...]) -> str:
        return self.shown.format(self.number(*values) + 0.0)


@lru_cache(maxsize=64)
def _shown_from(shown: str) -> float:
    """Return the least number that a format does not write as 0."""
    decimals, per_cent = re.search(r"\.(\d)", shown), "%}" in shown
    places = (int(decimals[1]) if decimals else 0) + 2 * per_cent
    return 0.5 * 10.0**-places


def name_of(feature: str) -> str:
    """Return the name of a feature for people; its id where the table has none."""
    found = FEATURES.get(feature)
    return feature if found is None else found.name


def label_of(feature: str) -> str:
    """Return the short name of a feature for a chart: its own, or its name without the article."""
    return LABELS.get(feature) or name_of(feature).removeprefix("the ")


def meaning_of(feature: str) -> str:
    """Return what a high and a low value of a feature mean; "" where it is a word, or unknown."""
    found = FEATURES.get(feature)
    if found is None or not found.high:
        return ""
    return f"high: {found.high}; low: {found.low}"


def reading_of(feature: str, side: int) -> str:
    """Return what a value that leans to a side means; "" where the table does not say."""
    found = FEATURES.get(feature)
    if found is None or found.lean is None or found.two_sided:
        return ""
    return found.high if (side > 0) is not found.falling else found.low


def sides(feature: str, features: Mapping[str, Feature]) -> tuple[int, ...]:
    """Return the sides for which a feature may be cited as a point; () when it has none.

    A feature that the table does not know may stand for either, and so may one that leans one way
    by itself and the other way beside its like.
    """
    words = FEATURES.get(feature) or _of_headline(feature)
    if words is None:
        return EITHER
    if words.lean is None:
        return ()
    found = features.get(feature)
    value = None if found is None else found.value
    if value is None or isinstance(value, bool):
        return ()
    if words.two_sided:
        return EITHER
    if isinstance(value, str):
        leans: int | None = ALIKE.get(value, 0)
    else:
        leans = words.lean(value, features) if _finite(value) else 0
    if leans is None:
        return EITHER
    found_sides = {leans, *_beside(feature, features)} - {0}
    return tuple(sorted(found_sides, reverse=True))


def _of_headline(feature: str) -> FeatureWords | None:
    """Return the words for what concerns one headline: its score leans, its age does not."""
    if not feature.startswith(HEADLINE):
        return None
    return HEADLINE_SCORE if feature.startswith(HEADLINE_SCORES) else HEADLINE_REST


def _beside(feature: str, features: Mapping[str, Feature]) -> Iterator[int]:
    for one, other in PAIRS:
        if feature in (one, other):
            a, b = _number(features, one), _number(features, other)
            if a is not None and b is not None:
                yield _sign(a - b)


# --- which way a value leans ----------------------------------------------------------------------


def _sign(value: float) -> int:
    return (value > 0.0) - (value < 0.0)


def _number(features: Mapping[str, Feature], name: str) -> float | None:
    found = features.get(name)
    value = None if found is None else found.value
    return float(value) if not isinstance(value, str | bool | None) and _finite(value) else None


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _positive(value: float, _: Mapping[str, Feature]) -> int:
    return _sign(value)


def _from(middle: float) -> Lean:
    return lambda value, _: _sign(value - middle)


def _over(other: str, way: int = UP) -> Lean:
    def lean(value: float, features: Mapping[str, Feature]) -> int | None:
        beside = _number(features, other)
        return None if beside is None else way * _sign(value - beside)

    return lean


def _near(way: int) -> Lean:
    return lambda value, _: way if value <= NEAR_ATR else None


def _wick(other: str, way: int) -> Lean:
    """Return how a wick leans: its way while it is the longer of the two."""

    def lean(value: float, features: Mapping[str, Feature]) -> int:
        beside = _number(features, other) or 0.0
        return way if value > 0.0 and value >= beside else 0

    return lean


_LEVEL: Final = _over("technical.close", DOWN)
"""A level leans up while the close is above it."""


def _level(name: str) -> FeatureWords:
    return FeatureWords(
        name, "it lies above the close", "it lies below the close", _LEVEL, falling=True
    )


def _sideless(name: str, high: str, low: str) -> FeatureWords:
    return FeatureWords(name, high, low)


def _either(name: str, high: str, low: str, lean: Lean) -> FeatureWords:
    return FeatureWords(name, high, low, lean, two_sided=True)


_PART: Final = ("it leans up", "it leans down")
COMPONENTS: Final[Mapping[str, str]] = {
    "pa_trend": "price against its 20-bar mean",
    "pa_slope": "the slope of the 20-bar mean",
    "pa_thrust": "the move of the last three bars",
    "pa_body": "the body of the last bar",
    "pa_wicks": "the balance of the last bar's wicks",
    "pa_pattern": "the candle pattern",
    "pa_gap": "the opening gap",
    "pa_volume": "the volume behind the last bar",
    "kl_bollinger": "price within its Bollinger bands",
    "kl_cloud": "price against the cloud",
    "kl_fibonacci": "price against the Fibonacci retracements",
    "kl_levels": "the balance of support and resistance",
    "kl_lines": "the conversion line against the base line",
    "mo_rsi": "RSI against its middle",
    "mo_macd": "MACD against zero",
    "mo_histogram": "the MACD histogram against zero",
    "mo_stochastic": "the stochastic against its middle",
    "mo_cci": "CCI against zero",
    "mo_direction": "the directional movement",
    "st_swings": "the order of the swings",
    "st_state": "the state of the trend",
    "st_break": "the last break of structure",
    "st_medium": "price against the 50-bar mean",
    "st_long": "the 50-bar mean against the 200-bar mean",
}
"""The parts of the four scores, by name; each lies between -1 and +1 and leans as its sign."""

_TECHNICAL: Final[Mapping[str, FeatureWords]] = {
    "close": _sideless("the close", "price is high", "price is low"),
    "atr14": _sideless("the average true range", "bars are wide", "bars are narrow"),
    "adx14": _sideless("ADX", "there is a trend", "there is a range"),
    "volatility_percentile": _sideless(
        "volatility's rank among the last 500 bars", "bars are wide for it", "bars are calm for it"
    ),
    "volume_sma20": _sideless("the usual volume", "the market is busy", "the market is thin"),
    "volume_ratio": _sideless(
        "volume against its usual", "more traded than usual", "less traded than usual"
    ),
    "ema20": _level("the 20-bar exponential mean"),
    "sma20": _level("the 20-bar mean"),
    "sma50": _level("the 50-bar mean"),
    "sma200": _level("the 200-bar mean"),
    "bb_mid": _either(
        "the middle of the Bollinger bands", "it lies above the close", "it lies below it", _LEVEL
    ),
    "bb_upper": _either(
        "the upper Bollinger band", "it is far above", "price presses against it", _LEVEL
    ),
    "bb_lower": _either(
        "the lower Bollinger band", "price presses against it", "it is far below", _LEVEL
    ),
    "tenkan": _level("the conversion line"),
    "kijun": _level("the base line"),
    "span_a": _level("one edge of the cloud"),
    "span_b": _level("the other edge of the cloud"),
    "fib_382": _level("the 38 % retracement"),
    "fib_500": _level("half of the last swing"),
    "fib_618": _level("the 62 % retracement"),
    "swing_high": _level("the last swing high"),
    "swing_low": _level("the last swing low"),
    "prev_swing_high": _level("the swing high before"),
    "prev_swing_low": _level("the swing low before"),
    "support": _either("the support", "it is near", "it is far", _LEVEL),
    "resistance": _either("the resistance", "it is far", "it is near", _LEVEL),
    "support_distance_atr": FeatureWords(
        "the distance to support", "no floor is near", "a floor is near", _near(UP), falling=True
    ),
    "resistance_distance_atr": FeatureWords(
        "the distance to resistance", "there is room above", "a ceiling is near", _near(DOWN)
    ),
    "rsi14": _either("RSI", "strength, or stretched", "weakness, or stretched", _from(50.0)),
    "stoch_k": _either(
        "the stochastic", "strength, or stretched", "weakness, or stretched", _from(50.0)
    ),
    "stoch_d": _either(
        "the signal of the stochastic", "strength", "weakness", _from(50.0)
    ),
    "cci20": _either("CCI", "strength, or stretched", "weakness, or stretched", _positive),
    "plus_di": FeatureWords(
        "+DI", "buyers drive the move", "buyers are few", _over("technical.minus_di")
    ),
    "minus_di": FeatureWords(
        "−DI", "sellers drive the move", "sellers are few", _over("technical.plus_di", DOWN),
        falling=True,
    ),
    "macd": FeatureWords("MACD", "the faster mean leads up", "it leads down", _positive),
    "macd_signal": FeatureWords("the signal of MACD", "it points up", "it points down", _positive),
    "macd_hist": FeatureWords(
        "the MACD histogram", "momentum grows up", "momentum grows down", _positive
    ),
    "gap_atr": FeatureWords("the opening gap", "it opened higher", "it opened lower", _positive),
    "gap_pct": FeatureWords("the opening gap", "it opened higher", "it opened lower", _positive),
    "body_atr": FeatureWords(
        "the body of the last bar", "it closed above its open", "it closed below it", _positive
    ),
    "upper_wick": FeatureWords(
        "the upper wick", "sellers came in above", "sellers did not",
        _wick("technical.lower_wick", DOWN), falling=True,
    ),
    "lower_wick": FeatureWords(
        "the lower wick", "buyers came in below", "buyers did not",
        _wick("technical.upper_wick", UP),
    ),
    "engulfing": FeatureWords(
        "the engulfing pattern", "buyers took over", "sellers took over", _positive
    ),
    "hammer": FeatureWords("the hammer", "buyers came back", "sellers came back", _positive),
    "trend_state": FeatureWords(
        "the state of the trend", "swings rise", "swings fall", _positive
    ),
    "bos": FeatureWords(
        "the last break of structure", "a swing high broke", "a swing low broke", _positive
    ),
}  # fmt: skip

_OTHERS: Final[Mapping[str, FeatureWords]] = {
    "forecast.drift_pct": FeatureWords(
        "the forecast of the trend", "it drifts up", "it drifts down", _positive
    ),
    "forecast.low_pct": _sideless("the lower end of the forecast", "little risk", "much risk"),
    "forecast.high_pct": _sideless("the upper end of the forecast", "much room", "little room"),
    "market.spread_atr": _sideless("the spread", "trading is dear", "trading is cheap"),
    "market.valid_bars": _sideless("the bars held", "enough history", "little history"),
    "market.bar_age": _sideless("the age of the bar", "it is old", "it is fresh"),
    "market.range_atr": _sideless("the range of the bar", "a wide bar", "a narrow bar"),
    "market.session": _sideless("the session", "", ""),
    "market.day_of_week": _sideless("the day", "", ""),
    "market.regime": FeatureWords("the kind of market", "", "", _positive),
    "market.triage": _sideless("what is odd about the bar", "", ""),
    "memory.markov_state": FeatureWords("the state of the desk's consensus", "", "", _positive),
    "memory.state_duration": _sideless("how long that state lasts", "it is old", "it is new"),
    "memory.trend_direction": FeatureWords("the way of the consensus", "", "", _positive),
    "memory.losing_streak": _sideless("the losing streak", "many losses in a row", "none"),
    "memory.open_elsewhere": _sideless("the positions elsewhere", "much is open", "nothing is"),
    "memory.position": _sideless("the position here", "", ""),
    "memory.next_bullish": FeatureWords(
        "the chance of a bullish next state", "likely", "unlikely", _over("memory.next_bearish")
    ),
    "memory.next_bearish": FeatureWords(
        "the chance of a bearish next state", "likely", "unlikely",
        _over("memory.next_bullish", DOWN), falling=True,
    ),
    "memory.consensus_last": FeatureWords(
        "the last consensus", "the desk saw it rise", "the desk saw it fall", _positive
    ),
    "events.available": _sideless("the calendar", "there is one", "there is none"),
    "events.to_next_min": _sideless("the minutes to the next event", "far", "near"),
    "events.since_last_min": _sideless("the minutes since the last event", "long ago", "just now"),
    "news.available": _sideless("the source of news", "it brings some", "it brings none"),
    "news.items": _sideless("the number of headlines", "many", "few"),
    "news.score": FeatureWords("the tone of all the news", "good", "bad", _positive),
    **{
        name: words
        for kind in EVENT_CLASSES
        for name, words in (
            (f"news.{kind}_items", _sideless(f"the number of {kind} headlines", "many", "few")),
            (
                f"news.{kind}_score",
                FeatureWords(f"the tone of the {kind} news", "good", "bad", _positive),
            ),
        )
    },
    "sentiment.positioning_available": _sideless("a feed of positions", "there", "not there"),
    "sentiment.news": FeatureWords("the tone of the news", "good", "bad", _positive),
    "sentiment.news_items": _sideless("the number of headlines", "many", "few"),
    "sentiment.up_bars": _either(
        "the share of recent closes that rose", "a good mood", "a bad mood", _from(0.5)
    ),
    "sentiment.up_volume": FeatureWords(
        "the share of the volume on rising bars", "money backs buyers", "money backs sellers",
        _from(0.5),
    ),
    "sentiment.streak": _either(
        "the run of closes one way", "a run up", "a run down", _positive
    ),
    "fundamentals.available": _sideless("the company's figures", "there", "not there"),
    # Dear may be a reason to sell, or what growth is worth.
    "fundamentals.pe": _either("the price of a unit of earnings", "dear", "cheap", _positive),
    "fundamentals.pb": _either("the price of a unit of book value", "dear", "cheap", _positive),
    "fundamentals.ev_ebitda": _either("the price of a unit of EBITDA", "dear", "cheap", _positive),
    "fundamentals.revenue_growth_pct": FeatureWords(
        "the growth of revenue", "it grows", "it shrinks", _positive
    ),
    "fundamentals.net_margin_pct": FeatureWords(
        "the net margin", "it earns", "it loses", _positive
    ),
    "source.news": _sideless("the state of the news", "", ""),
    "source.events": _sideless("the state of the calendar", "", ""),
    "source.events_ahead_min": _sideless("the minutes ahead that are kept free", "", ""),
    "source.events_behind_min": _sideless("the minutes behind that are kept free", "", ""),
    "source.fundamentals": _sideless("the state of the company's figures", "", ""),
    "gate.multiplier": _sideless("the multiplier of the gate's rules", "much is left", "little is"),
    "gate.veto": _sideless("the veto of the gate's rules", "vetoed", "free"),
    "gate.reasons": _sideless("the reasons of the gate's rules", "", ""),
    "gate.analyst_spread": _sideless("how far the analysts lie apart", "far", "near"),
}  # fmt: skip

FEATURES: Final[Mapping[str, FeatureWords]] = {
    # A score is what an analyst measures its evidence by: it may be too high or too low.
    **{
        f"scores.{vector}": _either(
            f"the {vector.replace('_', ' ')} score", "bullish", "bearish", _positive
        )
        for vector in VECTORS
    },
    **{
        f"component.{name}": FeatureWords(words, *_PART, _positive)
        for name, words in COMPONENTS.items()
    },
    **{f"technical.{name}": words for name, words in _TECHNICAL.items()},
    **_OTHERS,
}
"""Every feature of a bundle, by id; the features of single headlines are not among them."""

HEADLINE: Final = "news.item"
HEADLINE_SCORES: Final = "news.item_score."
HEADLINE_SCORE: Final = FeatureWords("a headline", "good news", "bad news", _positive)
HEADLINE_REST: Final = _sideless("a headline", "", "")
"""What concerns one headline, by how its id begins."""


LABELS: Final[Mapping[str, str]] = {
    "technical.ema20": "EMA20",
    "technical.sma50": "SMA50",
    "technical.sma200": "SMA200",
    "technical.swing_high": "swing high",
    "technical.swing_low": "swing low",
}
"""Short names for a chart, where the name alone is too long beside a line."""


# --- how readings are said ------------------------------------------------------------------------


def _size(value: float, *_: Any) -> float:
    return abs(value)


def _gap(one: float, other: float, atr: float) -> float:
    return abs(one - other) / atr if atr > 0.0 else 0.0


def _outside(close: float, one: float, other: float, atr: float) -> float:
    return max(close - max(one, other), min(one, other) - close, 0.0) / atr if atr > 0.0 else 0.0


def _in_atr(value: float, atr: float) -> float:
    return abs(value) / atr if atr > 0.0 else 0.0


def _apart(one: float, other: float, *_: Any) -> float:
    return abs(one - other)


def _stretch(close: float, low: float, mid: float, high: float) -> float:
    half = (high - low) / 2.0
    return abs(close - mid) / half if half > 0.0 else 0.0


def _larger(share: float) -> float:
    return max(share, 1.0 - share)


def _itself(value: float, *_: Any) -> float:
    return value


def _fixed(number: float) -> Callable[..., float]:
    return lambda *_: number


def _ids(*names: str) -> tuple[str, ...]:
    return tuple(f"technical.{name}" for name in names)


_ATR: Final = "{:.1f} ATR"
_FINE_ATR: Final = "{:.2f} ATR"
_POINTS: Final = "{:.1f} points"
_RANGE_TURNS: Final = "and a range tends to pull back from there"

_SUPPORT: Final = Saying(
    "support is {n} below", "a floor that buyers have defended", _size, _FINE_ATR, most=NEAR_ATR
)  # fmt: skip
_CLOUD: Final = Saying(
    "the close is {n} above the cloud", "so buyers hold the trend", _outside, _ATR,
    line=1, line_name="an edge of the cloud",
)  # fmt: skip
_DIRECTION: Final = Saying(
    "+DI leads −DI by {n}", "so buyers drive the move",
    lambda _, plus, minus: abs(plus - minus), _POINTS,
    about=lambda _, plus, minus: 1 if plus >= minus else 2,
)  # fmt: skip
_MACD: Final = Saying(
    "MACD is {n} above zero", "so the faster mean leads upwards", _in_atr, _FINE_ATR
)  # fmt: skip


def _above(what: str, other: str, why: str, line_name: str = "") -> Saying:
    return Saying(
        f"{what} is {{n}} above {other}", why, _gap, _ATR, line=1, line_name=line_name or other,
    )  # fmt: skip


SAYINGS: Final[Mapping[tuple[str, ...], Saying]] = {
    _ids("close", "ema20", "atr14"): _above(
        "the close", "the 20-bar exponential mean", "so buyers hold the short trend"
    ),
    _ids("body_atr"): Saying(
        "the bar closed {n} above its open", "so buyers had the last word", _size, _FINE_ATR
    ),
    _ids("body_atr", "volume_ratio"): Saying(
        "the rising bar had {n} its usual volume", "so buyers meant it",
        lambda _, volume: volume, "{:.1f} times", least=1.2,
    ),
    _ids("lower_wick", "upper_wick"): Saying(
        "the lower wick takes {n} of the bar", "so buyers came in below it", max, "{:.0%}",
        least=0.3, about=lambda lower, upper: 0 if lower >= upper else 1,
    ),
    _ids("engulfing"): Saying(
        "the last {n} bars form a rising engulfing pattern", "so buyers took over",
        _fixed(2.0), "{:.0f}",
    ),
    _ids("hammer"): Saying(
        "within {n} bar price fell and came back up", "so buyers stand ready below",
        _fixed(1.0), "{:.0f}",
    ),
    ("forecast.drift_pct", "forecast.low_pct", "forecast.high_pct"): Saying(
        "the trend alone would carry price {n} up in four bars", "so it has not run dry",
        _size, "{:.2f} %",
    ),
    _ids("support_distance_atr"): _SUPPORT,
    _ids("resistance_distance_atr"): _SUPPORT,
    _ids("close", "bb_lower", "bb_mid", "bb_upper"): Saying(
        "the close is {n} of the way to the upper Bollinger band", "so buyers lead",
        _stretch, "{:.0%}",
        "price is {n} of the way to its upper band, high for a range", _RANGE_TURNS,
        line=2, line_name="the middle of the Bollinger bands", least=0.1, least_faded=0.5,
        about=lambda close, _low, mid, _high: 3 if close > mid else 1,
    ),
    _ids("close", "span_a", "span_b", "atr14"): _CLOUD,
    _ids("tenkan", "kijun", "atr14"): _above(
        "the conversion line", "the base line", "so buyers gather pace"
    ),
    _ids("adx14", "plus_di", "minus_di"): _DIRECTION,
    _ids("macd_hist", "atr14"): Saying(
        "the MACD histogram is {n} above zero", "so momentum grows upwards", _in_atr, _FINE_ATR
    ),
    _ids("macd", "atr14"): _MACD,
    _ids("rsi14"): Saying(
        "RSI at {n} shows strength", "so buyers lead", _itself, "{:.0f}",
        "RSI at {n} is high for a range", _RANGE_TURNS,
        middle=50.0, least=3.0, least_faded=8.0,
    ),
    _ids("stoch_k"): Saying(
        "the stochastic at {n} shows strength", "so buyers lead", _itself, "{:.0f}",
        "the stochastic at {n} is high for a range", _RANGE_TURNS,
        middle=50.0, least=5.0, least_faded=20.0,
    ),
    _ids("cci20"): Saying(
        "CCI at {n} shows strength", "so buyers lead", _itself, "{:+.0f}",
        "CCI at {n} is high for a range", _RANGE_TURNS,
        least=10.0, least_faded=60.0,
    ),
    _ids("trend_state"): Saying(
        "the last {n} swings went up, top and bottom", "so the trend points up",
        _fixed(2.0), "{:.0f}",
    ),
    _ids("bos"): Saying(
        "price broke {n} swing high", "so buyers hold that level",
        _fixed(1.0), "{:.0f}",
    ),
    _ids("close", "sma50", "atr14"): _above(
        "the close", "the 50-bar mean", "so buyers hold the middle trend"
    ),
    _ids("sma50", "sma200", "atr14"): _above(
        "the 50-bar mean", "the 200-bar mean", "so buyers hold the long trend"
    ),
    ("memory.next_bullish", "memory.next_bearish"): Saying(
        "a bullish next state is {n} likelier than a bearish one", "so the desk's view should hold",
        lambda up, down: 100.0 * abs(up - down), _POINTS,
    ),
    ("sentiment.news",): Saying(
        "the tone of the news is good at {n}", "so it backs buyers", _itself, "{:+.2f}"
    ),
    ("sentiment.up_bars",): Saying(
        "rising closes weigh {n} of the recent ones", "so the mood carries buyers", _larger,
        "{:.0%}", "rising closes weigh {n} of the recent ones, much for a range",
        "and a range seldom goes on like that",
        middle=0.5, least=0.02, least_faded=0.1,
    ),
    ("sentiment.up_volume",): Saying(
        "rising bars carry {n} of the recent volume", "so money backs buyers", _larger, "{:.0%}",
        middle=0.5, least=0.02,
    ),
    ("sentiment.streak",): Saying(
        "{n} closes in a row rose", "so the mood carries buyers", _size, "{:.0f}",
        "{n} closes in a row rose, long for a range", "and a range seldom goes on like that",
        least=2.0, least_faded=3.0,
    ),
    ("news.score",): Saying(
        "all the news together is good at {n}", "so it backs buyers", _itself, "{:+.2f}"
    ),
    **{
        (f"news.{kind}_score",): Saying(
            f"the {kind} news is good at {{n}}", "so it backs buyers", _itself, "{:+.2f}"
        )
        for kind in EVENT_CLASSES
    },
    _ids("close", "fib_382", "fib_618", "atr14"): Saying(
        "the close is {n} above both Fibonacci retracements", "so buyers hold the swing",
        _outside, _ATR, line=1, line_name="a Fibonacci retracement",
    ),
    _ids("close", "fib_500", "atr14"): _above(
        "the close", "half of the last swing", "so buyers hold the swing"
    ),
    _ids("close", "kijun", "atr14"): _above(
        "the close", "the base line", "so buyers hold the middle trend"
    ),
    _ids("stoch_k", "stoch_d"): Saying(
        "the stochastic is {n} above its signal", "so it turns up", _apart, _POINTS
    ),
    _ids("macd", "macd_signal", "atr14"): Saying(
        "MACD is {n} above its signal", "so momentum turns up", _gap, _FINE_ATR
    ),
    **{
        # The score beside its readings, for an analyst that has nothing else to point at.
        (f"scores.{vector}",): Saying(
            f"the {vector.replace('_', ' ')} score of {{n}} stands below what its readings carry",
            "so some of the way back up is left", _itself, "{:+.2f}",
        )
        for vector in VECTORS
    },
    **{
        (f"component.{name}",): Saying(
            f"{words} leans up at {{n}} of 1", "so the score rests on it", _itself, "{:+.2f}"
        )
        for name, words in COMPONENTS.items()
    },
}  # fmt: skip
"""What can be said of readings, by the features that they read."""

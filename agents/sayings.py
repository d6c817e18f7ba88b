"""How readings of the evidence are said: a half-sentence with one number, and why it matters.

`SAYINGS` says what one or several features together read, as a half-sentence with one number and,
apart, why it matters for the next bars. Only the bullish wording is written down: the bearish one
is its mirror, word by word, so the mirrored market is told in mirrored words. What is not clear is
not said.

Pure values and functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from .contracts import EVENT_CLASSES, VECTORS
from .feature_words import COMPONENTS, NEAR_ATR, UP

LARGEST: Final = 1e6
"""A number from here on is not said: no market has one."""

NUMBER: Final = "{n}"
"""Where the number stands in a half-sentence."""

_PAIRS: Final = (
    ("above", "below"), ("up", "down"), ("upwards", "downwards"), ("upward", "downward"),
    ("rising", "falling"), ("rose", "fell"), ("buyers", "sellers"), ("high", "low"),
    ("highs", "lows"), ("upper", "lower"), ("bullish", "bearish"), ("support", "resistance"),
    ("floor", "ceiling"), ("strength", "weakness"), ("good", "bad"), ("+DI", "−DI"),
    ("top", "bottom"), ("rise", "fall"),
    ("a bull flag", "a bear flag"),
    ("an inverse head and shoulders", "a head and shoulders"),
    ("an ascending", "a descending"),
)  # fmt: skip
_SWAPPED: Final = {a: b for one, other in _PAIRS for a, b in ((one, other), (other, one))}
_PHRASES: Final = "|".join(rf"\b{text}\b" for text in _SWAPPED if " " in text)
_WORD: Final = re.compile(rf"{_PHRASES}|[+−]?[A-Za-z]+")


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


@dataclass(frozen=True, slots=True)
class Phrase:
    """What features read, for the bullish side: a half-sentence with one number {n}, and why.

    `number` makes it of the values read, `shown` is its format. `faded` and `faded_why` say the
    same high value as an argument for lower prices. `line` is the place, among the values, of the
    price that would end it, and `line_name` its name. `about` is the place of the feature that it
    is about, the first that is not the close without it. What is not clear is not said: a number
    that lies less than `least` from its `middle`, or `least_faded` where it is faded, that would be
    written as its middle, or that reaches `most`. `begun` says it of a shape that no close has
    completed: its last value is 0.
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
    begun: str = ""

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
        half = self.begun if self.begun and not values[-1] else self.half
        text = self._side(self.faded if fades else half, side, fades=fades)
        return text.replace(NUMBER, self._number(values))

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
_OF_YIELD: Final = "{:.2f} percentage points"
_PER_CENT_POINTS: Final = "{:.0f} percentage points"
_STRETCHED: Final = "and such stretches often snap back"

_SUPPORT: Final = Phrase(
    "support is {n} below", "a floor that buyers have defended", _size, _FINE_ATR,
    least=0.1, most=NEAR_ATR,
)  # fmt: skip
_CLOUD: Final = Phrase(
    "the close is {n} above the cloud", "so buyers hold the trend", _outside, _ATR,
    line=1, line_name="an edge of the cloud",
)  # fmt: skip
_DIRECTION: Final = Phrase(
    "+DI leads −DI by {n}", "so buyers drive the move",
    lambda _, plus, minus: abs(plus - minus), _POINTS,
    about=lambda _, plus, minus: 1 if plus >= minus else 2,
)  # fmt: skip
_MACD: Final = Phrase(
    "MACD is {n} above zero", "so the faster mean leads upwards", _in_atr, _FINE_ATR
)  # fmt: skip


def _above(what: str, other: str, why: str, line_name: str = "") -> Phrase:
    return Phrase(
        f"{what} is {{n}} above {other}", why, _gap, _ATR, line=1, line_name=line_name or other,
    )  # fmt: skip


def _shape(parts: str, name: str, number: float) -> Phrase:
    return Phrase(
        f"{parts} form {name}", "and buyers build on such shapes", _fixed(number), "{:.0f}",
        begun=f"{parts} may become {name}",
    )  # fmt: skip


_DOUBLE: Final = _shape("{n} lows at one price", "a double bottom", 2.0)
_HEAD: Final = _shape(
    "{n} lows, the middle one beyond the others,", "an inverse head and shoulders", 3.0
)
_FLAG: Final = _shape("{n} lines around a pause after a rise", "a bull flag", 2.0)
_TRIANGLE: Final = _shape("rising lows against {n} ceiling", "an ascending triangle", 1.0)
_WEDGE: Final = _shape("{n} falling lines that draw together", "a falling wedge", 2.0)
_POOL: Final = Phrase(
    "highs at one price lie {n} above, with stops behind them",
    "and price is drawn upwards until they are taken", _size, _ATR, most=5.0,
)  # fmt: skip

_SWARM: Final[Mapping[tuple[str, ...], Phrase]] = {
    ("liquidity.sweep_low", "liquidity.sweep_high", "liquidity.sweep_age"): Phrase(
        "one of the last {n} bars took the stops below the lows and closed back above",
        "so buyers came in behind it", lambda _low, _high, age: max(2.0, age + 1.0), "{:.0f}",
        about=lambda low, high, _age: 0 if low >= high else 1,
    ),
    ("liquidity.pool_above_atr",): _POOL,
    ("liquidity.pool_below_atr",): _POOL,
    ("liquidity.delta20",): Phrase(
        "rising ticks lead falling ones by {n} of all in 20 bars", "so buyers push", _size,
        "{:.0%}", least=0.02,
    ),
    ("liquidity.divergence", "liquidity.delta20"): Phrase(
        "price fell in 20 bars while rising ticks led by {n}", "so buyers took what came",
        lambda _, delta: abs(delta), "{:.0%}",
    ),
    ("liquidity.vwap_atr",): Phrase(
        "the close is {n} above its mean price by volume", "so buyers of late are ahead",
        _size, _ATR, "the close is {n} above its mean price by volume, stretched upwards",
        _STRETCHED, least_faded=1.0,
    ),
    ("liquidity.poc_atr",): Phrase(
        "the close is {n} above the most traded price", "so buyers have left it behind",
        _size, _ATR, "the close is {n} above the most traded price, stretched upwards",
        "and price often returns to where most was traded", least_faded=1.0,
    ),
    ("liquidity.vwap_atr", "liquidity.effort"): Phrase(
        "below its mean price the bar took {n} times the usual volume for its range",
        "so buyers absorb what comes", lambda _, effort: effort, "{:.1f}",
    ),
    ("flow.up_share",): Phrase(
        "{n} of the moves inside the bar went up", "so buyers press", _larger, "{:.0%}",
        middle=0.5, least=0.02,
    ),
    ("flow.book_imbalance",): Phrase(
        "the order book leans upwards by {n} of its size", "so buyers wait below", _size,
        "{:.0%}", least=0.02,
    ),
    ("technical.body_atr", "micro.spread_percentile"): Phrase(
        "on a usual spread the bar closed {n} above its open", "so buyers paid no more for it",
        _size, _FINE_ATR,
    ),
    ("geometry.channel_slope_atr", "geometry.channel_r2"): Phrase(
        "the channel is rising by {n} a bar", "so buyers hold its slope", _size, "{:.3f} ATR"
    ),
    ("geometry.channel_place", "geometry.channel_r2"): Phrase(
        "the close is {n} of the way to the upper line of its channel", "so buyers lead",
        lambda place, _: max(place, 1.0 - place), "{:.0%}",
        "the close is {n} of the way to the upper line of its channel, stretched upwards",
        _STRETCHED, middle=0.5, least=0.1, least_faded=0.3,
    ),
    **{
        (f"geometry.pattern.{name}", "geometry.pattern_done"): saying
        for names, saying in (
            (("double_bottom", "double_top"), _DOUBLE),
            (("inverse_head_shoulders", "head_shoulders"), _HEAD),
            (("bull_flag", "bear_flag"), _FLAG),
            (("ascending_triangle", "descending_triangle"), _TRIANGLE),
            (("falling_wedge", "rising_wedge"), _WEDGE),
        )
        for name in names
    },
}  # fmt: skip
"""What a swarm's experts read that nobody else does."""

SAYINGS: Final[Mapping[tuple[str, ...], Phrase]] = {
    _ids("close", "ema20", "atr14"): _above(
        "the close", "the 20-bar exponential mean", "so buyers hold the short trend"
    ),
    _ids("body_atr"): Phrase(
        "the bar closed {n} above its open", "so buyers had the last word", _size, _FINE_ATR
    ),
    _ids("body_atr", "volume_ratio"): Phrase(
        "the rising bar had {n} its usual volume", "so buyers meant it",
        lambda _, volume: volume, "{:.1f} times", least=1.2,
    ),
    _ids("lower_wick", "upper_wick"): Phrase(
        "the lower wick takes {n} of the bar", "so buyers came in below it", max, "{:.0%}",
        least=0.3, about=lambda lower, upper: 0 if lower >= upper else 1,
    ),
    _ids("engulfing"): Phrase(
        "the last {n} bars form a bullish engulfing pattern", "so buyers took over",
        _fixed(2.0), "{:.0f}",
    ),
    _ids("hammer"): Phrase(
        "within {n} bar price fell and came back up", "so buyers stand ready below",
        _fixed(1.0), "{:.0f}",
    ),
    ("forecast.drift_pct", "forecast.low_pct", "forecast.high_pct"): Phrase(
        "the trend alone would carry price {n} up in four bars", "so it has not run dry",
        _size, "{:.2f} %",
    ),
    _ids("support_distance_atr"): _SUPPORT,
    _ids("resistance_distance_atr"): _SUPPORT,
    _ids("close", "bb_lower", "bb_mid", "bb_upper"): Phrase(
        "the close is {n} of the way to the upper Bollinger band", "so buyers lead",
        _stretch, "{:.0%}",
        "price is {n} of the way to its upper band, stretched upwards", _STRETCHED,
        line=2, line_name="the middle of the Bollinger bands", least=0.1, least_faded=0.8,
        about=lambda close, _low, mid, _high: 3 if close > mid else 1,
    ),
    _ids("close", "span_a", "span_b", "atr14"): _CLOUD,
    _ids("tenkan", "kijun", "atr14"): _above(
        "the conversion line", "the base line", "so buyers gather pace"
    ),
    _ids("adx14", "plus_di", "minus_di"): _DIRECTION,
    _ids("macd_hist", "atr14"): Phrase(
        "the MACD histogram is {n} above zero", "so upward momentum grows", _in_atr, _FINE_ATR
    ),
    _ids("macd", "atr14"): _MACD,
    _ids("rsi14"): Phrase(
        "RSI at {n} shows strength", "so buyers lead", _itself, "{:.0f}",
        "RSI at {n} is stretched upwards", _STRETCHED,
        middle=50.0, least=3.0, least_faded=12.0,
    ),
    _ids("stoch_k"): Phrase(
        "the stochastic at {n} shows strength", "so buyers lead", _itself, "{:.0f}",
        "the stochastic at {n} is stretched upwards", _STRETCHED,
        middle=50.0, least=5.0, least_faded=25.0,
    ),
    _ids("cci20"): Phrase(
        "CCI at {n} shows strength", "so buyers lead", _itself, "{:+.0f}",
        "CCI at {n} is stretched upwards", _STRETCHED,
        least=10.0, least_faded=80.0,
    ),
    _ids("trend_state"): Phrase(
        "the last {n} swings made rising highs and lows", "so the trend points up",
        _fixed(2.0), "{:.0f}",
    ),
    _ids("bos"): Phrase(
        "price broke {n} swing high", "so buyers hold that level",
        _fixed(1.0), "{:.0f}",
    ),
    _ids("close", "sma50", "atr14"): _above(
        "the close", "the 50-bar mean", "so buyers hold the medium trend"
    ),
    _ids("sma50", "sma200", "atr14"): _above(
        "the 50-bar mean", "the 200-bar mean", "so buyers hold the long trend"
    ),
    ("memory.next_bullish", "memory.next_bearish"): Phrase(
        "from here the desk's consensus has turned bullish {n} more often than bearish",
        "so its view should hold", lambda up, down: 100.0 * abs(up - down), _PER_CENT_POINTS,
    ),
    ("sentiment.news",): Phrase(
        "the tone of the news is good at {n}", "so it backs buyers", _itself, "{:+.2f}"
    ),
    ("sentiment.up_bars",): Phrase(
        "rising closes weigh {n} of the recent ones", "so the mood carries buyers", _larger,
        "{:.0%}", "rising closes weigh {n} of the recent ones, stretched upwards", _STRETCHED,
        middle=0.5, least=0.02, least_faded=0.1,
    ),
    ("sentiment.up_volume",): Phrase(
        "rising bars carry {n} of the recent volume", "so money backs buyers", _larger, "{:.0%}",
        middle=0.5, least=0.02,
    ),
    ("sentiment.streak",): Phrase(
        "{n} closes in a row rose", "so the mood carries buyers", _size, "{:.0f}",
        "{n} closes in a row rose, stretched upwards", _STRETCHED,
        least=2.0, least_faded=3.0,
    ),
    ("news.score",): Phrase(
        "all the news together is good at {n}", "so it backs buyers", _itself, "{:+.2f}"
    ),
    **{
        (f"news.{kind}_score",): Phrase(
            f"the {kind} news is good at {{n}}", "so it backs buyers", _itself, "{:+.2f}"
        )
        for kind in EVENT_CLASSES
    },
    ("cot.net_change_4w",): Phrase(
        "the large traders' net longs rose {n} of the open interest in four weeks",
        "so they stand behind buyers", _size, "{:.1f} %", least=0.5,
    ),
    ("cot.rank",): Phrase(
        "the large traders' net longs rank high at {n} of 100", "so they back buyers", _itself,
        "{:.0f}", "the large traders' net longs rank high at {n} of 100",
        "and a crowded side often turns", middle=50.0, least=5.0, least_faded=20.0,
    ),
    ("positioning.fear_greed",): Phrase(
        "the fear and greed index is high at {n} of 100", "so the mood carries buyers", _itself,
        "{:.0f}", "the fear and greed index is high at {n} of 100", _STRETCHED,
        middle=50.0, least=5.0, least_faded=20.0,
    ),
    ("derivs.funding_rank",): Phrase(
        "the funding rate ranks high at {n} of 100", "so money backs buyers", _itself, "{:.0f}",
        "the funding rate ranks high at {n} of 100", "and a crowded side often turns",
        middle=50.0, least=5.0, least_faded=20.0,
    ),
    ("macro.real_yield_change_20", "macro.real_yield_fit_r2", "macro.real_yield_fit_slope"): Phrase(
        "the 10-year real yield fell {n} in 20 trading days", "and gold still goes against it",
        _size, _OF_YIELD, least=0.02,
    ),
    ("macro.breakeven_change_20",): Phrase(
        "expected inflation rose {n} in 20 trading days", "so money backs buyers", _size,
        _OF_YIELD, least=0.02,
    ),
    ("macro.dollar_change_20",): Phrase(
        "the dollar fell {n} in 20 trading days", "so the price in dollars has the wind of buyers",
        _size, "{:.1f} %", least=0.2,
    ),
    ("macro.yield_10y_change_20",): Phrase(
        "the 10-year yield fell {n} in 20 trading days", "so money backs buyers", _size,
        _OF_YIELD, least=0.02,
    ),
    ("macro.vix_change_20",): Phrase(
        "VIX fell {n} in 20 trading days", "so the mood carries buyers", _size, _POINTS, least=0.5
    ),
    ("macro.nasdaq_change_20",): Phrase(
        "the Nasdaq rose {n} in 20 trading days", "so the mood carries buyers", _size, "{:.1f} %",
        least=0.5,
    ),
    ("macro.rate_gap_change_20",): Phrase(
        "the base currency's yield rose {n} against the other's in 20 trading days",
        "so money backs buyers", _size, _OF_YIELD, least=0.02,
    ),
    ("macro.inventories_change_20",): Phrase(
        "the stocks of crude oil fell {n} in four weeks", "so supply backs buyers", _size,
        "{:.1f} %", least=0.3,
    ),
    ("fundamentals.revenue_growth_pct",): Phrase(
        "revenue rose {n} against the year before", "so the company backs buyers", _size,
        "{:.1f} %", least=0.5,
    ),
    ("company.revenue_growth_pct",): Phrase(
        "revenue of a year rose {n} against the year before", "so the company backs buyers", _size,
        "{:.1f} %", least=0.5,
    ),
    ("company.f_score",): Phrase(
        "the F-score is high at {n} of 9", "so the company's books show strength", _itself,
        "{:.0f}", middle=4.5, least=1.0,
    ),
    ("company.accruals_pct",): Phrase(
        "cash came in above the earnings, by {n} of the assets",
        "so the earnings show strength", _size, "{:.1f} %", least=1.0,
    ),
    ("company.dilution_pct",): Phrase(
        "the number of shares fell {n} in a year", "so each share has the wind of buyers", _size,
        "{:.1f} %", least=0.5,
    ),
    ("company.valuation_rank",): Phrase(
        "the share's price ranks low at {n} of 100 among its five years",
        "so worth backs buyers", _itself, "{:.0f}", middle=50.0, least=10.0,
    ),
    _ids("close", "fib_382", "fib_618", "atr14"): Phrase(
        "the close is {n} above both Fibonacci retracements", "so buyers hold the swing",
        _outside, _ATR, line=1, line_name="a Fibonacci retracement",
    ),
    _ids("close", "fib_500", "atr14"): _above(
        "the close", "half of the last swing", "so buyers hold the swing"
    ),
    _ids("close", "kijun", "atr14"): _above(
        "the close", "the base line", "so buyers hold the medium trend"
    ),
    _ids("stoch_k", "stoch_d"): Phrase(
        "the stochastic is {n} above its signal", "so it turns up", _apart, _POINTS
    ),
    _ids("macd", "macd_signal", "atr14"): Phrase(
        "MACD is {n} above its signal", "so momentum turns up", _gap, _FINE_ATR
    ),
    **_SWARM,
    **{
        # The score beside its readings, for an analyst that has nothing else to point at.
        (f"scores.{vector}",): Phrase(
            f"the {vector.replace('_', ' ')} score of {{n}} lies below what its readings say",
            "so it should move up a little", _itself, "{:+.2f}",
        )
        for vector in VECTORS
    },
    **{
        (f"component.{name}",): Phrase(
            f"{words} leans up at {{n}} of 1", "so the score rests on it", _itself, "{:+.2f}"
        )
        for name, words in COMPONENTS.items()
    },
}  # fmt: skip
"""What can be said of readings, by the features that they read."""

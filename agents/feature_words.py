"""The words for the evidence: what each feature is called, and which way it leans.

`FEATURES` names every feature of a bundle for people, with what a high and a low value of it mean,
and says which way a value leans; `sides` is that as a check. How it is said is `sayings`' subject.

Pure values and functions. A feature that is not in the table, a host's own, has its id as its name
and may stand on either side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from .contracts import EVENT_CLASSES, PATTERNS, VECTORS, Feature

UP: Final = 1
DOWN: Final = -1
EITHER: Final = (UP, DOWN)
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

BESIDE: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    name: tuple(pair for pair in PAIRS if name in pair)
    for name in dict.fromkeys(name for pair in PAIRS for name in pair)
}
"""The pairs of each feature that is held against another."""

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


def name_of(feature: str) -> str:
    """Return the name of a feature for people; its id where the table has none."""
    found = _words_of(feature)
    return feature if found is None else found.name


def label_of(feature: str) -> str:
    """Return the short name of a feature for a chart: its own, or its name without the article."""
    return LABELS.get(feature) or name_of(feature).removeprefix("the ")


def meaning_of(feature: str) -> str:
    """Return what a high and a low value of a feature mean; "" where it is a word, or unknown."""
    found = _words_of(feature)
    if found is None or not found.high:
        return ""
    return f"high: {found.high}; low: {found.low}"


def reading_of(feature: str, side: int) -> str:
    """Return what a value that leans to a side means; "" where the table does not say."""
    found = _words_of(feature)
    if found is None or found.lean is None or found.two_sided:
        return ""
    return found.high if (side > 0) is not found.falling else found.low


def sides(feature: str, features: Mapping[str, Feature]) -> tuple[int, ...]:
    """Return the sides for which a feature may be cited as a point; () when it has none.

    A feature that the table does not know may stand for either, and so may one that leans one way
    by itself and the other way beside its like.
    """
    words = _words_of(feature) or _of_headline(feature)
    if words is None:
        return EITHER
    found = features.get(feature)
    value = None if found is None else found.value
    if words.lean is None or value is None or isinstance(value, bool):
        return ()
    if words.two_sided:
        return EITHER
    if isinstance(value, str):
        leans: int | None = ALIKE.get(value, 0)
    else:
        leans = words.lean(value, features) if _finite(value) else 0
    if leans is None:
        return EITHER
    up, down = leans > 0, leans < 0
    for one, other in BESIDE.get(feature, ()):
        a, b = _number(features, one), _number(features, other)
        if a is not None and b is not None:
            up, down = up or a > b, down or a < b
    if up:
        return EITHER if down else (UP,)
    return (DOWN,) if down else ()


def _words_of(feature: str) -> FeatureWords | None:
    """Return the words of a feature; those of a companion begin with the user's name for it."""
    found = FEATURES.get(feature)
    if found is not None or not feature.startswith(COMPANION):
        return found
    name, _, number = feature.removeprefix(COMPANION).rpartition(".")
    words = COMPANION_NUMBERS.get(number)
    return None if words is None else replace(words, name=f"{name}: {words.name}")


def _of_headline(feature: str) -> FeatureWords | None:
    """Return the words for what concerns one headline: its score leans, its age does not."""
    if not feature.startswith(HEADLINE):
        return None
    return HEADLINE_SCORE if feature.startswith(HEADLINE_SCORES) else HEADLINE_REST


# --- which way a value leans ----------------------------------------------------------------------


def _sign(value: float) -> int:
    return (value > 0.0) - (value < 0.0)


def _number(features: Mapping[str, Feature], name: str) -> float | None:
    found = features.get(name)
    value = None if found is None else found.value
    if type(value) is float:  # nearly every one
        return value if math.isfinite(value) else None
    return float(value) if not isinstance(value, str | bool | None) and _finite(value) else None


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _positive(value: float, _: Mapping[str, Feature]) -> int:
    return _sign(value)


def _negative(value: float, _: Mapping[str, Feature]) -> int:
    return -_sign(value)


def _while_it_holds(value: float, features: Mapping[str, Feature]) -> int | None:
    """Return how a change of the real yield leans: against gold, while its own fit says so."""
    found = features.get("macro.real_yield_relation")
    return -_sign(value) if found is not None and found.value == "holds" else None


def _of_their_side(value: float, features: Mapping[str, Feature]) -> int | None:
    """Return how a result of trades leans: to their side if they won."""
    found = features.get("lessons.side")
    way = {"LONG": UP, "SHORT": DOWN}.get(str(found.value)) if found is not None else None
    return None if way is None else way * _sign(value)


def _from(middle: float) -> Lean:
    return lambda value, _: _sign(value - middle)


def _below(middle: float) -> Lean:
    return lambda value, _: -_sign(value - middle)


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


def _against(name: str, high: str, low: str) -> FeatureWords:
    """Return the words of a number that leans down as it rises."""
    return FeatureWords(name, high, low, _negative, falling=True)


def _either(name: str, high: str, low: str, lean: Lean) -> FeatureWords:
    return FeatureWords(name, high, low, lean, two_sided=True)


_PART: Final = ("it leans up", "it leans down")
COMPONENTS: Final[Mapping[str, str]] = {
    "pa_trend": "price against its 20-bar exponential mean",
    "pa_slope": "the slope of the 20-bar exponential mean",
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

_LEVELS: Final[Mapping[str, str]] = {
    "real_yield": "the 10-year US real yield",
    "breakeven": "the 10-year US breakeven inflation",
    "yield_2y": "the 2-year US yield",
    "yield_10y": "the 10-year US yield",
    "slope": "the slope of the US yields (10 less 2 years)",
    "dollar": "the broad dollar index",
    "vix": "VIX",
    "nasdaq": "the Nasdaq Composite",
    "rate_gap": "the gap of the two currencies' 2-year yields",
    "inventories": "the stocks of crude oil",
    "earnings_yield": "the earnings yield of the index",
}
"""The levels of the block macro, by name."""

_RISING: Final = ("breakeven", "rate_gap", "earnings_yield", "nasdaq")
_WEIGHING: Final = ("yield_2y", "yield_10y", "dollar", "vix", "inventories")
"""Levels whose rise speaks for the symbols that read them, and against them."""

_SPANS: Final[Mapping[str, str]] = {
    "change_20": "over 20 trading days",
    "change_60": "over 60 trading days",
}


def _changed(level: str, span: str) -> FeatureWords:
    name = f"the change of {_LEVELS[level].removeprefix('the ')} {span}"
    if level == "real_yield":
        return FeatureWords(name, "it rises", "it falls", _while_it_holds, falling=True)
    if level in _WEIGHING:
        return _against(name, "it rises", "it falls")
    if level in _RISING:
        return FeatureWords(name, "it rises", "it falls", _positive)
    return _sideless(name, "it rises", "it falls")


_MACRO: Final[Mapping[str, FeatureWords]] = {
    **{level: _sideless(name, "high", "low") for level, name in _LEVELS.items()},
    **{
        f"{level}_{change}": _changed(level, span)
        for level in _LEVELS
        for change, span in _SPANS.items()
    },
    **{
        f"{level}_rank": _sideless(
            f"the rank of {name.removeprefix('the ')} among its last three years",
            "high for it", "low for it",
        )
        for level, name in _LEVELS.items()
    },
    "rate_gap": FeatureWords(
        "the gap of the two currencies' 2-year yields", "the base currency pays more",
        "it pays less", _positive,
    ),
    "real_yield_fit_r2": _sideless(
        "how well gold has gone with the real yield for 250 days (R²)", "it has", "it has not"
    ),
    "real_yield_fit_slope": _sideless(
        "the slope of gold against the real yield", "both rose together", "gold rose as it fell"
    ),
    "real_yield_relation": _sideless("whether gold still goes against the real yield", "", ""),
}  # fmt: skip

_DERIVS: Final[Mapping[str, tuple[str, str, str]]] = {
    "funding": ("the funding rate", "longs pay shorts", "shorts pay longs"),
    "open_interest": ("the open interest", "much is open", "little is"),
    "long_liquidations": ("the longs that were liquidated", "many", "few"),
    "short_liquidations": ("the shorts that were liquidated", "many", "few"),
    "dvol": ("the implied volatility", "swings are expected", "calm is"),
    "put_call": ("the puts for a call", "protection is wanted", "it is not"),
    "iv_slope": ("the slope of implied volatility", "the far one is dear", "the near one is"),
    "skew_25d": ("the 25-delta skew", "calls are dear", "puts are"),
}

_GROWING: Final[Mapping[str, tuple[str, str, str]]] = {
    "revenue_growth_pct": ("the growth of revenue in a year", "it grows", "it shrinks"),
    "earnings_growth_pct": ("the growth of earnings in a year", "it grows", "it shrinks"),
    "gross_margin_pct": ("the gross margin", "it earns on what it sells", "it does not"),
    "operating_margin_pct": ("the operating margin", "it earns", "it loses"),
    "net_margin_pct": ("the company's net margin", "it earns", "it loses"),
    "fcf_margin_pct": (
        "the free cash flow margin",
        "cash comes in",
        "cash runs out",
    ),
    "roe_pct": ("the return on equity", "it earns", "it loses"),
    "roic_pct": ("the return on invested capital", "it earns", "it loses"),
}
"""What a company earns; above 0 it speaks for the share."""

_PAID: Final[Mapping[str, str]] = {
    "pe": "the price of a year's earnings",
    "pb": "the price of the equity",
    "ev_ebitda": "the price of a year's EBITDA",
    "fcf_yield": "the price of a year's free cash flow",
}

_COMPANY: Final[Mapping[str, FeatureWords]] = {
    **{name: FeatureWords(*words, _positive) for name, words in _GROWING.items()},
    "debt_to_equity": _sideless("the debt for a unit of equity", "much debt", "little debt"),
    "interest_cover": _sideless("the operating income for a unit of interest", "safe", "tight"),
    "accruals_pct": _against(
        "the earnings that were not cash (accruals)", "earnings ran ahead of cash",
        "cash ran ahead of earnings",
    ),
    "dilution_pct": _against("the growth of the shares in a year", "new shares", "bought back"),
    "f_score": FeatureWords("the F-score", "strong", "weak", _from(4.5)),
    # Dear may be a reason to sell, or what growth is worth.
    **{
        name: _either(words, "dear", "cheap", _positive)
        for name, words in _PAID.items()
        if name != "fcf_yield"
    },
    "fcf_yield_pct": FeatureWords(
        "the free cash flow yield", "cheap", "dear", _positive, two_sided=True
    ),
    **{
        f"{name}_rank": _either(
            f"the rank of {words.removeprefix('the ')} among five years", "dear for it",
            "cheap for it", _from(50.0),
        )
        for name, words in _PAID.items()
    },
    "valuation_rank": FeatureWords(
        "how dear the share is among its five years", "dear for it", "cheap for it",
        _below(50.0), falling=True,
    ),
    "valuation": _sideless("whether the share is dear for itself", "", ""),
    "implied_growth_pct": _sideless(
        "the growth that the price bets on", "much growth is paid for", "little is"
    ),
    "period_end": _sideless("the end of the newest reported period", "", ""),
    "filed": _sideless("the day of the report", "", ""),
}  # fmt: skip

_OUTSIDE: Final[Mapping[str, FeatureWords]] = {
    **{f"company.{name}": words for name, words in _COMPANY.items()},
    "source.company": _sideless("the state of the company's reports", "", ""),
    **{f"macro.{name}": words for name, words in _MACRO.items()},
    "cot.net_pct": _either(
        "the net longs of the CFTC's report", "the large traders are long", "they are short",
        _positive,
    ),
    "cot.net_change_4w": FeatureWords(
        "the change of those net longs over 4 weeks", "they bought", "they sold", _positive
    ),
    "cot.rank": _either(
        "the rank of those net longs among three years", "crowded long", "crowded short",
        _from(50.0),
    ),
    "positioning.fear_greed": _either(
        "the fear and greed index", "greed", "fear", _from(50.0)
    ),
    "positioning.rank": _either(
        "the rank of the positions among three years", "crowded long", "crowded short",
        _from(50.0),
    ),
    "positioning.crowded": _sideless("the crowded side", "", ""),
    **{
        f"derivs.{name}": _either(*words, _positive) if name == "funding" else _sideless(*words)
        for name, words in _DERIVS.items()
    },
    "derivs.open_interest_change": _sideless(
        "the change of the open interest", "positions were opened", "positions were closed"
    ),
    **{
        f"derivs.{name}_rank": _either(
            f"the rank of {words[0].removeprefix('the ')} among three years", words[1], words[2],
            _from(50.0),
        )
        if name == "funding"
        else _sideless(
            f"the rank of {words[0].removeprefix('the ')} among three years", words[1], words[2]
        )
        for name, words in _DERIVS.items()
    },
    "source.macro": _sideless("the state of the yields and their like", "", ""),
    "source.cot": _sideless("the state of the CFTC's report", "", ""),
    "source.derivs": _sideless("the state of the derivatives' numbers", "", ""),
    "source.companion": _sideless("the state of the companions", "", ""),
    "flow.ticks": _sideless("the ticks of the bar", "busy", "quiet"),
    "flow.ticks_ratio": _sideless("the ticks against the mean of 20 bars", "busy", "quiet"),
    "flow.up_share": _either(
        "the share of moves that went up", "buyers pushed", "sellers pushed", _from(0.5)
    ),
    "flow.spread_mean_atr": _sideless(
        "the mean spread of the bar's ticks in ATR", "trading is dear", "trading is cheap"
    ),
    "flow.spread_widest_atr": _sideless(
        "the widest spread of the bar's ticks in ATR", "it gaped", "it held"
    ),
    "flow.book_levels": _sideless("the levels of the order book", "a deep book", "a thin one"),
    "flow.book_imbalance": _either(
        "the imbalance of the order book", "more is bid", "more is offered", _positive
    ),
    "flow.slippage_atr": _sideless(
        "the slippage of one lot in ATR", "size costs", "size is cheap"
    ),
    "flow.book_events": _sideless("the changes of the order book", "nervous", "calm"),
    "source.flow": _sideless("the state of the order flow", "", ""),
}  # fmt: skip
"""Numbers from beside the chart (torra.evidence.outside_readings)."""

_OTHERS: Final[Mapping[str, FeatureWords]] = {
    "forecast.drift_pct": FeatureWords(
        "the forecast of the trend", "it drifts up", "it drifts down", _positive
    ),
    "forecast.low_pct": _sideless("the lower end of the forecast", "little risk", "much risk"),
    "forecast.high_pct": _sideless("the upper end of the forecast", "much room", "little room"),
    "order.side": _sideless("the side of the order", "", ""),
    "order.entry": _sideless("the entry", "", ""),
    "order.stop": _sideless("the stop", "", ""),
    "order.target": _sideless("the target", "", ""),
    "order.stop_atr": _sideless("the stop's distance in ATR", "much room", "little room"),
    "order.reward_r": _sideless("the reward in R", "much to gain", "little to gain"),
    "order.conviction": _sideless("the desk's conviction", "it is sure", "it is not sure"),
    "market.spread_atr": _sideless("the spread", "trading is dear", "trading is cheap"),
    "market.valid_bars": _sideless("the bars held", "enough history", "little history"),
    "market.bar_age": _sideless("the age of the bar", "it is old", "it is fresh"),
    "market.range_atr": _sideless("the range of the bar", "a wide bar", "a narrow bar"),
    "market.session": _sideless("the session", "", ""),
    "market.day_of_week": _sideless("the day", "", ""),
    "market.regime": FeatureWords("the kind of market", "", "", _positive),
    "market.triage": _sideless("what is odd about the bar", "", ""),
    "market.triage_unknown": _sideless("what may be odd about the bar, unknown", "", ""),
    "spread.available": _sideless("the feed's own spread", "it is known", "it is not known"),
    "spread.last": _sideless("the spread of the bar", "trading is dear", "trading is cheap"),
    "spread.last_atr": _sideless(
        "the spread of the bar in ATR", "trading is dear", "trading is cheap"
    ),
    "spread.mean_atr": _sideless(
        "the mean spread of 20 bars in ATR", "trading is dear", "trading is cheap"
    ),
    "spread.percentile": _sideless(
        "the spread's rank among the last 500 bars", "dear for this market", "cheap for it"
    ),
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
    "lessons.side": _sideless("the side that similar trades are seen from", "", ""),
    "lessons.similar": _sideless("the number of similar trades", "many", "few"),
    "lessons.win_share": _sideless("the share of similar trades that won", "many won", "few won"),
    "lessons.mean_r": FeatureWords("the mean result of similar trades", "", "", _of_their_side),
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
    **{
        f"fundamentals.{name}_to_peers": _either(
            f"{words} beside its peers'", "dearer than they", "cheaper than they", _from(1.0)
        )
        for name, words in (
            ("pe", "the price of a unit of earnings"),
            ("pb", "the price of a unit of book value"),
        )
    },
    "fundamentals.analyst_rating": FeatureWords(
        "the ratings of analysts", "they say buy", "they say sell", _positive
    ),
    "fundamentals.earnings_surprise_pct": FeatureWords(
        "the surprise of the last earnings", "they beat the estimate", "they missed it", _positive
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

_LIQUIDITY: Final[Mapping[str, FeatureWords]] = {
    "sweep_high": _against(
        "the sweep of a swing high", "stops above it were taken, and it closed back below",
        "none of late",
    ),
    "sweep_low": FeatureWords(
        "the sweep of a swing low", "stops below it were taken, and it closed back above",
        "none of late", _positive,
    ),
    "sweep_age": _sideless("the bars since the last sweep", "long ago", "just now"),
    "pool_above_atr": _either(
        "the way up to the nearest pool of stops", "it is far", "it is near, and draws price",
        _positive,
    ),
    "pool_below_atr": _either(
        "the way down to the nearest pool of stops", "it is far", "it is near, and draws price",
        _negative,
    ),
    "pool_above_touches": _sideless("the swing highs of that pool", "many", "there is none"),
    "pool_below_touches": _sideless("the swing lows of that pool", "many", "there is none"),
    "effort": _sideless(
        "the effort beside its result", "much volume moved price little",
        "little volume moved it far",
    ),
    "vwap_atr": _either(
        "the close against its mean price by volume", "above it", "below it", _positive
    ),
    "poc_atr": _either(
        "the close against the most traded price", "above it", "below it", _positive
    ),
    "delta20": _either(
        "the delta of 20 bars", "more moves went up", "more moves went down", _positive
    ),
    "divergence": FeatureWords(
        "the divergence of price and delta", "price fell while delta rose",
        "price rose while delta fell", _positive,
    ),
}  # fmt: skip
"""Where orders were taken and where they rest (torra.evidence.liquidity_readings)."""

_MICRO: Final[Mapping[str, FeatureWords]] = {
    "spread_percentile": _sideless(
        "the spread's rank among those of its hour of the day", "dear for its hour",
        "cheap for its hour",
    ),
    "spread_jump": _sideless(
        "the spread against the median of its hour", "it jumped", "it is as usual"
    ),
    "spread_count": _sideless("the spreads known of that hour", "many", "few"),
}  # fmt: skip
"""What it costs to trade, for the hour (torra.evidence.micro_readings)."""

_FOUND: Final = ("code found it", "it is not there")
_PATTERNS: Final[Mapping[str, Lean]] = {
    **dict.fromkeys(
        (
            *("head_shoulders", "double_top", "bear_flag", "descending_triangle"),
            "rising_wedge",
        ),
        _negative,
    ),
    **dict.fromkeys(
        (
            *("inverse_head_shoulders", "double_bottom", "bull_flag", "ascending_triangle"),
            "falling_wedge",
        ),
        _positive,
    ),
}
"""Which way each pattern leans where it is found."""

_GEOMETRY: Final[Mapping[str, FeatureWords]] = {
    "channel_slope_atr": FeatureWords(
        "the slope of the channel", "it rises", "it falls", _positive
    ),
    "channel_r2": _sideless("how well the channel fits (R²)", "price keeps to it", "it does not"),
    "channel_place": _either(
        "the place in the channel", "near its upper line", "near its lower line", _from(0.5)
    ),
    "compression": _sideless(
        "the range of 20 bars beside that of 100", "it has widened", "it is compressed"
    ),
    "double_top_gap_atr": _sideless(
        "the gap of the two last swing highs", "they differ", "they are equal"
    ),
    "double_bottom_gap_atr": _sideless(
        "the gap of the two last swing lows", "they differ", "they are equal"
    ),
    "neckline_atr": FeatureWords(
        "the close against the neckline", "above it", "below it", _positive
    ),
    "fib_nearest": _sideless("the nearest retracement", "", ""),
    "fib_distance_atr": FeatureWords(
        "the close against that retracement", "above it", "below it", _positive
    ),
    **{
        f"level.{number}": _either(
            f"computed level {number}", "it lies above the close", "it lies below the close",
            _LEVEL,
        )
        for number in range(1, 9)
    },
    **{
        f"pattern.{name}": FeatureWords(
            f"the pattern {name.replace('_', ' ')}", *_FOUND, _PATTERNS[name],
            falling=_PATTERNS[name] is _negative,
        )
        for name in PATTERNS
    },
    "pattern_done": _sideless(
        "whether a pattern is completed", "a close beyond its line", "not yet"
    ),
}  # fmt: skip
"""The shape of the chart (torra.evidence.geometry_readings)."""

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
    **_OUTSIDE,
    **{f"liquidity.{name}": words for name, words in _LIQUIDITY.items()},
    **{f"micro.{name}": words for name, words in _MICRO.items()},
    **{f"geometry.{name}": words for name, words in _GEOMETRY.items()},
}
"""Every feature of a bundle, by id; the features of single headlines are not among them."""

COMPANION: Final = "companion."
COMPANION_NUMBERS: Final[Mapping[str, FeatureWords]] = {
    **{
        f"change_{bars}": _either(
            f"change over {bars} bar{'s' if bars > 1 else ''}", "it rose", "it fell", _positive
        )
        for bars in (1, 5, 20)
    },
    "percentile": _either(
        "rank of its close among its last 250", "high for it", "low for it", _from(50.0)
    ),
    "correlation": _sideless(
        "correlation with this symbol over 60 bars", "they move together", "they move opposite"
    ),
}
"""What is read of each companion, after the user's name for it (torra.evidence)."""

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

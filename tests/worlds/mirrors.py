"""A market in the features of one tick, and the same market upside down.

Every value lies on a grid of binary fractions, so that turning it round is exact.
"""

from __future__ import annotations

from hypothesis import strategies as st

from agents.contracts import EVENT_CLASSES, VECTORS
from technical_calculator import INDICATORS

Values = dict[str, float | str | None]

MARKET: Values = {
    **{f"technical.{name}": 0.0 for name in INDICATORS},
    "technical.close": 100.0,
    "technical.atr14": 1.0,
    **{
        f"technical.{name}": 100.0
        for name in ("ema20", "sma20", "sma50", "sma200", "bb_mid", "tenkan", "kijun")
    },
    **{f"technical.{name}": 100.0 for name in ("span_a", "span_b")},
    **{f"technical.{name}": 100.0 for name in ("fib_382", "fib_500", "fib_618")},
    "technical.support": 99.0,
    "technical.resistance": 101.0,
    "technical.swing_low": 98.5,
    "technical.swing_high": 101.5,
    "technical.bb_lower": 98.0,
    "technical.bb_upper": 102.0,
    "technical.rsi14": 50.0,
    "technical.stoch_k": 50.0,
    "technical.stoch_d": 50.0,
    "technical.adx14": 40.0,
    "technical.plus_di": 20.0,
    "technical.minus_di": 20.0,
    "technical.support_distance_atr": 1.0,
    "technical.resistance_distance_atr": 1.0,
    "technical.volume_ratio": 1.0,
    "technical.upper_wick": 0.25,
    "technical.lower_wick": 0.25,
    "technical.volatility_percentile": 50.0,
    "forecast.drift_pct": 0.0,
    "forecast.low_pct": -2.0,
    "forecast.high_pct": 2.0,
    "memory.next_bullish": 0.4,
    "memory.next_bearish": 0.4,
    "memory.trend_direction": "flat",
    "market.session": "LONDON",
    "market.day_of_week": "Tuesday",
    "sentiment.news": 0.0,
    "sentiment.up_bars": 0.5,
    "sentiment.up_volume": 0.5,
    "sentiment.streak": 0.0,
    "news.items": 3.0,
    "news.score": 0.0,
    **{f"news.{name}_items": 1.0 for name in EVENT_CLASSES},
    **{f"news.{name}_score": 0.0 for name in EVENT_CLASSES},
    **{f"news.item_score.{n}": 0.0 for n in (1, 2, 3)},
    **{f"news.item_age_h.{n}": float(n) for n in (1, 2, 3)},
    **{f"news.item_event.{n}": "macro" for n in (1, 2, 3)},
}
"""A market that leans neither way, in what ADX calls a trend."""

PRICES = (
    *("technical.close", "technical.ema20", "technical.sma50", "technical.sma200"),
    *("technical.bb_mid", "technical.tenkan", "technical.kijun"),
    *("technical.span_a", "technical.span_b"),
    *("technical.fib_382", "technical.fib_500", "technical.fib_618"),
)
SIGNED = (
    *("technical.macd", "technical.macd_hist", "technical.cci20", "technical.body_atr"),
    "technical.macd_signal",
    *("technical.engulfing", "technical.hammer", "technical.trend_state", "technical.bos"),
)
TONES = (
    *("sentiment.news", "news.score"),
    *(f"news.{name}_score" for name in EVENT_CLASSES),
    *(f"news.item_score.{n}" for n in (1, 2, 3)),
)
SHARES = ("sentiment.up_bars", "sentiment.up_volume")
REGIMES = {"trend_up": "trend_down", "trend_down": "trend_up"}
OSCILLATORS = ("technical.rsi14", "technical.stoch_k", "technical.stoch_d")
SWAPPED = (
    ("technical.plus_di", "technical.minus_di"),
    ("technical.lower_wick", "technical.upper_wick"),
    ("technical.support_distance_atr", "technical.resistance_distance_atr"),
    ("memory.next_bullish", "memory.next_bearish"),
)
BELOW_AND_ABOVE = tuple(
    (f"technical.{below}", f"technical.{above}")
    for below, above in (
        ("bb_lower", "bb_upper"), ("support", "resistance"), ("swing_low", "swing_high"),
    )
)  # fmt: skip
HEADING = {"rising": "falling", "falling": "rising", "flat": "flat"}


def mirrored(values: Values) -> Values:
    """Return the same market upside down, around a price of 100."""
    made = dict(values)
    for name in PRICES:
        made[name] = 200.0 - values[name]
    for name in (*SIGNED, *TONES, "sentiment.streak"):
        made[name] = -values[name]
    for name in OSCILLATORS:
        made[name] = 100.0 - values[name]
    for name in SHARES:
        made[name] = 1.0 - values[name]
    for one, other in SWAPPED:
        made[one], made[other] = values[other], values[one]
    for below, above in BELOW_AND_ABOVE:
        made[below], made[above] = 200.0 - values[above], 200.0 - values[below]
    made["forecast.drift_pct"] = -values["forecast.drift_pct"]
    made["forecast.low_pct"] = -values["forecast.high_pct"]
    made["forecast.high_pct"] = -values["forecast.low_pct"]
    made["memory.trend_direction"] = HEADING[str(values["memory.trend_direction"])]
    regime = values.get("market.regime")
    made["market.regime"] = REGIMES.get(str(regime), regime)
    return made


STEP = st.integers(-64, 64)
MARKETS = st.fixed_dictionaries(
    {
        **{name: STEP.map(lambda n: 100.0 + n / 16) for name in PRICES},
        **{name: STEP.map(lambda n: n / 32) for name in SIGNED[:5]},
        **{name: st.sampled_from([-1.0, 0.0, 1.0]) for name in SIGNED[5:]},
        **{name: st.integers(0, 100).map(float) for name in OSCILLATORS},
        **{name: st.integers(0, 64).map(lambda n: n / 64) for pair in SWAPPED for name in pair},
        **{name: STEP.map(lambda n: n / 64) for name in TONES},
        **{name: st.integers(0, 64).map(lambda n: n / 64) for name in SHARES},
        "sentiment.streak": st.integers(-20, 20).map(float),
        "market.regime": st.sampled_from(["trend_up", "trend_down", "range", "volatile", "quiet"]),
        "technical.adx14": st.integers(5, 60).map(float),
        "technical.volume_ratio": st.integers(0, 48).map(lambda n: n / 16),
        "forecast.drift_pct": STEP.map(lambda n: n / 64),
        "memory.trend_direction": st.sampled_from(list(HEADING)),
        "technical.volatility_percentile": st.integers(0, 100).map(float),
        "market.session": st.sampled_from(["ASIA", "LONDON", "NEW_YORK", "CLOSED"]),
    }
).map(lambda drawn: MARKET | drawn)
SCORES = st.fixed_dictionaries({vector: STEP.map(lambda n: n / 64) for vector in VECTORS})

"""A market in the features of one tick, and the same market upside down.

Every value lies on a grid of binary fractions, so that turning it round is exact.
"""

from __future__ import annotations

from hypothesis import strategies as st

from agents.contracts import EVENT_CLASSES, PATTERNS, VECTORS
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


# --- what a swarm sees beside it ------------------------------------------------------------------

DXY = "companion.dxy."

SWARM: Values = MARKET | {
    "market.regime": "trend_up",
    "market.triage": "",
    "liquidity.sweep_high": 0.0,
    "liquidity.sweep_low": 0.0,
    "liquidity.sweep_age": 40.0,
    "liquidity.pool_above_atr": 2.0,
    "liquidity.pool_below_atr": 2.0,
    "liquidity.effort": 1.0,
    **{f"liquidity.{name}": 0.0 for name in ("vwap_atr", "poc_atr", "delta20", "divergence")},
    "micro.spread_percentile": 50.0,
    "micro.spread_jump": 1.0,
    "flow.up_share": 0.5,
    "flow.book_imbalance": 0.0,
    "flow.book_events": 0.0,
    "flow.slippage_atr": 0.01,
    "geometry.channel_slope_atr": 0.0,
    "geometry.channel_r2": 0.5,
    "geometry.channel_place": 0.5,
    "geometry.compression": 0.6,
    "geometry.pattern_done": 0.0,
    **{f"geometry.pattern.{name}": 0.0 for name in PATTERNS},
    **{f"geometry.level.{place}": 100.0 + way for place, way in enumerate((1.0, -2.0, 3.0), 1)},
    f"{DXY}change_20": 0.0,
    f"{DXY}percentile": 50.0,
    f"{DXY}correlation": -0.75,
    "macro.vix_change_20": 0.0,
    "macro.vix_rank": 50.0,
    "derivs.funding_rank": 50.0,
}
"""A market that leans neither way, with all that a swarm may see of it."""

TURNED = (
    *(f"liquidity.{name}" for name in ("vwap_atr", "poc_atr", "delta20", "divergence")),
    *("flow.book_imbalance", "geometry.channel_slope_atr", f"{DXY}change_20"),
    *("macro.vix_change_20", "board.lean"),
)
COMPLEMENTED = {"flow.up_share": 1.0, "geometry.channel_place": 1.0, f"{DXY}percentile": 100.0}
COMPLEMENTED |= {"derivs.funding_rank": 100.0}
TWINS = (
    ("liquidity.sweep_high", "liquidity.sweep_low"),
    ("liquidity.pool_above_atr", "liquidity.pool_below_atr"),
    ("board.long", "board.short"),
    *(
        (f"geometry.pattern.{one}", f"geometry.pattern.{other}")
        for one, other in (
            ("double_bottom", "double_top"),
            ("inverse_head_shoulders", "head_shoulders"),
            ("bull_flag", "bear_flag"),
            ("ascending_triangle", "descending_triangle"),
            ("falling_wedge", "rising_wedge"),
        )
    ),
)
PATTERN_TWINS = {a.rpartition(".")[2]: b.rpartition(".")[2] for a, b in TWINS[3:]}
PATTERN_TWINS |= {b: a for a, b in PATTERN_TWINS.items()}
ODD_TWINS = {"exhaustion_top": "capitulation_bottom", "capitulation_bottom": "exhaustion_top"}
WORD_TWINS = {"LONG": "SHORT", "SHORT": "LONG", "BUY": "SELL", "SELL": "BUY"}
REGIME_TWINS = {"trend_up": "trend_down", "trend_down": "trend_up"}

DRAWN = {
    **{f"liquidity.{side}": st.sampled_from([0.0, 1.0]) for side in ("sweep_high", "sweep_low")},
    "liquidity.sweep_age": st.integers(0, 8).map(float),
    **{
        f"liquidity.pool_{side}_atr": st.one_of(st.none(), st.integers(0, 64).map(lambda n: n / 8))
        for side in ("above", "below")
    },
    "liquidity.effort": st.integers(0, 64).map(lambda n: n / 16),
    **{f"liquidity.{name}": STEP.map(lambda n: n / 8) for name in ("vwap_atr", "poc_atr")},
    "liquidity.delta20": STEP.map(lambda n: n / 64),
    "liquidity.divergence": st.sampled_from([-1.0, 0.0, 1.0]),
    "micro.spread_percentile": st.one_of(st.none(), st.integers(0, 100).map(float)),
    "micro.spread_jump": st.integers(8, 40).map(lambda n: n / 8),
    "flow.up_share": st.one_of(st.none(), st.integers(0, 64).map(lambda n: n / 64)),
    "flow.book_imbalance": STEP.map(lambda n: n / 64),
    "flow.book_events": st.sampled_from([0.0, 19.0, 20.0, 300.0]),
    "geometry.channel_slope_atr": STEP.map(lambda n: n / 256),
    "geometry.channel_r2": st.integers(0, 64).map(lambda n: n / 64),
    "geometry.channel_place": st.integers(0, 64).map(lambda n: n / 64),
    "geometry.compression": st.integers(0, 64).map(lambda n: n / 64),
    "geometry.pattern_done": st.sampled_from([0.0, 1.0]),
    **{f"geometry.pattern.{name}": st.sampled_from([0.0, 0.0, 0.0, 1.0]) for name in PATTERNS},
    f"{DXY}change_20": STEP.map(lambda n: n / 32),
    f"{DXY}percentile": st.integers(0, 100).map(float),
    f"{DXY}correlation": STEP.map(lambda n: n / 64),
    "macro.vix_change_20": STEP.map(lambda n: n / 8),
    "macro.vix_rank": st.integers(0, 100).map(float),
    "derivs.funding_rank": st.integers(0, 100).map(float),
    "market.triage": st.sampled_from(
        ["", "gap", "range_spike volume_spike breakout", "range_spike volume_spike exhaustion"]
    ),
    "memory.position": st.sampled_from(["LONG", "SHORT", None]),
}
SWARM_MARKETS = st.tuples(MARKETS, st.fixed_dictionaries(DRAWN)).map(
    lambda drawn: SWARM | drawn[0] | drawn[1]
)


def mirrored_swarm(values: Values) -> Values:
    """Return the same market upside down, around a price of 100."""
    made = mirrored(values)
    for name in TURNED:
        if isinstance(value := values.get(name), float):
            made[name] = -value
    for name, whole in COMPLEMENTED.items():
        if isinstance(value := values.get(name), float):
            made[name] = whole - value
    for one, other in TWINS:
        if one in values:
            made[one], made[other] = values[other], values[one]
    for name in values:
        if name.startswith(("geometry.level.", "order.stop")):
            made[name] = 200.0 - float(values[name] or 0.0)
    for name in ("memory.position", "board.dominant", "lessons.side", "order.side"):
        if name in values:
            made[name] = WORD_TWINS.get(str(values[name]), values[name])
    return made

"""The evidence of a tick: ids, units, rounding, the forecast, and nothing later than as_of."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from price_series import sample

from agents.contracts import VECTORS
from technical_calculator import COLUMNS, COMPONENTS, INDICATORS, score_frame
from torra.clock import iso
from torra.config import SYMBOLS
from torra.feature_bundle import (
    EMA_LAG,
    HORIZON,
    MAX_SPREAD_ATR,
    NOT_PRICES,
    Bundle,
    build,
    plain,
)

OPENED = datetime(2021, 11, 1, 10, tzinfo=UTC)
CLOSED = OPENED + timedelta(minutes=15)
MEMORY: dict[str, Any] = {
    "current_markov_state": "BULLISH",
    "state_duration": 3,
    "next_probabilities": {
        "STRONG_BEARISH": 0.05,
        "BEARISH": 0.1,
        "NEUTRAL": 0.2,
        "BULLISH": 0.4,
        "STRONG_BULLISH": 0.25,
    },
    "sentiment_trend": [0.31, 0.28, 0.42],
    "trend_direction": "rising",
    "position": "LONG",
    "session": "LONDON",
    "day_of_week": "Monday",
    "losing_streak": 2,
    "open_elsewhere": 1,
}

FROM_SWINGS = ("swing", "support", "resistance", "fib")


def made_row(**changes: float) -> dict[str, float]:
    row = dict.fromkeys(COLUMNS, 0.25) | {"valid": 1.0}
    return row | {"close": 100.0, "ema20": 99.0, "atr14": 2.0} | changes


def bundle(row: dict[str, float] | None = None, **changes: Any) -> Bundle:
    given_: dict[str, Any] = {
        "symbol": "BTCUSD",
        "timeframe": "M15",
        "bar_time": OPENED,
        "as_of": CLOSED,
        "row": made_row() if row is None else row,
        "spread": 0.5,
        "bars_held": 750,
        "bar_age": 0.0,
        "memory": MEMORY,
    }
    return build(**{**given_, **changes})


def values(made: Bundle) -> dict[str, Any]:
    return {name: feature.value for name, feature in made.features.items()}


EXPECTED = {
    *(f"scores.{name}" for name in VECTORS),
    *(f"technical.{name}" for name in INDICATORS),
    *(f"component.{name}" for names in COMPONENTS.values() for name in names),
    *(f"forecast.{name}" for name in ("drift_pct", "low_pct", "high_pct")),
    *(
        f"market.{name}"
        for name in ("spread_atr", "valid_bars", "bar_age", "session", "day_of_week")
    ),
    *(
        f"memory.{name}"
        for name in (
            *("markov_state", "state_duration", "next_bullish", "next_bearish"),
            *("trend_direction", "consensus_last", "losing_streak", "open_elsewhere", "position"),
        )
    ),
    *("news.available", "sentiment.positioning_available", "fundamentals.available"),
}


def test_the_ids_are_those_that_other_parts_cite() -> None:
    made = bundle()
    assert set(made.features) == EXPECTED
    assert all(name == feature.id for name, feature in made.features.items())
    assert {feature.as_of for feature in made.features.values()} == {iso(CLOSED)}


def test_every_unit_belongs_to_an_indicator_and_the_rest_are_prices() -> None:
    assert set(NOT_PRICES) <= set(INDICATORS)
    units = {name: feature.unit for name, feature in bundle().features.items()}
    assert units["technical.ema20"] == "price"
    assert units["technical.support_distance_atr"] == "ATR"
    assert units["technical.rsi14"] == "of 100"
    assert units["forecast.low_pct"] == "%"


def test_the_memory_is_told_as_it_is_remembered() -> None:
    found = values(bundle())
    assert found["memory.markov_state"] == "BULLISH"
    assert found["memory.state_duration"] == 3
    assert found["memory.next_bullish"] == pytest.approx(0.65)
    assert found["memory.next_bearish"] == pytest.approx(0.15)
    assert found["memory.consensus_last"] == 0.42
    assert found["memory.trend_direction"] == "rising"
    assert found["memory.position"] == "LONG"
    assert found["memory.losing_streak"] == 2
    assert found["memory.open_elsewhere"] == 1
    assert found["market.session"] == "LONDON"
    assert found["market.day_of_week"] == "Monday"


def test_without_memory_there_is_no_guess() -> None:
    found = values(bundle(memory={}))
    unknown = {name for name, value in found.items() if value is None}
    assert unknown == {name for name in EXPECTED if name.startswith("memory.")} | {
        "market.session",
        "market.day_of_week",
    }
    assert values(bundle(memory={"sentiment_trend": []}))["memory.consensus_last"] is None


def test_nothing_wired_is_said_to_be_nothing() -> None:
    found = values(bundle())
    assert found["news.available"] == found["fundamentals.available"] == 0


def test_what_is_not_a_number_is_none() -> None:
    found = values(bundle(made_row(support=math.nan, fib_382=math.inf)))
    assert found["technical.support"] is None
    assert found["technical.fib_382"] is None
    assert found["technical.resistance"] == 0.25


def test_the_bundle_is_json_as_it_stands() -> None:
    text = json.dumps(values(bundle(made_row(support=math.nan))), allow_nan=False)
    assert json.loads(text)["technical.close"] == 100


@given(st.floats(-1e15, 1e15), st.integers(0, 12))
def test_a_number_and_its_text_in_a_prompt_are_the_same(number: float, decimals: int) -> None:
    value = plain(number, decimals)
    assert isinstance(value, float)
    text = f"{value:.{decimals}f}"
    assert float(text) == value
    assert not (value == 0.0 and text.startswith("-"))
    assert math.isclose(value, number, rel_tol=1e-15, abs_tol=0.5000001 * 10.0**-decimals)


def test_words_and_nothing_stay_what_they_are() -> None:
    assert plain("ASIA", 2) == "ASIA"
    assert plain(None, 2) is None
    assert plain(True, 2) == 1.0
    assert plain(math.nan, 2) is plain(-math.inf, 2) is None


DECIMALS = {
    "scores.momentum": 4,
    "component.mo_rsi": 4,
    "technical.close": 7,
    "technical.macd_hist": 7,
    "technical.rsi14": 2,
    "technical.cci20": 2,
    "technical.body_atr": 4,
    "technical.upper_wick": 4,
    "technical.volume_ratio": 4,
    "technical.volume_sma20": 2,
    "technical.bos": 0,
    "forecast.drift_pct": 4,
    "market.spread_atr": 4,
    "market.valid_bars": 0,
    "market.bar_age": 2,
    "memory.losing_streak": 0,
    "memory.next_bullish": 4,
    "memory.consensus_last": 4,
    "news.available": 0,
}


def test_every_number_has_the_decimals_of_its_kind() -> None:
    row = made_row(**dict.fromkeys(("close", "macd_hist", "cci20", "volume_ratio"), 1 / 3))
    made = bundle(row, digits=5)
    assert {name: made.features[name].decimals for name in DECIMALS} == DECIMALS
    assert bundle(row, digits=2).features["technical.close"].value == 0.3333
    for feature in made.features.values():
        if isinstance(feature.value, float):
            assert feature.decimals is not None
            assert round(feature.value, feature.decimals) == feature.value
        else:
            assert feature.decimals is None


def test_a_punctual_tick_has_a_bar_of_no_age() -> None:
    age = bundle(bar_age=0.0031).features["market.bar_age"]
    assert (age.value, f"{age.value:.{age.decimals}f}") == (0.0, "0.00")
    assert values(bundle(bar_age=2.0062))["market.bar_age"] == 2.01


@pytest.mark.parametrize("name", ["BTCUSD_M15", "EURUSD_H1"])
def test_rounding_leaves_every_price_of_the_sample_three_digits(name: str) -> None:
    """A MACD of EURUSD is a ten-thousandth; what is smaller still is told to its last decimal."""
    rows = score_frame(sample(name).iloc[-1500:]).iloc[700:]
    digits = SYMBOLS[name.partition("_")[0]].digits
    macds = 0
    for _, row in rows.iloc[::10].iterrows():
        found = values(bundle(row.to_dict(), digits=digits))
        for indicator in ("close", "ema20", "atr14", "macd", "macd_signal", "macd_hist"):
            exact, told = row[indicator], found[f"technical.{indicator}"]
            assert abs(told - exact) <= 0.51 * 10.0 ** -(digits + 2)
            if abs(exact) >= 10.0**-digits:
                macds += indicator == "macd"
                assert abs(told - exact) <= 0.0051 * abs(exact)
    assert macds > 50


# --- spread and forecast --------------------------------------------------------------------------


def test_the_spread_is_measured_in_atr() -> None:
    assert values(bundle(spread=0.5))["market.spread_atr"] == 0.25
    assert values(bundle(spread=0.0))["market.spread_atr"] == 0.0


def test_a_dead_market_has_a_wide_spread() -> None:
    assert values(bundle(made_row(atr14=0.0)))["market.spread_atr"] == MAX_SPREAD_ATR
    assert values(bundle(made_row(atr14=0.0), spread=0.0))["market.spread_atr"] == 0.0
    assert values(bundle(made_row(atr14=1e-12)))["market.spread_atr"] == MAX_SPREAD_ATR


def test_an_unknown_atr_gives_no_spread_and_no_forecast() -> None:
    found = values(bundle(made_row(atr14=math.nan)))
    assert found["market.spread_atr"] is None
    assert found["forecast.low_pct"] is None


def test_the_forecast_follows_its_formula() -> None:
    found = values(bundle())
    drift = 100 * HORIZON * 1.0 / EMA_LAG / 100
    band = 100 * 2.0 * HORIZON**0.5 / 100
    assert found["forecast.drift_pct"] == round(drift, 4)
    assert found["forecast.low_pct"] == round(drift - band, 4)
    assert found["forecast.high_pct"] == round(drift + band, 4)


def test_a_straight_trend_is_forecast_exactly() -> None:
    slope, weight, ema = 0.5, 2 / 21, 0.0
    prices = [1000 + slope * at for at in range(2000)]
    ema = prices[0]
    for price in prices:
        ema += weight * (price - ema)
    found = values(bundle(made_row(close=prices[-1], ema20=ema)))
    assert found["forecast.drift_pct"] == pytest.approx(
        100 * slope * HORIZON / prices[-1], abs=5.1e-5
    )


@given(st.floats(1, 1e5), st.floats(-0.1, 0.1), st.floats(0, 0.1), st.floats(1e-3, 1e3))
def test_the_forecast_knows_no_currency_and_lies_in_its_band(
    close: float, distance: float, atr: float, scale: float
) -> None:
    def forecast(factor: float) -> list[float]:
        row = made_row(
            close=close * factor, ema20=close * factor * (1 - distance), atr14=close * atr * factor
        )
        found = values(bundle(row))
        return [found[f"forecast.{name}_pct"] for name in ("low", "drift", "high")]

    low, drift, high = forecast(1.0)
    assert low <= drift <= high
    assert drift * distance >= 0
    assert forecast(scale) == pytest.approx([low, drift, high], rel=1e-5, abs=1.01e-4)


# --- real rows ------------------------------------------------------------------------------------


def test_a_real_row_becomes_evidence_with_a_note_for_each_score() -> None:
    bars = sample("BTCUSD_M15").iloc[-750:]
    frame = score_frame(bars)
    row = frame.iloc[-1].to_dict()
    opened = bars.index[-1].to_pydatetime()
    made = bundle(row, bar_time=opened, as_of=opened + timedelta(minutes=15), spread=15.0)
    assert dict(made.scores) == {vector: row[vector] for vector in VECTORS}
    assert all(made.notes[vector].startswith(f"{row[vector]:+.2f}") for vector in VECTORS)
    for vector in VECTORS:
        assert made.features[f"scores.{vector}"].value == round(row[vector], 4)
    missing = {name for name, value in values(made).items() if value is None}
    assert all(
        "swing" in name or "support" in name or "resist" in name or "fib" in name
        for name in missing
    )
    assert 0 < values(made)["market.spread_atr"] < 1


def test_later_bars_change_nothing() -> None:
    bars = sample("EURUSD_H1").iloc[:1200]
    at = 800
    opened = bars.index[at - 1].to_pydatetime()
    moment = {"timeframe": "H1", "bar_time": opened, "as_of": opened + timedelta(hours=1)}
    seen = [
        bundle(score_frame(bars.iloc[:stop]).iloc[at - 1].to_dict(), **moment)
        for stop in (at, at + 1, 1200)
    ]
    assert values(seen[0]) == values(seen[1]) == values(seen[2])
    assert seen[0].notes == seen[2].notes


def test_a_bar_that_is_not_closed_is_refused() -> None:
    with pytest.raises(ValueError, match="not closed"):
        bundle(as_of=CLOSED - timedelta(microseconds=1))
    with pytest.raises(ValueError, match="not closed"):
        bundle(timeframe="H1")


def test_a_row_of_the_warm_up_is_refused() -> None:
    with pytest.raises(ValueError, match="warm-up"):
        bundle(made_row(valid=0.0))

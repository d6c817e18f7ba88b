"""The evidence of one tick: every number that an agent may cite, with its id, unit and time.

`build` turns the newest row of `technical_calculator.score_frame` and the memory context into a
flat table of features, all of it known at `as_of`. It computes no indicator; its own are a spread
in ATR and a forecast:

    drift = horizon * (close - ema20) * a / (1 - a), a = 2 / 21    as percent of the close
    band  = drift +- atr14 * sqrt(horizon)                         as percent of the close

An EMA follows a straight trend at the distance slope * (1 - a) / a, so the drift is the trend that
would keep EMA20 where it is; the band is one ATR a bar, growing as a random walk does. The forecast
is evidence for agents and nothing else: no score, stop or size is made of it.

What cannot be known (NaN, no memory yet) is a feature with the value None, never a guess. Each kind
of number has its decimals, and the value is rounded to them, so that the value and its text in a
prompt are the same thing: a price has two more than the symbol is quoted with, which leaves three
digits of a MACD that is a ten-thousandth of its price.
Reads no clock and no file. Raises ValueError for a row of the warm-up and for a bar that is not
closed at `as_of`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from agents.contracts import VECTORS, Feature
from technical_calculator import COMPONENTS, INDICATORS, explain
from torra.clock import duration, iso

HORIZON: Final = 4
"""Bars that the forecast looks ahead."""

EMA_LAG: Final = 19 / 2
"""Bars by which EMA20 follows a straight trend: (1 - a) / a with a = 2 / (20 + 1)."""

MAX_SPREAD_ATR: Final = 1000.0
"""Spread in ATR where the market does not move at all, so that the gate still sees a wide one."""

ATR: Final = "ATR"
BARS: Final = "bars"
PERCENT: Final = "%"
PRICE: Final = "price"
OF_100: Final = "of 100"
OF_RANGE: Final = "of range"
VOLUME: Final = "volume"


class Kind(NamedTuple):
    """A kind of number: its unit, and how many decimals it has."""

    unit: str
    decimals: int


SCORE: Final = Kind("", 4)
COUNT: Final = Kind("", 0)
DISTANCE: Final = Kind(ATR, 4)
SHARE: Final = Kind(OF_RANGE, 4)
OSCILLATOR: Final = Kind(OF_100, 2)
FORECAST: Final = Kind(PERCENT, 4)
WORD: Final = Kind("", 0)
EXTRA_DIGITS: Final = 2
"""Decimals of a price beyond those that the symbol is quoted with."""

NOT_PRICES: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("rsi14", "stoch_k", "stoch_d", "adx14", "plus_di", "minus_di"), OSCILLATOR),
    **dict.fromkeys(("volatility_percentile",), OSCILLATOR),
    **dict.fromkeys(("support_distance_atr", "resistance_distance_atr", "gap_atr"), DISTANCE),
    **dict.fromkeys(("body_atr",), DISTANCE),
    **dict.fromkeys(("upper_wick", "lower_wick"), SHARE),
    **dict.fromkeys(("engulfing", "hammer", "trend_state", "bos"), COUNT),
    "cci20": Kind("", 2),
    "volume_sma20": Kind(VOLUME, 2),
    "volume_ratio": Kind("x", 4),
}
"""Kinds of the indicators that are no prices."""

MEMORY: Final[Mapping[str, tuple[str, Kind]]] = {
    "markov_state": ("current_markov_state", WORD),
    "state_duration": ("state_duration", Kind(BARS, 0)),
    "trend_direction": ("trend_direction", WORD),
    "losing_streak": ("losing_streak", Kind("trades", 0)),
    "open_elsewhere": ("open_elsewhere", Kind("positions", 0)),
    "position": ("position", WORD),
}
"""Features of the memory block: key of the memory context, kind."""

BULLISH: Final = ("BULLISH", "STRONG_BULLISH")
BEARISH: Final = ("BEARISH", "STRONG_BEARISH")
NOT_WIRED: Final = (
    "news.available",
    "sentiment.positioning_available",
    "fundamentals.available",
)
"""Sources that nothing feeds yet: 0 says so to an agent that would ask."""

Value = float | str | None
Found = Iterator[tuple[str, Value, Kind]]


@dataclass(frozen=True, slots=True)
class Bundle:
    """What one tick goes by: the four L1 scores, a line about each, and the evidence by id."""

    symbol: str
    timeframe: str
    scores: Mapping[str, float]
    notes: Mapping[str, str]
    features: Mapping[str, Feature]


def build(
    *,
    symbol: str,
    timeframe: str,
    bar_time: datetime,
    as_of: datetime,
    row: Mapping[str, float],
    spread: float,
    bars_held: int,
    bar_age: float,
    memory: Mapping[str, Any],
    digits: int = 5,
) -> Bundle:
    """Return the evidence of the bar that opened at `bar_time`.

    `row` is its row of score_frame; `spread` is in price units, `bars_held` counts the bars behind
    the row, `bar_age` is how many bars ago the newest one closed, `memory` is the memory context,
    `digits` the decimals with which the symbol is quoted.
    """
    if as_of < bar_time + duration(timeframe):
        raise ValueError(f"the bar of {iso(bar_time)} is not closed at {iso(as_of)}")
    evidence = explain(row)
    moment = iso(as_of)
    found = (
        *_from_row(row, Kind(PRICE, digits + EXTRA_DIGITS)),
        *_forecast(row),
        *_market(row, spread, bars_held, bar_age, memory),
        *_memory(memory),
        *((name, 0.0, COUNT) for name in NOT_WIRED),
    )
    return Bundle(
        symbol=symbol,
        timeframe=timeframe,
        scores={vector: evidence[vector].score for vector in VECTORS},
        notes={vector: evidence[vector].note for vector in VECTORS},
        features={name: _feature(name, value, kind, moment) for name, value, kind in found},
    )


def plain(value: Any, decimals: int) -> Value:
    """Return a number with so many decimals, a word as it is, None for what is not finite."""
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    return round(number, decimals) + 0.0 if math.isfinite(number) else None


def _feature(name: str, value: Value, kind: Kind, moment: str) -> Feature:
    known = plain(value, kind.decimals)
    decimals = kind.decimals if isinstance(known, float) else None
    return Feature(name, known, kind.unit, moment, decimals=decimals)


def _from_row(row: Mapping[str, float], price: Kind) -> Found:
    for vector in VECTORS:
        yield f"scores.{vector}", row[vector], SCORE
    for components in COMPONENTS.values():
        for name in components:
            yield f"component.{name}", row[name], SCORE
    for name in INDICATORS:
        yield f"technical.{name}", row[name], NOT_PRICES.get(name, price)


def _forecast(row: Mapping[str, float]) -> Found:
    close = row["close"]
    drift = 100.0 * HORIZON * (close - row["ema20"]) / EMA_LAG / close
    band = 100.0 * row["atr14"] * math.sqrt(HORIZON) / close
    yield "forecast.drift_pct", drift, FORECAST
    yield "forecast.low_pct", drift - band, FORECAST
    yield "forecast.high_pct", drift + band, FORECAST


def _market(
    row: Mapping[str, float],
    spread: float,
    bars_held: int,
    bar_age: float,
    memory: Mapping[str, Any],
) -> Found:
    yield "market.spread_atr", _spread_atr(spread, row["atr14"]), DISTANCE
    yield "market.valid_bars", float(bars_held), Kind(BARS, 0)
    yield "market.bar_age", bar_age, Kind(BARS, 2)
    yield "market.session", memory.get("session"), WORD
    yield "market.day_of_week", memory.get("day_of_week"), WORD


def _spread_atr(spread: float, atr: float) -> float:
    if math.isnan(atr) or spread <= 0.0:
        return math.nan if math.isnan(atr) else 0.0
    return min(spread / atr, MAX_SPREAD_ATR) if atr > 0.0 else MAX_SPREAD_ATR


def _memory(memory: Mapping[str, Any]) -> Found:
    for name, (key, kind) in MEMORY.items():
        yield f"memory.{name}", memory.get(key), kind
    chances = memory.get("next_probabilities") or {}
    for side, states in (("bullish", BULLISH), ("bearish", BEARISH)):
        known = [chances[state] for state in states if state in chances]
        yield f"memory.next_{side}", math.fsum(known) if known else None, Kind("of 1", 4)
    trend = memory.get("sentiment_trend") or [None]
    yield "memory.consensus_last", trend[-1], SCORE

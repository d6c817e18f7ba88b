"""No score depends on the last bit of a price: prices times ten, and prices upside down."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import talib

from agents.contracts import VECTORS
from technical_calculator import COMPONENTS, WARM_UP, score_frame
from tests.conftest import Scale
from tests.worlds.price_series import SAMPLES, mirrored, sample, times
from torra.market import library

ROUNDING = 1.01e-8
"""One unit of the last decimal of a score: where a rounded value may tip over."""

NAMES = [*(name for weights in COMPONENTS.values() for name in weights), *VECTORS]
PIECE = 1_500
"""Bars that are scored at once: the warm-up takes its first."""

Turned = Callable[[pd.DataFrame], pd.DataFrame]
TURNS: dict[str, tuple[Turned, float]] = {
    "ten times the price": (lambda bars: times(bars, price=10.0), 1.0),
    "a tenth of the price": (lambda bars: times(bars, price=0.1), 1.0),
    "a ten-millionth of the price": (lambda bars: times(bars, price=1e-7), 1.0),
    "ten million times the price": (lambda bars: times(bars, price=1e7), 1.0),
    "upside down": (lambda bars: mirrored(bars, 3.7 * float(bars["high"].max())), -1.0),
}
"""Other prices of the same market, with the sign of their scores."""


def decimal_walk(count: int, seed: int) -> pd.DataFrame:
    """Return a random walk in few whole points of 0.00001: half of its moves tie with another."""
    chance = np.random.default_rng(seed)
    close = 105_000 + np.cumsum(chance.integers(-4, 5, count))
    opened = np.concatenate([[105_000], close[:-1]])
    high = np.maximum(opened, close) + chance.integers(0, 4, count)
    low = np.minimum(opened, close) - chance.integers(0, 4, count)
    index = pd.date_range("2024-03-04", periods=count, freq="15min", tz="UTC", name="time")
    points = {"open": opened, "high": high, "low": low, "close": close}
    prices = {name: values / 100_000.0 for name, values in points.items()}
    return pd.DataFrame({**prices, "volume": 100.0}, index=index)


def scores(bars: pd.DataFrame) -> pd.DataFrame:
    return score_frame(bars).loc[lambda frame: frame["valid"], NAMES]


def differing(bars: pd.DataFrame, turned: Turned, sign: float) -> int:
    """Return how many bars have another score, of one direction or upside down."""
    apart = (scores(bars) - sign * scores(turned(bars))).abs()
    return int((apart > ROUNDING).any(axis=1).sum())


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("market", [*SAMPLES, "decimal walk"])
def test_not_a_bar_has_another_score(market: str, name: str, scaled: Scale) -> None:
    turned, sign = TURNS[name]
    compared = 0
    for piece in range(max(1, scaled(100_000, 2 * PIECE) // PIECE)):
        if market in SAMPLES:
            bars = sample(market).iloc[piece * PIECE :][: PIECE + WARM_UP - 1]
        else:
            bars = decimal_walk(PIECE + WARM_UP - 1, piece)
        assert differing(bars, turned, sign) == 0
        compared += len(bars)
    assert compared >= PIECE


@pytest.mark.parametrize("market", [*SAMPLES, "decimal walk"])
def test_the_directional_movement_is_that_of_whole_points(market: str) -> None:
    """TA-Lib's own, of prices that have no rounding: the reference of plain decimals."""
    bars = sample(market) if market in SAMPLES else decimal_walk(3_000, 7)
    named = {name: bars[name].to_numpy() for name in ("high", "low", "close")}
    high, low, close = (np.rint(values * 1e8) for values in named.values())
    found = library.columns(named)
    for name, reference in (
        ("plus_di", talib.PLUS_DI), ("minus_di", talib.MINUS_DI), ("adx14", talib.ADX)
    ):  # fmt: skip
        wanted = reference(high, low, close, timeperiod=14)
        np.testing.assert_allclose(found[name], wanted, rtol=0, atol=1e-9, equal_nan=True)

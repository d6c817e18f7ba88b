"""The all-time-high score: its formula, its bounds, and a high that no window can lose."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ath_calculator import ATH_SCALE_ATR, ath_score, carry
from tests.worlds.price_series import sample, walk

prices = st.floats(0.01, 1e6)


@pytest.mark.parametrize(
    ("distance_atr", "score"), [(0.0, 1.0), (10.9861, 0.0), (20.0, -0.5232), (200.0, -1.0)]
)
def test_the_score_falls_with_the_distance_in_atr(distance_atr: float, score: float) -> None:
    assert ath_score(100.0 - 0.5 * distance_atr, 100.0, 0.5) == pytest.approx(score, abs=1e-4)


@given(close=prices, ath=prices, atr=st.floats(0.0, 1e5))
def test_the_score_is_bounded_and_never_rises_with_the_high(
    close: float, ath: float, atr: float
) -> None:
    score = ath_score(close, ath, atr)
    assert -1.0 <= score <= 1.0
    assert ath_score(close, ath * 1.5, atr) <= score
    assert (score == 1.0) or close < ath


@given(close=prices, ath=prices, atr=st.floats(1e-3, 1e5))
def test_the_score_is_the_formula(close: float, ath: float, atr: float) -> None:
    if close <= ath:
        want = 1.0 - 2.0 * math.tanh((ath - close) / (20.0 * atr))
        assert ath_score(close, ath, atr) == want
    assert ATH_SCALE_ATR == 20.0


def test_a_flat_market_has_a_score() -> None:
    assert ath_score(100.0, 100.0, 0.0) == 1.0
    assert ath_score(99.0, 100.0, 0.0) == -1.0


def test_a_close_above_the_carried_high_is_at_the_high() -> None:
    assert ath_score(101.0, 100.0, 1.0) == 1.0


def test_the_high_is_carried_past_any_window() -> None:
    bars = sample("BTCUSD_M15")
    carried = None
    for start in range(0, len(bars), 97):
        before = carried
        carried = carry(carried, bars.iloc[start : start + 97])
        assert before is None or carried >= before
    assert carried == bars["high"].max() > bars["high"].iloc[-750:].max()


def test_carrying_the_same_bars_again_changes_nothing() -> None:
    bars = walk(300, 1)
    once = carry(None, bars)
    assert once == carry(once, bars) == carry(once, bars.iloc[:0]) == carry(once, bars.iloc[100:])
    assert carry(once + 1.0, bars) == once + 1.0


def test_without_a_bar_there_is_no_high() -> None:
    with pytest.raises(ValueError, match="no all-time high"):
        carry(None, walk(10, 1).iloc[:0])

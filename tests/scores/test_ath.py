"""The record score: its formula, its bounds, its mirror image, and records no window can lose."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ath_calculator import (
    ATH_SCALE_ATR,
    Records,
    ath_score,
    carry,
    record_score,
    record_scores,
    score,
)
from tests.cases import cases
from tests.worlds.price_series import sample, walk

prices = st.floats(0.01, 1e6)
steps = st.integers(-(2**20), 2**20)
"""Prices on a grid, so that turning them upside down is exact."""


@cases(
    ("below_high", "above_low", "want"),
    [(0.0, 200.0, 1.0), (200.0, 0.0, -1.0), (200.0, 200.0, 0.0), (20.0, 200.0, 0.2384),
     (200.0, 10.9861, -0.5), (7.0, 7.0, 0.0), (0.0, 0.0, 0.0)],
)  # fmt: skip
def test_the_score_falls_with_the_distance_from_each_record(
    below_high: float, above_low: float, want: float
) -> None:
    close, atr = 1000.0, 0.5
    found = record_score(close, close + atr * below_high, close - atr * above_low, atr)
    assert found == pytest.approx(want, abs=1e-4)


@given(close=steps, high=steps, low=steps, atr=st.floats(0.0, 1e5))
def test_upside_down_it_changes_its_sign_to_the_last_bit(
    close: int, high: int, low: int, atr: float
) -> None:
    found = record_score(close / 8, high / 8, low / 8, atr)
    assert -1.0 <= found <= 1.0
    assert record_score(-close / 8, -low / 8, -high / 8, atr) == -found


@given(close=prices, high=prices, low=prices, atr=st.floats(1e-3, 1e5))
def test_the_score_is_the_formula(close: float, high: float, low: float, atr: float) -> None:
    if low <= close <= high:
        width = 20.0 * atr
        want = (1 - math.tanh((high - close) / width)) - (1 - math.tanh((close - low) / width))
        assert record_score(close, high, low, atr) == want
    assert ATH_SCALE_ATR == 20.0


@pytest.mark.parametrize(
    ("close", "high", "low", "want"),
    [(100.0, 100.0, 90.0, 1.0), (90.0, 100.0, 90.0, -1.0), (95.0, 100.0, 90.0, 0.0),
     (90.0, 90.0, 90.0, 0.0)],
)  # fmt: skip
def test_a_flat_market_has_a_score(close: float, high: float, low: float, want: float) -> None:
    assert record_score(close, high, low, 0.0) == want


def test_a_close_beyond_a_record_is_at_it() -> None:
    assert record_score(101.0, 100.0, 0.0, 1.0) == record_score(101.0, 101.0, 0.0, 1.0)
    assert record_score(-1.0, 100.0, 0.0, 1.0) == record_score(-1.0, 100.0, -1.0, 1.0)


# --- the first form -----------------------------------------------------------------------------


@given(close=prices, ath=prices, atr=st.floats(0.0, 1e5))
def test_the_first_form_never_rises_with_the_high(close: float, ath: float, atr: float) -> None:
    found = ath_score(close, ath, atr)
    assert -1.0 <= found <= 1.0
    assert ath_score(close, ath * 1.5, atr) <= found
    assert (found == 1.0) or close < ath
    if close <= ath and atr > 1e-3:
        assert found == 1.0 - 2.0 * math.tanh((ath - close) / (20.0 * atr))


def test_the_first_form_in_a_flat_market() -> None:
    assert (ath_score(100.0, 100.0, 0.0), ath_score(99.0, 100.0, 0.0)) == (1.0, -1.0)


def test_a_profile_says_which_form_counts() -> None:
    told = 95.0, 100.0, 20.0, 1.0
    assert score(*told, "high") == ath_score(95.0, 100.0, 1.0)
    assert score(*told) == score(*told, "both") == record_score(*told)


def test_many_closes_have_the_scores_of_each() -> None:
    bars = sample("EURUSD_H1").iloc[:2000]
    atr = np.tile([0.0, 0.0, 0.001, 0.0007, 1e-7], 400)
    high, low = np.array(bars["high"].cummax()), np.array(bars["low"].cummin())
    high[::7], low[::11] = bars["close"].iloc[::7], bars["close"].iloc[::11] + 0.001
    told = bars["close"].to_numpy(), high, low, atr
    for form, found in record_scores(*told).items():
        rows = zip(*(values.tolist() for values in told), strict=True)
        one = [score(*row, form) for row in rows]  # type: ignore[call-arg]
        np.testing.assert_array_equal(found, one, strict=True)
        assert {-1.0, 1.0} <= set(found.tolist())


# --- the records ---------------------------------------------------------------------------------


def test_records_are_carried_past_any_window() -> None:
    bars = sample("BTCUSD_M15")
    carried: Records | None = None
    for start in range(0, len(bars), 97):
        before = carried
        carried = carry(carried, bars.iloc[start : start + 97])
        assert before is None or (carried.high >= before.high and carried.low <= before.low)
    assert carried is not None
    assert carried.high == bars["high"].max() > bars["high"].iloc[-750:].max()
    assert carried.low == bars["low"].min() < bars["low"].iloc[-750:].min()
    assert carried.since == bars.index[0]


def test_carrying_the_same_bars_again_changes_nothing() -> None:
    bars = walk(300, 1)
    once = carry(None, bars)
    assert once == carry(once, bars) == carry(once, bars.iloc[:0]) == carry(once, bars.iloc[100:])
    beyond = once._replace(high=once.high + 1.0, low=once.low - 1.0)
    assert carry(beyond, bars) == beyond


def test_without_a_bar_there_is_no_record() -> None:
    with pytest.raises(ValueError, match="no record yet"):
        carry(None, walk(10, 1).iloc[:0])

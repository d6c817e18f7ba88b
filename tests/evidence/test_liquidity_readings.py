"""Liquidity: sweeps, pools, effort, mean and most traded price, delta, on bars made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agents.features import ids_of
from tests.worlds.expert_paths import REACH, bars, path
from torra.evidence.expert_bars import PROFILE_BINS, ExpertBars, most_traded
from torra.evidence.liquidity_readings import read


def readings(made: ExpertBars, delta: float | None = None) -> dict[str, Any]:
    return {name.removeprefix("liquidity."): value for name, value in read(made, delta).items()}


def with_last(made: ExpertBars, high: float, low: float, close: float) -> ExpertBars:
    """Return the bars and one more."""
    return ExpertBars(
        np.append(made.high, high),
        np.append(made.low, low),
        np.append(made.close, close),
        np.append(made.volume, made.volume[-1]),
        made.atr,
    )


PEAK = bars(path(100.0, 110.0, 104.0))
TOP = 110.0 + REACH


def test_a_bar_beyond_a_swing_that_closes_back_inside_sweeps_it() -> None:
    swept = with_last(PEAK, TOP + 0.1, 103.0, 104.0)
    assert readings(PEAK)["sweep_high"] == 0.0 and readings(PEAK)["sweep_age"] is None
    assert readings(swept) | {"sweep_high": 1.0, "sweep_low": 0.0, "sweep_age": 0.0} == readings(
        swept
    )
    # reaching it takes no stops, and a close beyond it or at it is no way back
    assert readings(with_last(PEAK, TOP, 103.0, 104.0))["sweep_high"] == 0.0
    assert readings(with_last(PEAK, TOP + 1.0, 103.0, TOP + 0.5))["sweep_high"] == 0.0
    assert readings(with_last(PEAK, TOP + 1.0, 103.0, TOP))["sweep_high"] == 0.0


def test_a_sweep_is_recent_for_five_bars_and_keeps_its_age() -> None:
    made = with_last(PEAK, TOP + 0.1, 103.0, 104.0)
    for age in range(1, 8):
        made = with_last(made, 104.5, 103.5, 104.0)
        assert readings(made)["sweep_age"] == age
        assert readings(made)["sweep_high"] == float(age < 5)


def test_stops_are_taken_once() -> None:
    """A bar that goes beyond a swing that was broken before sweeps nothing."""
    broken = with_last(PEAK, TOP + 1.0, 104.0, TOP + 0.9)
    back = with_last(broken, TOP + 0.5, 103.0, 104.0)
    assert readings(back)["sweep_high"] == 0.0
    # nor is a swing swept that the bars after it have not confirmed
    early = PEAK._replace(**{name: getattr(PEAK, name)[:-9] for name in PEAK._fields[:4]})
    assert readings(with_last(early, TOP + 0.1, 108.0, 108.0))["sweep_high"] == 0.0


EQUAL = bars(path(100.0, 110.0, 104.0, 110.05, 103.0))


def test_a_pool_is_two_swings_that_nobody_has_gone_beyond() -> None:
    found = readings(EQUAL)
    assert found["pool_above_atr"] == pytest.approx(TOP - 103.0)
    assert found["pool_above_touches"] == 2.0
    assert found["pool_below_touches"] == 0.0 and found["pool_below_atr"] is None
    apart = readings(bars(path(100.0, 110.0, 104.0, 110.2, 103.0)))
    assert (apart["pool_above_atr"], apart["pool_above_touches"]) == (None, 0.0)
    assert readings(EQUAL._replace(atr=0.4))["pool_above_atr"] is None
    taken = with_last(EQUAL, 110.5, 103.0, 104.0)
    assert taken.high[-1] > EQUAL.high.max() + 0.1
    assert readings(taken)["pool_above_touches"] == 0.0
    wide = readings(EQUAL._replace(atr=2.0))["pool_above_atr"]
    assert wide == pytest.approx((TOP - 103.0) / 2)


def test_the_nearest_pool_counts_and_three_swings_are_three() -> None:
    made = bars(path(100.0, 116.0, 105.0, 116.0, 105.0, 110.0, 104.0, 110.0, 104.0, 110.0, 103.0))
    found = readings(made)
    assert found["pool_above_atr"] == pytest.approx(TOP - 103.0)
    assert found["pool_above_touches"] == 3.0


def test_effort_is_volume_over_result() -> None:
    """Twice the mean volume on half the mean range, with the bar among its twenty."""
    made = bars([100.0] * 30)
    volume, high = made.volume.copy(), made.high.copy()
    volume[-1], high[-1] = 300.0, 99.75 + 0.25
    usual, moved = (19 * 100 + 300) / 20, (19 * 0.5 + 0.25) / 20
    found = readings(made._replace(volume=volume, high=high))["effort"]
    assert found == pytest.approx(300 / usual / (0.25 / moved))
    flat = made._replace(high=made.close, low=made.close)
    assert readings(flat)["effort"] is None
    assert readings(made._replace(volume=np.zeros(len(volume))))["effort"] is None


def test_the_mean_price_by_volume_is_of_a_hundred_bars() -> None:
    made = bars([90.0] * 150 + [100.0] * 99 + [104.0], atr=2.0)
    volume = made.volume.copy()
    volume[-1] = 300.0
    mean = (99 * 100 * 100.0 + 300 * 104.0) / (99 * 100 + 300)
    assert readings(made._replace(volume=volume))["vwap_atr"] == pytest.approx((104.0 - mean) / 2)
    assert readings(made._replace(volume=volume * 0))["vwap_atr"] is None


def test_the_most_traded_price_is_where_most_volume_lies() -> None:
    closes = [100.0] * 60 + path(100.0, 120.0, leg=40) + [120.0] * 100 + path(120.0, 110.0)
    made = bars(closes, atr=2.0)
    step = (120.5 - 99.75) / PROFILE_BINS
    assert most_traded(made) == pytest.approx(120.0, abs=step)
    assert readings(made)["poc_atr"] == pytest.approx(-5.0, abs=step)
    heavy = made.volume * np.where(made.close < 100.5, 10.0, 1.0)
    assert most_traded(made._replace(volume=heavy)) == pytest.approx(100.0, abs=step)
    assert most_traded(made._replace(volume=made.volume * 0)) is None
    assert most_traded(made.upside_down()) == pytest.approx(-(most_traded(made) or 0.0))


def test_of_two_prices_traded_alike_the_nearer_counts_and_between_them_the_middle() -> None:
    even = np.array([100.0, 110.0] * 105)
    made = ExpertBars(even + 1, even - 1, even, np.full(210, 5.0), 1.0)
    assert abs((most_traded(made) or 0.0) - 110.0) <= 1.0
    between = np.append(made.close[:-1], 105.0)
    nothing = np.append(made.volume[:-1], 0.0)
    # 105 lies between a hundred bars of each side
    sides = made._replace(close=between, volume=np.append(nothing[1:], 0.0))
    assert most_traded(sides) == pytest.approx(105.0)


@pytest.mark.parametrize("way", [1, -1])
def test_price_against_delta_is_a_divergence(way: int) -> None:
    made = bars([100.0 - way * 0.1 * step for step in range(40)])
    assert readings(made, way * 0.2)["divergence"] == float(way)
    assert readings(made, way * -0.2)["divergence"] == readings(made, 0.0)["divergence"] == 0.0
    assert readings(made, None)["divergence"] is None
    # less than half an ATR in twenty bars is no move
    assert readings(made._replace(atr=4.1), way * 0.2)["divergence"] == 0.0
    assert readings(made, 0.125)["delta20"] == 0.125


def test_nothing_is_known_of_few_bars_and_no_distance_in_a_market_that_stands_still() -> None:
    assert read(None, 0.5) == dict.fromkeys(ids_of("liquidity"))
    flat = bars([100.0] * 210)._replace(high=np.full(210, 100.0), low=np.full(210, 100.0), atr=0.0)
    known = {name: value for name, value in readings(flat, 0.5).items() if value is not None}
    assert known == {"sweep_high": 0.0, "sweep_low": 0.0, "delta20": 0.5}
    assert readings(flat._replace(atr=float("nan")))["vwap_atr"] is None

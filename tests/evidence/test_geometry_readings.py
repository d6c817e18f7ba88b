"""Geometry: channel, compression, gaps, retracements and levels, on bars made by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from agents.features import ids_of
from tests.worlds.expert_paths import REACH, bars, path
from torra.evidence import chart_patterns
from torra.evidence.chart_patterns import ChartPattern
from torra.evidence.expert_bars import ExpertBars
from torra.evidence.geometry_readings import channel_of, read

NO_LEG = {"fib_382": math.nan, "fib_500": math.nan, "fib_618": math.nan}


def readings(made: ExpertBars, **row: float) -> dict[str, Any]:
    return {
        name.removeprefix("geometry."): value for name, value in read(made, NO_LEG | row).items()
    }


def levels(found: dict[str, Any]) -> list[float]:
    return [value for name, value in found.items() if name[:6] == "level." and value is not None]


def test_a_straight_rise_is_a_channel_that_fits() -> None:
    made = bars([100.0 + 0.1 * step for step in range(220)], atr=2.0)
    found = readings(made)
    assert found["channel_slope_atr"] == pytest.approx(0.05)
    assert found["channel_r2"] == pytest.approx(1.0)
    assert found["channel_place"] == pytest.approx(0.5)
    channel = channel_of(made)
    assert (channel.lower, channel.upper) == pytest.approx((121.9 - REACH, 121.9 + REACH))


def test_the_channel_is_the_line_of_least_squares_between_its_parallels() -> None:
    chance = np.random.default_rng(4)
    made = bars((100.0 + np.cumsum(chance.normal(size=300))).tolist())
    close = made.close[-100:]
    slope, start = np.polyfit(np.arange(100), close, 1)
    line = start + slope * np.arange(100)
    found = channel_of(made)
    assert found.slope == pytest.approx(slope)
    assert found.r2 == pytest.approx(np.corrcoef(np.arange(100), close)[0, 1] ** 2)
    assert found.upper - line[-1] == pytest.approx((made.high[-100:] - line).max())
    assert line[-1] - found.lower == pytest.approx((line - made.low[-100:]).max())
    assert 0.0 <= readings(made)["channel_place"] <= 1.0


def test_compression_is_the_range_of_twenty_over_that_of_a_hundred() -> None:
    made = bars(path(100.0, 110.0, leg=10) + [110.0] * 19)
    assert readings(made)["compression"] == pytest.approx(0.5 / 10.5, abs=1e-9)
    assert readings(bars(path(100.0, 110.0, leg=19)))["compression"] == 1.0


def test_the_gaps_are_of_the_two_newest_swings() -> None:
    found = readings(bars(path(100.0, 120.0, 95.0, 110.0, 104.0, 111.0, 106.0, 108.0), atr=2.0))
    assert found["double_top_gap_atr"] == pytest.approx(0.5)
    assert found["double_bottom_gap_atr"] == pytest.approx(1.0)
    assert readings(bars(path(100.0, 110.0, 104.0)))["double_top_gap_atr"] is None


def test_the_neckline_is_that_of_the_pattern_found() -> None:
    made = bars(path(100.0, 110.0, 106.0, 110.2, 107.0), atr=2.0)
    found = readings(made._replace(atr=1.0))
    assert found["pattern.double_top"] == 1.0 and found["pattern_done"] == 0.0
    assert found["neckline_atr"] == pytest.approx(107.0 - 106.0 + REACH)
    turned = readings(made._replace(atr=1.0).upside_down())
    assert turned["pattern.double_bottom"] == 1.0
    assert turned["neckline_atr"] == pytest.approx(-found["neckline_atr"])
    assert readings(bars(path(100.0, 110.0, 104.0)))["neckline_atr"] is None
    beyond = readings(bars(path(100.0, 110.0, 106.0, 110.2, 105.0)))
    assert (beyond["pattern.double_top"], beyond["pattern_done"]) == (1.0, 1.0)


def test_of_several_necklines_that_of_the_newest_pattern_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def neckline(**found: ChartPattern) -> float | None:
        monkeypatch.setattr(chart_patterns, "find", lambda _: found)
        value: float | None = readings(bars([100.0] * 210))["neckline_atr"]
        return value

    older, newer = ChartPattern(98.0, 150, done=False), ChartPattern(101.0, 160, done=True)
    assert neckline(double_top=older, double_bottom=newer) == -1.0
    assert neckline(double_top=newer, head_shoulders=older) == -1.0
    assert neckline(double_top=older, bull_flag=newer) == 2.0
    assert neckline(double_top=older, double_bottom=newer._replace(last=150)) is None
    assert neckline(bull_flag=newer) is None


def test_the_nearest_retracement_and_the_way_from_it() -> None:
    made = bars(path(100.0, 110.0, 104.0), atr=2.0)
    found = readings(made, fib_382=106.18, fib_500=105.0, fib_618=103.82)
    assert found["fib_nearest"] == "fib_618"
    assert found["fib_distance_atr"] == pytest.approx(0.09)
    without = readings(made)
    assert without["fib_nearest"] is without["fib_distance_atr"] is None


def test_levels_are_computed_prices_nearest_first() -> None:
    made = bars(path(100.0, 120.0, 95.0, 110.0, 104.0, 111.0, 106.0, 108.0))
    found = levels(readings(made, fib_500=108.3))
    assert found[0] == 108.3
    away = [abs(price - 108.0) for price in found]
    assert away == sorted(away) and len(found) == 8
    channel = channel_of(made)
    assert {111.0 + REACH, 110.0 + REACH, 106.0 - REACH, 104.0 - REACH} <= {*found}
    computed = {*made.high, *made.low, channel.lower, channel.upper, 108.3}
    # the most traded price is the one that no bar has
    assert len({*found} - computed) <= 1


def test_of_two_levels_as_far_that_to_which_price_has_moved_comes_first() -> None:
    made = bars(path(100.0, 110.0, 104.0))
    for one, way in ((made, 1), (made.upside_down(), -1)):
        close = float(one.close[-1])
        found = levels(readings(one, fib_382=close + 0.01, fib_618=close - 0.01))
        # the other lies within 0.1 ATR of it
        assert found[0] == close + way * 0.01


def test_of_two_levels_that_are_one_the_nearer_is_named() -> None:
    made = bars(path(100.0, 110.0, 104.0))
    both = levels(readings(made, fib_382=104.5, fib_500=104.55, fib_618=104.61))
    assert 104.5 in both and 104.55 not in both and 104.61 in both


def test_nothing_is_known_of_few_bars_and_only_patterns_where_nothing_moves() -> None:
    assert read(None, NO_LEG) == dict.fromkeys(ids_of("geometry"))
    flat = bars([100.0] * 210)._replace(high=np.full(210, 100.0), low=np.full(210, 100.0), atr=0.0)
    known = {name for name, value in readings(flat).items() if value is not None}
    assert known == {name for name in readings(flat) if name.startswith("pattern")}
    assert readings(flat._replace(atr=math.nan)) == readings(flat)

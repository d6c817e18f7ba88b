"""What the experts read of bars made by hand: liquidity and geometry, a row an example."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest

from agents.features import ids_of
from tests.worlds.expert_paths import REACH, added, bars, path
from torra.evidence import chart_patterns, geometry_readings, liquidity_readings
from torra.evidence.chart_patterns import ChartPattern
from torra.evidence.expert_bars import PROFILE_BINS, ExpertBars, most_traded

NO_LEG = {"fib_382": math.nan, "fib_500": math.nan, "fib_618": math.nan}


def readings(made: ExpertBars, delta: float | None = None, **row: float) -> dict[str, Any]:
    geometry = geometry_readings.read(made, NO_LEG | row)
    return liquidity_readings.read(made, delta) | geometry


def last(made: ExpertBars, **columns: float) -> ExpertBars:
    """Return the bars with other values of the last one."""
    changed = {name: getattr(made, name).copy() for name in columns}
    for name, value in columns.items():
        changed[name][-1] = value
    return made._replace(**changed)


PEAK = bars(path(100.0, 110.0, 104.0))
TOP = 110.0 + REACH
SWEPT = added(PEAK, (TOP + 0.1, 103.0, 104.0))
EARLY = PEAK._replace(**{name: getattr(PEAK, name)[:-9] for name in PEAK._fields[:4]})
EQUAL = bars(path(100.0, 110.0, 104.0, 110.05, 103.0))
STILL = bars([100.0] * 30)
FLAT = bars([100.0] * 210)._replace(high=np.full(210, 100.0), low=np.full(210, 100.0), atr=0.0)
HEAVY = last(bars([90.0] * 150 + [100.0] * 99 + [104.0], atr=2.0), volume=300.0)
HEAVY_MEAN = (99 * 100 * 100.0 + 300 * 104.0) / (99 * 100 + 300)
SWINGS = bars(path(100.0, 120.0, 95.0, 110.0, 104.0, 111.0, 106.0, 108.0), atr=2.0)
TOPS = bars(path(100.0, 110.0, 106.0, 110.2, 107.0))
THREE = bars(path(100.0, 116.0, 105.0, 116.0, 105.0, 110.0, 104.0, 110.0, 104.0, 110.0, 103.0))
POOL, TOUCHES = "liquidity.pool_above_atr", "liquidity.pool_above_touches"
SWEEP, AGE = "liquidity.sweep_high", "liquidity.sweep_age"
TOP_FOUND, NECK = "geometry.pattern.double_top", "geometry.neckline_atr"
EFFORT = (300 / ((19 * 100 + 300) / 20)) / (0.25 / ((19 * 0.5 + 0.25) / 20))

ROWS: Final[list[tuple[str, ExpertBars, Mapping[str, Any]]]] = [
    ("no sweep", PEAK, {SWEEP: 0.0, AGE: None}),
    ("a sweep", SWEPT, {SWEEP: 1.0, AGE: 0.0, "liquidity.sweep_low": 0.0}),
    ("a level that is reached", added(PEAK, (TOP, 103.0, 104.0)), {SWEEP: 0.0}),
    ("a close beyond it", added(PEAK, (TOP + 1.0, 103.0, TOP + 0.5)), {SWEEP: 0.0}),
    ("a close at it", added(PEAK, (TOP + 1.0, 103.0, TOP)), {SWEEP: 0.0}),
    *(
        (f"{age} bars ago", added(SWEPT, *[(104.5, 103.5, 104.0)] * age),
         {AGE: age, SWEEP: float(age < 5)})
        for age in (4, 5, 7)
    ),
    ("stops that were taken",
     added(PEAK, (TOP + 1.0, 104.0, TOP + 0.9), (TOP + 0.5, 103.0, 104.0)), {SWEEP: 0.0}),
    ("a swing not confirmed yet", added(EARLY, (TOP + 0.1, 108.0, 108.0)), {SWEEP: 0.0}),
    ("a pool", EQUAL, {
        POOL: TOP - 103.0, TOUCHES: 2.0,
        "liquidity.pool_below_touches": 0.0, "liquidity.pool_below_atr": None,
    }),
    ("swings too far for this ATR", EQUAL._replace(atr=0.4), {POOL: None}),
    ("a pool that was taken", added(EQUAL, (110.5, 103.0, 104.0)), {TOUCHES: 0.0}),
    ("the nearest pool, of three", THREE, {POOL: TOP - 103.0, TOUCHES: 3.0}),
    ("effort", last(STILL, volume=300.0, high=100.0), {"liquidity.effort": EFFORT}),
    ("no range", STILL._replace(high=STILL.close, low=STILL.close), {"liquidity.effort": None}),
    ("no volume", STILL._replace(volume=np.zeros(30)),
     {"liquidity.effort": None, "liquidity.vwap_atr": None, "liquidity.poc_atr": None}),
    ("a mean of a hundred bars", HEAVY, {"liquidity.vwap_atr": (104.0 - HEAVY_MEAN) / 2}),
    ("compression", bars(path(100.0, 110.0, leg=10) + [110.0] * 19),
     {"geometry.compression": 0.5 / 10.5}),
    ("gaps", SWINGS, {"geometry.double_top_gap_atr": 0.5, "geometry.double_bottom_gap_atr": 1.0}),
    ("one top", PEAK, {"geometry.double_top_gap_atr": None, NECK: None}),
    ("a neckline", TOPS, {TOP_FOUND: 1.0, "geometry.pattern_done": 0.0, NECK: 1.0 + REACH}),
    ("a close beyond the neckline", bars(path(100.0, 110.0, 106.0, 110.2, 105.0)),
     {TOP_FOUND: 1.0, "geometry.pattern_done": 1.0}),
    ("no leg", PEAK, {"geometry.fib_nearest": None, "geometry.fib_distance_atr": None}),
]  # fmt: skip


@pytest.mark.parametrize(("made", "wanted"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS])
def test_bars_made_by_hand_are_read_by_their_rule(
    made: ExpertBars, wanted: Mapping[str, Any]
) -> None:
    known = readings(made)
    assert {name: known[name] for name in wanted} == pytest.approx(dict(wanted), abs=1e-9)


@pytest.mark.parametrize("way", [1, -1])
def test_price_against_delta_is_a_divergence(way: int) -> None:
    made = bars([100.0 - way * 0.1 * step for step in range(40)])
    # less than half an ATR in twenty bars is no move
    slow = made._replace(atr=4.1)
    for some, delta, wanted in (
        (made, way * 0.2, way), (made, way * -0.2, 0), (made, 0.0, 0), (made, None, None),
        (slow, way * 0.2, 0),
    ):  # fmt: skip
        known = readings(some, delta)
        assert (known["liquidity.divergence"], known["liquidity.delta20"]) == (wanted, delta)


def test_the_channel_is_the_line_of_least_squares_between_its_parallels() -> None:
    chance = np.random.default_rng(4)
    made = bars((100.0 + np.cumsum(chance.normal(size=300))).tolist())
    close, at = made.close[-100:], np.arange(100)
    slope, start = np.polyfit(at, close, 1)
    line = start + slope * at
    upper, lower = (made.high[-100:] - line).max(), (line - made.low[-100:]).max()
    known = readings(made)
    assert known["geometry.channel_slope_atr"] == pytest.approx(slope / made.atr)
    assert known["geometry.channel_r2"] == pytest.approx(np.corrcoef(at, close)[0, 1] ** 2)
    place = (close[-1] - line[-1] + lower) / (upper + lower)
    assert known["geometry.channel_place"] == pytest.approx(place)


def test_the_most_traded_price_is_where_most_volume_lies() -> None:
    closes = [100.0] * 60 + path(100.0, 120.0, leg=40) + [120.0] * 100 + path(120.0, 110.0)
    made = bars(closes, atr=2.0)
    step = (120.5 - 99.75) / PROFILE_BINS
    heavy = made.volume * np.where(made.close < 100.5, 10.0, 1.0)
    for volume, price in ((made.volume, 120.0), (heavy, 100.0)):
        poc = readings(made._replace(volume=volume))["liquidity.poc_atr"]
        assert poc == pytest.approx((110.0 - price) / 2, abs=step / 2)


def test_of_two_prices_traded_alike_the_nearer_counts_and_between_them_the_middle() -> None:
    even = np.array([100.0, 110.0] * 105)
    made = ExpertBars(even + 1, even - 1, even, np.full(210, 5.0), 1.0)
    assert abs((most_traded(made) or 0.0) - 110.0) <= 1.0
    between = np.append(made.close[:-1], 105.0)
    # 105 lies between a hundred bars of each side
    volume = np.concatenate([made.volume[2:], [0.0, 0.0]])
    assert most_traded(made._replace(close=between, volume=volume)) == pytest.approx(105.0)


def test_of_several_necklines_that_of_the_newest_pattern_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def neckline(**found: ChartPattern) -> float | None:
        monkeypatch.setattr(chart_patterns, "find", lambda _: found)
        value: float | None = readings(bars([100.0] * 210))[NECK]
        return value

    older, newer = ChartPattern(98.0, 150, done=False), ChartPattern(101.0, 160, done=True)
    assert neckline(double_top=older, double_bottom=newer) == -1.0
    assert neckline(double_top=newer, head_shoulders=older) == -1.0
    assert neckline(double_top=older, bull_flag=newer) == 2.0
    assert neckline(double_top=older, double_bottom=newer._replace(last=150)) is None
    assert neckline(bull_flag=newer) is None


def levels(made: ExpertBars, **row: float) -> list[float]:
    known = readings(made, **row)
    return [known[name] for name in geometry_readings.LEVEL_IDS if known[name] is not None]


def test_levels_are_computed_prices_nearest_first() -> None:
    known = levels(SWINGS._replace(atr=1.0), fib_500=108.3)
    away = [abs(price - 108.0) for price in known]
    assert known[0] == 108.3 and away == sorted(away) and len(known) == 8
    assert {111.0 + REACH, 110.0 + REACH, 106.0 - REACH, 104.0 - REACH} <= {*known}
    nearest = readings(PEAK._replace(atr=2.0), fib_382=106.18, fib_500=105.0, fib_618=103.82)
    assert nearest["geometry.fib_nearest"] == "fib_618"
    assert nearest["geometry.fib_distance_atr"] == pytest.approx(0.09)
    for made, way in ((PEAK, 1), (PEAK.upside_down(), -1)):
        close = float(made.close[-1])
        # The other lies within 0.1 ATR of it: that to which price has moved comes first.
        pair = levels(made, fib_382=close + 0.01, fib_618=close - 0.01)
        assert pair[0] == close + way * 0.01
    both = levels(PEAK, fib_382=104.5, fib_500=104.55, fib_618=104.61)
    assert 104.5 in both and 104.55 not in both and 104.61 in both


def test_nothing_is_known_of_few_bars_and_no_distance_where_nothing_moves() -> None:
    assert liquidity_readings.read(None, 0.5) == dict.fromkeys(ids_of("liquidity"))
    assert geometry_readings.read(None, NO_LEG) == dict.fromkeys(ids_of("geometry"))
    known = {name: value for name, value in readings(FLAT, 0.5).items() if value is not None}
    patterns = [name for name in ids_of("geometry") if ".pattern" in name]
    assert known == dict.fromkeys((SWEEP, "liquidity.sweep_low", *patterns), 0.0) | {
        "liquidity.delta20": 0.5
    }
    assert readings(FLAT._replace(atr=math.nan)) == readings(FLAT)

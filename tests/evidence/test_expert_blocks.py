"""The experts' blocks of a bundle: only for a swarm, causal, mirrored, the same of 750 bars."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agents.features import FEATURES
from technical_calculator import HISTORY, WARM_UP, score_frame
from tests.evidence.test_feature_bundle import OPENED, bundle, last_bars, made_row, values
from tests.evidence.test_look_ahead import with_spreads
from tests.worlds.price_series import mirrored, row_of, sample, walk
from torra.config import ROOT
from torra.evidence import expert_bars, flow_readings
from torra.evidence.geometry_readings import LEVEL_IDS
from torra.evidence.outside_readings import OutsideView
from torra.market.bar_view import BarArrays, BarView
from torra.market.spreads import NO_SPREADS, spread_view

BLOCKS = ("liquidity.", "micro.", "geometry.")
PAIRS = (
    ("liquidity.sweep_high", "liquidity.sweep_low"),
    ("liquidity.pool_above_atr", "liquidity.pool_below_atr"),
    ("liquidity.pool_above_touches", "liquidity.pool_below_touches"),
    ("geometry.double_top_gap_atr", "geometry.double_bottom_gap_atr"),
    ("geometry.pattern.head_shoulders", "geometry.pattern.inverse_head_shoulders"),
    ("geometry.pattern.double_top", "geometry.pattern.double_bottom"),
    ("geometry.pattern.bull_flag", "geometry.pattern.bear_flag"),
    ("geometry.pattern.ascending_triangle", "geometry.pattern.descending_triangle"),
    ("geometry.pattern.rising_wedge", "geometry.pattern.falling_wedge"),
)
"""Features that change places where prices are turned upside down."""

SIGNED = frozenset(
    (
        *("liquidity.vwap_atr", "liquidity.poc_atr", "liquidity.delta20", "liquidity.divergence"),
        *("geometry.channel_slope_atr", "geometry.neckline_atr", "geometry.fib_distance_atr"),
    )
)


def of_experts(
    bars: pd.DataFrame, at: int, rows: pd.DataFrame, held: int = HISTORY, **more: Any
) -> dict[str, Any]:
    """Return the numbers of the blocks at bar `at`, read from the `held` bars up to it."""
    view = BarView(BarArrays(bars), max(0, at + 1 - held), at + 1)
    opened = view.last
    made = bundle(
        row_of(rows.iloc[at]),
        bars=view,
        bar_time=opened,
        as_of=opened + pd.Timedelta(minutes=15),
        experts=True,
        spreads=spread_view(view.spreads, view.times),
        **more,
    )
    found = values(made)
    return {name: found[name] for name in found if name.startswith((*BLOCKS, "market.triage"))}


@pytest.fixture(scope="module")
def market() -> tuple[pd.DataFrame, pd.DataFrame]:
    bars = with_spreads(sample("BTCUSD_M15").iloc[:2600], 2)
    return bars, score_frame(bars)


def test_a_desk_without_experts_has_not_a_feature_more() -> None:
    plain = bundle(bars=last_bars(300))
    more = bundle(bars=last_bars(300), experts=True)
    of_experts = (*BLOCKS, "market.triage_unknown")
    names = [name for name in more.features if not name.startswith(of_experts)]
    assert [*plain.features] == names
    assert [plain.features[name] for name in names] == [more.features[name] for name in names]
    assert set(more.features) - set(names) == {
        "market.triage_unknown",
        *(name for name in FEATURES if name.startswith(BLOCKS)),
    }


def test_broad_bars_are_flagged_only_for_experts() -> None:
    bars = last_bars(300)
    bars.loc[bars.index[-1], ["open", "low", "high", "close"]] = (100.0, 99.0, 110.0, 109.0)
    row = made_row(volume_ratio=4.0, close=109.0, swing_high=105.0, swing_low=90.0, atr14=4.0)
    triage = [
        values(bundle(row | {"gap_atr": 0.0}, bars=bars, experts=experts))["market.triage"]
        for experts in (False, True)
    ]
    assert triage == ["range_spike volume_spike", "range_spike volume_spike breakout"]


def test_the_delta_is_that_of_the_order_flow() -> None:
    outside = OutsideView({flow_readings.DELTA: 0.25})
    told = values(bundle(bars=last_bars(300), experts=True, outside=outside))
    assert told["liquidity.delta20"] == 0.25 and told["liquidity.divergence"] is not None
    assert flow_readings.DELTA not in values(bundle(bars=last_bars(300), outside=outside))


def test_750_bars_say_what_the_whole_history_says(
    market: tuple[pd.DataFrame, pd.DataFrame], scaled: Callable[..., int]
) -> None:
    bars, rows = market
    for at in np.random.default_rng(1).integers(HISTORY, len(bars), scaled(1000, 12)):
        whole = of_experts(bars, int(at), rows, held=len(bars))
        assert of_experts(bars, int(at), rows) == whole
        assert None not in {whole["micro.spread_count"], whole["geometry.level.8"]} or math.isnan(
            bars["spread"].iloc[at]
        )


def test_what_comes_later_changes_nothing(
    market: tuple[pd.DataFrame, pd.DataFrame], scaled: Callable[..., int]
) -> None:
    bars, _ = market
    assert not list(moved(bars.iloc[:1200], scaled(1000, 6)))


def moved(bars: pd.DataFrame, cases: int) -> list[int]:
    """Return the bars whose numbers change with what is closed after them."""
    rows, found = score_frame(bars), []
    for case in range(cases):
        chance = np.random.default_rng([5, case])
        at = int(chance.integers(WARM_UP, len(bars) - 30))
        other = bars.copy()
        noise = with_spreads(walk(len(bars), case) * 50, case)
        other.iloc[at + 1 :] = noise[other.columns].iloc[at + 1 :].to_numpy()
        if of_experts(bars, at, rows) != of_experts(other, at, score_frame(other)):
            found.append(at)
    return found


def test_a_swing_that_is_not_confirmed_yet_would_be_found(
    market: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    bars, _ = market
    newest = BarView.newest

    def early(self: BarView, name: str, count: int) -> list[Any]:
        """Read on to the bars that would confirm the last swing."""
        end = min(self._end + 5, len(self._shelf.numbers))
        return newest(BarView(self._shelf, self._start, end), name, count)

    assert not moved(bars.iloc[:900], 2)
    monkeypatch.setattr(BarView, "newest", early)
    assert moved(bars.iloc[:900], 2)


def test_upside_down_pairs_change_places_and_signs_turn(scaled: Callable[..., int]) -> None:
    bars = sample("EURUSD_H1").iloc[:1500] * [1000, 1000, 1000, 1000, 1]
    bars.index = pd.date_range(OPENED, periods=len(bars), freq="15min")
    turned = mirrored(bars)
    rows, other_rows = score_frame(bars), score_frame(turned)
    chance = np.random.default_rng(3)
    for at in chance.integers(WARM_UP, len(bars), scaled(2000, 20)):
        delta = round(float(chance.uniform(-1, 1)), 4)
        one, other = (
            of_experts(*given, outside=OutsideView({flow_readings.DELTA: way * delta}))
            for given, way in (((bars, int(at), rows), 1), ((turned, int(at), other_rows), -1))
        )
        wanted = upside_down(one)
        levels = [
            sorted(v for name in LEVEL_IDS if (v := told.pop(name)) is not None)
            for told in (wanted, other)
        ]
        assert levels[1] == pytest.approx(sorted(2048.0 - price for price in levels[0]))
        assert {k: v for k, v in other.items() if isinstance(v, str | None)} == {
            k: v for k, v in wanted.items() if isinstance(v, str | None)
        }
        numbers = {k: v for k, v in wanted.items() if isinstance(v, float)}
        assert {k: other[k] for k in numbers} == pytest.approx(numbers, abs=2e-4)


def upside_down(told: Mapping[str, Any]) -> dict[str, Any]:
    swapped = {**told}
    for one, other in PAIRS:
        swapped[one], swapped[other] = told[other], told[one]
    for name in SIGNED:
        value = swapped[name]
        swapped[name] = None if value is None else -value
    place = swapped["geometry.channel_place"]
    swapped["geometry.channel_place"] = None if place is None else 1.0 - place
    return swapped


def test_fewer_bars_than_a_warm_up_say_nothing() -> None:
    for bars in (last_bars(WARM_UP - 1), None, last_bars(WARM_UP)):
        told = values(bundle(bars=bars, experts=True))
        known = {value for name, value in told.items() if name.startswith(BLOCKS)} - {None}
        assert bool(known) == (bars is not None and len(bars) == WARM_UP)


PRICES = ["open", "high", "low", "close"]


@pytest.mark.parametrize(
    "changed",
    [
        lambda bars: bars.assign(**dict.fromkeys(PRICES, 100.0), volume=0.0),
        lambda bars: bars.assign(volume=0.0),
        lambda bars: bars.assign(high=np.where(bars.index.minute == 15, 1e12, bars["high"])),
        lambda bars: bars.assign(volume=np.where(bars.index.minute == 15, 1e300, bars["volume"])),
        lambda bars: bars.assign(spread=math.nan),
        lambda bars: bars.assign(**{name: bars[name] * 1e-300 for name in PRICES}),
    ],
    ids=["flat", "no volume", "spikes", "heavy", "unknown", "tiny"],
)
def test_hostile_bars_raise_nothing(changed: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    bars = changed(with_spreads(last_bars(600), 2))
    found = of_experts(bars, len(bars) - 1, score_frame(bars))
    assert all(v is None or isinstance(v, str) or math.isfinite(v) for v in found.values())
    row: dict[str, float] = dict.fromkeys(row_of(score_frame(bars).iloc[-1]), math.nan)
    unknown = values(bundle(row, bars=bars, experts=True, spreads=NO_SPREADS))
    assert unknown["liquidity.vwap_atr"] is unknown["geometry.level.1"] is None


def test_a_swing_is_remembered_for_500_bars() -> None:
    high = np.full(510, 100.0)
    for ago, known in ((500, True), (501, False)):
        high[:] = 100.0
        high[-1 - ago] = 101.0
        made = expert_bars.ExpertBars(high, high - 1, high - 0.5, high, 1.0)
        assert (509 - ago in made.peaks()) is known


def test_the_docs_name_each_number_with_its_unit() -> None:
    text = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    section = text.partition("## What the experts read")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    told = {name: unit.strip() for names, unit in rows for name in re.findall("`(.+?)`", names)}
    made = bundle(bars=last_bars(300), experts=True).features
    units = {name: made[name].unit for name in made if name.startswith(BLOCKS)}
    assert told == {
        re.sub(r"(level|pattern)\..+", lambda found: PLACE[found[1]], name): unit
        for name, unit in units.items()
    }


PLACE = {"level": "level.N", "pattern": "pattern.NAME"}

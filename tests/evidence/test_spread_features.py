"""What a tick says of the spreads of its bars, and that no score hears of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.evidence.test_feature_bundle import bundle, made_row, values
from torra.market.spreads import NO_SPREADS, HourSpread, SpreadView, spread_view

NAN = math.nan


def spread(view: SpreadView, **changes: Any) -> dict[str, Any]:
    found = values(bundle(made_row(**changes), digits=2, spreads=view))
    return {
        name.removeprefix("spread."): found[name] for name in found if name.startswith("spread.")
    }


def test_without_spreads_nothing_is_known() -> None:
    unknown = dict.fromkeys(("last", "last_atr", "mean_atr", "percentile"))
    assert spread(NO_SPREADS) == {"available": 0.0, **unknown}
    for none in (None, np.array([]), np.full(750, NAN)):
        assert spread_view(none) == NO_SPREADS


@pytest.mark.parametrize(
    ("view", "atr", "shown"),
    [
        # Four decimals of a price that is quoted with two.
        (SpreadView(0.123456, 0.5, 99.876), 2.0, [1.0, 0.1235, 0.0617, 0.25, 99.88]),
        (SpreadView(0.0, 0.0, None), 2.0, [1.0, 0.0, 0.0, 0.0, None]),
        # A flat market: any spread is wide, as for the assumed one.
        (SpreadView(0.5, 0.5, None), 0.0, [1.0, 0.5, 1000.0, 1000.0, None]),
        (SpreadView(0.5, 0.5, None), NAN, [1.0, 0.5, None, None, None]),
    ],
)
def test_spreads_are_told_in_units_of_the_price_and_in_atr(
    view: SpreadView, atr: float, shown: list[float | None]
) -> None:
    assert list(spread(view, atr14=atr).values()) == shown
    assert values(bundle(spread=0.5, spreads=view))["market.spread_atr"] == 0.25


def test_mean_and_rank_are_those_of_pandas() -> None:
    """A mean needs twenty spreads and a rank a hundred; without the last one nothing is known."""
    chance = np.random.default_rng(3)
    for _ in range(60):
        spreads = chance.integers(0, 30, int(chance.integers(1, 750))) / 10
        spreads[chance.random(len(spreads)) < chance.choice([0.0, 0.3])] = NAN
        spreads[-1] = chance.choice([1.0, NAN])
        series, found = pd.Series(spreads), spread_view(spreads)
        rank = 100.0 * series.rolling(500, min_periods=100).rank(pct=True).to_numpy()[-1]
        mean = series.rolling(20).mean().to_numpy()[-1]
        wanted = [None if math.isnan(value) else pytest.approx(value) for value in (mean, rank)]
        assert [found.mean, found.percentile] == wanted
        assert found.last == (None if math.isnan(spreads[-1]) else 1.0)


# --- the hour -------------------------------------------------------------------------------------

QUARTERS = np.arange(750) * 900_000_000
"""Open times of 750 bars of M15, from midnight: the last one opened at 19:15."""

SAME_HOUR = np.flatnonzero(QUARTERS // 3_600_000_000 % 24 == 19)


def test_a_spread_is_held_against_those_of_its_own_hour() -> None:
    """Thirty of them at least, none of more than 750 bars ago."""
    chance = np.random.default_rng(4)
    for unknown in (0.0, 0.02, 0.3) * 10:
        spreads = chance.integers(0, 4, 846) / 10.0
        spreads[chance.random(846) < unknown] = NAN
        spreads[-1] = chance.integers(0, 4)
        found = spread_view(spreads, np.arange(-96, 750) * 900_000_000)
        hour = spreads[96:][SAME_HOUR]
        known = hour[~np.isnan(hour)]
        rank = 100.0 * pd.Series(known).rank(pct=True).iloc[-1]
        jump = known[-1] / np.median(known) if np.median(known) else None
        wanted = (rank, jump) if len(known) == len(SAME_HOUR) else (None, None)
        assert found.hour is not None
        assert (found.hour.percentile, found.hour.jump) == pytest.approx(wanted)
        assert found.hour.count == len(known)
        assert replace(found, hour=None) == spread_view(spreads)
    assert len(SAME_HOUR) == 30


def test_the_microstructure_expert_is_told_of_it() -> None:
    view = SpreadView(1.0, hour=HourSpread(31, 50.123, 1.23456))
    told = values(bundle(spreads=view, experts=True))
    named = ("spread_percentile", "spread_jump", "spread_count")
    assert [told[f"micro.{name}"] for name in named] == [50.12, 1.23, 31.0]
    unknown = values(bundle(spreads=SpreadView(1.0), experts=True))
    assert [unknown[f"micro.{name}"] for name in named] == [None, None, None]


# --- no score hears of them -----------------------------------------------------------------------

"""Random entries: each ends as the paper bridge ends it, and a draw is what it says it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from technical_calculator import score_frame
from tests.worlds import l1_markets
from tests.worlds.arm_trades import arm_of
from torra.bridges import paper
from torra.bridges.guards import limits
from torra.config import Profile, SymbolSpec
from torra.evaluation.random_entries import (
    RandomEntries,
    VersusRandom,
    drawn,
    outcomes,
    random_entries,
    random_entries_exhibit,
)
from torra.replay.entries import beside_random
from torra.replay.l1.trades import END
from torra.tick.bar_window import as_bars
from torra.verdict.order_levels import Levels, Side, levels


def spec(**changes: float) -> SymbolSpec:
    return SymbolSpec.model_validate({**l1_markets.SPEC, **changes})


def on_paper(bars: pd.DataFrame, atr: np.ndarray, at: int, side: Side, of: SymbolSpec) -> float:
    """R of an opening decided at a bar, as the paper bridge makes it; NaN where it is refused."""
    found = levels(side, float(bars["close"].iloc[at]), float(atr[at]), of)
    if not isinstance(found, Levels):
        return np.nan
    allowed = limits(found.atr, of.digits, spread_share=1000.0, deviation_share=1.0)
    decided = bars.index[at].to_pydatetime() + timedelta(minutes=15)
    order = paper.PaperOrder(
        "S", "open", side, 1.0, found.stop, found.target, decided, None, found.entry, *allowed
    )
    path = list(as_bars(bars.iloc[at + 1 :]))
    done, _ = paper.advance_all([order], None, path, cursor=None, spread=of.spread, spec=of)
    ended = [event for event in done.events if event.kind in ("STOPPED", "TARGET")]
    if ended:
        return ended[0].r_multiple
    if done.position is None:
        return np.nan
    long, close = side == "BUY", float(bars["close"].iloc[-1])
    gain = close - done.position.entry if long else done.position.entry - close - of.spread
    return gain / (abs(found.target - found.stop) / 3)


@pytest.mark.parametrize(
    "costs", [{"spread": 0.0}, {"spread": 0.08, "slippage": 0.02}], ids=["free", "costly"]
)
def test_every_bar_ends_as_on_paper(costs: dict[str, float]) -> None:
    bars, of = l1_markets.walk(11, 330, price=40.0), spec(**costs)
    atr = score_frame(bars)["atr14"].to_numpy(dtype=float)
    found = outcomes(bars, atr, of)
    sides: tuple[tuple[np.ndarray, Side], ...] = ((found.long, "BUY"), (found.short, "SELL"))
    for results, side in sides:
        told = [on_paper(bars, atr, at, side, of) for at in range(209, len(bars) - 1)]
        assert results[209:-1].tolist() == pytest.approx(told, abs=1e-6, nan_ok=True)
        assert np.isnan(results[:209]).all() and np.isnan(results[-1])
        assert np.nanmax(results) >= 1.9 and np.nanmin(results) <= -1.0


def test_a_drift_lifts_the_longs_and_not_the_rule() -> None:
    bars = l1_markets.walk(3, 2000, holes=0.0)
    prices = ["open", "high", "low", "close"]
    bars[prices] = bars[prices].mul(np.exp(np.arange(2000) * 8e-4), axis=0).round(2)
    atr = np.full(2000, 1.0) * bars["close"].to_numpy() * 0.008
    rng = np.random.default_rng(0)
    longs, shorts = (
        random_entries(bars, atr, spec(), 200, share, rng, 200).mean for share in (1.0, 0.0)
    )
    half = random_entries(bars, atr, spec(), 200, 0.5, rng, 200)
    assert longs is not None and shorts is not None and half.mean is not None
    assert longs > 0.1 > -0.1 > shorts
    assert half.mean == pytest.approx((longs + shorts) / 2, abs=0.05)
    assert half.longs == 100


def test_the_spread_of_the_draws_is_that_of_a_mean() -> None:
    bars = l1_markets.walk(5, 3000, holes=0.0)
    found = outcomes(bars, np.full(3000, 0.8), spec())
    known = found.long[~np.isnan(found.long)]
    draws = drawn(found, 150, 0, np.random.default_rng(1), 800).expectancies
    assert draws.mean() == pytest.approx(known.mean(), abs=0.02)
    assert draws.std() == pytest.approx(known.std() / np.sqrt(150), rel=0.1)


def test_draws_repeat_with_their_seed() -> None:
    bars = l1_markets.walk(5, 400)
    again = [
        random_entries(bars, np.full(len(bars), 0.8), spec(), 9, 0.5, np.random.default_rng(4), 20)
        for _ in range(2)
    ]
    assert again[0].expectancies.tolist() == again[1].expectancies.tolist()
    assert (again[0].longs, again[0].count) == (4, 9)


def test_the_share_as_good_is_never_nought() -> None:
    found = drawn(
        outcomes(
            l1_markets.walk(5, 400), np.full(400, 0.8)[: len(l1_markets.walk(5, 400))], spec()
        ),
        5,
        5,
        np.random.default_rng(0),
        99,
    )
    assert found.share_as_good(50.0) == pytest.approx(0.01)
    assert found.share_as_good(-50.0) == 1.0


def test_no_bar_and_no_trade_are_told_in_words() -> None:
    bars = l1_markets.walk(5, 300)
    rng = np.random.default_rng(0)
    nothing = random_entries(bars, np.full(len(bars), np.nan), spec(), 10, 0.5, rng, 10)
    none = random_entries(bars, np.full(len(bars), 0.8), spec(), 0, 0.5, rng, 10)
    assert (nothing.mean, nothing.range, nothing.share_as_good(1.0)) == (None, None, None)
    assert none.mean is None
    shown = random_entries_exhibit(
        [VersusRandom("L1", None, nothing), VersusRandom("other", 0.1, none)]
    )
    assert not shown.enough or shown.says
    assert "no trades" in shown.says
    assert "nothing" in random_entries_exhibit([]).says


def test_trades_that_the_end_closed_are_told() -> None:
    values = np.array([0.1, 0.2])
    told = random_entries_exhibit([VersusRandom("l1", 0.3, RandomEntries(9, 4, values, 2))]).says
    assert told.endswith(" Left out: 2 trades that the end of the history closed.")


def test_an_arm_counts_what_the_end_closed() -> None:
    arm = arm_of([0.5, -1.0, 0.2])
    last = replace(arm.trades[-1], reason=END)
    arm = replace(arm, trades=(*arm.trades[:-1], last))
    found = beside_random(arm, {}, Profile(), np.random.default_rng(0))
    assert found.random.left_out == 1

"""Entries by lot in the five days from each trade on: what of a result is its days."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from tests.worlds import l1_markets
from tests.worlds.arm_trades import arm_of, trade
from torra.config import Profile, SymbolSpec, validate
from torra.evaluation.random_entries import (
    DELAY,
    EntryOutcomes,
    RandomEntries,
    VersusRandom,
    delayed_entries,
    drawn,
    outcomes,
    random_entries_exhibit,
)
from torra.replay.entries import beside_random

QUARTER = timedelta(minutes=15)
BARS = pd.date_range("2024-01-01", periods=2_000, freq=QUARTER, tz="UTC")
FREE = SymbolSpec.model_validate({**l1_markets.SPEC, "spread": 0.0, "slippage": 0.0})


def trade_of(bar: int, side: str = "BUY", r: float = 0.5):
    decided: datetime = BARS[bar].to_pydatetime() + QUARTER
    return trade(decided, r, side=side, decided=decided)


@pytest.mark.parametrize("side", ["BUY", "SELL"])
@pytest.mark.parametrize("bar", [0, 700, 1_990])
def test_an_entry_lies_in_the_five_days_that_begin_with_the_trades_own_bar(
    side: str, bar: int
) -> None:
    inside = (BARS[bar] <= BARS) & (BARS[bar] + DELAY > BARS)
    own, other = np.where(inside, 1.0, 9.0), np.full(len(BARS), 5.0)
    found = EntryOutcomes(own, other) if side == "BUY" else EntryOutcomes(other, own)
    rng = np.random.default_rng(0)
    entries = delayed_entries(found, BARS, [trade_of(bar, side)], rng, 500)
    assert set(entries.expectancies) == {1.0}
    assert (entries.count, entries.longs) == (1, int(side == "BUY"))
    numbered = np.where(inside, np.arange(len(BARS), dtype=float), np.nan)
    drawn_bars = delayed_entries(
        EntryOutcomes(numbered, numbered), BARS, [trade_of(bar, side)], rng, 20_000
    ).expectancies
    assert set(drawn_bars) == set(np.flatnonzero(inside)), "every bar may be drawn"


def test_a_trade_after_which_nothing_could_open_is_left_out() -> None:
    known = np.where(np.arange(len(BARS)) < 1_000, 1.0, np.nan)
    found, rng = EntryOutcomes(known, known), np.random.default_rng(0)
    some = delayed_entries(found, BARS, [trade_of(10), trade_of(1_500, "SELL")], rng, 9)
    assert (some.count, some.longs, some.mean) == (1, 1, 1.0)
    none = delayed_entries(found, BARS, [trade_of(1_500)], rng, 9)
    assert (none.count, none.mean, none.share_as_good(0.0)) == (0, None, None)


def test_on_walks_they_know_nothing_and_the_day_before_would() -> None:
    """A rule that buys strength: an entry before the trade lies on the rise that led to it."""
    after, before = zip(*map(around_strength, range(6)), strict=True)
    assert abs(np.mean(after)) < 0.1
    assert np.mean(before) > 0.3


def around_strength(seed: int) -> tuple[float, float]:
    """Return what longs of the days after and the day before strength come to beyond all longs."""
    bars = l1_markets.walk(seed, 6_000, holes=0.0)
    close = bars["close"].to_numpy()
    results = outcomes(bars, 0.004 * close, FREE).long
    rise = np.append(np.full(96, 0.0), close[96:] / close[:-96] - 1.0)
    rule = np.flatnonzero(rise[:-2_000] > np.quantile(rise, 0.95))[::7]
    after = np.nanmean([np.nanmean(results[at : at + 480]) for at in rule])
    before = np.nanmean([np.nanmean(results[max(0, at - 96) : at]) for at in rule])
    usual = np.nanmean(results)
    return float(after - usual), float(before - usual)


def test_the_first_comparator_draws_what_it_drew_without_the_second() -> None:
    bars = l1_markets.walk(5, 600)
    arm = arm_of([])
    times = [time.to_pydatetime() for time in bars.index]
    trades = [trade(at + QUARTER, 0.3, decided=at + QUARTER, symbol="XAUUSD") for at in times[::40]]
    ticks = [replace(arm.ticks[0], timeframe="M15", bar_time=at, atr=0.8) for at in times]
    arm = replace(arm, ticks=tuple(ticks), trades=tuple(trades))
    profile = validate(Profile, {"symbols": {"XAUUSD": l1_markets.SPEC}}, "a test")
    found = [
        beside_random(arm, {"XAUUSD": {"M15": bars}}, profile, np.random.default_rng(4), 50)
        for _ in range(2)
    ]
    atr = np.full(len(bars), 0.8)
    alone = drawn(
        outcomes(bars, atr, profile.symbol("XAUUSD")), len(trades), 0, np.random.default_rng(4), 50
    )
    assert found[0].random.expectancies == pytest.approx(alone.expectancies)
    assert [*found[0].delayed.expectancies] == [*found[1].delayed.expectancies]
    assert found[0].delayed.count == len(trades)
    assert found[0].delayed.share_as_good(0.3) == found[0].as_good_delayed


def test_the_table_has_both_side_by_side_and_words_of_the_first_arm() -> None:
    first = RandomEntries(9, 4, np.array([0.1, 0.2]))
    days = RandomEntries(9, 4, np.array([0.25, 0.35]))
    shown = random_entries_exhibit(
        [VersusRandom("l1", 0.3, first, days), VersusRandom("budget", 0.3, first)]
    )
    assert shown.figures["l1.delayed"] == pytest.approx(0.3)
    assert shown.figures["l1.delayed_p"] == pytest.approx(2 / 3)
    assert (shown.figures["budget.delayed"], shown.figures["budget.delayed_p"]) == (None, None)
    assert shown.says.endswith(
        "l1: entries of the same side by lot in the 5 days from each trade on come to +0.300 R, "
        "and 66.7 % of these draws do as well: so much is the days, and the rest the moments."
    )
    assert dict(zip(shown.columns, shown.rows[0], strict=True))["days after"] == 0.3

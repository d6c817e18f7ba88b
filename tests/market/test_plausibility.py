"""Filler bars, splits and wrong scales are named, and clean histories are accused of nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from tests.cases import cases
from tests.feeds import broken_histories
from tests.feeds.broken_histories import BROKEN, PRICES, Broken, bars_of, filled, scaled_by, split
from tests.worlds.price_series import sample, times_of, walk
from torra.market.longer_bars import aggregate
from torra.market.plausibility import flat_rows, look

EURUSD = bars_of("EURUSD", "H1")
MIDDLE = len(EURUSD) // 2


@cases("broken", BROKEN, ids=lambda broken: broken.name)
def test_a_broken_history_is_named(broken: Broken) -> None:
    faults = look(broken.bars, broken.timeframe, broken.symbol).faults
    assert any(broken.says in fault for fault in faults)


@cases(("symbol", "timeframe"), broken_histories.MARKETS)
def test_no_week_of_a_clean_history_is_accused(symbol: str, timeframe: str) -> None:
    bars = sample(f"{symbol}_{timeframe}")
    weeks = [week for _, week in bars.groupby(pd.Grouper(freq="W")) if len(week)]
    assert len(weeks) >= 10
    for part in (bars, *weeks):
        assert look(part, timeframe, symbol, bars).faults == ()


def test_filler_is_counted_with_its_share_and_its_ends() -> None:
    bars = filled(EURUSD)
    missing = times_of(bars).difference(times_of(EURUSD))
    assert list(times_of(bars)[flat_rows(bars)]) == list(missing)
    found = look(bars, "H1", "EURUSD")
    assert found.flat == len(missing)
    assert found.faults == (
        f"Filler bars, with four equal prices, are {len(missing):,} of "
        f"{len(bars):,} ({len(missing) / len(bars):.1%}), from ".replace("%)", " %)")
        + f"{missing[0]:%Y-%m-%dT%H:%M:%SZ} to {missing[-1]:%Y-%m-%dT%H:%M:%SZ}.",
    )
    assert look(bars[~flat_rows(bars)], "H1", "EURUSD").faults == ()


def test_filler_of_closed_days_is_found_whatever_its_volume() -> None:
    weeks = EURUSD[times_of(EURUSD) < "2017-12-20"]
    bars = filled(weeks, 1.0)
    assert list(times_of(bars)[flat_rows(bars)]) == [*times_of(bars).difference(times_of(weeks))]


def test_a_market_of_flat_bars_that_trades_at_weekends_has_no_filler() -> None:
    bars = sample("BTCUSD_H1")
    for name in PRICES:
        bars[name] = bars["close"]
    bars["volume"] = 1.0
    assert not flat_rows(bars).any()


@pytest.mark.parametrize(
    ("flat", "volume", "count"),
    [
        pytest.param(7, 0.0, 0, id="seven"),
        pytest.param(8, 0.0, 8, id="eight"),
        pytest.param(60, 5.0, 0, id="with-trades"),
    ],
)
def test_a_quiet_market_is_filler_from_eight_bars_without_volume(
    flat: int, volume: float, count: int
) -> None:
    bars = EURUSD.copy()
    wednesday = int(np.flatnonzero(times_of(bars).day_of_week == 2)[0])
    quiet = times_of(bars)[wednesday : wednesday + flat]
    bars.loc[quiet, [*PRICES, "volume"]] = [bars["close"].iloc[wednesday - 1]] * 4 + [volume]
    assert flat_rows(bars).sum() == count


def test_a_days_filler_is_found_though_a_weekend_has_two_bars_only() -> None:
    days = aggregate(filled(sample("EURUSD_H1")).iloc[2:], "H1", "D1")
    saturdays = days[times_of(days).day_of_week == 5]
    assert len(saturdays) > 40
    assert set(times_of(saturdays)) <= set(times_of(days)[flat_rows(days)])


@pytest.mark.parametrize(
    ("factor", "told"),
    [
        pytest.param(1.30, False, id="less-than-a-quarter"),
        pytest.param(1.35, True, id="more-than-a-quarter"),
        pytest.param(1 / 1.24, False, id="a-rise-of-less"),
        pytest.param(1 / 1.26, True, id="a-rise-of-more"),
    ],
)
def test_a_jump_begins_at_a_quarter_of_the_price(factor: float, told: bool) -> None:
    found = look(split(EURUSD, factor), "H1", "EURUSD")
    assert bool(found.jumps) is told


def test_a_wild_market_may_move_by_a_quarter_and_more() -> None:
    wild = walk(600, 3)
    wild["high"] *= 1.06
    assert look(split(wild, 1.4), "M15").jumps == ()
    assert look(split(wild, 4.0), "M15").jumps != ()


def test_a_price_may_move_far_over_a_long_hole() -> None:
    bars = split(EURUSD, 1.6, MIDDLE)
    index = times_of(bars)
    later = index[MIDDLE:] + pd.Timedelta(weeks=200)
    bars.index = index[:MIDDLE].append(later)
    assert look(bars, "H1").jumps == ()
    assert len(look(split(bars, 10.0, MIDDLE), "H1").jumps) == 1


def test_each_of_a_few_jumps_has_its_sentence_and_many_have_a_count() -> None:
    bars = EURUSD.copy()
    for place in range(100, 1_100, 100):
        bars = split(bars, 10.0 if place % 200 else 0.1, place)
    found = look(bars, "H1")
    assert len(found.jumps) == 10
    assert found.jumps[0] == times_of(bars)[100].to_pydatetime()
    first, _, _, last = found.faults
    assert first.endswith("by a factor of 10, as in a split of 10:1.")
    assert last == "The price has 10 such jumps in all."


def test_one_jump_does_not_hide_the_next() -> None:
    spike = EURUSD.copy()
    spike.loc[times_of(spike)[MIDDLE], PRICES] *= 10.0
    assert len(look(spike, "H1").jumps) == 2


@cases("factor", (10, 20, 1_000, 1 / 10, 1 / 20, 1 / 1_000))
def test_a_scale_of_ten_is_named_where_bars_of_the_symbol_are_known(factor: float) -> None:
    hours, quarters = sample("BTCUSD_H1"), sample("BTCUSD_M15")
    for known in (quarters, quarters.iloc[:400], quarters.iloc[-4:]):
        (fault,) = look(scaled_by(hours, factor), "H1", "ACME", known).faults
        told, rest = fault.removeprefix("The prices are ").split(" ", 1)
        assert float(told) == pytest.approx(factor, rel=0.02)
        assert rest == "times those of the other bars of ACME at the time."
        assert look(hours, "H1", "ACME", known).faults == ()
        assert look(scaled_by(hours, factor), "H1", "ACME").faults == ()


def test_known_bars_of_other_years_accuse_only_what_no_market_moves() -> None:
    later = EURUSD.copy()
    later.index = times_of(EURUSD) + pd.Timedelta(weeks=52 * 8)
    assert look(later, "H1", "EURUSD", EURUSD).faults == ()
    assert look(scaled_by(later, 1.6), "H1", "EURUSD", EURUSD).faults == ()
    (fault,) = look(scaled_by(later, 10.0), "H1", "ACME", EURUSD).faults
    assert "The prices are 9.909 times those" in fault
    coin = sample("BTCUSD_H1")
    later = scaled_by(coin, 8.0)
    later.index = times_of(coin) + pd.Timedelta(weeks=52 * 3)
    assert look(later, "H1", "COIN", coin).faults == ()


@pytest.mark.parametrize(
    ("symbol", "year", "price", "fits"),
    [
        pytest.param("XAUUSD", 1999, 253.0, True, id="gold-at-its-lowest"),
        pytest.param("XAUUSD", 2024, 44_000.0, False, id="gold-times-20"),
        pytest.param("XAUUSD", 2026, 300.0, False, id="dear-gold-by-20"),
        pytest.param("BTCUSD", 2013, 100.0, True, id="early-bitcoin"),
        pytest.param("#BTCUSD", 2026, 3_000.0, False, id="bitcoin-by-20"),
        pytest.param("EURUSD.£", 2026, 112_000.0, False, id="euro-in-points"),
        pytest.param("EUR/USD", 2000, 0.83, True, id="euro-at-its-lowest"),
        pytest.param("GBPJPY", 2026, 21_000.0, False, id="yen-in-points"),
        pytest.param("US 30", 2009, 6_500.0, True, id="dow-at-its-lowest"),
        pytest.param("EURHUF", 2026, 390.0, True, id="a-pair-that-nobody-lists"),
        pytest.param("", 2026, 0.2, True, id="no-name"),
    ],
)
def test_well_known_symbols_have_a_usual_range(
    symbol: str, year: int, price: float, fits: bool
) -> None:
    bars = scaled_by(EURUSD.iloc[:200], price / float(EURUSD["close"].iloc[:200].median()))
    bars.index = times_of(bars) + (datetime(year, 1, 1, tzinfo=UTC) - times_of(bars)[0])
    faults = look(bars, "H1", symbol).faults
    assert (faults == ()) is fits
    assert all(symbol in fault and "is outside of the usual" in fault for fault in faults)


def test_holes_are_a_note_and_weekends_are_none() -> None:
    year = sample("EURUSD_H1")
    assert look(year, "H1").notes == (
        "Of the usual hours of trade 15 bars are missing, in 2 holes; the longest, of 14, begins "
        "on 2017-12-25.",
    )
    index = times_of(year)
    spring = year[(index < "2017-12-20") & ~((index >= "2017-05-09") & (index < "2017-05-11"))]
    (note,) = look(spring, "H1").notes
    assert "48 bars are missing, in 1 hole; the longest, of 48, begins on 2017-05-0" in note
    assert look(spring, "H1").faults == ()


@cases("count", (0, 1, 2, 9))
def test_few_bars_are_looked_at_without_a_word(count: int) -> None:
    for timeframe in ("M15", "H1"):
        assert look(EURUSD.iloc[:count], timeframe, "EURUSD", EURUSD.iloc[:count]).notes == ()

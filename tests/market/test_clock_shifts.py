"""Two timeframes on different clocks are named with their lag, and right ones never are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import pytest

from tests.cases import cases
from tests.conftest import Scale
from tests.worlds.price_series import sample, walk
from tests.worlds.two_clocks import later, misread, other_broker
from torra.market.clock_shifts import ClockShift, shifted
from torra.market.longer_bars import aggregate

LAGS = (1, 2, 3, -1, -2, -3)
HOLES = {"M30": 0.05, "H1": 0.05, "H4": 0.05, "D1": 0.002}
"""Share of missing bars: of a longer bar all must be there."""


@dataclass(frozen=True)
class Pair:
    series: str
    shorter: str
    longer: str

    def frames(self, seed: int | None) -> dict[str, pd.DataFrame]:
        """The pair; with a seed the longer timeframe is another broker's."""
        return {self.shorter: sample(self.series), self.longer: _longer(self, seed)}


@cache
def _longer(pair: Pair, seed: int | None) -> pd.DataFrame:
    bars = sample(pair.series)
    if seed is not None:
        bars = other_broker(bars, seed, missing=HOLES[pair.longer])
    return aggregate(bars, pair.shorter, pair.longer)


PAIRS = (
    Pair("BTCUSD_M15", "M15", "M30"),
    Pair("BTCUSD_M15", "M15", "H1"),
    Pair("BTCUSD_M15", "M15", "H4"),
    Pair("BTCUSD_M15", "M15", "D1"),
    Pair("EURUSD_H1", "H1", "H4"),
    Pair("EURUSD_H1", "H1", "D1"),
)
RULES = (
    ("new_york+7", "+02:00"),
    ("new_york+7", "+03:00"),
    ("new_york+7", "Europe/Athens"),
    ("Europe/Athens", "new_york+7"),
    ("new_york+7", "utc"),
)
"""The clock of a server, and the one that its export was read under."""

MINUTES = {"M1": 1, "M5": 5, "M15": 15, "H1": 60}


def paced(timeframe: str, count: int, seed: int) -> pd.DataFrame:
    """Return a random walk on a timeframe."""
    times = pd.date_range("2024-03-04", periods=count, freq=f"{MINUTES[timeframe]}min", tz="UTC")
    return walk(count, seed).set_axis(times.rename("time"))


pairs = pytest.mark.parametrize("pair", PAIRS, ids=str)


def only(frames: dict[str, pd.DataFrame]) -> ClockShift:
    found = shifted(frames)
    assert len(found) == 1
    return found[0]


@pytest.mark.by_day(8)
@pairs
@pytest.mark.parametrize("hours", LAGS)
def test_a_lag_of_whole_hours_is_named(pair: Pair, hours: int) -> None:
    frames = pair.frames(None)
    moved = only({**frames, pair.longer: later(frames[pair.longer], hours)})
    assert moved.lags == ((float(hours), moved.weeks),)
    assert f"{abs(hours)} h {'later' if hours > 0 else 'earlier'}" in moved.line
    # the same when the shorter one is wrong, the other way round
    moved = only({**frames, pair.shorter: later(frames[pair.shorter], hours)})
    assert moved.hours == -hours


@pytest.mark.by_day(4)
@pairs
def test_right_pairs_raise_no_alarm(pair: Pair, scaled: Scale) -> None:
    assert shifted(pair.frames(None)) == []
    for seed in range(scaled(60)):
        assert shifted(pair.frames(seed)) == []


@pytest.mark.by_day(4)
@pairs
def test_a_lag_is_named_though_the_broker_is_another(pair: Pair, scaled: Scale) -> None:
    for seed in range(scaled(40)):
        frames = pair.frames(seed)
        for hours in LAGS[:: 1 if scaled.whole else 2]:
            moved = only({**frames, pair.longer: later(frames[pair.longer], hours)})
            assert moved.hours == hours
            assert moved.lags[0][1] > 0.5 * moved.weeks


@pytest.mark.by_day(8)
@pytest.mark.parametrize("broker", [None, 1], ids=["same-broker", "other-broker"])
@pytest.mark.parametrize(("server", "clock"), RULES, ids=lambda name: name)
@pytest.mark.parametrize("pair", [PAIRS[1], PAIRS[4]], ids=str)
def test_another_rule_of_daylight_saving_is_named(
    pair: Pair, server: str, clock: str, broker: int | None
) -> None:
    frames = pair.frames(broker)
    wrong = misread(frames[pair.shorter], server, clock)
    moved = only({**frames, pair.shorter: wrong})
    # The truth, by the bars that the wrong clock moved: hours, of the shorter's times.
    lags = (wrong.index - _truth(frames[pair.shorter], server, clock).index) / pd.Timedelta("1h")
    there = {-float(lag) for lag in np.unique(lags) if lag}
    assert {hours for hours, _ in moved.lags} == there
    share = sum(weeks for _, weeks in moved.lags) / moved.weeks
    assert share == pytest.approx(float((lags != 0).mean()), abs=0.1)


def _truth(bars: pd.DataFrame, server: str, clock: str) -> pd.DataFrame:
    """Return those bars at their own times that `misread` keeps."""
    marked = misread(bars.assign(mark=np.arange(len(bars))), server, clock)
    return bars.iloc[marked["mark"].to_numpy()]


def test_the_one_week_in_which_america_is_behind_europe_is_named() -> None:
    frames = PAIRS[1].frames(None)
    wrong = misread(frames["H1"], "Europe/Athens", "new_york+7")
    moved = only({**frames, "H1": wrong})
    assert (moved.lags, moved.weeks) == (((-1.0, 1),), 14)
    assert f"{moved.first:%Y-%m-%d}" == "2021-10-31"
    assert moved.line == (
        "the times of H1 are 1 h earlier than those of M15 in 1 of 14 weeks, from 2021-10-31 on: "
        "moved by that, its closes fit, and as they stand they do not"
    )


@cases("hours", [0.25, 5.75, -9.75])
def test_a_zone_of_quarters_is_found(hours: float) -> None:
    bars = paced("M5", 3_000, 2)
    assert only({"M5": bars, "H1": later(aggregate(bars, "M5", "H1"), hours)}).hours == hours


# --- bars that are named by their ends ------------------------------------------------------------


@cases("broker", [None, 1])
@cases("pair", PAIRS[:4])
def test_a_quarter_of_an_hour_is_named(pair: Pair, broker: int | None) -> None:
    frames = pair.frames(broker)
    moved = only({**frames, "M15": later(frames["M15"], 0.25)})
    assert moved.hours == -0.25
    assert moved.lags[0][1] > 0.8 * moved.weeks
    assert f"the times of {pair.longer} are 15 min earlier than those of M15 in " in moved.line
    assert moved.line.endswith("; one of the two may give the ends of its bars")


@cases("hours", [0, 3, -2])
@cases(("shorter", "longer"), [("M1", "M5"), ("M1", "H1"), ("M5", "M15"), ("M5", "H1")])
def test_ends_of_bars_are_named_beside_any_clock(shorter: str, longer: str, hours: int) -> None:
    frames = {shorter: paced(shorter, 3_000, 1)}
    frames[longer] = aggregate(frames[shorter], shorter, longer)
    ends = {name: MINUTES[name] / 60 for name in frames}
    for late, lag in (
        ({shorter: ends[shorter]}, -ends[shorter]),
        ({longer: ends[longer]}, ends[longer]),
        (ends, ends[longer] - ends[shorter]),
    ):
        moved = {name: later(bars, late.get(name, 0.0)) for name, bars in frames.items()}
        moved[shorter] = later(moved[shorter], hours)
        if lag != hours:
            assert only(moved).hours == pytest.approx(lag - hours)


def test_a_lag_between_quarters_is_written_in_minutes() -> None:
    bars = paced("M5", 3_000, 1)
    moved = only({"M5": later(bars, -3 + 5 / 60), "M15": aggregate(bars, "M5", "M15")})
    assert moved.line.startswith("the times of M15 are 175 min later than those of M5 in ")
    assert moved.line.endswith("as they stand they do not")


# --- nothing is said ------------------------------------------------------------------------------


def test_two_different_markets_are_not_judged(scaled: Scale) -> None:
    for seed in range(scaled(100)):
        longer = aggregate(walk(4_000, seed), "M15", "H1")
        assert shifted({"M15": walk(4_000, seed + 10_000), "H1": longer}) == []


def test_a_peg_of_two_brokers_is_not_judged_by_closes_that_repeat() -> None:
    """Rounded to a few steps, closes of a price that goes nowhere are equal at any lag."""
    for seed in range(15):
        bars = walk(1_920, seed)
        random = np.random.default_rng(seed)
        held = [0.0]
        for move in random.normal(0, 0.3e-4, len(bars) - 1):
            held.append(0.95 * held[-1] + move)
        prices = 7.46 + np.array(held)
        one, other = (
            bars.assign(close=(prices + random.normal(0, 0.5e-4, len(bars))).round(4))
            for _ in range(2)
        )
        assert shifted({"M15": one, "H1": other.iloc[3::4].shift(freq="-45min")}) == []


@cases("timeframe", ["M1", "M5", "M15"])
def test_quiet_markets_of_two_brokers_raise_no_alarm(timeframe: str, scaled: Scale) -> None:
    """Few steps of the price in a day: many closes are equal at many lags."""
    for seed in range(scaled(60, least=10)):
        chance = np.random.default_rng(seed)
        bars = paced(timeframe, 4_000, seed)
        moves = chance.normal(0.0, 1e-4, len(bars)) * (chance.random(len(bars)) < 0.02)
        one, other = (
            bars.assign(close=(1.1 + moves.cumsum() + noise).round(4))
            for noise in chance.normal(0.0, 5e-5, (2, len(bars)))
        )
        assert shifted({timeframe: one, "H1": aggregate(other, timeframe, "H1")}) == []


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_few_bars_say_nothing(count: int) -> None:
    frames = PAIRS[1].frames(None)
    few = later(frames["H1"].iloc[400 : 400 + count], 1)
    assert shifted({"M15": frames["M15"], "H1": few}) == []
    assert shifted({"H1": few}) == []


def test_a_morning_is_enough_where_closes_are_equal() -> None:
    frames = PAIRS[1].frames(None)
    few = later(frames["H1"].iloc[400:408], 2)
    assert only({"M15": frames["M15"], "H1": few}).hours == 2


def test_every_pair_of_three_timeframes_is_compared() -> None:
    bars = sample("BTCUSD_M15")
    frames = {"M15": bars, "H4": aggregate(bars, "M15", "H4")}
    frames["H1"] = later(aggregate(bars, "M15", "H1"), 3)
    found = {(one.shorter, one.longer): one.hours for one in shifted(frames)}
    assert found == {("M15", "H1"): 3.0, ("H1", "H4"): -3.0}

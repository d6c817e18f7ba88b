"""The numbers of a companion: exact values, what is None, and that nothing later is looked at."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from torra.clock import EPOCH, duration
from torra.evidence.companion_readings import (
    CORRELATED,
    LEAST_RANKED,
    NUMBERS,
    READ_BARS,
    CompanionBars,
    change,
    correlation,
    pearson,
    percentile,
    read,
)
from torra.evidence.outside_readings import OutsideView
from torra.market.bar_view import BarView

STEP = timedelta(hours=1)
MICRO = timedelta(microseconds=1)
BEGIN = datetime(2024, 3, 4, tzinfo=UTC)


def opened(count: int, begin: datetime = BEGIN, step: timedelta = STEP) -> np.ndarray:
    return ((begin - EPOCH) // MICRO) + np.arange(count, dtype=np.int64) * (step // MICRO)


def walk(count: int, seed: int) -> np.ndarray:
    return 100.0 * np.exp(np.cumsum(np.random.default_rng(seed).normal(0.0, 0.003, count)))


def view(times: np.ndarray, closes: np.ndarray) -> BarView:
    index = pd.DatetimeIndex(times.view("M8[us]")).tz_localize(UTC)
    return BarView.of(pd.DataFrame({"close": closes}, index=index))


def at(times: np.ndarray, number: int, step: timedelta = STEP) -> datetime:
    """Return when a bar closes."""
    return EPOCH + int(times[number]) * MICRO + step


def test_a_change_is_in_percent_of_the_close_so_many_bars_before() -> None:
    closes = np.array([80.0, *[90.0] * 14, 95.0, 99.0, 101.0, 102.0, 100.0, 110.0])
    assert change(closes, 1) == pytest.approx(10.0, abs=1e-12)
    assert change(closes, 5) == pytest.approx(100.0 * (110.0 / 95.0 - 1.0), abs=1e-12)
    assert change(closes, 20) == pytest.approx(37.5, abs=1e-12)
    assert change(closes[1:], 20) is None and change(closes[:1], 1) is None


def test_a_rank_counts_equal_closes_half_and_needs_a_hundred() -> None:
    closes = np.concatenate([np.full(40, 1.0), np.full(30, 3.0), np.full(29, 2.0), [2.0]])
    assert percentile(closes) == pytest.approx(100.0 * (40 + 30 / 2) / 100, abs=1e-12)
    assert percentile(closes[1:]) is None and len(closes) == LEAST_RANKED
    rising = np.arange(1.0, 251.0)
    assert percentile(rising) == pytest.approx(100.0 * 249.5 / 250, abs=1e-12)


def test_a_correlation_is_that_of_the_last_sixty_common_returns() -> None:
    times = opened(200)
    own, other = walk(200, 1), walk(200, 2)
    mixed = own * other**0.5
    expected = np.corrcoef(np.diff(np.log(mixed))[-60:], np.diff(np.log(own))[-60:])[0, 1]
    found = correlation(times, mixed, times, own, STEP)
    assert found == pytest.approx(float(expected), abs=1e-12) and abs(float(expected)) > 0.5
    assert correlation(times, 1.0 / own, times, own, STEP) == pytest.approx(-1.0, abs=1e-12)
    # What lies before the sixty has no say.
    spoilt = mixed.copy()
    spoilt[:139] = walk(139, 3)
    assert correlation(times, spoilt, times, own, STEP) == found
    spoilt[139] *= 1.01
    assert correlation(times, spoilt, times, own, STEP) != found


def test_only_bars_of_the_same_times_are_held_against_each_other() -> None:
    times, own, other = opened(300), walk(300, 1), walk(300, 2)
    here = np.flatnonzero(np.arange(300) % 24 < 9)  # a market of nine hours a day
    pairs = [(n - 1, n) for n in here if n - 1 in here][-60:]
    one = [math.log(other[n] / other[m]) for m, n in pairs]
    two = [math.log(own[n] / own[m]) for m, n in pairs]
    expected = float(np.corrcoef(one, two)[0, 1])
    found = correlation(times[here], other[here], times, own, STEP)
    assert found == pytest.approx(expected, abs=1e-12)
    # A return over the night is none of one bar, on neither side.
    assert correlation(times, own, times[here], other[here], STEP) == pytest.approx(
        expected, abs=1e-12
    )


def test_a_correlation_needs_sixty_pairs_and_two_that_move() -> None:
    times, own, other = opened(61), walk(61, 1), walk(61, 2)
    assert correlation(times, other, times, own, STEP) is not None
    assert correlation(times[1:], other[1:], times, own, STEP) is None
    assert correlation(times, np.full(61, 0.1), times, own, STEP) is None
    assert correlation(times, other, times, np.full(61, 1.0 / 3.0), STEP) is None
    assert correlation(times + 1, other, times, own, STEP) is None, "no time is common"
    assert CORRELATED == 60


@pytest.mark.parametrize("seed", range(20))
def test_pearson_is_that_of_numpy_and_stays_within_one(seed: int) -> None:
    chance = np.random.default_rng(seed)
    one = chance.normal(0.0, 10.0 ** chance.integers(-8, 4), 60)
    other = chance.uniform(-1.0, 1.0) * one + chance.normal(0.0, 1e-3, 60)
    for row in (other, 3.0 * one, -0.1 * one):
        found = pearson(one, row)
        assert found == pytest.approx(float(np.corrcoef(one, row)[0, 1]), abs=1e-12)
        assert found is not None and abs(found) <= 1.0


def test_a_companion_whose_newest_bar_closes_now_has_all_five_numbers() -> None:
    times, own, other = opened(300), walk(300, 1), walk(300, 2)
    as_of = at(times, 299)
    found = read({"dxy": CompanionBars("USDX.f", times, other)}, "H1", as_of, view(times, own))
    newest = other[-READ_BARS:]
    assert found.numbers == {
        "companion.dxy.change_1": change(newest, 1),
        "companion.dxy.change_5": change(newest, 5),
        "companion.dxy.change_20": change(newest, 20),
        "companion.dxy.percentile": percentile(newest),
        "companion.dxy.correlation": correlation(times, other, times, own, STEP),
    }
    assert None not in found.numbers.values()
    assert found.statuses == {"companion": "available"}
    seen = found.seen["companion.dxy"]
    assert (seen.value, seen.at, seen.known_at, seen.source, seen.stale) == (
        other[-1], as_of, as_of, "USDX.f", False,
    )  # fmt: skip


def test_what_is_late_or_stale_or_not_there_is_none_and_says_why() -> None:
    times, own, other = opened(300), walk(300, 1), walk(300, 2)
    as_of, market = at(times, 299), view(times, own)
    bars = {"here": CompanionBars("X", times, other), "missing": CompanionBars("X")}
    bars |= {lack: CompanionBars("X", lack=lack) for lack in ("clock", "unread")}
    for behind, lack in ((1, "late"), (2, "late"), (3, "stale")):
        bars[lack] = bars["here"]._replace(times=times[:-behind], closes=other[:-behind])
        found = read({lack: bars[lack]}, "H1", as_of, market)
        assert [*found.numbers] == [f"companion.{lack}.{name}" for name in NUMBERS]
        assert {*found.numbers.values()} == {None}
        assert found.statuses == {"companion": lack, f"companion.{lack}": lack}
        seen = found.seen[f"companion.{lack}"]
        assert seen.stale and seen.at == at(times, 299 - behind)
    found = read(bars, "H1", as_of, market)
    assert found.statuses == {"companion": "available"} | {
        f"companion.{lack}": lack for lack in bars if lack != "here"
    }
    none = {name: bars[name] for name in ("late", "missing")}
    assert read(none, "H1", as_of, market).statuses["companion"] == "late, missing"
    assert read({}, "H1", as_of, market) == OutsideView()


@pytest.mark.parametrize("timeframe", ["M15", "H4"])
def test_the_timeframe_says_when_a_bar_closes(timeframe: str) -> None:
    step = duration(timeframe)
    times = opened(150, step=step)
    bars = CompanionBars("X", times, walk(150, 2))
    market = view(times, walk(150, 1))
    assert read({"x": bars}, timeframe, at(times, 149, step), market).statuses == {
        "companion": "available"
    }

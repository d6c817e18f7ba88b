"""The numbers of a companion: exact values, what is None, and that nothing later is looked at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from torra.clock import EPOCH
from torra.evidence.companion_readings import (
    CHANGES,
    CORRELATED,
    LEAST_RANKED,
    NUMBERS,
    READ_BARS,
    CompanionBars,
    change,
    correlation,
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


def by_pandas(times: np.ndarray, closes: np.ndarray, own: np.ndarray) -> list[float | None]:
    """Return the five numbers of a companion, of hours some of which are its own alone."""
    newest = pd.Series(closes[-READ_BARS:])
    changes = [100.0 * newest.pct_change(bars).iloc[-1] for bars in CHANGES]
    rank = 100.0 * (newest.rank().iloc[-1] - 0.5) / len(newest)
    hours = pd.Series(closes, times).tail(READ_BARS).reindex(opened(len(own)))
    moves = pd.DataFrame({"own": np.log(own), "other": np.log(hours.to_numpy())}).diff().dropna()
    last = moves.tail(CORRELATED)
    return [*changes, rank, last["own"].corr(last["other"])]


@pytest.mark.parametrize("seed", range(12))
def test_every_number_is_that_of_pandas(seed: int) -> None:
    """Closes of few steps, so that some are equal; of all hours, of most, or of nine a day."""
    times, own, chance = opened(300), walk(300, seed), np.random.default_rng(seed)
    here = [np.arange(300) >= 0, chance.random(300) < 0.8, np.arange(300) % 24 < 12][seed % 3]
    here[-2:] = True
    other = np.round(own * walk(300, seed + 50) ** 0.5, seed % 2 + 1)
    as_of = at(times, 299)
    bars = CompanionBars("USDX.f", times[here], other[here])
    found = read({"dxy": bars}, "H1", as_of, view(times, own))
    wanted = by_pandas(times[here], other[here], own)
    assert list(found.numbers) == [f"companion.dxy.{name}" for name in NUMBERS]
    assert list(found.numbers.values()) == [pytest.approx(value, abs=1e-9) for value in wanted]
    assert found.statuses == {"companion": "available"}
    seen = found.seen["companion.dxy"]
    assert (seen.value, seen.at, seen.known_at, seen.source, seen.stale) == (
        other[-1], as_of, as_of, "USDX.f", False,
    )  # fmt: skip


def test_too_few_bars_and_what_does_not_move_have_no_number() -> None:
    times, own, other = opened(61), walk(61, 1), walk(61, 2)
    assert correlation(times, 1.0 / own, times, own, STEP) == pytest.approx(-1.0, abs=1e-12)
    for others in (
        (times[1:], other[1:], times, own),
        (times, np.full(61, 0.1), times, own),
        (times, other, times, np.full(61, 1.0 / 3.0)),
        (times + 1, other, times, own),  # no time is common
    ):
        assert correlation(*others, STEP) is None
    assert change(own[:20], 20) is None and change(own[:21], 20) is not None
    assert percentile(np.ones(LEAST_RANKED - 1)) is None
    assert percentile(np.ones(LEAST_RANKED)) == 50.0


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

"""A series that truly leads the market is found at its reader, and its placebo is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pandas as pd
import pytest
from numpy.random import PCG64, Generator

from tests.examples import examples
from tests.worlds import outside_series
from torra.config import Profile, validate
from torra.evaluation.information import ALL, coefficients
from torra.evaluation.outcomes import RoundTripCosts, outcomes
from torra.evidence.outside_numbers import SeriesRow
from torra.replay.arms import ARMS
from torra.replay.outlook_then import SHIFT, PointInTimeData
from torra.replay.runner import Schedule, run_arm
from torra.replay.shards.history import History
from torra.replay.voices import rules_voice

BEGIN: Final = datetime(2024, 1, 1, tzinfo=UTC)
DAY: Final = timedelta(days=1)
DAYS: Final = 160
EVERY: Final = 6
"""Hours between two ticks: what a seat reads changes once a day."""

WARM: Final = 40
"""Days before the first tick, for the scores of the bars."""

HORIZON: Final = 4
SILENT: Final = ("technical", "sentiment", "bull_researcher", "bear_researcher")
"""Seats of the arm that read no series: by day they are empty."""

PROFILE: Final = {
    "symbols": {
        "US500": {
            "asset": "index",
            "digits": 2,
            "tick_size": 0.01,
            "tick_value": 0.01,
            "contract_size": 1.0,
            "lot_min": 0.01,
            "lot_step": 0.01,
            "lot_max": 100.0,
            "spread": 0.1,
        }
    },
    "timeframe_weights": {"H1": 1.0},
}


def planted(seed: int) -> tuple[History, PointInTimeData]:
    """Return an index and VIX: a day moves against the last change of VIX that was known before."""
    rng = Generator(PCG64([seed, 32]))
    before = SHIFT.days + 400
    values = 20.0 + 4.0 * rng.uniform(-1.0, 1.0, before + DAYS + WARM)
    ats = [BEGIN - before * DAY + number * DAY for number in range(len(values))]
    rows = [
        SeriesRow("VIXCLS", at, at + DAY - timedelta(hours=2), float(value), "made")
        for at, value in zip(ats, values, strict=True)
    ]
    # The value of a day is known late on it: it leads the next one.
    last = np.arange(before - 1, before + DAYS + WARM - 1)
    lean = -np.sign(values[last] - values[last - 20])
    steps = np.repeat(lean * 0.6, 24) + rng.normal(0.0, 1.0, 24 * (DAYS + WARM))
    closes = (5000.0 + np.cumsum(steps)).round(2)
    opens = np.concatenate([[5000.0], closes[:-1]])
    wide = rng.uniform(0.1, 0.6, len(closes)).round(2)
    frame = pd.DataFrame(
        {
            "open": opens,
            "high": np.maximum(opens, closes) + wide,
            "low": np.minimum(opens, closes) - wide,
            "close": closes,
            "volume": rng.integers(50, 500, len(closes)).astype(float),
        },
        index=pd.date_range(BEGIN, periods=len(closes), freq="h", tz="UTC", name="time"),
    )
    history = History("US500", {"H1": frame}, {"H1": "made"})
    return history, PointInTimeData(series=tuple(outside_series.stored(rows)))


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("name", "found"), [("outside", True), ("outside_shifted", False)])
def test_the_seat_that_reads_a_leading_series_is_found_and_its_placebo_is_not(
    name: str, found: bool
) -> None:
    history, outlook = planted(1)
    course = Schedule.of(history, begin=BEGIN + WARM * DAY, outlook=outlook)
    course = replace(course, keys=course.keys[::EVERY])
    profile = validate(Profile, PROFILE, "a test")
    arm = replace(ARMS[name], without=() if examples.whole else SILENT)
    seen = run_arm(course, arm, profile, rules_voice(arm))
    costs = {"US500": RoundTripCosts(0.0, 0.0)}
    told = outcomes(seen.ticks, {("US500", "H1"): history.frames["H1"]}, costs, (HORIZON,))
    (one,) = (
        one
        for one in coefficients(seen.ticks, told)
        if (one.agent, one.vector, one.horizon) == ("fundamental", ALL, HORIZON)
    )
    assert one.n >= 600
    assert one.estimate is not None
    assert (one.estimate.low > 0.0) == found

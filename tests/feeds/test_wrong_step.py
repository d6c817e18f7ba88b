"""Bars of a longer timeframe are refused, by every feed's door; bars with gaps are not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.worlds import stores
from tests.worlds.price_series import times_of
from torra.clock import TIMEFRAMES, duration
from torra.config import Instance
from torra.errors import DataUnavailable
from torra.feeds import door
from torra.feeds.door import MIN_STEPS
from torra.feeds.frame import FrameFeed
from torra.tick.bar_window import LiveWindow

MONDAY = datetime(2024, 3, 4, tzinfo=UTC)
COUNT = 400
LONGER = list(itertools.combinations(TIMEFRAMES, 2))
"""Every timeframe, and one that is longer."""


def bars(opens: pd.DatetimeIndex | list[datetime]) -> pd.DataFrame:
    prices = {"open": 100.0, "high": 101.0, "low": 99.0, "close": 100.5, "volume": 7.0}
    return pd.DataFrame(prices, index=pd.DatetimeIndex(opens, name="time"))


def regular(timeframe: str, count: int = COUNT) -> pd.DataFrame:
    return bars([MONDAY + at * duration(timeframe) for at in range(count)])


def end_of(frame: pd.DataFrame, timeframe: str) -> datetime:
    newest: datetime = times_of(frame)[-1].to_pydatetime()
    return newest + duration(timeframe)


def passes(frame: pd.DataFrame, timeframe: str) -> bool:
    """Whether bars come through the door, and through the sieve of histories, all or none."""
    as_of = end_of(frame, timeframe)
    reason, passed = "", 0
    try:
        passed = len(door.check(frame, timeframe, as_of=as_of, minimum=1))
    except DataUnavailable as refusal:
        reason = refusal.reason
    assert reason in ("", "wrong_step")
    assert (
        len(door.drop_invalid_bars(frame, timeframe, as_of=as_of))
        == passed
        == len(frame) * (not reason)
    )
    return not reason


@pytest.mark.parametrize(("shorter", "longer"), LONGER)
def test_bars_of_a_longer_timeframe_are_refused(shorter: str, longer: str) -> None:
    frame = regular(longer)
    assert passes(frame, longer)
    assert not passes(frame, shorter)


def test_the_step_is_named() -> None:
    frame = regular("H1")
    with pytest.raises(DataUnavailable, match="most bars are 1:00:00 apart: they are of a longer"):
        door.check(frame, "M15", as_of=end_of(frame, "M15"))


def test_a_daylight_saving_date_hides_no_longer_step() -> None:
    days = pd.date_range("2024-01-01", periods=COUNT, freq="D", tz="America/New_York")
    assert not passes(bars(days.tz_convert(UTC)), "H1")


def test_a_few_bars_of_the_right_step_do_not_hide_the_others() -> None:
    frame = regular("H1")
    newest = [end_of(frame, "H1") + at * duration("M15") for at in range(COUNT // 4)]
    assert not passes(bars([*times_of(frame), *newest]), "M15")


# --- what has gaps and passes ---------------------------------------------------------------------


def weekdays(day: datetime) -> bool:
    return day.weekday() < 5


def session(timeframe: str, first: int, last: int) -> pd.DataFrame:
    """Bars of a market that opens `first` hours and closes `last` hours after midnight."""
    step = duration(timeframe)
    begin, end = timedelta(hours=first) // step, timedelta(hours=last) // step
    days = filter(weekdays, (MONDAY + timedelta(days=at) for at in range(COUNT)))
    opens = (day + at * step for day in days for at in range(begin, end))
    return bars(list(itertools.islice(opens, COUNT)))


SESSIONS = {
    "a week of currencies": ("M15", 0, 24),
    "metals with their break": ("H1", 0, 23),
    "two bars of four hours": ("H4", 12, 20),
    "shares by the hour": ("H1", 14, 21),
    "shares by the half hour": ("M30", 14, 21),
    "days without weekends": ("D1", 0, 24),
}


@pytest.mark.parametrize(("timeframe", "first", "last"), SESSIONS.values(), ids=SESSIONS)
def test_a_market_that_closes_passes(timeframe: str, first: int, last: int) -> None:
    assert passes(session(timeframe, first, last), timeframe)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.1, 0.3, 0.7, 0.97])
def test_a_thin_market_passes(share: float, scaled: Callable[..., int]) -> None:
    """A share of the bars is there, each by chance."""
    dice = np.random.default_rng(11)
    for _ in range(scaled(1_000, 20)):
        steps = np.cumsum(dice.geometric(share, 220))
        opens = pd.DatetimeIndex(pd.Timestamp(MONDAY) + steps * pd.Timedelta(minutes=1))
        assert passes(bars(opens), "M1")


def test_a_few_bars_say_nothing() -> None:
    assert passes(regular("H1", MIN_STEPS), "M15")
    assert not passes(regular("H1", MIN_STEPS + 1), "M15")


# --- and none of them is kept ---------------------------------------------------------------------


def test_bars_of_a_longer_timeframe_are_not_stored(tmp_path: Path) -> None:
    frame = regular("H1")
    end = end_of(frame, "M15")
    database = stores.open_database(tmp_path)
    window = LiveWindow(
        Instance(symbol="XAUUSD", timeframes=("M15",)), FrameFeed({"M15": frame}), database
    )
    assert window.fill(end) == 0
    with pytest.raises(DataUnavailable, match="longer timeframe"):
        window.bars("M15", end)
    database.close()

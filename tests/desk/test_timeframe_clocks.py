"""A live desk looks once a day whether an instance's timeframes are of one clock, and says so."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from tests.worlds import desks
from tests.worlds.price_series import sample
from tests.worlds.two_clocks import later
from torra.clock import duration
from torra.desk import timeframe_clocks
from torra.desk.schedule import Desk
from torra.market.longer_bars import aggregate

BARS = sample("BTCUSD_M15")
HOURS = aggregate(BARS, "M15", "H1")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return desks.working_desk(tmp_path)


def hold(desk: Desk, hours: pd.DataFrame, upto: datetime | None = None) -> None:
    """Store the sample's M15 beside these H1 bars, and stand at the end of both."""
    for name, frame in (("M15", BARS), ("H1", hours)):
        desk.database.store_bars("BTCUSD", name, frame)
    desks.clock_of(desk).set(upto or BARS.index[-1].to_pydatetime() + duration("M15"))


def alarms(desk: Desk) -> list[tuple[str, str]]:
    return [(row.kind, row.detail) for row in desk.database.alarms()]


def test_a_shifted_timeframe_raises_one_alarm_that_says_which_and_by_how_much(desk: Desk) -> None:
    hold(desk, later(HOURS, -3))
    assert desk.look_at_clocks() == 1
    [(kind, detail)] = alarms(desk)
    assert kind == "CLOCK_SHIFT"
    assert detail.startswith("BTCUSD: the times of H1 are 3 h earlier than those of M15 in ")
    assert desk.look_at_clocks() == 1
    assert len(alarms(desk)) == 1
    assert desk.database.trading_state() == "ACTIVE"


def test_the_alarm_ends_when_the_bars_are_mended(desk: Desk) -> None:
    hold(desk, later(HOURS, 1))
    desk.look_at_clocks()
    hold(desk, HOURS)
    assert desk.look_at_clocks() == 0
    assert alarms(desk) == []


def test_bars_that_no_tick_reads_any_more_are_the_doctors_business(desk: Desk) -> None:
    begin = BARS.index[-1] - timeframe_clocks.LAST_WEEKS - timedelta(days=3)
    hold(desk, pd.concat([later(HOURS[HOURS.index < begin], -1), HOURS[HOURS.index >= begin]]))
    assert desk.look_at_clocks() == 0
    instance = desk.setups["BTCUSD"].instance
    now = desk.clock.now()
    [found] = timeframe_clocks.shifts(desk.database, instance, now=now)
    assert found.hours == -1.0


def test_nothing_of_the_future_is_looked_at(desk: Desk) -> None:
    middle = BARS.index[4_000].to_pydatetime()
    later_wrong = pd.concat([HOURS[HOURS.index < middle], later(HOURS[HOURS.index > middle], 2)])
    hold(desk, later_wrong, upto=middle)
    assert desk.look_at_clocks() == 0

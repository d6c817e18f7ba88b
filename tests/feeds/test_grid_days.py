"""Daylight saving time is invisible: every UTC day has its 96 quarter-hours, each once.

Four changes of the clocks, seen from three time zones of the host and three clocks of the broker,
through the feed of the Expert Advisor's bars and on the grid of the desk's scheduler.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from tests.worlds.mt5_bars import GOLD, WALLS, offset, put, quarters, rows, text
from tests.worlds.mt5_bars import feed as bars_feed
from torra.clock import Simulated
from torra.desk.timers import TIMER_SLACK, BarCloses, next_close
from torra.feeds import door
from torra.market.broker_clock import ServerClock

CHANGES = {
    "USA spring": datetime(2026, 3, 8, tzinfo=UTC),
    "Europe spring": datetime(2026, 3, 29, tzinfo=UTC),
    "Europe autumn": datetime(2026, 10, 25, tzinfo=UTC),
    "USA autumn": datetime(2026, 11, 1, tzinfo=UTC),
}
HOSTS = ("America/New_York", "Europe/Athens", "Asia/Kolkata")
DAY = timedelta(days=1)
QUARTER = timedelta(minutes=15)


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Move the host to another time zone; it must be one, or the test shows nothing."""
    if not hasattr(time, "tzset"):
        pytest.skip("this system cannot be moved to another time zone")
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        assert time.localtime(0).tm_gmtoff != 0
        yield request.param
    time.tzset()


@pytest.fixture(params=[*CHANGES.values()], ids=[*CHANGES])
def days(request: pytest.FixtureRequest) -> list[datetime]:
    """The UTC days before, of and after a change."""
    return [request.param + number * DAY for number in (-1, 0, 1)]


def whole(days: list[datetime], minutes: int = 15) -> dict[datetime, int]:
    """Every bar's open of these days, once."""
    return dict.fromkeys(quarters(days[0], len(days) * 1440 // minutes, minutes), 1)


def test_the_feed_brings_every_bar_of_a_day_once(
    tmp_path: Path, host: str, days: list[datetime]
) -> None:
    end = days[-1] + DAY
    for clock, (timeframe, minutes) in product(WALLS, (("M15", 15), ("M30", 30), ("H1", 60))):
        wall, server = WALLS[clock], ServerClock.parse(clock)
        feed = bars_feed(tmp_path, {"BTCUSD": "BTCUSD"}, server)
        opens = list(whole(days, minutes))
        path = tmp_path / "bars" / f"BTCUSD_{timeframe}.csv"
        source = replace(GOLD, broker_symbol="BTCUSD", timeframe=timeframe)
        put(path, text(rows(opens, wall), offset(wall, end), source), end)
        frame = feed.bars("BTCUSD", timeframe, end)
        found = Counter(stamp.to_pydatetime() for stamp in frame.index)
        assert dict(found) == whole(days, minutes), clock
        per_day = Counter(stamp.date() for stamp in found)
        assert set(per_day.values()) == {1440 // minutes}, clock
        door.check(frame, timeframe, as_of=end, minimum=len(opens))


def test_the_scheduler_wakes_at_every_close_once(host: str, days: list[datetime]) -> None:
    clock = Simulated(days[0])
    trigger = BarCloses(clock, ("M15", "H1"))
    woken = []
    for _ in range(3 * 96):
        moment = next_close(clock.now(), ("M15", "H1"))
        left = trigger.get_next_fire_time(None, clock.real_now()) - clock.real_now()
        assert abs(left - TIMER_SLACK - (moment - clock.now())) < timedelta(seconds=2)
        woken.append(moment)
        clock.set(moment)
    assert woken == [moment + QUARTER for moment in whole(days)]

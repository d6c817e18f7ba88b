"""Bars that have stopped coming are told as such, and a market that is closed is not."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.doubles.page_reader import Page
from tests.worlds import desks
from tests.worlds.desk_pages import Pages, open_pages
from torra.clock import parse
from torra.config import Instance, Profile
from torra.dashboard.screens import health_checks
from torra.dashboard.view.desk_view import DatabaseView
from torra.feeds.protocol import stream_state
from torra.store import bars as bar_table

HOUR = timedelta(hours=1)
EUR = Instance(symbol="EURUSD", timeframes=("H1",), feed="store")
BTC = Instance(symbol="BTCUSD", timeframes=("H1",), feed="store")


def opened(home: Path, one: Instance, close: datetime, count: int = 300) -> Pages:
    """Return the pages of a desk that has the sample's bars up to a close, and no tick."""
    found = open_pages(home, (one,), steps=0)
    bars = desks.sample().bars(one.symbol, "H1", close, count)
    found.database.store_bars(one.id, "H1", bars)
    return found


def stream(pages: Pages, now: datetime) -> Any:
    pages.desk.clock.set(now)
    view = DatabaseView(pages.database, pages.backing.settings, pages.desk)
    return view.overview().instances[0].streams[0]


def test_a_desk_whose_bars_are_old_warns_on_home_and_health(tmp_path: Path) -> None:
    close = parse("2021-11-10T10:00:00Z")
    pages = opened(tmp_path, EUR, close)
    pages.desk.clock.set(close + HOUR)
    assert "close of the next bar" in Page(pages.text("/")).text
    assert pages.json("/api/v1/health")["signs"]["streams"][0]["level"] == "note"
    pages.desk.clock.set(close + timedelta(days=515))
    home = Page(pages.text("/"))
    assert "the newest bar closed 515 d 0 h ago" in home.text
    assert home.texts("notice-of")[0].startswith("◷ stale H1")
    assert "1 of 1 stale" in home.texts("glance")[0]
    told = pages.json("/api/v1/health")
    (sign,) = told["signs"]["streams"]
    assert (told["status"], sign["level"]) == ("alert", "alert")
    assert sign["detail"].startswith("stale: the newest bar closed 515 d 0 h ago")
    assert sign["remedy"] == health_checks.FEEDS["store"]
    assert pages.json("/healthz")["status"] == "attention"
    pages.desk.close()


@pytest.mark.parametrize(
    ("one", "now", "hours", "stale"),
    [
        (EUR, "2021-11-13T13:00:00Z", 15, False),  # a Saturday
        (EUR, "2021-11-13T00:00:00Z", 2, False),  # a Friday evening
        (EUR, "2021-11-15T00:00:00Z", 50, False),  # the first hours of a week
        (EUR, "2021-11-17T12:00:00Z", 15, True),  # a Wednesday
        (BTC, "2021-11-13T12:00:00Z", 15, True),  # coins know no weekend
    ],
)
def test_a_closed_market_is_no_fault_and_a_hole_is(
    tmp_path: Path, one: Instance, now: str, hours: int, stale: bool
) -> None:
    moment = parse(now)
    pages = opened(tmp_path, one, moment - hours * HOUR)
    assert stream(pages, moment).stale is stale
    pages.desk.close()


@pytest.mark.parametrize(
    ("now", "stale"),
    [
        ("2021-11-12T23:45:00Z", False),
        ("2021-11-13T12:00:00Z", False),
        ("2021-11-15T00:45:00Z", True),
    ],
)
def test_a_stream_is_stale_by_the_hours_that_its_market_had_a_week_before(
    tmp_path: Path, now: str, stale: bool
) -> None:
    pages = open_pages(tmp_path, (desks.EUR,), steps=0)
    close = parse("2021-11-12T22:00:00Z")
    pages.desk.clock.set(close - HOUR)
    desks.step(pages.desk)
    assert stream(pages, parse(now)).stale is stale
    pages.desk.close()


@pytest.mark.parametrize(("bars", "stale"), [(1, False), (2, True), (24, True)])
def test_a_desk_whose_ticks_fail_while_bars_come_is_stale(
    tmp_path: Path, bars: int, stale: bool
) -> None:
    pages = open_pages(tmp_path, (desks.EUR,), steps=0)
    close = parse("2021-11-10T11:00:00Z")
    pages.desk.clock.set(close - HOUR)
    desks.step(pages.desk)
    newest = close + bars * HOUR
    pages.database.store_bars(desks.EUR.id, "H1", desks.sample().bars("EURUSD", "H1", newest, 300))
    told = stream(pages, newest + 0.6 * HOUR)
    assert (told.stale, told.bar_age_seconds) == (stale, 0.6 * HOUR.total_seconds())
    (sign,) = pages.json("/api/v1/health")["signs"]["streams"]
    assert sign["level"] == ("alert" if stale else "ok")
    if stale:
        assert "ago, though bars have come since; " in sign["detail"]
        assert sign["remedy"] == health_checks.NO_TICK
        assert Page(pages.text("/")).texts("notice-of")[0].startswith("◷ stale H1")
    pages.desk.close()


def test_a_stream_of_the_past_is_told_without_reading_its_bars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = parse("2021-11-10T10:00:00Z")
    pages = opened(tmp_path, EUR, close)
    monkeypatch.delattr(bar_table, "closes")
    assert stream(pages, close + timedelta(days=515)).stale
    pages.desk.close()


def test_a_pause_of_every_night_is_no_fault(tmp_path: Path) -> None:
    pages = open_pages(tmp_path, (desks.EUR,), steps=0)
    close = parse("2021-11-10T22:00:00Z")
    pages.desk.clock.set(close - HOUR)
    desks.step(pages.desk)
    assert stream(pages, close + 1.6 * HOUR).stale
    gone = pd.Timestamp(close - timedelta(days=7))
    with pages.database.transaction():
        pages.database.connection().execute(
            "DELETE FROM bars WHERE bar_time = ?", [gone.strftime("%Y-%m-%dT%H:%M:%SZ")]
        )
    assert not stream(pages, close + 1.6 * HOUR).stale
    pages.desk.close()


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ("2021-11-13T12:00:00Z", ""),
        ("2021-11-14T22:30:00Z", ""),
        ("2021-11-15T04:00:00Z", "the newest bar closed 2021-11-12T22:00:00Z, 2 days ago"),
    ],
)
def test_doctor_and_a_start_tell_old_bars_and_no_weekend(now: str, told: str) -> None:
    class Stopped(desks.Holed):
        def bars(self, symbol: str, timeframe: str, as_of: datetime, *rest: Any) -> Any:
            last = parse("2021-11-12T22:00:00Z")
            return super().bars(symbol, timeframe, min(as_of, last), *rest)

    state = stream_state(Stopped(set()), "EURUSD", "H1", parse(now), Profile())
    assert state.startswith(told) and bool(state) is bool(told)

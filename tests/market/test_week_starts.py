"""A week that begins at different hours over the year tells that a file's clock is wrong."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.cases import cases
from tests.worlds.price_series import sample
from tests.worlds.two_clocks import later, misread
from torra.errors import ConfigError
from torra.market.longer_bars import aggregate
from torra.market.week_starts import moving

EURUSD = sample("EURUSD_H1")
BITCOIN = sample("BTCUSD_M15")

SERVERS = ("new_york+7", "Europe/Athens", "+02:00", "+03:00", "utc")
READ_AS = (*SERVERS, "Europe/London")


def seasons(clock: str) -> str:
    """Name the rule of daylight saving of a clock; clocks of one rule look alike to a week."""
    return {"new_york+7": "America", "Europe/Athens": "Europe", "Europe/London": "Europe"}.get(
        clock, "none"
    )


@pytest.mark.journey
@cases("clock", READ_AS)
@cases("server", SERVERS)
def test_a_wrong_rule_of_daylight_saving_is_seen_and_a_right_one_never(
    server: str, clock: str
) -> None:
    found = moving(misread(EURUSD, server, clock), "H1", clock)
    if seasons(server) == seasons(clock):
        assert found is None
    else:
        assert found is not None
        assert {seasons(name) for name in found.better} == {seasons(server)}
        assert clock not in found.better


def test_the_sentence_says_what_moves_and_names_the_clock() -> None:
    found = moving(misread(EURUSD, "Europe/Athens", "new_york+7"), "H1", "new_york+7")
    assert found is not None
    assert found.line == (
        "read as new_york+7, the first bar of a week moves: of 51 weeks it is at 17:00 in 47, "
        "16:00 in 3, 18:00 in 1 in New York; read as Europe/Athens it stands still"
    )


def test_of_fixed_clocks_those_are_named_under_which_markets_open_on_sunday_evening() -> None:
    found = moving(misread(EURUSD, "+02:00", "new_york+7"), "H1", "new_york+7")
    assert found is not None and "utc" not in found.better and "+02:00" in found.better


@cases("clock", READ_AS)
def test_a_market_without_weekends_raises_no_alarm(clock: str) -> None:
    for server in SERVERS:
        assert moving(misread(BITCOIN, server, clock), "M15", clock) is None


def test_holes_in_a_market_without_weekends_are_no_weeks() -> None:
    holed = BITCOIN.copy()
    for day in range(3, 80, 13):
        start = holed.index[0] + pd.Timedelta(days=day)
        outage = (holed.index >= start) & (holed.index < start + pd.Timedelta(hours=31 + day % 7))
        holed = holed[~outage]
    assert moving(holed, "M15", "utc") is None


@cases(
    ("city", "opens", "closes"),
    [
        ("Europe/Berlin", 8, 22),
        ("Europe/London", 8, 21),
        ("Asia/Tokyo", 9, 15),
        ("Australia/Sydney", 10, 16),
        ("America/New_York", 9, 16),
    ],
)
@cases("clock", [*READ_AS, "Europe/Berlin", "+09:00", "Australia/Sydney"])
def test_a_market_that_opens_by_its_own_citys_clock_is_left_alone(
    city: str, opens: int, closes: int, clock: str
) -> None:
    hours = pd.date_range("2024-01-01", "2024-12-31", freq="h", tz=city)
    open_now = (hours.day_of_week < 5) & (hours.hour >= opens) & (hours.hour < closes)
    bars = pd.DataFrame({"close": 1.0}, index=hours[open_now].tz_convert("UTC"))
    assert moving(bars, "H1", clock) is None


def test_little_is_no_ground() -> None:
    wrong = misread(EURUSD, "new_york+7", "utc")
    assert moving(wrong, "H1", "utc") is not None
    assert moving(wrong.loc["2017-03-01":"2017-03-20"], "H1", "utc") is None
    assert moving(wrong.iloc[:0], "H1", "utc") is None
    assert moving(aggregate(later(wrong, 0), "H1", "H4"), "H4", "utc") is None


def test_an_unknown_clock_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown clock"):
        moving(EURUSD, "H1", "Atlantis")

"""The weeks of a file tell which clock can be its own, and at which hour its market opens."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.cases import cases
from tests.worlds.broker_weeks import MARKETS, History
from tests.worlds.price_series import sample, times_of
from tests.worlds.two_clocks import later, misread
from torra.errors import ConfigError
from torra.market.broker_clock import ServerClock
from torra.market.longer_bars import aggregate
from torra.market.week_starts import TRIED, WeekLook, look

EURUSD = sample("EURUSD_H1")
BITCOIN = sample("BTCUSD_M15")

READ_AS = ("new_york+7", "Europe/Athens", "+02:00", "+03:00", "utc", "Europe/London")
STILL = {"new_york+7", "Europe/Athens"}
"""Clocks that a file of a server of new_york+7 fits: the market opens at one hour of both."""

MARCHES = (("2023-03-01", "2023-04-04"), ("2024-02-28", "2024-04-02"), ("2025-02-26", "2025-04-01"))
"""Five weeks each, of which two or three begin between America's change of clocks and Europe's."""


def weeks(bars: pd.DataFrame, clock: str, timeframe: str = "H1") -> WeekLook:
    answer = look(bars, timeframe, clock)
    assert answer is not None
    return answer


def read(history: History, clock: str) -> pd.DataFrame:
    """Return the bars of a history as they are read under a clock."""
    return pd.DataFrame(index=ServerClock.parse(clock).to_utc_index(history.walls()))


@pytest.mark.journey
@cases("clock", TRIED)
@cases("server", TRIED)
def test_a_wrong_clock_is_named_and_the_right_one_never(server: str, clock: str) -> None:
    answer = weeks(misread(EURUSD, server, clock), clock)
    if server == clock:
        assert (answer.warning, answer.fits) == ("", True)
    elif server == "new_york+7" and clock in STILL:
        assert (answer.warning, answer.others) == ("", (server,))
    elif server in ("+03:00", "Europe/Moscow") and clock == "+02:00":
        assert answer.note.endswith("Europe/Moscow or +03:00 fits as well.")
    elif (server, clock) not in (("+03:00", "Europe/Moscow"), ("Europe/Moscow", "+03:00")):
        assert server in answer.others and not answer.fits
        assert clock not in answer.others


def test_the_warning_says_when_weeks_begin_and_names_the_clock() -> None:
    answer = weeks(misread(EURUSD, "Europe/Athens", "new_york+7"), "new_york+7")
    assert answer.hours == ((17, 47), (16, 3), (18, 1))
    assert answer.note == ""
    assert answer.warning == (
        "Its weeks begin in New York at 17:00 (47 of 51), 16:00 (3), 18:00 (1), which does not fit "
        "the clock new_york+7; Europe/Athens fits."
    )


def test_the_note_says_when_weeks_begin_and_what_fits_as_well() -> None:
    right = weeks(EURUSD, "utc")
    assert (right.warning, right.others) == ("", ())
    assert right.note == "Its weeks begin in New York at 17:00 (50 of 51), 18:00 (1)."
    both = weeks(misread(EURUSD, "new_york+7", "Europe/Athens"), "Europe/Athens")
    assert both.warning == ""
    assert both.note == (
        "Its weeks begin in New York at 17:00 (47 of 51), 18:00 (4); new_york+7 fits as well."
    )


@cases("opens", [4, 5])
@cases("seed", range(2))
def test_a_market_that_stands_still_on_its_server_fits_both_clocks(opens: int, seed: int) -> None:
    history = History(MARKETS[opens], "Europe/Athens", 6, 12, "H1", seed)
    for clock, other in (("Europe/Athens", "new_york+7"), ("new_york+7", "Europe/Athens")):
        answer = weeks(read(history, clock), clock)
        assert (answer.warning, answer.others) == ("", (other,))


@cases("opens", [4, 5])
def test_a_month_around_the_change_of_clocks_accuses_nobody(opens: int) -> None:
    whole = read(History(MARKETS[opens], "Europe/Athens", 0, 36, "H1", 0), "Europe/Athens")
    for begin, end in MARCHES:
        march = whole.loc[begin:end]
        assert len(march) > 500
        answer = weeks(march, "Europe/Athens")
        assert (answer.warning, answer.others[0]) == ("", "new_york+7")


def test_one_differing_week_proves_nothing() -> None:
    autumn = EURUSD.loc["2017-08-01":"2017-12-20"]  # one week between the changes of clocks
    answer = weeks(misread(autumn, "Europe/Athens", "new_york+7"), "new_york+7")
    assert (answer.warning, answer.others) == ("", ("Europe/Athens",))


def test_a_file_without_the_bars_of_sunday_is_none_of_new_yorks() -> None:
    monday = EURUSD[times_of(EURUSD).day_of_week < 5]
    answer = weeks(monday, "utc")
    assert answer.hours[0][0] in (19, 20) and (answer.warning, answer.others) == ("", ())


@cases("clock", READ_AS)
def test_a_market_without_weekends_has_no_weeks(clock: str) -> None:
    for server in ("new_york+7", "utc"):
        assert look(misread(BITCOIN, server, clock), "M15", clock) is None


def test_holes_in_a_market_without_weekends_are_no_weeks() -> None:
    holed = BITCOIN.copy()
    for day in range(3, 80, 13):
        start = holed.index[0] + pd.Timedelta(days=day)
        outage = (holed.index >= start) & (holed.index < start + pd.Timedelta(hours=31 + day % 7))
        holed = holed[~outage]
    assert look(holed, "M15", "utc") is None


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
def test_a_market_that_opens_by_its_own_citys_clock_is_not_judged(
    city: str, opens: int, closes: int, clock: str
) -> None:
    hours = pd.date_range("2024-01-01", "2024-12-31", freq="h", tz=city)
    open_now = (hours.day_of_week < 5) & (hours.hour >= opens) & (hours.hour < closes)
    bars = pd.DataFrame({"close": 1.0}, index=hours[open_now].tz_convert("UTC"))
    answer = weeks(bars, clock)
    assert (answer.warning, answer.others) == ("", ()) and answer.note


def test_few_weeks_are_not_judged_and_longer_bars_have_no_hour() -> None:
    wrong = misread(EURUSD, "new_york+7", "utc")
    assert weeks(wrong, "utc").warning
    few = weeks(wrong.loc["2017-03-01":"2017-03-20"], "utc")
    assert (few.warning, few.hours) == ("", ((20, 2), (19, 1)))
    assert look(wrong.iloc[:0], "H1", "utc") is look(wrong.iloc[:1], "H1", "utc") is None
    assert look(aggregate(later(wrong, 0), "H1", "H4"), "H4", "utc") is None


def test_an_unknown_clock_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown clock 'Mars'"):
        look(EURUSD, "H1", "Mars")

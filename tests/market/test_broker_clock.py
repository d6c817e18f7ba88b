"""The broker's clock: both ways, at every jump, for single times and for whole files."""

from __future__ import annotations

import calendar
import random
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from zoneinfo import available_timezones

import numpy as np
import pandas as pd
import pytest

from tests.cases import cases
from torra.errors import ConfigError
from torra.market.broker_clock import ServerClock, check, detect, shown

NEW_YORK = ServerClock.parse("new_york+7")
ATHENS = ServerClock.parse("Europe/Athens")


def wall(text: str) -> int:
    """Wall seconds of a time as the server shows it."""
    return calendar.timegm(datetime.fromisoformat(text).timetuple())


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def index(clock: ServerClock, *times: str) -> list[datetime | None]:
    found = clock.to_utc_index(np.array([wall(time) for time in times], dtype=np.int64))
    assert str(found.dtype) == "datetime64[us, UTC]"
    return [None if pd.isna(time) else time.to_pydatetime() for time in found]


BETWEEN = utc("2026-03-10 12:00")  # America has changed its clocks, Europe has not
SUMMER = utc("2026-07-01 12:00")
WINTER = utc("2026-01-15 12:00")


@cases(
    ("name", "server", "moment"),
    [
        ("utc", "2026-07-01 12:00", "2026-07-01 12:00"),
        ("+03:00", "2026-01-15 12:00", "2026-01-15 09:00"),
        ("-05:30", "2026-01-15 12:00", "2026-01-15 17:30"),
        ("new_york+7", "2026-03-06 23:45", "2026-03-06 21:45"),
        ("new_york+7", "2026-03-09 00:00", "2026-03-08 21:00"),
        ("new_york+7", "2026-11-02 00:00", "2026-11-01 22:00"),
        ("Europe/Athens", "2026-03-10 12:00", "2026-03-10 10:00"),
        ("Europe/Athens", "2026-03-30 12:00", "2026-03-30 09:00"),
        ("Europe/Athens", "2026-10-27 12:00", "2026-10-27 10:00"),
    ],
)
def test_known_moments(name: str, server: str, moment: str) -> None:
    clock = ServerClock.parse(name)
    assert clock.name == name
    assert clock.to_utc(wall(server)) == utc(moment)
    assert clock.from_utc(utc(moment)) == wall(server)
    assert clock.offset_at(utc(moment)) == timedelta(seconds=wall(server) - wall(moment))
    assert index(clock, server) == [utc(moment)]


def sunday(year: int, month: int, number: int) -> date:
    first = date(year, month, 1)
    return first + timedelta(days=(6 - first.weekday()) % 7 + 7 * (number - 1))


def american_offset(moment: datetime) -> timedelta:
    """The rule since 2007, worked out without a time zone database."""
    year = moment.year
    spring = datetime.combine(sunday(year, 3, 2), datetime.min.time(), UTC) + timedelta(hours=7)
    autumn = datetime.combine(sunday(year, 11, 1), datetime.min.time(), UTC) + timedelta(hours=6)
    return timedelta(hours=3 if spring <= moment < autumn else 2)


def test_the_usual_clock_follows_the_american_rule(scaled: Callable[..., int]) -> None:
    chance = random.Random(20260308)
    start = datetime(2007, 4, 1, tzinfo=UTC)
    for _ in range(scaled(30_000)):
        moment = start + timedelta(minutes=chance.randrange(30 * 365 * 1440))
        assert NEW_YORK.offset_at(moment) == american_offset(moment)
        server = calendar.timegm((moment + american_offset(moment)).timetuple())
        assert NEW_YORK.from_utc(moment) == server
        assert NEW_YORK.to_utc(server) in (moment, moment - timedelta(hours=1))
        assert NEW_YORK.to_utc(server) == moment or NEW_YORK.shown_twice(server)


@cases(
    "name",
    ["utc", "+05:45", "new_york+7", "Europe/London", "Australia/Lord_Howe", "Africa/Casablanca"],
)
def test_many_times_are_read_like_single_ones(name: str, scaled: Callable[..., int]) -> None:
    clock, chance = ServerClock.parse(name), random.Random(name)
    start = wall("2015-01-01 00:00")
    for _ in range(scaled(500)):
        times = [start + 900 * chance.randrange(20 * 365 * 96) for _ in range(40)]
        found = clock.to_utc_index(np.array(sorted(times), dtype=np.int64))
        for time, moment in zip(sorted(times), found, strict=True):
            if pd.isna(moment):
                with pytest.raises(ValueError, match="does not exist"):
                    clock.to_utc(time)
            else:
                assert moment == clock.to_utc(time) or times.count(time) > 1


@pytest.mark.parametrize(
    ("clock", "last", "missing", "first"),
    [
        (NEW_YORK, "2026-03-08 08:45", "2026-03-08 09:00", "2026-03-08 10:00"),
        (ATHENS, "2026-03-29 02:45", "2026-03-29 03:00", "2026-03-29 04:00"),
    ],
)
def test_the_hour_that_is_never_shown(
    clock: ServerClock, last: str, missing: str, first: str
) -> None:
    before, never, after = index(clock, last, missing, first)
    assert never is None and before is not None
    assert after == before + timedelta(minutes=15)
    with pytest.raises(ValueError, match=rf"{missing}:00 does not exist on a server of "):
        clock.to_utc(wall(missing))


HOUR = [f"2026-11-01 08:{minute:02}" for minute in (0, 15, 30, 45)]
FIRST = [utc(f"2026-11-01 05:{minute:02}") for minute in (0, 15, 30, 45)]
SECOND = [time + timedelta(hours=1) for time in FIRST]


@cases(
    ("times", "moments"),
    [
        (HOUR + HOUR, FIRST + SECOND),
        ([*HOUR, HOUR[1], HOUR[3]], [*FIRST, SECOND[1], SECOND[3]]),
        ([HOUR[0], HOUR[2], HOUR[1], HOUR[3]], [FIRST[0], FIRST[2], SECOND[1], SECOND[3]]),
        ([HOUR[3], HOUR[0]], [FIRST[3], SECOND[0]]),
        ([HOUR[0], HOUR[0]], [FIRST[0], SECOND[0]]),
        (HOUR, FIRST),
        ([HOUR[2]], [FIRST[2]]),
    ],
    ids=["all", "holes in the second", "holes in both", "end and start", "H1", "once", "one"],
)
@cases("around", [True, False])
def test_the_hour_that_is_shown_twice(
    times: list[str], moments: list[datetime], around: bool
) -> None:
    if around:
        times = ["2026-11-01 07:30", "2026-11-01 07:45", *times, "2026-11-01 09:00"]
        moments = [
            utc("2026-11-01 04:30"), utc("2026-11-01 04:45"), *moments, utc("2026-11-01 07:00"),
        ]  # fmt: skip
    assert index(NEW_YORK, *times) == moments


def test_each_autumn_has_its_own_doubled_hour() -> None:
    years = index(NEW_YORK, "2025-11-02 08:30", "2025-11-02 08:00", "2026-11-01 08:00")
    assert years == [utc("2025-11-02 05:30"), utc("2025-11-02 06:00"), utc("2026-11-01 05:00")]


def test_what_is_shown_twice() -> None:
    shown_twice = [time for time in ("08:00", "08:59", "07:59", "09:00")
                   if NEW_YORK.shown_twice(wall(f"2026-11-01 {time}"))]  # fmt: skip
    assert shown_twice == ["08:00", "08:59"]
    assert not ServerClock.parse("+03:00").shown_twice(wall("2026-11-01 08:00"))


def test_no_times_and_far_times() -> None:
    assert index(NEW_YORK) == []
    assert index(NEW_YORK, "0001-01-01 12:00", "9999-12-31 12:00")[1] is not None


@cases(
    "name",
    ["", "UTC+3", "GMT+3", "+3", "+15:00", "+03:60", "new york+7", "new_york+8", "Europe",
     "Factory", "Europe/Nowhere", "localtime", "posixrules", "../../etc/passwd",
     "posix/Europe/Athens", "right/EET", "Europe/Athens\n", "Europe/../Europe/Athens",
     "+03:00 ", "zone.tab", "UTC "],
)  # fmt: skip
def test_an_unknown_clock_names_the_forms(name: str) -> None:
    with pytest.raises(ConfigError, match=r"use utc, new_york\+7, .*\+03:00 or a zone"):
        ServerClock.parse(name)


def test_every_zone_of_the_database_is_a_clock_but_those_of_the_host() -> None:
    refused = set()
    for name in available_timezones():
        try:
            assert ServerClock.parse(name).name == ("utc" if name in ("UTC", "GMT") else name)
        except ConfigError:
            refused.add(name)
    assert refused <= {"localtime", "posixrules", "Factory"}


@cases(
    ("name", "winter", "summer"),
    [
        ("EET", 2, 3), ("EST", -5, -5), ("EST5EDT", -5, -4), ("Etc/GMT-3", 3, 3), ("W-SU", 3, 3),
    ],
)  # fmt: skip
def test_a_zone_without_a_region_is_a_clock(name: str, winter: float, summer: float) -> None:
    clock = ServerClock.parse(name)
    hours = [clock.offset_at(at) / timedelta(hours=1) for at in (WINTER, SUMMER)]
    assert (clock.name, hours) == (name, [winter, summer])


@cases("name", ["utc", "UTC", "Utc", "GMT", "gmt", "Z", "z"])
def test_the_names_of_utc_are_one_clock(name: str) -> None:
    assert ServerClock.parse(name) == ServerClock.parse("utc")


@cases(
    ("name", "right"),
    [
        ("europe/athens", "Europe/Athens"), ("EUROPE/ATHENS", "Europe/Athens"), ("eet", "EET"),
        ("New_York+7", "new_york+7"), ("america/New_york", "America/New_York"),
    ],
)  # fmt: skip
def test_a_name_in_other_letters_is_refused_with_the_right_one(name: str, right: str) -> None:
    with pytest.raises(ConfigError, match=rf"^unknown clock '{re.escape(name)}': use ") as refusal:
        ServerClock.parse(name)
    assert str(refusal.value).endswith(f"use {right}")


# --- what the Expert Advisor reports --------------------------------------------------------------


@cases(
    ("hours", "at", "names"),
    [
        (3, BETWEEN, ["new_york+7", "Europe/Moscow", "+03:00"]),
        (2, BETWEEN, ["Europe/Athens", "+02:00"]),
        (3, SUMMER, ["new_york+7", "Europe/Athens", "Europe/Moscow", "+03:00"]),
        (2, WINTER, ["new_york+7", "Europe/Athens", "+02:00"]),
        (0, WINTER, ["Europe/London", "utc"]),
        (-5, WINTER, ["-05:00"]),
        (5.75, WINTER, ["+05:45"]),
        (20, WINTER, []),
    ],
)
def test_clocks_are_found_from_an_offset(hours: float, at: datetime, names: list[str]) -> None:
    for seconds in (-400, -1, 0, 1, 400):  # its computer's clock may be a little off
        assert detect(int(hours * 3600) + seconds, at) == names
    for name in names:
        assert ServerClock.parse(name).offset_at(at) == timedelta(hours=hours)


@cases("clock", [NEW_YORK, ATHENS, ServerClock.parse("-05:00")])
@cases("at", [BETWEEN, SUMMER, WINTER])
def test_an_offset_that_fits_is_no_fault(clock: ServerClock, at: datetime) -> None:
    seconds = int(clock.offset_at(at).total_seconds())
    assert check(clock, seconds, at) == check(clock, seconds + 7, at) == ""
    assert check(clock, seconds + 900, at) != ""
    assert check(clock, seconds - 3600, at) != ""


def test_a_fault_names_both_offsets_and_the_remedy() -> None:
    assert check(NEW_YORK, 7199, BETWEEN) == (
        "MT5 says that its server is +02:00 from UTC, but new_york+7 was +03:00 at "
        "2026-03-10T12:00:00Z: if the clock of MT5's computer is right, set server_clock to "
        "Europe/Athens or +02:00 or another clock"
    )
    assert shown(wall("2026-03-08 09:15")) == "2026-03-08 09:15:00"

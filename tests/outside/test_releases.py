"""When a number was known: business days, the rules of both publishers, and every postponement."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from tests import ROOT
from torra.outside.releases import (
    FIRST_REPORT,
    GAPS,
    POSTPONED,
    UNANNOUNCED,
    business_day_after,
    cot_known_at,
    fred_known_at,
    is_business_day,
)

DAY = timedelta(days=1)


def day(text: str) -> date:
    return date.fromisoformat(text)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


KEPT = """
2020 01-01 01-20 02-17 05-25 07-03 09-07 10-12 11-11 11-26 12-25
2021 01-01 01-18 02-15 05-31 06-18 07-05 09-06 10-11 11-11 11-25 12-24 12-31
2022 01-17 02-21 05-30 06-20 07-04 09-05 10-10 11-11 11-24 12-26
2023 01-02 01-16 02-20 05-29 06-19 07-04 09-04 10-09 11-10 11-23 12-25
2026 01-01 01-19 02-16 05-25 06-19 07-03 09-07 10-12 11-11 11-26 12-25
"""
"""Holidays by year; in 2021 Juneteenth is new, and two Januaries begin."""


@pytest.mark.parametrize("line", KEPT.strip().split("\n"))
def test_federal_holidays_are_kept_on_these_days(line: str) -> None:
    year, *kept = line.split()
    days = [day(f"{year}-01-01") + number * DAY for number in range(365)]
    free = [one for one in days if one.weekday() < 5 and not is_business_day(one)]
    assert free == [day(f"{year}-{one}") for one in kept]


def test_business_days_are_counted_over_weekends_and_holidays() -> None:
    assert business_day_after(day("2026-07-01")) == day("2026-07-02")
    assert business_day_after(day("2026-07-02")) == day("2026-07-06")
    assert business_day_after(day("2026-07-04")) == day("2026-07-06")
    assert business_day_after(day("2025-12-30"), 3) == day("2026-01-05")
    assert not is_business_day(day("2021-12-31")) and not is_business_day(day("2026-07-05"))


# --- FRED -----------------------------------------------------------------------------------------


KNOWN = """
DGS10 2026-11-24 2026-11-25
DGS2 2026-11-25 2026-11-27       Thanksgiving
DFII10 2026-11-27 2026-11-30
T10YIE 2026-07-02 2026-07-06
VIXCLS 2021-12-30 2022-01-03     New Year's Day is kept on the 31st
DTWEXBGS 2026-11-16 2026-11-23   a Monday
DTWEXBGS 2026-11-20 2026-11-23
DTWEXBGS 2026-11-22 2026-11-23
DTWEXBGS 2026-10-09 2026-10-13   Columbus Day
DTWEXBGS 2026-05-18 2026-05-26   Memorial Day
"""


@pytest.mark.parametrize("line", KNOWN.strip().split("\n"))
def test_a_day_is_known_on_the_next_business_day_and_the_dollar_on_the_monday_after(
    line: str,
) -> None:
    name, about, known, *_ = line.split()
    assert fred_known_at(name, day(about)) == utc(f"{known} 22:00")


def test_nothing_is_known_before_its_day_is_over() -> None:
    for number in range(3000):
        about = day("2019-01-01") + number * DAY
        over = datetime(about.year, about.month, about.day, tzinfo=UTC) + DAY
        for name in ("DGS10", "DTWEXBGS"):
            assert over < fred_known_at(name, about) <= over + 8 * DAY
        known = cot_known_at(about)
        assert known is None or known > over + 2 * DAY


# --- the CFTC -------------------------------------------------------------------------------------

SCHEDULE_2024 = """
01-05 01-12 01-19 01-26 02-02 02-09 02-16 02-23 03-01 03-08 03-15 03-22 03-29
04-05 04-12 04-19 04-26 05-03 05-10 05-17 05-24 05-31 06-07 06-14 06-24 06-28
07-08 07-12 07-19 07-26 08-02 08-09 08-16 08-23 08-30 09-06 09-13 09-20 09-27
10-04 10-11 10-18 10-25 11-01 11-08 11-15 11-22 12-02 12-06 12-13 12-20 12-30
"""
"""The CFTC's own schedule of releases of the year (cftc.gov, Release Schedules)."""


def test_the_rule_is_the_cftcs_schedule_of_a_whole_year() -> None:
    known = [cot_known_at(day("2024-01-02") + 7 * week * DAY) for week in range(52)]
    told = [day(f"2024-{one}") for one in SCHEDULE_2024.split()]
    assert [moment.date() for moment in known if moment is not None] == told


TUESDAYS = """
2026-11-17 2026-11-20 20:30   winter
2026-09-22 2026-09-25 19:30   summer
2026-03-03 2026-03-06 20:30   the Friday before clocks change
2026-03-10 2026-03-13 19:30
2026-10-27 2026-10-30 19:30
2026-11-03 2026-11-06 20:30
2025-12-30 2026-01-05 20:30   exceptions of the CFTC's schedule of 2026
2026-06-16 2026-06-22 19:30
2026-06-30 2026-07-06 19:30
2026-11-10 2026-11-16 20:30
2026-11-24 2026-11-30 20:30
2026-12-22 2026-12-28 20:30
2026-09-08 2026-09-11 19:30   Monday is no day between
2021-06-15 2021-06-21 19:30   a new holiday of the same week
2023-07-03 2023-07-07 19:30   Monday's count
"""


@pytest.mark.parametrize("line", TUESDAYS.strip().split("\n"))
def test_a_tuesday_is_known_on_the_third_business_day_in_new_york(line: str) -> None:
    assert cot_known_at(day(line[:10])) == utc(line[11:27])


@pytest.mark.parametrize("gap", GAPS, ids=str)
def test_each_gap_is_planted(gap: tuple[date, date]) -> None:
    """No report of a gap is known by the rule: late, by the table, or not at all."""
    first, last = gap
    moments = []
    for about in (first + number * DAY for number in range((last - first).days + 1)):
        known = cot_known_at(about)
        assert (known is not None) == (about in POSTPONED)
        if known is not None:
            moments.append(known)
            assert known > utc(f"{business_day_after(about, 3)} 19:30"), about
    assert first in POSTPONED and moments == sorted({*moments}), "in the order of their weeks"
    # Before and after, the rule holds.
    assert cot_known_at(first - 7 * DAY) is not None
    assert cot_known_at(last + 7 * DAY) is not None


def test_the_longest_delay_is_told() -> None:
    """What was due on 2025-10-03 came 47 days late, and is known when that day is over."""
    assert cot_known_at(day("2025-09-30")) == utc("2025-11-20 05:00")
    assert cot_known_at(day("2023-03-14")) == utc("2023-03-22 04:00")
    assert day("2025-11-19") - day("2025-10-03") == 47 * DAY


def test_what_is_uncertain_is_unknown() -> None:
    for text in ("2017-01-17", "2018-12-04", "2021-01-19", "2013-10-22", "2009-03-03"):
        assert cot_known_at(day(text)) is None
    assert cot_known_at(FIRST_REPORT) is not None
    # No report is about a day without a market.
    assert cot_known_at(day("2026-11-22")) is None and cot_known_at(day("2026-12-25")) is None


def test_the_page_tells_of_every_gap_and_every_single_report() -> None:
    page = (ROOT / "docs" / "outside.md").read_text(encoding="utf-8")
    for first, last in GAPS:
        reports = [first + number * DAY for number in range((last - first).days + 1)]
        inside = sum(1 for about in reports if about in POSTPONED)
        (line,) = (line for line in page.split("\n") if line.startswith(f"| {first} to {last} |"))
        weeks = (last - first).days // 7 + 1
        assert line.endswith(f"| {weeks - inside} |"), line
    alone = {about for about in POSTPONED if not any(a <= about <= b for a, b in GAPS)}
    for about in alone | UNANNOUNCED:
        assert str(about) in page, about


def test_the_table_only_delays() -> None:
    for about, known in POSTPONED.items():
        assert is_business_day(about) and is_business_day(known)
        assert known >= business_day_after(about, 3)

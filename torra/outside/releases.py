"""When the public could know a number: the rules of its publisher, and what broke them.

**FRED.** The value of a day is known at 22:00 UTC of the next business day, the dollar's index
(DTWEXBGS), which is published weekly, of the Monday after; a federal holiday moves a business day
on.

**CFTC.** The count of a Tuesday is published on the third business day after it (About the COT
Reports), at 15:30 in New York: on Friday, and later where a federal holiday lies between. That is a
rule and no table; the CFTC's schedules of 2024 and 2026 follow it to the day. Where Monday is
counted, because Tuesday is a holiday, the same rule holds.

POSTPONED is the table of what came otherwise, from the CFTC's announcements. The hour of such a
report is not always told (one came at 16:14), so it is known at the end of its day in New York. A
week inside a gap that is not in the table has no known release: None. So are the weeks in which
offices in Washington were closed by an order and no announcement tells what became of the report,
and all before FIRST_REPORT, whose history was classified and published afterwards.

| gap | announced in |
|---|---|
| 2013-10 | press release 6745-13: the first report on 10-25; of the others the week alone |
| 2018-12 to 2019-03 | 7864-19: the first on 2019-02-01, then each Tuesday and Friday one |
| 2023-02 to 2023-03 | special announcements of the days on which each was issued |
| 2025-10 to 2025-12 | 9138-25, and 9147-25, which hastened it from the report of 11-10 on |

A postponement that is not in the table is noticed by a desk that was asking: see
torra.outside.collector.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo

NEW_YORK: Final = ZoneInfo("America/New_York")
FRED_TIME: Final = time(22, tzinfo=UTC)
COT_TIME: Final = time(15, 30, tzinfo=NEW_YORK)
COT_BUSINESS_DAYS: Final = 3
WEEKLY: Final = frozenset(("DTWEXBGS",))
"""Series of FRED that are published on the Monday after."""

DAY: Final = timedelta(days=1)
MONDAY, THURSDAY, SATURDAY, SUNDAY = 0, 3, 5, 6

FIRST_REPORT: Final = date(2010, 8, 3)
"""The first Tuesday whose kinds of trader were all published week by week."""


# --- business days --------------------------------------------------------------------------------


@cache
def federal_holidays(year: int) -> frozenset[date]:
    """Return the days of a year on which the holidays of US federal offices are kept.

    One that falls on a Saturday is kept on Friday, one on a Sunday on Monday (5 U.S.C. 6103).
    """
    fixed = [date(year, 1, 1), date(year, 7, 4), date(year, 11, 11), date(year, 12, 25)]
    # That of the next year may be kept in this one.
    fixed.append(date(year + 1, 1, 1))
    if year >= 2021:
        fixed.append(date(year, 6, 19))
    found = {_kept(day) for day in fixed}
    found |= {
        _nth(year, 1, MONDAY, 3),
        _nth(year, 2, MONDAY, 3),
        _nth(year, 6, MONDAY, 1) - 7 * DAY,  # the last one of May
        _nth(year, 9, MONDAY, 1),
        _nth(year, 10, MONDAY, 2),
        _nth(year, 11, THURSDAY, 4),
    }
    return frozenset(day for day in found if day.year == year)


def _kept(day: date) -> date:
    if day.weekday() == SATURDAY:
        return day - DAY
    return day + DAY if day.weekday() == SUNDAY else day


def _nth(year: int, month: int, weekday: int, number: int) -> date:
    first = date(year, month, 1)
    return first + DAY * ((weekday - first.weekday()) % 7 + 7 * (number - 1))


def is_business_day(day: date) -> bool:
    """Return whether federal offices work on a day."""
    return day.weekday() < SATURDAY and day not in federal_holidays(day.year)


def business_day_after(day: date, count: int = 1) -> date:
    """Return the business day that is so many after a day."""
    for _ in range(count):
        day += DAY
        while not is_business_day(day):
            day += DAY
    return day


# --- FRED -----------------------------------------------------------------------------------------


def fred_known_at(name: str, day: date) -> datetime:
    """Return when the value of a day was known."""
    if name in WEEKLY:
        # The business day that is no sooner than the Monday after.
        before = day + DAY * (6 - day.weekday())
        return datetime.combine(business_day_after(before), FRED_TIME)
    return datetime.combine(business_day_after(day), FRED_TIME)


# --- the CFTC -------------------------------------------------------------------------------------


def _days(*rows: str) -> dict[date, date]:
    pairs = (row.split() for row in rows)
    return {date.fromisoformat(about): date.fromisoformat(known) for about, known in pairs}


POSTPONED: Final[Mapping[date, date]] = _days(
    "2012-11-27 2012-12-05",  # what came on 11-30 was not whole
    "2013-10-01 2013-10-25",
    "2014-12-23 2014-12-30",
    "2018-12-24 2019-02-01",
    "2018-12-31 2019-02-05",
    "2019-01-08 2019-02-08",
    "2019-01-15 2019-02-12",
    "2019-01-22 2019-02-15",
    "2019-01-29 2019-02-19",
    "2019-02-05 2019-02-22",
    "2019-02-12 2019-02-26",
    "2019-02-19 2019-03-01",
    "2019-02-26 2019-03-05",
    "2019-03-05 2019-03-08",
    "2020-12-21 2020-12-28",
    "2023-01-31 2023-02-24",
    "2023-02-07 2023-03-03",
    "2023-02-14 2023-03-08",
    "2023-02-21 2023-03-10",
    "2023-02-28 2023-03-14",
    "2023-03-07 2023-03-16",
    "2023-03-14 2023-03-21",
    "2025-01-07 2025-01-13",
    "2025-09-30 2025-11-19",
    "2025-10-07 2025-11-21",
    "2025-10-14 2025-11-25",
    "2025-10-21 2025-12-02",
    "2025-10-28 2025-12-05",
    "2025-11-04 2025-12-09",
    "2025-11-10 2025-12-10",
    "2025-11-18 2025-12-12",
    "2025-11-25 2025-12-15",
    "2025-12-02 2025-12-17",
    "2025-12-09 2025-12-19",
    "2025-12-16 2025-12-23",
    "2025-12-23 2025-12-29",
)
"""Day of a report -> day on which it was published, where the rule does not say it."""

GAPS: Final = (
    (date(2013, 10, 1), date(2013, 11, 5)),
    (date(2018, 12, 24), date(2019, 3, 5)),
    (date(2023, 1, 31), date(2023, 3, 14)),
    (date(2025, 9, 30), date(2025, 12, 23)),
)
"""First and last report of each time in which no report came by the rule."""

UNANNOUNCED: Final = frozenset((date(2017, 1, 17), date(2018, 12, 4), date(2021, 1, 19)))
"""Reports before which offices in Washington were closed (two inaugurations and a day of mourning).
"""


def cot_known_at(day: date) -> datetime | None:
    """Return when the report of a day was known; None where that is not known."""
    known = POSTPONED.get(day)
    if known is not None:
        return datetime.combine(known + DAY, time(tzinfo=NEW_YORK)).astimezone(UTC)
    doubtful = day < FIRST_REPORT or day in UNANNOUNCED or not is_business_day(day)
    if doubtful or any(first <= day <= last for first, last in GAPS):
        return None
    published = business_day_after(day, COT_BUSINESS_DAYS)
    return datetime.combine(published, COT_TIME).astimezone(UTC)

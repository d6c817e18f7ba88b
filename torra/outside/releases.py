"""When the public could know a number: the rules of its publisher, and what broke them.

**FRED.** The value of a day is known at 22:00 UTC of the next business day, the dollar's index
(DTWEXBGS), which is published weekly, of the Monday after; a federal holiday moves a business day
on.

**CFTC.** The count of a Tuesday is published on the third business day after it (About the COT
Reports), at 15:30 in New York: on Friday, and later where a federal holiday lies between. That is a
rule and no table; the CFTC's schedules of 2024 and 2026 follow it to the day. Where Monday is
counted, because Tuesday is a holiday, the same rule holds.

POSTPONED is the table of reports that came otherwise, from the CFTC's announcements. The hour of
such a report is not always told (one came at 16:14), so it is known at the end of its day in New
York. A week inside a gap that is not in the table has no known release: None. So are the weeks in
which offices in Washington were closed by an order and no announcement tells what became of the
report, and all before FIRST_REPORT, whose history was classified and published afterwards.

A postponement that is not in the table is noticed by a desk that was asking: see
torra.outside.collector.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from pandas.tseries.holiday import USFederalHolidayCalendar

from agents.features import rows_of

NEW_YORK: Final = ZoneInfo("America/New_York")
FRED_TIME: Final = time(22, tzinfo=UTC)
COT_TIME: Final = time(15, 30, tzinfo=NEW_YORK)
COT_BUSINESS_DAYS: Final = 3
WEEKLY: Final = frozenset(("DTWEXBGS",))
"""Series of FRED that are published on the Monday after."""

SUNDAY: Final = 6
FIRST_REPORT: Final = date(2010, 8, 3)
"""The first Tuesday whose kinds of trader were all published week by week."""


POSTPONED: Final = {
    date.fromisoformat(row["report"]): date.fromisoformat(row["published"])
    for row in rows_of(Path(__file__).with_name("postponed.csv"))
}
"""Day of a report -> day on which it was published, where the rule does not say it (postponed.csv).

What came of the report of 2012-11-27 on 11-30 was not whole.
"""

GAPS: Final = [
    (date.fromisoformat(row["first"]), date.fromisoformat(row["last"]))
    for row in rows_of(Path(__file__).with_name("gaps.csv"))
]
"""First and last report of each time in which no report came by the rule (gaps.csv)."""

UNANNOUNCED: Final = frozenset((date(2017, 1, 17), date(2018, 12, 4), date(2021, 1, 19)))
"""Reports before which offices in Washington were closed (two inaugurations and a day of mourning).
"""


@cache
def federal_calendar() -> np.busdaycalendar:
    """Return the days on which US federal offices work, from 1900 to 2200 (5 U.S.C. 6103)."""
    holidays = USFederalHolidayCalendar().holidays("1900-01-01", "2200-12-31")
    return np.busdaycalendar(holidays=holidays.to_numpy().astype("datetime64[D]"))


def is_business_day(day: date) -> bool:
    """Return whether federal offices work on a day."""
    return bool(np.is_busday(day, busdaycal=federal_calendar()))


def business_day_after(day: date, count: int = 1) -> date:
    """Return the business day that is so many after a day."""
    after = np.busday_offset(day, count, roll="backward", busdaycal=federal_calendar())
    return date.fromisoformat(str(after))


def fred_known_at(name: str, day: date) -> datetime:
    """Return when the value of a day was known."""
    if name in WEEKLY:
        # The business day that is no sooner than the Monday after.
        day += timedelta(days=SUNDAY - day.weekday())
    return datetime.combine(business_day_after(day), FRED_TIME)


def cot_known_at(day: date) -> datetime | None:
    """Return when the report of a day was known; None where that is not known."""
    known = POSTPONED.get(day)
    if known is not None:
        return datetime.combine(known + timedelta(days=1), time(tzinfo=NEW_YORK)).astimezone(UTC)
    doubtful = day < FIRST_REPORT or day in UNANNOUNCED or not is_business_day(day)
    if doubtful or any(first <= day <= last for first, last in GAPS):
        return None
    published = business_day_after(day, COT_BUSINESS_DAYS)
    return datetime.combine(published, COT_TIME).astimezone(UTC)

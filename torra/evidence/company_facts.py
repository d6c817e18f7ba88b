"""What a company reported, as it was known: figures by name, and what stood of them at a moment.

`FIGURES` is the closed vocabulary. A figure of a period, such as revenue, begins and ends; one of a
day, such as total assets, holds at that day. Money is in the currency in which the company reports.
`CompanyHistory` keeps all that was ever reported and returns what was known at a moment; `Books`
say of each period the newest word on it, and `of_year` makes a year of what was reported.

Pure values and functions; torra.store.series keeps the rows, torra.outside brings them,
torra.evidence.company_figures and fair_value read them.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal, NamedTuple

from torra.evidence.outside_numbers import FactRow, kind_of_source

Unit = Literal["money", "shares"]
Over = Literal["period", "day"]


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A figure: its name for people, its unit, and whether it is of a period or of a day."""

    says: str
    unit: Unit
    over: Over


FIGURES: Final[Mapping[str, FigureKind]] = {
    "revenue": FigureKind("revenue", "money", "period"),
    "cost_of_revenue": FigureKind("cost of revenue", "money", "period"),
    "gross_profit": FigureKind("gross profit", "money", "period"),
    "operating_income": FigureKind("operating income", "money", "period"),
    "pretax_income": FigureKind("income before tax", "money", "period"),
    "income_tax": FigureKind("income tax", "money", "period"),
    "net_income": FigureKind("net income", "money", "period"),
    "interest_expense": FigureKind("interest expense", "money", "period"),
    "depreciation": FigureKind("depreciation and amortization", "money", "period"),
    "operating_cash_flow": FigureKind("operating cash flow", "money", "period"),
    "capital_expenditure": FigureKind("capital expenditure", "money", "period"),
    "diluted_shares": FigureKind("diluted shares, on average", "shares", "period"),
    "assets": FigureKind("total assets", "money", "day"),
    "current_assets": FigureKind("current assets", "money", "day"),
    "current_liabilities": FigureKind("current liabilities", "money", "day"),
    "equity": FigureKind("shareholders' equity", "money", "day"),
    "cash": FigureKind("cash", "money", "day"),
    "long_term_debt": FigureKind("long-term debt", "money", "day"),
    "short_term_debt": FigureKind("short-term debt", "money", "day"),
    "shares_outstanding": FigureKind("shares outstanding", "shares", "day"),
}
"""Every figure by name."""


class StoredFact(NamedTuple):
    """A figure with the moment at which this desk saw it first, and its number in the store."""

    row: FactRow
    first_seen: datetime
    number: int = 0


Filed = tuple[FactRow, ...]
"""What a company had reported up to a moment, in the order in which it became known."""


class CompanyHistory:
    """All that was ever reported by one company; any thread may ask what was known at a moment.

    With `live` a figure counts from its first sight too: this desk could not know it before.
    """

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._lock = threading.Lock()
        self._rows: dict[StoredFact, datetime] = {}
        self._moments: list[datetime] = []
        self._counted = 0
        self._then: Filed = ()

    def add(self, rows: Iterable[StoredFact]) -> None:
        """Add figures; those that are there already may come again."""
        with self._lock:
            count = len(self._rows)
            for one in rows:
                known = one.row.known_at
                self._rows[one] = max(known, one.first_seen) if self._live else known
            if len(self._rows) > count:
                self._moments = sorted(self._rows.values())
                self._counted, self._then = 0, ()

    def then(self, as_of: datetime) -> Filed:
        """Return what was known at `as_of`; the very same object while nothing new is."""
        with self._lock:
            count = bisect_right(self._moments, as_of)
            if count != self._counted:
                known = [one for one, moment in self._rows.items() if moment <= as_of]
                self._then = tuple(one.row for one in sorted(known, key=_in_order))
                self._counted = count
            return self._then


def _in_order(one: StoredFact) -> tuple[datetime, bool, int]:
    """Order by the moment of knowing; of one moment a file has the last word."""
    return one.row.known_at, kind_of_source(one.row.source) == "file", one.number


ANNUAL: Final = range(350, 381)
QUARTER: Final = range(80, 101)
TO_DATE: Final = range(60, 291)
"""Days of a business year of 52 or 53 weeks, of a quarter, and of a part of the year so far."""

SLACK: Final = 8
"""Days by which periods that follow each other, or stand for each other, may miss."""

NEAR_END: Final = 5
"""Days by which two sources may name the end of the same period."""

RESTATED: Final = 0.01
"""Share from which a later word on a period tells another thing, as after a part was sold."""

CORRECTED: Final = timedelta(minutes=1)
"""Within so long a second word is a correction: the store lets it count a second later."""

ROLLS_ON: Final = timedelta(days=400)
"""For so long reports go on to tell former periods anew after such a change."""

Period = tuple[date, date]
"""First and last day of what a figure is about; of a figure of a day both are that day."""


class FiledFigure(NamedTuple):
    """The newest word on a figure of a period, and since when it was known."""

    value: float
    known_at: datetime


class FigureHistory(NamedTuple):
    """A figure by its periods; from each moment of `anew` on it is told of another company.

    So it is after a part was sold: reports tell what is left, of former periods too.
    """

    said: Mapping[Period, FiledFigure]
    anew: tuple[datetime, ...] = ()

    def alike(self, words: Iterable[FiledFigure]) -> bool:
        """Tell whether words are all from before a change, or all from after it."""
        moments = [one.known_at for one in words]
        return not any(min(moments) < change <= max(moments) for change in self.anew)


class Books:
    """What a company had reported up to a moment: of each period the first and the newest word.

    `hear` takes figures in the order of their knowing. A figure is looked up by its own period,
    never by the year of the filing that it stands in. Money counts in one currency, that of most
    of the net incomes; what is told in another is not mixed in.
    """

    def __init__(self) -> None:
        self._first: dict[str, dict[Period, FactRow]] = {}
        self._rows: dict[str, dict[Period, FactRow]] = {}

    def hear(self, row: FactRow) -> None:
        """Let a figure stand for its period."""
        found = FIGURES.get(row.figure)
        period = row.begins.date(), row.ends.date()
        if found is None or (found.over == "day") != (period[0] == period[1]):
            return
        first = self._first.setdefault(row.figure, {})
        # A correction of the same moment, as of a slip in a file, is the first word itself.
        if period not in first or row.known_at - first[period].known_at <= CORRECTED:
            first[period] = row
        self._rows.setdefault(row.figure, {})[period] = row

    def newest(self, figure: str) -> FactRow | None:
        """Return the figure of the latest day, or of the latest period of a usual length.

        Of those that end then the longest. Of money the currency counts in which it is mostly told.
        """
        day = figure in FIGURES and FIGURES[figure].over == "day"
        rows = {
            period: row
            for period, row in self._rows.get(figure, {}).items()
            if day or days(period) in ANNUAL or days(period) in TO_DATE
        }
        units = Counter(row.unit for row in rows.values())
        known = [period for period, row in rows.items() if row.unit == units.most_common(1)[0][0]]
        latest = max(known, key=lambda one: (one[1], -one[0].toordinal()), default=None)
        return None if latest is None else rows[latest]

    def told(self, figure: str, unit: str, since: date = date.min) -> FigureHistory:
        """Return a figure by its periods that end from a day on, as far as it is told in a unit."""
        first, changes = self._first.get(figure, {}), list[datetime]()
        said = {}
        for period, row in self._rows.get(figure, {}).items():
            if period[1] >= since and row.unit == unit:
                said[period] = FiledFigure(row.value, row.known_at)
                if first[period] is not row and _told_anew(first[period], row):
                    changes.append(row.known_at)
        return FigureHistory(said, _begun(changes))

    def known_at(self, ends: date) -> datetime | None:
        """Return when the first word came of what ends at a day."""
        moments = [
            row.known_at
            for rows in self._first.values()
            for (_, last), row in rows.items()
            if last == ends
        ]
        return min(moments, default=None)


def _told_anew(first: FactRow, newest: FactRow) -> bool:
    """Tell whether a period is told as something else; a file that corrects a filing tells none."""
    alike = kind_of_source(first.source) == kind_of_source(newest.source)
    return alike and abs(newest.value - first.value) > RESTATED * abs(first.value)


def _begun(changes: Iterable[datetime]) -> tuple[datetime, ...]:
    """Return where changes begin: one goes on as long as reports tell former periods anew."""
    found, last = list[datetime](), datetime.min.replace(tzinfo=UTC)
    for moment in sorted(changes):
        if moment - last > ROLLS_ON:
            found.append(moment)
        last = moment
    return tuple(found)


def at_day(told: FigureHistory, day: date) -> float | None:
    """Return a figure of a day, or of the nearest within NEAR_END of it."""
    near = [period for period in told.said if abs((period[1] - day).days) <= NEAR_END]
    if not near:
        return None
    return told.said[min(near, key=lambda one: abs((one[1] - day).days))].value


def of_year(told: FigureHistory, ends: date) -> float | None:
    """Return the sum of a figure over the year up to a day; None where a part is missing.

    The business year itself, where it ends then; else the last one, plus what came since it, less
    the same part of the year before; else four quarters that follow each other. Words from before
    and after a change of what is told (Told.anew) are not put together.
    """
    near = [period for period in told.said if abs((period[1] - ends).days) <= NEAR_END]
    here = sorted(near, key=lambda one: one[0])
    for period in here:
        if days(period) in ANNUAL:
            return told.said[period].value
    for period in here:
        if days(period) in TO_DATE and (found := _rolled(told, period)) is not None:
            return found
    return _four_quarters(told, ends)


def _rolled(told: FigureHistory, part: Period) -> float | None:
    """Return the last business year, plus a part of this one, less that part of the last."""
    now = told.said[part]
    for year, whole in told.said.items():
        if days(year) not in ANNUAL or abs((part[0] - year[1]).days - 1) > SLACK:
            continue
        for former, same in told.said.items():
            alike = abs(days(former) - days(part)) <= SLACK and former != year
            if alike and abs((former[0] - year[0]).days) <= SLACK:
                one = told.alike((whole, now, same))
                return whole.value + now.value - same.value if one else None
    return None


def _four_quarters(told: FigureHistory, ends: date) -> float | None:
    quarters = {period[1]: period for period in told.said if days(period) in QUARTER}
    found, last, slack = list[FiledFigure](), ends, NEAR_END
    for _ in range(4):
        near = [day for day in quarters if abs((last - day).days) <= slack]
        if not near:
            return None
        quarter = quarters[max(near)]
        found.append(told.said[quarter])
        last, slack = quarter[0] - timedelta(days=1), SLACK
    return math.fsum(one.value for one in found) if told.alike(found) else None


def days(period: Period) -> int:
    """Return how many days a period has."""
    return (period[1] - period[0]).days + 1

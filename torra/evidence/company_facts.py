"""What a company reported, as it was known: figures by name, and what stood of them at a moment.

`FIGURES` is the closed vocabulary. A figure of a period, such as revenue, begins and ends; one of a
day, such as total assets, holds at that day. Money is in the currency in which the company reports.
`CompanyHistory` keeps all that was ever reported and returns what was known at a moment; `Books`
have the newest word on each period, and `of_year` makes a year of what was reported.

Pure values and functions; torra.store.series keeps the rows, torra.outside brings them,
torra.evidence.company_figures and fair_value read them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import mode
from typing import Final, NamedTuple

from agents.features import rows_of
from torra.evidence.outside_numbers import FactRow, RowHistory, kind_of_source


class FigureKind(NamedTuple):
    """A figure: its name for people, its unit ("money" or "shares"), and what it is over.

    `over` is "period" or "day".
    """

    says: str
    unit: str
    over: str


FIGURES: Final[Mapping[str, FigureKind]] = {
    row["name"]: FigureKind(row["says"], row["unit"], row["over"])
    for row in rows_of(Path(__file__).with_name("company_figures.csv"))
}
"""Every figure by name."""


UNITS: Final = {
    "money": re.compile("[A-Z]{3}", re.ASCII),
    "shares": re.compile("shares"),
}
"""How the unit of a figure is written, by its kind."""

Filed = tuple[FactRow, ...]
"""What a company had reported up to a moment, in the order in which it became known."""


class CompanyHistory(RowHistory[FactRow, Filed]):
    """All that was ever reported by one company."""

    def _snapshot(self, rows: Sequence[FactRow]) -> Filed:
        return tuple(rows)


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


class FigureHistory(NamedTuple):
    """A figure by its periods; from each moment of `anew` on it is told of another company.

    So it is after a part was sold: reports tell what is left, of former periods too.
    """

    periods: Mapping[Period, FactRow]
    anew: Sequence[datetime] = ()

    def alike(self, rows: Iterable[FactRow]) -> bool:
        """Tell whether figures are all from before a change, or all from after it."""
        moments = [row.known_at for row in rows]
        return not any(min(moments) < change <= max(moments) for change in self.anew)

    def ending(self, day: date) -> list[Period]:
        """Return the periods that end within NEAR_END of a day."""
        return [period for period in self.periods if abs((period[1] - day).days) <= NEAR_END]


class Books:
    """What a company had reported up to a moment: of each period the first and the newest word.

    `add` takes figures in the order of their knowing. A figure is looked up by its own period,
    never by the year of the filing that it stands in. Money counts in one currency, that of most
    of the net incomes; what is told in another is not mixed in.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[Period, tuple[FactRow, FactRow]]] = {}

    def add(self, row: FactRow) -> None:
        """Let a figure stand for its period."""
        kind = FIGURES.get(row.figure)
        period = row.begins.date(), row.ends.date()
        if kind is None or (kind.over == "day") != (period[0] == period[1]):
            return
        rows = self._rows.setdefault(row.figure, {})
        first = rows[period][0] if period in rows else row
        # A correction of the same moment, as of a slip in a file, is the first word itself.
        rows[period] = (row if row.known_at - first.known_at <= CORRECTED else first), row

    def newest(self, figure: str) -> FactRow | None:
        """Return the figure of the latest day, or of the latest period of a usual length.

        Of those that end then the longest. Of money the currency counts in which it is mostly told.
        """
        rows = [
            row
            for period, (_, row) in self._rows.get(figure, {}).items()
            if period[0] == period[1] or days(period) in ANNUAL or days(period) in TO_DATE
        ]
        if not rows:
            return None
        unit = mode(row.unit for row in rows)
        return max(
            (row for row in rows if row.unit == unit),
            key=lambda row: (row.ends, row.ends - row.begins),
        )

    def history(self, figure: str, unit: str, since: date = date.min) -> FigureHistory:
        """Return a figure by its periods that end from a day on, as far as it is told in a unit."""
        changes, periods = list[datetime](), {}
        for period, (first, row) in self._rows.get(figure, {}).items():
            if period[1] >= since and row.unit == unit:
                periods[period] = row
                # A file that corrects a filing tells the same thing.
                alike = kind_of_source(first.source) == kind_of_source(row.source)
                if alike and abs(row.value - first.value) > RESTATED * abs(first.value):
                    changes.append(row.known_at)
        # A change goes on as long as reports tell former periods anew.
        moments = pairwise([datetime.min.replace(tzinfo=UTC), *sorted(changes)])
        return FigureHistory(periods, [at for last, at in moments if at - last > ROLLS_ON])

    def known_at(self, ends: date) -> datetime | None:
        """Return when the first word came of what ends at a day."""
        moments = [
            first.known_at
            for rows in self._rows.values()
            for period, (first, _) in rows.items()
            if period[1] == ends
        ]
        return min(moments, default=None)


def at_day(history: FigureHistory, day: date) -> float:
    """Return a figure of a day, or of the nearest within NEAR_END of it; NaN without one."""
    nearest = min(history.ending(day), key=lambda period: abs((period[1] - day).days), default=None)
    return history.periods[nearest].value if nearest else math.nan


def of_year(history: FigureHistory, ends: date) -> float:
    """Return the sum of a figure over the year up to a day; NaN where a part is missing.

    The business year itself, where it ends then; else the last one, plus what came since it, less
    the same part of the year before; else four quarters that follow each other. Words from before
    and after a change of what is told (FigureHistory.anew) are not put together.
    """
    here = sorted(history.ending(ends), key=lambda period: period[0])
    for period in here:
        if days(period) in ANNUAL:
            return history.periods[period].value
    rolled = (_rolled(history, period) for period in here if days(period) in TO_DATE)
    year = next((value for value in rolled if not math.isnan(value)), math.nan)
    return _four_quarters(history, ends) if math.isnan(year) else year


def _rolled(history: FigureHistory, part: Period) -> float:
    """Return the last business year, plus a part of this one, less that part of the last."""
    now = history.periods[part]
    for year, whole in history.periods.items():
        if days(year) not in ANNUAL or abs((part[0] - year[1]).days - 1) > SLACK:
            continue
        for former, same in history.periods.items():
            alike = abs(days(former) - days(part)) <= SLACK and former != year
            if alike and abs((former[0] - year[0]).days) <= SLACK:
                together = history.alike((whole, now, same))
                return whole.value + now.value - same.value if together else math.nan
    return math.nan


def _four_quarters(history: FigureHistory, ends: date) -> float:
    quarters = {
        period[1]: row for period, row in history.periods.items() if days(period) in QUARTER
    }
    rows, last, slack = list[FactRow](), ends, NEAR_END
    for _ in range(4):
        near = [day for day in quarters if abs((last - day).days) <= slack]
        if not near:
            return math.nan
        rows.append(quarters[max(near)])
        last, slack = rows[-1].begins.date() - timedelta(days=1), SLACK
    return math.fsum(row.value for row in rows) if history.alike(rows) else math.nan


def days(period: Period) -> int:
    """Return how many days a period has."""
    return (period[1] - period[0]).days + 1

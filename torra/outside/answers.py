"""The answer to a question about a series or a company, and the count of what a reply lost.

A reply is read row by row. A row that cannot be read is refused with a reason that names its place;
the others stay. A day that a reply states twice, with different values, is refused as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final, Generic

from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import FactRow, Row, SeriesRow

ALL_LATER: Final = "all rows are later than the desk's clock"
NO_RELEASE: Final = "of no row it is known when it was published"

LARGEST: Final = 1e15
"""No figure of a market or a company is larger."""

FIRST_DAY: Final = date(1900, 1, 1)
LAST_DAY: Final = date(2200, 1, 1)
DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}(T00:00:00(\.0+)?)?", re.ASCII)


@dataclass(frozen=True)
class Answer(Generic[Row]):
    """The rows of an answer, and why others are missing.

    `detail` is the reason of the first row that cannot be read, or why there is none. `dropped`
    counts those rows, rows later than the desk's clock, and days without a known release.
    """

    status: NewsStatus
    detail: str = ""
    items: tuple[Row, ...] = ()
    dropped: int = 0


SeriesAnswer = Answer[SeriesRow]
"""`items` by day."""

FactsAnswer = Answer[FactRow]
"""`items` in the order in which they were known."""


@dataclass
class RowTally:
    """Counts the rows of a reply that are not taken. `excuse` explains an empty answer."""

    dropped: int = 0
    reason: str = ""
    excuse: str = ""

    def refuse(self, where: str, why: object, count: int = 1) -> None:
        """Count rows that cannot be read."""
        self.dropped += count
        self.reason = self.reason or f"{where}: {why}"

    def leave_out(self, excuse: str) -> None:
        """Count a row that can be read and is not taken."""
        self.dropped += 1
        self.excuse = excuse

    def answer(self, rows: Iterable[Row]) -> Answer[Row]:
        """Return the answer with these rows."""
        if items := tuple(rows):
            return Answer(NewsStatus.AVAILABLE, self.reason, items, self.dropped)
        broken = self.reason and not self.excuse
        status = NewsStatus.BROKEN if broken else NewsStatus.EMPTY
        return Answer(status, self.excuse or self.reason, (), self.dropped)


def series_answer(
    source: str,
    now: datetime,
    days: Iterable[tuple[str, Callable[[], tuple[date, Mapping[str, float]]]]],
    known_at: Callable[[date], datetime | None],
) -> SeriesAnswer:
    """Return the rows of a reply's days.

    Each day is its place in the reply and a function that returns the day and its values by series;
    its ValueError refuses them. `now` is the desk's clock.
    """
    tally, today = RowTally(), now.astimezone(UTC).date()
    rows: dict[tuple[str, date], SeriesRow] = {}
    contradicted: set[date] = set()
    for where, parse in days:
        try:
            day, values = parse()
        except ValueError as error:
            tally.refuse(where, error)
            continue
        known = known_at(day) if values and day <= today else None
        if values and known is None:
            tally.leave_out(ALL_LATER if day > today else tally.excuse or NO_RELEASE)
        elif known is not None:
            at = datetime.combine(day, time(tzinfo=UTC))
            new = {name: SeriesRow(name, at, known, values[name], source) for name in values}
            if any(rows.setdefault((name, day), row) != row for name, row in new.items()):
                contradicted.add(day)
                tally.refuse(where, f"{day} was told before, with another value")
    tally.dropped += len(contradicted)
    good = (row for (_, day), row in rows.items() if day not in contradicted)
    return tally.answer(sorted(good, key=lambda row: (row.at, row.name)))


def day_of(text: object, name: str) -> date:
    """Return the day that a publisher wrote; raises ValueError, which quotes `name` alone."""
    try:
        if isinstance(text, str) and DAY.fullmatch(text):
            day = date.fromisoformat(text[:10])
            if FIRST_DAY <= day <= LAST_DAY:
                return day
    except ValueError:
        pass
    raise ValueError(f"{name} is no day")

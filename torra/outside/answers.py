"""The answer to a question about a series or a company, and the count of what a reply lost.

A reply is read row by row. A row that cannot be read is refused with a reason that names its place;
the others stay. A day that a reply states twice, with different values, is refused as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Final, Generic, TypeVar

from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import FactRow, SeriesRow

MAX_REASONS: Final = 20
"""Reasons that are kept of a reply; all are counted."""

ALL_LATER: Final = "all rows are later than the desk's clock"
NO_RELEASE: Final = "of no row it is known when it was published"

LARGEST: Final = 1e15
"""No figure of a market or a company is larger."""

FIRST_DAY: Final = date(1900, 1, 1)
LAST_DAY: Final = date(2200, 1, 1)
DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}(T00:00:00(\.0+)?)?", re.ASCII)

Row = TypeVar("Row", SeriesRow, FactRow)


@dataclass(frozen=True)
class Answer(Generic[Row]):
    """The rows of an answer and why others are missing.

    `dropped` counts rows that cannot be read and rows later than the desk's clock. `left_out`
    counts days without a known release (series; counted in `dropped` too), and values of other
    forms, units, spans and concepts (company figures).
    """

    status: NewsStatus
    items: tuple[Row, ...] = ()
    detail: str = ""
    dropped: int = 0
    left_out: int = 0
    reasons: tuple[str, ...] = ()


SeriesAnswer = Answer[SeriesRow]
"""`items` by day."""

FactsAnswer = Answer[FactRow]
"""`items` in the order in which they were known."""


@dataclass
class RowTally:
    """Counts the rows of a reply that are not taken. `excuse` explains an empty answer."""

    dropped: int = 0
    left_out: int = 0
    reasons: list[str] = field(default_factory=list)
    excuse: str = ""

    def refuse(self, where: str, why: object, count: int = 1) -> None:
        """Count rows that cannot be read."""
        self.dropped += count
        self.reasons.append(f"{where}: {why}")

    def refuse_later(self) -> None:
        """Count a row that is later than the desk's clock."""
        self.dropped += 1
        self.excuse = ALL_LATER

    def answer(self, rows: Iterable[Row]) -> Answer[Row]:
        """Return the answer with these rows."""
        items = tuple(rows)
        status, detail = NewsStatus.AVAILABLE, "".join(self.reasons[:1])
        if not items:
            broken = self.reasons and not self.excuse
            status = NewsStatus.BROKEN if broken else NewsStatus.EMPTY
            detail = self.excuse or detail
        reasons = tuple(self.reasons[:MAX_REASONS])
        return Answer(status, items, detail, self.dropped, self.left_out, reasons)


class SeriesReader(RowTally):
    """Makes rows of a reply's days. `now` is the desk's clock."""

    def __init__(self, source: str, now: datetime) -> None:
        super().__init__()
        self._source = source
        self._today = now.astimezone(UTC).date()
        self._rows: dict[tuple[str, date], SeriesRow] = {}
        self._contradicted: set[date] = set()

    def read(
        self,
        where: str,
        parse: Callable[[], tuple[date, Mapping[str, float]]],
        known_at: Callable[[date], datetime | None],
    ) -> None:
        """Take the day and the values that `parse` returns; its ValueError refuses them."""
        try:
            day, values = parse()
        except ValueError as error:
            self.refuse(where, error)
            return
        if not values:
            return
        if day > self._today:
            self.refuse_later()
        elif (known := known_at(day)) is None:
            self.left_out += 1
            self.dropped += 1
            self.excuse = self.excuse or NO_RELEASE
        else:
            at = datetime.combine(day, time(tzinfo=UTC))
            rows = {(name, day): SeriesRow(name, at, known, value, self._source)
                    for name, value in values.items()}  # fmt: skip
            if any(self._rows.setdefault(key, row) != row for key, row in rows.items()):
                self._contradicted.add(day)
                self.refuse(where, f"{day} was told before, with another value")

    def series(self) -> SeriesAnswer:
        """Return what was read, by day."""
        self.dropped += len(self._contradicted)
        good = (row for (_, day), row in self._rows.items() if day not in self._contradicted)
        return self.answer(sorted(good, key=lambda row: (row.at, row.name)))


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


def without(status: NewsStatus, detail: str) -> Answer[Row]:
    """Return an answer that brings nothing."""
    return Answer(status, detail=detail)

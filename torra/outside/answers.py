"""What comes of a question about a series: rows with the moment at which each was known.

A reply is read row by row. What cannot be read is refused with a reason that names its line, and
counted; the rest stays. A day that a reply tells twice, and differently, is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final, Protocol

from torra.collecting.asking import SourceSettings
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import FactRow, SeriesRow

MAX_REASONS: Final = 20
"""Reasons that are kept of a reply; all are counted."""

ALL_LATER: Final = "all rows are later than the desk's clock"
NO_RELEASE: Final = "of no row it is known when it was published"


@dataclass(frozen=True, slots=True)
class SeriesAnswer:
    """What came of a question, `items` by day.

    `dropped` counts what is not among them: rows that cannot be read, rows that are later than the
    desk's clock, and `left_out`, those of which nobody knows when they were published.
    """

    status: NewsStatus
    items: tuple[SeriesRow, ...] = ()
    detail: str = ""
    dropped: int = 0
    left_out: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FactsAnswer:
    """What came of a question about a figure of a company, `items` in the order of knowing.

    `dropped` counts values that cannot be taken and such as are later than the desk's clock,
    `left_out` those that are not wanted: of other forms, units and spans, and of other concepts.
    """

    status: NewsStatus
    items: tuple[FactRow, ...] = ()
    detail: str = ""
    dropped: int = 0
    left_out: int = 0
    reasons: tuple[str, ...] = ()


class SeriesPublisher(SourceSettings, Protocol):
    """A publisher of series (torra.outside.fred, torra.outside.cftc)."""

    @property
    def official(self) -> bool:
        """Whether the address is the publisher's own."""
        ...

    @property
    def host(self) -> str:
        """Who is asked."""
        ...

    def topic_of(self, name: str) -> str | None:
        """Return what to ask for a series; None when it is not this publisher's."""
        ...

    def fetch(
        self, topic: str, now: datetime, seconds: float, since: date | None = None
    ) -> SeriesAnswer:
        """Ask for what is about `since` and later, or for years; never raises."""
        ...


class SeriesTables(Protocol):
    """The table of series (torra.store.series)."""

    def store_series(self, rows: Iterable[SeriesRow], first_seen: datetime) -> int:
        """Store what is not known yet; a value that differs is a revision, known when first seen.

        Returns how many rows were stored.
        """
        ...


class RowCollector:
    """Collects the rows of a reply, and why others are none. `now` is the desk's clock."""

    def __init__(self, source: str, now: datetime) -> None:
        self._source = source
        self._today = now.astimezone(UTC).date()
        self._rows: dict[tuple[str, date], SeriesRow] = {}
        self._twice: set[date] = set()
        self._reasons: list[str] = []
        self._refused = 0
        self._later = 0
        self._left_out = 0

    def take(
        self,
        where: str,
        day: date,
        known_at: Callable[[date], datetime | None],
        values: Mapping[str, float],
    ) -> None:
        """Take the values of a day, by the names of their series."""
        if day > self._today:
            self._later += 1
            return
        known = known_at(day)
        if known is None:
            self._left_out += 1
            return
        at = datetime.combine(day, time(tzinfo=UTC))
        for name, value in values.items():
            row = SeriesRow(name, at, known, value, self._source)
            if self._rows.setdefault((name, day), row) != row:
                self._twice.add(day)
                self.refuse(where, f"{day} was told before, with another value")
                return

    def refuse(self, where: str, why: str) -> None:
        """Count a row that cannot be read."""
        self._refused += 1
        if len(self._reasons) < MAX_REASONS:
            self._reasons.append(f"{where}: {why}")

    def answer(self) -> SeriesAnswer:
        """Return what was read."""
        good = sorted(
            (row for (_, day), row in self._rows.items() if day not in self._twice),
            key=lambda row: (row.at, row.name),
        )
        detail = self._reasons[0] if self._reasons else ""
        status = NewsStatus.AVAILABLE
        if not good:
            status = NewsStatus.EMPTY
            if self._later or self._left_out:
                detail = ALL_LATER if self._later else NO_RELEASE
            elif self._refused:
                status = NewsStatus.BROKEN
        return SeriesAnswer(
            status,
            tuple(good),
            detail,
            dropped=self._refused + len(self._twice) + self._later + self._left_out,
            left_out=self._left_out,
            reasons=tuple(self._reasons),
        )

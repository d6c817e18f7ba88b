"""What a tick reads of the outside series: kept in memory, taken from the store when it has grown.

A desk has one shelf. A tick asks `latest`, which looks with one small question whether the store
has new rows, reads those alone, and works anew only what they change. It waits for no network and
no file. Nothing is raised: a store that cannot be read gives a view that says `broken`, and the
agents abstain.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime
from typing import Final, Protocol

from torra.evidence.news_digest import NewsStatus, NewsSubject
from torra.evidence.outside_numbers import SeriesHistory, SeriesThen, StoredRow, kind_of_source
from torra.evidence.outside_readings import (
    BLOCKS,
    READ_CLOSES,
    Closes,
    OutsideView,
    Piece,
    pieces,
    series_for,
    view,
)

logger = logging.getLogger(__name__)

Key = tuple[tuple[SeriesThen | None, ...], date, Closes]
"""What the pieces of a subject are made of: what is known of its series, the day, its closes."""

BROKEN: Final = OutsideView(statuses=dict.fromkeys(BLOCKS, str(NewsStatus.BROKEN)))


class SeriesTables(Protocol):
    """The table of series (torra.store.series.SeriesStore)."""

    def newest_series(self) -> int:
        """Return the number of the newest row, 0 without one."""
        ...

    def series_rows(self, names: Sequence[str], after: int = 0) -> list[StoredRow]:
        """Return the rows of some series beyond a number."""
        ...


class SeriesShelf:
    """The series of a store as a tick may see them; any thread may ask.

    With `live` a value counts from its first sight at this desk, as in a replay it does not. Only
    what `sources` brought is read: fred, cftc, file; None: whoever brought it.
    """

    def __init__(
        self, tables: SeriesTables, *, live: bool, sources: Collection[str] | None = None
    ) -> None:
        self._tables = tables
        self._live = live
        self._sources = None if sources is None else frozenset(sources)
        self._lock = threading.Lock()
        self._read: dict[str, int] = {}
        self._histories: dict[str, SeriesHistory] = {}
        self._worked: dict[tuple[NewsSubject, str], tuple[Key, tuple[Piece, ...]]] = {}

    def latest(
        self,
        subject: NewsSubject,
        as_of: datetime,
        *,
        closes: Callable[[], Closes] = tuple,
        trouble: Callable[[str], str],
        who: str = "",
    ) -> OutsideView:
        """Return what was known at `as_of` (torra.evidence.outside_readings.read); never raises.

        `who` names whose closes these are: two instances of a symbol may hold other bars.
        """
        try:
            names = series_for(subject)
            self._refresh(names)
            then = {name: self._histories[name].then(as_of) for name in names}
            worked = self._pieces((subject, who), then, as_of, closes)
            return view(worked, subject, then.get, as_of, trouble)
        except Exception as error:  # noqa: BLE001 - a tick goes on without outside numbers
            logger.warning("the outside numbers cannot be read (%s)", type(error).__name__)
            return BROKEN

    def fill(self, subject: NewsSubject) -> None:
        """Read what is stored for a subject, so that its first tick need not; never raises."""
        try:
            self._refresh(series_for(subject))
        except Exception as error:  # noqa: BLE001 - the tick will say so
            logger.warning("the outside numbers cannot be read (%s)", type(error).__name__)

    def _refresh(self, names: Iterable[str]) -> None:
        """Read the rows that were stored since the last look."""
        with self._lock:
            newest = self._tables.newest_series()
            behind = [name for name in names if self._read.get(name, -1) < newest]
            if not behind:
                return
            after = min(self._read.get(name, 0) for name in behind)
            rows = self._tables.series_rows(behind, after)
            for name in behind:
                history = self._histories.setdefault(name, SeriesHistory(live=self._live))
                history.add(one for one in rows if one.row.name == name and self._counts(one))
                self._read[name] = newest

    def _counts(self, one: StoredRow) -> bool:
        return self._sources is None or kind_of_source(one.row.source) in self._sources

    def _pieces(
        self,
        whose: tuple[NewsSubject, str],
        then: dict[str, SeriesThen | None],
        as_of: datetime,
        closes: Callable[[], Closes],
    ) -> tuple[Piece, ...]:
        own = closes() if whose[0].asset in READ_CLOSES else ()
        key = (tuple(then.values()), as_of.date(), own)
        held = self._worked.get(whose)
        if held is not None and _same(held[0], key):
            return held[1]
        worked = pieces(whose[0], then.get, lambda: own)
        self._worked[whose] = (key, worked)
        return worked


def _same(one: Key, other: Key) -> bool:
    """Tell whether two keys are of the very same values; the values themselves are long."""
    pairs = zip(one[0], other[0], strict=True)
    alike = one[1] == other[1] and one[2] is other[2]
    return alike and all(first is second for first, second in pairs)

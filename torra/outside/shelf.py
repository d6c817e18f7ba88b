"""What a tick reads of the outside numbers: in memory, taken from the store when it has grown.

A desk has one shelf. A tick asks `latest`, which looks with one small question whether the store
has new rows, reads those alone, and works anew only what they change. It waits for no network and
no file. Nothing is raised: a store that cannot be read gives a view that says `broken`, and the
agents abstain.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Final, Protocol

from torra.evidence import company_numbers, fair_value
from torra.evidence.company_facts import CompanyHistory, Filed
from torra.evidence.fair_value import Closes, Known
from torra.evidence.news_digest import NewsStatus, NewsSubject
from torra.evidence.outside_numbers import (
    SeriesHistory,
    SeriesThen,
    StoredFact,
    StoredRow,
    kind_of_source,
)
from torra.evidence.outside_readings import (
    BLOCKS,
    ClosesOf,
    OutsideView,
    Piece,
    closes_of,
    pieces,
    series_for,
    view,
)

logger = logging.getLogger(__name__)

Key = tuple[tuple[SeriesThen | None, ...], Filed, date, Closes]
"""What the pieces of a subject are made of: what is known of its series and of its company, the
day, its closes.
"""

LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""A moment after all that will ever be known."""

BROKEN: Final = OutsideView(statuses=dict.fromkeys(BLOCKS, str(NewsStatus.BROKEN)))


class OutsideTables(Protocol):
    """The tables of outside numbers (torra.store.series.SeriesStore)."""

    def newest_series(self) -> int:
        """Return the number of the newest row, 0 without one."""
        ...

    def series_rows(self, names: Sequence[str], after: int = 0) -> list[StoredRow]:
        """Return the rows of some series beyond a number."""
        ...

    def newest_fact(self) -> int:
        """Return the number of the newest figure of any company, 0 without one."""
        ...

    def fact_rows(self, ticker: str, after: int = 0) -> list[StoredFact]:
        """Return the figures of a company beyond a number."""
        ...


class OutsideShelf:
    """The outside numbers of a store as a tick may see them; any thread may ask.

    With `live` a value counts from its first sight at this desk, as in a replay it does not. Only
    what `sources` brought is read: fred, cftc, file; None: whoever brought it.
    """

    def __init__(
        self, tables: OutsideTables, *, live: bool, sources: Collection[str] | None = None
    ) -> None:
        self._tables = tables
        self._live = live
        self._sources = None if sources is None else frozenset(sources)
        self._lock = threading.Lock()
        self._read: dict[str, int] = {}
        self._histories: dict[str, SeriesHistory] = {}
        self._read_facts: dict[str, int] = {}
        self._companies: dict[str, CompanyHistory] = {}
        self._looked: dict[str, tuple[Filed, tuple[Known, ...]]] = {}
        self._worked: dict[tuple[NewsSubject, str], tuple[Key, tuple[Piece, ...]]] = {}

    def latest(
        self,
        subject: NewsSubject,
        as_of: datetime,
        *,
        closes: ClosesOf = lambda _span: (),
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
            filed = self._filed(subject, as_of)
            worked = self._pieces((subject, who), then, filed, as_of, closes)
            return view(worked, subject, then.get, as_of, trouble)
        except Exception as error:  # noqa: BLE001 - a tick goes on without outside numbers
            logger.warning("the outside numbers cannot be read (%s)", type(error).__name__)
            return BROKEN

    def fill(self, subject: NewsSubject) -> None:
        """Read what is stored for a subject, so that its first tick need not; never raises."""
        try:
            self._refresh(series_for(subject))
            if company_numbers.reads_company(subject):
                self._look(subject.ticker, self._filed(subject, LATEST))
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

    def _filed(self, subject: NewsSubject, as_of: datetime) -> Filed:
        """Return what the subject's company had reported, after a look at what is new of it."""
        ticker = subject.ticker
        if not company_numbers.reads_company(subject):
            return ()
        with self._lock:
            newest, read = self._tables.newest_fact(), self._read_facts.get(ticker, -1)
            history = self._companies.setdefault(ticker, CompanyHistory(live=self._live))
            if read < newest:
                rows = self._tables.fact_rows(ticker, max(read, 0))
                history.add(one for one in rows if self._counts(one))
                self._read_facts[ticker] = newest
        return history.then(as_of)

    def _look(self, ticker: str, filed: Filed) -> tuple[Known, ...]:
        """Return how a company looked, worked out once for what it had reported."""
        held = self._looked.get(ticker)
        if held is not None and held[0] is filed:
            return held[1]
        looked = fair_value.course(filed)
        self._looked[ticker] = (filed, looked)
        return looked

    def _counts(self, one: StoredRow | StoredFact) -> bool:
        return self._sources is None or kind_of_source(one.row.source) in self._sources

    def _pieces(
        self,
        whose: tuple[NewsSubject, str],
        then: dict[str, SeriesThen | None],
        filed: Filed,
        as_of: datetime,
        closes: ClosesOf,
    ) -> tuple[Piece, ...]:
        subject = whose[0]
        own = closes_of(subject, closes)
        key = (tuple(then.values()), filed, as_of.date(), own)
        held = self._worked.get(whose)
        if held is not None and _same(held[0], key):
            return held[1]
        worked = pieces(subject, then.get, own)
        if company_numbers.reads_company(subject):
            looked = self._look(subject.ticker, filed)
            worked = (*worked, company_numbers.piece(looked, subject, own, as_of.date()))
        self._worked[whose] = (key, worked)
        return worked


def _same(one: Key, other: Key) -> bool:
    """Tell whether two keys are of the very same values; the values themselves are long."""
    pairs = zip(one[0], other[0], strict=True)
    alike = one[1] is other[1] and one[2] == other[2] and one[3] is other[3]
    return alike and all(first is second for first, second in pairs)

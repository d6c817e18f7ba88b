"""The outside numbers that a tick reads: in memory, taken from the store when it has grown.

A desk has one OutsideShelf. A tick asks `latest`, which asks the store with one small question
whether it has new rows, reads those alone, and works out anew only what they change. It waits for
no network and no file. Nothing is raised: a store that cannot be read gives a view with the status
`broken`, and the agents abstain.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final, Protocol, TypeVar

from torra.evidence import company_numbers, fair_value
from torra.evidence.company_facts import CompanyHistory, Filed
from torra.evidence.fair_value import Known
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

LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""A moment after all that will ever be known."""

BROKEN: Final = OutsideView(statuses=dict.fromkeys(BLOCKS, str(NewsStatus.BROKEN)))

H = TypeVar("H", SeriesHistory, CompanyHistory)


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


def _growing(
    newest: Callable[[], int],
    read: Callable[[Sequence[str], int], Sequence[Any]],
    make: Callable[[], H],
) -> Callable[[Sequence[str]], list[H]]:
    """Return a function that gives histories by name, read from a table as it grows.

    Any thread may ask; it reads the rows that were stored since the last look.
    """
    lock = threading.Lock()
    numbers: dict[str, int] = {}
    histories: dict[str, H] = {}

    def of(names: Sequence[str]) -> list[H]:
        with lock:
            number = newest()
            behind = [name for name in names if numbers.get(name, -1) < number]
            after = min((numbers.get(name, 0) for name in behind), default=0)
            rows = read(behind, after) if behind else ()
            for name in behind:
                history = histories.setdefault(name, make())
                history.add(row for row in rows if row.row[0] == name)
                numbers[name] = number
            return [histories[name] for name in names]

    return of


class OutsideShelf:
    """The outside numbers of a store as a tick may see them; any thread may ask.

    With `live` a value counts from its first sight at this desk, as in a replay it does not. Only
    rows of `sources` are read: fred, cftc, edgar, file; None: of all.
    """

    def __init__(
        self, tables: OutsideTables, *, live: bool, sources: Collection[str] | None = None
    ) -> None:
        def counting(rows: Sequence[Any]) -> Sequence[Any]:
            if sources is None:
                return rows
            return [row for row in rows if kind_of_source(row.row.source) in sources]

        self._series = _growing(
            tables.newest_series,
            lambda names, after: counting(tables.series_rows(names, after)),
            lambda: SeriesHistory(live=live),
        )
        self._companies = _growing(
            tables.newest_fact,
            lambda tickers, after: counting(tables.fact_rows(tickers[0], after)),
            lambda: CompanyHistory(live=live),
        )
        self._company_values: dict[str, tuple[Filed, tuple[Known, ...]]] = {}
        self._pieces: dict[tuple[NewsSubject, str], tuple[date, Sequence[Any], list[Piece]]] = {}

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
            histories = zip(names, self._series(names), strict=True)
            then = {name: history.then(as_of) for name, history in histories}
            worked = self._pieces_of(subject, who, then, as_of, closes)
            return view(worked, subject, then.get, as_of, trouble)
        except Exception as error:  # noqa: BLE001 - a tick goes on without outside numbers
            logger.warning("the outside numbers cannot be read (%s)", type(error).__name__)
            return BROKEN

    def fill(self, subject: NewsSubject) -> None:
        """Read what is stored for a subject, so that its first tick need not; never raises."""
        try:
            self._series(series_for(subject))
            self._fair_values(subject, self._filed(subject, LATEST))
        except Exception as error:  # noqa: BLE001 - the tick will say so
            logger.warning("the outside numbers cannot be read (%s)", type(error).__name__)

    def _filed(self, subject: NewsSubject, as_of: datetime) -> Filed:
        """Return what the subject's company had reported; nothing without a company."""
        if not company_numbers.reads_company(subject):
            return ()
        return self._companies([subject.ticker])[0].then(as_of)

    def _fair_values(self, subject: NewsSubject, filed: Filed) -> tuple[Known, ...]:
        """Return a company's values, worked out once for what it had reported."""
        kept = self._company_values.get(subject.ticker)
        if kept is None or kept[0] is not filed:
            kept = self._company_values[subject.ticker] = filed, fair_value.course(filed)
        return kept[1]

    def _pieces_of(
        self,
        subject: NewsSubject,
        who: str,
        then: dict[str, SeriesThen | None],
        as_of: datetime,
        closes: ClosesOf,
    ) -> list[Piece]:
        """Return the pieces of a subject, worked out once for the same values and day."""
        filed, own = self._filed(subject, as_of), closes_of(subject, closes)
        values, day = [*then.values(), filed, own], as_of.date()
        kept = self._pieces.get((subject, who))
        # By identity: the values themselves are long.
        if kept is None or kept[0] != day or any(a is not b for a, b in zip(kept[1], values)):  # noqa: B905 - of one subject
            worked = [*pieces(subject, then.get, own)]
            if company_numbers.reads_company(subject):
                company = self._fair_values(subject, filed)
                worked.append(company_numbers.piece(company, subject, own, day))
            kept = self._pieces[subject, who] = day, values, worked
        return kept[2]

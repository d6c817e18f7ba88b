"""The outside numbers that a tick reads: in memory, taken from the store when it has grown.

A desk has one OutsideShelf. A tick asks `latest`, which asks the store with one small question
whether it has new rows, reads those alone, and works out anew only what they change. It waits for
no network and no file. Nothing is raised: a store that cannot be read gives a view with the status
`broken`, and the agents abstain.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from torra.evidence import fair_value
from torra.evidence.company_facts import CompanyHistory, Filed
from torra.evidence.news_digest import NewsStatus, NewsSubject
from torra.evidence.outside_numbers import SeriesHistory, StoredFact, StoredRow, kind_of_source
from torra.evidence.outside_readings import (
    BLOCKS,
    ClosesOf,
    OutsideView,
    Piece,
    closes_of,
    pieces,
    reads_company,
    series_for,
    view,
)

logger = logging.getLogger(__name__)

LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""A moment after all that will ever be known."""

BROKEN: Final = OutsideView(statuses=dict.fromkeys(BLOCKS, str(NewsStatus.BROKEN)))

FEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "macro": ("fred", "file"),
    "cot": ("cftc", "file"),
    "derivs": ("file",),
    "company": ("edgar", "file"),
}
"""The sources of a block, the first that is named before the others."""

H = TypeVar("H", SeriesHistory, CompanyHistory)
T = TypeVar("T")


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
    sources: Collection[str] | None,
) -> Callable[[Sequence[str]], list[H]]:
    """Return a function that gives histories by name, read from a table as it grows.

    Any thread may ask; it reads the rows that were stored since the last look. Only those of
    `sources` count; None: of all.
    """
    lock = threading.Lock()
    numbers: dict[str, int] = defaultdict(int)
    histories: dict[str, H] = {}

    def of(names: Sequence[str]) -> list[H]:
        with lock:
            number = newest()
            behind = [name for name in names if name not in histories or numbers[name] < number]
            rows = read(behind, min(numbers[name] for name in behind)) if behind else ()
            if sources is not None:
                rows = [row for row in rows if kind_of_source(row.row.source) in sources]
            for name in behind:
                history = histories.setdefault(name, make())
                history.add(row for row in rows if row.row[0] == name)
                numbers[name] = number
            return [histories[name] for name in names]

    return of


def trouble_of(
    sources: Collection[str], status: Callable[[str], str] = lambda _source: ""
) -> Callable[[str], str]:
    """Return a function that says of a block why nothing is known of it.

    `sources` are those of the settings; `status` says how it stands with one that is asked, "" of
    one that is not.
    """

    def trouble(block: str) -> str:
        named = [name for name in FEEDS[block] if name in sources]
        if not named:
            return str(NewsStatus.OFF)
        return next(filter(None, map(status, named)), str(NewsStatus.EMPTY))

    return trouble


class OutsideShelf:
    """The outside numbers of a store as a tick may see them; any thread may ask.

    With `live` a value counts from its first sight at this desk, as in a replay it does not. Only
    rows of `sources` are read: fred, cftc, edgar, file; None: of all.
    """

    def __init__(
        self, tables: OutsideTables, *, live: bool, sources: Collection[str] | None = None
    ) -> None:
        self._series = _growing(
            tables.newest_series, tables.series_rows, partial(SeriesHistory, live=live), sources
        )
        self._companies = _growing(
            tables.newest_fact,
            lambda tickers, after: tables.fact_rows(tickers[0], after),
            partial(CompanyHistory, live=live),
            sources,
        )
        self._results: dict[Any, tuple[tuple[Any, ...], Any]] = {}

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
            filed, own, day = self._filed(subject, as_of), closes_of(subject, closes), as_of.date()

            def read_pieces() -> list[Piece]:
                worked = [*pieces(subject, then.get, own)]
                if reads_company(subject):
                    course = self._course(subject, filed)
                    worked.append(fair_value.piece(course, subject, own, day))
                return worked

            worked = self._once((subject, who), (*then.values(), filed, own, day), read_pieces)
            return view(worked, subject, then.get, as_of, trouble)
        except Exception as error:  # noqa: BLE001 - a tick goes on without outside numbers
            logger.warning("the outside numbers cannot be read (%s)", type(error).__name__)
            return BROKEN

    def company(self, subject: NewsSubject, as_of: datetime) -> fair_value.Course:
        """Return how a subject's company had looked over five years; {} without a company."""
        return self._course(subject, self._filed(subject, as_of))

    def fill(self, subject: NewsSubject) -> None:
        """Read what is stored for a subject, so that its first tick need not; never raises."""
        try:
            self._series(series_for(subject))
            self._course(subject, self._filed(subject, LATEST))
        except Exception as error:  # noqa: BLE001 - the tick will say so
            logger.warning("the outside numbers cannot be read (%s)", type(error).__name__)

    def _filed(self, subject: NewsSubject, as_of: datetime) -> Filed:
        """Return what the subject's company had reported; nothing without a company."""
        return self._companies([subject.ticker])[0].then(as_of) if reads_company(subject) else ()

    def _course(self, subject: NewsSubject, filed: Filed) -> fair_value.Course:
        return self._once(subject.ticker, (filed,), lambda: fair_value.course(filed))

    def _once(self, key: Any, inputs: tuple[Any, ...], work: Callable[[], T]) -> T:
        """Return what `work` comes to, worked out once for the same inputs."""
        kept = self._results.get(key)
        if kept is None or kept[0] != inputs:
            kept = self._results[key] = inputs, work()
        result: T = kept[1]
        return result

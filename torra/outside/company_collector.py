"""Collects the figures of companies from EDGAR, on threads of its own; a tick reads what is stored.

For each ticker that is watched: first which company it is (the table of tickers, asked once a week
at most; its number is kept in the store), then what it filed, every hour, and its figures, each
twice a day and at once after a new filing. A filing may be listed a while before its values are
there, so they are asked for again with the next looks at its filings, ROUNDS times in all.

A refusal, or a page that says too many requests came, leaves EDGAR alone for ten minutes. Without a
contact nobody is asked and the status is `no_key`. Nothing here raises, and nothing is for a tick.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol

from torra.clock import EPOCH
from torra.collecting.asking import WHOLE_SOURCE, WORKING, Place, TopicState
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import EDGAR, FactRow
from torra.outside.answers import FactsAnswer
from torra.outside.collector import OutsideCollector
from torra.outside.concepts import CHAINS
from torra.outside.edgar import FILINGS, TICKERS, TICKERS_S, Edgar
from torra.outside.filings import edgar_ticker

logger = logging.getLogger(__name__)

FETCH_SECONDS: Final = 30.0
"""The concepts of a figure are asked one after the other."""

REST_S: Final = 600.0
"""For how long EDGAR is left alone after a refusal: it blocks for ten minutes."""

WAITS_S: Final = {
    NewsStatus.REFUSED: REST_S,
    NewsStatus.RATE_LIMITED: REST_S,
    NewsStatus.NO_KEY: 3600.0,
}
"""Seconds until the next question after a failure that concerns EDGAR as a whole."""

ROUNDS: Final = 3

KEPT: Final = "edgar.cik"
"""Under which name the numbers of companies are kept; no ticker is written so."""

MOMENT: Final = "asked"


class FactTables(Protocol):
    """The tables of facts and of figures by first sight (torra.store)."""

    def store_facts(self, rows: Iterable[FactRow], first_seen: datetime) -> int:
        """Store what is not known yet of companies."""
        ...

    def store_fundamentals(
        self, ticker: str, figures: Mapping[str, float], first_seen: datetime
    ) -> bool:
        """Store numbers under a name, with their moment."""
        ...

    def fundamentals(self, ticker: str, *, as_of: datetime) -> dict[str, float]:
        """Return the newest numbers under a name."""
        ...


class FactsCollector(OutsideCollector[FactRow]):
    """Collects what companies reported.

    `now` is the desk's clock, `monotonic` counts real seconds.
    """

    def __init__(
        self,
        edgar: Edgar,
        store: FactTables,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        fetch_seconds: float = FETCH_SECONDS,
    ) -> None:
        super().__init__(
            {EDGAR: edgar}, now=now, monotonic=monotonic, fetch_seconds=fetch_seconds,
            about="filings", log=logger,
        )  # fmt: skip
        self._edgar = edgar
        self._store = store
        self._tickers: set[str] = set()
        self._known: dict[str, frozenset[str]] = {}
        self._rounds: dict[str, int] = {}

    def watch(self, ticker: str) -> None:
        """Ask for the figures of a company from now on."""
        if ticker in self._tickers:
            return
        left = self._remembered(edgar_ticker(ticker))
        table = (EDGAR, TICKERS)
        due = self._monotonic() + left
        with self._lock:
            self._tickers.add(ticker)
            if self._edgar.cik(ticker):
                self._watch([(EDGAR, f"{ticker} {FILINGS}")])
            elif not left:
                self._hasten([table])
            if left:
                kept = TopicState(*table, status=NewsStatus.AVAILABLE, due=due)
                self._states.setdefault(table, kept)
            self._watch([table])
        self.wake()

    def _brings_rows(self, topic: str) -> bool:
        # Tickers and lists of filings alone tell nothing of a company.
        return topic != TICKERS and not topic.endswith(f" {FILINGS}")

    def _remembered(self, name: str) -> float:
        """Take a company's number from the store; return the seconds for which it still counts."""
        try:
            kept = self._store.fundamentals(KEPT, as_of=self._now())
        except Exception as error:  # noqa: BLE001 - then it is asked for
            logger.warning("what was kept of companies cannot be read (%s)", type(error).__name__)
            return 0.0
        left = TICKERS_S - ((self._now() - EPOCH).total_seconds() - kept.get(MOMENT, 0.0))
        if not self._edgar.enabled or name not in kept or not 0.0 < left <= TICKERS_S:
            return 0.0
        self._edgar.ciks[name] = int(kept[name])
        return left

    def _question(self, source: str, topic: str) -> FactsAnswer:  # noqa: ARG002 - there is one
        return self._edgar.fetch(topic, self._now(), self._fetch_seconds)

    def _concerns_all(self, source: str, status: NewsStatus) -> bool:  # noqa: ARG002
        return status in WHOLE_SOURCE or status in WAITS_S

    def _wait_after(self, source: str, status: NewsStatus, failures: int) -> float:
        # What waits for something else is asked as one that could not be read.
        known = NewsStatus.BROKEN if status is NewsStatus.NOT_YET else status
        return WAITS_S.get(status) or super()._wait_after(source, known, failures)

    def _stored(self, place: Place, answer: FactsAnswer, moment: datetime) -> FactsAnswer:
        ticker, _, what = place[1].rpartition(" ")
        if answer.status in WORKING and what == TICKERS:
            return self._keep_companies(answer, moment)
        if answer.status is NewsStatus.AVAILABLE and what == FILINGS:
            self._watch_figures(ticker)
        if answer.items:
            self._store.store_facts(answer.items, moment)
        return answer

    def _keep_companies(self, answer: FactsAnswer, moment: datetime) -> FactsAnswer:
        ciks = {ticker: self._edgar.cik(ticker) for ticker in sorted(self._tickers)}
        with self._lock:
            self._watch((EDGAR, f"{ticker} {FILINGS}") for ticker, cik in ciks.items() if cik)
        numbers = {edgar_ticker(ticker): float(cik) for ticker, cik in ciks.items()}
        numbers[MOMENT] = (moment - EPOCH).total_seconds()
        self._store.store_fundamentals(KEPT, numbers, moment)
        strangers = [ticker for ticker, cik in ciks.items() if not cik]
        detail = f"EDGAR knows no {', '.join(strangers)}" if strangers else ""
        return replace(answer, detail=detail)

    def _watch_figures(self, ticker: str) -> None:
        """Ask for a company's figures: all at first, later where there is a new filing."""
        filed = self._edgar.filed[ticker]
        places = [(EDGAR, f"{ticker} {figure}") for figure in CHAINS]
        with self._lock:
            self._watch(places)
            if filed.read - self._known.get(ticker, filed.read):
                self._rounds[ticker] = ROUNDS
            self._known[ticker] = filed.read
            if self._rounds.get(ticker, 0):
                self._rounds[ticker] -= 1
                self._hasten(places)

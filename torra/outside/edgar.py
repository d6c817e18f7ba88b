"""EDGAR, asked for the filings of companies: one concept a request, at a pace of its own.

The SEC answers ten requests a second of everybody, and nobody who names no contact. So there is no
request at all without TORRA_EDGAR_CONTACT, an e-mail address or a URL; it goes out in the
User-Agent of each request, put in below everything that logs, and is nowhere else. `Gate` keeps the
pace over all threads of the process. A page with status 403, as "Request Rate Threshold Exceeded",
refuses for EDGAR as a whole.

A topic is `tickers` (which company is which), `AAPL filings` (what it filed, and when that was
accepted), or a figure, as `AAPL revenue`: all concepts of its chain are asked in one question, for
which of them counts can be told only when all have answered. A concept that a company never used is
a 404 there, and no failure.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from torra.clock import System
from torra.collecting.line import PLACEHOLDER, TOO_LONG, SourceError, answered
from torra.errors import ConfigError
from torra.evidence.news_digest import NewsStatus
from torra.outside.answers import FactsAnswer, RowTally
from torra.outside.concepts import concepts_of
from torra.outside.filings import (
    FiledValue,
    Submissions,
    edgar_ticker,
    read_concept,
    read_submissions,
    read_tickers,
    reported,
)
from torra.outside.publisher import MONOTONIC, USER_AGENT, get
from torra.providers.vendors.addresses import Address, address

CONTACT: Final = "TORRA_EDGAR_CONTACT"
MAX_CONTACT: Final = 200
CONTACT_FORM: Final = re.compile(
    r"[\w.%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|"
    r"https?://[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:\d+)?([/?][!-~]*)?", re.ASCII
)  # fmt: skip
"""An e-mail address, or a URL; a user name in it would be a secret in a header that goes openly."""

TICKERS: Final = "tickers"
FILINGS: Final = "filings"

REQUEST_GAP_S: Final = 0.17
"""Between two requests of any kind: six go out in a second, and EDGAR allows ten. Requests that are
late on their way may come together, so there is room.
"""

SPACING_S: Final = 1.0
"""Between two questions."""

TICKERS_S: Final = 7 * 24 * 3600.0
FILINGS_S: Final = 3600.0
FIGURES_S: Final = 12 * 3600.0
"""Between two questions about the same; after a new filing its figures are asked at once."""

MISSING: Final = 404
LONG_LIST: Final = "its list of filings is too long: a filing counts from the end of its day"
NO_PLACE: Final = "no time was left for the pace"
NO_CONTACT: Final = f"{CONTACT} is not set"


class RequestSpacer:
    """Keeps requests apart, whichever thread makes them."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
        gap: float = REQUEST_GAP_S,
    ) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._gap = gap
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self, seconds: float) -> None:
        """Wait for the next place; raises SourceError where it lies later than in so many seconds.

        Who waits holds the others up, and the next place counts from when it went on: threads that
        a busy machine woke late do not make up for it in one moment.
        """
        if not self._lock.acquire(timeout=max(0.0, seconds)):
            raise SourceError(NewsStatus.UNREACHABLE, NO_PLACE)
        try:
            left = self._next - self._monotonic()
            if left > seconds:
                raise SourceError(NewsStatus.UNREACHABLE, NO_PLACE)
            if left > 0.0:
                self._sleep(left)
            self._next = self._monotonic() + self._gap
        finally:
            self._lock.release()


GATE: Final = RequestSpacer(MONOTONIC, System().sleep)
"""The one of the process: its limit is that of a machine, whoever asks."""


def contact_of(environment: Mapping[str, str]) -> str:
    """Return the contact, "" for none; raises ConfigError, which never quotes it."""
    contact = environment.get(CONTACT, "").strip()
    if contact and (len(contact) > MAX_CONTACT or not CONTACT_FORM.fullmatch(contact)):
        raise ConfigError(
            f"{CONTACT} is neither an e-mail address nor a URL: write one at which the SEC can "
            "reach you, such as name@example.org"
        )
    return contact


class Edgar:
    """EDGAR at its two addresses: the data, and the table of tickers on another host.

    The numbers and filings of companies stay here; any thread may ask.
    """

    spacing = SPACING_S

    def __init__(
        self,
        data: Address,
        files: Address,
        contact: str,
        *,
        gate: RequestSpacer = GATE,
        monotonic: Callable[[], float] = MONOTONIC,
    ) -> None:
        self.enabled = bool(contact)
        """Whether anything is asked at all: only with a contact."""
        self.official = data.official and files.official
        """Whether both addresses are the SEC's own."""
        agent = f"{USER_AGENT} {contact}"
        # As a key: the line puts it into the header and strikes it out of what it reads.
        self.data, self._files = replace(data, key=agent), replace(files, key=agent)
        self._gate = gate
        self._monotonic = monotonic
        self.ciks: dict[str, int] = {}
        """The numbers of companies, by their tickers as EDGAR writes them."""
        self.filed: dict[str, Submissions] = {}
        """The filings of companies, as of the last answers."""

    def every(self, topic: str) -> float:
        """Return the seconds between two questions about a topic."""
        paces = {TICKERS: TICKERS_S, FILINGS: FILINGS_S}
        return paces.get(topic.rpartition(" ")[2], FIGURES_S)

    def cik(self, ticker: str) -> int:
        """Return the number of a company; 0 while it is not known."""
        return self.ciks.get(edgar_ticker(ticker), 0)

    def fetch(self, topic: str, now: datetime, seconds: float) -> FactsAnswer:
        """Ask about a topic; `seconds` bounds it. Never raises."""
        if not self.enabled:
            return FactsAnswer(NewsStatus.NO_KEY, NO_CONTACT)
        until = self._monotonic() + seconds
        return answered(lambda: self._ask(topic, now, until), FactsAnswer)

    def _ask(self, topic: str, now: datetime, until: float) -> FactsAnswer:
        if topic == TICKERS:
            self.ciks = read_tickers(self._json(self._files, "company_tickers.json", until))
            return FactsAnswer(NewsStatus.AVAILABLE)
        ticker, _, what = topic.rpartition(" ")
        cik = self.cik(ticker)
        if not cik:
            return FactsAnswer(NewsStatus.EMPTY, "EDGAR knows no such ticker")
        if what == FILINGS:
            return self._ask_filings(ticker, cik, until)
        filed = self.filed.get(ticker)
        if filed is None:
            return FactsAnswer(NewsStatus.NOT_YET, "its filings are not known yet")
        tally, values = RowTally(), list[FiledValue]()
        for concept in concepts_of(what, foreign=filed.foreign):
            path = f"api/xbrl/companyconcept/CIK{cik:010d}/{concept.taxonomy}/{concept.name}.json"
            try:
                payload = self._json(self.data, path, until)
            except SourceError as error:
                if error.code != MISSING:
                    raise
            else:
                values += read_concept(what, concept, cik, payload, tally)
        return reported(ticker, what, values, filed.stamps, now, tally)

    def _ask_filings(self, ticker: str, cik: int, until: float) -> FactsAnswer:
        """Ask what a company filed. The list of a bank that files all day is not read."""
        detail = ""
        try:
            payload = self._json(self.data, f"submissions/CIK{cik:010d}.json", until)
            self.filed[ticker] = read_submissions(payload, cik)
        except SourceError as error:
            if error.detail != TOO_LONG:
                raise
            self.filed[ticker], detail = Submissions({}, frozenset(), foreign=False), LONG_LIST
        return FactsAnswer(NewsStatus.AVAILABLE, detail)

    def _json(self, place: Address, path: str, until: float) -> Any:
        self._gate.wait(until - self._monotonic())
        left = until - self._monotonic()
        if left <= 0.0:
            raise SourceError(NewsStatus.UNREACHABLE, "the replies took too long")
        headers = {"User-Agent": PLACEHOLDER}
        return get(place, path, left, headers, monotonic=self._monotonic).json()


def open_edgar(environment: Mapping[str, str], gate: RequestSpacer = GATE) -> Edgar:
    """Return EDGAR as the environment has it; raises ConfigError for a bad address or contact."""
    data, files = address("edgar", environment), address("edgar_files", environment)
    return Edgar(data, files, contact_of(environment), gate=gate)

"""EDGAR, asked for the filings of companies: one concept a request, at a pace of its own.

The SEC answers ten requests a second of everybody, and nobody who names no contact. So there is no
request at all without TORRA_EDGAR_CONTACT, an e-mail address or a URL; it goes out in the
User-Agent of each request, put in below everything that logs, and is nowhere else. `Gate` keeps the
pace over all threads of the process. A page with status 403, as "Request Rate Threshold Exceeded",
is a refusal of EDGAR as a whole.

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
from urllib.parse import urlsplit

import requests

from torra.clock import System
from torra.collecting.line import PLACEHOLDER, TOO_LONG, HostRequest, SourceError, answered
from torra.errors import ConfigError
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import EDGAR
from torra.outside.answers import FactsAnswer
from torra.outside.concepts import CHAINS, Concept
from torra.outside.filings import (
    ConceptValues,
    Submissions,
    edgar_ticker,
    read_concept,
    read_submissions,
    read_tickers,
    reported,
)
from torra.outside.publisher import WHO_ASKS
from torra.providers.vendors.addresses import Address, address

CONTACT: Final = "TORRA_EDGAR_CONTACT"
MAX_CONTACT: Final = 200
EMAIL: Final = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", re.ASCII)

TICKERS: Final = "tickers"
FILINGS: Final = "filings"

APART_S: Final = 0.17
"""Between two requests of any kind: six go out in a second, and EDGAR allows ten. Requests that are
late on their way may come together, so there is room.
"""

SPACING_S: Final = 1.0
"""Between two questions."""

TICKERS_S: Final = 7 * 24 * 3600.0
FILINGS_S: Final = 3600.0
FIGURES_S: Final = 12 * 3600.0
"""Between two questions about a figure; after a new filing it is asked at once."""

NOT_FOUND: Final = 404
LONG_LIST: Final = "its list of filings is too long: a filing counts from the end of its day"
NO_PLACE: Final = "no time was left for the pace"
NO_CONTACT: Final = f"{CONTACT} is not set"


class RequestSpacer:
    """Keeps requests apart, whichever thread makes them."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
        apart: float = APART_S,
    ) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._apart = apart
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self, seconds: float) -> None:
        """Wait for the next place; raises Trouble where it lies later than in so many seconds.

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
            self._next = self._monotonic() + self._apart
        finally:
            self._lock.release()


GATE: Final = RequestSpacer(System().monotonic, System().sleep)
"""The one of the process: its limit is that of a machine, whoever asks."""


def contact_of(environment: Mapping[str, str]) -> str:
    """Return the contact, "" for none; raises ConfigError, which never quotes it."""
    contact = environment.get(CONTACT, "").strip()
    if not contact:
        return ""
    good = len(contact) <= MAX_CONTACT and contact.isascii() and contact.isprintable()
    if not good or not (EMAIL.fullmatch(contact) or _is_url(contact)):
        raise ConfigError(
            f"{CONTACT} is neither an e-mail address nor a URL: write one at which the SEC can "
            "reach you, such as name@example.org"
        )
    return contact


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        return False
    # A user name would be a secret in a header that goes out openly.
    plain = " " not in text and "@" not in parts.netloc
    return parts.scheme in {"http", "https"} and "." in host and plain


class Edgar:
    """EDGAR at its two addresses: the data, and the table of tickers on another host.

    What it heard of companies stays here; any thread may ask.
    """

    name = EDGAR
    spacing = SPACING_S

    def __init__(
        self,
        data: Address,
        files: Address,
        contact: str,
        *,
        gate: RequestSpacer = GATE,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self.asked = bool(contact)
        """Whether anything is asked at all: only with a contact."""
        agent = f"{WHO_ASKS} {contact}"
        # As a key: the line puts it into the header and strikes it out of what it reads.
        self._data, self._files = replace(data, key=agent), replace(files, key=agent)
        self._gate = gate
        self._monotonic = monotonic or System().monotonic
        self._ciks: dict[str, int] = {}
        self._filed: dict[str, Submissions] = {}

    @property
    def official(self) -> bool:
        """Whether both addresses are the SEC's own."""
        return self._data.official and self._files.official

    @property
    def host(self) -> str:
        """The host that is asked for filings."""
        return self._data.origin[1]

    def every(self, topic: str) -> float:
        """Return the seconds between two questions about a topic."""
        if topic == TICKERS:
            return TICKERS_S
        return FILINGS_S if topic.endswith(f" {FILINGS}") else FIGURES_S

    def know(self, ciks: Mapping[str, int]) -> None:
        """Take the numbers of companies that were kept."""
        self._ciks.update(ciks)

    def cik(self, ticker: str) -> int:
        """Return the number of a company; 0 while it is not known."""
        return self._ciks.get(edgar_ticker(ticker), 0)

    def filed(self, ticker: str) -> Submissions | None:
        """Return what a company filed, as it was last heard."""
        return self._filed.get(ticker)

    def fetch(self, topic: str, now: datetime, seconds: float) -> FactsAnswer:
        """Ask about a topic; `seconds` bounds it. Never raises."""
        if not self.asked:
            return without(NewsStatus.NO_KEY, NO_CONTACT)
        until = self._monotonic() + seconds
        return answered(lambda: self._asked(topic, now, until), without)

    def _asked(self, topic: str, now: datetime, until: float) -> FactsAnswer:
        if topic == TICKERS:
            self._ciks = read_tickers(self._json(self._files, "company_tickers.json", until))
            return FactsAnswer(NewsStatus.AVAILABLE)
        ticker, _, what = topic.rpartition(" ")
        cik = self.cik(ticker)
        if not cik:
            return without(NewsStatus.EMPTY, "EDGAR knows no such ticker")
        if what == FILINGS:
            return self._filings(ticker, cik, until)
        filed = self._filed.get(ticker)
        if filed is None:
            return without(NewsStatus.NOT_YET, "its filings are not known yet")
        concepts = CHAINS[what].concepts(foreign=filed.foreign)
        told = [self._concept(what, concept, cik, until) for concept in concepts]
        return reported(ticker, what, told, filed.stamps, now)

    def _filings(self, ticker: str, cik: int, until: float) -> FactsAnswer:
        """Hear what a company filed. The list of a bank that files all day is not read."""
        path = f"submissions/CIK{cik:010d}.json"
        try:
            found, detail = read_submissions(self._json(self._data, path, until), cik), ""
        except SourceError as trouble:
            if trouble.detail != TOO_LONG:
                raise
            found, detail = Submissions({}, frozenset(), foreign=False), LONG_LIST
        self._filed[ticker] = found
        return FactsAnswer(NewsStatus.AVAILABLE, detail=detail)

    def _concept(self, figure: str, concept: Concept, cik: int, until: float) -> ConceptValues:
        path = f"api/xbrl/companyconcept/CIK{cik:010d}/{concept.taxonomy}/{concept.name}.json"
        try:
            payload = self._json(self._data, path, until)
        except SourceError as trouble:
            if trouble.code == NOT_FOUND:
                return ConceptValues(concept)
            raise
        return read_concept(figure, concept, cik, payload)

    def _json(self, place: Address, path: str, until: float) -> Any:
        self._gate.wait(until - self._monotonic())
        left = until - self._monotonic()
        if left <= 0.0:
            raise SourceError(NewsStatus.UNREACHABLE, "the replies took too long")
        with requests.Session() as session:
            HostRequest(place, self._monotonic, left).take(session)
            # The line keeps its own time; this one is for whoever reads the call.
            headers = {"User-Agent": PLACEHOLDER}
            return session.get(f"{place.base_url}/{path}", headers=headers, timeout=left).json()


def without(status: NewsStatus, detail: str) -> FactsAnswer:
    """Return an answer that brings nothing."""
    return FactsAnswer(status, detail=detail)


def open_edgar(environment: Mapping[str, str], gate: RequestSpacer = GATE) -> Edgar:
    """Return EDGAR as the environment has it; raises ConfigError for a bad address or contact."""
    data, files = address("edgar", environment), address("edgar_files", environment)
    return Edgar(data, files, contact_of(environment), gate=gate)

"""The sources of headlines: Finnhub, Alpha Vantage, and a file of JSON lines.

A vendor is asked through its own client (Finnhub) or through requests (Alpha Vantage), over the
line of torra.collecting.line. Where a reply quotes the key, in whatever spelling, it is struck out.

`fetch` never raises: what goes wrong is a `NewsAnswer` with a status and words of ours. An item
that cannot be read is dropped and counted; a reply that cannot be read is `broken`. Texts are cut,
and cleaned of control signs, but they are a stranger's.

A broken line of a file is a ConfigError with its number when the file is first read. Later the last
good reading stays and the status says so. A file is read only when `look` is called, which may take
seconds.
"""

from __future__ import annotations

import logging
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

import finnhub
import requests

from agent_config import is_plug_in
from news_collector import Vendor
from torra.clock import System
from torra.collecting.line import PLACEHOLDER, HostRequest, answered
from torra.config import NewsSettings
from torra.errors import ConfigError
from torra.evidence.news_digest import (
    COMPANY,
    EARNINGS,
    FIGURES,
    PEER_FIGURES,
    PEERS,
    RATINGS,
    NewsAnswer,
    NewsItem,
    NewsStatus,
    NewsSubject,
    coin,
)
from torra.evidence.news_shelf import ShelvedNews
from torra.news import company_reading
from torra.news.event_file import Signature, signature
from torra.news.plug_in import NewsPlace, PlugInSource
from torra.news.reading import (
    MAX_ITEMS,
    listed,
    of_alpha_vantage,
    of_finnhub,
    read_lines,
    redacted,
    spellings,
)
from torra.plugins.loading import of_home
from torra.providers.vendors.addresses import SECRET, Address, address

logger = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 64_000_000
FINNHUB_SPACING_S: Final = 1.1
"""Finnhub's free plan answers 60 requests a minute."""

FINNHUB_NEWS_S: Final = 120.0
FIGURES_S: Final = 6 * 3600.0
"""Basic financials change with a day's close."""

COMPANY_S: Final = 24 * 3600.0
"""Ratings, peers and earnings change less often, and peers' own figures need no better pace."""

ALPHA_VANTAGE_SPACING_S: Final = 3600.0
"""Alpha Vantage's free plan answers 25 requests a day; its topics take turns."""

COMPANY_DAYS: Final = 3
"""Days for which company news are asked."""

THEME: Final = "theme."
"""Begins a topic that is one of Alpha Vantage's own."""

THEMES: Final = {"gold": "economy_monetary", "oil": "energy_transportation"}
OTHER_THEME: Final = "financial_markets"
"""Alpha Vantage's topic by asset class; currencies, coins and companies are asked by ticker."""


class Described(NamedTuple):
    """How it stands with a source before anybody asked it."""

    level: Literal["ok", "warning"]
    remedy: str = ""


class NewsSource(Vendor, Protocol):
    """A source that is asked: a vendor, or a plug-in (torra.news.plug_in)."""

    @property
    def official(self) -> bool:
        """Whether the address is the vendor's own."""
        ...

    @property
    def host(self) -> str:
        """Who is asked."""
        ...


@dataclass(frozen=True)
class Sources:
    """The sources: vendors that can be asked by name, files by their name in the settings.

    `keyless` are the vendors that cannot be asked, with the variable that is missing.
    """

    vendors: Mapping[str, NewsSource]
    files: Mapping[str, HeadlineFile]
    keyless: Mapping[str, str]

    def described(self) -> Iterator[tuple[str, Described]]:
        """Yield a sentence about each source that the settings name, and how good that is."""
        for name, vendor in self.vendors.items():
            where = "" if vendor.official else f", at {vendor.host}"
            yield f"{name} can be asked{where}", Described("ok")
        for name, file in self.files.items():
            yield f"{name} holds {len(file)} headlines", Described("ok")
        for name, variable in self.keyless.items():
            level: Literal["ok", "warning"] = "ok" if self.vendors or self.files else "warning"
            yield f"{name} has no key and is not asked", Described(level, f"set {variable}")


def open_sources(settings: NewsSettings, environment: Mapping[str, str], home: Path) -> Sources:
    """Return the sources that the settings name and that can be asked.

    A vendor with neither a key nor an address in the environment is left out. Raises ConfigError
    for a bad address or key, for a file that is missing or broken, and for a plug-in that desk.json
    does not allow or that cannot be loaded.
    """
    vendors: dict[str, NewsSource] = {}
    keyless: dict[str, str] = {}
    for name, (kind, variables) in SOURCES.items():
        if name not in settings.sources:
            continue
        if any(environment.get(each, "").strip() for each in variables):
            vendors[name] = kind(address(name, environment))
        else:
            keyless[name] = variables[0]
    for name in filter(is_plug_in, settings.sources):
        opened = of_home(home, "news")(name)(NewsPlace(settings, environment, home))
        vendors[name] = PlugInSource(opened, name)
    file = settings.file if "file" in settings.sources else ""
    return Sources(vendors, {file: HeadlineFile(home / file)} if file else {}, keyless)


# --- the vendors ----------------------------------------------------------------------------------


class _Vendor:
    """What the vendors have in common: an address."""

    def __init__(self, place: Address, monotonic: Callable[[], float] | None = None) -> None:
        self._place = place
        self._monotonic = monotonic or System().monotonic
        # A shorter key is a placeholder, a word that a headline may hold.
        self._key = spellings(place.key) if len(place.key) >= SECRET else None

    @property
    def official(self) -> bool:
        """Whether the address is the vendor's own."""
        return self._place.official

    @property
    def host(self) -> str:
        """The host that is asked."""
        return self._place.origin[1]

    def _veiled(self, payload: Any) -> Any:
        return payload if self._key is None else redacted(payload, self._key)


class Finnhub(_Vendor):
    """Finnhub, through its own client."""

    name = "finnhub"
    spacing = FINNHUB_SPACING_S

    def topics(self, subject: NewsSubject) -> tuple[str, ...]:
        """Return what to ask about a subject: categories of news, or a company."""
        if subject.asset == "stock" and subject.ticker:
            kinds = (COMPANY, FIGURES, RATINGS, PEERS, EARNINGS)
            return tuple(f"{kind}{subject.ticker}" for kind in kinds)
        if subject.asset == "crypto":
            return ("crypto",)
        return ("forex", "general") if subject.asset in {"gold", "fx"} else ("general",)

    def every(self, topic: str) -> float:
        """Return the seconds between two questions about a topic."""
        if topic.startswith((RATINGS, PEERS, EARNINGS, PEER_FIGURES)):
            return COMPANY_S
        return FIGURES_S if topic.startswith(FIGURES) else FINNHUB_NEWS_S

    def fetch(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        """Ask about a topic; `now` is the desk's clock, `seconds` bounds the reading."""
        return _answered(lambda: self._ask(topic, now, seconds))

    def _ask(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        line = HostRequest(self._place, self._monotonic, seconds)
        with finnhub.Client(PLACEHOLDER) as client:
            client.API_URL = self._place.base_url
            line.take(client._session)  # noqa: SLF001 - the client shows its session nowhere else
            kind, _, ticker = topic.partition(".")
            if ticker and (about := _ABOUT.get(f"{kind}.")):
                return about(client, ticker, self._veiled)
            if topic.startswith(COMPANY):
                first = (now - timedelta(days=COMPANY_DAYS)).date().isoformat()
                found = client.company_news(
                    topic.removeprefix(COMPANY), _from=first, to=now.date().isoformat()
                )
            else:
                found = client.general_news(topic)
        found = self._veiled(found)
        return listed(found, found, lambda row: of_finnhub(row, topic), self.name)


_Veil = Callable[[Any], Any]
_ABOUT: Final[Mapping[str, Callable[[finnhub.Client, str, _Veil], NewsAnswer]]] = {
    FIGURES: lambda client, ticker, veil: company_reading.metrics(
        veil(client.company_basic_financials(ticker, "all"))
    ),
    PEER_FIGURES: lambda client, ticker, veil: company_reading.metrics(
        veil(client.company_basic_financials(ticker, "all"))
    ),
    RATINGS: lambda client, ticker, veil: company_reading.ratings(
        veil(client.recommendation_trends(ticker))
    ),
    PEERS: lambda client, ticker, veil: company_reading.peers(
        veil(client.company_peers(ticker)), ticker
    ),
    EARNINGS: lambda client, ticker, veil: company_reading.earnings(
        veil(client.company_earnings(ticker, company_reading.QUARTERS))
    ),
}
"""What is asked about a company, by the kind of topic, and who reads the reply."""


class AlphaVantage(_Vendor):
    """Alpha Vantage's NEWS_SENTIMENT. Its own scores are not used: every item has our lexicon's."""

    name = "alpha_vantage"
    spacing = ALPHA_VANTAGE_SPACING_S

    def topics(self, subject: NewsSubject) -> tuple[str, ...]:
        """Return the one thing to ask about a subject: requests are few."""
        if subject.asset == "stock" and subject.ticker:
            return (f"{COMPANY}{subject.ticker}",)
        if subject.asset == "crypto":
            return (f"CRYPTO:{coin(subject.symbol)}",)
        if subject.asset == "fx" and subject.currencies:
            foreign = [name for name in subject.currencies if name != "USD"]
            return (f"FOREX:{(foreign or subject.currencies)[0]}",)
        return (f"{THEME}{THEMES.get(subject.asset, OTHER_THEME)}",)

    def every(self, topic: str) -> float:  # noqa: ARG002 - all are alike
        """Return the seconds between two questions about a topic."""
        return ALPHA_VANTAGE_SPACING_S

    def fetch(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:  # noqa: ARG002
        """Ask about a topic; `seconds` bounds the reading."""
        return _answered(lambda: self._ask(topic, seconds))

    def _ask(self, topic: str, seconds: float) -> NewsAnswer:
        about = (
            {"topics": topic.removeprefix(THEME)}
            if topic.startswith(THEME)
            else {"tickers": topic.removeprefix(COMPANY)}
        )
        query = {
            "function": "NEWS_SENTIMENT", **about,
            "sort": "LATEST", "limit": str(MAX_ITEMS), "apikey": PLACEHOLDER,
        }  # fmt: skip
        with requests.Session() as session:
            HostRequest(self._place, self._monotonic, seconds).take(session)
            # The line keeps its own time; this one is for whoever reads the call.
            found = session.get(f"{self._place.base_url}/query", params=query, timeout=seconds)
            payload = self._veiled(found.json())
        rows = payload.get("feed") if isinstance(payload, dict) else None
        return listed(payload, rows, lambda row: of_alpha_vantage(row, topic), self.name)


SOURCES: Final[Mapping[str, tuple[type[Finnhub | AlphaVantage], tuple[str, ...]]]] = {
    "finnhub": (Finnhub, ("FINNHUB_API_KEY", "TORRA_FINNHUB_BASE_URL")),
    "alpha_vantage": (AlphaVantage, ("ALPHAVANTAGE_API_KEY", "TORRA_ALPHAVANTAGE_BASE_URL")),
}
"""The vendors that Torra asks itself, and the variables of which one must be set."""


def _answered(ask: Callable[[], NewsAnswer]) -> NewsAnswer:
    """Return the answer, or why there is none."""
    return answered(
        ask,
        lambda status, detail: NewsAnswer(status, detail=detail),
        (finnhub.FinnhubRequestException,),
    )


# --- the file -------------------------------------------------------------------------------------


class HeadlineFile:
    """Headlines in a file of JSON lines. Raises ConfigError when the first reading fails.

    `reading` is the last one; `look` makes another when the file has changed. One thread may look
    at a time, any may read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: Signature | None = None
        mark = signature(path)
        self.reading = _sorted(read_file(path))
        self._remember(mark)

    def __len__(self) -> int:
        return len(self.reading.items)

    @property
    def topic(self) -> str:
        """The topic of the items of this file."""
        return f"file:{self._path.name}".encode("utf-8", "replace").decode()

    def look(self) -> None:
        """Read the file if it has changed since the last reading; never raises for its contents.

        A file that cannot be opened now, or changes while it is read, is read again at the next
        look.
        """
        mark = signature(self._path)
        if mark is not None and mark == self._mark:
            return
        try:
            found = _sorted(read_file(self._path))
        except ConfigError as error:
            # The file may be good and only out of reach: try again, though it does not change.
            if isinstance(error.__cause__, OSError):
                gone = isinstance(error.__cause__, FileNotFoundError)
                self._mark = None
                self._tell(NewsStatus.NO_FILE if gone else NewsStatus.BROKEN, str(error))
            elif self._remember(mark):
                self._tell(NewsStatus.BROKEN, str(error))
            return
        self._remember(mark)
        if self.reading.told:
            logger.warning("%s can be read again", self._path)
        self.reading = found

    def _remember(self, mark: Signature | None) -> bool:
        """Return whether the file stayed as it was while it was read; only then is it known."""
        steady = mark is not None and mark == signature(self._path)
        self._mark = mark if steady else None
        return steady

    def _tell(self, status: NewsStatus, told: str) -> None:
        if told != self.reading.told:
            logger.warning("%s; the last good reading is used", told)
        self.reading = replace(self.reading, status=status, told=told)


def read_file(path: Path) -> list[NewsItem]:
    """Return the headlines of a file of JSON lines; raises ConfigError naming file and line.

    Where the file could not be opened or read, an OSError is the cause.
    """
    try:
        # A pipe would block its reader.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{path} is no regular file; see news.file")
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; see news.file") from error
    except ValueError as error:
        raise ConfigError(f"{str(path)!a} is no name of a file; see news.file") from error
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} is longer than {MAX_FILE_BYTES // 10**6} MB: split it")
    return read_lines(raw, path)


def _sorted(items: Iterable[NewsItem]) -> ShelvedNews:
    rows = sorted(items, key=lambda item: (item.first_seen, item.id))
    unique = tuple({item.id: item for item in rows}.values())
    return ShelvedNews(unique, tuple(item.first_seen for item in unique))

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

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import finnhub
import requests

from agent_config import is_plug_in
from torra.clock import System
from torra.collecting.line import PLACEHOLDER, HostRequest, answered
from torra.config import NewsSettings
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
from torra.evidence.news_shelf import StoredNews
from torra.news import company_reading
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
from torra.news.watched_file import WatchedFile, read_bytes
from torra.plugins.loading import of_home
from torra.providers.vendors.addresses import SECRET, Address, address, key_sign

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

CATEGORIES: Final = {"crypto": ("crypto",)} | dict.fromkeys(("gold", "fx"), ("forex", "general"))
"""Finnhub's categories of news by asset class; of any other it is general."""

COMPANY_NEWS: Final = timedelta(days=3)
"""Time for which company news are asked."""

THEME: Final = "theme."
"""Begins a topic that is one of Alpha Vantage's own."""

THEMES: Final = {"gold": "economy_monetary", "oil": "energy_transportation"}
OTHER_THEME: Final = "financial_markets"
"""Alpha Vantage's topic by asset class; currencies, coins and companies are asked by ticker."""


@dataclass(frozen=True)
class Sources:
    """The sources: vendors that can be asked by name, files by their name in the settings.

    `keyless` are the vendors that cannot be asked, with the variable that is missing.
    """

    vendors: Mapping[str, Source]
    files: Mapping[str, HeadlineFile]
    keyless: Mapping[str, str]

    def described(self) -> Iterator[tuple[str, Literal["ok", "warning"], str]]:
        """Yield a sentence about each source that the settings name, its level and a remedy."""
        for name, vendor in self.vendors.items():
            yield f"{name} can be asked{vendor.where}", "ok", ""
        for name, file in self.files.items():
            yield f"{name} holds {len(file.reading.items)} headlines", "ok", ""
        for name, variable in self.keyless.items():
            level: Literal["ok", "warning"] = "ok" if self.vendors or self.files else "warning"
            yield f"{name} has no key and is not asked", level, f"set {variable}"


def open_sources(settings: NewsSettings, environment: Mapping[str, str], home: Path) -> Sources:
    """Return the sources that the settings name and that can be asked.

    A vendor with neither a key nor an address in the environment is left out. Raises ConfigError
    for a bad address or key, for a file that is missing or broken, and for a plug-in that desk.json
    does not allow or that cannot be loaded.
    """
    vendors: dict[str, Source] = {}
    keyless: dict[str, str] = {}
    for name, kind in SOURCES.items():
        if name not in settings.sources:
            continue
        sign = key_sign(name, environment)
        if sign.variable or not sign.official:
            vendors[name] = kind(address(name, environment))
        else:
            keyless[name] = sign.variables[0]
    for name in filter(is_plug_in, settings.sources):
        opened = of_home(home, "news")(name)(NewsPlace(settings, environment, home))
        vendors[name] = PlugInSource(opened, name)
    file = settings.file if "file" in settings.sources else ""
    return Sources(vendors, {file: HeadlineFile(home / file)} if file else {}, keyless)


# --- the vendors ----------------------------------------------------------------------------------


class NewsVendor:
    """A vendor at an address."""

    spacing: ClassVar[float]

    def __init__(self, place: Address) -> None:
        self._place = place
        self.where = "" if place.official else f", at {place.origin[1]}"
        """The host that is asked, where it is not the vendor's own."""
        # A shorter key is a placeholder, a word that a headline may hold.
        self._key = spellings(place.key) if len(place.key) >= SECRET else None

    def topics(self, subject: NewsSubject) -> tuple[str, ...]:
        """Return what to ask about a subject."""
        raise NotImplementedError

    def every(self, topic: str) -> float:  # noqa: ARG002 - most are alike
        """Return the seconds between two questions about a topic."""
        return self.spacing

    def fetch(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        """Ask about a topic; `now` is the desk's clock, `seconds` bounds the reading."""
        return answered(
            lambda: self._ask(topic, now, seconds),
            lambda status, detail: NewsAnswer(status, detail=detail),
            (finnhub.FinnhubRequestException,),
        )

    def _ask(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        raise NotImplementedError

    def _line(self, session: requests.Session, seconds: float) -> None:
        HostRequest(self._place, System().monotonic, seconds).take(session)

    def _redacted(self, payload: Any) -> Any:
        return payload if self._key is None else redacted(payload, self._key)


class Finnhub(NewsVendor):
    """Finnhub, through its own client."""

    spacing = FINNHUB_SPACING_S

    def topics(self, subject: NewsSubject) -> tuple[str, ...]:
        """Return what to ask about a subject: categories of news, or a company."""
        if subject.asset == "stock" and subject.ticker:
            kinds = (COMPANY, FIGURES, RATINGS, PEERS, EARNINGS)
            return tuple(f"{kind}{subject.ticker}" for kind in kinds)
        return CATEGORIES.get(subject.asset, ("general",))

    def every(self, topic: str) -> float:
        """Return the seconds between two questions about a topic."""
        if topic.startswith(FIGURES):
            return FIGURES_S
        return COMPANY_S if topic.startswith(tuple(_ABOUT)) else FINNHUB_NEWS_S

    def _ask(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        kind = next((kind for kind in (COMPANY, *_ABOUT) if topic.startswith(kind)), "")
        ticker = topic.removeprefix(kind)
        with finnhub.Client(PLACEHOLDER) as client:
            client.API_URL = self._place.base_url
            self._line(client._session, seconds)  # noqa: SLF001 - the client shows it nowhere else
            if kind in _ABOUT:
                ask, read = _ABOUT[kind]
                payload = self._redacted(ask(client, ticker))
                return read(payload, ticker) if kind == PEERS else read(payload)
            if kind:
                first, last = (str(moment.date()) for moment in (now - COMPANY_NEWS, now))
                payload = client.company_news(ticker, _from=first, to=last)
            else:
                payload = client.general_news(topic)
        payload = self._redacted(payload)
        return listed(payload, payload, partial(of_finnhub, topic=topic), "finnhub")


_Read = Callable[..., NewsAnswer]
_ABOUT: Final[Mapping[str, tuple[Callable[[finnhub.Client, str], Any], _Read]]] = {
    **dict.fromkeys(
        (FIGURES, PEER_FIGURES),
        (lambda client, ticker: client.company_basic_financials(ticker, "all"),
         company_reading.metrics),
    ),
    RATINGS: (finnhub.Client.recommendation_trends, company_reading.ratings),
    PEERS: (finnhub.Client.company_peers, company_reading.peers),
    EARNINGS: (
        lambda client, ticker: client.company_earnings(ticker, len(company_reading.QUARTERS)),
        company_reading.earnings,
    ),
}  # fmt: skip
"""What is asked about a company, by the kind of topic, and who reads the reply."""


class AlphaVantage(NewsVendor):
    """Alpha Vantage's NEWS_SENTIMENT. Its own scores are not used: every item has our lexicon's."""

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

    def _ask(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:  # noqa: ARG002
        themed = topic.startswith(THEME)
        query = {
            "function": "NEWS_SENTIMENT",
            "topics" if themed else "tickers": topic.removeprefix(THEME if themed else COMPANY),
            "sort": "LATEST", "limit": str(MAX_ITEMS), "apikey": PLACEHOLDER,
        }  # fmt: skip
        with requests.Session() as session:
            self._line(session, seconds)
            # The line keeps its own time; this one is for whoever reads the call.
            reply = session.get(f"{self._place.base_url}/query", params=query, timeout=seconds)
            payload = self._redacted(reply.json())
        rows = payload.get("feed") if isinstance(payload, dict) else None
        return listed(payload, rows, partial(of_alpha_vantage, topic=topic), "alpha_vantage")


Source = NewsVendor | PlugInSource

SOURCES: Final = {"finnhub": Finnhub, "alpha_vantage": AlphaVantage}
"""The vendors that Torra asks itself."""


# --- the file -------------------------------------------------------------------------------------


class HeadlineFile(WatchedFile[StoredNews]):
    """Headlines in a file of JSON lines. Raises ConfigError when the first reading fails.

    `reading` is the last one; `look` makes another when the file has changed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, lambda path: _sorted(read_file(path)), grows=True)
        self.refresh()

    @property
    def topic(self) -> str:
        """The topic of the items of this file."""
        return f"file:{self.path.name}".encode("utf-8", "replace").decode()

    @property
    def reading(self) -> StoredNews:
        """The last good reading, and why the file cannot be read now."""
        news, trouble = self.latest()
        if trouble is None:
            return news
        gone = isinstance(trouble.__cause__, FileNotFoundError)
        status = NewsStatus.NO_FILE if gone else NewsStatus.BROKEN
        return news._replace(status=status, detail=str(trouble))

    def look(self) -> None:
        """Read the file if it has changed since the last reading; never raises for its contents."""
        self.refresh()


def read_file(path: Path) -> list[NewsItem]:
    """Return the headlines of a file of JSON lines; raises ConfigError naming file and line."""
    return read_lines(read_bytes(path, MAX_FILE_BYTES, "see news.file"), path)


def _sorted(items: Iterable[NewsItem]) -> StoredNews:
    rows = sorted(items, key=lambda item: (item.first_seen, item.id))
    return StoredNews(tuple({item.id: item for item in rows}.values()))

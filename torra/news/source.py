"""The sources of headlines: Finnhub, Alpha Vantage, and a file of JSON lines.

A vendor is asked through its own client (Finnhub) or through requests (Alpha Vantage), over one
kind of line. The line goes to the address that the environment names and nowhere else; it uses no
proxy, follows no redirect, keeps no cookie, reads 2 MB of a reply at most, and cuts the connection
at its deadline. The key is put into the request as it enters the socket: no URL that anybody could
log or quote ever holds it. Where a reply quotes the key, in whatever spelling, it is struck out.

`fetch` never raises: what goes wrong is a `NewsAnswer` with a status and words of ours. An item
that cannot be read is dropped and counted; a reply that cannot be read is `broken`. Texts are cut,
and cleaned of control signs, but they are a stranger's.

A broken line of a file is a ConfigError with its number when the file is first read. Later the last
good reading stays and the status says so. A file is read only when `look` is called, which may take
seconds.
"""

from __future__ import annotations

import io
import logging
import socket
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol
from urllib.parse import quote

import finnhub
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

from agent_config import is_plug_in
from news_collector import Vendor
from torra.clock import System
from torra.config import NewsSettings
from torra.errors import ConfigError
from torra.evidence.news_digest import (
    COMPANY,
    FIGURES,
    NewsAnswer,
    NewsItem,
    NewsStatus,
    NewsSubject,
    coin,
)
from torra.evidence.news_shelf import ShelvedNews
from torra.news.event_file import Signature, signature
from torra.news.plug_in import NewsPlace, PlugInSource
from torra.news.reading import (
    MAX_ITEMS,
    figures,
    listed,
    of_alpha_vantage,
    of_finnhub,
    read_lines,
    spellings,
    veiled,
)
from torra.plugins.loading import of_home
from torra.providers.vendors.addresses import SECRET, Address, address

logger = logging.getLogger(__name__)

MAX_REPLY_BYTES: Final = 2_000_000
MAX_FILE_BYTES: Final = 64_000_000
CONNECT_S: Final = 3.0
"""A server that does not take a connection in this many seconds is down."""

CHUNK: Final = 65_536
FINNHUB_SPACING_S: Final = 1.1
"""Finnhub's free plan answers 60 requests a minute."""

FINNHUB_NEWS_S: Final = 120.0
FIGURES_S: Final = 6 * 3600.0
"""Basic financials change with a day's close."""

ALPHA_VANTAGE_SPACING_S: Final = 3600.0
"""Alpha Vantage's free plan answers 25 requests a day; its topics take turns."""

COMPANY_DAYS: Final = 3
"""Days for which company news are asked."""

THEME: Final = "theme."
"""Begins a topic that is one of Alpha Vantage's own."""

THEMES: Final = {"gold": "economy_monetary", "oil": "energy_transportation"}
OTHER_THEME: Final = "financial_markets"
"""Alpha Vantage's topic by asset class; currencies, coins and companies are asked by ticker."""

PLACEHOLDER: Final = "TORRA-PUTS-THE-KEY-HERE"


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
        return payload if self._key is None else veiled(payload, self._key)


class Finnhub(_Vendor):
    """Finnhub, through its own client."""

    name = "finnhub"
    spacing = FINNHUB_SPACING_S

    def topics(self, subject: NewsSubject) -> tuple[str, ...]:
        """Return what to ask about a subject: categories of news, or a company."""
        if subject.asset == "stock" and subject.ticker:
            return f"{COMPANY}{subject.ticker}", f"{FIGURES}{subject.ticker}"
        if subject.asset == "crypto":
            return ("crypto",)
        return ("forex", "general") if subject.asset in {"gold", "fx"} else ("general",)

    def every(self, topic: str) -> float:
        """Return the seconds between two questions about a topic."""
        return FIGURES_S if topic.startswith(FIGURES) else FINNHUB_NEWS_S

    def fetch(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        """Ask about a topic; `now` is the desk's clock, `seconds` bounds the reading."""
        return _answered(lambda: self._ask(topic, now, seconds))

    def _ask(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        line = _Line(self._place, self._monotonic, seconds)
        with finnhub.Client(PLACEHOLDER) as client:
            client.API_URL = self._place.base_url
            line.take(client._session)  # noqa: SLF001 - the client shows its session nowhere else
            if topic.startswith(FIGURES):
                found = client.company_basic_financials(topic.removeprefix(FIGURES), "all")
                return figures(self._veiled(found))
            if topic.startswith(COMPANY):
                first = (now - timedelta(days=COMPANY_DAYS)).date().isoformat()
                found = client.company_news(
                    topic.removeprefix(COMPANY), _from=first, to=now.date().isoformat()
                )
            else:
                found = client.general_news(topic)
        found = self._veiled(found)
        return listed(found, found, lambda row: of_finnhub(row, topic))


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
            _Line(self._place, self._monotonic, seconds).take(session)
            # The line keeps its own time; this one is for whoever reads the call.
            found = session.get(f"{self._place.base_url}/query", params=query, timeout=seconds)
            payload = self._veiled(found.json())
        rows = payload.get("feed") if isinstance(payload, dict) else None
        return listed(payload, rows, lambda row: of_alpha_vantage(row, topic))


SOURCES: Final[Mapping[str, tuple[type[Finnhub | AlphaVantage], tuple[str, ...]]]] = {
    "finnhub": (Finnhub, ("FINNHUB_API_KEY", "TORRA_FINNHUB_BASE_URL")),
    "alpha_vantage": (AlphaVantage, ("ALPHAVANTAGE_API_KEY", "TORRA_ALPHAVANTAGE_BASE_URL")),
}
"""The vendors that Torra asks itself, and the variables of which one must be set."""


# --- the line -------------------------------------------------------------------------------------


class _Trouble(Exception):
    def __init__(self, status: NewsStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def _answered(ask: Callable[[], NewsAnswer]) -> NewsAnswer:
    """Return the answer; of an exception only our own words or its type go on."""
    try:
        return ask()
    except _Trouble as trouble:
        return NewsAnswer(trouble.status, detail=trouble.detail)
    except (finnhub.FinnhubRequestException, ValueError, RecursionError):
        return NewsAnswer(NewsStatus.BROKEN, detail="the reply is not JSON")
    except urllib3.exceptions.DecodeError:
        return NewsAnswer(NewsStatus.BROKEN, detail="the reply's compression cannot be read")
    except (OSError, urllib3.exceptions.HTTPError) as error:
        return NewsAnswer(NewsStatus.UNREACHABLE, detail=f"no whole reply ({type(error).__name__})")
    except Exception as error:  # noqa: BLE001 - a client may raise anything
        return NewsAnswer(NewsStatus.BROKEN, detail=f"the client failed ({type(error).__name__})")


class _Keyed:
    """A connection that puts the key into the request line, below everything that logs.

    The line gets hold of its socket before anything is sent over it.
    """

    key = ""
    line: _Line

    def _new_conn(self) -> socket.socket:
        made: socket.socket = super()._new_conn()  # type: ignore[misc]
        self.line.hold(made)
        return made

    def putrequest(self, method: str, url: str, *rest: Any, **more: Any) -> None:
        """Send the request line."""
        ours = url.replace(PLACEHOLDER, self.key)
        super().putrequest(method, ours, *rest, **more)  # type: ignore[misc]


class _Line(HTTPAdapter):
    """One request to a vendor: bounded in time and size, and to its own address."""

    def __init__(self, place: Address, monotonic: Callable[[], float], seconds: float) -> None:
        self._place = place
        self._monotonic = monotonic
        self._until = monotonic() + seconds
        self._lock = threading.Lock()
        self._held: socket.socket | None = None
        self._cut = False
        # The collector alone decides when a vendor is asked again.
        super().__init__(max_retries=0)

    def take(self, session: requests.Session) -> None:
        """Let a session use this line and nothing else."""
        # No proxy and no password of the environment.
        session.trust_env = False
        session.proxies.clear()
        # With no other adapter a request to any other address fails.
        session.adapters.clear()
        session.mount(f"{self._place.base_url}/", self)

    def init_poolmanager(self, *place: Any, **how: Any) -> None:
        """Make the pool of connections, which know the key."""
        super().init_poolmanager(*place, **how)
        key = quote(self._place.key, safe="")
        ours = {"key": key, "line": self}
        # urllib3 makes connections from classes, so each line has classes that know its key.
        plain = type("Plain", (_Keyed, HTTPConnection), ours)
        secure = type("Secure", (_Keyed, HTTPSConnection), ours)
        self.poolmanager.pool_classes_by_scheme = {
            "http": type("Http", (urllib3.HTTPConnectionPool,), {"ConnectionCls": plain}),
            "https": type("Https", (urllib3.HTTPSConnectionPool,), {"ConnectionCls": secure}),
        }

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002 - what the session passes
        timeout: Any = None,  # noqa: ARG002
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,  # noqa: ARG002
    ) -> requests.Response:
        """Send a request and read its reply whole; raises _Trouble for one that is no success."""
        # urllib3 refuses a time-out of 0.
        left = max(0.1, self._until - self._monotonic())
        deadline = threading.Timer(left, self.cut)
        deadline.daemon = True
        deadline.start()
        try:
            response = self._sent(request, (min(CONNECT_S, left), left), verify, cert)
        except (OSError, urllib3.exceptions.HTTPError):
            # A connection that was cut looks broken: say that it was the deadline.
            self._check_deadline()
            raise
        finally:
            deadline.cancel()
            self.let_go()
        self._check_deadline()
        return response

    def hold(self, made: socket.socket) -> None:
        """Remember a connection, to cut it at the deadline: a time-out is for one silence only.

        It is a second handle, which stays good whatever becomes of the first.
        """
        self.let_go()
        with self._lock:
            self._held = made.dup()

    def let_go(self) -> None:
        """Forget the connection."""
        with self._lock:
            if self._held is not None:
                self._held.close()
                self._held = None

    def cut(self) -> None:
        """End the connection, whoever reads from it and however slowly it drips."""
        with self._lock:
            self._cut = True
            if self._held is not None:
                with suppress(OSError):
                    self._held.shutdown(socket.SHUT_RDWR)

    def _check_deadline(self) -> None:
        if self._cut:
            raise _Trouble(NewsStatus.UNREACHABLE, "the reply took too long")

    def _sent(
        self, request: requests.PreparedRequest, limits: tuple[float, float], verify: Any, cert: Any
    ) -> requests.Response:
        # Streamed, so that the bound on its length comes before the memory.
        response = super().send(request, stream=True, timeout=limits, verify=verify, cert=cert)
        self._check_deadline()
        raw = response.raw
        try:
            _check(response.status_code)
            body = self._body(raw)
        finally:
            raw.close()
        written = replace(self._place, key=quote(self._place.key, safe=""))
        # The key may be quoted as it is and as a URL spells it.
        response.raw = io.BytesIO(written.veiled(self._place.veiled(body)))
        # JSON is UTF-8 unless the header names something else.
        response.encoding = response.encoding or "utf-8"
        return response

    def _body(self, raw: Any) -> bytes:
        found = bytearray()
        # read1 returns what has come; read would wait for a whole chunk of a reply that drips.
        while part := raw.read1(CHUNK, decode_content=True):
            found += part
            if len(found) > MAX_REPLY_BYTES:
                raise _Trouble(NewsStatus.BROKEN, "the reply is too long")
            if self._monotonic() > self._until:
                raise _Trouble(NewsStatus.UNREACHABLE, "the reply took too long")
        return bytes(found)


def _check(status: int) -> None:
    # Nothing else is a success: a redirect is not followed.
    if status == 200:
        return
    if status == 429:
        raise _Trouble(NewsStatus.RATE_LIMITED, "HTTP status 429")
    if status in {401, 403}:
        raise _Trouble(NewsStatus.REFUSED, f"HTTP status {status}")
    kind = NewsStatus.UNREACHABLE if status >= 500 else NewsStatus.BROKEN
    raise _Trouble(kind, f"HTTP status {status}")


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

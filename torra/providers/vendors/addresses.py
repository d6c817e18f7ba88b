"""The address and the key of each vendor, read from the environment and from nowhere else.

`TORRA_ANTHROPIC_BASE_URL`, `TORRA_GOOGLE_BASE_URL` and `TORRA_OPENAI_BASE_URL` point a vendor at
another server, such as a model on this machine. A server that is not the vendor's never sees the
vendor's key: it gets a dummy, or `TORRA_ANTHROPIC_CUSTOM_KEY` and its like where that is set. Who
answers without a key is sent none unless there is one. Plain http is for this machine only.
Whatever does not fit is a ConfigError that names the variable and never quotes a key.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from torra.errors import ConfigError

DUMMY_KEY: Final = "local"
"""The key for a server that is not the vendor's."""

ANTHROPIC_VERSION: Final = "2026-10-21"
"""Version of Anthropic's API that the request body is written for (anthropic 2)."""

MAX_KEY: Final = 512
SECRET: Final = 8
"""A shorter key is a placeholder, such as ollama, and a word that a reply may hold."""


class _Vendor(NamedTuple):
    word: str
    base_url: str
    hosts: frozenset[str]
    keys: tuple[str, ...]
    """Variables that may hold the key; none: no key is ever sent."""
    must: bool = True
    """Whether it answers nobody without a key."""


_VENDORS: Final[Mapping[str, _Vendor]] = {
    "anthropic": _Vendor(
        "ANTHROPIC",
        "https://api.anthropic.com",
        frozenset(("api.anthropic.com",)),
        ("ANTHROPIC_API_KEY",),
    ),
    "google": _Vendor(
        "GOOGLE",
        "https://generativelanguage.googleapis.com",
        frozenset(("generativelanguage.googleapis.com",)),
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    ),
    "openai_compatible": _Vendor(
        "OPENAI",
        "https://api.openai.com/v1",
        frozenset(("api.openai.com", "eu.api.openai.com", "us.api.openai.com")),
        ("OPENAI_API_KEY",),
    ),
    "finnhub": _Vendor(
        "FINNHUB",
        "https://api.finnhub.io/api/v1",
        frozenset(("api.finnhub.io", "finnhub.io")),
        ("FINNHUB_API_KEY",),
    ),
    "alpha_vantage": _Vendor(
        "ALPHAVANTAGE",
        "https://www.alphavantage.co",
        frozenset(("www.alphavantage.co", "alphavantage.co")),
        ("ALPHAVANTAGE_API_KEY",),
    ),
    "fred": _Vendor(
        "FRED",
        "https://fred.stlouisfed.org/graph",
        frozenset(("fred.stlouisfed.org",)),
        (),
        must=False,
    ),
    "cftc": _Vendor(
        "CFTC",
        "https://publicreporting.cftc.gov/resource",
        frozenset(("publicreporting.cftc.gov",)),
        ("TORRA_CFTC_APP_TOKEN",),
        must=False,
    ),
    "edgar": _Vendor(
        "EDGAR",
        "https://data.sec.gov",
        frozenset(("data.sec.gov",)),
        (),
        must=False,
    ),
    "edgar_files": _Vendor(
        "EDGAR_FILES",
        "https://www.sec.gov/files",
        frozenset(("www.sec.gov",)),
        (),
        must=False,
    ),
}


@dataclass(frozen=True, slots=True)
class Address:
    """A vendor's server.

    `official` says that it is the vendor's own, `local` that it is a model server on this machine,
    which costs nothing.
    """

    vendor: str
    base_url: str
    key: str = field(repr=False)
    official: bool
    local: bool

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port; requests go there and nowhere else."""
        return origin_of(self.base_url)

    @property
    def path(self) -> str:
        """Path below which every request goes; without a slash at its end."""
        return urlsplit(self.base_url).path.rstrip("/")

    def veiled(self, body: bytes) -> bytes:
        """Return a reply's body without the key: a server may quote it, and replies are stored."""
        return body.replace(self.key.encode(), b"[key]") if len(self.key) >= SECRET else body

    def headers(self) -> dict[str, str]:
        """Return the headers that are this vendor's: the key, and the version of its API."""
        if self.vendor == "google":
            return {"x-goog-api-key": self.key}
        version = {"anthropic-version": ANTHROPIC_VERSION} if self.vendor == "anthropic" else {}
        return {"authorization": f"Bearer {self.key}", **version}


def address(vendor: str, environment: Mapping[str, str]) -> Address:
    """Return where a vendor is reached; raises ConfigError naming the variable to mend."""
    known = _VENDORS[vendor]
    variable = _address_variable(known)
    base_url = environment.get(variable, "").strip() or known.base_url
    scheme, host, port = _checked(base_url, variable)
    # The whole origin must be the vendor's: its key goes to no host that only looks like it.
    official = scheme == "https" and host in known.hosts and port == 443
    return Address(
        vendor=vendor,
        base_url=base_url.rstrip("/"),
        key=_key(known, environment, official=official),
        official=official,
        local=vendor == "openai_compatible" and is_loopback(host),
    )


@dataclass(frozen=True, slots=True)
class KeySign:
    """Whether a vendor can be asked, in words that may be shown: never the key itself.

    `variables` may hold the key of the server that is asked, `found` is the one that does, "" for
    none; `address_variable` names another server. `official` and `local` are those of its
    `Address`; `trouble` says what keeps it from being asked, "" for nothing.
    """

    variables: tuple[str, ...]
    address_variable: str
    found: str
    official: bool
    local: bool
    trouble: str = ""


def key_sign(vendor: str, environment: Mapping[str, str]) -> KeySign:
    """Return whether the key of a vendor is there; raises nothing and never tells the key."""
    known = _VENDORS[vendor]
    elsewhere = bool(environment.get(_address_variable(known), "").strip())
    official, local, trouble = not elsewhere, False, ""
    try:
        place = address(vendor, environment)
        official, local = place.official, place.local
    except ConfigError as error:
        trouble = str(error)
    names = _key_names(known, official=official)
    found = next((name for name in names if environment.get(name, "").strip()), "")
    return KeySign(names, _address_variable(known), found, official, local, trouble)


def origin_of(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL, the port that the scheme implies written out."""
    parts = urlsplit(url)
    return (
        parts.scheme,
        parts.hostname or "",
        parts.port or (443 if parts.scheme == "https" else 80),
    )


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its name or number alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked(url: str, variable: str) -> tuple[str, str, int]:
    """Return the origin of a base URL; the message never quotes it, for it may hold a password."""
    try:
        parts = urlsplit(url)
        scheme, host, port = origin_of(url)
    except ValueError:
        raise ConfigError(f"{variable} is not a URL; write it as https://host/path") from None
    if not url.isascii() or any(sign.isspace() or not sign.isprintable() for sign in url):
        raise ConfigError(f"{variable} holds a sign that no URL has; write it as https://host/path")
    if scheme not in {"http", "https"} or not host:
        raise ConfigError(f"{variable} is not an http or https URL; write it as https://host/path")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{variable} holds a user name; keys go into variables of their own")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise ConfigError(f"{variable} has a query or a fragment; leave it out")
    if scheme == "http" and not is_loopback(host):
        raise ConfigError(f"{variable} is plain http to another machine; use https")
    return scheme, host, port


def _address_variable(known: _Vendor) -> str:
    return f"TORRA_{known.word}_BASE_URL"


def _key_names(known: _Vendor, *, official: bool) -> tuple[str, ...]:
    if official or not known.keys:
        return known.keys
    return (f"TORRA_{known.word}_CUSTOM_KEY",)


def _key(known: _Vendor, environment: Mapping[str, str], *, official: bool) -> str:
    names = _key_names(known, official=official)
    for name in names:
        key = environment.get(name, "").strip()
        if not key:
            continue
        # What no header can hold is refused here, in words that do not quote it.
        if len(key) > MAX_KEY or not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(f"{name} is not a key: it has a blank or another odd sign in it")
        return key
    if not known.must:
        return ""
    if not official:
        return DUMMY_KEY
    raise ConfigError(
        f"there is no key: set {' or '.join(names)} in the environment, or point "
        f"TORRA_{known.word}_BASE_URL at a server of your own"
    )

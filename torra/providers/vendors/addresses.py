"""The address and the key of each vendor, read from the environment and from nowhere else.

`TORRA_ANTHROPIC_BASE_URL`, `TORRA_GOOGLE_BASE_URL` and `TORRA_OPENAI_BASE_URL` point a vendor at
another server, such as a model on this machine. A server that is not the vendor's never sees the
vendor's key: it gets a dummy, or `TORRA_ANTHROPIC_CUSTOM_KEY` and its like where that is set. Who
answers without a key is sent none unless there is one. Plain http is for this machine only.
Whatever does not fit is a ConfigError that names the variable and never quotes a key.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from torra.errors import ConfigError
from torra.providers.vendors.table import VendorRow, vendors

DUMMY_KEY: Final = "local"
"""The key for a server that is not the vendor's."""

MAX_KEY: Final = 512
SECRET: Final = 8
"""A shorter key is a placeholder, such as ollama, and a word that a reply may hold."""


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
        rows = vendors()[self.vendor].headers.items()
        return {name: text.replace("{key}", self.key) for name, text in rows}


def address(vendor: str, environment: Mapping[str, str]) -> Address:
    """Return where a vendor is reached; raises ConfigError naming the variable to mend."""
    row = vendors()[vendor]
    base_url = environment.get(_address_variable(row), "").strip() or row.base_url
    scheme, host, port = _checked(base_url, _address_variable(row))
    hosts = (origin_of(row.base_url)[1], *row.hosts)
    # The whole origin must be the vendor's: its key goes to no host that only looks like it.
    official = scheme == "https" and host in hosts and port == 443
    return Address(
        vendor=vendor,
        base_url=base_url.rstrip("/"),
        key=_key(row, environment, official=official),
        official=official,
        local=vendor == "openai_compatible" and is_loopback(host),
    )


@dataclass(frozen=True, slots=True)
class KeySign:
    """Whether a vendor can be asked, in words that may be shown: never the key itself.

    `variables` may hold the key of the server that is asked, `variable` is the one that does, ""
    for none; `address_variable` names another server. `official` and `local` are those of its
    `Address`; `trouble` says what keeps it from being asked, "" for nothing.
    """

    variables: Sequence[str]
    address_variable: str
    variable: str
    official: bool
    local: bool
    trouble: str = ""


def key_sign(vendor: str, environment: Mapping[str, str]) -> KeySign:
    """Return whether the key of a vendor is there; raises nothing and never tells the key."""
    row, trouble = vendors()[vendor], ""
    official, local = not environment.get(_address_variable(row), "").strip(), False
    try:
        place = address(vendor, environment)
        official, local = place.official, place.local
    except ConfigError as error:
        trouble = str(error)
    names = _key_names(row, official=official)
    variable = next((name for name in names if environment.get(name, "").strip()), "")
    return KeySign(names, _address_variable(row), variable, official, local, trouble)


def origin_of(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL, the port that the scheme implies written out."""
    parts = urlsplit(url)
    implied = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname or "", parts.port or implied


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its name or number alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked(url: str, variable: str) -> tuple[str, str, int]:
    """Return the origin of a base URL; the message never quotes it, for it may hold a password."""
    try:
        netloc = urlsplit(url).netloc
        scheme, host, port = origin_of(url)
    except ValueError:
        netloc = scheme = host = ""
        port = 0
    odd = not url.isascii() or not url.isprintable() or set(url) & set(" ?#") or "@" in netloc
    if odd or not host or scheme not in {"http", "https"}:
        raise ConfigError(
            f"{variable} is not a plain http or https URL; write it as https://host/path, without "
            "a user name or a query: keys go into variables of their own"
        )
    if scheme == "http" and not is_loopback(host):
        raise ConfigError(f"{variable} is plain http to another machine; use https")
    return scheme, host, port


def _address_variable(row: VendorRow) -> str:
    return f"TORRA_{row.variable}_BASE_URL"


def _key_names(row: VendorRow, *, official: bool) -> Sequence[str]:
    return row.keys if official or not row.keys else (f"TORRA_{row.variable}_CUSTOM_KEY",)


def _key(row: VendorRow, environment: Mapping[str, str], *, official: bool) -> str:
    names = _key_names(row, official=official)
    for name in names:
        if key := environment.get(name, "").strip():
            # What no header can hold is refused here, in words that do not quote it.
            if len(key) > MAX_KEY or not key.isascii() or not key.isprintable() or " " in key:
                raise ConfigError(f"{name} is not a key: it has a blank or another odd sign in it")
            return key
    if row.needs_key and official:
        raise ConfigError(
            f"there is no key: set {' or '.join(names)} in the environment, or point "
            f"{_address_variable(row)} at a server of your own"
        )
    return DUMMY_KEY if row.needs_key else ""

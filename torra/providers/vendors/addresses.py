"""The address and the key of each vendor, read from the environment and from nowhere else.

`TORRA_ANTHROPIC_BASE_URL`, `TORRA_GOOGLE_BASE_URL` and `TORRA_OPENAI_BASE_URL` point a vendor at
another server, such as a model on this machine. A server that is not the vendor's never sees the
vendor's key: it gets a dummy, or `TORRA_ANTHROPIC_CUSTOM_KEY` and its like where that is set. Who
answers without a key is sent none unless there is one. Plain http is for this machine only.
Whatever does not fit is a ConfigError that names the variable and never quotes a key.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from torra.errors import ConfigError
from torra.providers.vendors.table import vendors

DUMMY_KEY: Final = "local"
"""The key for a server that is not the vendor's."""

KEY: Final = re.compile(r"[!-~]{1,512}")
"""What a header can hold."""
URL: Final = re.compile(
    r"https?://([\w.-]+|\[[\d:a-f]+])(:\d+)?(/[!\"$->@-~]*)?", re.ASCII | re.IGNORECASE
)
"""An address without a user name, a query or a fragment."""

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

    def veiled(self, body: bytes) -> bytes:
        """Return a reply's body without the key: a server may quote it, and replies are stored."""
        return body.replace(self.key.encode(), b"[key]") if len(self.key) >= SECRET else body

    def headers(self) -> dict[str, str]:
        """Return the headers that are this vendor's: the key, and the version of its API."""
        rows = vendors()[self.vendor].headers.items()
        return {name: text.replace("{key}", self.key) for name, text in rows}


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


def address(vendor: str, environment: Mapping[str, str]) -> Address:
    """Return where a vendor is reached; raises ConfigError naming the variable to mend."""
    row, sign = vendors()[vendor], key_sign(vendor, environment)
    if sign.trouble:
        raise ConfigError(sign.trouble)
    key = environment.get(sign.variable, "").strip()
    return Address(
        vendor=vendor,
        base_url=(environment.get(sign.address_variable, "").strip() or row.base_url).rstrip("/"),
        key=key or (DUMMY_KEY if row.needs_key else ""),
        official=sign.official,
        local=sign.local,
    )


def key_sign(vendor: str, environment: Mapping[str, str]) -> KeySign:
    """Return whether the key of a vendor is there; raises nothing and never tells the key."""
    row = vendors()[vendor]
    place = f"TORRA_{row.variable}_BASE_URL"
    own = environment.get(place, "").strip()
    origin, trouble = _own_origin(own, place)
    # The whole origin must be the vendor's: its key goes to no host that only looks like it.
    ours = [("https", host, 443) for host in (origin_of(row.base_url)[1], *row.hosts)]
    official = not own or origin in ours
    names = row.keys if official or not row.keys else (f"TORRA_{row.variable}_CUSTOM_KEY",)
    variable = next((name for name in names if environment.get(name, "").strip()), "")
    if variable and not KEY.fullmatch(environment[variable].strip()):
        trouble = trouble or f"{variable} is not a key: it has a blank or another odd sign in it"
    elif not variable and row.needs_key and official:
        trouble = (
            f"there is no key: set {' or '.join(names)} in the environment, or point {place} at a "
            "server of your own"
        )
    local = vendor == "openai_compatible" and is_loopback(origin[1])
    return KeySign(names, place, variable, official, local, trouble)


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


def _own_origin(url: str, variable: str) -> tuple[tuple[str, str, int], str]:
    """Return the origin of a base URL, "" for none, and what is wrong with it.

    The sentence never quotes it, for it may hold a password.
    """
    try:
        origin = origin_of(url if URL.fullmatch(url) else "")
    except ValueError:
        origin = origin_of("")
    scheme, host, _ = origin
    if url and not host:
        return origin, (
            f"{variable} is not a plain http or https URL; write it as https://host/path, without "
            "a user name or a query: keys go into variables of their own"
        )
    plain = scheme == "http" and not is_loopback(host)
    return origin, f"{variable} is plain http to another machine; use https" if plain else ""

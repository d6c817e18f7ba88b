"""The line to a host that is asked for news or for numbers: one request, bounded, to one address.

A line goes to the address that the environment names and nowhere else. It uses no proxy, follows no
redirect, keeps no cookie, reads 2 MB of a reply at most, and cuts the connection at its deadline. A
key is put into the request as it enters the socket: whoever asks writes PLACEHOLDER, so no URL and
no header that anybody could log or quote ever holds the key. Where a reply quotes it, plainly or as
URLs spell it, it is struck out.

What goes wrong is a `SourceError` with a status and words of ours. `answered` makes an answer of
it, so that asking never raises.
"""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar
from urllib.parse import quote

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

from torra.collecting.refusals import OK, PAGE, refusal
from torra.evidence.news_digest import NewsStatus
from torra.providers.vendors.addresses import Address

MAX_REPLY_BYTES: Final = 2_000_000
CONNECT_S: Final = 3.0
"""A server that does not take a connection in this many seconds is down."""

CHUNK: Final = 65_536
HEAD: Final = 16_384
"""What is read at most of the page that comes with a refusal."""

TOO_LONG: Final = "the reply is too long"
PLACEHOLDER: Final = "TORRA-PUTS-THE-KEY-HERE"

T = TypeVar("T")


class SourceError(Exception):
    """Why there is no answer, in words of ours."""

    def __init__(self, status: NewsStatus, detail: str, code: int = 0) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        """The HTTP status of a reply that is no success; 0 for any other trouble."""


def answered(
    ask: Callable[[], T],
    failed: Callable[[NewsStatus, str], T],
    unreadable: tuple[type[Exception], ...] = (),
) -> T:
    """Return what `ask` returns; of an exception only our own words or its type go on.

    `failed` makes an answer of a status and its words; `unreadable` are a client's own exceptions
    for a reply that is not JSON.
    """
    no_json: tuple[type[Exception], ...] = (*unreadable, ValueError, RecursionError)
    try:
        return ask()
    except SourceError as trouble:
        return failed(trouble.status, trouble.detail)
    except no_json:
        return failed(NewsStatus.BROKEN, "the reply is not JSON")
    except urllib3.exceptions.DecodeError:
        return failed(NewsStatus.BROKEN, "the reply's compression cannot be read")
    except (OSError, urllib3.exceptions.HTTPError) as error:
        return failed(NewsStatus.UNREACHABLE, f"no whole reply ({type(error).__name__})")
    except Exception as error:  # noqa: BLE001 - a client may raise anything
        return failed(NewsStatus.BROKEN, f"the client failed ({type(error).__name__})")


class _Keyed:
    """A connection that puts the key into the request line, below everything that logs.

    The line gets hold of its socket before anything is sent over it.
    """

    key = ""
    line: HostRequest

    def _new_conn(self) -> socket.socket:
        made: socket.socket = super()._new_conn()  # type: ignore[misc]
        self.line.hold(made)
        return made

    def putrequest(self, method: str, url: str, *rest: Any, **more: Any) -> None:
        """Send the request line."""
        ours = url.replace(PLACEHOLDER, quote(self.key, safe=""))
        super().putrequest(method, ours, *rest, **more)  # type: ignore[misc]

    def putheader(self, header: str, *values: Any) -> None:
        """Send a header."""
        ours = [self.key if value == PLACEHOLDER else value for value in values]
        super().putheader(header, *ours)  # type: ignore[misc]


class HostRequest(HTTPAdapter):
    """One request to a host: bounded in time and size, and to its own address."""

    def __init__(
        self,
        place: Address,
        monotonic: Callable[[], float],
        seconds: float,
    ) -> None:
        """Make a line."""
        self._place = place
        self._monotonic = monotonic
        self._until = monotonic() + seconds
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
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
        ours = {"key": self._place.key, "line": self}
        # urllib3 makes connections from classes, so each line has classes that know its key.
        plain = type("Plain", (_Keyed, HTTPConnection), ours)
        secure = type("Secure", (_Keyed, HTTPSConnection), ours)
        self.poolmanager.pool_classes_by_scheme = {
            "http": type("Http", (urllib3.HTTPConnectionPool,), {"ConnectionCls": plain}),
            "https": type("Https", (urllib3.HTTPSConnectionPool,), {"ConnectionCls": secure}),
        }

    def send(self, request: requests.PreparedRequest, *_: Any, **how: Any) -> requests.Response:
        """Send a request, return its whole reply; raises SourceError for one that is no success."""
        # urllib3 refuses a time-out of 0.
        left = max(0.1, self._until - self._monotonic())
        # Streamed, so that the bound on its length comes before the memory.
        how |= {"stream": True, "timeout": (min(CONNECT_S, left), left)}
        deadline = threading.Timer(left, self.cut)
        deadline.daemon = True
        deadline.start()
        try:
            response = self._sent(request, how)
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
            self._socket = made.dup()

    def let_go(self) -> None:
        """Forget the connection."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    def cut(self) -> None:
        """End the connection, whoever reads from it and however slowly it drips."""
        with self._lock:
            self._cut = True
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _check_deadline(self) -> None:
        if self._cut:
            raise SourceError(NewsStatus.UNREACHABLE, "the reply took too long")

    def _sent(self, request: requests.PreparedRequest, how: Any) -> requests.Response:
        response = super().send(request, **how)
        self._check_deadline()
        raw = response.raw
        try:
            code = response.status_code
            # Nothing else is a success: a redirect is not followed.
            if code != OK:
                page = self._head(raw).decode("utf-8", "replace")
                raise SourceError(*refusal(self._place.vendor, code, page), code)
            body = self._body(raw)
        finally:
            raw.close()
        if body.lstrip().startswith(b"<"):
            raise SourceError(*PAGE)
        written = replace(self._place, key=quote(self._place.key, safe=""))
        # The key may be quoted as it is and as a URL spells it.
        response.raw = io.BytesIO(written.veiled(self._place.veiled(body)))
        # JSON is UTF-8 unless the header names something else.
        response.encoding = response.encoding or "utf-8"
        return response

    def _body(self, raw: Any) -> bytes:
        content = bytearray()
        # read1 returns what has come; read would wait for a whole chunk of a reply that drips.
        while part := raw.read1(CHUNK, decode_content=True):
            content += part
            if len(content) > MAX_REPLY_BYTES:
                raise SourceError(NewsStatus.BROKEN, TOO_LONG)
        return bytes(content)

    def _head(self, raw: Any) -> bytes:
        """Return the beginning of a page, up to the end of its title; what breaks is left out."""
        content = bytearray()
        with suppress(OSError, urllib3.exceptions.HTTPError):
            while len(content) < HEAD and b"</title>" not in content:
                content += (part := raw.read1(HEAD, decode_content=True))
                if not part:
                    break
        return bytes(content[:HEAD])

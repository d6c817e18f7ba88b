"""A loopback server that stands for Finnhub and Alpha Vantage: it says what it is told to say.

`play(Said(...))` sets what every request gets until the next call; `asked` records path and query.
A body may come whole, drip, stop short, be reset, or never come.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from tests.doubles.loopback import Loopback
from torra.evidence.news_digest import NewsStatus

LONGEST = 60.0
BIG = b"x" * 10_000_000
PACKED = {"content-encoding": "gzip"}


@dataclass(frozen=True)
class Said:
    """A reply. `how` is whole, drip, header_drip, short, reset, midway or hang."""

    body: bytes = b"[]"
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    how: str = "whole"
    every: float = 0.02


S = NewsStatus
FAULTS: Final[Mapping[str, tuple[Said, NewsStatus]]] = {
    "hang": (Said(how="hang"), S.UNREACHABLE),
    "header_drip": (Said(how="header_drip"), S.UNREACHABLE),
    "reset": (Said(how="reset"), S.UNREACHABLE),
    "nothing": (Said(b""), S.BROKEN),
    "noise": (Said(b"\x00\xff\xfe" * 50), S.BROKEN),
    "long": (Said(BIG), S.BROKEN),
    "bomb": (Said(gzip.compress(BIG, mtime=0), headers=PACKED), S.BROKEN),
    "not_packed": (Said(b"plain", headers=PACKED), S.BROKEN),
    "deep": (Said(b"[" * 100_000), S.BROKEN),
    "no_content": (Said(b"", code=204), S.BROKEN),
    "bad_request": (Said(b"{}", code=400), S.BROKEN),
    "unauthorized": (Said(b"", code=401), S.REFUSED),
    "too_many": (Said(b"", code=429), S.RATE_LIMITED),
    "server_error": (Said(b"", code=500), S.UNREACHABLE),
    "bad_gateway": (Said(b"", code=502), S.UNREACHABLE),
    "unavailable": (Said(b"[]", code=503), S.UNREACHABLE),
}
"""What may go wrong at any publisher, and the word for it."""
SLOW: Final = frozenset(("hang", "header_drip"))


class NewsServer(Loopback):
    """See the module; use it in a `with`."""

    def __init__(self, said: Any = None) -> None:
        super().__init__(_Conversation)
        self.said = said or Said()
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"{super().url}/api/v1"

    def play(self, said: Any) -> Self:
        self.said = said
        self.asked = []
        return self


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    timeout = LONGEST
    server: NewsServer

    def log_message(self, *_: Any) -> None:
        """Say nothing: what was asked is in `asked`."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.asked.append((parts.path, query))
        said = self.server.said
        if callable(said):
            said = said(parts.path, query)
        with contextlib.suppress(OSError):
            self._say(said)

    def _say(self, said: Said) -> None:
        if said.how == "hang":
            self.server.released.wait(LONGEST)
        elif said.how == "reset":
            self._reset()
        elif said.how == "header_drip":
            self._drip(b"HTTP/1.1 200 OK\r\nx-slow: " + b"s" * 5000, said.every)
        else:
            self._answer(said)

    def _answer(self, said: Said) -> None:
        self.send_response(said.code)
        kinds = {"content-type": "application/json", "content-length": str(len(said.body))}
        for name, value in {**kinds, **said.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if said.how == "drip":
            self.wfile.flush()
            self._drip(said.body, said.every)
            return
        half = said.body[: len(said.body) // 2]
        self.wfile.write(half if said.how in {"short", "midway"} else said.body)
        self.wfile.flush()
        self.close_connection = said.how in {"short", "midway"}
        if said.how == "midway":
            self.server.released.wait(0.02)
            self._reset()

    def _drip(self, body: bytes, every: float) -> None:
        self.close_connection = True
        for at in range(len(body)):
            self.wfile.write(body[at : at + 1])
            self.wfile.flush()
            if self.server.released.wait(every):
                return

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.rfile.close()
        self.wfile.close()
        self.connection.close()
        self.wfile, self.rfile = _Gone(), _Gone()  # type: ignore[assignment]


class _Gone:
    closed = True

    def close(self) -> None: ...

    def flush(self) -> None: ...

    def write(self, _: bytes) -> None:
        raise OSError("reset")

    def readline(self, _: int = 0) -> bytes:
        return b""

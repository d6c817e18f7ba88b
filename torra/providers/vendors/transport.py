"""The one HTTP client of the process, and the guard in front of its sockets.

Every request of every SDK passes the guard. A request goes to the origin that the environment names
and nowhere else. It carries our headers only: an SDK's own, and those that variables such as
ANTHROPIC_CUSTOM_HEADERS add, stay behind. The guard alone knows the key; the SDKs are given a
placeholder. A reply is read whole, up to 1 MB, and noted on the request's `Wire`. No proxy variable
is read, no redirect followed, no cookie kept.

httpx2 is imported here, so this module is imported when a vendor is first used.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import zlib
from functools import cache
from typing import Any, Final

import httpx2

from torra.providers.vendors.addresses import origin_of
from torra.providers.vendors.wire import CURRENT, RequestTrace

MAX_REPLY_BYTES: Final = 1_000_000
"""A longer reply is cut off here and of no use; a report has some 4 kB."""

CONNECT_S: Final = 3.0
"""A server that does not take a connection in this many seconds is down."""

GRACE_S: Final = 1.0
"""The sockets' own time limit stands this much after the call's, which is the one that counts."""

POOLS: Final = 32
LIMITS: Final = httpx2.Limits(
    max_connections=16, max_keepalive_connections=4, keepalive_expiry=30.0
)
"""Of each pool; all of them have room for fifty desks of eight agents at once. Vendors keep an idle
connection longer than 30 s.
"""

KEPT_HEADERS: Final = ("retry-after", "retry-after-ms", "date")
QUIET: Final = ("anthropic", "openai", "google_genai", "httpx2", "httpcore2")


class ReplyUnreadable(httpx2.TransportError):
    """The guard read no further, or sent nothing."""


def open_client(inner: httpx2.AsyncBaseTransport | None = None) -> httpx2.AsyncClient:
    """Return the shared client; `inner` stands in for the sockets in tests."""
    return httpx2.AsyncClient(
        transport=WireGuard(inner or Pools()), trust_env=False, follow_redirects=False, timeout=None
    )


@cache
def authorities() -> ssl.SSLContext:
    """Return whom this machine lets vouch for a server, as no variable of the environment changes.

    Once for the process: to read them takes 40 ms.
    """
    return httpx2.create_ssl_context(trust_env=False)


def silence_sdk_logs() -> None:
    """Let the SDKs and the HTTP library log warnings at most: their debug lines hold prompts."""
    below = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in QUIET]
    for name in (*QUIET, *below):
        logger = logging.getLogger(name)
        if logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)


class Pools(httpx2.AsyncBaseTransport):
    """Connections in several pools, each made when all others are busy.

    A pool looks at each of its connections, and asks the system about those that are idle, whenever
    a request begins or ends. One pool with the hundred connections of fifty desks would spend more
    time on that than on the requests.
    """

    def __init__(self) -> None:
        self._pools: list[httpx2.AsyncHTTPTransport] = []
        self._busy: list[int] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request through the pool that has fewest under way."""
        place = self._place()
        self._busy[place] += 1
        try:
            return await self._pools[place].handle_async_request(request)
        finally:
            self._busy[place] -= 1

    def _place(self) -> int:
        fewest = min(self._busy, default=1)
        if fewest and len(self._pools) < POOLS:
            self._pools.append(
                httpx2.AsyncHTTPTransport(verify=authorities(), trust_env=False, limits=LIMITS)
            )
            self._busy.append(0)
            fewest = 0
        return self._busy.index(fewest)

    async def aclose(self) -> None:
        """Close every connection."""
        for pool in self._pools:
            await pool.aclose()


class WireGuard(httpx2.AsyncBaseTransport):
    """Sends what may be sent, and reads what came back onto the wire."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request as ours and return its whole reply."""
        wire = CURRENT.get()
        wire.restart()
        ours = _ours(request, wire, await request.aread())
        # Until the trace knows better: what may have been sent may be billed.
        wire.stage = "sent"
        try:
            return await self._exchange(ours, wire)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            wire.failure = "connect"
            wire.stage = "connecting"
            raise
        except httpx2.TransportError:
            # The guard's own word is better: long, or encoding.
            wire.failure = wire.failure or "reset"
            raise

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()

    async def _exchange(self, ours: httpx2.Request, wire: RequestTrace) -> httpx2.Response:
        response = await self._inner.handle_async_request(ours)
        wire.status = response.status_code
        wire.headers = {name: response.headers.get(name, "") for name in KEPT_HEADERS}
        try:
            raw = await _bounded(response, wire)
        finally:
            await response.aclose()
        body = _plain(raw, response.headers.get("content-encoding", ""), wire)
        wire.body = wire.address.veiled(body)
        wire.stage = "answered"
        return httpx2.Response(
            wire.status,
            # Without content-encoding: the body is unpacked already.
            headers={"content-type": "application/json"},
            content=wire.body,
            request=ours,
        )


def _ours(request: httpx2.Request, wire: RequestTrace, body: bytes) -> httpx2.Request:
    """Return the request with our headers, time limits and key; refuse one to another place."""
    address = wire.address
    # An SDK may be led elsewhere by a variable of its own; the key must not follow.
    if origin_of(str(request.url)) != address.origin or not request.url.path.startswith(
        address.path + "/"
    ):
        wire.failure = "misdirected"
        raise ReplyUnreadable("a request to another place than the vendor's")
    left = max(0.0, wire.until - asyncio.get_running_loop().time()) + GRACE_S
    limits = {"connect": min(CONNECT_S, left), "read": left, "write": left, "pool": left}

    async def trace(event: str, _info: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.started":
            wire.stage = "connecting"
        elif event.endswith("send_request_headers.started"):
            wire.stage = "sent"

    return httpx2.Request(
        request.method,
        request.url,
        headers={
            "accept": "application/json",
            "accept-encoding": "gzip, deflate",
            "content-type": "application/json",
            "user-agent": "torra",
            **address.headers(),
        },
        content=body,
        extensions={"timeout": limits, "trace": trace},
    )


def _stream(response: httpx2.Response) -> httpx2.AsyncByteStream:
    if not isinstance(response.stream, httpx2.AsyncByteStream):
        raise ReplyUnreadable("the reply has no stream")
    return response.stream


async def _bounded(response: httpx2.Response, wire: RequestTrace) -> bytes:
    """Return the body as it came; a longer one than 1 MB is left where it is."""
    found = bytearray()
    async for chunk in _stream(response):
        found += chunk
        if len(found) > MAX_REPLY_BYTES:
            wire.failure = "long"
            raise ReplyUnreadable("the reply is too long")
    return bytes(found)


def _plain(raw: bytes, encoding: str, wire: RequestTrace) -> bytes:
    """Return the body without its compression, which may not hide a longer one."""
    if encoding.strip().lower() in {"", "identity"}:
        return raw
    try:
        # With a limit: a small body may unpack to gigabytes. 32 takes gzip and zlib alike.
        plain = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress(raw, MAX_REPLY_BYTES + 1)
    except zlib.error:
        wire.failure = "encoding"
        raise ReplyUnreadable("the reply's compression cannot be read") from None
    if len(plain) > MAX_REPLY_BYTES:
        wire.failure = "long"
        raise ReplyUnreadable("the reply is too long")
    return plain

"""The one HTTP client of the process, and the guard in front of its sockets.

Every request of every SDK passes the guard. A request goes to the origin that the environment names
and nowhere else. It carries our headers only: an SDK's own, and those that variables such as
ANTHROPIC_CUSTOM_HEADERS add, stay behind. The guard alone knows the key. A reply is read whole, up
to 1 MB also where it is compressed, and noted on the request's trace. No proxy variable is read, no
redirect followed, no cookie kept.

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

from torra.providers.vendors.vendor import CURRENT, RETRY_S, RequestTrace, VendorFault

MAX_REPLY_BYTES: Final = 1_000_000
"""A longer reply is cut off here and of no use; a report has some 4 kB."""

CONNECT_S: Final = 3.0
"""A server that does not take a connection in this many seconds is down."""

RECONNECT_S: Final = 0.2

GRACE_S: Final = 1.0
"""The sockets' own time limit stands this much after the call's, which is the one that counts."""

LIMITS: Final = httpx2.Limits(
    max_connections=512, max_keepalive_connections=128, keepalive_expiry=30.0
)
"""Room for fifty desks of eight agents at once; vendors keep an idle connection longer than 30 s.
"""

QUIET: Final = ("anthropic", "openai", "google_genai", "httpx2", "httpcore2")


@cache
def authorities() -> ssl.SSLContext:
    """Return whom this machine lets vouch for a server, as no variable of the environment changes.

    Once for the process: to read them takes 40 ms.
    """
    return httpx2.create_ssl_context(trust_env=False)


def open_client(inner: httpx2.AsyncBaseTransport | None = None) -> httpx2.AsyncClient:
    """Return the shared client; `inner` stands in for the sockets in tests."""
    sockets = inner or httpx2.AsyncHTTPTransport(
        verify=authorities(), trust_env=False, limits=LIMITS
    )
    return httpx2.AsyncClient(
        transport=WireGuard(sockets), trust_env=False, follow_redirects=False, timeout=None
    )


def silence_sdk_logs() -> None:
    """Let the SDKs and the HTTP library log warnings at most: their debug lines hold prompts."""
    # Below them too: a host may have turned up one of their own.
    below = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in QUIET]
    for name in (*QUIET, *below):
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.WARNING))


class WireGuard(httpx2.AsyncBaseTransport):
    """Sends what may be sent, and notes what came back on the request's trace."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request as ours and return its whole reply; raises VendorFault."""
        trace = CURRENT.get()
        try:
            ours = _ours(request, trace, await request.aread())
            # Until the trace knows better: what may have been sent may be billed.
            trace.stage, trace.status = "sent", 0
            return await self._exchange(ours, trace)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            trace.stage = "connecting"
            raise VendorFault("error", "no connection", again=RECONNECT_S, down=True) from None
        except httpx2.TransportError:
            raise _broken("the connection broke") from None

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()

    async def _exchange(self, ours: httpx2.Request, trace: RequestTrace) -> httpx2.Response:
        response = await self._inner.handle_async_request(ours)
        trace.status = response.status_code
        trace.headers = response.headers
        body = bytearray()
        try:
            async for chunk in response.stream:  # type: ignore[union-attr]
                body += chunk
                _refuse_long(body)
        finally:
            await response.aclose()
        encoding = response.headers.get("content-encoding", "").strip().lower()
        plain = bytes(body) if encoding in {"", "identity"} else _unpacked(body)
        _refuse_long(plain)
        trace.body = trace.address.veiled(plain)
        trace.stage = "answered"
        return httpx2.Response(
            trace.status,
            headers={"content-type": "application/json"},
            content=trace.body,
            request=ours,
        )


def _unpacked(body: bytearray) -> bytes:
    """Return a body without the compression that a server in between gave it unasked."""
    try:
        # With a limit: a small body may unpack to gigabytes. 32 takes gzip and zlib alike.
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress(body, MAX_REPLY_BYTES + 1)
    except zlib.error:
        raise _broken("the reply cannot be read") from None


def _refuse_long(body: bytes | bytearray) -> None:
    if len(body) > MAX_REPLY_BYTES:
        raise VendorFault("garbage", "the reply is too long", billed=True)


def _ours(request: httpx2.Request, trace: RequestTrace, body: bytes) -> httpx2.Request:
    """Return the request with our headers, time limits and key; refuse one to another place."""
    address = trace.address
    # An SDK may be led elsewhere by a variable of its own; the key must not follow.
    if not str(request.url).startswith(str(httpx2.URL(f"{address.base_url}/"))):
        raise VendorFault("error", "not sent: not the vendor's address")
    left = max(0.0, trace.until - asyncio.get_running_loop().time()) + GRACE_S

    async def note(event: str, _info: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.started":
            trace.stage = "connecting"
        elif event.endswith("send_request_headers.started"):
            trace.stage = "sent"

    return httpx2.Request(
        request.method,
        request.url,
        headers={
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "torra",
            **address.headers(),
        },
        content=body,
        extensions={
            "timeout": httpx2.Timeout(left, connect=min(CONNECT_S, left)).as_dict(),
            "trace": note,
        },
    )


def _broken(detail: str) -> VendorFault:
    return VendorFault("error", detail, again=RETRY_S, billed=True)

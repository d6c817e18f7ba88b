"""The one way out to the vendors: a loop, an HTTP client and an adapter per vendor for the process.

Every desk's provider asks here. `warm` imports an SDK and builds its client, on a thread of its
own, when a vendor is first named. A request that comes earlier waits for it inside its own time
limit; a client that could not be built is tried again with the next request. A request that would
leave after its stage is over is not sent.

A vendor that refuses the key, or whose account is used up, is blocked for an hour: no request
leaves, `on_block` is called once, and `blocked` says why. Nothing is asked a second time here, and
nothing but ModelUnavailable is raised by a request.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from agents.contracts import Completion, Request
from torra.clock import System
from torra.imports import importing
from torra.providers.prices import PriceList, Usage, most_tokens
from torra.providers.vendors.addresses import Address, address
from torra.providers.vendors.event_loop import DaemonThreads, EventLoop, within
from torra.providers.vendors.vendor import (
    CURRENT,
    Adapter,
    RequestTrace,
    VendorFault,
    VendorReply,
    fault,
)

if TYPE_CHECKING:
    import httpx2

BLOCK_S: Final = 3600.0
"""How long a vendor that refused is not asked."""

READY_S: Final = 20.0
"""How long `ready` waits: an import takes about a second, more on a busy machine."""

REPORT_S: Final = 1.0
"""How long `close` waits for blocks to be stored."""

LOG: Final = logging.getLogger(__name__)

OnBlock = Callable[[str, str, float], None]
"""Called with vendor, reason and seconds when a vendor is blocked."""


class VendorClients:
    """Reaches vendors; one for a process, shared by every desk."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        prices: PriceList,
        on_block: OnBlock | None = None,
        monotonic: Callable[[], float] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Open nothing yet; `transport` stands in for the sockets in tests."""
        self.prices = prices
        self.loop = EventLoop()
        self._environment = dict(environment)
        self._on_block = on_block or (lambda *_: None)
        self._monotonic = monotonic or System().monotonic
        self._transport = transport
        self._threads = DaemonThreads()
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._http: httpx2.AsyncClient | None = None
        self._adapters: dict[str, Future[Adapter]] = {}
        self._blocks: dict[str, tuple[str, float]] = {}
        self._reports: list[Future[None]] = []

    def address(self, vendor: str) -> Address:
        """Return where a vendor is reached; raises ConfigError naming what is missing."""
        return address(vendor, self._environment)

    def warm(self, vendors: Iterable[str]) -> None:
        """Import the SDKs of these vendors and build their clients, in the background."""
        for vendor in vendors:
            self._adapter(vendor)

    def ready(self, within: float = READY_S) -> bool:
        """Wait until what is being warmed up is there, `within` seconds at most; return whether.

        For a process that asks as soon as it has started: else the import of an SDK, about a
        second, would be part of its tick's time.
        """
        return not wait(list(self._adapters.values()), within).not_done

    async def ask(self, vendor: str, model: str, request: Request, until: float) -> Completion:
        """Ask a vendor once, on the loop and by `until` in its time; raises VendorFault."""
        trace = RequestTrace(self.address(vendor), until)
        try:
            reply = await within(until, self._exchange(model, request, trace))
        except TimeoutError:
            detail = {"new": "not sent in time", "connecting": "no connection in time"}
            raise VendorFault(
                "timeout",
                detail.get(trace.stage, "no answer in time"),
                billed=trace.billed,
                # A request that never left says nothing about the vendor.
                down=trace.stage != "new",
            ) from None
        return self._completion(trace.address, model, request, reply)

    def blocked(self) -> dict[str, str]:
        """Return why each blocked vendor is not asked."""
        now = self._monotonic()
        with self._lock:
            return {name: reason for name, (reason, until) in self._blocks.items() if until > now}

    def block(self, vendor: str, reason: str, seconds: float = BLOCK_S) -> None:
        """Ask a vendor no more for this long; `on_block` is not called."""
        with self._lock:
            self._blocks[vendor] = (reason, self._monotonic() + seconds)

    def close(self) -> None:
        """Cancel what runs and close every connection; waits a few seconds at most.

        A block is stored by then: a process that ends would else ask again.
        """
        self.loop.close(self._hang_up)
        wait(self._reports, REPORT_S)

    async def _exchange(self, model: str, request: Request, trace: RequestTrace) -> VendorReply:
        vendor = trace.address.vendor
        if request.delay_s > 0:  # inside the request's own limit: a pause makes no stage longer
            await asyncio.sleep(request.delay_s)
        try:
            # Others wait for the same client: one request that is cancelled must not cancel it.
            adapter = await asyncio.shield(asyncio.wrap_future(self._adapter(vendor)))
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises as it is built
            detail = f"the client could not be built: {type(error).__name__}"
            raise VendorFault("error", detail, down=True) from None
        # After both waits: another request may have blocked it meanwhile.
        if reason := self.blocked().get(vendor):
            raise VendorFault("blocked", reason, down=True)
        if asyncio.get_running_loop().time() >= trace.until - request.linger_s:
            raise TimeoutError  # nobody waits for its answer any more
        CURRENT.set(trace)
        try:
            return await adapter(model, request)
        except Exception as error:  # noqa: BLE001 - an SDK may raise anything
            failure = fault(trace, error)
        if failure.blocks:
            self._block_and_report(vendor, failure.detail)
        raise failure

    def _completion(
        self, place: Address, model: str, request: Request, reply: VendorReply
    ) -> Completion:
        """Return a priced answer; it costs the worst case when nobody knows its tokens."""
        bounds: dict[str, Any] = {
            "prompt_bytes": len(f"{request.system}{request.user}".encode("utf-8", "replace")),
            "output_tokens": request.max_output_tokens,
            "picture": request.picture is not None,
        }
        usage = reply.usage
        if _is_possible(usage, *most_tokens(**bounds), silent=not reply.text):
            cost = self.prices.cost(place.vendor, model, usage, local=place.local)
        else:
            usage = Usage(0, 0)
            cost = self.prices.worst_case(place.vendor, model, local=place.local, **bounds)
        return Completion(
            text=reply.text,
            model=model,
            provider=place.vendor,
            input_tokens=usage.input,
            output_tokens=usage.output,
            cost_usd=cost,
            stop_reason=reply.stop,
            cached_tokens=usage.cached,
            detail=reply.detail,
        )

    def _adapter(self, vendor: str) -> Future[Adapter]:
        """Return a vendor's adapter, which is built when it is first wanted, or has failed."""
        with self._lock:
            known = self._adapters.get(vendor)
            if known is None or (known.done() and known.exception()):
                known = self._adapters[vendor] = self._threads.submit(self._open, vendor)
            return known

    def _open(self, vendor: str) -> Adapter:
        """Import a vendor's SDK, which takes up to a second, and build its client."""
        # One at a time: all adapters share the client that the first one opens.
        with self._opening, importing():
            try:
                with suppress(Exception):  # a price that cannot be read fails its own call
                    self.prices.warm()
                from torra.providers.vendors import transport  # noqa: PLC0415 - httpx2 is heavy

                if self._http is None:
                    self._http = transport.open_client(self._transport)
                module = import_module(f"torra.providers.vendors.{vendor}")
                adapter: Adapter = module.connect(self.address(vendor), self._http)
                # The import has just made the SDK's loggers.
                transport.silence_sdk_logs()
            except Exception as error:
                # The type alone: an SDK's words may quote the key.
                LOG.warning("the client of %s could not be built: %s", vendor, type(error).__name__)
                raise
            return adapter

    def _block_and_report(self, vendor: str, reason: str) -> None:
        if vendor in self.blocked():
            return
        self.block(vendor, reason)
        LOG.warning("%s is not asked for an hour: %s", vendor, reason)
        # On a thread of its own: storing the block may wait for a lock, the loop may not.
        self._reports.append(self._threads.submit(self._report, vendor, reason))

    def _report(self, vendor: str, reason: str) -> None:
        try:
            self._on_block(vendor, reason, BLOCK_S)
        except Exception as error:  # noqa: BLE001 - the block holds whether or not it is stored
            LOG.warning("the block of %s could not be stored: %s", vendor, type(error).__name__)

    async def _hang_up(self) -> None:
        if self._http is not None:
            await self._http.aclose()


def _is_possible(usage: Usage, most_input: int, most_output: int, *, silent: bool) -> bool:
    """Tell whether a request can have these tokens; without words there may be none of output."""
    fits = 1 <= usage.input <= most_input and int(not silent) <= usage.output <= most_output
    return fits and usage.cached + usage.written <= usage.input

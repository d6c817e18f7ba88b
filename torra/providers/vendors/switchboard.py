"""The one way out to the vendors: a loop, an HTTP client and an adapter per vendor for the process.

Every desk's provider asks here. `warm` imports an SDK and builds its client, in a thread of its
own, when a vendor is first named. A request that comes earlier waits for it inside its own time
limit; a client that could not be built is tried again with the next request. A request that would
leave after its stage is over is not sent.

A vendor that refuses the key, or whose account is used up, is blocked for an hour: no request
leaves, `on_block` is called once, and `blocked` says why. Nothing is asked a second time here, and
nothing but ModelUnavailable is raised by a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from agent_config import VENDORS
from agents.contracts import Completion, Request
from torra.clock import System
from torra.errors import ConfigError
from torra.imports import importing
from torra.providers.prices import most_tokens
from torra.providers.vendors.addresses import Address, address
from torra.providers.vendors.event_loop import EventLoop, Job, within
from torra.providers.vendors.vendor import Adapter, Usage, VendorFault, VendorReply, fault
from torra.providers.vendors.wire import CURRENT, RequestTrace

if TYPE_CHECKING:
    import httpx2

BLOCK_S: Final = 3600.0
"""How long a vendor that refused is not asked."""

READY_S: Final = 20.0
"""How long `ready` waits: an import takes about a second, more on a busy machine."""

LOG: Final = logging.getLogger(__name__)

OnBlock = Callable[[str, str, float], None]
"""Called with vendor, reason and seconds when a vendor is blocked."""


class Prices(Protocol):
    """What a call costs in USD; `prices.PriceList` is one."""

    def warm(self) -> None:
        """Load what takes time."""
        ...

    def cost(
        self,
        vendor: str,
        model: str,
        *,
        input_tokens: int,
        cached_tokens: int,
        cache_write_tokens: int,
        output_tokens: int,
        local: bool,
    ) -> float:
        """Return the price of a call from what the vendor counted."""
        ...

    def worst_case(
        self,
        vendor: str,
        model: str,
        *,
        prompt_bytes: int,
        output_tokens: int,
        picture: bool,
        local: bool,
    ) -> float:
        """Return the most that a call can cost."""
        ...


class VendorClients:
    """Reaches vendors; one for a process, shared by every desk."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        prices: Prices,
        on_block: OnBlock | None = None,
        monotonic: Callable[[], float] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Open nothing yet; `transport` stands in for the sockets in tests."""
        self.prices = prices
        self._environment = dict(environment)
        self._on_block = on_block
        self._monotonic = monotonic or System().monotonic
        self._transport = transport
        self._loop = EventLoop()
        self._lock = threading.Lock()
        self._building = threading.Lock()
        self._warming: threading.Thread | None = None
        self._http: httpx2.AsyncClient | None = None
        self._adapters: dict[str, Future[Adapter]] = {}
        self._blocks: dict[str, tuple[str, float]] = {}
        self._addresses: dict[str, Address] = {}

    def address(self, vendor: str) -> Address:
        """Return where a vendor is reached; raises ConfigError naming what is missing."""
        found = self._addresses.get(vendor)
        if found is None:
            # Kept for good: the environment is the one that was handed in.
            found = self._addresses[vendor] = address(vendor, self._environment)
        return found

    def warm(self, vendors: Iterable[str]) -> None:
        """Import the SDKs of these vendors and build their clients, in the background."""
        with self._lock:
            new = [name for name in dict.fromkeys(vendors) if name not in self._adapters]
            self._adapters.update({name: Future() for name in new})
            if new:
                self._warming = threading.Thread(
                    target=self._build, args=(new,), name="torra-warm-up", daemon=True
                )
                self._warming.start()

    def ready(self, within: float = READY_S) -> bool:
        """Wait until what is being warmed up is there, `within` seconds at most; return whether.

        For a process that asks as soon as it has started: else the import of an SDK, about a
        second, would be part of its tick's time.
        """
        warming = self._warming
        if warming is not None:
            warming.join(within)
        return warming is None or not warming.is_alive()

    def submit(self, job: Job[Completion], limit_s: float) -> Future[Completion]:
        """Run a job on the loop; it is to end within `limit_s` from now. Never raises."""
        return self._loop.submit(job, limit_s)

    async def ask(self, vendor: str, model: str, request: Request, until: float) -> VendorReply:
        """Ask a vendor once, on the loop and by `until` in its time; raises VendorFault."""
        try:
            wire = RequestTrace(self.address(vendor), until)
        except ConfigError:
            raise VendorFault("error", "no address or key", again=None, billed=False) from None
        try:
            return await within(until, self._asked(vendor, model, request, wire))
        except TimeoutError:
            detail = {"new": "not sent in time", "connecting": "no connection in time"}
            raise VendorFault(
                "timeout",
                detail.get(wire.stage, "no answer in time"),
                again=None,
                billed=wire.stage in {"sent", "answered"},
                # A request that never left says nothing about the vendor.
                down=wire.stage != "new",
            ) from None

    def price(self, vendor: str, model: str, request: Request, usage: Usage | None) -> float:
        """Return what a reply cost in USD; the worst case when nobody knows its tokens."""
        local = self.address(vendor).local
        if usage is None:
            return self.prices.worst_case(
                vendor,
                model,
                prompt_bytes=_bytes(request),
                output_tokens=request.max_output_tokens,
                picture=request.picture is not None,
                local=local,
            )
        return self.prices.cost(
            vendor,
            model,
            input_tokens=usage.input,
            cached_tokens=usage.cached,
            cache_write_tokens=usage.written,
            output_tokens=usage.output,
            local=local,
        )

    def blocked(self) -> dict[str, str]:
        """Return why each blocked vendor is not asked."""
        now = self._monotonic()
        with self._lock:
            self._blocks = {name: row for name, row in self._blocks.items() if row[1] > now}
            return {name: reason for name, (reason, _) in self._blocks.items()}

    def block(self, vendor: str, reason: str, seconds: float = BLOCK_S) -> None:
        """Ask a vendor no more for this long; `on_block` is not called."""
        with self._lock:
            self._blocks[vendor] = (reason, self._monotonic() + seconds)

    def unblock(self, vendor: str) -> None:
        """Ask a vendor again from now on."""
        with self._lock:
            self._blocks.pop(vendor, None)

    def close(self) -> None:
        """Cancel what runs and close every connection; waits a few seconds at most."""
        self._loop.close(self._hang_up)

    async def _asked(
        self, vendor: str, model: str, request: Request, wire: RequestTrace
    ) -> VendorReply:
        if request.delay_s > 0:  # inside the request's own limit: a pause makes no stage longer
            await asyncio.sleep(request.delay_s)
        self._refuse_blocked(vendor)
        adapter = await self._adapter(vendor)
        # Once more: another request may have blocked it during the wait.
        self._refuse_blocked(vendor)
        _refuse_late(wire.until - request.linger_s)
        CURRENT.set(wire)
        try:
            return _counted(await adapter.ask(model, request, wire), request)
        except Exception as error:  # noqa: BLE001 - an SDK may raise anything
            found = fault(wire, error, adapter)
        if found.blocks:
            self._block_and_tell(vendor, found.blocks)
        raise found

    def _refuse_blocked(self, vendor: str) -> None:
        if reason := self.blocked().get(vendor):
            raise VendorFault("blocked", reason, again=None, billed=False, down=True)

    async def _adapter(self, vendor: str) -> Adapter:
        self.warm((vendor,))
        building = self._adapters[vendor]
        try:
            if building.done():
                return building.result()
            # Others wait for the same client: one request that is cancelled must not cancel it.
            return await asyncio.shield(asyncio.wrap_future(building))
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises as it is built
            self._forget(vendor, building)
            detail = f"the client could not be built: {type(error).__name__}"
            raise VendorFault("error", detail, again=None, billed=False, down=True) from None

    def _forget(self, vendor: str, failed: Future[Adapter]) -> None:
        """Let the next request build the client anew."""
        with self._lock:
            if self._adapters.get(vendor) is failed:
                del self._adapters[vendor]

    def _build(self, vendors: Iterable[str]) -> None:
        # Before the SDKs: they take the memory that the rest of the table leaves.
        with contextlib.suppress(Exception), importing():
            self.prices.warm()
        for vendor in vendors:
            building = self._adapters[vendor]
            try:
                # One at a time: all adapters share the client that the first one opens.
                with self._building, importing():
                    adapter = self._built(vendor)
            except BaseException as error:  # noqa: BLE001 - told to whoever waits for it
                # The type alone: an SDK's words may quote the key.
                LOG.warning("the client of %s could not be built: %s", vendor, type(error).__name__)
                building.set_exception(error)
            else:
                building.set_result(adapter)

    def _built(self, vendor: str) -> Adapter:
        from torra.providers.vendors.transport import open_client, silence_sdk_logs  # noqa: PLC0415 - httpx2 is heavy

        place = self.address(vendor)
        if self._http is None:
            self._http = open_client(self._transport)
        try:
            return _open(vendor, place, self._http)
        finally:
            # The import has just made the SDK's loggers.
            silence_sdk_logs()

    def _block_and_tell(self, vendor: str, reason: str) -> None:
        if vendor in self.blocked():
            return
        self.block(vendor, reason)
        LOG.warning("%s is not asked for an hour: %s", vendor, reason)
        # In a thread of its own: storing the block may wait for a lock, the loop may not.
        if self._on_block is not None:
            threading.Thread(
                target=_tell, args=(self._on_block, vendor, reason), name="torra-block", daemon=True
            ).start()

    async def _hang_up(self) -> None:
        if self._http is not None:
            await self._http.aclose()


def _counted(reply: VendorReply, request: Request) -> VendorReply:
    """Return a reply, without its usage where the request cannot have that many or few tokens."""
    usage, pictured = reply.usage, request.picture is not None
    if usage is None:
        return reply
    most, longest = most_tokens(_bytes(request), request.max_output_tokens, picture=pictured)
    parts = usage.cached + usage.written
    # No words, no tokens: a prompt that was refused has none of output.
    fits = 1 <= usage.input <= most and bool(reply.text) <= usage.output <= longest
    return reply if fits and parts <= usage.input else replace(reply, usage=None)


def _bytes(request: Request) -> int:
    return len(f"{request.system}{request.user}".encode("utf-8", "replace"))


def _refuse_late(until: float) -> None:
    """Refuse a request whose answer is not waited for any more."""
    if asyncio.get_running_loop().time() >= until:
        raise VendorFault("timeout", "not sent in time", again=None, billed=False)


def _open(vendor: str, place: Address, http: httpx2.AsyncClient) -> Adapter:
    """Import a vendor's SDK, which takes up to a second, and build its client."""
    if vendor == "anthropic":
        from torra.providers.vendors.anthropic import AnthropicAdapter  # noqa: PLC0415

        return AnthropicAdapter(place, http)
    if vendor == "google":
        from torra.providers.vendors.google import GoogleAdapter  # noqa: PLC0415

        return GoogleAdapter(place, http)
    if vendor == "openai_compatible":
        from torra.providers.vendors.openai_compatible import OpenAIAdapter  # noqa: PLC0415

        return OpenAIAdapter(place, http)
    raise ConfigError(f"there is no vendor {vendor}; there are {', '.join(VENDORS)}")


def _tell(on_block: OnBlock, vendor: str, reason: str) -> None:
    try:
        on_block(vendor, reason, BLOCK_S)
    except Exception as error:  # noqa: BLE001 - the block holds whether or not it could be stored
        LOG.warning("the block of %s could not be stored: %s", vendor, type(error).__name__)

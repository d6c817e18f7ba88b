"""Routes each request to the vendor that its model names, or to one that stands in for it.

A vendor is down for a tick, and for that tick alone, when it cannot be reached, is busy, broken,
too slow or blocked, or no longer has the model. Every later request of the tick begins at the first
vendor of its chain (its own, then `agents.fallback_models`) that is up; the next tick begins with
the first again.

The request that finds a vendor down goes on along its chain by itself, while its stage lasts, and
asks each vendor once. It does so only after a failure that surely cost nothing: so a request is
paid once at most, by the dearest of its chain, which is what the ledger reserves for it. After one
that may have been billed it fails, and says that another attempt, with a reservation of its own,
may be made at once. A time-out is the end of its stage. What was tried in vain stands in `detail`.

A model of no vendor, such as the rules, is answered by the provider that was handed in for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final, Protocol

from agent_config import AgentSettings, route
from agents.contracts import Completion, Request
from torra.providers.vendors.clients import VendorClients
from torra.providers.vendors.event_loop import failed
from torra.providers.vendors.vendor import VendorFault

TICKS_KEPT: Final = 8
"""Ticks whose list of vendors that are down is kept: late answers of an older tick still come."""

Route = tuple[str, str]
"""A vendor and its model."""

Tick = list[tuple[str, float]]
"""The vendors that are down in one tick, each with the moment from which it is, in the loop's time.

A call that runs stands in it with the end of its time: past that its vendor is too slow, though it
may not have failed yet, or goes on for the record. Only the loop reads and writes it.
"""


class Provider(Protocol):
    """Who answers the agents' requests."""

    name: str
    """The name in profiles and records."""

    def submit(self, request: Request) -> Future[Completion]:
        """Take a request and return its answer to come; never blocks on the answer."""
        ...

    def close(self) -> None:
        """Let go of connections and threads; unanswered requests fail."""
        ...


class RoutedProvider:
    """Sends each request to its vendor."""

    def __init__(
        self,
        settings: AgentSettings,
        clients: VendorClients,
        others: Mapping[str, Provider] | None = None,
    ) -> None:
        self.name: str = settings.provider
        self._settings = settings
        self._clients = clients
        self._others = dict(others or {})
        # Makes a tick's list when it is first asked for, and forgets the oldest.
        self._ticks: Callable[..., Tick] = lru_cache(TICKS_KEPT)(lambda *_: [])

    def submit(self, request: Request) -> Future[Completion]:
        """Take a request and return its answer to come; never blocks and never raises."""
        try:
            vendor, _ = route(request.model, self._settings.provider)
            if vendor in self._others:
                return self._others[vendor].submit(request)
            job = partial(self._answer, request)
            return self._clients.loop.submit(job, request.limit_s + request.linger_s)
        except Exception as error:  # noqa: BLE001 - a future is what a caller can deal with
            return failed(type(error).__name__)

    def close(self) -> None:
        """Close what was handed in; the clients belong to the caller that opened them."""
        for other in self._others.values():
            other.close()

    async def _answer(self, request: Request, until: float) -> Completion:
        """Ask along the chain; raises the VendorFault of the vendor that was asked last."""
        chain = self._chain(request)
        tick = self._ticks(request.symbol, request.timeframe, request.bar_time)
        # The end of its stage: what lingers after that is for the record only.
        clock, ends = asyncio.get_running_loop().time, until - request.linger_s
        faults: dict[str, VendorFault] = {}
        vendor, model = self._first(chain, tick)
        while True:
            began = clock()
            tick.append((vendor, ends))
            try:
                answer = await self._clients.ask(vendor, model, request, until)
            except VendorFault as fault:
                faults[vendor] = fault
                if fault.down:
                    tick.append((vendor, began))
                # As much time as the failure took must be left: an answer takes no less.
                free = fault.down and not fault.billed and 2 * clock() - began < ends
                up = self._up(chain, tick)
                if not (free and up):
                    raise self._final_fault(faults, chain, tick) from None
            else:
                return replace(answer, detail=_joined(_words(faults), answer.detail))
            finally:
                if clock() < ends:  # who was late is slow for the rest of the tick
                    tick.remove((vendor, ends))
            vendor, model = up[0]
            # The pause was for the vendor that was asked first.
            request = replace(request, delay_s=0.0)

    def _final_fault(
        self, faults: dict[str, VendorFault], chain: list[Route], tick: Tick
    ) -> VendorFault:
        """Return the last fault: when another attempt may help, and who failed before."""
        *before, last = faults
        fault = faults[last]
        if fault.down and fault.reason != "timeout":
            following, _ = self._first(chain, tick)
            if self._up(chain, tick):
                fault.again = 0.0
            elif following in faults:  # nobody is up: the first, which may have named a pause
                fault.again = faults[following].again
        fault.detail = _joined(fault.detail, _words({name: faults[name] for name in before}))
        return fault

    def _chain(self, request: Request) -> list[Route]:
        """Return who may answer, the first choice first."""
        first = route(request.model, self._settings.provider)
        spares = self._settings.fallbacks(request.role.tier)
        return [first, *(spare for spare in spares if spare[0] != first[0])]

    def _first(self, chain: list[Route], tick: Tick) -> Route:
        """Return who is asked: the first that is up, else the first that may be asked at all."""
        # With nobody up the first is asked all the same: its failure says when to try again.
        return (self._up(chain, tick) or self._up(chain, []) or chain)[0]

    def _up(self, chain: list[Route], tick: Tick) -> list[Route]:
        now = asyncio.get_running_loop().time()
        down = {vendor for vendor, since in tick if since <= now}
        return [row for row in chain if row[0] not in down | self._clients.blocked().keys()]


def _joined(*details: str) -> str:
    return "; ".join(filter(None, details))


def _words(faults: Mapping[str, VendorFault]) -> str:
    """Return who was asked in vain, and why."""
    return _joined(*(f"{vendor}: {fault.detail}" for vendor, fault in faults.items()))

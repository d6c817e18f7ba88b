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
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

from agent_config import VENDORS, AgentSettings, route
from agents.contracts import Completion, ModelUnavailable, Request
from torra.providers.vendors.clients import VendorClients
from torra.providers.vendors.vendor import VendorFault

TICKS_KEPT: Final = 8
"""Ticks whose list of vendors that are down is kept: late answers of an older tick still come."""

Route = tuple[str, str]
"""A vendor and its model."""


class Provider(Protocol):
    """Who answers the agents' requests."""

    @property
    def name(self) -> str:
        """The name in profiles and records."""
        ...

    def submit(self, request: Request) -> Future[Completion]:
        """Take a request and return its answer to come; never blocks on the answer."""
        ...

    def close(self) -> None:
        """Let go of connections and threads; unanswered requests fail."""
        ...


@dataclass(slots=True)
class _TickState:
    """The vendors that are down in one tick, and the calls that run, each with the end of its time.

    Only the loop reads and writes it. A call past its end may not have said so yet, or goes on for
    the record.
    """

    down: set[str] = field(default_factory=set)
    waiting: list[tuple[str, float]] = field(default_factory=list)


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
        self._ticks: dict[tuple[str, str, str], _TickState] = {}

    def submit(self, request: Request) -> Future[Completion]:
        """Take a request and return its answer to come; never blocks and never raises."""
        try:
            vendor, _ = route(request.model, self._settings.provider)
            if vendor in self._others:
                return self._others[vendor].submit(request)
            if vendor in VENDORS:
                job = partial(self._answer, request)
                return self._clients.loop.submit(job, request.limit_s + request.linger_s)
            detail = f"nobody answers for {vendor}"
        except Exception as odd:  # noqa: BLE001 - a future is what a caller can deal with
            detail = type(odd).__name__
        failed: Future[Completion] = Future()
        failed.set_exception(ModelUnavailable("error", detail, again=None, billed=False))
        return failed

    def close(self) -> None:
        """Close what was handed in; the clients belong to the caller that opened them."""
        for other in self._others.values():
            other.close()

    async def _answer(self, request: Request, until: float) -> Completion:
        """Ask along the chain; raises the VendorFault of the vendor that was asked last."""
        chain, tick = self._chain(request), self._tick_of(request)
        clock, ends = asyncio.get_running_loop().time, until - request.linger_s
        failed: dict[str, VendorFault] = {}
        vendor, model = self._first(chain, tick)
        while True:
            began = clock()
            # The end of its stage: what lingers after that is for the record only.
            waiting = (vendor, ends)
            tick.waiting.append(waiting)
            try:
                answer = await self._clients.ask(vendor, model, request, until)
            except VendorFault as fault:
                failed[vendor] = fault
                if fault.down:
                    tick.down.add(vendor)
                free = fault.down and not fault.billed
                # As much time as the failure took must be left: an answer takes no less.
                in_time = 2 * clock() - began < ends
                up = self._up(chain, tick)
                if not (free and in_time and up):
                    raise self._final_fault(failed, chain, tick) from None
            else:
                return replace(answer, detail=_joined(_words(failed), answer.detail))
            finally:
                tick.waiting.remove(waiting)
            vendor, model = up[0]
            # The pause was for the vendor that was asked first.
            request = replace(request, delay_s=0.0)

    def _final_fault(
        self, failed: dict[str, VendorFault], chain: list[Route], tick: _TickState
    ) -> VendorFault:
        """Return the last fault: when another attempt may help, and who failed before."""
        *before, last = failed
        fault = failed[last]
        if fault.down and fault.reason != "timeout":
            following, _ = self._first(chain, tick)
            if self._up(chain, tick):
                fault.again = 0.0
            elif following in failed:  # nobody is up: the first, which may have named a pause
                fault.again = failed[following].again
        fault.detail = _joined(fault.detail, _words({name: failed[name] for name in before}))
        return fault

    def _chain(self, request: Request) -> list[Route]:
        """Return who may answer, the first choice first."""
        first = route(request.model, self._settings.provider)
        spares = self._settings.fallbacks(request.role.tier)
        return [first, *(spare for spare in spares if spare[0] != first[0])]

    def _first(self, chain: list[Route], tick: _TickState) -> Route:
        """Return who is asked: the first that is up, else the first that may be asked at all."""
        now = asyncio.get_running_loop().time()
        # A call that is past its time shows a slow vendor before it has failed.
        tick.down.update(vendor for vendor, until in tick.waiting if until <= now)
        blocked = self._clients.blocked()
        free = [choice for choice in chain if choice[0] not in blocked]
        # With nobody up the first is asked all the same: its failure says when to try again.
        return (self._up(chain, tick) or free or chain)[0]

    def _up(self, chain: list[Route], tick: _TickState) -> list[Route]:
        away = tick.down | self._clients.blocked().keys()
        return [choice for choice in chain if choice[0] not in away]

    def _tick_of(self, request: Request) -> _TickState:
        key = (request.symbol, request.timeframe, request.bar_time)
        if key not in self._ticks:
            for old in list(self._ticks)[: 1 - TICKS_KEPT]:
                del self._ticks[old]
            self._ticks[key] = _TickState()
        return self._ticks[key]


def _joined(*details: str) -> str:
    return "; ".join(filter(None, details))


def _words(failed: Mapping[str, VendorFault]) -> str:
    """Return who was asked in vain, and why."""
    return _joined(*(f"{vendor}: {fault.detail}" for vendor, fault in failed.items()))

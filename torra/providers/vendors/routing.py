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
from torra.providers.vendors.switchboard import VendorClients
from torra.providers.vendors.vendor import VendorFault

TICKS_KEPT: Final = 8
"""Ticks whose list of vendors that are down is kept: late answers of an older tick still come."""


class AnsweringProvider(Protocol):
    """A provider as far as routing needs one."""

    def submit(self, request: Request) -> Future[Completion]:
        """Take a request and return its answer to come; never blocks on the answer."""
        ...

    def close(self) -> None:
        """Let go of connections and threads; unanswered requests fail."""
        ...


@dataclass(slots=True)
class _Tick:
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
        switchboard: VendorClients,
        others: Mapping[str, AnsweringProvider] | None = None,
    ) -> None:
        self.name: str = settings.provider
        self._settings = settings
        self._switchboard = switchboard
        self._others = dict(others or {})
        self._ticks: dict[tuple[str, str, str], _Tick] = {}

    def submit(self, request: Request) -> Future[Completion]:
        """Take a request and return its answer to come; never blocks and never raises."""
        try:
            vendor, _ = route(request.model, self._settings.provider)
            if vendor in self._others:
                return self._others[vendor].submit(request)
            if vendor in VENDORS:
                job = partial(self._answer, request)
                return self._switchboard.submit(job, request.limit_s + request.linger_s)
            error = ModelUnavailable("error", f"nobody answers for {vendor}", again=None)
        except Exception as odd:  # noqa: BLE001 - a future is what a caller can deal with
            error = ModelUnavailable("error", type(odd).__name__, again=None)
        error.billed = False
        failed: Future[Completion] = Future()
        failed.set_exception(error)
        return failed

    def close(self) -> None:
        """Close what was handed in; the switchboard belongs to the caller that opened it."""
        for other in self._others.values():
            other.close()

    async def _answer(self, request: Request, until: float) -> Completion:
        """Ask along the chain; raises the VendorFault of the vendor that was asked last."""
        choices, tick = self._choices(request), self._tick_of(request)
        clock, ends = asyncio.get_running_loop().time, until - request.linger_s
        failed: dict[str, VendorFault] = {}
        vendor, model = self._choice(choices, tick)
        while True:
            began = clock()
            try:
                answer = await self._asked(vendor, model, request, until, tick)
            except VendorFault as fault:
                failed[vendor] = fault
                if fault.down:
                    tick.down.add(vendor)
                free = fault.down and not fault.billed
                # As much time as the failure took must be left: an answer takes no less.
                in_time = 2 * clock() - began < ends
                up = self._worth_asking(choices, tick)
                if not (free and in_time and up):
                    raise self._told(failed, choices, tick) from None
            else:
                return replace(answer, detail=_joined(_words(failed), answer.detail))
            vendor, model = up[0]
            # The pause was for the vendor that was asked first.
            request = replace(request, delay_s=0.0)

    async def _asked(
        self, vendor: str, model: str, request: Request, until: float, tick: _Tick
    ) -> Completion:
        """Ask one vendor once; raises VendorFault."""
        # The end of its stage: what lingers after that is for the record only.
        waiting = (vendor, until - request.linger_s)
        tick.waiting.append(waiting)
        try:
            reply = await self._switchboard.ask(vendor, model, request, until)
        finally:
            tick.waiting.remove(waiting)
        usage = reply.usage
        return Completion(
            text=reply.text,
            model=model,
            provider=vendor,
            input_tokens=usage.input if usage else 0,
            output_tokens=usage.output if usage else 0,
            cost_usd=self._switchboard.price(vendor, model, request, usage),
            stop_reason=reply.stop,
            cached_tokens=usage.cached if usage else 0,
            detail=reply.detail,
        )

    def _told(
        self, failed: dict[str, VendorFault], choices: list[tuple[str, str]], tick: _Tick
    ) -> VendorFault:
        """Return the last fault: when another attempt may help, and who failed before."""
        *before, last = failed
        fault = failed[last]
        if fault.down and fault.reason != "timeout":
            following, _ = self._choice(choices, tick)
            if self._worth_asking(choices, tick):
                fault.again = 0.0
            elif following in failed:  # nobody is up: the first, which may have named a pause
                fault.again = failed[following].again
        tried = _words({vendor: failed[vendor] for vendor in before})
        fault.detail = _joined(fault.detail, tried)
        return fault

    def _choices(self, request: Request) -> list[tuple[str, str]]:
        """Return who may answer, the first choice first."""
        first = route(request.model, self._settings.provider)
        spares = self._settings.fallbacks(request.role.tier)
        return [first, *(spare for spare in spares if spare[0] != first[0])]

    def _choice(self, choices: list[tuple[str, str]], tick: _Tick) -> tuple[str, str]:
        """Return who is asked: the first that is up, else the first that may be asked at all."""
        now = asyncio.get_running_loop().time()
        # A call that is past its time shows a slow vendor before it has failed.
        tick.down.update(vendor for vendor, until in tick.waiting if until <= now)
        blocked = self._switchboard.blocked()
        free = [choice for choice in choices if choice[0] not in blocked]
        # With nobody up the first is asked all the same: its failure says when to try again.
        return (self._worth_asking(choices, tick) or free or choices)[0]

    def _worth_asking(self, choices: list[tuple[str, str]], tick: _Tick) -> list[tuple[str, str]]:
        away = tick.down | self._switchboard.blocked().keys()
        return [choice for choice in choices if choice[0] not in away]

    def _tick_of(self, request: Request) -> _Tick:
        key = (request.symbol, request.timeframe, request.bar_time)
        if key not in self._ticks:
            for old in list(self._ticks)[: 1 - TICKS_KEPT]:
                del self._ticks[old]
            self._ticks[key] = _Tick()
        return self._ticks[key]


def _joined(*told: str) -> str:
    return "; ".join(filter(None, told))


def _words(failed: Mapping[str, VendorFault]) -> str:
    """Return who was asked in vain, and why."""
    return "; ".join(f"{vendor}: {fault.detail}" for vendor, fault in failed.items())

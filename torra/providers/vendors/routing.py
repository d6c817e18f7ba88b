"""Routes each request to the vendor that its model names, or to the fallback while that is down.

A vendor is down for a tick, and for that tick alone, when it cannot be reached, is busy, broken,
too slow or blocked, or no longer has the model. With `agents.fallback_model` set, the failed
request says that it may be asked again at once. That attempt, like every later request of the tick,
goes to the fallback. The next tick begins with the first vendor. A model of no vendor, such as the
rules, is answered by the provider that was handed in for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from agent_config import VENDORS, AgentSettings, route
from agents.contracts import Completion, ModelUnavailable, Request
from torra.providers.vendors.switchboard import Switchboard
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
        switchboard: Switchboard,
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
        choices = self._choices(request)
        tick = self._tick_of(request)
        vendor, model = self._choice(choices, tick)
        # The end of its stage: what lingers after that is for the record only.
        waiting = (vendor, until - request.linger_s)
        tick.waiting.append(waiting)
        try:
            reply = await self._switchboard.ask(vendor, model, request, until)
        except VendorFault as fault:
            if fault.down:
                tick.down.add(vendor)
                if self._worth_asking(choices, tick):
                    fault.again = 0.0
            raise
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
        )

    def _choices(self, request: Request) -> list[tuple[str, str]]:
        """Return who may answer, the first choice first."""
        first = route(request.model, self._settings.provider)
        spare = self._settings.fallback(request.role.tier)
        return [first, spare] if spare and spare[0] != first[0] else [first]

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

"""A line to a vendor on a loopback server, through its real SDK.

`line` opens clients and a provider on a server; `official` does as if the server stood at the
vendor's own address. The keys are canaries: `CANARIES` may appear nowhere but on the wire.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Self

import httpx2

from agent_config import AgentSettings
from agents.contracts import Completion, Request
from tests.doubles import scripted
from tests.doubles.vendor_server import (
    ANTHROPIC,
    GOOGLE,
    OPENAI,
    VENDORS,
    Exchange,
    Reply,
    Status,
    VendorServer,
)
from torra.providers.prices import PriceList
from torra.providers.registry import open_provider
from torra.providers.vendors.clients import VendorClients
from torra.tick.debate import score_chart

KEY_NAME: Final = {
    ANTHROPIC: "ANTHROPIC_API_KEY",
    GOOGLE: "GOOGLE_API_KEY",
    OPENAI: "OPENAI_API_KEY",
}
SHORT: Final = {ANTHROPIC: "ANTHROPIC", GOOGLE: "GOOGLE", OPENAI: "OPENAI"}
REAL: Final = {vendor: f"realcanary{SHORT[vendor].lower()}5f1b9c" for vendor in VENDORS}
"""The vendor's own key: no server of the tests may ever see it."""
CUSTOM: Final = {vendor: f"customcanary{SHORT[vendor].lower()}77e0d2" for vendor in VENDORS}
"""The key for a server that is not the vendor's."""
CANARIES: Final = (*REAL.values(), *CUSTOM.values())

PICTURE: Final = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


def knowing(*forms: str) -> Any:
    """Return what a server says that takes only these response formats."""

    def answer(exchange: Exchange) -> Any:
        form = exchange.body.get("response_format", {}).get("type", "prompt")
        return Reply(fenced=form == "prompt") if form in forms else Status(400)

    return answer


def environment(*servers: VendorServer, custom: bool = True, **more: str) -> dict[str, str]:
    """Return an environment whose vendors are all at these servers, one for each or one for all."""
    variables: dict[str, str] = {}
    for number, vendor in enumerate(VENDORS):
        server = servers[min(number, len(servers) - 1)]
        variables[KEY_NAME[vendor]] = REAL[vendor]
        variables[f"TORRA_{SHORT[vendor]}_BASE_URL"] = server.base(vendor)
        if custom:
            variables[f"TORRA_{SHORT[vendor]}_CUSTOM_KEY"] = CUSTOM[vendor]
    return variables | more


def agents(vendor: str, **changes: Any) -> AgentSettings:
    """Return agent settings with a vendor's default models."""
    return AgentSettings(**({"provider": vendor} | changes))


@functools.cache
def prices() -> PriceList:
    """Return the price list without anybody's own prices."""
    price_list = PriceList()
    price_list.warm()
    return price_list


class Line:
    """Clients and a provider, warm; close it, or use it in a `with`."""

    def __init__(
        self,
        where: Mapping[str, str],
        settings: AgentSettings,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.clients = VendorClients(where, prices=prices(), transport=transport)
        named = tuple(name for name in settings.vendors() if name in VENDORS)
        self.clients.warm(named)
        for name in named:  # a cold SDK takes a second to import
            self.clients._adapters[name].exception(timeout=60)
        self.settings = settings
        self.provider = open_provider(settings, self.clients)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.provider.close()
        self.clients.close()

    def ask(self, request: Request, seconds: float = 20.0) -> Completion:
        """Put one request and return its answer, or raise what the provider raises."""
        return self.provider.submit(request).result(timeout=seconds)


class Detour(httpx2.AsyncBaseTransport):
    """Takes what is meant for a vendor's own address to a server of the tests."""

    def __init__(self, server: VendorServer) -> None:
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)
        self._server = server

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert request.url.scheme == "https"
        host, port = self._server.server_address[:2]
        request.url = request.url.copy_with(scheme="http", host=str(host), port=port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def official(server: VendorServer, vendor: str, **changes: Any) -> Line:
    """Open a line to a vendor's own address, which a detour takes to the server."""
    return Line({KEY_NAME[vendor]: REAL[vendor]}, agents(vendor, **changes), Detour(server))


def line(server: VendorServer, vendor: str, **changes: Any) -> Line:
    """Open a line to one vendor on one server."""
    return Line(environment(server), agents(vendor, **changes))


@functools.cache
def _requests() -> Mapping[str, Request]:
    provider = scripted.Scripted(dict.fromkeys(("bull_researcher", "bear_researcher"), "no"))
    scripted.debate(provider)
    down = scripted.Scripted(
        dict.fromkeys(("technical", "bull_researcher", "bear_researcher"), TimeoutError())
    )
    scripted.debate(down, fallback=score_chart)
    return {request.role.id: request for request in (*down.requests, *provider.requests)}


def a_request(role: str, model: str, **changes: Any) -> Request:
    """Return the request of a role as a desk makes it, for one model."""
    request = replace(_requests()[role], model=model, limit_s=10.0, linger_s=0.0, attempt=1)
    return replace(request, **changes)

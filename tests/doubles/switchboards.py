"""A switchboard whose sockets are a function: what it answers, and everything it was sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2

from agent_config import AgentSettings
from agents.contracts import Completion, ModelUnavailable, Request
from agents.debate import replies
from agents.registry import AGENTS
from tests.later import Later
from torra.providers.vendors.routing import RoutedProvider
from torra.providers.vendors.switchboard import VendorClients

openai_compatible = Later("torra.providers.vendors.openai_compatible")
VENDORS = ("anthropic", "google", "openai_compatible")
KEYS = {
    "ANTHROPIC_API_KEY": "canary-anthropic",
    "GOOGLE_API_KEY": "canary-google",
    "OPENAI_API_KEY": "canary-openai",
}
MODEL = {"anthropic": "claude-haiku-5-5", "google": "gemini-3.5-flash-lite"}
USAGE = {"input": 100, "output": 20}
Answer = Callable[[httpx2.Request], Any]


class Prices:
    """A USD per token in, two per token out; the worst case is 1,000."""

    def warm(self) -> None:
        pass

    def cost(self, vendor: str, model: str, **tokens: Any) -> float:
        return 0.0 if tokens["local"] else tokens["input_tokens"] + 2.0 * tokens["output_tokens"]

    def worst_case(self, vendor: str, model: str, **bounds: Any) -> float:
        return 0.0 if bounds["local"] else 1000.0


def body(vendor: str, text: str = "{}", stop: str = "", **changes: Any) -> dict[str, Any]:
    """Return a vendor's reply."""
    if vendor == "anthropic":
        found: dict[str, Any] = {
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}],
            "stop_reason": stop or "end_turn",
            "usage": {"input_tokens": USAGE["input"], "output_tokens": USAGE["output"]},
        }
    elif vendor == "google":
        parts = [{"text": "hm", "thought": True}, {"text": text}]
        found = {
            "candidates": [{"content": {"parts": parts}, "finishReason": stop or "STOP"}],
            "usageMetadata": {
                "promptTokenCount": USAGE["input"],
                "candidatesTokenCount": USAGE["output"] - 5,
                "thoughtsTokenCount": 5,
            },
        }
    else:
        found = {
            "choices": [{"message": {"content": text}, "finish_reason": stop or "stop"}],
            "usage": {"prompt_tokens": USAGE["input"], "completion_tokens": USAGE["output"]},
        }
    return found | changes


def vendor_of(request: httpx2.Request) -> str:
    path = request.url.path
    if path.endswith("/messages"):
        return "anthropic"
    return "google" if path.endswith(":generateContent") else "openai_compatible"


def good(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json=body(vendor_of(request)))


def a_request(model: str, **changes: Any) -> Request:
    values: dict[str, Any] = {
        "role": AGENTS["technical"].role,
        "round": 1,
        "attempt": 1,
        "symbol": "XAUUSD",
        "timeframe": "M15",
        "bar_time": "2026-01-05T10:00:00Z",
        "model": model,
        "system": "You are an analyst.",
        "user": "What do you see?",
        "schema": replies.schema("report"),
        "features": {},
        "reports": (),
        "scores": {},
        "max_output_tokens": 700,
        "limit_s": 20.0,
    }
    return Request(**(values | changes))


class Bench:
    """A switchboard and what it sent."""

    def __init__(self, answer: Answer, environment: Mapping[str, str], **more: Any) -> None:
        self.sent: list[httpx2.Request] = []
        self.answer = answer
        own: dict[str, Any] = {"prices": Prices(), "transport": httpx2.MockTransport(self._handle)}
        self.switchboard = VendorClients(environment, **own | more)

    async def _handle(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        found = self.answer(request)
        return found if isinstance(found, httpx2.Response) else await found

    def asked(self) -> list[str]:
        return [vendor_of(request) for request in self.sent]

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.sent]

    def provider(self, vendor: str = "anthropic", **settings: Any) -> RoutedProvider:
        return RoutedProvider(AgentSettings(provider=vendor, **settings), self.switchboard)

    def ask(self, vendor: str = "anthropic", model: str = "", **changes: Any) -> Completion:
        request = a_request(model or MODEL.get(vendor, "gpt-6-luna"), **changes)
        return self.provider(vendor).submit(request).result(timeout=30)

    def failure(
        self, vendor: str = "anthropic", model: str = "", **changes: Any
    ) -> ModelUnavailable:
        try:
            completion = self.ask(vendor, model, **changes)
        except ModelUnavailable as error:
            return error
        raise AssertionError(f"answered: {completion}")


@contextmanager
def bench(
    answer: Answer = good,
    environment: Mapping[str, str] | None = None,
    *,
    fresh: bool = False,
    **more: Any,
) -> Iterator[Bench]:
    """Yield a bench; one that wants nothing special is used again: building takes time."""
    if not fresh and not more:
        yield _again(answer, KEYS if environment is None else environment)
        return
    found = Bench(answer, KEYS if environment is None else environment, **more)
    try:
        yield found
    finally:
        found.switchboard.close()


_kept: dict[str, Bench] = {}


def _again(answer: Answer, environment: Mapping[str, str]) -> Bench:
    key = repr(sorted(environment.items()))
    if key not in _kept:
        _kept[key] = Bench(answer, environment)
    found = _kept[key]
    found.sent, found.answer = [], answer
    for vendor in VENDORS:
        found.switchboard.unblock(vendor)
        if vendor in found.switchboard._adapters and vendor == "openai_compatible":
            adapter = found.switchboard._adapters[vendor].result(timeout=60)
            assert isinstance(adapter, openai_compatible.OpenAIAdapter)
            adapter._forms.clear()
    return found


def close_all() -> None:
    while _kept:
        _kept.popitem()[1].switchboard.close()


def warm(way: VendorClients, vendors: Iterable[str] = VENDORS) -> None:
    """Build the clients of vendors, and wait for them."""
    way.warm(vendors)
    for vendor in vendors:
        way._adapters[vendor].result(timeout=60)

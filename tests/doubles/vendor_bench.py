"""Vendors' clients whose sockets are a function: what it answers, and everything it was sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2

from agent_config import AgentSettings
from agents.contracts import Completion, ModelUnavailable, Prompt, Request
from agents.debate import replies
from agents.registry import AGENTS
from torra.providers.vendors.clients import VendorClients
from torra.providers.vendors.routing import RoutedProvider

VENDORS = ("anthropic", "google", "openai_compatible")
KEYS = {
    "ANTHROPIC_API_KEY": "canary-anthropic",
    "GOOGLE_API_KEY": "canary-google",
    "OPENAI_API_KEY": "canary-openai",
}
LOCAL = {"TORRA_OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}
MODEL = {
    "anthropic": "claude-haiku-5-5",
    "google": "gemini-3.5-flash-lite",
    "openai_compatible": "gpt-6-luna",
}
USAGE = {"input": 100, "output": 20}
Answer = Callable[[httpx2.Request], Any]


class Prices:
    """A USD per token in, two per token out; the worst case is 1,000."""

    def warm(self) -> None:
        pass

    def cost(self, vendor: str, model: str, usage: Any, *, local: bool) -> float:
        return 0.0 if local else usage.input + 2.0 * usage.output

    def worst_case(self, vendor: str, model: str, **bounds: Any) -> float:
        return 0.0 if bounds["local"] else 1000.0


def body(vendor: str, text: str = "{}", stop: str = "", **changes: Any) -> dict[str, Any]:
    """Return a vendor's reply."""
    if vendor == "anthropic":
        reply: dict[str, Any] = {
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}],
            "stop_reason": stop or "end_turn",
            "usage": {"input_tokens": USAGE["input"], "output_tokens": USAGE["output"]},
        }
    elif vendor == "google":
        parts = [{"text": "hm", "thought": True}, {"text": text}]
        reply = {
            "candidates": [{"content": {"parts": parts}, "finishReason": stop or "STOP"}],
            "usageMetadata": {
                "promptTokenCount": USAGE["input"],
                "candidatesTokenCount": USAGE["output"] - 5,
                "thoughtsTokenCount": 5,
            },
        }
    else:
        reply = {
            "choices": [{"message": {"content": text}, "finish_reason": stop or "stop"}],
            "usage": {"prompt_tokens": USAGE["input"], "completion_tokens": USAGE["output"]},
        }
    return reply | changes


def vendor_of(request: httpx2.Request) -> str:
    path = request.url.path
    if path.endswith("/messages"):
        return "anthropic"
    return "google" if path.endswith(":generateContent") else "openai_compatible"


def good(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json=body(vendor_of(request)))


def failing(how: Any, *vendors: str) -> Answer:
    """Return a world where these vendors answer a status, raise, or do as a function has it."""

    def answer(request: httpx2.Request) -> Any:
        if vendor_of(request) not in vendors:
            return good(request)
        if isinstance(how, Exception):
            raise how
        return how() if callable(how) else httpx2.Response(how)

    return answer


def a_request(model: str, **changes: Any) -> Request:
    values: dict[str, Any] = {
        "role": AGENTS["technical"].role,
        "round": 1,
        "attempt": 1,
        "symbol": "XAUUSD",
        "timeframe": "M15",
        "bar_time": "2026-01-05T10:00:00Z",
        "model": model,
        "schema": replies.schema("report"),
        "features": {},
        "reports": (),
        "scores": {},
        "max_output_tokens": 700,
        "limit_s": 20.0,
    }
    texts = {"system": "You are an analyst.", "user": "What do you see?"}
    vendors = {name: changes.pop(name, text) for name, text in texts.items()}
    values["prompt"] = Prompt(**vendors, shape="report")
    return Request(**(values | changes))


class Bench:
    """Clients and what they sent."""

    def __init__(self, answer: Answer, environment: Mapping[str, str], **more: Any) -> None:
        self.sent: list[httpx2.Request] = []
        self.answer = answer
        own: dict[str, Any] = {"prices": Prices(), "transport": httpx2.MockTransport(self._handle)}
        self.clients = VendorClients(environment, **own | more)

    async def _handle(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        answer = self.answer(request)
        return answer if isinstance(answer, httpx2.Response) else await answer

    def warm(self, *vendors: str) -> None:
        """Build the clients of vendors, and wait for them."""
        self.clients.warm(vendors or VENDORS)
        assert self.clients.ready(60)

    def vendors(self) -> list[str]:
        return [vendor_of(request) for request in self.sent]

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.sent]

    def provider(self, vendor: str = "anthropic", **settings: Any) -> RoutedProvider:
        return RoutedProvider(AgentSettings(provider=vendor, **settings), self.clients)

    def ask(self, vendor: str = "anthropic", model: str = "", **changes: Any) -> Completion:
        request = a_request(model or MODEL[vendor], **changes)
        return self.provider(vendor).submit(request).result(timeout=30)

    def failure(self, vendor: str = "anthropic", model: str = "", **changes: Any) -> Any:
        """Return the ModelUnavailable of a request."""
        try:
            completion = self.ask(vendor, model, **changes)
        except ModelUnavailable as error:
            return error
        raise AssertionError(f"answered: {completion}")


@contextmanager
def bench(
    answer: Answer = good,
    environment: Mapping[str, str] = KEYS,
    *,
    fresh: bool = False,
    **more: Any,
) -> Iterator[Bench]:
    """Yield a bench; one that wants nothing special is used again: building takes time."""
    if not fresh and not more:
        key = repr(sorted(environment.items()))
        if key not in _kept:
            _kept[key] = Bench(answer, environment)
            _kept[key].warm()
        kept = _kept[key]
        kept.sent, kept.answer = [], answer
        kept.clients._blocks.clear()
        if environment is LOCAL:  # whose adapter remembers forms
            kept.clients._adapters.pop("openai_compatible", None)
        yield kept
        return
    opened = Bench(answer, environment, **more)
    try:
        yield opened
    finally:
        opened.clients.close()


_kept: dict[str, Bench] = {}


def close_all() -> None:
    while _kept:
        _kept.popitem()[1].clients.close()

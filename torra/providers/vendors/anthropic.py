"""Anthropic's Messages API, through the SDK's own client.

A request has structured output by JSON schema, thinking turned off or down as the table in
`capabilities` says, and the shared beginning of every prompt marked for the cache. The client is
given a placeholder as key: the transport alone puts the real one in.

The SDK posts the body as it is written here: `messages.create` would copy the schema and read the
reply into its models on every call, and nobody looks at either. `messages.parse` raises on a reply
that was cut off, and its usage is lost.
"""

from __future__ import annotations

import base64
import warnings
from collections.abc import Mapping
from typing import Any, Final

import anthropic
import httpx2

import scoring_rubric
from agents.contracts import Request
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.capabilities import Capability, capability
from torra.providers.vendors.stops import stop_word
from torra.providers.vendors.vendor import (
    SDK_TIMEOUT_S,
    Usage,
    VendorReply,
    count,
    described,
    exchange,
    items,
    mapping,
    picture_type,
    text,
    wire_text,
    written,
)
from torra.providers.vendors.wire import RequestTrace

VENDOR: Final = "anthropic"
MESSAGES: Final = "/v1/messages"
NO_CREDIT: Final = ("credit balance", "usage limits")
"""Anthropic tells of an empty account, and of a limit the account set itself, with a plain 400."""


class AnthropicAdapter:
    """Asks Claude models."""

    def __init__(self, address: Address, http: httpx2.AsyncClient) -> None:
        # The SDK warns on each call of a model with an end; check_model and doctor say it once.
        warnings.filterwarnings(
            "ignore", message="The model '.*' is deprecated", category=DeprecationWarning
        )
        self._client = anthropic.AsyncAnthropic(
            api_key="placeholder",
            base_url=address.base_url,
            # Asking again is decided elsewhere, within the deadline and the ceiling.
            max_retries=0,
            timeout=SDK_TIMEOUT_S,
            http_client=http,
            open_telemetry=False,
        )

    async def ask(self, model: str, request: Request, wire: RequestTrace) -> VendorReply:
        """Ask once; raises VendorFault, or what the SDK raises."""
        sent = written(body(model, request, capability(VENDOR, model)))
        sending = self._client.post(MESSAGES, cast_to=httpx2.Response, content=sent)
        return read(await exchange(sending, wire))

    def exhausted(self, status: int, body: Mapping[str, Any]) -> str:
        """Return why the account can be asked no more, "" when it can."""
        message = text(mapping(body.get("error")).get("message")).lower()
        if status == 400 and any(words in message for words in NO_CREDIT):
            return "400: the account has no credit"
        return ""


def body(model: str, request: Request, can: Capability) -> dict[str, Any]:
    """Return the request body, in the order in which `messages.create` would write it."""
    output: dict[str, Any] = {"effort": can.effort} if can.effort else {}
    system = request.system
    if can.structured:
        output["format"] = {"type": "json_schema", "schema": dict(request.schema)}
    else:
        system = described(system, request.schema)
    wanted = {
        "output_config": output,
        "system": _system(system),
        "thinking": dict(can.thinking or {}),
    }
    return {
        "max_tokens": request.max_output_tokens,
        "messages": [{"role": "user", "content": _content(request, can)}],
        "model": model,
        **{name: value for name, value in wanted.items() if value},
    }


def read(answer: Mapping[str, Any]) -> VendorReply:
    """Return the reply of a message: its text blocks, why it ended, what it used."""
    blocks = items(answer.get("content"))

    def of(kind: str, name: str) -> list[Any]:
        return [block.get(name) for block in blocks if block.get("type") == kind]

    stop = stop_word(VENDOR, text(answer.get("stop_reason")))
    said, thoughts = (list(map(text, of(kind, kind))) for kind in ("text", "thinking"))
    calls = of("tool_use", "input")
    return VendorReply(wire_text(said, stop, calls, thoughts), stop, _usage(answer.get("usage")))


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    cached = count(usage, "cache_read_input_tokens")
    written = count(usage, "cache_creation_input_tokens")
    fresh = count(usage, "input_tokens")  # without what a cache took or gave
    return Usage(fresh + cached + written, count(usage, "output_tokens"), cached, written)


def _system(system: str) -> list[dict[str, Any]]:
    """Return the system text as blocks, the part that all roles share marked for the cache."""
    shared: str = getattr(scoring_rubric, "SHARED_PREFIX", "")
    if not shared or not system.startswith(shared):
        return [{"type": "text", "text": system}] if system.strip() else []
    first = {"type": "text", "text": shared, "cache_control": {"type": "ephemeral"}}
    rest = system.removeprefix(shared)
    return [first, {"type": "text", "text": rest}] if rest.strip() else [first]


def _content(request: Request, can: Capability) -> list[dict[str, Any]]:
    words = {"type": "text", "text": request.user}
    kind = picture_type(request.picture) if can.picture else ""
    if not kind or request.picture is None:
        return [words]
    data = base64.b64encode(request.picture).decode("ascii")
    source = {"type": "base64", "media_type": kind, "data": data}
    return [{"type": "image", "source": source}, words]

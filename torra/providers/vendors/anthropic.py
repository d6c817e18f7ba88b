"""Anthropic's Messages API, through the SDK's own client.

A request has structured output by JSON schema, thinking turned off or down as the table of models
says, and the shared beginning of every prompt marked for the cache.

The SDK posts the body as it is written here: `messages.create` would copy the schema and read the
reply into its models on every call, and nobody looks at either. `messages.parse` raises on a reply
that was cut off, and its usage is lost.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import anthropic
import httpx2

import scoring_rubric
from agents.contracts import Request
from torra.providers.prices import Usage
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.table import Capability, capability, stop_word
from torra.providers.vendors.vendor import (
    NO_KEY,
    SDK_TIMEOUT_S,
    Adapter,
    RequestTrace,
    VendorReply,
    count,
    exchange,
    items,
    picture_of,
    text,
    wire_text,
)


def connect(address: Address, http: httpx2.AsyncClient) -> Adapter:
    """Return what asks Claude models."""
    client = anthropic.AsyncAnthropic(
        api_key=NO_KEY,
        base_url=address.base_url,
        # Asking again is decided elsewhere, within the deadline and the ceiling.
        max_retries=0,
        timeout=SDK_TIMEOUT_S,
        http_client=http,
        open_telemetry=False,
    )

    async def ask(model: str, request: Request, trace: RequestTrace) -> VendorReply:
        sent = body(model, request, capability("anthropic", model))
        sending = client.post("/v1/messages", cast_to=httpx2.Response, body=sent)
        return read(await exchange(sending, trace))

    return ask


def body(model: str, request: Request, can: Capability) -> dict[str, Any]:
    """Return the request body, in the order in which `messages.create` would write it."""
    content: list[dict[str, Any]] = [{"type": "text", "text": request.user}]
    kind, picture = picture_of(request, can)
    if kind:
        data = base64.b64encode(picture).decode()
        source = {"type": "base64", "media_type": kind, "data": data}
        content.insert(0, {"type": "image", "source": source})
    form = {"type": "json_schema", "schema": dict(request.schema)}
    optional = {"system": _system(request.system), "thinking": dict(can.thinking or {})}
    return {
        "max_tokens": request.max_output_tokens,
        "messages": [{"role": "user", "content": content}],
        "model": model,
        "output_config": ({"effort": can.effort} if can.effort else {}) | {"format": form},
        **{name: value for name, value in optional.items() if value},
    }


def read(answer: Mapping[str, Any]) -> VendorReply:
    """Return the reply of a message: its text blocks, why it ended, what it used."""
    blocks = items(answer, "content")

    def of(kind: str, name: str) -> list[Any]:
        return [block.get(name) for block in blocks if block.get("type") == kind]

    stop = stop_word("anthropic", text(answer.get("stop_reason")))
    words, thoughts = (list(map(text, of(kind, kind))) for kind in ("text", "thinking"))
    spent, usage = answer.get("usage"), None
    if isinstance(spent, dict):
        cached = count(spent, "cache_read_input_tokens")
        written = count(spent, "cache_creation_input_tokens")
        fresh = count(spent, "input_tokens")  # without what a cache took or gave
        usage = Usage(fresh + cached + written, count(spent, "output_tokens"), cached, written)
    return VendorReply(wire_text(words, stop, of("tool_use", "input"), thoughts), stop, usage)


def _system(system: str) -> list[dict[str, Any]]:
    """Return the system text as blocks, the part that all roles share marked for the cache."""
    shared: str = getattr(scoring_rubric, "SHARED_PREFIX", "")
    cached = bool(shared) and system.startswith(shared)
    first = {"type": "text", "text": shared, "cache_control": {"type": "ephemeral"}}
    rest = system.removeprefix(shared) if cached else system
    return [first] * cached + [{"type": "text", "text": rest}] * bool(rest.strip())

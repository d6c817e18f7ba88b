"""Anthropic's Messages API, through the SDK's own client.

A request has structured output by JSON schema, thinking turned off or down as the table of models
says, and the shared beginning of every prompt marked for the cache.

The SDK posts the body as it is written here: `messages.create` would copy the schema and read the
reply into its models on every call, and nobody looks at either. `messages.parse` raises on a reply
that was cut off, and its usage is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anthropic
import httpx2

import scoring_rubric
from agents.contracts import Request
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.table import capability, stop_word
from torra.providers.vendors.vendor import (
    Adapter,
    VendorReply,
    exchange,
    items,
    picture_of,
    reply_of,
    sdk_options,
    text,
)

VENDOR: Final = "anthropic"


def connect(address: Address, http: httpx2.AsyncClient) -> Adapter:
    """Return what asks Claude models."""
    client = anthropic.AsyncAnthropic(**sdk_options(address, http), open_telemetry=False)

    async def ask(model: str, request: Request) -> VendorReply:
        sending = client.post("/v1/messages", cast_to=httpx2.Response, body=body(model, request))
        return read(await exchange(sending))

    return ask


def body(model: str, request: Request) -> dict[str, Any]:
    """Return the request body, in the order in which `messages.create` would write it."""
    can = capability(VENDOR, model)
    content: list[dict[str, Any]] = [{"type": "text", "text": request.user}]
    kind, picture = picture_of(request, can)
    if kind:
        source = {"type": "base64", "media_type": kind, "data": picture}
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
    """Return the reply of a message: its text blocks, or else its tool call or its thought."""
    blocks = items(answer.get("content"))
    texts, calls, thoughts = (
        [block.get(name) for block in blocks if block.get("type") == kind]
        for kind, name in (("text", "text"), ("tool_use", "input"), ("thinking", "thinking"))
    )
    stop = stop_word(VENDOR, text(answer.get("stop_reason")))
    return reply_of(VENDOR, answer, stop, texts, calls, thoughts)


def _system(system: str) -> list[dict[str, Any]]:
    """Return the system text as blocks, the part that all roles share marked for the cache."""
    shared = scoring_rubric.SHARED_PREFIX
    head = shared if system.startswith(shared) else ""
    cached = {"type": "text", "text": head, "cache_control": {"type": "ephemeral"}}
    rest = {"type": "text", "text": system.removeprefix(head)}
    return [cached] * bool(head) + [rest] * bool(rest["text"].strip())

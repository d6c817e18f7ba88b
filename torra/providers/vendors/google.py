"""Google's Gemini API, through the SDK's own client.

A request has structured output by JSON schema, the thinking level of the table of models, and no
automatic continuation: a reply that is cut off ends there, inside its deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx2
from google import genai
from google.genai import types

from agents.contracts import Request
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.table import Capability, capability, stop_word
from torra.providers.vendors.transport import authorities
from torra.providers.vendors.vendor import (
    NO_KEY,
    Adapter,
    VendorReply,
    arguments,
    exchange,
    items,
    picture_of,
    reply_of,
    text,
    values,
)

VENDOR: Final = "google"


def connect(address: Address, http: httpx2.AsyncClient) -> Adapter:
    """Return what asks Gemini models."""
    client = genai.Client(
        api_key=NO_KEY,
        # Not left out: then a variable of the environment would choose another cloud.
        vertexai=False,
        http_options=types.HttpOptions(
            base_url=address.base_url,
            api_version="v1",
            httpx_async_client=http,
            # The SDK also makes a client of its own, which reads no proxy variable either, and
            # prepares web sockets: both are never used, and read no authorities of their own.
            client_args={"trust_env": False, "follow_redirects": False, "verify": authorities()},
            async_client_args={"ssl": authorities()},
        ),
    )

    async def ask(model: str, request: Request) -> VendorReply:
        can = capability(VENDOR, model)
        contents: list[Any] = [request.user]
        kind, _ = picture_of(request, can)
        if kind:
            picture = types.Part.from_bytes(data=request.picture or b"", mime_type=kind)
            contents.insert(0, picture)
        sending = client.aio.models.generate_content(
            model=model, contents=contents, config=config(request, can)
        )
        return read(await exchange(sending))

    return ask


def config(request: Request, can: Capability) -> types.GenerateContentConfig:
    """Return everything else of a request. Sampling is left to the model: no temperature."""
    return types.GenerateContentConfig(
        system_instruction=request.system or None,
        response_mime_type="application/json",
        response_json_schema=dict(request.schema),
        max_output_tokens=request.max_output_tokens,
        automatic_continuation=False,
        thinking_config=can.thinking and types.ThinkingConfig.model_validate(can.thinking),
    )


def read(answer: Mapping[str, Any]) -> VendorReply:
    """Return the reply: the words of the first candidate without its thoughts."""
    candidate = next(iter(items(answer.get("candidates"))), None)
    if candidate is None:
        blocked = any(values(answer, "promptFeedback.blockReason"))
        return reply_of(VENDOR, answer, "filter" if blocked else "empty")
    parts = items(*values(candidate, "content.parts"))
    texts, thoughts = (
        [part["text"] for part in parts if "text" in part and (part.get("thought") is True) is kind]
        for kind in (False, True)
    )
    stop = stop_word(VENDOR, text(candidate.get("finishReason")))
    calls = arguments([part for part in parts if "functionCall" in part], "functionCall.args")
    return reply_of(VENDOR, answer, stop, texts, calls, thoughts)

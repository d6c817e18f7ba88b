"""Google's Gemini API, through the SDK's own client.

A request has structured output by JSON schema, the thinking level of the table in `capabilities`,
and no automatic continuation: a reply that is cut off ends there, inside its deadline. The client
is given a placeholder as key: the transport alone puts the real one in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx2
from google import genai
from google.genai import types

from agents.contracts import Request
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.capabilities import Capability, capability
from torra.providers.vendors.stops import stop_word
from torra.providers.vendors.transport import authorities
from torra.providers.vendors.vendor import (
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
)
from torra.providers.vendors.wire import RequestTrace

VENDOR: Final = "google"
API_VERSION: Final = "v1"


class GoogleAdapter:
    """Asks Gemini models."""

    def __init__(self, address: Address, http: httpx2.AsyncClient) -> None:
        self._client = genai.Client(
            api_key="placeholder",
            # Not left out: then a variable of the environment would choose another cloud.
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=address.base_url,
                api_version=API_VERSION,
                httpx_async_client=http,
                # The SDK also makes a client of its own, which reads no proxy variable either, and
                # prepares web sockets: both are never used, and read no authorities of their own.
                client_args={
                    "trust_env": False,
                    "follow_redirects": False,
                    "verify": authorities(),
                },
                async_client_args={"ssl": authorities()},
            ),
        )

    async def ask(self, model: str, request: Request, wire: RequestTrace) -> VendorReply:
        """Ask once; raises VendorFault, or what the SDK raises."""
        can = capability(VENDOR, model)
        generate = self._client.aio.models.generate_content
        sending = generate(
            model=model, contents=contents(request, can), config=config(request, can)
        )
        return read(await exchange(sending, wire))

    def exhausted(self, status: int, body: Mapping[str, Any]) -> str:
        """Return why the account can be asked no more today, "" when it can."""
        details = items(mapping(body.get("error")).get("details"))
        if status == 400 and any(item.get("reason") == "API_KEY_INVALID" for item in details):
            return "400: the key was refused"
        quotas = [quota for item in details for quota in items(item.get("violations"))]
        if status == 429 and any("PerDay" in text(quota.get("quotaId")) for quota in quotas):
            return "429: the day's quota is used up"
        return ""


def contents(request: Request, can: Capability) -> list[Any]:
    """Return what the user says: the picture, when there is one and the model sees, and words."""
    kind = picture_type(request.picture) if can.picture else ""
    if not kind or request.picture is None:
        return [request.user]
    return [types.Part.from_bytes(data=request.picture, mime_type=kind), request.user]


def config(request: Request, can: Capability) -> types.GenerateContentConfig:
    """Return everything else of a request. Sampling is left to the model: no temperature."""
    system = request.system if can.structured else described(request.system, request.schema)
    thinking = dict(can.thinking or {})
    return types.GenerateContentConfig(
        system_instruction=system or None,
        response_mime_type="application/json",
        response_json_schema=dict(request.schema) if can.structured else None,
        max_output_tokens=request.max_output_tokens,
        automatic_continuation=False,
        thinking_config=types.ThinkingConfig.model_validate(thinking) if thinking else None,
    )


def read(answer: Mapping[str, Any]) -> VendorReply:
    """Return the reply: the words of the first candidate without its thoughts."""
    usage = _usage(answer.get("usageMetadata"))
    candidate = next(iter(items(answer.get("candidates"))), None)
    if candidate is None:
        blocked = mapping(answer.get("promptFeedback")).get("blockReason")
        return VendorReply("", "filter" if blocked else "empty", usage)
    parts = items(mapping(candidate.get("content")).get("parts"))
    thoughts, said = (
        [text(part.get("text")) for part in parts if "text" in part and _is_thought(part) is wanted]
        for wanted in (True, False)
    )
    calls = [mapping(part["functionCall"]).get("args") for part in parts if "functionCall" in part]
    stop = stop_word(VENDOR, text(candidate.get("finishReason")))
    return VendorReply(wire_text(said, stop, calls, thoughts), stop, usage)


def _is_thought(part: Mapping[str, Any]) -> bool:
    return part.get("thought") is True


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    return Usage(
        count(usage, "promptTokenCount"),
        count(usage, "candidatesTokenCount") + count(usage, "thoughtsTokenCount"),
        count(usage, "cachedContentTokenCount"),
    )

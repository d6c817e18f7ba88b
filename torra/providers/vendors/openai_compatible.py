"""OpenAI's chat completions, and every server with the same API: Ollama, llama.cpp, LM Studio.

OpenAI itself gets a strict JSON schema and the reasoning effort of the table in `capabilities`.
Another server gets only what all of them know: model, messages, max_tokens and response_format.
When such a server does not take the response format, the same request is sent in the next form:
json_schema, json_object, then no format and the schema in the prompt. The form that worked is
remembered by model for FORM_KEPT requests: one odd answer does not turn the schema off for good. In
the last two forms a reply that is wrapped whole in one markdown fence is unwrapped.

The client is given a placeholder as key: the transport alone puts the real one in. The SDK posts
the body as it is written here: `chat.completions.create` would look through the schema field by
field and read the reply into its models on every call, and nobody looks at either.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import httpx2
import openai

from agents.contracts import Request
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.capabilities import Capability, capability
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
    written,
)
from torra.providers.vendors.wire import Wire

VENDOR: Final = "openai_compatible"
COMPLETIONS: Final = "/chat/completions"
Form = Literal["json_schema", "json_object", "prompt"]
FORMS: Final[tuple[Form, ...]] = ("json_schema", "json_object", "prompt")
NOT_TAKEN: Final = frozenset((400, 422, 501))
"""How servers answer a response format that they do not know; 404 is a model that is not there."""

STOPS: Final[Mapping[str, str]] = {"stop": "end", "length": "length", "content_filter": "filter"}
NO_QUOTA: Final = frozenset(
    ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
)
FENCE: Final = re.compile(r"\s*```[A-Za-z]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```\s*", re.DOTALL)
FORM_KEPT: Final = 50
"""Requests of a model until the first form is tried again.

A server may have learnt it, or may have refused it once for another reason.
"""


class OpenAIAdapter:
    """Asks OpenAI, or the server that stands in its place."""

    def __init__(self, address: Address, http: httpx2.AsyncClient) -> None:
        self._official = address.official
        self._worked: dict[str, int] = {}
        self._kept: dict[str, int] = {}
        self._client = openai.AsyncOpenAI(
            api_key="placeholder",
            base_url=address.base_url,
            max_retries=0,
            timeout=SDK_TIMEOUT_S,
            http_client=http,
        )

    async def ask(self, model: str, request: Request, wire: Wire) -> VendorReply:
        """Ask once, in as many forms as it takes; raises VendorFault, or what the SDK raises."""
        can = capability(VENDOR, model)
        if self._official:
            form: Form = "json_schema" if can.structured else "json_object"
            return await self._send(official_body(model, request, can, form), form, wire)
        for place in range(self._first(model), len(FORMS)):
            form = FORMS[place]
            try:
                reply = await self._send(plain_body(model, request, can, form), form, wire)
            except openai.APIStatusError:
                # Any other error has another cause: the next form would only cost time.
                if wire.status not in NOT_TAKEN or form == FORMS[-1]:
                    raise
                continue
            if self._worked.get(model) != place:
                self._worked[model], self._kept[model] = place, 0
            return reply
        raise AssertionError("the last form returns or raises")

    def _first(self, model: str) -> int:
        """Return the place of the form to begin with."""
        self._kept[model] = self._kept.get(model, 0) + 1
        return 0 if self._kept[model] % FORM_KEPT == 0 else self._worked.get(model, 0)

    async def _send(self, sent: dict[str, Any], form: Form, wire: Wire) -> VendorReply:
        sending = self._client.post(COMPLETIONS, cast_to=httpx2.Response, content=written(sent))
        return read(await exchange(sending, wire), form)

    def exhausted(self, status: int, body: Mapping[str, Any]) -> str:
        """Return why the account can be asked no more, "" when it can."""
        error = mapping(body.get("error"))
        if {text(error.get("code")), text(error.get("type"))} & NO_QUOTA:
            return f"{status}: the account's quota is used up"
        return ""


def official_body(model: str, request: Request, can: Capability, form: Form) -> dict[str, Any]:
    """Return the request body for OpenAI itself, in `chat.completions.create`'s order."""
    effort = {"reasoning_effort": can.effort} if can.effort else {}
    return {
        "model": model,
        "messages": _messages(request, can, form),
        "max_completion_tokens": request.max_output_tokens,
        **effort,
        **_format(request, form),
    }


def plain_body(model: str, request: Request, can: Capability, form: Form) -> dict[str, Any]:
    """Return the request body for any other server: nothing that one of them does not know."""
    return {
        "model": model,
        "messages": _messages(request, can, form),
        "max_tokens": request.max_output_tokens,
        **_format(request, form),
    }


def read(answer: Mapping[str, Any], form: Form = "json_schema") -> VendorReply:
    """Return the reply of a completion: the words of the first choice."""
    usage = _usage(answer.get("usage"))
    choice = next(iter(items(answer.get("choices"))), None)
    if choice is None:
        return VendorReply("", "empty", usage)
    message = mapping(choice.get("message"))
    if refusal := text(message.get("refusal")):
        return VendorReply(refusal, "refusal", usage)
    stop = text(choice.get("finish_reason")) or "stop"
    said = text(message.get("content"))
    return VendorReply(
        said if form == "json_schema" else unfenced(said), STOPS.get(stop, stop), usage
    )


def unfenced(said: str) -> str:
    """Return what stands in a reply that is one markdown fence and nothing else."""
    found = FENCE.fullmatch(said)
    return found[1] if found and "```" not in found[1] else said


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    return Usage(
        count(usage, "prompt_tokens"),
        count(usage, "completion_tokens"),
        count(usage, "prompt_tokens_details", "cached_tokens"),
        count(usage, "prompt_tokens_details", "cache_write_tokens"),
    )


def _format(request: Request, form: Form) -> dict[str, Any]:
    if form == "prompt":
        return {}
    wanted: dict[str, Any] = {"type": form}
    if form == "json_schema":
        schema = {"name": "reply", "strict": True, "schema": dict(request.schema)}
        wanted["json_schema"] = schema
    return {"response_format": wanted}


def _messages(request: Request, can: Capability, form: Form) -> list[dict[str, Any]]:
    held = form == "json_schema"
    system = request.system if held else described(request.system, request.schema)
    first = [{"role": "system", "content": system}] if system else []
    return [*first, {"role": "user", "content": _content(request, can)}]


def _content(request: Request, can: Capability) -> str | list[dict[str, Any]]:
    kind = picture_type(request.picture) if can.picture else ""
    if not kind or request.picture is None:
        return request.user
    data = base64.b64encode(request.picture).decode("ascii")
    # Low detail bounds what the picture costs (PICTURE_TOKENS).
    image = {"url": f"data:{kind};base64,{data}", "detail": "low"}
    return [{"type": "image_url", "image_url": image}, {"type": "text", "text": request.user}]

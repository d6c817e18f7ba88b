"""OpenAI's chat completions, and every server with the same API: Ollama, llama.cpp, LM Studio.

OpenAI itself gets a strict JSON schema and the reasoning effort of the table in `capabilities`.
Another server gets only what all of them know: model, messages, max_tokens and response_format.
When such a server does not take the response format, the same request is sent in the next form:
json_schema, json_object, then no format and the schema in the prompt. A form gives way to the next
one too after UNUSABLE_KEPT replies in a row that hold no object with the schema's keys. The form in
use is remembered by model; every FORM_KEPT requests the first one is tried again, so that one odd
answer does not turn the schema off for good. Each reply says in which form its model is asked now,
unless that is the first.

The client is given a placeholder as key: the transport alone puts the real one in. The SDK posts
the body as it is written here: `chat.completions.create` would look through the schema field by
field and read the reply into its models on every call, and nobody looks at either.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx2
import openai

from agents.contracts import ModelUnavailable, Request
from agents.texts.door import UNUSABLE, opened
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.capabilities import (
    FORM_IN_USE,
    FORMS,
    Capability,
    Form,
    capability,
)
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

VENDOR: Final = "openai_compatible"
COMPLETIONS: Final = "/chat/completions"
NOT_TAKEN: Final = frozenset((400, 422, 501))
"""How servers answer a response format that they do not know; 404 is a model that is not there."""

REASONING: Final = ("reasoning_content", "reasoning")
"""Fields in which servers tell what a model thought; some have both."""
THOUGHTS: Final = {"thinking", "reasoning"}
"""Types of the parts of a content that are no answer."""

NO_QUOTA: Final = frozenset(
    ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
)
FORM_KEPT: Final = 50
"""Requests of a model until the first form is tried again.

A server may have learnt it, or may have refused it once for another reason.
"""
UNUSABLE_KEPT: Final = 3
"""Replies in a row of which none can be used, after which a form gives way to the next."""


@dataclass(slots=True)
class _FormUse:
    """The form in which a model is asked, requests since it changed, unusable replies in a row."""

    place: int = 0
    asked: int = 0
    unusable: int = 0

    def first(self) -> int:
        """Return the place of the form to begin with."""
        self.asked += 1
        return 0 if self.asked % FORM_KEPT == 0 else self.place

    def answered(self, place: int, *, usable: bool) -> None:
        """Note which form was answered, and whether the reply can be used."""
        self.unusable = 0 if usable else self.unusable + (place == self.place)
        if place == self.place and self.unusable == UNUSABLE_KEPT:
            place = min(place + 1, len(FORMS) - 1)
        if place > self.place or (place < self.place and usable):
            self.place, self.asked, self.unusable = place, 0, 0


class OpenAIAdapter:
    """Asks OpenAI, or the server that stands in its place."""

    def __init__(self, address: Address, http: httpx2.AsyncClient) -> None:
        self._official = address.official
        self._forms: dict[str, _FormUse] = {}
        self._client = openai.AsyncOpenAI(
            api_key="placeholder",
            base_url=address.base_url,
            max_retries=0,
            timeout=SDK_TIMEOUT_S,
            http_client=http,
        )

    async def ask(self, model: str, request: Request, wire: RequestTrace) -> VendorReply:
        """Ask once, in as many forms as it takes; raises VendorFault, or what the SDK raises."""
        can = capability(VENDOR, model)
        if self._official:
            form: Form = "json_schema" if can.structured else "json_object"
            return await self._send(official_body(model, request, can, form), wire)
        use = self._forms.setdefault(model, _FormUse())
        for place in range(use.first(), len(FORMS)):
            form = FORMS[place]
            try:
                reply = await self._send(plain_body(model, request, can, form), wire)
            except openai.APIStatusError:
                # Any other error has another cause: the next form would only cost time.
                if wire.status not in NOT_TAKEN or form == FORMS[-1]:
                    raise
                continue
            use.answered(place, usable=_usable(reply, request))
            return replace(reply, detail=f"{FORM_IN_USE}{FORMS[use.place]}" if use.place else "")
        raise AssertionError("the last form returns or raises")

    async def _send(self, sent: dict[str, Any], wire: RequestTrace) -> VendorReply:
        sending = self._client.post(COMPLETIONS, cast_to=httpx2.Response, content=written(sent))
        return read(await exchange(sending, wire))

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


def read(answer: Mapping[str, Any]) -> VendorReply:
    """Return the reply of a completion: the words of the first choice."""
    usage = _usage(answer.get("usage"))
    choice = next(iter(items(answer.get("choices"))), None)
    if choice is None:
        return VendorReply("", "empty", usage)
    message = mapping(choice.get("message"))
    if refusal := text(message.get("refusal")):
        return VendorReply(refusal, "refusal", usage)
    stop = stop_word(VENDOR, text(choice.get("finish_reason")))
    content = message.get("content")
    parts = [text(part.get("text")) for part in items(content) if part.get("type") == "text"]
    kinds = {part.get("type") for part in items(content)}
    # Of several text parts nobody can tell which one is the answer.
    alone = len(parts) == 1 and kinds <= THOUGHTS | {"text"}
    said = parts if alone else [text(content)]
    calls = [
        mapping(call.get("function")).get("arguments") for call in items(message.get("tool_calls"))
    ]
    told = (text(message.get(name)) for name in REASONING)
    thoughts = list(dict.fromkeys(filter(None, told)))
    if not (alone or content is None or isinstance(content, str) or content == []):
        calls, thoughts = [], []  # something else was said
    return VendorReply(wire_text(said, stop, calls, thoughts), stop, usage)


def _usable(reply: VendorReply, request: Request) -> bool:
    """Tell whether a reply holds an object with the keys that were asked for.

    Of one that was cut off, or refused, its form is not to blame.
    """
    if reply.stop in UNUSABLE:
        return True
    try:
        found = opened(reply.text, None)
    except ModelUnavailable:
        return False
    return found.keys() >= set(request.schema.get("required", ()))


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

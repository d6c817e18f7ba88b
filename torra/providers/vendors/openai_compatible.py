"""OpenAI's chat completions, and every server with the same API: Ollama, llama.cpp, LM Studio.

OpenAI itself gets a strict JSON schema and the reasoning effort of the table of models. Another
server gets only what all of them know: model, messages, max_tokens and response_format. When such a
server does not take the response format, the same request is sent in the next form: json_schema,
json_object, then no format and the schema in the prompt. A form gives way to the next one too after
UNUSABLE_KEPT replies in a row that hold no object with the schema's keys. The form in use is
remembered by model; every FORM_KEPT requests the first one is tried again, so that one odd answer
does not turn the schema off for good. Each reply says in which form its model is asked now, unless
that is the first.

The SDK posts the body as it is written here: `chat.completions.create` would look through the
schema field by field and read the reply into its models on every call, and nobody looks at either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx2
import openai

from agents.contracts import ModelUnavailable, Request
from agents.texts.door import UNUSABLE, opened
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.table import FORM_IN_USE, FORMS, Form, capability, stop_word
from torra.providers.vendors.vendor import (
    Adapter,
    VendorReply,
    arguments,
    exchange,
    items,
    picture_of,
    reply_of,
    sdk_options,
    text,
)

VENDOR: Final = "openai_compatible"
DESCRIBED: Final = "Answer with one JSON object that fits this JSON schema, and with nothing else:"
NOT_TAKEN: Final = frozenset((400, 422, 501))
"""How servers answer a response format that they do not know; 404 is a model that is not there."""

REASONING: Final = ("reasoning_content", "reasoning")
"""Fields in which servers tell what a model thought; some have both."""
THOUGHTS: Final = {"thinking", "reasoning"}
"""Types of the parts of a content that are no answer."""

FORM_KEPT: Final = 50
"""Requests of a model until the first form is tried again.

A server may have learnt it, or may have refused it once for another reason.
"""
UNUSABLE_KEPT: Final = 3
"""Replies in a row of which none can be used, after which a form gives way to the next."""


@dataclass(slots=True)
class FormUse:
    """The form in which a model is asked, requests since it changed, unusable replies in a row."""

    place: int = 0
    requests: int = 0
    unusable: int = 0

    def first(self) -> int:
        """Return the place of the form to begin with."""
        self.requests += 1
        return 0 if self.requests % FORM_KEPT == 0 else self.place

    def answered(self, place: int, *, usable: bool) -> None:
        """Note which form was answered, and whether the reply can be used."""
        self.unusable = 0 if usable else self.unusable + (place == self.place)
        if place == self.place and self.unusable == UNUSABLE_KEPT:
            place = min(place + 1, len(FORMS) - 1)
        if place > self.place or (place < self.place and usable):
            self.place, self.requests, self.unusable = place, 0, 0


def connect(address: Address, http: httpx2.AsyncClient) -> Adapter:
    """Return what asks OpenAI, or the server in its place."""
    official = address.official
    uses: dict[str, FormUse] = {}
    client = openai.AsyncOpenAI(**sdk_options(address, http))

    async def send(model: str, request: Request, form: Form) -> VendorReply:
        sent = body(model, request, form, official=official)
        sending = client.post("/chat/completions", cast_to=httpx2.Response, body=sent)
        return read(await exchange(sending))

    async def ask(model: str, request: Request) -> VendorReply:
        """Ask once, in as many forms as it takes."""
        if official:
            return await send(model, request, FORMS[0])
        use = uses.setdefault(model, FormUse())
        place = use.first()
        while True:
            try:
                reply = await send(model, request, FORMS[place])
                break
            except openai.APIStatusError as error:
                # Any other error has another cause: the next form would only cost time.
                if error.status_code not in NOT_TAKEN or FORMS[place] == FORMS[-1]:
                    raise
                place += 1
        use.answered(place, usable=_is_usable(reply, request))
        return replace(reply, detail=f"{FORM_IN_USE}{FORMS[use.place]}" if use.place else "")

    return ask


def body(model: str, request: Request, form: Form, *, official: bool) -> dict[str, Any]:
    """Return the request body in `chat.completions.create`'s order.

    For any other server than OpenAI's it has nothing that one of them does not know.
    """
    can, strict, system = capability(VENDOR, model), form == "json_schema", request.system
    if not strict:
        schema = json.dumps(request.schema, separators=(",", ":"), sort_keys=True)
        system = f"{system}\n\n{DESCRIBED}\n{schema}".lstrip()
    content: str | list[dict[str, Any]] = request.user
    kind, picture = picture_of(request, can)
    if kind:
        # Low detail bounds what the picture costs (PICTURE_TOKENS).
        image = {"url": f"data:{kind};base64,{picture}", "detail": "low"}
        content = [
            {"type": "image_url", "image_url": image},
            {"type": "text", "text": request.user},
        ]
    sent: dict[str, Any] = {
        "model": model,
        "messages": [
            *([{"role": "system", "content": system}] if system else ()),
            {"role": "user", "content": content},
        ],
        "max_completion_tokens" if official else "max_tokens": request.max_output_tokens,
    }
    if official and can.effort:
        sent["reasoning_effort"] = can.effort
    if form != "prompt":
        sent["response_format"] = {"type": form}
    if strict:
        named = {"name": "reply", "strict": True, "schema": dict(request.schema)}
        sent["response_format"]["json_schema"] = named
    return sent


def read(answer: Mapping[str, Any]) -> VendorReply:
    """Return the reply of a completion: the words of the first choice."""
    choice = next(iter(items(answer.get("choices"))), None)
    if choice is None:
        return reply_of(VENDOR, answer, "empty")
    message = next(iter(items(choice.get("message"))), {})
    if refusal := text(message.get("refusal")):
        return reply_of(VENDOR, answer, "refusal", [refusal])
    stop, content = stop_word(VENDOR, text(choice.get("finish_reason"))), message.get("content")
    parts = items(content)
    texts = [part.get("text") for part in parts if part.get("type") == "text"]
    # Of several text parts nobody can tell which one is the answer.
    alone = len(texts) == 1 and {part.get("type") for part in parts} <= THOUGHTS | {"text"}
    if not (alone or content in (None, []) or isinstance(content, str)):
        return reply_of(VENDOR, answer, stop)  # there are words of another kind
    calls = arguments(items(message.get("tool_calls")), "function.arguments")
    thoughts = [*dict.fromkeys(filter(None, map(text, map(message.get, REASONING))))]
    return reply_of(VENDOR, answer, stop, texts if alone else [content], calls, thoughts)


def _is_usable(reply: VendorReply, request: Request) -> bool:
    """Tell whether a reply holds an object with the keys that were asked for.

    Of one that was cut off, or refused, its form is not to blame.
    """
    if reply.stop in UNUSABLE:
        return True
    try:
        keys = opened(reply.text, None).keys()
    except ModelUnavailable:
        return False
    return keys >= set(request.schema.get("required", ()))

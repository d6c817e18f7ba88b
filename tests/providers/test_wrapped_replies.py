"""Wrapped replies through the three real SDKs: what the wire brings is read by the same rules."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from agent_config import MODELS
from agents.contracts import Completion, ModelUnavailable
from agents.texts import door
from tests.agents.test_reply_door import OTHER, PLAIN, SYMBOL
from tests.cases import cases
from tests.doubles import scripted, vendor_line
from tests.doubles.vendor_server import ANTHROPIC, GOOGLE, OPENAI, Raw, VendorServer

OBJECT: Final = scripted.report()

Asked = Callable[[str, Any], Completion]


@pytest.fixture(scope="module")
def asked() -> Iterator[Asked]:
    """Put one request to a vendor's SDK, of which each is warmed up once."""
    with ExitStack() as opened:
        server = opened.enter_context(VendorServer())

        @functools.cache
        def line(vendor: str) -> vendor_line.Line:
            return opened.enter_context(vendor_line.line(server, vendor))

        def ask(vendor: str, entry: Any) -> Completion:
            server.play({"*": entry})
            model = MODELS[vendor]["quick"]
            return line(vendor).ask(vendor_line.a_request("technical", model))

        yield ask


def read(completion: Completion) -> dict[str, Any]:
    request = vendor_line.a_request("technical", completion.model)
    return door.answered(completion, request, SYMBOL)


def refusal(completion: Completion) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable) as caught:
        read(completion)
    return caught.value


# --- the rows of the wire -------------------------------------------------------------------------


def anthropic(*blocks: dict[str, Any], stop: str = "end_turn") -> Raw:
    usage = {"input_tokens": 10, "output_tokens": 5}
    return Raw(json.dumps({"content": blocks, "stop_reason": stop, "usage": usage}).encode())


def google(*parts: dict[str, Any], stop: str = "STOP") -> Raw:
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": stop}
    return Raw(json.dumps({"candidates": [candidate]}).encode())


def openai(*, stop: str = "stop", **message: Any) -> Raw:
    return Raw(json.dumps({"choices": [{"message": message, "finish_reason": stop}]}).encode())


def call(arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "reply", "arguments": arguments}}


def typed(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


THINKING: Final = {"type": "thinking", "thinking": OTHER}
TOOL: Final = {"type": "tool_use", "id": "t1", "name": "reply", "input": OBJECT}
FUNCTION: Final = {"functionCall": {"name": "reply", "args": OBJECT}}

READ: Final[dict[str, tuple[str, Raw]]] = {
    "anthropic, a thought and one text": (ANTHROPIC, anthropic(THINKING, typed(PLAIN))),
    "anthropic, one tool call": (ANTHROPIC, anthropic(TOOL, stop="tool_use")),
    "anthropic, a thought and one tool call": (
        ANTHROPIC,
        anthropic(THINKING, TOOL, stop="tool_use"),
    ),
    "anthropic, a text counts before a tool call": (
        ANTHROPIC,
        anthropic(typed(PLAIN), TOOL | {"input": {}}, stop="tool_use"),
    ),
    "anthropic, only a thought": (ANTHROPIC, anthropic(THINKING | {"thinking": PLAIN})),
    "google, a thought and one text": (
        GOOGLE,
        google({"text": OTHER, "thought": True}, {"text": PLAIN}),
    ),
    "google, a text in two parts": (GOOGLE, google({"text": PLAIN[:50]}, {"text": PLAIN[50:]})),
    "google, one function call": (GOOGLE, google(FUNCTION)),
    "google, a call that nobody expected": (GOOGLE, google(FUNCTION, stop="UNEXPECTED_TOOL_CALL")),
    "google, only a thought": (GOOGLE, google({"text": PLAIN, "thought": True})),
    "openai, one text part": (OPENAI, openai(content=[typed(PLAIN)])),
    "openai, thoughts and one text part": (
        OPENAI,
        openai(content=[{"type": "thinking", "thinking": [typed(OTHER)]}, typed(PLAIN)]),
    ),
    "openai, one text part in a fence": (OPENAI, openai(content=[typed(f"```json\n{PLAIN}\n```")])),
    "openai, reasoning_content": (OPENAI, openai(content="", reasoning_content=f"\n{PLAIN}\n")),
    "openai, reasoning": (OPENAI, openai(content=None, reasoning=PLAIN)),
    "openai, both": (OPENAI, openai(content=None, reasoning=PLAIN, reasoning_content=PLAIN)),
    "openai, content counts before reasoning": (
        OPENAI,
        openai(content=PLAIN, reasoning_content=OTHER),
    ),
    "openai, one tool call": (
        OPENAI,
        openai(content=None, tool_calls=[call(PLAIN)], stop="tool_calls"),
    ),
    "openai, a tool call as an object": (OPENAI, openai(content="", tool_calls=[call(OBJECT)])),
}

REFUSED: Final[dict[str, tuple[str, Raw, str]]] = {
    "anthropic, two texts": (ANTHROPIC, anthropic(typed(OTHER), typed(PLAIN)), "two objects"),
    "anthropic, two tool calls": (ANTHROPIC, anthropic(TOOL, TOOL, stop="tool_use"), "tool"),
    "anthropic, a thought that was cut off": (
        ANTHROPIC,
        anthropic(THINKING | {"thinking": PLAIN}, stop="max_tokens"),
        "length",
    ),
    "anthropic, a thought before a pause": (
        ANTHROPIC,
        anthropic(THINKING | {"thinking": PLAIN}, stop="pause_turn"),
        "paused",
    ),
    "anthropic, a draft in a thought": (
        ANTHROPIC,
        anthropic(THINKING | {"thinking": f"Perhaps {PLAIN}"}),
        "empty",
    ),
    "google, two function calls": (GOOGLE, google(FUNCTION, FUNCTION), "empty"),
    "google, a call whose arguments are cut off": (
        GOOGLE,
        google({"text": ""}, stop="MALFORMED_FUNCTION_CALL"),
        "tool",
    ),
    "google, a thought that was cut off": (
        GOOGLE,
        google({"text": PLAIN, "thought": True}, stop="MAX_TOKENS"),
        "length",
    ),
    "google, a thought that was filtered": (
        GOOGLE,
        google({"text": PLAIN, "thought": True}, stop="SAFETY"),
        "filter",
    ),
    "openai, two text parts": (OPENAI, openai(content=[typed(OTHER), typed(PLAIN)]), "empty"),
    "openai, two halves": (OPENAI, openai(content=[typed(PLAIN[:50]), typed(PLAIN[50:])]), "empty"),
    "openai, two text parts beside reasoning": (
        OPENAI,
        openai(content=[typed("No."), typed("No!")], reasoning_content=PLAIN),
        "empty",
    ),
    "openai, a refusal part beside reasoning": (
        OPENAI,
        openai(content=[{"type": "refusal", "refusal": "No."}], reasoning_content=PLAIN),
        "empty",
    ),
    "openai, two text parts beside a tool call": (
        OPENAI,
        openai(content=[typed("No."), typed("No!")], tool_calls=[call(PLAIN)], stop="tool_calls"),
        "tool",
    ),
    "openai, no text part": (OPENAI, openai(content=[{"type": "image_url"}]), "empty"),
    "openai, reasoning that was cut off": (
        OPENAI,
        openai(content="", reasoning_content=PLAIN, stop="length"),
        "length",
    ),
    "openai, a draft in reasoning": (
        OPENAI,
        openai(content="", reasoning_content=f"I might say {PLAIN}"),
        "empty",
    ),
    "openai, a thought in reasoning": (
        OPENAI,
        openai(content="", reasoning_content=f"<think>a</think>{PLAIN}"),
        "empty",
    ),
    "openai, two kinds of reasoning": (
        OPENAI,
        openai(content="", reasoning=OTHER, reasoning_content=PLAIN),
        "empty",
    ),
    "openai, two tool calls": (
        OPENAI,
        openai(content=None, tool_calls=[call(OTHER), call(PLAIN)], stop="tool_calls"),
        "tool",
    ),
    "openai, a tool call beside words": (
        OPENAI,
        openai(content="I call a tool.", tool_calls=[call(PLAIN)], stop="tool_calls"),
        "tool",
    ),
    "openai, a refusal beside an object": (OPENAI, openai(content=PLAIN, refusal="No."), "refusal"),
}


@cases("name", READ)
def test_what_the_wire_wraps_is_read(name: str, asked: Asked) -> None:
    vendor, entry = READ[name]
    assert read(asked(vendor, entry)) == OBJECT


@cases("name", REFUSED)
def test_what_the_wire_leaves_open_is_refused(name: str, asked: Asked) -> None:
    vendor, entry, detail = REFUSED[name]
    assert refusal(asked(vendor, entry)).detail == detail


@cases("vendor", [ANTHROPIC, GOOGLE])
@cases("wrong", ["NaN", "1e999", '0.1, "momentum": 0.2', '"\\ud800"'])
def test_the_object_of_a_tool_call_is_read_as_strictly(
    vendor: str, wrong: str, asked: Asked
) -> None:
    whole = anthropic(TOOL, stop="tool_use") if vendor == ANTHROPIC else google(FUNCTION)
    entry = Raw(whole.body.replace(b'"momentum": 0.1', b'"momentum": ' + wrong.encode()))
    assert entry.body != whole.body
    assert refusal(asked(vendor, entry)).reason == "garbage"

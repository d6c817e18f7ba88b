"""What comes back from the vendors through their SDKs: words, usage, and what a failure means."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any, Final, get_args

import httpx2
import pytest

from agents.contracts import Completion, ModelUnavailable
from agents.texts import door
from tests.agents.test_reply_door import OTHER, PLAIN, SYMBOL
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.vendor_bench import USAGE, VENDORS, a_request, bench, body
from tests.later import Later
from torra.providers.vendors.table import stop_word, vendors
from torra.providers.vendors.transport import MAX_REPLY_BYTES
from torra.providers.vendors.vendor import retry_after

ANTHROPIC, GOOGLE, OPENAI = VENDORS
OBJECT: Final = scripted.report()
anthropic_types, google_types, openai_types = (
    Later("anthropic.types"),
    Later("google.genai.types"),
    Later("openai.types.chat.chat_completion"),
)


def replied(vendor: str, reply: Any) -> Completion:
    """Return what a vendor's reply is read as; NaN is no JSON, and Python writes it."""
    content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    with bench(lambda _: httpx2.Response(200, content=content)) as way:
        return way.ask(vendor)


def read(completion: Completion) -> dict[str, Any]:
    return door.answered(completion, a_request(completion.model), SYMBOL)


def refusal(completion: Completion) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable) as caught:
        read(completion)
    return caught.value


# --- words ----------------------------------------------------------------------------------------


def anthropic(*blocks: dict[str, Any], stop: str = "end_turn") -> tuple[str, Any]:
    return ANTHROPIC, {"content": blocks, "stop_reason": stop}


def google(*parts: dict[str, Any], stop: str = "STOP") -> tuple[str, Any]:
    return GOOGLE, {"candidates": [{"content": {"parts": parts}, "finishReason": stop}]}


def openai(*, stop: str = "stop", **message: Any) -> tuple[str, Any]:
    return OPENAI, {"choices": [{"message": message, "finish_reason": stop}]}


def call(arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "reply", "arguments": arguments}}


def typed(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def thinking(text: str) -> dict[str, str]:
    return {"type": "thinking", "thinking": text}


def thought(text: str) -> dict[str, Any]:
    return {"text": text, "thought": True}


TOOL: Final = {"type": "tool_use", "id": "t1", "name": "reply", "input": OBJECT}
FUNCTION: Final = {"functionCall": {"name": "reply", "args": OBJECT}}

READ: Final = {
    "a thought and one text": anthropic(thinking(OTHER), typed(PLAIN)),
    "a thought and one tool call": anthropic(thinking(OTHER), TOOL, stop="tool_use"),
    "a text counts before a tool call": anthropic(typed(PLAIN), TOOL | {"input": {}}),
    "only a thought": anthropic(thinking(PLAIN)),
    "google, a thought and a text in two parts": google(
        thought(OTHER), {"text": PLAIN[:50]}, {"text": PLAIN[50:]}
    ),
    "a call that nobody expected": google(FUNCTION, stop="UNEXPECTED_TOOL_CALL"),
    "google, only a thought": google(thought(PLAIN)),
    "thoughts and one text part": openai(
        content=[{"type": "thinking", "thinking": [typed(OTHER)]}, typed(PLAIN)]
    ),
    "reasoning_content": openai(content="", reasoning_content=f"\n{PLAIN}\n"),
    "both": openai(content=None, reasoning=PLAIN, reasoning_content=PLAIN),
    "content counts before reasoning": openai(content=PLAIN, reasoning=OTHER),
    "openai, one tool call": openai(content=None, tool_calls=[call(PLAIN)], stop="tool_calls"),
    "a tool call as an object": openai(content="", tool_calls=[call(OBJECT)]),
}

REFUSED: Final = {
    "two texts": (anthropic(typed(OTHER), typed(PLAIN)), "two objects"),
    "two tool calls": (anthropic(TOOL, TOOL, stop="tool_use"), "tool"),
    "a thought that was cut off": (anthropic(thinking(PLAIN), stop="max_tokens"), "length"),
    "two thoughts": (anthropic(thinking(OTHER), thinking(PLAIN)), "empty"),
    "two function calls": (google(FUNCTION, FUNCTION), "empty"),
    "google, a broken call beside a good one": (google({"functionCall": "x"}, FUNCTION), "empty"),
    "arguments that are cut off": (google({"text": ""}, stop="MALFORMED_FUNCTION_CALL"), "tool"),
    "a thought that was filtered": (google(thought(PLAIN), stop="SAFETY"), "filter"),
    "two text parts beside reasoning": (
        openai(content=[typed("No."), typed(PLAIN)], reasoning_content=PLAIN),
        "empty",
    ),
    "a refusal part beside a tool call": (
        openai(content=[{"type": "refusal"}], tool_calls=[call(PLAIN)], stop="tool_calls"),
        "tool",
    ),
    "a draft in reasoning": (openai(content="", reasoning=f"<think>a</think>{PLAIN}"), "empty"),
    "two kinds of reasoning": (openai(reasoning=OTHER, reasoning_content=PLAIN), "empty"),
    "openai, two tool calls": (openai(tool_calls=[call(OTHER), call(PLAIN)]), "empty"),
    "openai, a broken call beside a good one": (
        openai(tool_calls=[{"type": "function"}, call(PLAIN)]),
        "empty",
    ),
    "a tool call beside words": (
        openai(content="I call a tool.", tool_calls=[call(PLAIN)], stop="tool_calls"),
        "tool",
    ),
    "a refusal beside an object": (openai(content=PLAIN, refusal="No."), "refusal"),
}


@cases("reply", READ.values(), ids=READ)
def test_what_the_wire_wraps_is_read(reply: tuple[str, Any]) -> None:
    assert read(replied(*reply)) == OBJECT


@cases(("reply", "detail"), REFUSED.values(), ids=REFUSED)
def test_what_the_wire_leaves_open_is_refused(reply: tuple[str, Any], detail: str) -> None:
    assert refusal(replied(*reply)).detail == detail


@cases("reply", [anthropic(TOOL, stop="tool_use"), google(FUNCTION)])
@cases("wrong", ["NaN", "1e999", '0.1, "momentum": 0.2', '"\\ud800"'])
def test_the_object_of_a_tool_call_is_read_as_strictly(reply: tuple[str, Any], wrong: str) -> None:
    vendor, whole = reply[0], json.dumps(reply[1])
    broken = whole.replace('"momentum": 0.1', f'"momentum": {wrong}').encode()
    assert broken != whole.encode()
    assert refusal(replied(vendor, broken)).reason == "garbage"


@cases("vendor", VENDORS)
@cases("text", ["", "no JSON", "{}", "\u2028\u00e9\U0001f4c8", "x" * 200_000])
def test_text_comes_back_as_it_was(vendor: str, text: str) -> None:
    completion = replied(vendor, body(vendor, text))
    assert (completion.text, completion.stop_reason) == (text, "end")


@cases("vendor", VENDORS)
@cases(
    "odd", [{}, {"content": 7, "candidates": 7, "choices": 7}, {"choices": [7, None]}, {"usage": 7}]
)
def test_a_reply_without_words_is_an_empty_one(vendor: str, odd: Any) -> None:
    assert replied(vendor, odd).text == ""


# --- why a reply ended ----------------------------------------------------------------------------

STOPS: Final = [
    (vendor, word, ours)
    for vendor in VENDORS
    for ours, words in vendors()[vendor].stops.items()
    for word in words.split()
]


@cases(
    ("vendor", "documented"),
    [
        (ANTHROPIC, lambda: get_args(anthropic_types.StopReason)),
        (GOOGLE, lambda: [reason.value for reason in google_types.FinishReason]),
        (OPENAI, lambda: get_args(openai_types.Choice.model_fields["finish_reason"].annotation)),
    ],
)
def test_every_word_of_the_sdk_has_one_row(vendor: str, documented: Any) -> None:
    words, known = set(documented()), [word for name, word, _ in STOPS if name == vendor]
    assert len(known) == len(set(known)) and words <= set(known)
    assert vendor == OPENAI or words == set(known), "a word that the vendor has no more"


@cases(
    ("vendor", "word", "ours"), [*STOPS, *((vendor, "sk-canary", "other") for vendor in VENDORS)]
)
def test_how_a_reply_ended_is_our_word(vendor: str, word: str, ours: str) -> None:
    """One that nobody documents is not kept."""
    completion = replied(vendor, body(vendor, PLAIN, word))
    assert (completion.stop_reason, completion.text) == (ours, PLAIN)
    assert "sk-canary" not in repr(completion) and stop_word(vendor, "") == "end"
    if ours in {"end", *door.ODD, "empty"}:
        assert read(completion) == OBJECT
    else:
        assert refusal(completion).detail == ours
    silent = refusal(replied(vendor, body(vendor, "", word)))
    assert silent.detail == ("empty" if ours == "end" else ours)


def test_every_reason_for_which_google_blocks_a_prompt_is_the_filter() -> None:
    for reason in google_types.BlockedReason:
        blocked = {"candidates": [], "promptFeedback": {"blockReason": reason.value}}
        assert replied(GOOGLE, body(GOOGLE) | blocked).stop_reason == "filter"


def test_odd_counts_cost_the_worst_and_details_that_are_none_keep_the_count() -> None:
    for tokens, odd, usd in ((9, "odd", 23.0), ("many", "odd", 1000.0), ([7], "odd", 1000.0),
                             (9, {"cached_tokens": True}, 1000.0)):  # fmt: skip
        usage = {"prompt_tokens": tokens, "completion_tokens": 7, "prompt_tokens_details": odd}
        assert replied(OPENAI, body(OPENAI, usage=usage)).cost_usd == usd
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
    assert replied(GOOGLE, blocked | {"usageMetadata": {"promptTokenCount": 9}}).cost_usd == 9.0


# --- what a failure means -------------------------------------------------------------------------

NO_CREDIT: Final = {"error": {"message": "Your credit balance is too low to access the API."}}
NO_QUOTA: Final = {"error": {"code": "insufficient_quota", "type": "insufficient_quota"}}
BAD_KEY: Final = {"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}}


def quota(span: str, *details: Any) -> dict[str, Any]:
    violation = {"quotaId": f"GenerateRequestsPer{span}PerProjectPerModel"}
    return {"error": {"code": 429, "details": [{"violations": [violation]}, *details]}}


RETRY_INFO: Final = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "13s"}
REFUSALS: Final = [
    *((401, vendor, {}, "401: the key was refused") for vendor in VENDORS),
    *((402, vendor, {}, "402: the account has no credit") for vendor in VENDORS),
    *((403, vendor, {}, "403: the key may not do this") for vendor in VENDORS),
    (400, ANTHROPIC, NO_CREDIT, "400: the account has no credit"),
    (400, GOOGLE, BAD_KEY, "400: the key was refused"),
    (429, GOOGLE, quota("Day", RETRY_INFO), "429: the day's quota is used up"),
    (429, OPENAI, NO_QUOTA, "429: the account's quota is used up"),
    # What a reply quotes blocks nobody.
    (422, OPENAI, {"error": {"message": "your prompt: hit by insufficient_quota error"}}, "422"),
    (404, OPENAI, "<html>insufficient_quota</html>", "404"),
    (400, ANTHROPIC, {"error": {"message": "no"}, "prompt": "usage limits raised"}, "400"),
    (400, GOOGLE, {"error": {"message": "api_key_invalid, says the headline"}}, "400"),
    (429, GOOGLE, {**quota("Minute", RETRY_INFO), "help": "limits#perday"}, "429"),
]


@cases(("status", "vendor", "reply", "detail"), REFUSALS)
def test_an_account_that_cannot_be_asked_is_blocked(
    status: int, vendor: str, reply: Any, detail: str
) -> None:
    with bench(lambda _: httpx2.Response(status, json=reply)) as way:
        error = way.failure(vendor)
        blocked = detail != str(status)
        assert (error.reason, error.detail) == ("error", detail)
        assert error.again is None or not blocked
        assert way.clients.blocked() == ({vendor: detail} if blocked else {})
        assert len(way.sent) == 1


DATE: Final = {"date": "Mon, 05 Jan 2026 10:00:00 GMT"}


@cases(
    ("header", "seconds", "date"),
    [
        ("Mon, 05 Jan 2026 10:00:30 GMT", 30, DATE),
        ("Mon, 05 Jan 2026 09:00:00 GMT", 0, DATE),
        ("Mon, 05 Jan 2026 10:00:30 GMT", 0, {}),  # long past
        ("Mon Jan  5 10:00:30 2026", 30, DATE),
        ("Mon, 05 Jan 2026 10:00:10 -0000", 10, DATE),
        ("Mon, 05 Jan 2026 10:00:30 GMT", 0, {"date": "yesterday"}),
        ("Mon, 99 Jan 2026 10:00:30 GMT", 0.5, {}),
        *((word, 0.5, {}) for word in ("soon", "-3", "nan", "inf", "")),
        ("4294967295", 4294967295, {}),
    ],
)
def test_when_a_busy_vendor_wants_to_be_asked_again(
    header: str, seconds: float, date: dict[str, str]
) -> None:
    assert retry_after({"retry-after": header, **date}, {}) == seconds
    assert retry_after({"retry-after": "Mon, 05 Jan 2099 10:00:30 GMT"}, {}) > 1e9
    assert retry_after({}, quota("Minute", RETRY_INFO)) == 13.0


class Chunks(httpx2.AsyncByteStream):
    """A body that comes in pieces."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    async def __aiter__(self):
        for start in range(0, max(1, len(self._raw)), 65_536):
            yield self._raw[start : start + 65_536]


def status(code: int, **headers: str) -> httpx2.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(code, headers=names, json={})


def raw(content: bytes, encoding: str = "", code: int = 200) -> httpx2.Response:
    return httpx2.Response(code, stream=Chunks(content), headers={"content-encoding": encoding})


NOTHING: Final = "the reply is no JSON object"
FAILURES: Final = [
    *((lambda code=code: status(code), "error", str(code), None, False)
      for code in (307, 400, 404, 413, 422)),
    *((lambda code=code: status(code), "error", str(code), 0.5, True)
      for code in (408, 500, 502, 520, 524)),
    (lambda: status(529), "error", "529", 0.5, False),
    (lambda: status(429, retry_after="7"), "error", "429", 7.0, False),
    (lambda: status(429, retry_after="0"), "error", "429", 0.0, False),
    (lambda: status(429, retry_after_ms="250", retry_after="1"), "error", "429", 0.25, False),
    (lambda: status(504, retry_after="1"), "error", "504", 1.0, True),
    (lambda: status(503, retry_after="2.5"), "error", "503", 2.5, False),
    (lambda: raw(b"[" * 100_000), "garbage", NOTHING, 0.5, True),
    (lambda: raw(b"\xff\xfe"), "garbage", NOTHING, 0.5, True),
    (lambda: raw(b" " * (MAX_REPLY_BYTES + 1)), "garbage", "the reply is too long", None, True),
    (lambda: raw(gzip.compress(b" " * 50_000_000, 1), "gzip"), "garbage", "the reply is too long",
     None, True),
    (lambda: raw(b"not gzip", "gzip"), "error", "the reply cannot be read", 0.5, True),
    (lambda: raw(b" " * 3_000_000, code=413), "error", "413", None, False),
    (httpx2.ConnectError("canary"), "error", "no connection", 0.2, False),
    (httpx2.ConnectTimeout("x"), "error", "no connection", 0.2, False),
    (httpx2.ReadError("canary"), "error", "the connection broke", 0.5, True),
    (httpx2.RemoteProtocolError("x"), "error", "the connection broke", 0.5, True),
    (ZeroDivisionError("canary"), "error", "Error", None, True),
]  # fmt: skip
"""What a vendor does, and the failure: its reason, detail, when to ask again, and the bill."""


@cases("vendor", VENDORS)
@cases(("answer", "reason", "detail", "again", "billed"), FAILURES)
def test_a_failure_says_whether_to_ask_again_and_whether_it_is_billed(
    vendor: str, answer: Any, reason: str, detail: str, again: float | None, billed: bool
) -> None:
    def answered(_: httpx2.Request) -> httpx2.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer()

    with bench(answered) as way:
        error = way.failure(vendor)
        assert (error.reason, error.again, error.billed) == (reason, again, billed)
        assert error.detail.endswith(detail) and "canary" not in str(error)
        assert not way.clients.blocked() and len(way.sent) == 1


@cases(("squeeze", "encoding"), [(gzip.compress, "gzip"), (zlib.compress, "deflate")])
def test_a_compressed_reply_is_read(squeeze: Any, encoding: str) -> None:
    content = squeeze(json.dumps(body("anthropic", "{}")).encode())
    with bench(lambda _: raw(content, encoding)) as way:
        assert way.ask("anthropic").output_tokens == USAGE["output"]

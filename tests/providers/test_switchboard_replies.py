"""What comes back from the vendors, and what a failure of one means."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any, Final

import httpx2
import pytest

from agents.contracts import Completion
from tests.cases import cases
from tests.doubles.switchboards import (
    USAGE,
    VENDORS,
    bench,
    body,
)
from torra.providers.vendors.transport import MAX_REPLY_BYTES
from torra.providers.vendors.vendor import retry_after

# What comes back


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_server_that_counts_nothing_costs_the_worst_case(vendor: str) -> None:
    without = {"usage": None, "usageMetadata": None}
    with bench(lambda request: httpx2.Response(200, json=body(vendor) | without)) as way:
        assert way.ask(vendor).cost_usd == 1000.0


ODD: Final = ("many", -1, 0, 1.5, True, None, [7], {"n": 7}, float("nan"), 10**15)


@cases("odd", ODD)
@cases("name", ["prompt_tokens", "completion_tokens"])
def test_an_odd_count_makes_the_whole_count_unknown(name: str, odd: Any) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 7, name: odd}
    found = counted(body("openai_compatible", usage=usage))
    assert (found.input_tokens, found.output_tokens, found.cost_usd) == (0, 0, 1000.0)


@cases("odd", [*(odd for odd in ODD if odd not in (0, None)), 10])
@cases("name", ["cached_tokens", "cache_write_tokens"])
def test_no_part_of_the_input_is_larger_than_it_and_none_is_odd(name: str, odd: Any) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 7, "prompt_tokens_details": {name: odd}}
    found = counted(body("openai_compatible", usage=usage))
    assert (found.input_tokens, found.cached_tokens, found.cost_usd) == (0, 0, 1000.0)


def test_details_that_are_none_say_nothing_of_the_count() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 7, "prompt_tokens_details": "odd"}
    found = counted(body("openai_compatible", usage=usage))
    assert (found.input_tokens, found.output_tokens, found.cached_tokens) == (9, 7, 0)


def test_a_prompt_that_was_refused_has_no_tokens_of_output() -> None:
    refused = body("google") | {
        "candidates": [],
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 9},
    }
    with bench(lambda request: httpx2.Response(200, json=refused)) as way:
        found = way.ask("google")
    assert (found.stop_reason, found.input_tokens, found.cost_usd) == ("filter", 9, 9.0)


def counted(payload: Any) -> Completion:
    said = json.dumps(payload).encode()  # as it may come: NaN is no JSON, and Python reads it
    with bench(lambda request: httpx2.Response(200, content=said)) as way:
        return way.ask("openai_compatible")


@cases("vendor", VENDORS)
@cases(
    "odd", [{}, {"content": 7, "candidates": 7, "choices": 7}, {"choices": [7, None]}, {"usage": 7}]
)
def test_a_reply_without_words_is_an_empty_one(vendor: str, odd: dict[Any, Any]) -> None:
    with bench(lambda _: httpx2.Response(200, json=odd)) as way:
        assert way.ask(vendor).text == ""


# What a failure means

RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "13s"}
DAILY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}
MINUTELY = {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]}


def google_error(*details: Any) -> dict[str, Any]:
    return {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": list(details)}}


FAILURES = [
    # status, headers, body, vendors, detail, again, blocks
    (401, {}, {}, VENDORS, "401: the key was refused", None, True),
    (402, {}, {}, VENDORS, "402: the account has no credit", None, True),
    (403, {}, {}, VENDORS, "403: the key may not do this", None, True),
    (400, {}, {}, VENDORS, "400", None, False),
    (404, {}, {}, VENDORS, "404", None, False),
    (413, {}, {}, VENDORS, "413", None, False),
    (422, {}, {}, VENDORS, "422", None, False),
    (307, {"location": "https://example.com"}, {}, VENDORS, "307", None, False),
    (408, {}, {}, VENDORS, "408", 0.5, False),
    (429, {}, {}, VENDORS, "429", 0.5, False),
    (429, {"retry-after": "7"}, {}, VENDORS, "429", 7.0, False),
    (429, {"retry-after": "0"}, {}, VENDORS, "429", 0.0, False),
    (429, {"retry-after-ms": "250", "retry-after": "1"}, {}, VENDORS, "429", 0.25, False),
    (500, {}, {}, VENDORS, "500", 0.5, False),
    (502, {}, {}, VENDORS, "502", 0.5, False),
    (504, {"retry-after": "1"}, {}, VENDORS, "504", 1.0, False),
    (520, {}, {}, VENDORS, "520", 0.5, False),
    (524, {}, {}, VENDORS, "524", 0.5, False),
    (503, {"retry-after": "2.5"}, {}, VENDORS, "503", 2.5, False),
    (529, {}, {}, VENDORS, "529", 0.5, False),
    (
        429,
        {},
        {"error": {"code": "insufficient_quota", "type": "insufficient_quota"}},
        ("openai_compatible",),
        "429: the account's quota is used up",
        None,
        True,
    ),
    (429, {}, google_error(DAILY), ("google",), "429: the day's quota is used up", None, True),
    (429, {}, google_error(MINUTELY, RETRY_INFO), ("google",), "429", 13.0, False),
    (
        400,
        {},
        {"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}},
        ("google",),
        "400: the key was refused",
        None,
        True,
    ),
    (
        400,
        {},
        {"error": {"message": "Your credit balance is too low to access the API."}},
        ("anthropic",),
        "400: the account has no credit",
        None,
        True,
    ),
]
MAY_BE_BILLED = {408, 500, 502, 504, 520, 524}
"""The vendor, or a proxy before it, broke off: what it had begun may be billed."""

CASES = [(vendor, *row[:3], *row[4:]) for row in FAILURES for vendor in row[3]]


@cases(("vendor", "status", "headers", "answer", "detail", "again", "blocks"), CASES)
def test_an_error_of_a_vendor(
    vendor: str,
    status: int,
    headers: dict[Any, Any],
    answer: dict[Any, Any],
    detail: str,
    again: float | None,
    blocks: bool,
) -> None:
    response = httpx2.Response(status, headers=headers, json=answer)
    with bench(lambda _: response) as way:
        error = way.failure(vendor)
        assert (error.reason, error.detail) == ("error", detail)
        assert error.again == again
        assert error.billed is (status in MAY_BE_BILLED)
        assert way.switchboard.blocked() == ({vendor: detail} if blocks else {})
        assert len(way.sent) == 1


DATE = {"date": "Mon, 05 Jan 2026 10:00:00 GMT"}


@cases(
    ("headers", "seconds"),
    [
        ({"retry-after": "Mon, 05 Jan 2026 10:00:30 GMT", **DATE}, 30),
        ({"retry-after": "Mon, 05 Jan 2026 09:00:00 GMT", **DATE}, 0),
        ({"retry-after": "Mon, 05 Jan 2026 10:00:30 GMT"}, 0),  # long past
        ({"retry-after": "soon"}, 0.5),
        ({"retry-after": "-3"}, 0.5),
        ({"retry-after": "nan"}, 0.5),
        ({"retry-after": "inf"}, 0.5),
        ({"retry-after": "4294967295"}, 4294967295),
        ({"retry-after": "Mon, 99 Jan 2026 10:00:30 GMT"}, 0.5),
        ({}, 0.5),
    ],
)  # fmt: skip
def test_when_a_busy_vendor_wants_to_be_asked_again(
    headers: dict[Any, Any], seconds: float
) -> None:
    assert retry_after(headers, {}) == seconds


def test_a_date_without_the_reply_s_own_counts_from_now() -> None:
    assert retry_after({"retry-after": "Mon, 05 Jan 2099 10:00:30 GMT"}, {}) > 1e9


RAW = [
    (b"{", {}, "garbage", 0.5),
    (b"", {}, "garbage", 0.5),
    (b"[]", {}, "garbage", 0.5),
    (b"<html>", {"content-type": "text/html"}, "garbage", 0.5),
    (b"[" * 100_000, {}, "garbage", 0.5),
    (b"\xff\xfe", {}, "garbage", 0.5),
    (b" " * (MAX_REPLY_BYTES + 1), {}, "garbage", None),
    (gzip.compress(b" " * 50_000_000, 1, mtime=0), {"content-encoding": "gzip"}, "garbage", None),
    (b"not gzip", {"content-encoding": "gzip"}, "error", 0.5),
    (b"what", {"content-encoding": "br"}, "error", 0.5),
]


@cases("vendor", VENDORS)
@cases(("raw", "headers", "reason", "again"), RAW, ids=[str(row[0][:10]) for row in RAW])
def test_a_reply_that_cannot_be_read(
    vendor: str, raw: bytes, headers: dict[Any, Any], reason: str, again: float | None
) -> None:
    with bench(lambda _: httpx2.Response(200, stream=Chunks(raw), headers=headers)) as way:
        error = way.failure(vendor)
        assert (error.reason, error.again, error.billed) == (reason, again, True)
        assert len(way.sent) == 1


@pytest.mark.parametrize("squeeze", [gzip.compress, zlib.compress])
def test_a_compressed_reply_is_read(squeeze: Callable[..., Any]) -> None:
    encoding = {"content-encoding": "gzip" if squeeze is gzip.compress else "deflate"}
    raw = squeeze(json.dumps(body("anthropic", "{}")).encode())
    with bench(lambda _: httpx2.Response(200, stream=Chunks(raw), headers=encoding)) as way:
        assert way.ask("anthropic").output_tokens == USAGE["output"]


def test_a_refusal_with_an_endless_body_is_still_a_refusal() -> None:
    with bench(lambda _: httpx2.Response(401, stream=Chunks(b" " * 3_000_000))) as way:
        assert way.failure("anthropic").detail == "401: the key was refused"


BROKEN = [
    (httpx2.ConnectError("canary-anthropic"), "no connection", 0.2, False),
    (httpx2.ConnectTimeout("x"), "no connection", 0.2, False),
    (httpx2.ReadError("canary-anthropic"), "the connection broke", 0.5, True),
    (httpx2.RemoteProtocolError("x"), "the connection broke", 0.5, True),
    (httpx2.WriteError("x"), "the connection broke", 0.5, True),
    (ZeroDivisionError("canary-anthropic"), "", None, True),
]


@pytest.mark.journey
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("raised", "detail", "again", "billed"), BROKEN, ids=[type(row[0]).__name__ for row in BROKEN]
)
def test_a_connection_that_fails(
    vendor: str, raised: Any, detail: str, again: float | None, billed: bool
) -> None:
    def answer(request: httpx2.Request) -> None:
        raise raised

    with bench(answer) as way:
        error = way.failure(vendor)
        assert (error.reason, error.again, error.billed) == ("error", again, billed)
        assert error.detail == detail or (not detail and error.detail.endswith("Error"))
        assert "canary" not in str(error)
        assert len(way.sent) == 1


class Chunks(httpx2.AsyncByteStream):
    """A body that comes in pieces."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    async def __aiter__(self):
        for start in range(0, max(1, len(self._raw)), 65_536):
            yield self._raw[start : start + 65_536]

"""The way out to the vendors: what is sent, what comes back, and what a failure means."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
import pytest

import scoring_rubric
from agents.contracts import JPEG, PNG, Completion, ModelUnavailable
from tests import ROOT
from tests.doubles.switchboards import (
    KEYS,
    MODEL,
    USAGE,
    VENDORS,
    a_request,
    bench,
    body,
    close_all,
    good,
    vendor_of,
)
from tests.tries import Tries, until
from torra.providers.vendors import switchboard as module
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.event_loop import EventLoop
from torra.providers.vendors.openai_compatible import FORM_KEPT, unfenced
from torra.providers.vendors.switchboard import Switchboard
from torra.providers.vendors.transport import MAX_REPLY_BYTES, ReplyUnreadable, WireGuard
from torra.providers.vendors.vendor import VendorFault, picture_type, retry_after
from torra.providers.vendors.wire import CURRENT, Wire

LOCAL = {"TORRA_OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}


@pytest.fixture(scope="module", autouse=True)
def _closed_at_the_end() -> Iterator[None]:
    yield
    close_all()


# What comes back


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_answer_comes_back_with_its_tokens_and_its_price(vendor: str) -> None:
    with bench() as way:
        assert way.ask(vendor) == Completion(
            text="{}",
            model=MODEL.get(vendor, "gpt-6-luna"),
            provider=vendor,
            input_tokens=USAGE["input"],
            output_tokens=USAGE["output"],
            cost_usd=USAGE["input"] + 2.0 * USAGE["output"],
            stop_reason="end",
            cached_tokens=0,
        )
        assert len(way.sent) == 1


def test_all_input_is_counted_with_the_part_that_a_cache_took_or_gave() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        usage = {
            "input_tokens": 10,
            "cache_read_input_tokens": 70,
            "cache_creation_input_tokens": 20,
            "output_tokens": 5,
        }
        return httpx2.Response(200, json=body("anthropic", usage=usage))

    with bench(answer) as way:
        found = way.ask("anthropic")
    assert (found.input_tokens, found.cached_tokens, found.output_tokens) == (100, 70, 5)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_server_that_counts_nothing_costs_the_worst_case(vendor: str) -> None:
    without = {"usage": None, "usageMetadata": None}
    with bench(lambda request: httpx2.Response(200, json=body(vendor) | without)) as way:
        assert way.ask(vendor).cost_usd == 1000.0


@pytest.mark.parametrize("odd", ["many", -1, 1.5, True, None, [7], {"n": 7}])
def test_an_odd_count_is_none(odd: Any) -> None:
    usage = {"prompt_tokens": odd, "completion_tokens": 7, "prompt_tokens_details": odd}
    answer = httpx2.Response(200, json=body("openai_compatible", usage=usage))
    with bench(lambda request: answer) as way:
        found = way.ask("openai_compatible")
    assert (found.input_tokens, found.output_tokens, found.cached_tokens) == (0, 7, 0)


STOPS = [
    ("anthropic", "end_turn", "end"),
    ("anthropic", "stop_sequence", "end"),
    ("anthropic", "max_tokens", "length"),
    ("anthropic", "model_context_window_exceeded", "length"),
    ("anthropic", "refusal", "refusal"),
    ("anthropic", "pause_turn", "pause_turn"),
    ("google", "STOP", "end"),
    ("google", "MAX_TOKENS", "length"),
    ("google", "SAFETY", "filter"),
    ("google", "PROHIBITED_CONTENT", "filter"),
    ("google", "MALFORMED_RESPONSE", "malformed_response"),
    ("google", "NEVER_HEARD_OF", "never_heard_of"),
    ("openai_compatible", "stop", "end"),
    ("openai_compatible", "length", "length"),
    ("openai_compatible", "content_filter", "filter"),
    ("openai_compatible", "tool_calls", "tool_calls"),
]


@pytest.mark.parametrize(("vendor", "said", "meant"), STOPS)
def test_how_a_reply_ended_is_told_in_our_words_with_its_tokens(
    vendor: str, said: str, meant: str
) -> None:
    with bench(lambda request: httpx2.Response(200, json=body(vendor, "{", said))) as way:
        found = way.ask(vendor)
    assert found.stop_reason == meant
    assert found.text == "{"
    assert found.output_tokens == USAGE["output"]


def test_a_refusal_and_a_prompt_that_is_filtered_keep_their_tokens() -> None:
    refusal = {"choices": [{"message": {"content": None, "refusal": "No."}}]}
    with bench(lambda _: httpx2.Response(200, json=body("openai_compatible") | refusal)) as way:
        found = way.ask("openai_compatible")
    assert (found.stop_reason, found.text, found.input_tokens) == ("refusal", "No.", 100)
    blocked = {"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}}
    with bench(lambda _: httpx2.Response(200, json=body("google") | blocked)) as way:
        found = way.ask("google")
    assert (found.stop_reason, found.text, found.input_tokens) == ("filter", "", 100)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("vendor", "status", "headers", "answer", "detail", "again", "blocks"), CASES
)
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


@pytest.mark.parametrize(
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
    (gzip.compress(b" " * 50_000_000, mtime=0), {"content-encoding": "gzip"}, "garbage", None),
    (b"not gzip", {"content-encoding": "gzip"}, "error", 0.5),
    (b"what", {"content-encoding": "br"}, "error", 0.5),
]


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("raw", "headers", "reason", "again"), RAW, ids=[str(row[0][:10]) for row in RAW]
)
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


# Time


def test_a_call_ends_at_its_limit_and_counts_as_billed(tries: Tries) -> None:
    async def never(request: httpx2.Request) -> Any:
        await asyncio.sleep(60)

    with bench(never) as way:
        warm(way.switchboard)
        for vendor in VENDORS:
            for attempt in tries():
                started = time.monotonic()
                error = way.failure(vendor, limit_s=0.2)
                took = time.monotonic() - started
                assert error.reason == "timeout"
                with attempt:
                    assert error.billed and took < 1.0


@contextmanager
def dripping(byte_every: float) -> Iterator[str]:
    """Serve a reply that comes a byte at a time, on a real socket."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                line, _ = listener.accept()
                threading.Thread(target=drip, args=(line,), daemon=True).start()

    def drip(line: socket.socket) -> None:
        with suppress(OSError), line:
            line.recv(65_536)
            line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n")
            while not stop.wait(byte_every):
                line.sendall(b" ")

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        server.join(5)


def warm(way: Switchboard, vendors=VENDORS) -> None:
    way.warm(vendors)
    for vendor in vendors:
        way._adapters[vendor].result(timeout=60)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_reply_that_drips_is_stopped_at_the_limit_in_real_time(vendor: str, tries: Tries) -> None:
    word = {"anthropic": "ANTHROPIC", "google": "GOOGLE"}.get(vendor, "OPENAI")
    for attempt in tries():
        with (
            dripping(0.05) as url,
            bench(environment={f"TORRA_{word}_BASE_URL": url}, transport=None) as way,
        ):
            warm(way.switchboard, (vendor,))
            started = time.monotonic()
            error = way.failure(vendor, limit_s=1.5)
            took = time.monotonic() - started
        assert (error.reason, error.billed, error.again) == ("timeout", True, None)
        with attempt:
            assert isinstance(error, VendorFault), "the call's own limit, not the loop's"
            assert 1.4 < took < 2.4


def test_nobody_there_is_no_connection_in_real_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with bench(environment={"TORRA_ANTHROPIC_BASE_URL": url}, transport=None) as way:
        error = way.failure("anthropic")
    assert (error.detail, error.again, error.billed) == ("no connection", 0.2, False)


def test_the_wait_before_a_second_attempt_is_part_of_its_limit() -> None:
    with bench() as way:
        warm(way.switchboard, ("anthropic",))
        error = way.failure("anthropic", limit_s=0.1, delay_s=5.0)
        assert (error.reason, error.detail) == ("timeout", "not sent in time")
        assert error.billed is False
        assert way.sent == []
        started = time.monotonic()
        way.ask("anthropic", limit_s=5.0, delay_s=0.15)
        assert 0.15 <= time.monotonic() - started < 4.0


def test_a_request_never_blocks_and_waits_for_its_vendor_within_its_limit(
    monkeypatch: pytest.MonkeyPatch, tries: Tries
) -> None:
    built = Switchboard._built
    for attempt in tries():
        gate = threading.Event()

        def slowly(self, vendor, gate=gate):
            gate.wait(30)
            return built(self, vendor)

        monkeypatch.setattr(Switchboard, "_built", slowly)
        with bench(fresh=True) as way:
            provider = way.provider("anthropic")
            started = time.monotonic()
            early = provider.submit(a_request(MODEL["anthropic"], limit_s=1.0))
            patient = provider.submit(a_request(MODEL["anthropic"], limit_s=30.0))
            took = time.monotonic() - started
            try:
                error = early.exception(timeout=5)
                assert isinstance(error, ModelUnavailable)
                assert error.reason == "timeout"
                assert not patient.done()
            finally:
                gate.set()
            assert patient.result(timeout=30).text == "{}"
        with attempt:
            assert took < 0.9 and not error.billed


def test_a_vendor_whose_client_cannot_be_built_fails_with_the_type_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(vendor: str, place: Any, http: Any) -> None:
        raise ImportError(f"canary {place.key}")

    monkeypatch.setattr(module, "_open", broken)
    with bench(fresh=True) as way:
        error = way.failure("anthropic")
    assert error.detail == "the client could not be built: ImportError"


def test_a_client_that_could_not_be_built_is_told_and_tried_again_once_a_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened, tries = module._open, []

    def broken_twice(vendor: str, place: Any, http: Any) -> Any:
        tries.append(vendor)
        if len(tries) < 3:
            raise ImportError(f"canary {place.key}")
        return opened(vendor, place, http)

    monkeypatch.setattr(module, "_open", broken_twice)
    with bench(fresh=True) as way:
        way.switchboard.warm(("google",))
        until(lambda: "the client of google could not be built: ImportError" in caplog.text)
        assert way.failure("google").detail == "the client could not be built: ImportError"
        assert len(tries) == 1, "the request was told what the warm-up met"
        assert way.failure("google").billed is False
        assert len(tries) == 2
        assert way.ask("google").text == "{}"
        assert way.ask("google").text == "{}"
    assert len(tries) == 3
    assert "canary" not in caplog.text


@pytest.mark.parametrize("late", ["delay", "warm-up"])
def test_a_request_is_not_sent_when_its_stage_is_over(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = Switchboard._built

    def slowly(self: Any, vendor: str) -> Any:
        time.sleep(0.4)
        return built(self, vendor)

    with bench(fresh=True) as way:
        if late == "warm-up":
            monkeypatch.setattr(Switchboard, "_built", slowly)
        else:
            warm(way.switchboard, ("anthropic",))
        delay_s = 0.3 if late == "delay" else 0.0
        error = way.failure("anthropic", limit_s=0.2, linger_s=10.0, delay_s=delay_s)
        assert (error.reason, error.detail) == ("timeout", "not sent in time")
        assert (error.again, error.billed) == (None, False)
        assert way.sent == []
        assert way.ask("anthropic", limit_s=5.0, linger_s=10.0).text == "{}"
    assert error.billed is False


def test_a_job_that_does_not_stop_is_left_behind(tries: Tries) -> None:
    loop = EventLoop()
    release = threading.Event()

    async def stubborn(until: float) -> str:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return "late"

    try:
        for attempt in tries():
            started = time.monotonic()
            error = loop.submit(stubborn, 0.2).exception(timeout=30)
            took = time.monotonic() - started
            assert isinstance(error, ModelUnavailable)
            assert error.reason == "timeout"
            with attempt:
                assert 0.2 <= took < 1.5
    finally:
        release.set()
        loop.close(nothing)


async def nothing() -> None:
    pass


def test_a_job_that_breaks_ends_as_an_error_with_its_type_alone() -> None:
    loop = EventLoop()

    async def breaks(until: float) -> str:
        raise KeyError("canary")

    error = loop.submit(breaks, 1.0).exception(timeout=5)
    loop.close(nothing)
    assert isinstance(error, ModelUnavailable)
    assert (error.reason, error.detail) == ("error", "KeyError")


def test_a_future_that_its_caller_cancels_ends_the_call() -> None:
    ended = threading.Event()

    async def never(request: httpx2.Request) -> Any:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with bench(never) as way:
        warm(way.switchboard, ("anthropic",))
        future = way.provider("anthropic").submit(a_request(MODEL["anthropic"]))
        until(lambda: way.sent)
        assert future.cancel()
        assert ended.wait(5)


# Blocks


def test_a_vendor_that_refused_is_not_asked_for_an_hour_and_it_is_told_once() -> None:
    told: list[tuple[str, str, float]] = []
    now = [0.0]
    with bench(
        lambda request: httpx2.Response(401) if now[0] < 3600 else good(request),
        on_block=lambda *block: told.append(block),
        monotonic=lambda: now[0],
    ) as way:
        way.failure("anthropic")
        for _ in range(3):
            error = way.failure("anthropic")
            assert (error.reason, error.detail) == ("blocked", "401: the key was refused")
            assert (error.again, error.billed) == (None, False)
        assert way.asked() == ["anthropic"]
        assert way.switchboard.blocked() == {"anthropic": "401: the key was refused"}
        until(lambda: told)
        assert told == [("anthropic", "401: the key was refused", 3600.0)]
        now[0] = 3599.0
        assert way.failure("anthropic").reason == "blocked"
        now[0] = 3600.0
        assert way.ask("anthropic").text == "{}"


def test_two_refusals_at_once_are_told_once() -> None:
    told: list[str] = []

    async def slowly_refused(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0.1)
        return httpx2.Response(403)

    with bench(slowly_refused, on_block=lambda vendor, *_: told.append(vendor)) as way:
        warm(way.switchboard, ("google",))
        provider = way.provider("google")
        futures = [provider.submit(a_request(MODEL["google"])) for _ in range(5)]
        assert all(future.exception(timeout=10) for future in futures)
        assert len(way.sent) == 5
        until(lambda: told)
        assert told == ["google"]


def test_a_block_can_be_lifted_and_set_again_after_a_restart() -> None:
    told: list[object] = []
    with bench(on_block=lambda *block: told.append(block)) as way:
        way.switchboard.block("google", "401: the key was refused", 10.0)
        assert way.failure("google").reason == "blocked"
        assert way.ask("anthropic").text == "{}"
        way.switchboard.unblock("google")
        way.switchboard.unblock("google")
        assert way.ask("google").text == "{}"
        assert told == []


def test_a_block_that_comes_during_the_wait_before_a_second_attempt_holds() -> None:
    with bench() as way:
        warm(way.switchboard, ("anthropic",))
        future = way.provider().submit(a_request(MODEL["anthropic"], delay_s=0.2))
        way.switchboard.block("anthropic", "402: the account has no credit")
        error = future.exception(timeout=10)
        assert isinstance(error, ModelUnavailable)
        assert error.reason == "blocked"
        assert way.sent == []


def test_a_block_that_cannot_be_stored_holds_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*block: Any) -> None:
        raise OSError("canary")

    with bench(lambda _: httpx2.Response(402), on_block=broken) as way:
        way.failure("anthropic")
        until(lambda: "could not be stored" in caplog.text)
        assert way.failure("anthropic").reason == "blocked"
    assert "canary" not in caplog.text


# Closing


def test_closing_ends_what_runs_and_refuses_what_comes() -> None:
    async def never(request: httpx2.Request) -> Any:
        await asyncio.sleep(60)

    with bench(never, fresh=True) as way:
        warm(way.switchboard)
        provider = way.provider()
        futures = [provider.submit(a_request(MODEL["anthropic"])) for _ in range(20)]
        until(lambda: len(way.sent) == 20)
        started = time.monotonic()
        way.switchboard.close()
        assert time.monotonic() - started < 2.5
        for future in [*futures, provider.submit(a_request(MODEL["anthropic"]))]:
            error = future.exception(timeout=1)
            assert isinstance(error, ModelUnavailable)
            assert (error.reason, error.detail, error.again) == ("error", "closed", None)
        assert way.switchboard._loop._thread not in threading.enumerate()
        way.switchboard.close()


def test_nothing_runs_before_it_is_needed() -> None:
    before = threading.active_count()
    Switchboard({}, prices=None).close()
    Switchboard({}, prices=None)
    assert threading.active_count() == before


def test_a_name_that_is_looked_up_for_long_does_not_hold_up_the_end_of_the_process() -> None:
    code = """
import asyncio, socket, time
from torra.providers.vendors.event_loop import EventLoop
socket.getaddrinfo = lambda *args, **named: time.sleep(60)

async def look_up(until):
    await asyncio.wait_for(asyncio.get_running_loop().getaddrinfo("example.com", 443), 0.2)

loop = EventLoop()
print(repr(loop.submit(look_up, 5.0).exception(timeout=10)))

async def nothing():
    pass

loop.close(nothing)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, timeout=20, check=True, capture_output=True
    )
    assert b"TimeoutError" in found.stdout


def test_what_a_look_up_finds_or_raises_comes_back() -> None:
    loop = EventLoop()

    async def look_up(until):
        return await asyncio.get_running_loop().getaddrinfo("127.0.0.1", "nonsense")

    async def work(until):
        return await asyncio.to_thread(sum, (1, 2))

    async def nothing() -> None:
        pass

    assert loop.submit(work, 5.0).result(timeout=10) == 3
    error = loop.submit(look_up, 5.0).exception(timeout=10)
    assert isinstance(error, ModelUnavailable) and error.detail == "gaierror"
    loop.close(nothing)


# What reaches the wire


@pytest.mark.parametrize("vendor", VENDORS)
def test_only_our_headers_and_our_key_are_sent(
    vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS"):
        lines = "X-Evil: 1\nAuthorization: Bearer evil\nUser-Agent: evil\nanthropic-version: 1\n"
        monkeypatch.setenv(name, lines + "x-goog-api-key: evil\nHost: evil.example.com")
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "canary-of-the-process")
    monkeypatch.setenv("OPENAI_ORG_ID", "evil")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://evil.example.com")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://evil.example.com")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "https://evil.example.com")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    with bench(fresh=True) as way:
        way.ask(vendor)
    headers = dict(way.sent[0].headers)
    key = {"x-goog-api-key": "canary-google"}
    if vendor != "google":
        name = "anthropic" if vendor == "anthropic" else "openai"
        key = {"authorization": f"Bearer canary-{name}"}
    if vendor == "anthropic":
        key["anthropic-version"] = "2026-10-21"
    assert headers.pop("content-length").isdigit()
    assert headers.pop("host") == way.switchboard.address(vendor).origin[1]
    assert headers == key | {
        "accept": "application/json",
        "accept-encoding": "gzip, deflate",
        "content-type": "application/json",
        "user-agent": "torra",
    }
    assert "evil" not in str(way.sent[0].url)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_path_in_the_address_is_kept(vendor: str) -> None:
    word = {"anthropic": "ANTHROPIC", "google": "GOOGLE"}.get(vendor, "OPENAI")
    url = "https://Models.Example.com:443/gate/way"
    with bench(environment={f"TORRA_{word}_BASE_URL": url}) as way:
        assert way.ask(vendor).text == "{}"
    assert way.sent[0].url.path.startswith("/gate/way/")
    assert way.sent[0].url.host == "models.example.com"


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_redirect_is_not_followed_and_no_cookie_kept(vendor: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {"location": "https://evil.example.com/", "set-cookie": "a=b"}
        return httpx2.Response(307, headers=headers)

    with bench(answer) as way:
        assert way.failure(vendor).detail == "307"
        assert way.failure(vendor).detail == "307"
    assert [request.url.host for request in way.sent] == [way.sent[0].url.host] * 2
    assert "cookie" not in way.sent[1].headers


def test_the_guard_sends_nothing_elsewhere_and_nothing_on_its_own() -> None:
    async def go(url: str, wire: Wire | None) -> str:
        async def inner(request: httpx2.Request) -> httpx2.Response:
            raise AssertionError("sent")

        if wire:
            CURRENT.set(wire)
        try:
            guard = WireGuard(httpx2.MockTransport(inner))
            await guard.handle_async_request(httpx2.Request("POST", url))
        except (ReplyUnreadable, LookupError) as error:
            return type(error).__name__
        return "sent"

    place = Address("anthropic", "https://api.example.com/v1", "k", official=False, local=False)
    for url in (
        "https://evil.example.com/v1/messages",
        "http://api.example.com/v1/messages",
        "https://api.example.com:8443/v1/messages",
        "https://api.example.com/v2/messages",
        "https://api.example.com/v1x/messages",
    ):
        assert asyncio.run(go(url, Wire(place, 0.0))) == "ReplyUnreadable"
    assert asyncio.run(go("https://api.example.com/v1/messages", None)) == "LookupError"


@pytest.mark.parametrize("vendor", VENDORS)
def test_no_key_is_in_a_log_or_an_exception(
    vendor: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_LOG", "debug")
    monkeypatch.setenv("OPENAI_LOG", "debug")
    caplog.set_level(logging.DEBUG)
    key = next(value for value in KEYS.values() if vendor.split("_", maxsplit=1)[0] in value)
    answers = iter([httpx2.Response(500, text=key), httpx2.Response(200, text=key)])
    with bench(
        lambda request: next(answers, None) or httpx2.Response(401, text=key), fresh=True
    ) as way:
        errors = [way.failure(vendor) for _ in range(4)]
        shown = repr(way.switchboard) + repr(vars(way.switchboard).get("_adapters"))
    assert "canary" not in caplog.text + shown
    for error in errors:
        assert "canary" not in f"{error}{error!r}{error.detail}{error.__cause__!r}"
    assert not [row for row in caplog.records if "://" in row.getMessage()]


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_key_that_a_server_quotes_is_not_kept(vendor: str) -> None:
    key = next(value for value in KEYS.values() if vendor.split("_", maxsplit=1)[0] in value)
    quoting = body(vendor, f"Your key is {key}.", f"bad_{key}")
    with bench(lambda _: httpx2.Response(200, json=quoting)) as way:
        found = way.ask(vendor)
    assert found.text == "Your key is [key]."
    assert found.stop_reason.lower() == "bad_[key]"


def test_the_libraries_are_quiet_below_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("anthropic", "httpx2"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.DEBUG)
    with bench(fresh=True) as way:
        warm(way.switchboard)
        for name in ("anthropic", "openai", "google_genai", "httpx2", "httpcore2"):
            assert logging.getLogger(f"{name}.any").getEffectiveLevel() >= logging.WARNING


def test_a_model_that_an_sdk_warns_of_is_asked_all_the_same() -> None:
    with bench(fresh=True) as way:  # warnings are errors here
        assert way.ask("anthropic", "claude-sonnet-4-5").text == "{}"


def test_what_all_roles_share_is_marked_for_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring_rubric, "SHARED_PREFIX", "Shared.\n", raising=False)
    with bench() as way:
        way.ask("anthropic", system="Shared.\nYou are the analyst.")
        way.ask("anthropic", system="Something else.")
        way.ask("anthropic", system="Shared.\n")
    cached = {"type": "text", "text": "Shared.\n", "cache_control": {"type": "ephemeral"}}
    assert [sent["system"] for sent in way.bodies()] == [
        [cached, {"type": "text", "text": "You are the analyst."}],
        [{"type": "text", "text": "Something else."}],
        [cached],
    ]


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_picture_is_sent_to_a_model_that_sees_and_only_if_it_is_one(vendor: str) -> None:
    model = {"openai_compatible": "gpt-6-luna"} | MODEL
    with bench() as way:
        way.ask(vendor, model[vendor], picture=PNG + b"1")
        way.ask(vendor, model[vendor], picture=JPEG + b"1")
        way.ask(vendor, model[vendor], picture=b"GIF89a")
        way.ask(vendor, model[vendor])
    sent = [str(sent) for sent in way.bodies()]
    assert ["image/png" in text for text in sent] == [True, False, False, False]
    assert ["image/jpeg" in text for text in sent] == [False, True, False, False]
    assert all("What do you see?" in text for text in sent)


def test_a_model_that_does_not_see_gets_no_picture() -> None:
    with bench() as way:
        way.ask("openai_compatible", "gpt-6.1-terra", picture=PNG + b"1")
    assert way.bodies()[0]["messages"][1]["content"] == "What do you see?"


def test_a_picture_is_known_by_its_first_bytes() -> None:
    assert picture_type(PNG) == "image/png"
    assert picture_type(JPEG + b"\xe0") == "image/jpeg"
    assert picture_type(b"") == picture_type(None) == picture_type(b"<svg/>") == ""


@pytest.mark.parametrize("vendor", VENDORS)
def test_no_temperature_is_sent(vendor: str) -> None:
    with bench() as way:
        way.ask(vendor)
        way.ask(vendor, "made-up")
    for sent in way.bodies():
        text = json.dumps(sent).lower()
        assert not any(word in text for word in ("temperature", "top_p", "topp", "top_k", "topk"))


# Servers in OpenAI's place


def picky(*taken: str, status: int = 400):
    """Return a server that takes some response formats only."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        form = json.loads(request.content).get("response_format", {}).get("type", "prompt")
        return good(request) if form in taken else httpx2.Response(status, json={"error": "what?"})

    return answer


@pytest.mark.parametrize("status", [400, 422, 501])
@pytest.mark.parametrize(
    ("taken", "first"),
    [
        (("json_schema", "json_object", "prompt"), ["json_schema"]),
        (("json_object", "prompt"), ["json_schema", "json_object"]),
        (("prompt",), ["json_schema", "json_object", "prompt"]),
    ],
)
def test_a_server_is_asked_in_the_form_that_it_takes_which_is_remembered(
    taken: tuple[Any, ...], first: list[str], status: int
) -> None:
    with bench(picky(*taken, status=status), LOCAL) as way:
        assert way.ask("openai_compatible", "llama3:8b").text == "{}"
        assert way.ask("openai_compatible", "llama3:8b").text == "{}"
        assert way.ask("openai_compatible", "qwen").text == "{}"
    forms = [sent.get("response_format", {}).get("type", "prompt") for sent in way.bodies()]
    assert forms == [*first, first[-1], *first]
    for sent, form in zip(way.bodies(), forms, strict=True):
        assert set(sent) <= {"model", "messages", "max_tokens", "response_format"}
        assert ("additionalProperties" in sent["messages"][0]["content"]) == (form != "json_schema")


def test_one_odd_refusal_does_not_turn_the_schema_off_for_good() -> None:
    odd = iter([True])

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(400) if next(odd, False) else good(request)

    with bench(answer, LOCAL) as way:
        for _ in range(FORM_KEPT + 2):
            way.ask("openai_compatible", "m")
    forms = [sent.get("response_format", {}).get("type") for sent in way.bodies()]
    assert forms[:2] == ["json_schema", "json_object"]
    assert forms[2:-2] == ["json_object"] * (FORM_KEPT - 1)
    assert forms[-2:] == ["json_schema"] * 2


def test_a_server_that_takes_no_form_is_an_error_and_nothing_is_remembered() -> None:
    with bench(picky(status=422), LOCAL) as way:
        assert way.failure("openai_compatible", "m").detail == "422"
        assert way.failure("openai_compatible", "m").again is None
    assert len(way.sent) == 6


@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_another_error_is_no_reason_for_another_form(status: int) -> None:
    with bench(picky(status=status), LOCAL) as way:
        way.failure("openai_compatible", "m")
    assert len(way.sent) == 1


def test_openai_itself_is_asked_in_one_form_only() -> None:
    with bench(picky("prompt")) as way:
        assert way.failure("openai_compatible").detail == "400"
    assert len(way.sent) == 1


def test_the_other_forms_share_the_time_of_one_request(tries: Tries) -> None:
    async def slowly(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0.15)
        return httpx2.Response(400)

    for attempt in tries():
        with bench(slowly, LOCAL) as way:
            warm(way.switchboard, ("openai_compatible",))
            started = time.monotonic()
            assert way.failure("openai_compatible", "m", limit_s=0.25).reason == "timeout"
            took = time.monotonic() - started
        assert len(way.sent) <= 2
        with attempt:
            assert len(way.sent) == 2 and took < 1.0


def test_a_local_answer_is_free_and_has_no_key() -> None:
    with bench(environment=LOCAL | KEYS) as way:
        found = way.ask("openai_compatible", "llama3:8b")
    assert (found.cost_usd, found.input_tokens) == (0.0, USAGE["input"])
    assert way.sent[0].headers["authorization"] == "Bearer local"


FENCED = '```json\n{"a": 1}\n```'


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (FENCED, '{"a": 1}'),
        ("  ```\n{}\n```\n", "{}"),
        ("```JSON\r\n{}\r\n```", "{}"),
        ("```json\n{}```", "{}"),
        ("Here it is:\n```json\n{}\n```", "Here it is:\n```json\n{}\n```"),
        ("```json\n{}\n```\nI hope that helps.", "```json\n{}\n```\nI hope that helps."),
        ("```\n{}\n```\n```\n{}\n```", "```\n{}\n```\n```\n{}\n```"),
        ("{}", "{}"),
        ("", ""),
        ("```", "```"),
        ("``````", "``````"),
    ],
)
def test_a_reply_that_is_one_fence_is_unwrapped(said: str, read: str) -> None:
    assert unfenced(said) == read


@pytest.mark.parametrize("form", ["json_schema", "json_object", "prompt"])
def test_a_fence_is_unwrapped_only_where_no_schema_held(form: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        taken = picky(form)(request)
        if taken.status_code != 200:
            return taken
        return httpx2.Response(200, json=body("openai_compatible", FENCED))

    with bench(answer, LOCAL) as way:
        text = way.ask("openai_compatible", "m").text
    assert text == (FENCED if form == "json_schema" else '{"a": 1}')


# Where it is imported, and how it ends


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


LAZY = """
import sys
from agent_config import AgentSettings
from torra.providers.prices import PriceList
from torra.providers.registry import open_provider
from torra.providers.vendors.switchboard import Switchboard
heavy = ("anthropic", "openai", "google.genai", "httpx2", "genai_prices")
open_provider(AgentSettings()).close()
assert not [name for name in heavy if name in sys.modules], sys.modules.keys() & set(heavy)
way = Switchboard({"OPENAI_API_KEY": "k"}, prices=PriceList())
provider = open_provider(AgentSettings(provider="openai_compatible"), way)
way._adapters["openai_compatible"].result(timeout=60)
assert "openai" in sys.modules
assert not [name for name in heavy[:1] + heavy[2:3] if name in sys.modules]
"""


def test_only_the_sdk_of_the_chosen_vendor_is_imported_and_nothing_keeps_the_process() -> None:
    done = run(LAZY)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


HANGING = """
import socket, threading
from agent_config import AgentSettings
from tests.doubles.switchboards import Prices, a_request
from torra.providers.registry import open_provider
from torra.providers.vendors.switchboard import Switchboard
listener = socket.create_server(("127.0.0.1", 0))
place = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
way = Switchboard({"TORRA_OPENAI_BASE_URL": place}, prices=Prices())
provider = open_provider(AgentSettings(provider="openai_compatible"), way)
future = provider.submit(a_request("m", limit_s=300.0))
listener.accept()[0].recv(100)
listener.close()
"""


def test_a_call_that_hangs_does_not_keep_the_process() -> None:
    started = time.monotonic()
    done = run(HANGING)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 60


def test_a_fault_is_a_model_that_is_unavailable() -> None:
    assert isinstance(VendorFault("error", "x", again=None, billed=False), ModelUnavailable)
    assert vendor_of(httpx2.Request("POST", "https://x/v1/messages")) == "anthropic"

"""What goes over the wire to each vendor, and what is read back, through real SDKs.

The bodies are those of tests/golden/bytes_vendors.py.

The server refuses what the vendors refuse (tests.doubles.vendor_rules): an unknown field, a
sampling parameter, a schema with an optional property, a thinking switch that a model does not
have.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final, NamedTuple, cast

import pytest

from agent_config import MODELS
from agents.contracts import Completion, ModelUnavailable, Request
from tests.cases import cases
from tests.conftest import Scale
from tests.doubles import vendor_line
from tests.doubles.vendor_server import (
    ANTHROPIC,
    GOOGLE,
    HONEST,
    OPENAI,
    USAGE,
    VENDORS,
    Exchange,
    Hang,
    Late,
    Reply,
    Usage,
    VendorServer,
)
from tests.tries import Tries

SENT_HEADERS: Final = {
    "host", "accept", "accept-encoding", "connection", "content-type", "content-length",
    "user-agent", "authorization", "anthropic-version", "x-goog-api-key", "x-goog-api-client",
}  # fmt: skip
"""Every header that may leave the process."""


class Booth(NamedTuple):
    """A server and a warm line to it."""

    server: VendorServer
    line: vendor_line.Line

    def asked(self, request: Request, entry: Any = HONEST) -> tuple[Completion, Exchange]:
        """Put one request and return its answer and the only HTTP request that it made."""
        self.server.play({"*": entry})
        if request.model == MODELS[OPENAI]["quick"]:
            adapter: Any = self.line.clients._adapters[OPENAI].result(timeout=60)
            adapter._forms.clear()  # a server that gave unusable replies is asked in other forms
        completion = self.line.ask(request)
        (exchange,) = self.server.exchanges
        assert exchange.refused == ""
        return completion, exchange


Booths = Callable[..., Booth]


@pytest.fixture(scope="module")
def booth() -> Iterator[Booths]:
    """Open a line to a vendor, once: to the server, or as if to the vendor's own address."""
    with ExitStack() as opened:

        @functools.cache
        def find(vendor: str, *, official: bool = False) -> Booth:
            server = opened.enter_context(VendorServer())
            make = vendor_line.official if official else vendor_line.line
            return Booth(server, opened.enter_context(make(server, vendor)))

        yield find


def a_request(vendor: str, role: str = "technical", **changes: Any) -> Request:
    return vendor_line.a_request(role, MODELS[vendor]["quick"], **changes)


# --- the headers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("vendor", VENDORS)
def test_headers_are_ours_and_the_key_stands_in_one_place(vendor: str, booth: Booths) -> None:
    _, exchange = booth(vendor).asked(a_request(vendor))
    key = vendor_line.CUSTOM[vendor]
    assert set(exchange.headers) <= SENT_HEADERS
    name, value = {
        ANTHROPIC: ("authorization", f"Bearer {key}"),
        GOOGLE: ("x-goog-api-key", key),
        OPENAI: ("authorization", f"Bearer {key}"),
    }[vendor]
    assert exchange.headers[name] == value
    assert [at for at, said in exchange.headers.items() if key in said] == [name]
    assert key not in exchange.path + json.dumps(exchange.body)
    assert "?" not in exchange.path
    versions = [said for at, said in exchange.headers.items() if at == "anthropic-version"]
    assert versions == (["2026-10-21"] if vendor == ANTHROPIC else [])


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_vendor_itself_gets_its_key_over_its_own_address(vendor: str, booth: Booths) -> None:
    completion, exchange = booth(vendor, official=True).asked(a_request(vendor))
    key = vendor_line.REAL[vendor]
    header = "x-goog-api-key" if vendor == GOOGLE else "authorization"
    assert exchange.headers[header].removeprefix("Bearer ") == key
    assert completion.cost_usd > 0


# --- what is read back ----------------------------------------------------------------------------

COST: Final = {
    ANTHROPIC: (700 * 0.10 + 100 * 0.125 + 200 * 0.01 + 120 * 0.50) / 1e6,
    GOOGLE: (800 * 0.30 + 200 * 0.03 + 120 * 2.50) / 1e6,
    OPENAI: (700 * 0.10 + 100 * 0.125 + 200 * 0.01 + 120 * 0.50) / 1e6,
}
"""USD of one honest reply of the quick models: fresh, written and cached input, and output."""


@pytest.mark.parametrize("vendor", VENDORS)
def test_tokens_stop_reason_and_cost_are_read(vendor: str, booth: Booths) -> None:
    request = a_request(vendor)
    found, _ = booth(vendor, official=True).asked(request)
    assert (found.input_tokens, found.cached_tokens) == (USAGE.input, USAGE.cached)
    assert found.output_tokens == USAGE.output
    assert (found.stop_reason, found.model, found.provider) == ("end", request.model, vendor)
    assert found.cost_usd == pytest.approx(COST[vendor], rel=1e-9)


def test_a_model_on_this_machine_costs_nothing(booth: Booths) -> None:
    found, _ = booth(OPENAI).asked(a_request(OPENAI))
    assert (found.input_tokens, found.cost_usd) == (USAGE.input, 0.0)


STOPS: Final = [
    ("length", {"length"}),
    ("refusal", {"refusal", "filter"}),
    ("filter", {"refusal", "filter"}),
    ("prompt", {"refusal", "filter"}),
]


@cases(("stop", "told"), STOPS, ids=[stop for stop, _ in STOPS])
@cases("vendor", VENDORS)
def test_a_reply_of_no_use_still_brings_its_usage(
    vendor: str, stop: str, told: set[str], booth: Booths
) -> None:
    found, _ = booth(vendor).asked(a_request(vendor), Reply(stop=stop))
    assert found.stop_reason in told
    assert (found.input_tokens, found.output_tokens) == (USAGE.input, USAGE.output)
    assert (found.cost_usd > 0) == (vendor != OPENAI)


@pytest.mark.journey
@cases("vendor", VENDORS)
@cases("text", ["", "no JSON", "{}", "\u2028\u00e9\U0001f4c8", "x" * 200_000])
def test_text_comes_back_as_it_was(vendor: str, text: str, booth: Booths) -> None:
    found, _ = booth(vendor).asked(a_request(vendor), Reply(text=text))
    assert (found.text, found.stop_reason) == (text, "end")


LIES: Final = {
    "nothing": Usage(0, 0, 0, 0, 0),
    "10^15 in": Usage(input=10**15),
    "10^15 out": Usage(output=10**15),
    "less than nothing": Usage(input=-1000, output=-120),
    "more than the cap": Usage(output=2_000),
    "more from a cache than there is": Usage(input=100),
    "no number": Usage(input=cast(int, float("nan"))),
    "half a token": Usage(output=cast(int, 120.5)),
}


@cases("lie", LIES.values(), ids=LIES)
@cases("vendor", VENDORS)
def test_a_count_that_cannot_be_costs_the_worst_case(
    vendor: str, lie: Usage, booth: Booths
) -> None:
    request = a_request(vendor)
    there = booth(vendor, official=True)
    found, _ = there.asked(request, Reply(usage=lie))
    assert json.loads(found.text)
    assert (found.input_tokens, found.output_tokens, found.cached_tokens) == (0, 0, 0)
    size = len(f"{request.system}{request.user}".encode())
    assert found.cost_usd == vendor_line.prices().worst_case(
        vendor, request.model, prompt_bytes=size, output_tokens=request.max_output_tokens
    )


# --- one request ----------------------------------------------------------------------------------


@pytest.mark.journey
@pytest.mark.parametrize("vendor", VENDORS)
def test_the_limit_of_a_request_holds_and_its_pause_is_kept(
    vendor: str, booth: Booths, tries: Tries
) -> None:
    server, line = booth(vendor)
    for attempt in tries():
        with attempt:
            server.play({"*": [HONEST, Hang()]})
            began = time.monotonic()
            line.ask(a_request(vendor, delay_s=0.4, attempt=2))
            assert server.exchanges[0].at - began >= 0.4
            began = time.monotonic()
            with pytest.raises(ModelUnavailable) as failed:
                line.ask(a_request(vendor, limit_s=0.3))
            assert 0.25 <= time.monotonic() - began <= 0.3 + 0.3
            assert (failed.value.reason, failed.value.again) == ("timeout", None)
            assert failed.value.billed


@pytest.mark.journey
@pytest.mark.parametrize("vendor", VENDORS)
def test_requests_go_out_at_once_and_connections_are_kept(
    vendor: str, tries: Tries, scaled: Scale
) -> None:
    """Eight one after the other would take longer than all of them may."""
    late = 0.5 if scaled.whole else 0.3
    for attempt in tries():
        with (
            attempt,
            VendorServer({"*": Late(late)}) as server,
            vendor_line.line(server, vendor) as line,
        ):
            for _ in range(2):
                began = time.monotonic()
                futures = [line.provider.submit(a_request(vendor)) for _ in range(8)]
                assert time.monotonic() - began <= 0.8 * late, "submit does not wait for an answer"
                assert all(future.result(timeout=10).text for future in futures)
                assert time.monotonic() - began <= 2.0
            assert len(server.exchanges) == 16
            assert server.connections == 8


def test_a_local_server_without_usage_is_fine(booth: Booths) -> None:
    found, _ = booth(OPENAI).asked(a_request(OPENAI), Reply(usage=None))
    assert (found.input_tokens, found.output_tokens, found.cost_usd) == (0, 0, 0.0)

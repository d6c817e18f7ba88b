"""What goes over the wire to each vendor, and what is read back, through real SDKs.

Bodies and headers are those of tests/golden/bytes_vendors.py. The server refuses what the vendors
refuse (tests.doubles.vendor_rules): an unknown field, a sampling parameter, a schema with an
optional property, a thinking switch that a model does not have.
"""

from __future__ import annotations

import json
import time
from typing import Final, cast

import pytest

from agent_config import MODELS
from agents.contracts import Completion, Request
from tests.cases import cases
from tests.conftest import Scale
from tests.doubles import vendor_line
from tests.doubles.vendor_server import (
    GOOGLE,
    OPENAI,
    USAGE,
    VENDORS,
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


def a_request(vendor: str, **changes: float) -> Request:
    return vendor_line.a_request("technical", MODELS[vendor]["quick"], **changes)


@pytest.mark.parametrize("vendor", VENDORS)
def test_headers_are_ours_and_the_key_stands_in_one_place(vendor: str) -> None:
    """A host that is not the vendor's never sees the vendor's key."""
    with VendorServer() as server:
        bare = vendor_line.environment(server, custom=False)
        lines = (
            vendor_line.line(server, vendor),
            vendor_line.official(server, vendor),
            vendor_line.Line(bare, vendor_line.agents(vendor)),
        )
        own, paid, _ = [line.ask(a_request(vendor)) for line in lines]
        for line in lines:
            line.close()
    name = "x-goog-api-key" if vendor == GOOGLE else "authorization"
    keys = vendor_line.CUSTOM[vendor], vendor_line.REAL[vendor], "local"
    for exchange, key in zip(server.exchanges, keys, strict=True):
        assert set(exchange.headers) <= SENT_HEADERS and not exchange.refused
        assert exchange.headers[name].removeprefix("Bearer ") == key
        sent = json.dumps([exchange.headers, exchange.path, exchange.body])
        canaries = [canary for canary in vendor_line.CANARIES for _ in range(sent.count(canary))]
        assert canaries == [key] * (key != "local") and "?" not in exchange.path
    for completion in (own, paid):
        assert (completion.input_tokens, completion.cached_tokens) == (USAGE.input, USAGE.cached)
        assert (completion.output_tokens, completion.stop_reason) == (USAGE.output, "end")
    assert paid.cost_usd > 0 and (own.cost_usd > 0) == (vendor != OPENAI), "one's own is free"


LIES: Final = {
    "nothing": Usage(0, 0, 0, 0, 0),
    "10^15 in": Usage(input=10**15),
    "10^15 out": Usage(output=10**15),
    "less than nothing": Usage(input=-1000, output=-120),
    "more than the cap": Usage(output=2_000),
    "more from a cache than there is": Usage(input=100),
    "no number": Usage(input=cast(int, float("nan"))),
    "half a token": Usage(output=cast(int, 120.5)),
    "nobody counts": None,
}


@cases("vendor", VENDORS)
def test_a_count_that_cannot_be_costs_the_worst_case(vendor: str) -> None:
    request = a_request(vendor)
    size = len(f"{request.system}{request.user}".encode())
    worst = vendor_line.prices().worst_case(
        vendor, request.model, prompt_bytes=size, output_tokens=request.max_output_tokens
    )
    with VendorServer() as server, vendor_line.official(server, vendor) as line:
        for name, lie in LIES.items():
            server.play({"*": Reply(usage=lie)})
            completion: Completion = line.ask(request)
            assert json.loads(completion.text)
            assert (completion.input_tokens, completion.output_tokens) == (0, 0), name
            assert (completion.cached_tokens, completion.cost_usd) == (0, worst), name


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

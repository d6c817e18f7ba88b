"""Every fault of every vendor at every stage: the tick ends in time and its row is right.

The faults come from a loopback server and pass through the real SDKs. Before each change every
fault at one vendor and one stage, in turn, half of them by day, and all of them at night: what each
vendor's client makes of each fault is in tests/providers/test_vendor_replies.py.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from agents.debate import debate as agent_stages
from tests.conftest import scale_of
from tests.doubles import vendor_line
from tests.doubles.vendor_server import (
    HONEST,
    OPENAI,
    QUOTA,
    USAGE,
    VENDORS,
    Drip,
    Exchange,
    Hang,
    Huge,
    Late,
    Raw,
    Redirect,
    Reply,
    Reset,
    Status,
    Truncated,
    VendorServer,
)
from tests.tries import Tries, until
from tests.worlds import vendor_desk
from torra.providers.registry import open_provider

STAGES: Final = {
    "analysts": ("technical",),
    "research": ("bull_researcher", "bear_researcher"),
    "gate": ("risk_gate",),
    "fallback": ("chart_scorer",),
}
OVER: Final = 0.5
"""Seconds that a tick may end after its deadline."""


@dataclass(frozen=True)
class Fault:
    """What the server does, and what must then be stored about the call.

    `tries` is how often an agent asks while the fault lasts; `stops` are the stop reasons that may
    be stored when a completion came back; `blocks` means that the vendor is asked no more.
    """

    entry: Any
    status: tuple[str, ...]
    tries: int = 1
    stops: tuple[str, ...] = ()
    blocks: bool = False
    seconds: float = 12.0

    @property
    def completed(self) -> bool:
        """Whether usage and stop reason came back with it."""
        return bool(self.stops)


BAD_HTTP: Final = ("error", "garbage")
NO_USE: Final = ("refusal", "filter")
SCHEMALESS: Final = Reply(changes={"confidence": 7, "momentum": "up"})

FAULTS: Final[dict[str, Fault]] = {
    "hang": Fault(Hang(), ("timeout",), seconds=3.0),
    "slow_drip": Fault(Drip(), ("timeout",), seconds=3.0),
    "reset": Fault(Reset(), ("error",), tries=2),
    "reset_midway": Fault(Reset(midway=True), BAD_HTTP, tries=2),
    "401": Fault(Status(401), ("error",), blocks=True),
    "403": Fault(Status(403), ("error",), blocks=True),
    "quota": Fault(QUOTA, ("error",), blocks=True),
    "404": Fault(Status(404), ("error",)),
    "429": Fault(Status(429), ("error",), tries=2),
    "429_retry_after_1": Fault(Status(429, retry_after="1"), ("error",), tries=2),
    "429_retry_after_600": Fault(Status(429, retry_after="600"), ("error",)),
    "429_retry_after_nonsense": Fault(Status(429, retry_after="soon"), ("error",), tries=2),
    "500": Fault(Status(500), ("error",), tries=2),
    "529": Fault(Status(529), ("error",), tries=2),
    "redirect": Fault(Redirect("http://127.0.0.1:9"), ("error",)),
    "truncated_body": Fault(Truncated(), BAD_HTTP, tries=2),
    "malformed_json": Fault(Raw(b'{"id": "msg_01", '), BAD_HTTP, tries=2),
    "html": Fault(Raw(b"<html>Bad gateway</html>", "text/html"), BAD_HTTP, tries=2),
    "no_bytes": Fault(Raw(b""), BAD_HTTP, tries=2),
    "no_object": Fault(Raw(b"[1, 2]"), BAD_HTTP, tries=2),
    "malformed_text": Fault(Reply(text='{"symbol": "EURUSD", '), ("garbage",), 2, ("end",)),
    "schema_violation": Fault(SCHEMALESS, ("garbage",), 2, ("end",)),
    "two_objects": Fault(Reply(text='{"symbol": "X"}{"symbol": "Y"}'), ("garbage",), 2, ("end",)),
    "empty": Fault(Reply(text=""), ("garbage",), 2, ("end",)),
    "cut_off": Fault(Reply(stop="length"), ("garbage",), 2, ("length",)),
    "refusal": Fault(Reply(stop="refusal"), ("refused",), 1, NO_USE),
    "filter": Fault(Reply(stop="filter"), ("refused",), 1, NO_USE),
    "prompt_blocked": Fault(Reply(stop="prompt"), ("refused",), 1, NO_USE),
    "wrong_symbol": Fault(Reply(changes={"symbol": "XAUUSD"}), ("wrong_symbol",), 1, ("end",)),
    "10_mb": Fault(Huge(), ("garbage",)),
    "10_mb_chunked": Fault(Huge("chunked"), ("garbage",)),
    "10_mb_gzip": Fault(Huge("gzip"), ("garbage",)),
}


class Case(NamedTuple):
    fault: str
    vendor: str
    stage: str

    def __str__(self) -> str:
        return "-".join(self)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """At night all cases, before a change each fault at one vendor and one stage, in turn."""
    if "case" not in metafunc.fixturenames:
        return
    every = [Case(*names) for names in itertools.product(FAULTS, VENDORS, STAGES)]
    if scale_of(metafunc.config) < 1.0:
        turns = zip(FAULTS, itertools.cycle(VENDORS), itertools.cycle(STAGES), strict=False)
        every = [Case(*names) for names in turns]
    metafunc.parametrize("case", every, ids=str)


Lines = Callable[[str], tuple[VendorServer, vendor_line.Line]]


@pytest.fixture(scope="module")
def lines() -> Iterator[Lines]:
    """Return a server and a warm line to it, by vendor."""
    with ExitStack() as opened:

        @functools.cache
        def open_line(vendor: str) -> tuple[VendorServer, vendor_line.Line]:
            server = opened.enter_context(VendorServer())
            return server, opened.enter_context(vendor_line.line(server, vendor))

        yield open_line


def source_of(case: Case) -> str:
    """Return who must stand behind the row while this fault lasts."""
    down = case.stage == "analysts" and FAULTS[case.fault].blocks
    return "L1_ONLY" if case.stage == "fallback" or down else "AGENT_PARTIAL"


@pytest.mark.by_day(8)
@pytest.mark.by_day(16)
def test_the_row_is_right_and_the_tick_ends_in_time(
    case: Case, lines: Lines, tmp_path: Path, tries: Tries
) -> None:
    fault, (server, line) = FAULTS[case.fault], lines(case.vendor)
    script = {case.stage: fault.entry[case.vendor] if fault.entry is QUOTA else fault.entry}
    if case.stage == "fallback":
        script |= dict.fromkeys(("analysts", "research"), Reply(stop="refusal"))
    settings = vendor_line.agents(case.vendor, timeout_seconds=fault.seconds)
    provider = open_provider(settings, line.clients)
    for attempt in tries():
        exchanges = server.play(script).exchanges
        line.clients.block(case.vendor, "", 0.0)
        ticked = vendor_desk.tick(attempt.folder(tmp_path), provider, settings)
        vendor_desk.check_stored(ticked)
        assert not [exchange.refused for exchange in exchanges if exchange.refused]
        assert {exchange.vendor for exchange in exchanges} <= {case.vendor}
        assert len(exchanges) <= len(ticked.calls)
        with attempt:
            assert ticked.elapsed <= fault.seconds + OVER
            assert ticked.row["source_type"] == source_of(case)
            for role in STAGES[case.stage]:
                check_failed(case, ticked, role)
            check_others(case, ticked)
            check_requests(case, ticked, exchanges)


def check_failed(case: Case, ticked: vendor_desk.Ticked, role: str) -> None:
    """What is stored of the calls that met the fault."""
    fault = FAULTS[case.fault]
    rows = ticked.of(role)
    statuses = [row["status"] for row in rows]
    allowed = {*fault.status, *(("blocked",) if fault.blocks and case.stage == "research" else ())}
    assert rows and set(statuses) <= allowed
    assert len(rows) == (1 if case.stage == "fallback" else fault.tries)
    reason = statuses[-1]
    if case.stage == "fallback":
        assert f"fallback_failed:{reason}" in ticked.flags
    else:
        assert ticked.failures[role] == reason
    for row in rows:
        if not fault.completed:
            assert (row["stop_reason"], row["input_tokens"], row["output_tokens"]) == ("", 0, 0)
            assert row["reply"] == ""
            continue
        check_usage(row, case.vendor)
        assert row["stop_reason"] in fault.stops


def check_usage(row: dict[str, Any], vendor: str) -> None:
    """What a vendor reported is stored as it was, and priced, whatever became of the reply."""
    counted = (row["input_tokens"], row["cached_tokens"], row["output_tokens"])
    assert counted == (USAGE.input, USAGE.cached, USAGE.output)
    assert row["provider"] == vendor
    assert (row["cost_usd"] > 0) == (vendor != OPENAI), "a local server costs nothing"


def check_others(case: Case, ticked: vendor_desk.Ticked) -> None:
    """What is stored of the calls that did not meet the fault themselves."""
    met = STAGES[case.stage]
    blocked = FAULTS[case.fault].blocks
    before = {"technical"} if case.stage in ("research", "gate") else set()
    before |= set(STAGES["research"]) if case.stage == "gate" else set()
    for row in ticked.calls:
        if row["role"] in met:
            continue
        if case.stage == "fallback":
            assert row["status"] == "refused"
        elif blocked and row["role"] not in before:
            assert row["status"] == "blocked"
        else:
            assert (row["status"], row["stop_reason"]) == ("ok", "end")
            check_usage(row, case.vendor)


def check_requests(case: Case, ticked: vendor_desk.Ticked, exchanges: list[Exchange]) -> None:
    """One HTTP request for each attempt that was not blocked, in the vendor's own protocol."""
    sent = [row["role"] for row in ticked.calls if row["status"] != "blocked"]
    assert sorted(sent) == sorted(exchange.role for exchange in exchanges)
    assert {exchange.vendor for exchange in exchanges} == {case.vendor}


# --- a second attempt -----------------------------------------------------------------------------

PASSING: Final = {
    "429": (Status(429), 0.5),
    "429_retry_after_1": (Status(429, retry_after="1"), 1.0),
    "529": (Status(529), 0.5),
    "529_retry_after_1": (Status(529, retry_after="1"), 1.0),
    "reset": (Reset(), 0.2),
    "truncated": (Truncated(), 0.5),
    "malformed_text": (Reply(text="{"), 0.0),
}


@pytest.mark.journey
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_costs_one_more_request_after_its_pause(
    vendor: str, name: str, tmp_path: Path
) -> None:
    entry, pause = PASSING[name]
    with (
        VendorServer({"technical": [entry, HONEST]}) as server,
        vendor_line.line(server, vendor, timeout_seconds=12.0) as line,
    ):
        ticked = vendor_desk.tick(tmp_path, line.provider, line.settings)
        first, second = server.asked("technical")
    vendor_desk.check_stored(ticked)
    assert ticked.row["source_type"] == "AGENT_BUDGET"
    assert [row["status"] for row in ticked.of("technical")][1:] == ["ok"]
    assert second.at - first.at >= pause - 0.02
    assert len(ticked.calls) == 5


# --- time -----------------------------------------------------------------------------------------


@pytest.mark.journey
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_late_answer_is_paid_for_and_not_used(vendor: str, tmp_path: Path, tries: Tries) -> None:
    for attempt in tries():
        with (
            VendorServer({"technical": Late(1.2), "research": Late(0.2)}) as server,
            vendor_line.line(server, vendor, timeout_seconds=2.4) as line,
        ):
            folder = attempt.folder(tmp_path)
            ticked = vendor_desk.tick(folder, line.provider, line.settings, late=5.0)
        vendor_desk.check_stored(ticked)
        with attempt:
            (late,) = ticked.of("technical")
            assert late["status"] == "late"
            check_usage(late, vendor)
            assert ticked.row["source_type"] == "AGENT_PARTIAL"
            assert ticked.failures == {"technical": "timeout"}


@pytest.mark.journey
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_vendor_that_never_answers_is_hung_up_in_time(
    vendor: str, tmp_path: Path, request: pytest.FixtureRequest, tries: Tries
) -> None:
    """At night with the default deadline of 15 s."""
    seconds = 15.0 if scale_of(request.config) >= 1.0 else 0.8
    before = agent_stages.abandoned()
    for attempt in tries():
        with (
            VendorServer({"*": Hang()}) as server,
            vendor_line.line(server, vendor, timeout_seconds=seconds) as line,
        ):
            ticked = vendor_desk.tick(attempt.folder(tmp_path), line.provider, line.settings)
            with suppress(AssertionError):
                until(lambda: all(each.hung_up for each in server.exchanges))
            requests = len(server.exchanges)
            hung_up = all(exchange.hung_up for exchange in server.exchanges)
        vendor_desk.check_stored(ticked)
        assert ticked.row["source_type"] == "L1_ONLY"
        assert {row["status"] for row in ticked.calls} == {"timeout"}
        assert agent_stages.abandoned() <= before
        with attempt:
            assert (requests, hung_up) == (4, True)
            assert seconds - 0.1 <= ticked.elapsed <= seconds + OVER

"""The way out to the vendors: limits of time, blocks, how it is closed and imported."""

from __future__ import annotations

import asyncio
import importlib
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
import pytest

from agents.contracts import ModelUnavailable
from tests import ROOT
from tests.conftest import Scale
from tests.doubles.switchboards import (
    MODEL,
    VENDORS,
    a_request,
    bench,
    good,
    vendor_of,
    warm,
)
from tests.tries import Tries, until
from torra.providers.vendors import clients as module
from torra.providers.vendors.clients import VendorClients
from torra.providers.vendors.event_loop import EventLoop
from torra.providers.vendors.vendor import VendorFault

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


@pytest.mark.journey
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_reply_that_drips_is_stopped_at_the_limit_in_real_time(
    vendor: str, tries: Tries, scaled: Scale
) -> None:
    limit = 1.5 if scaled.whole else 0.6
    word = {"anthropic": "ANTHROPIC", "google": "GOOGLE"}.get(vendor, "OPENAI")
    for attempt in tries():
        with (
            dripping(0.05) as url,
            bench(environment={f"TORRA_{word}_BASE_URL": url}, transport=None) as way,
        ):
            warm(way.switchboard, (vendor,))
            started = time.monotonic()
            error = way.failure(vendor, limit_s=limit)
            took = time.monotonic() - started
        assert (error.reason, error.billed, error.again) == ("timeout", True, None)
        with attempt:
            assert isinstance(error, VendorFault), "the call's own limit, not the loop's"
            assert limit - 0.1 < took < limit + 0.9


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
    built = VendorClients._open
    for attempt in tries():
        gate = threading.Event()

        def slowly(self, vendor, gate=gate):
            gate.wait(30)
            return built(self, vendor)

        monkeypatch.setattr(VendorClients, "_open", slowly)
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
    def broken(name: str) -> None:
        raise ImportError("canary")

    monkeypatch.setattr(module, "import_module", broken)
    with bench(fresh=True) as way:
        error = way.failure("anthropic")
    assert error.detail == "the client could not be built: ImportError"


@pytest.mark.journey
def test_a_client_that_could_not_be_built_is_told_and_tried_again_once_a_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened, tries = importlib.import_module, []

    def broken_twice(name: str) -> Any:
        tries.append(name)
        if len(tries) < 3:
            raise ImportError("canary")
        return opened(name)

    monkeypatch.setattr(module, "import_module", broken_twice)
    with bench(fresh=True) as way:
        way.switchboard.warm(("google",))
        until(lambda: "the client of google could not be built: ImportError" in caplog.text)
        assert way.switchboard.ready(10)
        error = way.failure("google")
        assert error.detail == "the client could not be built: ImportError"
        assert error.billed is False
        assert len(tries) == 2
        assert way.ask("google").text == "{}"
        assert way.ask("google").text == "{}"
    assert len(tries) == 3
    assert "canary" not in caplog.text


@pytest.mark.journey
@pytest.mark.parametrize("late", ["delay", "warm-up"])
def test_a_request_is_not_sent_when_its_stage_is_over(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = VendorClients._open

    def slowly(self: Any, vendor: str) -> Any:
        time.sleep(0.4)
        return built(self, vendor)

    with bench(fresh=True) as way:
        if late == "warm-up":
            monkeypatch.setattr(VendorClients, "_open", slowly)
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


@pytest.mark.journey
def test_a_block_can_be_lifted_and_set_again_after_a_restart() -> None:
    told: list[object] = []
    with bench(on_block=lambda *block: told.append(block)) as way:
        way.switchboard.block("google", "401: the key was refused", 10.0)
        assert way.failure("google").reason == "blocked"
        assert way.ask("anthropic").text == "{}"
        way.switchboard.block("google", "", 0.0)
        way.switchboard.block("google", "", 0.0)
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
    VendorClients({}, prices=None).close()
    VendorClients({}, prices=None)
    assert threading.active_count() == before


@pytest.mark.journey
def test_the_authorities_are_read_once_for_every_client(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []

    class Context(ssl.SSLContext):
        def load_verify_locations(self, *places: Any, **named: Any) -> None:
            read.append(places)
            super().load_verify_locations(*places, **named)

    transport = importlib.import_module("torra.providers.vendors.transport")
    monkeypatch.setattr(ssl, "SSLContext", Context)
    transport.authorities.cache_clear()
    for _ in range(2):
        with bench(transport=None) as way:
            warm(way.switchboard)
    assert len(read) <= 1


def test_a_name_that_is_looked_up_for_long_does_not_hold_up_the_end_of_the_process() -> None:
    code = """
import asyncio, socket, time
from torra.providers.vendors.event_loop import EventLoop
socket.getaddrinfo = lambda *args, **named: time.sleep(60)

async def look_up(until):
    loop = asyncio.get_running_loop()
    await asyncio.wait({asyncio.ensure_future(loop.getaddrinfo("example.com", 443))}, timeout=0.2)
    raise KeyError

loop = EventLoop()
print(repr(loop.submit(look_up, 5.0).exception(timeout=10)))

async def nothing():
    pass

loop.close(nothing)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, timeout=20, check=True, capture_output=True
    )
    assert b"KeyError" in found.stdout


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
from torra.providers.vendors.clients import VendorClients
heavy = ("anthropic", "openai", "google.genai", "httpx2", "genai_prices")
open_provider(AgentSettings()).close()
assert not [name for name in heavy if name in sys.modules], sys.modules.keys() & set(heavy)
way = VendorClients({"OPENAI_API_KEY": "k"}, prices=PriceList())
provider = open_provider(AgentSettings(provider="openai_compatible"), way)
way._adapters["openai_compatible"].result(timeout=60)
assert "openai" in sys.modules
assert not [name for name in heavy[:1] + heavy[2:3] if name in sys.modules]
"""


@pytest.mark.journey
def test_only_the_sdk_of_the_chosen_vendor_is_imported_and_nothing_keeps_the_process() -> None:
    done = run(LAZY)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


HANGING = """
import socket, threading
from agent_config import AgentSettings
from tests.doubles.switchboards import Prices, a_request
from torra.providers.registry import open_provider
from torra.providers.vendors.clients import VendorClients
listener = socket.create_server(("127.0.0.1", 0))
place = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
way = VendorClients({"TORRA_OPENAI_BASE_URL": place}, prices=Prices())
provider = open_provider(AgentSettings(provider="openai_compatible"), way)
future = provider.submit(a_request("m", limit_s=300.0))
listener.accept()[0].recv(100)
listener.close()
"""


@pytest.mark.journey
def test_a_call_that_hangs_does_not_keep_the_process() -> None:
    started = time.monotonic()
    done = run(HANGING)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 60


def test_a_fault_is_a_model_that_is_unavailable() -> None:
    assert isinstance(VendorFault("error", "x", again=None, billed=False), ModelUnavailable)
    assert vendor_of(httpx2.Request("POST", "https://x/v1/messages")) == "anthropic"

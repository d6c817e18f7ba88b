"""The way out to the vendors: limits of time, blocks, how it is closed and imported."""

from __future__ import annotations

import asyncio
import importlib
import logging
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

import httpx2
import pytest

from agents.contracts import ModelUnavailable
from tests import ROOT
from tests.cases import cases
from tests.doubles.vendor_bench import MODEL, a_request, bench, failing, good
from tests.tries import Tries, until
from torra.providers.vendors import clients as module
from torra.providers.vendors.clients import VendorClients
from torra.providers.vendors.event_loop import EventLoop

HAIKU = MODEL["anthropic"]


async def hanging() -> Any:
    await asyncio.sleep(60)


# Time


@cases(
    "limits",
    [
        {"limit_s": 0.2, "linger_s": 10.0, "delay_s": 0.3},
        {"limit_s": 0.1, "delay_s": 5.0},
    ],
)
def test_a_request_is_not_sent_when_its_stage_is_over(limits: dict[str, Any]) -> None:
    with bench() as way:
        error = way.failure("anthropic", **limits)
        assert (error.reason, error.detail) == ("timeout", "not sent in time")
        assert (error.again, error.billed, way.sent) == (None, False, [])
        started = time.monotonic()
        assert way.ask("anthropic", limit_s=5.0, delay_s=0.15).text == "{}"
        assert time.monotonic() - started >= 0.15


def test_a_request_never_blocks_and_waits_for_its_vendor_within_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, opening = threading.Event(), VendorClients._open
    slowly = lambda self, vendor: gate.wait(30) and opening(self, vendor)  # noqa: E731
    monkeypatch.setattr(VendorClients, "_open", slowly)
    with bench(fresh=True) as way:
        provider = way.provider("anthropic")
        early, patient = (provider.submit(a_request(HAIKU, limit_s=limit)) for limit in (1.0, 30.0))
        error = early.exception(timeout=10)
        assert isinstance(error, ModelUnavailable) and not error.billed
        assert error.reason == "timeout" and not patient.done()
        gate.set()
        assert patient.result(timeout=30).text == "{}"


def test_a_client_that_could_not_be_built_is_logged_and_tried_again_with_the_next_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[str] = []

    def broken_twice(name: str) -> Any:
        tries.append(name)
        if len(tries) < 3:
            raise ImportError("canary")
        return importlib.import_module(name)

    monkeypatch.setattr(module, "import_module", broken_twice)
    with bench(fresh=True) as way:
        way.warm("google")
        assert "the client of google could not be built: ImportError" in caplog.text
        error = way.failure("google")
        assert error.detail == "the client could not be built: ImportError"
        assert not error.billed and len(tries) == 2
        assert [way.ask("google").text for _ in range(2)] == ["{}", "{}"]
    assert len(tries) == 3 and "canary" not in caplog.text


def test_a_request_that_does_not_stop_is_left_behind(tries: Tries) -> None:
    release = threading.Event()

    async def stubborn() -> Any:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        raise httpx2.ReadError("x")

    try:
        with bench(failing(stubborn, "anthropic")) as way:
            way.warm("anthropic")
            for attempt in tries():
                started = time.monotonic()
                error = way.failure("anthropic", limit_s=0.2)
                took = time.monotonic() - started
                assert error.reason == "timeout"
                with attempt:
                    assert took < 1.5
    finally:
        release.set()


def test_a_job_that_raises_ends_as_an_error_with_its_type_alone() -> None:
    loop = EventLoop()

    async def raises(error: BaseException, _: float) -> None:
        raise error

    for raised, detail in ((KeyError("canary"), "KeyError"), (asyncio.CancelledError(), "closed")):
        error = loop.submit(partial(raises, raised), 5.0).exception(timeout=5)
        assert isinstance(error, ModelUnavailable)
        assert (error.reason, error.detail) == ("error", detail)
    loop.close(partial(asyncio.sleep, 0))


def test_a_future_that_its_caller_cancels_ends_the_call() -> None:
    ended = threading.Event()

    async def never() -> Any:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with bench(failing(never, "anthropic")) as way:
        way.warm("anthropic")
        future = way.provider("anthropic").submit(a_request(HAIKU))
        until(lambda: way.sent)
        assert future.cancel() and ended.wait(5)


# Blocks


def test_a_vendor_that_refused_is_not_asked_for_an_hour_and_it_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also where several were refused at once, and where the report fails."""
    blocks: list[tuple[str, str, float]] = []
    now = [0.0]

    async def answer(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0.1)
        return httpx2.Response(401) if now[0] < 3600 else good(request)

    def report(*block: Any) -> None:
        blocks.append(block)
        raise OSError("canary")

    with bench(answer, on_block=report, monotonic=lambda: now[0]) as way:
        way.warm("anthropic")
        provider = way.provider("anthropic")
        futures = [provider.submit(a_request(HAIKU)) for _ in range(5)]
        assert all(future.exception(timeout=10) for future in futures)
        for now[0] in (0.0, 1.0, 3599.0):
            error = way.failure("anthropic")
            assert (error.reason, error.detail) == ("blocked", "401: the key was refused")
            assert (error.again, error.billed) == (None, False)
        assert way.vendors() == ["anthropic"] * 5
        assert way.clients.blocked() == {"anthropic": "401: the key was refused"}
        until(lambda: "could not be stored" in caplog.text)
        now[0] = 3600.0
        assert way.ask("anthropic").text == "{}"
    assert blocks == [("anthropic", "401: the key was refused", 3600.0)]
    assert "canary" not in caplog.text


def test_a_block_that_comes_during_the_wait_before_a_second_attempt_holds() -> None:
    with bench() as way:
        way.warm("anthropic")
        future = way.provider().submit(a_request(HAIKU, delay_s=0.2))
        way.clients.block("anthropic", "402: the account has no credit")
        error = future.exception(timeout=10)
        assert isinstance(error, ModelUnavailable)
        assert (error.reason, way.sent) == ("blocked", [])


# Closing, and where it is imported


def test_closing_ends_what_runs_and_refuses_what_comes() -> None:
    """What runs may have been sent, so it may be billed."""
    with bench(failing(hanging, "anthropic"), fresh=True) as way:
        way.warm()
        provider = way.provider()
        futures = [provider.submit(a_request(HAIKU)) for _ in range(20)]
        until(lambda: len(way.sent) == 20)
        started = time.monotonic()
        way.clients.close()
        assert time.monotonic() - started < 15.0
        late = provider.submit(a_request(HAIKU))
        for future in [*futures, late]:
            error = future.exception(timeout=1)
            assert isinstance(error, ModelUnavailable)
            assert (error.reason, error.detail, error.again) == ("error", "closed", None)
            assert error.billed is (future is not late)
        assert way.clients.loop._thread not in threading.enumerate()
        way.clients.close()


def test_a_thread_that_cannot_start_fails_one_request_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with bench(fresh=True) as way:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            error = way.provider("google").submit(a_request(MODEL["google"])).exception(timeout=1)
        assert isinstance(error, ModelUnavailable)
        assert (error.detail, error.billed) == ("RuntimeError", False)
        assert way.ask("google").text == "{}"


def test_prices_that_cannot_be_read_stop_no_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> None:
        raise ImportError("genai_prices")

    with bench(fresh=True) as way:
        monkeypatch.setattr(type(way.clients.prices), "warm", broken)
        assert way.ask("google").text == "{}"


def test_loggers_below_those_of_an_sdk_are_turned_down_too() -> None:
    logger = logging.getLogger("openai._base_client")
    logger.setLevel(logging.DEBUG)
    with bench(fresh=True) as way:
        way.warm("openai_compatible")
        assert not logger.isEnabledFor(logging.INFO)


def test_nothing_runs_before_it_is_needed() -> None:
    before = {*threading.enumerate()}
    prices: Any = None
    VendorClients({}, prices=prices).close()
    assert {*threading.enumerate()} <= before


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
            way.warm()
    assert len(read) <= 1


SLOW_LOOK_UP = """
import asyncio, socket, time
from torra.providers.vendors.event_loop import EventLoop
socket.getaddrinfo = lambda *args, **named: time.sleep(60)
async def look_up(until):
    loop = asyncio.get_running_loop()
    await asyncio.wait({asyncio.ensure_future(loop.getaddrinfo("example.com", 443))}, timeout=0.2)
async def nothing():
    pass
loop = EventLoop()
assert loop.submit(look_up, 5.0).exception(timeout=10) is None
loop.close(nothing)
"""

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
assert way.ready(60)
assert "openai" in sys.modules
assert not [name for name in heavy[:1] + heavy[2:3] if name in sys.modules]
"""

HANGING = """
import socket, threading
from agent_config import AgentSettings
from tests.doubles.vendor_bench import Prices, a_request
from torra.providers.registry import open_provider
from torra.providers.vendors.clients import VendorClients
listener = socket.create_server(("127.0.0.1", 0))
place = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
way = VendorClients({"TORRA_OPENAI_BASE_URL": place}, prices=Prices())
provider = open_provider(AgentSettings(provider="openai_compatible"), way)
future = provider.submit(a_request("m", limit_s=300.0))
line = listener.accept()[0]
line.recv(100)
line.detach()
listener.close()
"""


@pytest.mark.journey
@pytest.mark.parametrize("code", [SLOW_LOOK_UP, LAZY, HANGING], ids=["look-up", "lazy", "hanging"])
def test_only_the_chosen_sdk_is_imported_and_nothing_keeps_the_process(code: str) -> None:
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - started < 60

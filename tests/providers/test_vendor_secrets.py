"""A key goes to its vendor and nowhere else: no log, no output, no row, no page, no other host.

The canaries of tests.doubles.vendor_line are looked for in everything that a tick leaves behind,
also when the vendor's error quotes the key, and in everything that other servers were sent.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from agents.contracts import ModelUnavailable
from tests.cases import cases
from tests.doubles import vendor_line
from tests.doubles.vendor_server import (
    ANTHROPIC,
    HONEST,
    OPENAI,
    VENDORS,
    Exchange,
    Hang,
    Raw,
    Reply,
    Reset,
    Status,
    Trap,
    Truncated,
    VendorServer,
)
from tests.worlds import vendor_desk
from torra.errors import ConfigError
from torra.providers.vendors import transport
from torra.providers.vendors.addresses import Address, address
from torra.providers.vendors.vendor import RequestTrace, VendorFault

PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def leaks(text: str | bytes) -> list[str]:
    """Return the canaries in a text."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    return [canary for canary in vendor_line.CANARIES if canary.encode() in data]


def aloud(caplog: pytest.LogCaptureFixture) -> None:
    """Let every logger say everything: building a client turns some down."""
    for name in [*logging.getLogger().manager.loggerDict, ""]:
        caplog.set_level(logging.DEBUG, logger=name)


def echoing(exchange: Exchange) -> Any:
    """Answer honestly, and quote the key in the reasoning."""
    keys = " ".join(value for name, value in exchange.headers.items() if "key" in name)
    said = f"your key is {exchange.headers.get('authorization', '')} {keys}"
    return Reply(changes={"claim": said, "flags": [said]})


ECHOES: Final[dict[str, Any]] = {
    "honest": HONEST,
    "401": Status(401, echo=True),
    "403": Status(403, echo=True),
    "400": Status(400, echo=True),
    "429": Status(429, echo=True, retry_after="600"),
    "500": Status(500, echo=True, retry_after="600"),
    "reset": Reset(),
    "truncated": Truncated(),
    "hang": Hang(),
    "html": Raw(b"<html>no</html>", "text/html"),
    "reply": echoing,
}


@pytest.mark.by_day("honest", "401", "500", "reset", "reply")
@pytest.mark.parametrize("kind", ECHOES)
def test_a_key_is_in_no_log_no_output_and_no_row(
    kind: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    scaled: Callable[..., int],
) -> None:
    """Nor on a page (tests/dashboard/test_canaries.py). At night all three vendors each time."""
    aloud(caplog)
    start = list(ECHOES).index(kind)
    for vendor in (VENDORS * 2)[start % 3 :][: scaled(len(VENDORS))]:
        folder = tmp_path / vendor
        with (
            VendorServer({"*": ECHOES[kind]}) as server,
            vendor_line.line(server, vendor, timeout_seconds=1.5) as line,
        ):
            aloud(caplog)
            ticked = vendor_desk.tick(folder, line.provider, line.settings)
            sent = json.dumps([exchange.headers for exchange in server.exchanges])
            blocked = line.clients.blocked()
            assert not leaks(repr(vars(line.clients)["_blocks"]) + repr(blocked))
            assert not leaks(repr(line.clients.address(vendor)))
        assert leaks(sent) == [vendor_line.CUSTOM[vendor]], "the key did go out"
        vendor_desk.check_stored(ticked)
        assert not leaks(repr(ticked)), vendor
        assert ticked.calls
        for file in folder.iterdir():
            assert not leaks(file.read_bytes()), (vendor, file.name)
    output = capfd.readouterr()
    assert not leaks(output.out + output.err)
    assert {record.name.partition(".")[0] for record in caplog.records} & {"httpcore2", "torra"}
    assert not leaks(caplog.text + repr([vars(record) for record in caplog.records]))


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_exception_quotes_no_key(vendor: str) -> None:
    request = vendor_line.a_request("technical", "some-model")
    entries = [entry for name, entry in ECHOES.items() if name not in ("honest", "reply", "hang")]
    with VendorServer() as server, vendor_line.line(server, vendor) as line:
        for entry in entries:
            server.play({"*": entry})
            line.clients.block(vendor, "", 0.0)
            with pytest.raises(ModelUnavailable) as failed:
                line.ask(request)
            assert server.exchanges
            chain: BaseException | None = failed.value
            assert not leaks("".join(traceback.format_exception(failed.value)))
            while chain is not None:
                assert not leaks(repr(chain) + str(chain) + repr(vars(chain)))
                chain = chain.__cause__ or chain.__context__


# --- other hosts ----------------------------------------------------------------------------------


def test_the_trap_does_catch_a_client_that_heeds_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Trap() as proxy, VendorServer() as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with httpx2.Client() as client:
            assert client.get(server.url).status_code == 502
        assert len(proxy.seen) == 1
        assert server.exchanges == []


@cases(
    "place",
    [
        "https://other.test/v1/messages",
        "http://vendor.test/v1/messages",
        "https://vendor.test:8443/v1/messages",
        "https://vendor.test/v2/messages",
        "https://vendor.test/v1x",
    ],
    ids=["host", "scheme", "port", "path", "beginning"],
)
def test_a_request_to_another_place_is_given_no_key(place: str) -> None:
    """Whatever made it: a redirect, a setting or a fault of an SDK."""
    server = Address(ANTHROPIC, "https://vendor.test/v1", "k" * 40, official=False, local=False)
    wire = RequestTrace(server, until=60.0)

    async def made(url: str) -> httpx2.Request:
        return transport._ours(httpx2.Request("POST", url), wire, b"{}")

    with pytest.raises(VendorFault, match="not sent"):
        asyncio.run(made(place))
    sent = asyncio.run(made("https://vendor.test/v1/messages"))
    assert any(server.key in value for value in sent.headers.values())


@pytest.mark.parametrize("vendor", VENDORS)
def test_variables_of_the_sdks_change_nothing(
    vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other addresses, headers, proxies, another cloud: only Torra's own variables count."""
    with VendorServer() as server:
        with vendor_line.line(server, vendor) as line:
            line.ask(vendor_line.a_request("technical", "some-model"))
        (plain,) = server.exchanges
        with Trap() as other:
            for name, value in strange(other.url).items():
                monkeypatch.setenv(name, value)
            where = {**os.environ, **vendor_line.environment(server)}
            with vendor_line.Line(where, vendor_line.agents(vendor)) as line:
                line.ask(vendor_line.a_request("technical", "some-model"))
            assert other.seen == []
        _, changed = server.exchanges
    assert changed.path == plain.path
    assert changed.headers == plain.headers
    assert changed.body == plain.body


def strange(elsewhere: str) -> Mapping[str, str]:
    return {
        **dict.fromkeys((*PROXIES, *map(str.lower, PROXIES)), elsewhere),
        "ANTHROPIC_BASE_URL": elsewhere,
        "OPENAI_BASE_URL": f"{elsewhere}/v1",
        "GOOGLE_GEMINI_BASE_URL": elsewhere,
        "GOOGLE_VERTEX_BASE_URL": elsewhere,
        "ANTHROPIC_CUSTOM_HEADERS": "x-extra: 1\nauthorization: Bearer extra",
        "OPENAI_CUSTOM_HEADERS": "x-extra: 1\nauthorization: Bearer extra",
        "ANTHROPIC_AUTH_TOKEN": "extra",
        "ANTHROPIC_BETAS": "extra",
        "OPENAI_ORG_ID": "extra",
        "OPENAI_PROJECT_ID": "extra",
        "OPENAI_ADMIN_KEY": "extra",
        "OPENAI_WEBHOOK_SECRET": "extra",
        "GEMINI_API_KEY": "extra",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_USE_ENTERPRISE": "true",
        "GOOGLE_CLOUD_PROJECT": "extra",
        "GOOGLE_CLOUD_LOCATION": "extra",
    }


LOOKALIKES: Final = (
    "https://api.anthropic.com.example.test",
    "https://generativelanguage.googleapis.com.example.test",
    "https://api.openai.com.example.test/v1",
    "https://example.test/api.openai.com/v1",
    "https://api.openai.com:8443/v1",
    "https://api.anthropic.com:444",
    "https://xapi.anthropic.com",
    "http://127.0.0.1:11434/v1",
    "http://[::1]:11434/v1",
)


@cases("url", LOOKALIKES)
def test_a_host_that_looks_like_a_vendor_gets_no_real_key(url: str) -> None:
    for vendor in VENDORS:
        name = f"TORRA_{vendor_line.SHORT[vendor]}_BASE_URL"
        where = {vendor_line.KEY_NAME[vendor]: vendor_line.REAL[vendor], name: url}
        found = address(vendor, where)
        assert not found.official
        assert not leaks(json.dumps(found.headers()))


REFUSED: Final = (
    "http://api.openai.com/v1",
    "http://192.168.1.5:11434/v1",
    "http://0.0.0.0:11434/v1",
    "http://2130706433/v1",
    "http://127.0.0.1.example.test/v1",
    "http://localhost.example.test/v1",
    "https://api.openai.com@example.test/v1",
    "https://user:realcanary@api.openai.com/v1",
    "https://api.openai.com/v1?key=1",
    "https://api.openai.com/v1#x",
    "ftp://127.0.0.1/v1",
    "127.0.0.1:8080",
    "https://",
    "https://api.openai.com/v1\nx: y",
    "https://api.openai.com:port/v1",
    "https://api.openai.com:99999/v1",
    "https://api.openai.com/v1?",
    "https://api.exa mple.com/v1",
    "https://[::1",
    "https://\u0430pi.openai.com/v1",
)


@cases("url", REFUSED)
def test_an_address_that_could_lose_a_key_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigError) as failed:
        address(OPENAI, {"OPENAI_API_KEY": "k", "TORRA_OPENAI_BASE_URL": url})
    assert "TORRA_OPENAI_BASE_URL" in str(failed.value)
    assert "realcanary" not in str(failed.value)


@cases("key", ["two words", "line\nbreak", "s\u00f6me", "tab\tbed", "x" * 513, ""])
@cases("vendor", VENDORS)
def test_a_key_that_no_header_can_hold_is_refused_without_quoting_it(
    vendor: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in the environment of the process is not looked for."""
    monkeypatch.setenv(vendor_line.KEY_NAME[vendor], vendor_line.REAL[vendor])
    with pytest.raises(ConfigError) as failed:
        address(vendor, {vendor_line.KEY_NAME[vendor]: key})
    assert not key or key not in str(failed.value)
    assert vendor_line.KEY_NAME[vendor] in str(failed.value)

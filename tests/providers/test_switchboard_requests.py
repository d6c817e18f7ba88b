"""What the vendors are sent: headers, keys, pictures, and the forms that local servers take."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any

import httpx2
import pytest

import scoring_rubric
from agents.contracts import JPEG, PNG
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.switchboards import (
    VENDORS,
    bench,
    body,
    good,
    warm,
)
from tests.later import Later
from tests.tries import Tries
from torra.providers.vendors.vendor import picture_type

anthropic, openai = Later("anthropic"), Later("openai")
openai_compatible = Later("torra.providers.vendors.openai_compatible")
LOCAL = {"TORRA_OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}


# What reaches the wire


@pytest.mark.parametrize("vendor", ["anthropic", "openai_compatible"])
def test_a_body_is_posted_as_the_sdks_own_method_writes_it(vendor: str) -> None:
    with bench() as way:
        way.ask(vendor, user="\u00fcber \u20bf", picture=PNG)
    posted = way.sent[0].content
    assert json.loads(posted)
    assert asyncio.run(_by_the_sdk(vendor, json.loads(posted))) == posted


async def _by_the_sdk(vendor: str, keywords: dict[str, Any]) -> bytes:
    """Return the body of `create`, given its keywords in another order than it writes them."""
    sent: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.content)
        return httpx2.Response(200, json=body(vendor))

    upside_down = dict(reversed(keywords.items()))
    transport = httpx2.MockTransport(answer)
    async with httpx2.AsyncClient(transport=transport, trust_env=False) as http:
        common = {"api_key": "k", "base_url": "http://127.0.0.1:9", "http_client": http}
        if vendor == "anthropic":
            await anthropic.AsyncAnthropic(**common).messages.create(**upside_down)
        else:
            await openai.AsyncOpenAI(**common).chat.completions.create(**upside_down)
    return sent[0]


@pytest.mark.journey
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


@pytest.mark.journey
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


def test_a_picture_is_known_by_its_first_bytes() -> None:
    assert picture_type(PNG) == "image/png"
    assert picture_type(JPEG + b"\xe0") == "image/jpeg"
    assert picture_type(b"") == picture_type(None) == picture_type(b"<svg/>") == ""


# Servers in OpenAI's place


def picky(*taken: str, status: int = 400):
    """Return a server that takes some response formats only."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        form = json.loads(request.content).get("response_format", {}).get("type", "prompt")
        return good(request) if form in taken else httpx2.Response(status, json={"error": "what?"})

    return answer


@cases("status", [400, 422, 501])
@cases(
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
    usable = json.dumps(scripted.report())

    def answer(request: httpx2.Request) -> httpx2.Response:
        if next(odd, False):
            return httpx2.Response(400)
        return httpx2.Response(200, json=body("openai_compatible", usable))

    with bench(answer, LOCAL) as way:
        for _ in range(openai_compatible.FORM_KEPT + 2):
            way.ask("openai_compatible", "m")
    forms = [sent.get("response_format", {}).get("type") for sent in way.bodies()]
    assert forms[:2] == ["json_schema", "json_object"]
    assert forms[2:-2] == ["json_object"] * (openai_compatible.FORM_KEPT - 1)
    assert forms[-2:] == ["json_schema"] * 2


def test_a_server_that_takes_no_form_is_an_error_and_nothing_is_remembered() -> None:
    with bench(picky(status=422), LOCAL) as way:
        assert way.failure("openai_compatible", "m").detail == "422"
        assert way.failure("openai_compatible", "m").again is None
    assert len(way.sent) == 6


@pytest.mark.journey
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

"""What the vendors are sent: bodies, pictures, and the forms that local servers take."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from click.testing import CliRunner

import scoring_rubric
from agents.contracts import JPEG, PNG
from instance_database import open_home
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.vendor_bench import LOCAL, VENDORS, a_request, bench, body, good
from tests.later import Later
from tests.tries import Tries
from tests.worlds.calls import a_call
from tests.worlds.stores import key_of
from torra.clock import System
from torra.commands.command_line import main
from torra.providers.vendors.table import FORM_IN_USE, Capability
from torra.providers.vendors.vendor import picture_of

openai_compatible = Later("torra.providers.vendors.openai_compatible")
OPENAI: Final = "openai_compatible"


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_path_in_the_address_is_kept_and_no_cookie(vendor: str) -> None:
    word = {"anthropic": "ANTHROPIC", "google": "GOOGLE"}.get(vendor, "OPENAI")
    url = "https://Models.Example.com:443/gate/way"
    cookie = {"set-cookie": "a=b"}
    with bench(
        lambda _: httpx2.Response(200, json=body(vendor), headers=cookie),
        {f"TORRA_{word}_BASE_URL": url},
    ) as way:
        assert [way.ask(vendor).text for _ in range(2)] == ["{}", "{}"]
    for request in way.sent:
        assert request.url.path.startswith("/gate/way/")
        assert request.url.host == "models.example.com" and "cookie" not in request.headers


@pytest.mark.journey
def test_the_libraries_are_quiet_below_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("anthropic", "httpx2"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.DEBUG)
    with bench(fresh=True) as way:
        way.warm()
        for name in ("anthropic", "openai", "google_genai", "httpx2", "httpcore2"):
            assert logging.getLogger(f"{name}.any").getEffectiveLevel() >= logging.WARNING


def test_what_all_roles_share_is_marked_for_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring_rubric, "SHARED_PREFIX", "Shared.\n", raising=False)
    with bench() as way:
        for system in ("Shared.\nYou are the analyst.", "Something else.", "Shared.\n"):
            way.ask("anthropic", system=system)
    cached = {"type": "text", "text": "Shared.\n", "cache_control": {"type": "ephemeral"}}
    assert [sent["system"] for sent in way.bodies()] == [
        [cached, {"type": "text", "text": "You are the analyst."}],
        [{"type": "text", "text": "Something else."}],
        [cached],
    ]


def test_a_picture_is_known_by_its_first_bytes_and_sent_to_who_sees() -> None:
    sees, blind = (Capability("v", "m", picture=picture) for picture in (True, False))
    kinds = {PNG: "image/png", JPEG + b"\xe0": "image/jpeg", b"": "", None: "", b"<svg/>": ""}
    for picture, kind in kinds.items():
        request = a_request("m", picture=picture)
        data = base64.b64encode(picture).decode() if kind and picture else ""
        assert picture_of(request, sees) == (kind, data)
        assert picture_of(request, blind) == ("", "")


# --- servers in OpenAI's place --------------------------------------------------------------------

GOOD: Final = json.dumps(scripted.report())
BAD: Final = "The market goes up."
KEPT: Final = 3
"""Replies in a row, as the documentation says."""
FORMS: Final = ("json_schema", "json_object", "prompt")


def form_of(sent: Any) -> str:
    content = json.loads(sent.content)
    form: str = content.get("response_format", {}).get("type", "prompt")
    assert set(content) <= {"model", "messages", "max_tokens", "response_format"}
    schema = "additionalProperties" in content["messages"][0]["content"]
    assert schema == (form != "json_schema"), "the schema stands in one place"
    return form


def picky(*taken: str, status: int = 400) -> Callable[[httpx2.Request], httpx2.Response]:
    """Return a server that takes some response formats only."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return good(request) if form_of(request) in taken else httpx2.Response(status)

    return answer


@cases("status", [400, 422, 501])
@cases("first", [FORMS[:1], FORMS[:2], FORMS])
def test_a_server_is_asked_in_the_form_that_it_takes_which_is_remembered(
    first: tuple[str, ...], status: int
) -> None:
    with bench(picky(*FORMS[len(first) - 1 :], status=status), LOCAL) as way:
        for model in ("llama3:8b", "llama3:8b", "qwen"):
            assert way.ask(OPENAI, model).text == "{}"
    assert [form_of(sent) for sent in way.sent] == [*first, first[-1], *first]


@cases(("environment", "status", "requests"), [
    (LOCAL, 422, 3), (LOCAL, 401, 1), (LOCAL, 404, 1), (LOCAL, 429, 1), (LOCAL, 500, 1),
])  # fmt: skip
def test_another_error_is_no_reason_for_another_form(
    environment: dict[str, str], status: int, requests: int
) -> None:
    with bench(picky(status=status), environment) as way:
        assert str(status) in way.failure(OPENAI, "m").detail
    assert len(way.sent) == requests


def test_openai_itself_is_asked_in_one_form_only() -> None:
    with bench(lambda _: httpx2.Response(400)) as way:
        assert way.failure(OPENAI).detail == "400"
    assert len(way.sent) == 1
    with bench(lambda _: httpx2.Response(200, json=body(OPENAI, BAD))) as way:
        assert {way.ask(OPENAI).detail for _ in range(8)} == {""}
    assert {sent["response_format"]["type"] for sent in way.bodies()} == {"json_schema"}


def test_the_other_forms_share_the_time_of_one_request(tries: Tries) -> None:
    async def slowly(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0.15)
        return httpx2.Response(400)

    for attempt in tries():
        with bench(slowly, LOCAL) as way:
            way.warm(OPENAI)
            started = time.monotonic()
            assert way.failure(OPENAI, "m", limit_s=0.25).reason == "timeout"
            took = time.monotonic() - started
        assert len(way.sent) <= 2
        with attempt:
            assert len(way.sent) == 2 and took < 1.0


def forms(
    text: Callable[[str, int], str], requests: int, model: str = "qwen", stop: str = ""
) -> tuple[list[str], list[str]]:
    """Return the forms of requests in a row, and what their replies say of them.

    The server's text depends on the form and on the number of the request.
    """
    numbers = iter(range(10_000))

    def answer(request: httpx2.Request) -> httpx2.Response:
        reply = body(OPENAI, text(form_of(request), next(numbers)), stop)
        return httpx2.Response(200, json=reply)

    with bench(answer, LOCAL) as way:
        details = [way.ask(OPENAI, model).detail for _ in range(requests)]
        return [form_of(sent) for sent in way.sent], details


def test_three_replies_of_no_use_in_a_row_end_a_form_and_the_last_one_stays() -> None:
    used, details = forms(lambda form, _: GOOD if form == "json_object" else BAD, 8)
    assert used == ["json_schema"] * KEPT + ["json_object"] * 5
    assert details == [""] * (KEPT - 1) + [f"{FORM_IN_USE}json_object"] * 6
    used, details = forms(lambda *_: BAD, 12)
    assert used == ["json_schema"] * 3 + ["json_object"] * 3 + ["prompt"] * 6
    assert details[-1] == f"{FORM_IN_USE}prompt"


def test_a_good_reply_between_keeps_a_form() -> None:
    used, details = forms(lambda _, number: BAD if number % 3 else GOOD, 30)
    assert set(used) == {"json_schema"} and set(details) == {""}


@cases(("text", "stop"), [
    (f"```json\n{GOOD}\n```", ""), (f"<think>a</think>{GOOD}", ""),
    (GOOD.replace("XAUUSD", "EURUSD"), ""), (BAD, "length"), (BAD, "content_filter"),
])  # fmt: skip
def test_what_the_door_reads_and_what_was_stopped_keep_a_form(text: str, stop: str) -> None:
    assert set(forms(lambda *_: text, 6, stop=stop)[0]) == {"json_schema"}


@cases("text", ["", "{}", '{"symbol": "XAUUSD"}', f"{GOOD}{GOOD}", f"<think>{GOOD}"])
def test_a_reply_without_the_keys_that_were_asked_for_is_of_none(text: str) -> None:
    assert forms(lambda *_: text, 4)[0] == ["json_schema"] * 3 + ["json_object"]


def test_the_first_form_is_tried_again_and_kept_only_if_it_is_of_use() -> None:
    kept = openai_compatible.FORM_KEPT
    used, details = forms(lambda form, _: GOOD if form == "prompt" else BAD, 7 + 2 * kept)
    assert used.count("json_schema") == 3 + 2, "once every FORM_KEPT requests"
    assert used[-1] == "prompt" and details[-1] == f"{FORM_IN_USE}prompt"
    used, details = forms(lambda form, at: GOOD if at > 10 else BAD, 6 + kept + 9, "llama")
    assert used[6:] == ["prompt"] * (kept - 1) + ["json_schema"] * 10
    assert details[-1] == "", "the first form needs no word"


CALL: Final = {"status": "garbage", "model": "gpt-6-luna", "provider": OPENAI}


@pytest.mark.parametrize(
    ("details", "form"),
    [
        ([f"{FORM_IN_USE}json_object", f"google: 429; {FORM_IN_USE}prompt"], "prompt"),
        ([f"{FORM_IN_USE}prompt", ""], ""),
    ],
)
def test_the_command_shows_the_form_of_the_newest_call(
    tmp_path: Path, details: list[str], form: str
) -> None:
    profile = tmp_path / "profiles" / "default.json"
    profile.parent.mkdir()
    profile.write_text('{"agents": {"provider": "openai_compatible"}}')
    database = open_home(tmp_path)
    for number, detail in enumerate(details, 1):
        record = a_call(**CALL, detail=detail, round=number)
        database.write_calls(key_of(System().real_now()), [record])
    database.close()
    words = ["--home", str(tmp_path), "models"]
    table = CliRunner().invoke(main, words).output
    document = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    rows = {row["model"]: row["health"]["form"] for row in document["vendors"][2]["models"]}
    assert rows["gpt-6-luna"] == form
    sentence = f"{FORM_IN_USE}{form}: replies to the one before could not be used"
    assert sentence in table if form else FORM_IN_USE not in table

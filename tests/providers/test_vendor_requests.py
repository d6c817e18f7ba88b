"""What the vendors are sent: bodies, pictures, and the forms that local servers take."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, Final

import httpx2
import pytest

from agents.contracts import JPEG, PNG
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.vendor_bench import LOCAL, VENDORS, a_request, bench, body, good
from tests.later import Later
from torra.providers.vendors.table import FORM_IN_USE, Capability
from torra.providers.vendors.vendor import picture_of

openai_compatible = Later("torra.providers.vendors.openai_compatible")
OPENAI: Final = "openai_compatible"


@cases("vendor", VENDORS)
def test_a_path_in_the_address_is_kept_and_no_cookie(vendor: str) -> None:
    url = "https://Models.Example.com:443/gate/way"
    with bench(
        lambda _: httpx2.Response(200, json=body(vendor), headers={"set-cookie": "a=b"}),
        {f"TORRA_{vendor.partition('_')[0].upper()}_BASE_URL": url},
    ) as way:
        assert [way.ask(vendor).text for _ in "xx"] == ["{}", "{}"]
    for request in way.sent:
        assert str(request.url).startswith("https://models.example.com/gate/way/")
        assert "cookie" not in request.headers


@pytest.mark.journey
def test_the_libraries_are_quiet_below_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("anthropic", "httpx2"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.DEBUG)
    with bench(fresh=True) as way:
        way.warm()
        for name in ("anthropic", "openai", "google_genai", "httpx2", "httpcore2"):
            assert logging.getLogger(f"{name}.any").getEffectiveLevel() >= logging.WARNING


def test_a_picture_is_known_by_its_first_bytes_and_sent_to_who_sees() -> None:
    sees, blind = (Capability("v", "m", picture=picture) for picture in (True, False))
    kinds = {PNG: "image/png", JPEG + b"\xe0": "image/jpeg", b"": "", None: "", b"<svg/>": ""}
    for picture, kind in kinds.items():
        request = a_request("m", picture=picture)
        assert picture_of(request, sees)[0] == kind
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


@cases(("status", "requests"), [(422, 3), (401, 1), (404, 1), (429, 1), (500, 1)])
def test_another_error_is_no_reason_for_another_form(status: int, requests: int) -> None:
    with bench(picky(status=status), LOCAL) as way:
        assert str(status) in way.failure(OPENAI, "m").detail
    assert len(way.sent) == requests


def test_openai_itself_is_asked_in_one_form_only() -> None:
    with bench(lambda _: httpx2.Response(400)) as way:
        assert way.failure(OPENAI).detail == "400"
    assert len(way.sent) == 1
    with bench(lambda _: httpx2.Response(200, json=body(OPENAI, BAD))) as way:
        assert {way.ask(OPENAI).detail for _ in range(8)} == {""}
    assert {sent["response_format"]["type"] for sent in way.bodies()} == {"json_schema"}


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


@cases(
    ("texts", "stop", "last"),
    [
        ([BAD, BAD, GOOD], "", "json_schema"),
        *(([text], "", "json_schema") for text in (
            f"```json\n{GOOD}\n```", f"<think>a</think>{GOOD}", GOOD.replace("XAUUSD", "EURUSD"),
        )),
        *(([BAD], stop, "json_schema") for stop in ("length", "content_filter")),
        *(([text], "", "json_object") for text in (
            "", "{}", '{"symbol": "XAUUSD"}', f"{GOOD}{GOOD}", f"<think>{GOOD}",
        )),
    ],
)  # fmt: skip
def test_a_form_ends_by_replies_without_the_keys_that_were_asked_for(
    texts: list[str], stop: str, last: str
) -> None:
    """What the door reads, what was stopped, and a good reply in between keep it."""
    used, _ = forms(lambda _, number: texts[number % len(texts)], 4, stop=stop)
    assert used == ["json_schema"] * KEPT + [last]


def test_the_first_form_is_tried_again_and_kept_only_if_it_is_of_use() -> None:
    kept = openai_compatible.FORM_KEPT
    used, details = forms(lambda form, _: GOOD if form == "prompt" else BAD, 7 + 2 * kept)
    assert used.count("json_schema") == 3 + 2, "once every FORM_KEPT requests"
    assert used[-1] == "prompt" and details[-1] == f"{FORM_IN_USE}prompt"
    used, details = forms(lambda form, at: GOOD if at > 10 else BAD, 6 + kept + 9, "llama")
    assert used[6:] == ["prompt"] * (kept - 1) + ["json_schema"] * 10
    assert details[-1] == "", "the first form needs no word"

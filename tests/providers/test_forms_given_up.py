"""A form in which a server's replies cannot be used gives way to the next, and that is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from click.testing import CliRunner

from instance_database import open_home
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.switchboards import bench, body
from tests.later import Later
from tests.worlds import calls
from tests.worlds.stores import key_of
from torra.clock import System
from torra.commands.command_line import main
from torra.providers.vendors.capabilities import FORM_IN_USE

openai_compatible = Later("torra.providers.vendors.openai_compatible")
LOCAL: Final = {"TORRA_OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}
GOOD: Final = json.dumps(scripted.report())
BAD: Final = "The market goes up."
KEPT: Final = 3
"""Replies in a row, as the documentation says."""
FORMS: Final = ("json_schema", "json_object", "prompt")


def form_of(request: httpx2.Request) -> str:
    return str(json.loads(request.content).get("response_format", {}).get("type", "prompt"))


def serving(said: Callable[[str, int], str]) -> Callable[[httpx2.Request], httpx2.Response]:
    """Return a server that says something by form, and by the number of the request."""
    asked = iter(range(10_000))

    def answer(request: httpx2.Request) -> httpx2.Response:
        text = said(form_of(request), next(asked))
        return httpx2.Response(200, json=body("openai_compatible", text))

    return answer


def asked(
    said: Callable[[str, int], str], requests: int, model: str = "qwen"
) -> tuple[list[str], list[str]]:
    """Return the forms of requests in a row, and what their replies say of them."""
    with bench(serving(said), LOCAL) as way:
        told = [way.ask("openai_compatible", model).detail for _ in range(requests)]
        return [form_of(sent) for sent in way.sent], told


def test_three_replies_of_no_use_in_a_row_end_a_form() -> None:
    forms, told = asked(lambda form, _: GOOD if form == "json_object" else BAD, 8)
    assert forms == ["json_schema"] * KEPT + ["json_object"] * 5
    assert told == [""] * (KEPT - 1) + [f"{FORM_IN_USE}json_object"] * 6


def test_the_last_form_stays() -> None:
    forms, told = asked(lambda *_: BAD, 12)
    assert forms == ["json_schema"] * 3 + ["json_object"] * 3 + ["prompt"] * 6
    assert told[-1] == f"{FORM_IN_USE}prompt"


def test_a_good_reply_between_keeps_a_form() -> None:
    forms, told = asked(lambda _, number: BAD if number % 3 else GOOD, 30)
    assert set(forms) == {"json_schema"} and set(told) == {""}


@cases(
    "text",
    [
        f"```json\n{GOOD}\n```",
        f"<think>a</think>{GOOD}",
        GOOD.replace("XAUUSD", "EURUSD"),
    ],
)
def test_a_reply_that_the_door_reads_is_of_use_in_any_wrapping(text: str) -> None:
    forms, _ = asked(lambda *_: text, 6)
    assert set(forms) == {"json_schema"}


@cases("text", ["", "{}", '{"symbol": "XAUUSD"}', f"{GOOD}{GOOD}", f"<think>{GOOD}"])
def test_a_reply_without_the_keys_that_were_asked_for_is_of_none(text: str) -> None:
    forms, _ = asked(lambda *_: text, 4)
    assert forms == ["json_schema"] * 3 + ["json_object"]


@pytest.mark.parametrize("stop", ["length", "content_filter"])
def test_a_reply_that_was_stopped_says_nothing_of_its_form(stop: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        told = body("openai_compatible", BAD)
        told["choices"][0]["finish_reason"] = stop
        return httpx2.Response(200, json=told)

    with bench(answer, LOCAL) as way:
        for _ in range(6):
            way.ask("openai_compatible", "qwen")
        assert {form_of(sent) for sent in way.sent} == {"json_schema"}


def test_the_first_form_is_tried_again_and_kept_only_if_it_is_of_use() -> None:
    kept = openai_compatible.FORM_KEPT
    forms, told = asked(lambda form, _: GOOD if form == "prompt" else BAD, 7 + 2 * kept)
    assert forms.count("json_schema") == 3 + 2, "once every FORM_KEPT requests"
    assert forms[-1] == "prompt" and told[-1] == f"{FORM_IN_USE}prompt"
    forms, told = asked(lambda form, at: GOOD if at > 10 else BAD, 6 + kept + 9, "llama")
    assert forms[6:] == ["prompt"] * (kept - 1) + ["json_schema"] * 10
    assert told[-1] == "", "the first form needs no word"


def test_each_model_has_a_form_of_its_own() -> None:
    with bench(serving(lambda *_: BAD), LOCAL) as way:
        for _ in range(4):
            way.ask("openai_compatible", "one")
        way.ask("openai_compatible", "two")
    assert [form_of(sent) for sent in way.sent][-2:] == ["json_object", "json_schema"]


def test_openai_itself_keeps_its_form() -> None:
    with bench(serving(lambda *_: BAD)) as way:
        told = {way.ask("openai_compatible").detail for _ in range(8)}
    assert {form_of(sent) for sent in way.sent} == {"json_schema"} and told == {""}


# --- told -----------------------------------------------------------------------------------------


def a_call(detail: str, **changes: Any) -> Any:
    told = {"status": "garbage", "model": "gpt-6-luna", "provider": "openai_compatible"}
    return calls.a_call(**{**told, "detail": detail, **changes})


@cases(
    ("details", "form"),
    [
        ([""], ""),
        ([f"not JSON; {FORM_IN_USE}json_object"], "json_object"),
        ([f"{FORM_IN_USE}json_object", f"google: 429; {FORM_IN_USE}prompt"], "prompt"),
        ([f"{FORM_IN_USE}prompt", ""], ""),
    ],
)
def test_the_command_tells_the_form_of_the_newest_call(
    tmp_path: Path, details: list[str], form: str
) -> None:
    home = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    profile = home / "profiles" / "default.json"
    profile.parent.mkdir(parents=True)
    profile.write_text('{"agents": {"provider": "openai_compatible"}}')
    database = open_home(home)
    for number, detail in enumerate(details, 1):
        database.write_calls(key_of(System().real_now()), [a_call(detail, round=number)])
    database.close()
    run = CliRunner().invoke
    table = run(main, ["--home", str(home), "models"]).output
    document = json.loads(run(main, ["--home", str(home), "models", "--json"]).output)
    told = {
        row["model"]: row["health"]["form"]
        for row in document["vendors"][2]["models"]
    }  # fmt: skip
    said = f"{FORM_IN_USE}{form}: replies to the one before could not be used" if form else ""
    assert told["gpt-6-luna"] == form
    assert (said in table) if said else (FORM_IN_USE not in table)

"""How the newest calls to a model went, in words: what was usable, what is wrong, what to do."""

from __future__ import annotations

from typing import Any

import pytest

from agent_config import AgentSettings
from tests.doubles.vendor_line import agents
from tests.doubles.vendor_server import ANTHROPIC
from torra.desk.models import call_words
from torra.providers.call_health import ModelHealth, health
from torra.providers.vendors.table import FORM_IN_USE

HAIKU = "claude-haiku-5-5"
KEY = {"ANTHROPIC_API_KEY": "canary"}


def quick(status: str, detail: str = "", number: int = 5, **more: Any) -> ModelHealth:
    """Return how the quick model stands after as many calls that all ended so."""
    calls = [
        {
            "number": place, "at": f"2026-02-13T10:0{place}:00Z", "provider": "", "model": HAIKU,
            "status": status, "detail": detail, "elapsed_ms": 20_000.0, **more,
        }
        for place in range(number)
    ]  # fmt: skip
    return health([agents(ANTHROPIC)], lambda _: calls)[0]


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (quick("ok", number=0), "not asked yet"),
        (quick("ok"), "5 of its newest 5 calls usable, the last at 2026-02-13 10:04 UTC"),
        (quick("garbage"), "0 of its newest 5 calls usable: the reply cannot be read"),
        (
            quick("garbage", f"not JSON; {FORM_IN_USE}prompt"),
            "0 of its newest 5 calls usable: the model answered, but not in the form that was "
            "asked for; asked in the form prompt: "
            "replies to the one before could not be used",
        ),
        (quick("error", "401"), "0 of its newest 5 calls usable: the key was refused"),
        (
            quick("timeout"),
            "0 of its newest 5 calls usable: no answer came within 20 seconds",
        ),
        (quick("late"), "0 of its newest 5 calls usable: no answer came within 20 seconds"),
    ],
)
def test_a_line_says_how_many_were_usable_and_what_is_wrong(one: ModelHealth, line: str) -> None:
    assert call_words.line(one) == line


def test_a_model_that_fails_has_a_remedy_and_no_other_one() -> None:
    remedy = call_words.remedy(quick("error", "401"), KEY)
    assert remedy == "set ANTHROPIC_API_KEY to a key that is valid, then restart the desk"
    assert call_words.remedy(quick("error", "401", 4), KEY) == ""
    assert call_words.remedy(quick("ok"), KEY) == ""


def test_what_others_answered_before_is_not_this_models_trouble() -> None:
    one = quick("error", "503; anthropic: 401")
    assert "the key was refused" in call_words.line(one)


def test_a_plug_in_is_told_of_without_its_own_words() -> None:
    calls = [
        {
            "number": place, "at": "2026-02-13T10:00:00Z", "provider": "", "model": HAIKU,
            "status": "error", "detail": "sk-1234 <b>hello</b>", "elapsed_ms": 9.0,
        }
        for place in range(5)
    ]  # fmt: skip
    settings = AgentSettings(
        provider="shop:talker", quick_think_model=HAIKU, deep_think_model=HAIKU
    )
    (one,) = health([settings], lambda _: calls)
    words = f"{call_words.line(one)} {call_words.remedy(one, KEY)}"
    assert one.failing and "the vendor failed (error)" in words
    assert "hello" not in words and "sk-" not in words

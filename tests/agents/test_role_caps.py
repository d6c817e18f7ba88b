"""Caps of single roles: a prompt is shortened, or refused before the call, and money follows."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pydantic import ValidationError

from agent_config import CAPS, MAX_PROMPT_BYTES, OUTPUT_TOKENS, AgentSettings
from agents.contracts import CallBound
from agents.debate.deliberation import Deliberation
from agents.registry import SCORER
from tests.cases import cases
from tests.doubles.scripted import FULL_FEATURES, Scripted, context, debate, settings
from torra.tick.debate import score_chart

BULL: Final = "bull_researcher"
MANY: Final = {**FULL_FEATURES, **{f"cot.number_{n:03d}": n + 0.5 for n in range(300)}}
"""More numbers from beside the chart than a prompt of the usual length holds."""


def sit(voice: Scripted, caps: Any, **more: Any) -> Deliberation:
    config = settings(provider="anthropic", role_caps=caps)
    return debate(voice, about=context(features=MANY), config=config, **more)


def size(voice: Scripted, name: str) -> int:
    (request,) = voice.asked(name)
    return len((request.system + request.user).encode())


@cases("most", [8_000, MAX_PROMPT_BYTES, CAPS["prompt_bytes"][1]])
def test_a_prompt_is_shortened_to_the_cap_of_its_role(most: int) -> None:
    voice = Scripted()
    record = sit(voice, {BULL: {"prompt_bytes": most}})
    assert (f"shortened:{BULL}" in record.flags) is (most <= MAX_PROMPT_BYTES)
    assert most - 100 < size(voice, BULL) <= most or most > MAX_PROMPT_BYTES
    usual = size(voice, "bear_researcher")
    assert MAX_PROMPT_BYTES - 100 < usual <= MAX_PROMPT_BYTES, "it has no cap of its own"


def test_a_prompt_that_no_shortening_brings_under_the_cap_is_refused_before_the_call() -> None:
    voice = Scripted()
    record = sit(voice, {"technical": {"prompt_bytes": CAPS["prompt_bytes"][0]}})
    assert record.failures == {"technical": "refused"}
    assert not voice.asked("technical")
    assert not [call for call in record.calls if call.role_id == "technical"]


def test_the_fallback_has_its_cap_too() -> None:
    voice = Scripted({name: OSError() for name in ("technical", BULL, "bear_researcher")})
    record = sit(voice, {SCORER.id: {"prompt_bytes": 2_000}}, fallback=score_chart)
    assert not voice.asked(SCORER.id) and "fallback_failed:refused" in record.flags


def test_an_answer_may_be_as_long_as_its_role_s_cap_and_as_long_is_reserved() -> None:
    voice, seen = Scripted(), list[CallBound]()
    caps = {
        BULL: {"prompt_bytes": 12_000, "output_tokens": 4_000},
        "risk_gate": {"output_tokens": 300},
    }

    def reserve(_: str, bounds: tuple[CallBound, ...]) -> bool:
        seen.extend(bounds)
        return True

    sit(voice, caps, reserve=reserve)
    told = {one.role_id: (one.prompt_bytes, one.output_tokens) for one in seen}
    assert told == {
        "technical": (MAX_PROMPT_BYTES, OUTPUT_TOKENS["quick"]),
        BULL: (12_000, 4_000),
        "bear_researcher": (MAX_PROMPT_BYTES, OUTPUT_TOKENS["deep"]),
        "risk_gate": (MAX_PROMPT_BYTES, 300),
    }
    for request in voice.requests:
        assert request.max_output_tokens == told[request.role.id][1]


@cases(
    ("caps", "said"),
    [
        ({"prompt_bytes": 1_999}, "prompt_bytes of technical is 1999: give 2,000 to 24,000"),
        ({"prompt_bytes": 24_001}, "prompt_bytes of technical is 24001: give 2,000 to 24,000"),
        ({"output_tokens": 199}, "output_tokens of technical is 199: give 200 to 8,000"),
        ({"output_tokens": 8_001}, "output_tokens of technical is 8001: give 200 to 8,000"),
        ({"prompt": 3_000}, "prompt of technical is no cap: name prompt_bytes or output_tokens"),
        ({"prompt_bytes": 3_000.5}, "integer"),
    ],
)
def test_a_cap_outside_its_bounds_is_refused(caps: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        AgentSettings(role_caps={"technical": caps})


def test_an_empty_cap_is_none() -> None:
    assert AgentSettings(role_caps={"technical": {}}) == AgentSettings()

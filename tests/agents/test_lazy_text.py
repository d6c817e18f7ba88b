"""A field of text may be written when it is first read; to everybody it is text."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.contracts import VECTORS, Prompt
from agents.registry import AGENTS
from agents.texts import fence
from agents.texts.lazy_text import lazy_text
from scoring_rubric import build_interpretive_prompt
from tests.cases import cases
from tests.doubles import scripted
from torra.providers.rules.rule import ADX
from torra.providers.rules.tables import common_signals, signals_for

EAGER = Prompt("system", "user", "report", ("technical.rsi14",))


class Writer:
    """Counts how often it is asked to write."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        return "user"


@cases(
    "read",
    [
        lambda prompt: prompt == EAGER,
        lambda prompt: EAGER == prompt,  # noqa: SIM300 - the other one is asked
        lambda prompt: hash(prompt) == hash(EAGER),
        lambda prompt: repr(prompt) == repr(EAGER),
        lambda prompt: asdict(prompt) == asdict(EAGER),
        lambda prompt: replace(prompt, shape="case") == replace(EAGER, shape="case"),
        lambda prompt: pickle.loads(pickle.dumps(prompt)) == EAGER,
        lambda prompt: copy.deepcopy(prompt) == EAGER,
        lambda prompt: type(prompt.user) is str,
    ],
    ids=["equal", "equal-to", "hash", "repr", "asdict", "replace", "pickle", "copy", "type"],
)
def test_it_is_text_to_everybody_and_written_once(read: Any) -> None:
    writer = Writer()
    prompt = Prompt("system", lazy_text(writer), "report", EAGER.evidence)
    assert prompt.system == "system"
    assert writer.asked == 0
    assert read(prompt)
    assert prompt.user == "user"
    assert writer.asked == 1


def test_the_value_stays_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        EAGER.user = "other"  # type: ignore[misc]


def test_a_prompt_is_what_it_was_when_it_is_read_late() -> None:
    about = scripted.context(features=scripted.FULL_FEATURES)
    for agent in AGENTS.values():
        early, late = (build_interpretive_prompt(about, agent.role) for _ in range(2))
        text = early.user
        assert late.user == text
        assert late.evidence == early.evidence


@example(text="ab ", limit=8, within=False)
@example(text=" ab", limit=8, within=False)
@example(text="a  b", limit=8, within=False)
@example(text="abcdefghij", limit=8, within=False)
@example(text="a`b", limit=8, within=False)
@given(st.text(max_size=60) | st.text("ab <{}`[\n", max_size=60), st.integers(4, 40), st.booleans())
def test_a_clean_text_is_what_cleaning_makes_of_it(text: str, limit: int, within: bool) -> None:
    nonce = "5eedfeed5eedfeed"
    text = f"{text}{nonce.upper()}" if within else text
    short = fence.clean(text, limit, nonce)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fence, "_is_clean", lambda _: False)
        assert fence.clean(text, limit, nonce) == short


def test_the_same_features_are_read_once_and_others_anew() -> None:
    features = dict(scripted.context(features=scripted.FULL_FEATURES).features)
    first = common_signals(features)
    assert common_signals(dict(features)) is first
    for name in ("technical.rsi14", ADX):
        changed = {**features, name: features[name]._replace(value=12.5)}
        other = common_signals(changed)
        assert other == signals_for("", changed, VECTORS)
        assert other != first
        first = other

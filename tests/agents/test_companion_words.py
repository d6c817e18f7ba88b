"""Companions in prompts and in words: who reads them, what each number is called, what is cut."""

from __future__ import annotations

import pytest

from agents.contracts import Feature
from agents.evidence import OUTSIDE
from agents.features import label_of, meaning_of, name_of, reading_of, sides
from agents.registry import AGENTS
from scoring_rubric import LEFT_OUT, build_interpretive_prompt
from tests.doubles.scripted import context
from torra.evidence.companion_readings import NUMBERS

READERS = {
    "technical", "momentum", "fundamental", "bull_researcher", "bear_researcher",
    "research_manager", "regime_reader", "macro", "risk_gate",
}  # fmt: skip


def test_who_reads_companions() -> None:
    about = context(features={"companion.dxy.change_1": 0.125})
    readers = {
        name
        for name, agent in AGENTS.items()
        if "companion.dxy.change_1 = 0.125" in build_interpretive_prompt(about, agent.role).user
    }
    assert readers == READERS


def test_nobody_is_told_of_companions_where_there_are_none() -> None:
    for agent in AGENTS.values():
        if agent.role.id == "macro":  # its rubric is about them; it abstains where it has none
            continue
        told = build_interpretive_prompt(context(features={"technical.rsi14": 50.0}), agent.role)
        assert "companion" not in told.system + told.user


def test_numbers_from_beside_the_chart_may_be_left_out() -> None:
    assert set(LEFT_OUT) == {*OUTSIDE, "spread."}


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("change_1", "dxy: change over 1 bar"),
        ("change_5", "dxy: change over 5 bars"),
        ("change_20", "dxy: change over 20 bars"),
        ("percentile", "dxy: rank of its close among its last 250"),
        ("correlation", "dxy: correlation with this symbol over 60 bars"),
    ],
)
def test_each_number_is_called_by_the_users_name(number: str, said: str) -> None:
    assert number in NUMBERS
    feature = f"companion.dxy.{number}"
    assert name_of(feature) == label_of(feature) == said
    assert meaning_of(feature).startswith("high: ") and reading_of(feature, 1) == ""


def test_what_is_no_number_of_a_companion_keeps_its_id() -> None:
    for feature in ("companion.dxy.close", "companion.change_1x", "companions.dxy.change_1"):
        assert name_of(feature) == feature


def test_a_companion_may_speak_for_either_side_and_its_correlation_for_none() -> None:
    """Which way it leans hangs on how it goes with the symbol: that is the agents' to argue."""
    features = {
        name: Feature(name, value, "", "2026-01-01T00:00:00Z")
        for name, value in (
            ("companion.dxy.change_5", -0.4), ("companion.dxy.correlation", -0.7),
            ("companion.vix.change_5", None),
        )
    }  # fmt: skip
    assert sides("companion.dxy.change_5", features) == (1, -1)
    assert sides("companion.dxy.correlation", features) == ()
    assert sides("companion.vix.change_5", features) == ()

"""The ladder: full, budget, nobody; down at once, up with room to spare, kept over restarts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_config import MAX_PROMPT_BYTES, MODES, OUTPUT_TOKENS, AgentSettings
from agents.registry import AGENTS, Agent
from instance_database import Database
from tests.worlds.stores import NOON, Hand
from torra.errors import StoreUnavailable
from torra.providers.prices import PriceList
from torra.store.ledger import Booking
from torra.tick.degradation import (
    HYSTERESIS,
    DegradationLevel,
    degradation_level_name,
    tick_worst_case,
)
from torra.tick.spending import SpendingAccount

PRICES = PriceList({"flat": {"input": 10, "output": 10}}, now=lambda: NOON)
TECHNICAL = AGENTS["technical"]
DESK: dict[str, Agent] = {
    name: AGENTS.get(name) or Agent(replace(TECHNICAL.role, id=name), TECHNICAL.analyze)
    for name in MODES["full"].seats
}
"""A full desk; the agents that it does not have yet are the technical one's twins."""


def paid(vendor: str) -> bool:
    return False


def agents_of(ceiling: float = 2.0, **more: Any) -> AgentSettings:
    given: dict[str, Any] = {
        "mode": "full",
        "provider": "anthropic",
        "quick_think_model": "flat",
        "deep_think_model": "flat",
        "max_api_cost_per_hour": ceiling,
    }
    return AgentSettings(**(given | more))


FULL = tick_worst_case(PRICES, agents_of(), paid, DESK)
BUDGET = tick_worst_case(PRICES, agents_of(mode="budget"), paid, DESK)


def spend(database: Database, hand: Hand, usd: float, profile: str = "mine") -> None:
    row = Booking("analysts", "technical", 1, 1, "anthropic", "flat", usd)
    database.book(profile, "a tick", [row], at=hand(), until=hand())


def stand(database: Database, hand: Hand, settings: AgentSettings) -> DegradationLevel:
    return SpendingAccount(database, PRICES, "mine", paid, hand).degradation_level(settings, DESK)


Step = tuple[float, float, str]
"""Seconds that pass, what is spent then, and the level on which the next tick runs."""

HALF: dict[str, Any] = {"active_agents": ("technical", "bull_researcher")}
LIVES: dict[str, tuple[dict[str, Any], float, list[Step]]] = {
    "its own desk": ({}, FULL, [(0, 0, "full")]),
    "down at once to the highest that fits": (
        {}, 2 * FULL, [(0, FULL + 0.001, "budget"), (0, FULL - BUDGET, "L1_ONLY")],
    ),
    "up with room to spare alone: one tick would fit, two would not": (
        {}, 10 * FULL, [
            (0, 10 * FULL, "L1_ONLY"),
            (3700, 10 * FULL - HYSTERESIS * BUDGET + 0.001, "L1_ONLY"),
            (3700, 10 * FULL - HYSTERESIS * BUDGET - 0.001, "budget"),
            (3700, 10 * FULL - HYSTERESIS * FULL - 0.001, "full"),
        ],
    ),
    "up after an hour in which nothing was spent": (
        {}, FULL + BUDGET, [(0, FULL, "budget"), (3700, 0, "full")],
    ),
    "no smaller desk": (
        {"mode": "budget"}, 2 * FULL, [(0, 0, "budget"), (0, 2 * FULL - 0.001, "L1_ONLY")],
    ),
    "a custom desk": (HALF, 2 * FULL, [(0, 0, "custom"), (0, 2 * FULL - 0.001, "L1_ONLY")]),
    "a ceiling of nothing": ({}, 0.0, [(0, 0, "L1_ONLY")]),
}  # fmt: skip


@pytest.mark.parametrize("life", LIVES)
def test_a_profile_stands_on_the_level_that_its_hour_can_pay(
    database: Database, hand: Hand, life: str
) -> None:
    changes, ceiling, steps = LIVES[life]
    settings = agents_of(ceiling, **changes)
    for seconds, usd, name in steps:
        hand.pass_by(seconds)
        spend(database, hand, usd)
        on = settings.model_copy(update={"mode": "budget"}) if name == "budget" else settings
        worst = tick_worst_case(PRICES, on, paid, DESK)
        asked = name != "L1_ONLY"
        assert stand(database, hand, settings) == DegradationLevel(
            on, name, calls_models=asked, worst_usd=worst if asked else 0.0
        )
    left = {name for *_, name in steps} != {degradation_level_name(settings)}
    assert database.degradation_level("mine") == (steps[-1][2] if left else None)


def test_an_edit_of_the_profile_takes_effect_at_the_next_tick(
    database: Database, hand: Hand
) -> None:
    spend(database, hand, FULL)
    assert stand(database, hand, agents_of(4 * FULL)).name == "full"
    assert stand(database, hand, agents_of(FULL / 2)).name == "L1_ONLY"
    assert stand(database, hand, agents_of(4 * FULL, mode="budget")).name == "budget"
    assert stand(database, hand, agents_of(4 * FULL)).name == "full"


def test_without_the_database_nobody_is_asked(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise StoreUnavailable("disk I/O error")

    monkeypatch.setattr(database, "spent", broken)
    assert not stand(database, hand, agents_of()).calls_models


def test_the_worst_case_of_a_tick_counts_every_round_and_one_of_gate_and_fallback() -> None:
    def at(**changes: Any) -> float:
        return tick_worst_case(PRICES, agents_of(mode="budget", **changes), paid)

    quick = PRICES.worst_case(
        "anthropic", "flat", prompt_bytes=MAX_PROMPT_BYTES, output_tokens=OUTPUT_TOKENS["quick"]
    )
    deep = PRICES.worst_case(
        "anthropic", "flat", prompt_bytes=MAX_PROMPT_BYTES, output_tokens=OUTPUT_TOKENS["deep"]
    )
    assert at() == pytest.approx(2 * quick + 4 * deep + 2 * quick)
    assert at(debate_rounds=3) == pytest.approx(2 * quick + 12 * deep + 2 * quick)
    dear = {"fallback_models": ["openai_compatible:gpt-5.5-pro"]}
    assert at(role_caps={"risk_gate": {"prompt_bytes": 20_000}}) == pytest.approx(
        2 * quick + 4 * deep + 2 * PRICES.worst_case(
            "anthropic", "flat", prompt_bytes=20_000, output_tokens=OUTPUT_TOKENS["quick"]
        )
    )  # fmt: skip
    assert at(**dear) > 1.5 * at()

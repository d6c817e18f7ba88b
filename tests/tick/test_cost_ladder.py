"""The ladder: full, budget, nobody; down at once, up with room to spare, kept over restarts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from agent_config import MAX_PROMPT_BYTES, MODES, OUTPUT_TOKENS, AgentSettings
from agents.registry import AGENTS, Agent
from instance_database import Database
from tests.worlds.stores import NOON, Hand
from torra.errors import StoreUnavailable
from torra.providers.prices import PriceList
from torra.store import ledger as ledger_table
from torra.store.ledger import Booking
from torra.tick import spending
from torra.tick.spending import HYSTERESIS, DegradationLevel, SpendingAccount, tick_worst_case

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


def test_a_profile_starts_on_its_own_desk(database: Database, hand: Hand) -> None:
    settings = agents_of(FULL)
    assert stand(database, hand, settings) == DegradationLevel(
        settings, "full", asked=True, worst_usd=FULL
    )
    assert database.degradation_level("mine") is None


def test_it_steps_down_at_once_to_the_highest_rung_that_fits(
    database: Database, hand: Hand
) -> None:
    settings = agents_of(2 * FULL)
    spend(database, hand, FULL + 0.001)
    below = stand(database, hand, settings)
    assert (below.name, below.asked, below.settings.mode) == ("budget", True, "budget")
    assert below.settings == settings.model_copy(update={"mode": "budget"})
    spend(database, hand, FULL - BUDGET)
    assert stand(database, hand, settings) == DegradationLevel(settings, "L1_ONLY", asked=False)
    assert database.degradation_level("mine") == "L1_ONLY"


def test_it_climbs_only_with_room_to_spare(database: Database, hand: Hand) -> None:
    ceiling = 10 * FULL
    settings = agents_of(ceiling)
    spend(database, hand, ceiling)
    assert stand(database, hand, settings).name == "L1_ONLY"
    hand.pass_by(3700)
    spend(database, hand, ceiling - HYSTERESIS * BUDGET + 0.001)
    assert stand(database, hand, settings).name == "L1_ONLY", "one tick would fit, two would not"
    hand.pass_by(3700)
    spend(database, hand, ceiling - HYSTERESIS * BUDGET - 0.001)
    assert stand(database, hand, settings).name == "budget"
    hand.pass_by(3700)
    spend(database, hand, ceiling - HYSTERESIS * FULL - 0.001)
    assert stand(database, hand, settings).name == "full"
    assert database.degradation_level("mine") == "full"


def test_an_hour_in_which_nothing_was_spent_is_room_enough(database: Database, hand: Hand) -> None:
    settings = agents_of(FULL + BUDGET)
    spend(database, hand, FULL)
    assert stand(database, hand, settings).name == "budget"
    hand.pass_by(3700)
    assert stand(database, hand, settings).name == "full"


def swings(database: Database, hand: Hand) -> int:
    """How often the level changes in ticks that spend a tenth of their worst case."""
    settings = agents_of(2 * FULL)
    names = []
    for _ in range(200):
        stood = stand(database, hand, settings)
        names.append(stood.name)
        if stood.asked:
            spend(database, hand, (FULL if stood.name == "full" else BUDGET) / 10)
        hand.pass_by(300)
    assert {"full", "budget"} <= set(names)
    return sum(before != after for before, after in pairwise(names))


def test_hysteresis_keeps_it_from_swinging(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = swings(database, hand)
    hand.pass_by(7200)
    ledger_table.set_degradation_level(database, "mine", "full")
    monkeypatch.setattr(spending, "HYSTERESIS", 1.0)
    rash = swings(database, hand)
    assert 5 * calm <= rash, (calm, rash)


def test_a_restart_keeps_the_rung(database: Database, hand: Hand) -> None:
    settings = agents_of(10 * FULL)
    spend(database, hand, 10 * FULL)
    assert stand(database, hand, settings).name == "L1_ONLY"
    hand.pass_by(3590)
    database.close()
    again = Database.open(database.path, now=hand)
    hand.pass_by(20)
    spend(again, hand, 10 * FULL - 1.5 * BUDGET)
    assert stand(again, hand, settings).name == "L1_ONLY"
    another = SpendingAccount(again, PRICES, "another", paid, hand)
    assert another.degradation_level(settings, DESK).name == "full"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"mode": "budget"}, "budget"),
        ({"active_agents": ("technical", "bull_researcher")}, "custom"),
    ],
)
def test_a_desk_without_a_smaller_one_below_it_asks_or_does_not(
    database: Database, hand: Hand, change: dict[str, Any], name: str
) -> None:
    settings = agents_of(2 * FULL, **change)
    worst = tick_worst_case(PRICES, settings, paid, DESK)
    assert stand(database, hand, settings) == DegradationLevel(
        settings, name, asked=True, worst_usd=worst
    )
    spend(database, hand, 2 * FULL - 0.001)
    assert stand(database, hand, settings) == DegradationLevel(settings, "L1_ONLY", asked=False)


def test_an_edit_of_the_profile_takes_effect_at_the_next_tick(
    database: Database, hand: Hand
) -> None:
    spend(database, hand, FULL)
    assert stand(database, hand, agents_of(4 * FULL)).name == "full"
    assert stand(database, hand, agents_of(FULL / 2)).name == "L1_ONLY"
    assert stand(database, hand, agents_of(4 * FULL, mode="budget")).name == "budget"
    assert stand(database, hand, agents_of(4 * FULL)).name == "full"


def test_a_ceiling_of_nothing_asks_nobody(database: Database, hand: Hand) -> None:
    assert not stand(database, hand, agents_of(0.0)).asked


@pytest.mark.parametrize("provider", ["rules", "recorded", "openai_compatible"])
def test_who_costs_nothing_never_touches_the_database(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setattr(database, "connection", None)
    settings = AgentSettings(provider=provider, max_api_cost_per_hour=0.0)
    account = SpendingAccount(
        database, PRICES, "mine", lambda vendor: vendor == "openai_compatible", hand
    )
    assert account.degradation_level(settings) == DegradationLevel(settings, "budget", asked=True)


def test_without_the_database_nobody_is_asked(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise StoreUnavailable("disk I/O error")

    monkeypatch.setattr(database, "spent", broken)
    assert not stand(database, hand, agents_of()).asked


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

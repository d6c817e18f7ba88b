"""The swarm's seven seats and all that can fail in them: 128 subsets, three kinds of failure.

Each is put beside the same desk at which those seats abstained, and beside one without them: who
fails lends nothing, so no opening may come out larger for it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from agent_config import EXPERTS, GATE_ID, JUDGE_ID, MODES, READER_ID
from agents.contracts import DebateContext
from agents.debate.deliberation import Deliberation
from agents.debate.scoring import DIRECTIONS
from agents.registry import AGENTS
from tests.agents.test_debate_invariants import holds
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.scripted import (
    SWARM_FEATURES,
    Scripted,
    abstaining,
    context,
    debate,
    debate_hanging,
    reporting,
    settings,
)

Scaled = Callable[..., int]
DESK: Final = MODES["swarm"].seats
FAILURES: Final[Mapping[str, Any]] = {
    "error": RuntimeError("500"),
    "timeout": TimeoutError(),
    "garbage": "I would hold here.",
}
SUBSETS: Final = [
    frozenset(part) for size in range(8) for part in itertools.combinations(DESK, size)
]
MARKETS: Final[tuple[Mapping[str, float | str], ...]] = (
    {},
    {"market.regime": "volatile"},
    {"macro.vix_rank": 99.0, "market.regime": "range"},
    {"derivs.funding_rank": 99.0},
    {"market.spread_atr": 9.0, "derivs.funding_rank": 0.5},
)
"""A calm one, a storm, a panic, and markets in which one side, or both, cannot be opened."""


def about(market: Mapping[str, float | str]) -> DebateContext:
    return context(features={**SWARM_FEATURES, **market})


def saying(rng: random.Random) -> dict[str, Any]:
    """Return what a swarm says: each seat with a number and a confidence of its own."""

    def a_word() -> str:
        return rng.choice(["high", "medium", "low"])

    said: dict[str, Any] = {
        name: reporting(value=round(rng.uniform(-0.3, 0.3), 2), confidence=a_word())
        for name in EXPERTS
    }
    side = rng.choice(["LONG", "SHORT", "NONE"])
    told = {
        "side": side,
        "win_share": rng.choice([0.2, 0.5, 0.8]),
        "confidence": a_word(),
        "counter": rng.choice(["", "RSI at 61 may turn."]),
    }
    said[JUDGE_ID] = lambda request: scripted.decision(request, **told)
    read = {
        "regime": rng.choice(["trend_up", "quiet"]),
        "first": rng.choice([*EXPERTS, "none"]),
        "budget_pct": rng.choice([30, 100]),
    }
    said[READER_ID] = lambda request: scripted.regime(request, **read)
    multiplier = rng.choice([1.0, 0.6])
    said[GATE_ID] = lambda request: scripted.ruling(request, multiplier=multiplier)
    return said


def held(
    script: Mapping[str, Any],
    market: Mapping[str, float | str] = MARKETS[0],
    *,
    quiet: frozenset[str] = frozenset(),
    **more: Any,
) -> Deliberation:
    """Return a swarm's deliberation, at whose desk the `quiet` abstain without being asked."""
    agents = {name: abstaining(seat) if name in quiet else seat for name, seat in AGENTS.items()}
    config = settings(mode="swarm", **more)
    return debate(Scripted(script), about=about(market), config=config, agents=agents)


def expected(failing: frozenset[str], silent: frozenset[str]) -> tuple[str, frozenset[str]]:
    """Return the source type and who failed, as docs/debate.md has it."""
    if failing >= {*EXPERTS}:
        # Nobody is asked to judge what nobody said.
        return "L1_ONLY", failing - {JUDGE_ID, GATE_ID}
    if not {*EXPERTS} - failing - silent:
        # The judge has no report to read and abstains, so the gate has nothing to rule on.
        return "L1_ONLY", failing - {JUDGE_ID, GATE_ID}
    return ("AGENT_PARTIAL" if failing else "AGENT_SWARM"), failing


def sizes(record: Deliberation) -> dict[str, float]:
    """Return what is left of an opening's size, by side."""
    return {side: 0.0 if record.vetoes(side) else record.size_share(side) for side in DIRECTIONS}


@cases("kind", FAILURES)
def test_any_subset_of_the_swarm_may_fail(kind: str, scaled: Scaled) -> None:
    rng, larger = random.Random(kind), 0
    for number, failing in enumerate(rng.sample(SUBSETS, scaled(128, 18))):
        # By turns two seats have nothing to read: no spread, no companions.
        silent = frozenset({"microstructure", "macro"}) if number % 2 else frozenset[str]()
        failing -= silent  # noqa: PLW2901
        market, script = MARKETS[number % len(MARKETS)], saying(rng)
        down = {**script, **dict.fromkeys(failing, FAILURES[kind])}
        record = held(down, market, quiet=silent)
        source, failed = expected(failing, silent)
        assert (str(record.source_type), frozenset(record.failures)) == (source, failed), failing
        assert (failing >= {*EXPERTS}) == (JUDGE_ID in record.not_asked), failing
        assert record.outage == (source == "L1_ONLY"), failing
        holds(record, about(market).scores)
        officer_stands(record, market)
        spoke = {*EXPERTS} - failing - silent
        assert ("thin_swarm" in record.flags) == (len(spoke) == 1), failing
        beside = held(script, market, quiet=failing | silent)
        assert record.debate == beside.debate, failing
        for side, size in sizes(record).items():
            assert size <= sizes(beside)[side], (sorted(failing), side)
            larger += size < sizes(beside)[side]
        if {*EXPERTS} - failing:
            seats = tuple(name for name in DESK if name not in failing)
            without = held(script, market, quiet=silent, active_agents=seats)
            assert record.debate == without.debate, failing
    assert larger, "who fails costs an opening something"


def officer_stands(record: Deliberation, market: Mapping[str, float | str]) -> None:
    """Assert that rules and rows hold whoever failed."""
    assert record.veto >= (market.get("market.spread_atr", 0.0) == 9.0)
    vetoed: Mapping[float | str | None, str] = {99.0: "BUY", 0.5: "SELL"}
    crowded = vetoed.get(market.get("derivs.funding_rank"))
    assert crowded is None or crowded in record.ruling.veto_sides
    assert record.swarm is not None
    panics = "macro.vix_rank" in market
    assert record.swarm.storm == (0.5 if panics else 1.0)
    assert ("MACRO_PANIC" in record.rule_ruling.reasons) == panics
    volatile = market.get("market.regime") == "volatile"
    assert all(record.size_share(side) <= (0.4 if volatile else 1.0) for side in DIRECTIONS)


@cases("late", [("liquidity", GATE_ID), (JUDGE_ID, READER_ID)], ids=str)
def test_who_is_late_is_who_fails(late: tuple[str, ...]) -> None:
    record, _ = debate_hanging(late, {*late}, about=about({}), config=settings(mode="swarm"))
    assert record.failures == dict.fromkeys(late, "timeout")
    down = held(dict.fromkeys(late, TimeoutError()))
    assert record.debate == down.debate and sizes(record) == sizes(down)


def test_the_subsets_are_all_of_them() -> None:
    assert len(set(SUBSETS)) == 128
    told = {expected(part, frozenset())[0] for part in SUBSETS}
    assert told == {"AGENT_SWARM", "AGENT_PARTIAL", "L1_ONLY"}

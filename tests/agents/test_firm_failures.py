"""The firm's eight seats and all that can fail in them: 256 subsets, three kinds of failure.

Each is put beside the same desk at which those seats abstained: who fails lends nothing, so no
opening may come out larger for it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from agent_config import GATE_ID, MODES
from agents.contracts import SIDES
from agents.debate.deliberation import Deliberation
from agents.debate.scoring import DIRECTIONS
from agents.registry import AGENTS
from tests.agents.test_debate_invariants import holds
from tests.agents.test_swarm_failures import FAILURES
from tests.cases import cases
from tests.doubles.scripted import (
    FULL_FEATURES,
    Scripted,
    abstaining,
    context,
    debate,
    judgement,
    reporting,
    ruling,
    settings,
)

Scaled = Callable[..., int]
DESK: Final = MODES["firm"].seats
ANALYSTS: Final = frozenset(DESK[:4])
OPINIONS: Final = frozenset(DESK[:6])
SUBSETS: Final = [
    frozenset(part) for size in range(9) for part in itertools.combinations(DESK, size)
]
ABOUT: Final = context(features={**FULL_FEATURES, "company.pe": 21.5})


def saying(rng: random.Random) -> dict[str, Any]:
    """Return what a firm says: each seat with a number and a confidence of its own."""

    def a_word() -> str:
        return rng.choice(["high", "medium", "low"])

    said: dict[str, Any] = {
        name: reporting(value=round(rng.uniform(-0.3, 0.3), 2), confidence=a_word())
        for name in ANALYSTS
    }
    for name, way in SIDES.items():
        said[name] = reporting(value=way * rng.choice([0.0, 0.05, 0.14]), confidence=a_word())
    weights = {name: rng.choice([0.0, 0.4, 1.0]) for name in SIDES}
    told = {"winner": rng.choice(["LONG", "SHORT", "NONE"]), "weights": weights}
    confident = {"confidence": a_word(), **told}
    said["research_manager"] = lambda request: judgement(request, **confident)
    multiplier = rng.choice([1.0, 0.6])
    said["risk_gate"] = lambda request: ruling(request, multiplier=multiplier)
    return said


def held(script: Mapping[str, Any], *, quiet: frozenset[str] = frozenset(), **more: Any) -> Any:
    """Return a firm's deliberation, at whose desk the `quiet` abstain without being asked."""
    agents = {name: abstaining(seat) if name in quiet else seat for name, seat in AGENTS.items()}
    config = settings(mode="firm", second_look="never", **more)
    return debate(Scripted(script), about=ABOUT, config=config, agents=agents)


def quorate(failing: frozenset[str]) -> bool:
    """Tell whether three of the four analysts gave a report; an abstention is one."""
    return len(ANALYSTS & failing) <= 1


def expected(
    failing: frozenset[str], silent: frozenset[str] = frozenset()
) -> tuple[str, frozenset[str]]:
    """Return the source type and who failed, as docs/debate.md has it."""
    asked = OPINIONS if quorate(failing) else OPINIONS - frozenset(SIDES)
    if not asked - failing - silent:
        return "L1_ONLY", asked & failing
    # Without a case there is nothing to judge: the manager abstains before it is asked.
    cases = asked & frozenset(SIDES) - failing
    judges = frozenset({"research_manager"}) if cases else frozenset[str]()
    failed = (asked | judges | {GATE_ID}) & failing
    return "AGENT_PARTIAL" if failed else "AGENT_FIRM", failed


def sizes(record: Deliberation) -> dict[str, float]:
    """Return what is left of an opening's size, by side."""
    left = 0.0 if record.veto else record.ruling.multiplier
    return {side: left * record.conviction_for(side) for side in DIRECTIONS}


@cases("kind", FAILURES)
def test_any_subset_of_the_firm_may_fail(kind: str, scaled: Scaled) -> None:
    rng, larger = random.Random(kind), 0
    for number, failing in enumerate(rng.sample(SUBSETS, scaled(256, 24))):
        # By turns two seats have nothing to read, as where there are no news and no companies.
        silent = frozenset({"news", "fundamental"}) if number % 2 else frozenset[str]()
        failing -= silent  # noqa: PLW2901
        script = saying(rng)
        down = {**script, **dict.fromkeys(failing, FAILURES[kind])}
        record = held(down, quiet=silent, rebuttal="never")
        source, failed = expected(failing, silent)
        assert (str(record.source_type), frozenset(record.failures)) == (source, failed), failing
        unheld = not quorate(failing)
        assert record.not_asked == (dict.fromkeys(SIDES, "quorum") if unheld else {})
        holds(record, ABOUT.scores)
        if source == "L1_ONLY":
            # A word of five is less than the quarter of agents.outage_size.
            share = 0.15 * 0.4 if unheld else 1 / 5
            least = pytest.approx(record.rule_ruling.multiplier * share, abs=1e-8)
            assert sizes(record) == dict.fromkeys(DIRECTIONS, least) and record.outage
            continue
        beside = held(script, quiet=failing | silent, rebuttal="never")
        assert unheld or record.debate == beside.debate, failing
        for side, size in sizes(record).items():
            assert size <= sizes(beside)[side], (sorted(failing), side)
            larger += size < sizes(beside)[side]
    assert larger, "who fails costs an opening something"


@cases("rounds", [2, 3])
def test_with_rebuttals_too(scaled: Scaled, rounds: int) -> None:
    rng = random.Random(rounds)
    for failing in rng.sample(SUBSETS, scaled(256, 12)):
        script = saying(rng) | dict.fromkeys(failing, RuntimeError("500"))
        record = held(script, debate_rounds=rounds)
        source, failed = expected(failing)
        assert (str(record.source_type), frozenset(record.failures)) == (source, failed), failing
        assert len(record.calls) <= 14
        holds(record, ABOUT.scores)


def test_the_subsets_are_all_of_them() -> None:
    assert len(set(SUBSETS)) == 256
    told = {expected(part)[0] for part in SUBSETS}
    assert told == {"AGENT_FIRM", "AGENT_PARTIAL", "L1_ONLY"}

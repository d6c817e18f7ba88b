"""A firm's recorded ticks, put together again: with its manager's weights, and without a seat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent_framework import blend
from agents.contracts import VECTORS
from agents.debate.deliberation import Deliberation
from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.scripted import Scripted, context, debate, reporting, settings
from tests.worlds.observed import FIRM, START, plain_tick, random_arm, weighed
from torra.config import Profile, Thresholds
from torra.desk.journal_ticks import opinions
from torra.errors import ConfigError
from torra.evaluation.observations import ArmObservation, TickObservation, four, side_of
from torra.evaluation.recomposition import EXACT, BrainNumbers, Changes, recompose
from torra.replay import recomposing
from torra.replay.recomposing import conviction, unjudged

EAGER = Profile(thresholds=Thresholds(buy=0.25, sell=0.25))
BRAIN = BrainNumbers.of(EAGER)
WEIGHTS = EAGER.sentiment_weights.model_dump()
ALL = frozenset(name for name in FIRM if AGENTS[name].role.kind == "analyst")


@cases("seed", range(4))
def test_with_everything_kept_nothing_changes(seed: int) -> None:
    arm = random_arm(seed, closes=20, desk=FIRM, profile=EAGER)
    assert any(one.weights for tick in arm.ticks for one in tick.opinions)
    found = recompose(arm, Changes(), BRAIN)
    assert found.ticks == arm.ticks and found.label == EXACT


def test_the_weights_of_the_manager_are_what_changes_without_it() -> None:
    arm = random_arm(1, closes=20, desk=FIRM, profile=EAGER)
    found = recompose(arm, Changes(arbiter=False), BRAIN)
    assert found.exact
    pairs = list(zip(arm.ticks, found.ticks, strict=True))
    assert any(one.debate != other.debate for one, other in pairs)
    assert all(a.debate == b.debate for a, b in pairs if weights_of(a) in (None, (1.0, 1.0)))


def weights_of(tick: TickObservation) -> tuple[float, float] | None:
    return next((one.weights for one in tick.opinions if one.weights), None)


@cases(
    ("changes", "why"),
    [
        (Changes(arbiter=False), ""),
        (Changes(ALL - {"news"}), "the research manager had read"),
        (Changes(ALL - {"news"}, researchers=False, gate="rules"), ""),
        (Changes(researchers=False, gate="rules"), ""),
        (Changes(researcher="bull_researcher", gate="rules"), "the research manager had read"),
        (Changes(researcher="bull_researcher", arbiter=False, gate="rules"), ""),
        (Changes(researcher="bull_researcher"), "the gate's model had read"),
    ],
)
def test_what_is_of_first_order_is_labelled_so(changes: Changes, why: str) -> None:
    found = recompose(random_arm(3, closes=20, desk=FIRM), changes, BRAIN)
    assert found.exact is (not why) and why in found.label


def test_who_cannot_be_left_out_is_told_with_all_who_can() -> None:
    arm = replace(random_arm(3, closes=5, desk=FIRM), name="firm")
    with pytest.raises(ConfigError, match="trader is no analyst of firm; there are ") as told:
        recomposing._kept(arm, frozenset(), frozenset({"trader"}))
    for name in (*ALL, "bull_researcher", "bear_researcher", "research_manager"):
        assert name in str(told.value)


# --- against the debate itself --------------------------------------------------------------------


SAID = {
    "technical": reporting(value=0.21, confidence="medium"),
    "sentiment": reporting(value=-0.12, confidence="low"),
    "bull_researcher": reporting(value=0.14, confidence="medium"),
    "bear_researcher": reporting(value=-0.11),
    "risk_gate": RuntimeError("nobody"),
}


def held(manager: Any, *, without: tuple[str, ...] = ()) -> tuple[Deliberation, TickObservation]:
    """Return what a firm said, and its tick; `without` some that never sat there."""
    names = [name for name in FIRM if name not in ("news", "fundamental", *without)]
    config = settings(
        mode="firm", active_agents=tuple(names), second_look="never", rebuttal="never"
    )
    config = config.model_copy(update={"weights": WEIGHTS})
    about = context()
    script = {**SAID, "research_manager": manager}
    said = debate(Scripted({name: script[name] for name in names}), about=about, config=config)
    scores = blend(about.scores, said.scores)
    tick = plain_tick(
        START,
        l1=four(about.scores),
        debate=four(said.debate),
        adjustments=four(said.adjustments),
        scores=four({vector: scores[vector]["score"] for vector in VECTORS}),
        multiplier=said.ruling.multiplier,
        rule_multiplier=said.rule_ruling.multiplier,
        opinions=opinions(said.reports, said.failures),
    )
    (seen,) = weighed([tick], EAGER)
    left = said.conviction_for(side_of(seen.verdict, seen.consensus))
    return said, replace(seen, conviction=left)


def judging(**changes: Any) -> Callable[..., Any]:
    return lambda request: scripted.judgement(request, **changes)


LESS = judging(weights={"bull_researcher": 0.25, "bear_researcher": 1.0}, confidence="low")
MANAGERS = (LESS, judging(winner="NONE"), judging(winner="SHORT"), RuntimeError("nobody"))


@cases("manager", MANAGERS, ids=lambda one: "it")
def test_a_real_deliberation_of_a_firm_is_recomposed(manager: Any) -> None:
    said, tick = held(manager)
    arm = ArmObservation("firm", (tick,), ())
    found = recompose(arm, Changes(), BRAIN)
    assert found.ticks == arm.ticks and found.exact
    for side in ("BUY", "SELL"):
        assert conviction(tick, side, EAGER) == said.conviction_for(side)


@cases("manager", MANAGERS, ids=lambda one: "it")
def test_without_the_manager_it_is_a_desk_at_which_none_sat(manager: Any) -> None:
    _, tick = held(manager)
    _, less = held(manager, without=("research_manager",))
    ticks = recompose(ArmObservation("firm", (tick,), ()), Changes(arbiter=False), BRAIN).ticks
    (found,) = unjudged(ticks, EAGER)
    assert bare(found) == bare(less)
    assert (tick.conviction, tick.debate) != (less.conviction, less.debate)


def test_without_a_researcher_it_is_a_desk_at_which_one_sat_alone() -> None:
    _, tick = held(LESS)
    _, less = held(LESS, without=("bull_researcher",))
    changes = Changes(researcher="bull_researcher")
    (found,) = recompose(ArmObservation("firm", (tick,), ()), changes, BRAIN).ticks
    assert found.scores == less.scores != tick.scores


def bare(tick: TickObservation) -> TickObservation:
    return replace(tick, opinions=(), source_type="")

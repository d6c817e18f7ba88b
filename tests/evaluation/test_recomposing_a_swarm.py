"""A swarm's recorded ticks, put together again: all alike, without a seat, without its judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from agent_config import EXPERTS
from agent_framework import blend
from agents.contracts import VECTORS
from agents.debate.deliberation import Deliberation
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.scripted import SWARM_FEATURES, Scripted, context, debate, reporting, settings
from tests.worlds.observed import START, plain_tick, weighed
from torra.config import Profile, Thresholds
from torra.desk.journal_ticks import opinions, own_veto, swarm_seen
from torra.evaluation.observations import ArmObservation, TickObservation, four, side_of
from torra.evaluation.recomposition import EXACT, OF_EXPERTS, BrainNumbers, Changes, recompose
from torra.replay.recomposing import conviction, of_a_swarm
from torra.tick.tick_record import SwarmRecord

EAGER = Profile(thresholds=Thresholds(buy=0.25, sell=0.25))
BRAIN = BrainNumbers.of(EAGER)
WEIGHTS = EAGER.sentiment_weights.model_dump()
ALL = frozenset(EXPERTS)
SEATS = ("regime_reader", *EXPERTS, "judge", "risk_gate")

SAID: Mapping[str, Any] = {
    "regime_reader": lambda r: scripted.regime(r, regime="range", budget_pct=50, first="macro"),
    "liquidity": reporting(value=0.21, confidence="medium"),
    "microstructure": reporting(value=-0.12, confidence="low"),
    "macro": reporting(value=0.25),
    "geometry": reporting(value=-0.03),
    "judge": lambda r: scripted.decision(r, value=0.12, confidence="medium"),
    "risk_gate": RuntimeError("nobody"),
}


def judging(**changes: Any) -> Callable[..., Any]:
    return lambda request: scripted.decision(request, **changes)


JUDGES = (
    SAID["judge"],
    judging(side="SHORT"),
    judging(side="NONE"),
    # What it says it wins is worth less than it costs: a veto of its own side.
    judging(value=0.1, win_share=0.2),
    RuntimeError("nobody"),
)


def held(
    *,
    without: tuple[str, ...] = (),
    trust: str = "prior",
    hold: str = "size",
    features: Mapping[str, Any] = {},
    **script: Any,
) -> tuple[Deliberation, TickObservation]:
    """Return what a swarm said, and its tick; `without` some that never sat there."""
    names = [name for name in SEATS if name not in without]
    config = settings(
        mode="swarm", active_agents=tuple(names), second_look="never", trust=trust, judge_hold=hold
    )
    config = config.model_copy(update={"weights": WEIGHTS})
    about = context(features={**SWARM_FEATURES, **features})
    told = {**SAID, **script}
    said = debate(Scripted({name: told[name] for name in names}), about=about, config=config)
    return said, seen(said, about.scores, str(about.features["market.regime"].value))


def seen(said: Deliberation, l1: Mapping[str, float], regime: str) -> TickObservation:
    scores = blend(l1, said.scores)
    assert said.swarm is not None
    rule = said.rule_ruling
    swarm = SwarmRecord.parse(said.swarm.as_json())
    tick = plain_tick(
        START,
        l1=four(l1),
        regime=regime,
        debate=four(said.debate),
        adjustments=four(said.adjustments),
        scores=four({vector: scores[vector]["score"] for vector in VECTORS}),
        multiplier=said.ruling.multiplier,
        veto=said.ruling.veto,
        rule_multiplier=rule.multiplier,
        rule_veto=own_veto(rule.veto, rule.reasons),
        opinions=opinions(said.reports, said.failures),
        swarm=swarm_seen("M15", swarm, rule, said.ruling),
    )
    (found,) = weighed([tick], EAGER)
    return replace(found, conviction=said.conviction_for(side_of(found.verdict, found.consensus)))


def anew(tick: TickObservation, changes: Changes) -> TickObservation:
    (found,) = recompose(ArmObservation("swarm", (tick,), ()), changes, BRAIN).ticks
    return of_a_swarm(found, changes, EAGER)


def bare(tick: TickObservation) -> TickObservation:
    return replace(tick, opinions=(), source_type="")


# --- against the debate itself --------------------------------------------------------------------


@cases("judge", JUDGES, ids=lambda one: "it")
def test_a_real_deliberation_of_a_swarm_is_recomposed(judge: Any) -> None:
    for hold in ("veto", "size"):
        said, tick = held(judge=judge, hold=hold)
        arm = ArmObservation("swarm", (tick,), ())
        found = recompose(arm, Changes(), BRAIN)
        assert found.ticks == arm.ticks and found.label == EXACT
    assert of_a_swarm(tick, Changes(), EAGER) == tick
    for side in ("BUY", "SELL"):
        assert conviction(tick, side, EAGER) == said.conviction_for(side)
        share = tick.multiplier * tick.budget * said.conviction_for(side)
        assert share == pytest.approx(said.size_share(side), abs=2e-8)


@cases("judge", JUDGES, ids=lambda one: "it")
def test_without_its_judge_it_is_a_desk_at_which_none_sat(judge: Any) -> None:
    for hold in ("size", "veto"):
        _, tick = held(judge=judge, hold=hold)
        _, less = held(without=("judge",))
        assert bare(anew(tick, Changes(judge=False))) == bare(less)


@cases(
    ("changes", "desk"),
    [
        (Changes(flat=True), {"trust": "flat"}),
        (Changes(reader=False), {"without": ("regime_reader",)}),
        (Changes(reader=False, flat=True), {"without": ("regime_reader",), "trust": "flat"}),
        *((Changes(ALL - {name}), {"without": (name,)}) for name in EXPERTS),
        (Changes(frozenset({"macro"})), {"without": tuple(ALL - {"macro"})}),
    ],
    ids=lambda one: "it",
)
def test_without_a_seat_or_without_trust_it_is_that_desk(
    changes: Changes, desk: dict[str, Any]
) -> None:
    """The judge says the same whatever it reads here: else it would be of first order."""
    _, tick = held()
    _, less = held(**desk)
    found = anew(tick, changes)
    assert bare(replace(found, swarm=None)) == bare(replace(less, swarm=None))
    assert found.budget == less.budget and found.swarm and less.swarm
    assert found.swarm.trusted == less.swarm.trusted


def test_without_the_reader_nobody_goes_first_and_the_budget_is_the_codes_alone() -> None:
    _, tick = held()
    found = anew(tick, Changes(reader=False))
    assert tick.swarm and found.swarm
    assert (tick.swarm.budget, found.swarm.budget) == (0.5, 1.0)
    assert tick.swarm.trusted != found.swarm.trusted and found.swarm.first == ""
    assert found.budget > tick.budget


def test_a_storm_stays_what_it_was_without_an_expert() -> None:
    """The multiplier of the rules is put together again with the officer's own factors."""
    features = {
        "market.triage": "exhaustion",
        "technical.volatility_percentile": 99.0,
        "memory.losing_streak": 4.0,
        "macro.vix_rank": 99.5,
    }
    _, tick = held(features=features)
    _, less = held(features=features, without=("macro",))
    assert tick.swarm is not None and tick.swarm.storm == 0.5
    changes = Changes(ALL - {"macro"})
    assert bare(replace(anew(tick, changes), swarm=None)) == bare(replace(less, swarm=None))
    found = recompose(ArmObservation("swarm", (tick,), ()), changes, BRAIN)
    assert "does not follow" not in found.label, "its factors are known, and not guessed at"


def test_a_crowded_side_stays_vetoed_without_the_judge() -> None:
    crowded = {"derivs.funding_rank": 99.0}
    _, tick = held(features=crowded, judge=judging(value=0.1, win_share=0.2))
    found = anew(tick, Changes(judge=False))
    assert tick.swarm and found.swarm and found.swarm.veto_sides == ("BUY",)
    assert set(tick.swarm.reasons) == {"CROWDED", "NEGATIVE_EV"}
    assert found.swarm.reasons == ("CROWDED",)
    _, other = held(features=crowded, judge=judging(side="SHORT", win_share=0.2))
    assert other.swarm and other.swarm.veto_sides == ("BUY", "SELL")
    less = anew(other, Changes(judge=False))
    assert less.swarm and less.swarm.veto_sides == ("BUY",)


@cases(
    ("changes", "why"),
    [
        (Changes(flat=True), OF_EXPERTS),
        (Changes(reader=False), OF_EXPERTS),
        (Changes(ALL - {"macro"}), OF_EXPERTS),
        (Changes(judge=False), ""),
        (Changes(judge=False, flat=True), ""),
        (Changes(ALL - {"macro"}, judge=False, reader=False), ""),
    ],
    ids=lambda one: "it",
)
def test_what_is_of_first_order_is_labelled_so(changes: Changes, why: str) -> None:
    _, tick = held()
    found = recompose(ArmObservation("swarm", (tick,), ()), changes, BRAIN)
    assert found.exact is (not why) and why in found.label
    _, asked = held(risk_gate=scripted.ruling)
    told = recompose(ArmObservation("swarm", (asked,), ()), changes, BRAIN)
    read = not (changes.judge and changes.reader and changes.analysts is None)
    assert ("the gate's model had read" in told.label) is read

"""Recorded ticks, put together again: the same when nothing changes, else that desk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import numpy as np
import pytest

from agent_config import EXPERTS
from agent_framework import blend
from agents.contracts import VECTORS
from agents.debate.deliberation import Deliberation
from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.scripted import (
    FULL_FEATURES,
    SWARM_FEATURES,
    Scripted,
    context,
    debate,
    reporting,
    settings,
)
from tests.worlds.observed import (
    ALONE,
    ANALYSTS,
    DESK,
    FIRM,
    START,
    plain_tick,
    random_arm,
    weighed,
)
from torra.config import Profile, SentimentWeights, Thresholds
from torra.desk.journal_ticks import opinions, own_veto, swarm_observation
from torra.errors import ConfigError
from torra.evaluation.observations import ArmObservation, TickObservation, four, side_of
from torra.evaluation.recomposition import (
    EXACT,
    OF_EXPERTS,
    BrainNumbers,
    Chains,
    Changes,
    Recording,
    recompose,
    rounded,
)
from torra.evaluation.recomposition import blend as blended
from torra.replay import recomposing
from torra.replay.recomposing import conviction, of_a_swarm, unjudged
from torra.tick.tick_record import SwarmRecord

EAGER: Final = Profile(thresholds=Thresholds(buy=0.25, sell=0.25))
BRAIN: Final = BrainNumbers.of(EAGER)
FIVE: Final = frozenset(ANALYSTS)
FOUR: Final = frozenset(name for name in FIRM if AGENTS[name].role.kind == "analyst")
ALL: Final = frozenset(EXPERTS)


def bare(tick: TickObservation) -> TickObservation:
    """A tick without what says who was asked."""
    return replace(tick, opinions=(), source_type="")


# --- random desks ---------------------------------------------------------------------------------


@cases("desk", [DESK, FIRM], ids=["full", "firm"])
@pytest.mark.parametrize("seed", range(4))
def test_with_everything_kept_nothing_changes(seed: int, desk: tuple[str, ...]) -> None:
    arm = random_arm(seed, desk=desk, profile=EAGER)
    found = recompose(arm, Changes(), BRAIN)
    assert found.ticks == arm.ticks
    assert found.exact and found.label == EXACT
    assert {tick.verdict for tick in arm.ticks} >= {"BUY", "HOLD"}
    assert desk == DESK or any(one.weights for tick in arm.ticks for one in tick.opinions)


def test_an_analyst_left_out_is_an_analyst_that_never_sat_there() -> None:
    desk = ALONE[:-1]
    arms = [random_arm(7, desk=desk, profile=EAGER, absent=name) for name in ("", "momentum")]
    found = recompose(arms[0], Changes(FIVE - {"momentum"}), BRAIN)
    assert found.exact
    kept, less = ([bare(tick) for tick in ticks] for ticks in (found.ticks, arms[1].ticks))
    assert kept == less
    pairs = list(zip(arms[0].ticks, kept, strict=True))
    assert any(a.adjustments != b.adjustments for a, b in pairs)
    assert any(a.multiplier != b.multiplier for a, b in pairs)


@cases(
    ("desk", "changes", "why"),
    [
        (DESK, Changes(frozenset(["technical"])), "researchers"),
        (ALONE, Changes(frozenset(["technical"])), "gate's model"),
        (DESK, Changes(researchers=False), "gate's model"),
        (ALONE[:-1], Changes(frozenset(["technical"])), "nobody is left"),
        (ALONE[:-1], Changes(frozenset()), ""),
        (DESK, Changes(researchers=False, gate="rules"), ""),
        (DESK, Changes(bound=0.1, blend=0.5, gate="off"), ""),
        (FIRM, Changes(arbiter=False), ""),
        (FIRM, Changes(FOUR - {"news"}), "the research manager had read"),
        (FIRM, Changes(FOUR - {"news"}, researchers=False, gate="rules"), ""),
        (FIRM, Changes(researchers=False, gate="rules"), ""),
        (FIRM, Changes(researcher="bull_researcher", gate="rules"), "the research manager had"),
        (FIRM, Changes(researcher="bull_researcher", arbiter=False, gate="rules"), ""),
        (FIRM, Changes(researcher="bull_researcher"), "the gate's model had read"),
    ],
)
def test_what_is_of_first_order_is_labelled_so(
    desk: tuple[str, ...], changes: Changes, why: str
) -> None:
    found = recompose(random_arm(3, closes=30, desk=desk), changes, BRAIN)
    assert found.exact is (not why) and why in found.label
    assert found.label.startswith("first-order") or found.label == EXACT


def test_gate_settings_of_another_profile_are_noticed() -> None:
    arm = random_arm(3, closes=30, desk=ALONE[:-1])
    other = BrainNumbers.of(Profile.model_validate({"gate": {"volatility_multiplier": 0.61}}))
    assert recompose(arm, Changes(), other).exact
    kept = Changes(FIVE - {"momentum"})
    assert "gate settings" in recompose(arm, kept, other).label


def test_skipped_ticks_depend_on_the_scores_before_them() -> None:
    arm = random_arm(3, closes=8)
    skipped = replace(plain_tick(START + timedelta(days=9)), source_type="AGENT_SKIPPED")
    arm = replace(arm, ticks=weighed([*arm.ticks, skipped], EAGER))
    assert recompose(arm, Changes(), BRAIN).exact
    assert "skipped" in recompose(arm, Changes(gate="off"), BRAIN).label


def test_nobody_kept_is_l1() -> None:
    arm = random_arm(5, closes=20)
    found = recompose(arm, Changes(frozenset(), researchers=False), BRAIN).ticks
    assert [tick.scores for tick in found] == [tick.l1 for tick in arm.ticks]
    assert [tick.consensus for tick in found] == [tick.l1_consensus for tick in found]


def test_each_knob_turns_what_it_is_called() -> None:
    arm = random_arm(6, closes=20, profile=EAGER)
    full = recompose(arm, Changes(gate="off"), BRAIN).ticks
    assert any(a.adjustments != b.adjustments for a, b in zip(full, arm.ticks, strict=True))
    recording = Recording(arm.ticks, BRAIN)
    wide = recording.moves(Changes(gate="off", bound=9.0))
    assert np.allclose(wide.adjustments, rounded(wide.debate))
    tight = recording.moves(Changes(gate="off", bound=0.02))
    assert np.abs(tight.adjustments).max() == 0.02
    assert np.abs(recording.moves(Changes(blend=0.0)).scores - recording.l1).max() == 0.0
    low = replace(BRAIN, thresholds=Thresholds(buy=0.01, sell=0.01))
    verdicts = [tick.verdict for tick in recompose(arm, Changes(brain=low), BRAIN).ticks]
    assert verdicts.count("HOLD") < [tick.verdict for tick in arm.ticks].count("HOLD")
    ath = replace(BRAIN, weights=SentimentWeights(**dict.fromkeys(VECTORS, 0.0), ath=1.0))
    seen = recompose(arm, Changes(brain=ath), BRAIN).ticks
    assert seen[0].consensus == arm.ticks[0].ath


def test_ticks_that_nobody_debated_stay_as_they_were() -> None:
    tick = plain_tick(START, debate=(0.2, 0.0, 0.0, 0.0), adjustments=(0.1, 0.0, 0.0, 0.0))
    tick = replace(tick, scores=(0.02, 0.0, 0.0, 0.0), multiplier=0.5, source_type="LEGACY")
    arm = ArmObservation("legacy", weighed([tick], EAGER), ())
    assert recompose(arm, Changes(frozenset()), BRAIN).ticks == arm.ticks


def test_in_shadow_the_recorded_words_can_be_let_count() -> None:
    counted = random_arm(8, closes=20, profile=EAGER)
    shadow = tuple(
        replace(
            tick, shadow=True, scores=tick.l1, multiplier=alone, rule_multiplier=alone,
            veto=tick.rule_veto,
        )
        for tick in counted.ticks
        for alone in [alone_multiplier(tick)]
    )  # fmt: skip
    arm = replace(counted, ticks=weighed(shadow, EAGER))
    assert recompose(arm, Changes(), BRAIN).ticks == arm.ticks
    assert recompose(arm, Changes(counted=True), BRAIN).ticks == counted.ticks


def alone_multiplier(tick: TickObservation) -> float:
    """The rules' multiplier of a tick that nobody debated: without the disagreement."""
    said = [one for one in tick.opinions if one.kind == "analyst" and not one.abstained]
    table = np.array([one.adjustments for one in said if one.answered], dtype=float)
    if not len(table):
        return tick.rule_multiplier
    given = [column[~np.isnan(column)] for column in table.T]
    gap = max(float(np.ptp(column)) if len(column) else 0.0 for column in given)
    kept = min(1.0, max(0.3, 1 - gap / 0.6))
    found = [a * b * c for a in (1.0, 0.7) for b in (1.0, 0.7) for c in (1.0, 0.8)]
    return round(next(m for m in found if round(m * kept, 8) == tick.rule_multiplier), 8)


def test_the_weights_of_the_manager_are_what_changes_without_it() -> None:
    arm = random_arm(1, closes=20, desk=FIRM, profile=EAGER)
    found = recompose(arm, Changes(arbiter=False), BRAIN)
    pairs = list(zip(arm.ticks, found.ticks, strict=True))
    assert any(one.debate != other.debate for one, other in pairs)
    for one, other in pairs:
        weights = next((said.weights for said in one.opinions if said.weights), None)
        assert one.debate == other.debate or weights not in (None, (1.0, 1.0))


def test_who_cannot_be_left_out_is_told_with_all_who_can() -> None:
    arm = replace(random_arm(3, closes=5, desk=FIRM), name="firm")
    with pytest.raises(ConfigError, match="trader is no analyst of firm; there are ") as told:
        recomposing._analysts(arm, frozenset(), frozenset({"trader"}))
    for name in (*FOUR, "bull_researcher", "bear_researcher", "research_manager"):
        assert name in str(told.value)


def test_arithmetic_is_that_of_the_product() -> None:
    rng = np.random.default_rng(1)
    ties = np.concatenate([np.arange(-40, 40) * 0.5e-8, rng.normal(0, 0.3, 4000)])
    assert rounded(ties).tolist() == [round(float(value), 8) for value in ties]
    l1, moves = rng.uniform(-1, 1, (50, 4)).round(8), rng.uniform(-0.3, 0.3, (50, 4)).round(8)
    assert np.abs(blended(l1, moves) - l1).max() <= 0.06 + 1e-8


def test_an_arm_without_ticks_is_an_arm() -> None:
    found = recompose(ArmObservation("l1", (), ()), Changes(), BRAIN)
    assert found.ticks == () and found.exact
    assert Chains((), BRAIN).consensus(np.zeros((0, 4))).shape == (0,)


# --- against the debate itself --------------------------------------------------------------------


def deciding(**changes: Any) -> Callable[..., Any]:
    return lambda request: scripted.decision(request, **changes)


def judging(**changes: Any) -> Callable[..., Any]:
    return lambda request: scripted.judgement(request, **changes)


NOBODY: Final = RuntimeError("nobody")
LESS: Final = judging(weights={"bull_researcher": 0.25, "bear_researcher": 1.0}, confidence="low")
SAID: Final[Mapping[str, Mapping[str, Any]]] = {
    "full": {
        "technical": reporting(value=0.21, confidence="medium"),
        "key_levels": reporting(value=-0.27),
        "momentum": reporting(value=0.13, confidence="low"),
        "news": reporting(value=0.05),
        "risk_gate": NOBODY,
    },
    "firm": {
        "technical": reporting(value=0.21, confidence="medium"),
        "sentiment": reporting(value=-0.12, confidence="low"),
        "bull_researcher": reporting(value=0.14, confidence="medium"),
        "bear_researcher": reporting(value=-0.11),
        "research_manager": LESS,
        "risk_gate": NOBODY,
    },
    "swarm": {
        "regime_reader": lambda r: scripted.regime(r, regime="range", budget_pct=50, first="macro"),
        "liquidity": reporting(value=0.21, confidence="medium"),
        "microstructure": reporting(value=-0.12, confidence="low"),
        "macro": reporting(value=0.25),
        "geometry": reporting(value=-0.03),
        "judge": deciding(value=0.12, confidence="medium"),
        "risk_gate": NOBODY,
    },
}
FEATURES: Final[Mapping[str, Any]] = {"full": FULL_FEATURES, "firm": {}, "swarm": SWARM_FEATURES}
DESKS: Final[Mapping[str, Any]] = {
    "full": {},
    "firm": {"mode": "firm", "rebuttal": "never"},
    "swarm": {"mode": "swarm", "trust": "prior", "judge_hold": "size"},
}


def held(
    desk: str,
    *,
    without: tuple[str, ...] = (),
    features: Mapping[str, Any] = {},
    told: Mapping[str, Any] = {},
    **script: Any,
) -> tuple[Deliberation, TickObservation]:
    """Return what a desk said, and its tick; `without` some that never sat there."""
    said = {**SAID[desk], **script}
    names = tuple(name for name in said if name not in (*without, "trader"))
    seats = tuple(name for name in names if desk != "full" or name != "risk_gate")
    config = settings(active_agents=seats, second_look="never", **{**DESKS[desk], **told})
    config = config.model_copy(update={"weights": EAGER.sentiment_weights.model_dump()})
    about = context(features={**FEATURES[desk], **features}) if FEATURES[desk] else context()
    found = debate(Scripted({name: said[name] for name in names}), about=about, config=config)
    scores, rule = blend(about.scores, found.scores), found.rule_ruling
    swarm = found.swarm and SwarmRecord.parse(found.swarm.as_json())
    tick = plain_tick(
        START,
        l1=four(about.scores),
        regime=str(about.features["market.regime"].value) if swarm else "",
        debate=four(found.debate),
        adjustments=four(found.adjustments),
        scores=four({vector: scores[vector]["score"] for vector in VECTORS}),
        multiplier=found.ruling.multiplier,
        veto=found.ruling.veto,
        rule_multiplier=rule.multiplier,
        rule_veto=own_veto(rule.veto, rule.reasons),
        opinions=opinions(found.reports, found.failures),
        swarm=swarm and swarm_observation("M15", swarm, rule, found.ruling),
    )
    (seen,) = weighed([tick], EAGER)
    if desk != "full":  # of a desk without a head the conviction stays as recorded
        left = found.conviction_for(side_of(seen.verdict, seen.consensus))
        seen = replace(seen, conviction=left)
    return found, seen


def anew(tick: TickObservation, changes: Changes) -> TickObservation:
    found = recompose(ArmObservation("it", (tick,), ()), changes, BRAIN).ticks
    if tick.swarm:
        return of_a_swarm(found[0], changes, EAGER)
    return unjudged(found, EAGER)[0] if not changes.arbiter else found[0]


MANAGERS: Final = (LESS, judging(winner="NONE"), judging(winner="SHORT"), NOBODY)
JUDGES: Final = (
    SAID["swarm"]["judge"],
    deciding(side="SHORT"),
    deciding(side="NONE"),
    # What it says it wins is worth less than it costs: a veto of its own side.
    deciding(value=0.1, win_share=0.2),
    NOBODY,
)
HEADS: Final[list[tuple[str, dict[str, Any]]]] = [
    *(("firm", {"research_manager": one}) for one in MANAGERS),
    *(("swarm", {"judge": one}) for one in JUDGES),
    *(("swarm", {"judge": one, "told": {"judge_hold": "veto"}}) for one in JUDGES),
]


@cases(("desk", "head"), HEADS, ids=lambda one: one if isinstance(one, str) else "it")
def test_a_real_deliberation_is_recomposed(desk: str, head: dict[str, Any]) -> None:
    said, tick = held(desk, **head)
    found = recompose(ArmObservation(desk, (tick,), ()), Changes(), BRAIN)
    assert found.ticks == (tick,) and found.label == EXACT and anew(tick, Changes()) == tick
    for side in ("BUY", "SELL"):
        assert conviction(tick, side, EAGER) == said.conviction_for(side)
        share = tick.multiplier * tick.budget * said.conviction_for(side)
        assert share == pytest.approx(said.size_share(side), abs=2e-8)


@cases(("desk", "head"), HEADS, ids=lambda one: one if isinstance(one, str) else "it")
def test_without_its_head_it_is_a_desk_at_which_none_sat(desk: str, head: dict[str, Any]) -> None:
    _, tick = held(desk, **head)
    name = "research_manager" if desk == "firm" else "judge"
    _, less = held(desk, without=(name,), told=head.get("told", {}))
    assert bare(anew(tick, Changes(arbiter=False, judge=False))) == bare(less)


@cases(
    ("desk", "changes", "other"),
    [
        ("full", Changes(frozenset(SAID["full"]) - {"key_levels"}), {"without": ("key_levels",)}),
        ("full", Changes(frozenset(SAID["full"]) - {"news"}), {"without": ("news",)}),
        ("swarm", Changes(flat=True), {"told": {"trust": "flat"}}),
        ("swarm", Changes(reader=False), {"without": ("regime_reader",)}),
        (
            "swarm",
            Changes(reader=False, flat=True),
            {"without": ("regime_reader",), "told": {"trust": "flat"}},
        ),
        *(("swarm", Changes(ALL - {name}), {"without": (name,)}) for name in EXPERTS),
        ("swarm", Changes(frozenset({"macro"})), {"without": tuple(ALL - {"macro"})}),
    ],
    ids=lambda one: one if isinstance(one, str) else "it",
)
def test_without_a_seat_or_without_trust_it_is_that_desk(
    desk: str, changes: Changes, other: dict[str, Any]
) -> None:
    """The judge says the same whatever it reads here: else it would be of first order."""
    _, tick = held(desk)
    _, less = held(desk, **other)
    found = anew(tick, changes)
    assert bare(replace(found, swarm=None)) == bare(replace(less, swarm=None))
    assert found.budget == less.budget and (desk != "full" or tick.adjustments != less.adjustments)
    assert not found.swarm or (less.swarm and found.swarm.trusted == less.swarm.trusted)


def test_without_a_researcher_it_is_a_desk_at_which_one_sat_alone() -> None:
    _, tick = held("firm")
    _, less = held("firm", without=("bull_researcher",))
    assert anew(tick, Changes(researcher="bull_researcher")).scores == less.scores != tick.scores


def test_without_the_reader_nobody_goes_first_and_the_budget_is_the_codes_alone() -> None:
    _, tick = held("swarm")
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
    _, tick = held("swarm", features=features)
    _, less = held("swarm", features=features, without=("macro",))
    assert tick.swarm is not None and tick.swarm.storm == 0.5
    changes = Changes(ALL - {"macro"})
    assert bare(replace(anew(tick, changes), swarm=None)) == bare(replace(less, swarm=None))
    found = recompose(ArmObservation("swarm", (tick,), ()), changes, BRAIN)
    assert "does not follow" not in found.label, "its factors are known, and not guessed at"


def test_a_crowded_side_stays_vetoed_without_the_judge() -> None:
    crowded = {"derivs.funding_rank": 99.0}
    _, tick = held("swarm", features=crowded, judge=deciding(value=0.1, win_share=0.2))
    found = anew(tick, Changes(judge=False))
    assert tick.swarm and found.swarm and found.swarm.veto_sides == ("BUY",)
    assert set(tick.swarm.reasons) == {"CROWDED", "NEGATIVE_EV"}
    assert found.swarm.reasons == ("CROWDED",)
    _, other = held("swarm", features=crowded, judge=deciding(side="SHORT", win_share=0.2))
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
def test_what_of_a_swarm_is_of_first_order_is_labelled_so(changes: Changes, why: str) -> None:
    _, tick = held("swarm")
    found = recompose(ArmObservation("swarm", (tick,), ()), changes, BRAIN)
    assert found.exact is (not why) and why in found.label
    _, asked = held("swarm", risk_gate=scripted.ruling)
    told = recompose(ArmObservation("swarm", (asked,), ()), changes, BRAIN)
    read = not (changes.judge and changes.reader and changes.analysts is None)
    assert ("the gate's model had read" in told.label) is read

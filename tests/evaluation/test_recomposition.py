"""A recorded arm, put together again: the same when nothing changes, and what a change would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from agent_framework import blend
from agents.contracts import VECTORS, AgentReport
from agents.debate.synthesis import CountedReport
from agents.registry import AGENTS
from tests.doubles.scripted import FULL_FEATURES, Scripted, context, debate, reporting, settings
from tests.worlds.observed import (
    ALONE,
    ANALYSTS,
    DESK,
    START,
    deliberated,
    opinions,
    plain_tick,
    random_arm,
    weighed,
)
from torra.config import Profile, SentimentWeights, Thresholds
from torra.evaluation.observations import AgentOpinion, ArmObservation, TickObservation, four
from torra.evaluation.recomposition import (
    EXACT,
    BrainNumbers,
    Chains,
    Changes,
    Recording,
    recompose,
    rounded,
)
from torra.evaluation.recomposition import (
    blend as blended,
)

BRAIN = BrainNumbers.of(Profile())
EAGER = Profile(thresholds=Thresholds(buy=0.25, sell=0.25))


@pytest.mark.parametrize("seed", range(4))
def test_with_everything_kept_nothing_changes(seed: int) -> None:
    arm = random_arm(seed, profile=EAGER)
    found = recompose(arm, Changes(), BrainNumbers.of(EAGER))
    assert found.ticks == arm.ticks
    assert found.exact and found.label == EXACT
    assert {tick.verdict for tick in arm.ticks} >= {"BUY", "HOLD"}


def test_an_analyst_left_out_is_an_analyst_that_never_sat_there() -> None:
    with_all, without = (
        random_arm_of({name for name in ANALYSTS if name != gone}) for gone in ("", "momentum")
    )
    changes = Changes(frozenset(ANALYSTS) - {"momentum"})
    found = recompose(with_all, changes, BRAIN)
    assert found.exact
    kept = bare(found.ticks)
    assert kept == bare(without.ticks)
    assert any(a.adjustments != b.adjustments for a, b in zip(with_all.ticks, kept, strict=True))
    assert any(a.multiplier != b.multiplier for a, b in zip(with_all.ticks, kept, strict=True))


def random_arm_of(kept: set[str]) -> ArmObservation:
    """The random desk of seed 7 without its gate's model, where some analysts never sat."""
    arm = random_arm(7, desk=ALONE[:-1])
    roles = {name: AGENTS[name].role for name in kept}
    ticks = []
    for tick in arm.ticks:
        answers = {
            one.agent_id: CountedReport(roles[one.agent_id], report_of(one))
            if one.answered
            else None
            for one in tick.opinions
            if one.agent_id in kept
        }
        others = features_of(tick)
        ticks.append(deliberated(tick, answers, Profile(), **others))
    return ArmObservation("analysts", weighed(ticks, Profile()), ())


def bare(ticks: Sequence[TickObservation]) -> list[TickObservation]:
    """Ticks without what says who was asked."""
    return [replace(tick, opinions=(), source_type="") for tick in ticks]


def features_of(tick: TickObservation) -> dict[str, float]:
    """Evidence that differs from tick to tick, made of the tick itself."""
    return {
        "technical.volatility_percentile": 99.0 if tick.ath > 0 else 50.0,
        "memory.losing_streak": 4.0 if tick.l1[0] > 0.3 else 0.0,
        "memory.open_elsewhere": 1.0 if tick.l1[1] > 0.3 else 0.0,
        "market.spread_atr": 0.05,
    }


def report_of(one: AgentOpinion) -> AgentReport:
    trusted = {"high": 1.0, "medium": 0.75, "low": 0.5}[one.confidence]
    return AgentReport(
        one.agent_id,
        dict(zip(VECTORS, one.adjustments, strict=True)),
        one.confidence,  # type: ignore[arg-type]
        flags=() if one.trust == trusted else ("ungrounded",),
        abstained=one.abstained,
    )


@pytest.mark.parametrize("gone", ["key_levels", "news"])
def test_a_real_deliberation_agrees(gone: str) -> None:
    said = {
        "technical": reporting(value=0.21, confidence="medium"),
        "key_levels": reporting(value=-0.27),
        "momentum": reporting(value=0.13, confidence="low"),
        "news": reporting(value=0.05),
    }
    about = context(features=FULL_FEATURES)
    arms = []
    for names in (tuple(said), tuple(name for name in said if name != gone)):
        config = settings(active_agents=names, second_look="never")
        script = {name: said[name] for name in names} | {"risk_gate": RuntimeError("nobody")}
        held = debate(Scripted(script), about=about, config=config)
        scores = blend(about.scores, held.scores)
        tick = plain_tick(
            START,
            l1=four(about.scores),
            debate=four(held.debate),
            adjustments=four(held.adjustments),
            scores=four({vector: scores[vector]["score"] for vector in VECTORS}),
            multiplier=held.ruling.multiplier,
            rule_multiplier=held.rule_ruling.multiplier,
            opinions=opinions(held.reports, held.failures),
        )
        arms.append(ArmObservation("analysts", weighed([tick], Profile()), ()))
    whole, less = arms
    found = recompose(whole, Changes(frozenset(said) - {gone}), BRAIN)
    assert found.exact
    assert bare(found.ticks) == bare(less.ticks)
    assert whole.ticks[0].adjustments != less.ticks[0].adjustments


@pytest.mark.parametrize(
    ("desk", "changes", "why"),
    [
        pytest.param(DESK, Changes(frozenset(["technical"])), "researchers", id="researchers"),
        pytest.param(ALONE, Changes(frozenset(["technical"])), "gate's model", id="gate"),
        pytest.param(DESK, Changes(researchers=False), "gate's model", id="no-debate"),
        pytest.param(
            ALONE[:-1], Changes(frozenset(["technical"])), "nobody is left", id="fallback"
        ),
        pytest.param(ALONE[:-1], Changes(frozenset()), "", id="nobody"),
        pytest.param(DESK, Changes(researchers=False, gate="rules"), "", id="rules"),
        pytest.param(DESK, Changes(bound=0.1, blend=0.5, gate="off"), "", id="arithmetic"),
    ],
)
def test_what_is_of_first_order_is_labelled_so(
    desk: tuple[str, ...], changes: Changes, why: str
) -> None:
    found = recompose(random_arm(3, closes=30, desk=desk), changes, BRAIN)
    assert found.exact is (not why)
    assert why in found.label
    assert found.label.startswith("first-order") or found.label == EXACT


def test_gate_settings_of_another_profile_are_noticed() -> None:
    arm = random_arm(3, closes=30, desk=ALONE[:-1])
    other = BrainNumbers.of(Profile.model_validate({"gate": {"volatility_multiplier": 0.61}}))
    kept = Changes(frozenset(ANALYSTS) - {"momentum"})
    assert recompose(arm, Changes(), other).exact
    assert "gate settings" in recompose(arm, kept, other).label


def test_skipped_ticks_depend_on_the_scores_before_them() -> None:
    arm = random_arm(3, closes=8)
    skipped = replace(plain_tick(START + timedelta(days=9)), source_type="AGENT_SKIPPED")
    arm = replace(arm, ticks=weighed([*arm.ticks, skipped], Profile()))
    assert recompose(arm, Changes(), BRAIN).exact
    assert "skipped" in recompose(arm, Changes(gate="off"), BRAIN).label


def test_nobody_kept_is_l1() -> None:
    arm = random_arm(5, closes=20)
    found = recompose(arm, Changes(frozenset(), researchers=False), BRAIN).ticks
    assert [tick.scores for tick in found] == [tick.l1 for tick in arm.ticks]
    assert [tick.consensus for tick in found] == [tick.l1_consensus for tick in found]


def test_each_knob_turns_what_it_is_called() -> None:
    arm = random_arm(6, closes=20)
    full = recompose(arm, Changes(gate="off"), BRAIN).ticks
    recording = Recording(arm.ticks, BRAIN)
    wide = recording.moves(Changes(gate="off", bound=9.0))
    assert np.allclose(wide.adjustments, rounded(wide.debate))
    tight = recording.moves(Changes(gate="off", bound=0.02))
    assert np.abs(tight.adjustments).max() == 0.02
    assert np.abs(recording.moves(Changes(blend=0.0)).scores - recording.l1).max() == 0.0
    deaf = recording.moves(Changes(trust={"high": 0.0, "medium": 0.0, "low": 0.0}))
    assert np.abs(deaf.debate).max() == 0.0
    as_recorded = recording.moves(Changes(trust={"high": 1.0, "medium": 0.75, "low": 0.5}))
    assert (as_recorded.debate == recording.moves(Changes()).debate).all()
    silent = recording.moves(Changes(ungrounded=0.0))
    assert (silent.debate != as_recorded.debate).any()
    level = recording.moves(Changes(focus={"primary": 1.0, "secondary": 1.0}))
    assert (level.debate != as_recorded.debate).any()
    assert any(a.adjustments != b.adjustments for a, b in zip(full, arm.ticks, strict=True))
    unbound = recording.moves(Changes(researcher_bound=0.0))
    alone = recording.moves(Changes(researchers=False))
    assert np.allclose(unbound.debate, alone.debate)
    low = replace(BRAIN, thresholds=Thresholds(buy=0.01, sell=0.01))
    verdicts = [tick.verdict for tick in recompose(arm, Changes(brain=low), BRAIN).ticks]
    assert verdicts.count("HOLD") < [tick.verdict for tick in arm.ticks].count("HOLD")
    ath = replace(BRAIN, weights=SentimentWeights(**dict.fromkeys(VECTORS, 0.0), ath=1.0))
    seen = recompose(arm, Changes(brain=ath), BRAIN).ticks
    assert seen[0].consensus == arm.ticks[0].ath


def test_ticks_that_nobody_debated_stay_as_they_were() -> None:
    held = plain_tick(START, debate=(0.2, 0.0, 0.0, 0.0), adjustments=(0.1, 0.0, 0.0, 0.0))
    held = replace(held, scores=(0.02, 0.0, 0.0, 0.0), multiplier=0.5, source_type="LEGACY")
    arm = ArmObservation("legacy", weighed([held], Profile()), ())
    assert recompose(arm, Changes(frozenset()), BRAIN).ticks == arm.ticks


def test_in_shadow_the_recorded_words_can_be_let_count() -> None:
    counted = random_arm(8, closes=20, desk=DESK)
    shadow = tuple(
        replace(
            tick,
            shadow=True,
            scores=tick.l1,
            multiplier=alone,
            rule_multiplier=alone,
            veto=tick.rule_veto,
        )
        for tick in counted.ticks
        for alone in [alone_multiplier(tick)]
    )
    arm = replace(counted, ticks=weighed(shadow, Profile()))
    assert recompose(arm, Changes(), BRAIN).ticks == arm.ticks
    free = recompose(arm, Changes(counted=True), BRAIN).ticks
    assert free == counted.ticks


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

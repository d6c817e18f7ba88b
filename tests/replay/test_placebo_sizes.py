"""A placebo trades at the size of its source, and is held against nobody else."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from agent_config import DebateSettings
from agent_framework import Deliberation
from agents.contracts import VECTORS, DebateContext, Feature
from agents.debate.scoring import CountedReport
from agents.registry import AGENTS
from tests.worlds.observed import deliberated, plain_tick, quiet_ticks, random_report
from torra.clock import iso
from torra.config import Profile
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.replay import scorecard
from torra.replay.arms import PLACEBOS
from torra.replay.shards import arm_words
from torra.replay.shards.arm_words import ArmWords

PROFILE = Profile()


def source(count: int = 96 * 5) -> ArmObservation:
    """Return an arm whose agents hold back by all kinds of degrees, under rules that never do."""
    rng = np.random.default_rng(3)
    ticks = [
        replace(
            tick,
            adjustments=tuple(rng.uniform(-0.3, 0.3, 4).round(8).tolist()),
            multiplier=round(float(rng.uniform(0.3, 1.0)), 8),
            conviction=round(float(rng.uniform(0.5, 1.0)), 8),
        )
        for tick in quiet_ticks(count)
    ]
    return ArmObservation("full", tuple(ticks), ())


def context_of(tick: TickObservation, **features: float) -> DebateContext:
    return DebateContext(
        symbol=tick.symbol,
        timeframe=tick.timeframe,
        bar_time=iso(tick.bar_time),
        as_of=iso(tick.close_time),
        scores=dict(zip(VECTORS, tick.l1, strict=True)),
        notes={},
        features={name: Feature(name, value) for name, value in features.items()},
        memory={},
        nonce="n",
        asset=PROFILE.symbol("XAUUSD").asset,
    )


def spoken(
    words: arm_words.ScriptedDebate, seen: ArmObservation, **features: float
) -> list[Deliberation]:
    debate = arm_words.speaking(words)
    return [debate(context_of(tick, **features), DebateSettings()) for tick in seen.ticks]


def test_words_that_no_gate_changed_are_blended_once() -> None:
    tick = quiet_ticks(1)[0]
    context, moves = context_of(tick), (0.2, 0.0, -0.1, 0.0)
    for before, once in ((None, True), (moves, True), ((0.1, 0.0, -0.1, 0.0), False)):
        words = {(context.timeframe, context.bar_time): ArmWords(moves, debate=before)}
        said = arm_words.speaking(words)(context, DebateSettings())
        assert (said.ungated is said.scores) == once, before


def size(said: Deliberation, side: str = "BUY") -> float:
    return said.ruling.multiplier * said.conviction_for(side)


def test_sizes_move_with_their_words_and_no_score_is_scaled_again() -> None:
    seen = source()
    told = {
        tuple(map(abs, tick.adjustments)): tick.multiplier * tick.conviction for tick in seen.ticks
    }
    for kind in PLACEBOS:
        for one in spoken(arm_words.placebo(kind, seen, 1, PROFILE.gate), seen):
            moves = tuple(abs(one.adjustments[vector]) for vector in VECTORS)
            assert size(one) == pytest.approx(told[moves], abs=1e-8)


def test_the_rules_of_the_tick_lower_the_size_and_nothing_raises_it() -> None:
    seen = source(5)
    words = arm_words.placebo("flipped", seen, 1, PROFILE.gate)
    quiet = spoken(words, seen)
    streak = spoken(words, seen, **{"memory.losing_streak": 9.0})
    factor = PROFILE.gate.losing_streak_multiplier
    assert [size(one) for one in streak] == pytest.approx([factor * size(one) for one in quiet])
    plain = {place: ArmWords(one.adjustments) for place, one in words.items()}
    assert {size(one) for one in spoken(plain, seen)} == {1.0}


def test_what_the_rules_took_from_the_source_is_not_taken_again() -> None:
    """Of a desk that disagrees in a losing streak, the disagreement goes along, the streak not."""
    rng, gate, found = np.random.default_rng(1), PROFILE.gate, []
    for tick in quiet_ticks(30):
        names = ("technical", "sentiment", "momentum")
        reports = {name: random_report(rng, name) for name in names}
        answers = {n: CountedReport(AGENTS[n].role, r) if r else None for n, r in reports.items()}
        calm = deliberated(tick, answers, PROFILE)
        streak = deliberated(tick, answers, PROFILE, **{"memory.losing_streak": 9.0})
        found.append((calm, streak))
    sizes, in_streak = (arm_words.agents_part(ticks, gate) for ticks in zip(*found, strict=True))
    assert in_streak == pytest.approx(sizes, abs=1e-7)
    assert sizes == pytest.approx([one.multiplier for one, _ in found])
    assert min(sizes) < 0.7
    nothing = plain_tick(found[0][0].bar_time, rule_multiplier=0.0, multiplier=0.0)
    assert arm_words.agents_part([nothing], gate) == [1.0]


def test_words_go_to_a_worker_whole() -> None:
    words = arm_words.placebo("random", source(9), 1, PROFILE.gate)
    words = {**words, ("H1", "x"): ArmWords((0.1, 0.2, 0.3, 0.4), True, (0.4, 0.3, 0.2, 0.1))}
    assert arm_words.words_of(json.loads(json.dumps(arm_words.rows_of(words)))) == words


@pytest.mark.parametrize(
    ("names", "owner"),
    [
        (("l1", "legacy", "analysts", "full", "outage"), "full"),
        (("l1", "legacy", "pivotal"), "legacy"),
        (("l1", "pivotal"), ""),
    ],
    ids=["full", "legacy", "gone"],
)
def test_only_the_arm_whose_words_they_are_is_held_against_placebos(
    names: tuple[str, ...], owner: str
) -> None:
    market = scorecard.ScoredMarket({}, PROFILE)
    placebos = ["placebo_shuffled", "placebo_random"]
    seen = [ArmObservation(name, (), ()) for name in (*names, *placebos)]
    compared = scorecard.compare(seen, market)
    assert dict(compared.placebos) == {owner: placebos}
    assert compared.is_placebo == set(placebos)

"""The policy pivotal: no skipped tick's own verdict changes, later ones are counted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.worlds.observed import random_arm, weighed
from torra.config import Profile, Thresholds
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.evaluation.pivotal_effect import pivotal_effect, pivotal_exhibit
from torra.evaluation.recomposition import BrainNumbers
from torra.verdict import call_policy, sentiment_rules

PROFILE = Profile(thresholds=Thresholds(buy=0.34, sell=0.34))
BRAIN = BrainNumbers.of(PROFILE)
NOTHING = (0.0, 0.0, 0.0, 0.0)


def silent(tick: TickObservation) -> TickObservation:
    return replace(
        tick,
        debate=NOTHING,
        adjustments=NOTHING,
        scores=tick.l1,
        opinions=(),
        source_type="AGENT_SKIPPED",
        calls=0,
        cost_usd=0.0,
    )


@cache
def arms(sample: float = 0.0) -> tuple[ArmObservation, ArmObservation]:
    """A desk that always asks, and the same desk under the policy, tick after tick."""
    asked = random_arm(2, closes=60, profile=PROFILE, symbols=("XAUUSD",), lean=0.25)
    always = [replace(tick, calls=8, cost_usd=0.01) for tick in asked.ticks]
    rng, ticks = np.random.default_rng(1), list[TickObservation]()
    for tick in always:
        foreseen = weighed([*ticks, silent(tick)], PROFILE)[-1]
        near = call_policy.pivotal(
            [(foreseen.l1_consensus, foreseen.consensus)],
            PROFILE.sentiment_weights,
            PROFILE.thresholds,
        )
        ticks.append(tick if near or rng.random() < sample else silent(tick))
    return (
        replace(asked, ticks=tuple(always)),
        replace(asked, name="pivotal", ticks=weighed(ticks, PROFILE)),
    )


def test_no_skipped_tick_could_have_changed_its_own_verdict() -> None:
    always, pivotal = arms()
    found = pivotal_effect(always, pivotal, BRAIN)
    assert found.skipped > 15 and found.own == 0 and found.sampled == 0
    assert found.ticks == len(always.ticks)
    differ = [a.verdict != b.verdict for a, b in zip(always.ticks, pivotal.ticks, strict=True)]
    assert found.later == sum(differ)
    assert found.calls_always - found.calls_pivotal == 8 * found.skipped
    shown = pivotal_exhibit(found)
    assert shown.figures["saved_usd"] == pytest.approx(0.01 * found.skipped)
    assert "none would have had another verdict" in shown.says


def test_a_policy_that_skips_too_much_is_caught() -> None:
    always, _ = arms()
    reckless = replace(always, ticks=weighed([silent(tick) for tick in always.ticks], PROFILE))
    found = pivotal_effect(always, reckless, BRAIN)
    assert found.skipped == found.ticks and found.own > 0 and found.later > 0
    assert "which the bound should not allow" in pivotal_exhibit(found).says


def test_the_sample_checks_the_claim_without_a_second_arm() -> None:
    _, pivotal = arms(sample=0.5)
    found = pivotal_effect(None, pivotal, BRAIN)
    assert found.sampled > 5 and found.swayed == 0
    assert found.later == 0 and found.cost_always == 0.0
    shown = pivotal_exhibit(found)
    assert shown.figures["saved_usd"] is None and shown.figures["own"] is None
    assert f"of {found.sampled} sampled ticks the agents changed none" in shown.says
    strong = [replace(tick, scores=(1.0,) * 4) if tick.opinions else tick for tick in pivotal.ticks]
    wild = pivotal_effect(None, replace(pivotal, ticks=tuple(strong)), BRAIN)
    assert wild.swayed > 0


def test_a_consensus_with_a_word_in_its_place_is_the_brains() -> None:
    """What replaces a tick's own composite moves its own consensus alone."""
    always, pivotal = arms()
    row = next(n for n, tick in enumerate(pivotal.ticks) if tick.source_type == "AGENT_SKIPPED")
    loud = replace(always.ticks[row], scores=(1.0, 1.0, 1.0, 1.0))
    swapped = [*pivotal.ticks[:row], replace(pivotal.ticks[row], scores=loud.scores)]
    told = weighed(swapped, PROFILE)[-1].consensus
    one = replace(always, ticks=(loud,))
    found = pivotal_effect(one, pivotal, BRAIN)
    expected = sentiment_rules.verdict(told, PROFILE.thresholds) != pivotal.ticks[row].verdict
    assert (found.ticks, found.own) == (1, int(expected))


def test_arms_without_ticks_have_no_figures() -> None:
    nobody = ArmObservation("pivotal", (), ())
    shown = pivotal_exhibit(pivotal_effect(nobody, nobody, BRAIN))
    assert not shown.enough and "nothing to show" in shown.says
    pivotal = arms()[1]
    apart = pivotal_effect(nobody, pivotal, BRAIN)
    assert apart.ticks == 0 and pivotal_exhibit(apart).figures["saved_usd"] is None
    unsampled = pivotal_exhibit(pivotal_effect(None, pivotal, BRAIN))
    assert "cannot be checked" in unsampled.says

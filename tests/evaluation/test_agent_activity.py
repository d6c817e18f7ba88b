"""What agents do: rates, leans, bounds, and how the gate holds them back."""

from __future__ import annotations

import numpy as np
import pytest

from tests.worlds.markets import saying
from tests.worlds.observed import ALONE, START, plain_tick, quiet_ticks, random_arm
from torra.config import Profile
from torra.evaluation.agent_activity import (
    activity,
    activity_exhibit,
    restraint,
    restraint_exhibit,
)
from torra.evaluation.observations import AgentOpinion

GATE = Profile().gate


def test_rates_are_shares_of_the_ticks_on_which_an_agent_was_asked() -> None:
    own = (
        AgentOpinion("news", "analyst", (0.3, None, -0.1, 0.0), (1.0, 0.0, 0.5, 0.5), 0.75),
        AgentOpinion("news", "analyst", (0.1, None, -0.3, 0.2), (1.0, 0.0, 0.5, 0.5), 0.225),
        AgentOpinion("news", "analyst", abstained=True),
        AgentOpinion("news", "analyst", answered=False),
    )
    ticks = [plain_tick(START, opinions=(one,)) for one in own] + [plain_tick(START)]
    (found,) = activity(ticks)
    assert (found.asked, found.failed, found.abstained) == (4, 0.25, 0.25)
    assert found.means == pytest.approx((0.2, None, -0.2, 0.1))
    assert found.at_bound == pytest.approx(2 / 6)
    assert found.ungrounded == 0.5
    assert found.moved == pytest.approx(1.0 / 6)
    assert found.mean_lean == pytest.approx(((0.3 - 0.05) / 2 + (0.1 - 0.15 + 0.1) / 2) / 2)
    assert found.lean is None


def test_a_researchers_bound_is_its_own() -> None:
    case = AgentOpinion("bull_researcher", "researcher", (0.15, 0.1, 0.0, 0.0), (1.0,) * 4, 1.0)
    (found,) = activity([plain_tick(START, opinions=(case,))])
    assert found.at_bound == 0.25


def test_a_lean_is_told_and_noise_is_not() -> None:
    rng, count = np.random.default_rng(2), 600
    ticks = saying(quiet_ticks(count), "optimist", 0.05 + 0.05 * rng.normal(size=(count, 4)))
    ticks = saying(ticks, "even", 0.05 * rng.normal(size=(count, 4)))
    shown = activity_exhibit(ticks)
    assert "optimist (+0.048)" in shown.says and "even" not in shown.says
    assert shown.enough and shown.figures["lean.optimist"] == pytest.approx(0.05, abs=0.01)


def test_the_gates_restraint_is_measured() -> None:
    arm = random_arm(5, closes=40, desk=ALONE)
    found = restraint(arm.ticks, GATE)
    heard = [
        tick for tick in arm.ticks if any(o.answered and o.kind == "analyst" for o in tick.opinions)
    ]
    assert found.ticks == len(heard)
    assert found.attenuated == pytest.approx(sum(t.multiplier < 1 for t in heard) / len(heard))
    assert found.vetoed == pytest.approx(sum(t.veto for t in heard) / len(heard))
    assert found.disagreed is not None and found.disagreed > 0.8
    apart = []
    for tick in heard:
        said = [o.adjustments for o in tick.opinions if o.answered and not o.abstained]
        columns = [[v for v in column if v is not None] for column in zip(*said, strict=True)]
        apart.append(max((max(c) - min(c) for c in columns if c), default=0.0))
    left = [min(1.0, max(0.3, 1 - gap / 0.6)) for gap in apart]
    assert found.agreement == pytest.approx(sum(left) / len(left))
    shown = restraint_exhibit(arm.ticks, GATE)
    assert shown.figures["agreement"] == found.agreement and len(shown.rows) == 7


def test_a_desk_of_one_never_disagrees() -> None:
    ticks = saying(quiet_ticks(20), "technical", 0.1 * np.ones((20, 4)))
    found = restraint(ticks, GATE)
    assert (found.disagreed, found.agreement, found.attenuated) == (0.0, 1.0, 0.0)


def test_nobody_asked_is_said_plainly() -> None:
    assert activity_exhibit(()).says == "No agent was asked."
    shown = restraint_exhibit(quiet_ticks(3), GATE)
    assert shown.rows == () and not shown.enough and shown.figures["multiplier"] is None
    few = activity_exhibit(saying(quiet_ticks(3), "technical", np.zeros((3, 4))))
    assert not few.enough and "few" in few.says

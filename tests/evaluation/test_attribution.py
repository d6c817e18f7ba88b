"""What each analyst adds: fair shares that sum to the whole, and the one who knows found."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from tests.worlds.markets import knowing, market, saying
from tests.worlds.observed import ALONE, quiet_ticks, random_arm
from torra.config import Profile, Thresholds
from torra.evaluation.attribution import (
    Attribution,
    attribution,
    attribution_exhibit,
    coalitions,
    shapley,
)
from torra.evaluation.observations import AgentOpinion, ArmObservation
from torra.evaluation.outcomes import Outcomes
from torra.evaluation.recomposition import BrainNumbers, Changes, recompose

BRAIN = BrainNumbers.of(Profile())
EAGER = BrainNumbers.of(Profile(thresholds=Thresholds(buy=0.3, sell=0.3)))


def random_outcomes(count: int) -> Outcomes:
    forward = np.random.default_rng(2).normal(0, 1, (count, 1))
    forward[-3:] = np.nan
    return Outcomes((4,), forward, forward - 0.1, -forward - 0.1)


def test_shapley_is_the_mean_over_all_orders_of_joining() -> None:
    names, rng = ("a", "b", "c", "d"), np.random.default_rng(1)
    values = {coalition: rng.normal(size=3) for coalition in coalitions(names)}
    for name in names:
        joined = [
            values[before | {name}] - values[before]
            for order in permutations(names)
            for before in [frozenset(order[: order.index(name)])]
        ]
        assert shapley(values, names, name) == pytest.approx(np.mean(joined, axis=0))


@pytest.mark.parametrize("worth", ["direction", "verdict"])
def test_the_shares_sum_to_the_whole(worth: str) -> None:
    arm = random_arm(4, closes=60, desk=ALONE, lean=0.25)
    found = attribution(arm, random_outcomes(len(arm.ticks)), EAGER, worth=worth)  # type: ignore[arg-type]
    assert found.whole is not None and found.moved > 0
    assert found.n == len(arm.ticks) - 3
    assert sum(one.shapley or 0.0 for one in found.contributions) == pytest.approx(found.whole)
    shown = attribution_exhibit(found)
    assert len(shown.rows) == 6 and not shown.enough and shown.figures["whole"] == found.whole


def test_the_worth_of_a_desk_is_what_its_changed_verdicts_earned() -> None:
    arm = random_arm(4, closes=60, desk=ALONE, lean=0.25)
    known = random_outcomes(len(arm.ticks))
    found = attribution(arm, known, EAGER, worth="verdict")
    changes = Changes(researchers=False, gate="rules")
    whole = recompose(arm, changes, EAGER).ticks
    earned = [
        (known.net(row, 4, tick.verdict) or 0.0 if tick.verdict != "HOLD" else 0.0)
        - (known.net(row, 4, tick.l1_verdict) or 0.0 if tick.l1_verdict != "HOLD" else 0.0)
        for row, tick in enumerate(whole)
    ]
    flipped = [tick.verdict != tick.l1_verdict for tick in whole[:-3]]
    assert found.whole == pytest.approx(sum(earned) / found.n)
    assert found.moved == sum(flipped)


def test_the_one_who_knows_is_found_and_the_silent_one_adds_nothing() -> None:
    ticks, known = market(1500)
    rng = np.random.default_rng(3)
    ticks = saying(ticks, "insider", knowing(known.forward[:, 1], 0.3, rng))
    ticks = saying(ticks, "noise", 0.02 * rng.normal(size=(1500, 4)))
    ticks = saying(ticks, "silent", np.zeros((1500, 4)))
    ticks = tuple(
        replace(tick, opinions=(*tick.opinions[:2], replace(tick.opinions[2], abstained=True)))
        for tick in ticks
    )
    found = attribution(ArmObservation("analysts", ticks, ()), known, BRAIN)
    told = {one.agent: one for one in found.contributions}
    assert told["silent"].shapley == told["silent"].left_out == 0.0
    insider = told["insider"].estimate
    assert insider is not None and insider.low > 0.1
    noise = told["noise"].estimate
    assert noise is not None and noise.low < 0.0 < noise.high
    shown = attribution_exhibit(found)
    assert shown.rows[0][0] == "insider" and not shown.enough
    assert "nobody is named" in shown.says and "insider" not in shown.says
    more = attribution_exhibit(replace(found, n=4_000, moved=4_000))
    assert more.enough and "insider" in more.says and "noise" not in more.says


def test_without_words_or_outcomes_nothing_is_claimed() -> None:
    arm = random_arm(4, closes=10, desk=ALONE)
    nothing = np.full((len(arm.ticks), 1), np.nan)
    unknown = attribution(arm, Outcomes((4,), nothing, nothing, nothing), BRAIN)
    silent = attribution(ArmObservation("l1", quiet_ticks(9), ()), random_outcomes(9), BRAIN)
    empty = attribution(
        ArmObservation("l1", (), ()), Outcomes((4,), *[np.empty((0, 1))] * 3), BRAIN
    )
    assert unknown == silent == empty == Attribution("direction", 4, 0, 0, None, None, ())
    shown = attribution_exhibit(empty)
    assert not shown.enough and shown.rows == () and "takes about 2,300 moved ticks" in shown.says


def test_what_a_judge_asks_for_is_no_experts_worth() -> None:
    ticks, known = market(200)
    ticks = saying(ticks, "silent", np.zeros((200, 4)))
    judge = AgentOpinion("judge", "judge", (0.15,) * 4, (1.0,) * 4, 1.0, winner="LONG")
    judged = tuple(replace(tick, opinions=(*tick.opinions, judge)) for tick in ticks)
    found = attribution(ArmObservation("swarm", judged, ()), known, BRAIN)
    assert (found.moved, found.whole) == (0, 0.0)

"""On noise no headline credits agents with more than their R a trade shows.

Smaller orders lose less money where nothing can be won; that is no agent's doing. The oracle here
reads a headline as a person does, and knows trades and their risk alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.replay.test_planted_edges import OFTEN, plan_of
from tests.worlds.arm_trades import arm_of
from tests.worlds.random_markets import random_walk
from torra.evaluation.observations import ArmObservation
from torra.evaluation.paired_days import excess_profit
from torra.exhibits.outcome import outcome
from torra.replay import scorecard, voices
from torra.replay.replaying import run
from torra.replay.shards import executors, shards

CREDIT = re.compile(r"(?:agents|the (\w+) desk) brought ([\d.]+) %(?: to ([\d.]+) %)?")
ARMS = ("l1", "budget")

DAY = {"bars": 280, "arms": ARMS}


def headline_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headline of a random walk, and what each arm's R a trade is worth at its size."""
    history = random_walk(spec["bars"], spec["seed"])
    plan = plan_of(history, spec["arms"], spec["seed"], **OFTEN)
    seen = run(plan, voices.rules_voice)
    tables = scorecard.exhibits(seen, {"XAUUSD": history.frames}, profile=plan.profile)
    found = outcome(tables, spec["arms"])
    assert found is not None
    worth = {arm.name: shown_by_r(arm, seen[0]) for arm in seen[1:]}
    money = {arm.name: sum(trade.profit for trade in arm.trades) / arm.capital for arm in seen}
    return {"sentence": found.sentence, "worth": worth, "money": money}


def shown_by_r(arm: ArmObservation, control: ArmObservation) -> float:
    """Return what the R a trade of an arm shows beside the control's, as a share of its capital."""
    if not arm.trades:
        return 0.0
    one_r = fmean(abs(trade.profit / trade.r) for trade in arm.trades if abs(trade.r) >= 0.05)
    gap = fmean(t.r for t in arm.trades) - fmean([t.r for t in control.trades] or [0.0])
    return len(arm.trades) * one_r * gap / arm.capital


def credited(sentence: str) -> list[tuple[str | None, float]]:
    """Return what a headline credits: to whom, None for all of them, and the most of it."""
    return [(who or None, float(b or a) / 100) for who, a, b in CREDIT.findall(sentence)]


@pytest.mark.timeout(1_200)
def test_no_headline_credits_agents_with_more_than_their_r_a_trade_shows(
    scaled: Callable[..., int], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    by_night = (walks := scaled(30)) > 20
    told = {"bars": 360, "arms": (*ARMS, "swarm")} if by_night else DAY
    seeds = range(500, 500 + walks) if by_night else (500,)
    jobs = [shards.Job(f"walk {seed}", {"seed": seed, **told}) for seed in seeds]
    with executors.processes(2) if by_night else executors.synchronous_executor() as executor:
        found = shards.run_all(jobs, headline_of, executor, keep=tmp_path)
    number = smaller = 0
    for one in found:
        assert one["sentence"].startswith("The bars alone ") and " R a trade, " in one["sentence"]
        for who, share in credited(one["sentence"]):
            most = one["worth"][who] if who else max(one["worth"].values())
            # A figure of a sentence has one decimal of a per cent.
            assert share <= most + 0.0006, one
            number += 1
        smaller += one["money"]["budget"] > one["money"]["l1"]
    record_property("seen", f"{number} credits on {len(jobs)} walks; more money on {smaller}")


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_the_same_trades_at_a_smaller_size_are_worth_nothing(share: float) -> None:
    control, arm = sized(1.0), sized(share)
    assert excess_profit(arm, control) == pytest.approx(0.0, abs=1e-9)
    fewer = ArmObservation("budget", arm.ticks, arm.trades[:1] * 2)
    assert excess_profit(fewer, control) == pytest.approx(2 * 10.0 * share * (1.0 - 0.2))


def sized(share: float) -> ArmObservation:
    arm = arm_of([1.0, -1.0, 2.0, -1.0, 0.0 + 1e-12], "budget")
    trades = [replace(t, profit=10.0 * share * t.r, lots=share) for t in arm.trades]
    return replace(arm, trades=tuple(trades))

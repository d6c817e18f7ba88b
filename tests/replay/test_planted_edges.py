"""Honest statistics find what was planted, and claim nothing where nothing can be known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from tests.conftest import Scale
from tests.worlds.random_markets import SPREAD, random_walk
from torra.clock import iso
from torra.config import Profile, validate
from torra.evaluation.exhibits import Exhibit
from torra.evaluation.intervals import binomial_tail
from torra.evaluation.multiple import LEAST_TRADES, claims
from torra.evaluation.observations import ArmObservation
from torra.evaluation.trade_figures import arm_figures
from torra.replay import arms, scorecard, voices
from torra.replay.arms import ARMS, Arm
from torra.replay.replaying import ReplayPlan, TradingCosts, run
from torra.replay.runner import AgentSource, Schedule, run_arm
from torra.replay.shards import arm_words, executors, shards
from torra.replay.shards.arm_words import ArmWords
from torra.replay.shards.history import History

AHEAD = 16
"""Bars that the seer sees."""

LEVEL = 0.05

OFTEN: dict[str, Any] = {
    "thresholds": {"buy": 0.02, "sell": 0.02},
    "on_opposite": "reverse",
    "risk": {"capital": 1_000_000.0},
}
"""Small thresholds, and an account on which no size is below the smallest order."""

TURNING: dict[str, Any] = {
    **OFTEN,
    "sentiment_weights": dict.fromkeys(("key_levels", "momentum", "structure", "ath"), 0.0)
    | {"price_action": 1.0},
    "risk": {
        **OFTEN["risk"],
        "daily_loss_cap_pct": 100.0,
        "max_signals_per_hour": 60,
        "max_same_openings_per_hour": 60,
    },
}
"""The score that turns most often alone, and no limit of rate or loss.

So nearly every arm trades often enough on a short walk to be judged.
"""


def profile(**changes: object) -> Profile:
    told = {
        "thresholds": {"buy": 0.3, "sell": 0.3},
        "timeframe_weights": {"M15": 1.0},
        **changes,
    }
    return validate(Profile, told, "a test")


def plan_of(
    history: History,
    names: tuple[str, ...],
    seed: int = 1,
    spread: float = SPREAD,
    **changes: object,
) -> ReplayPlan:
    costs = TradingCosts(spread, 0.0, 0.0)
    return ReplayPlan("walk", history, profile(**changes), arms.chosen(names), costs, seed=seed)


def by_name(found: tuple[Exhibit, ...]) -> dict[str, Exhibit]:
    return {exhibit.name: exhibit for exhibit in found}


# --- what was planted -----------------------------------------------------------------------------


@cache
def walk_of_l1(bars: int) -> tuple[History, Schedule, ArmObservation]:
    """Return a random walk, and what L1 alone makes of it."""
    history = random_walk(bars, 11)
    course = Schedule.of(history)
    return history, course, run_arm(course, ARMS["l1"], profile(), AgentSource())


def seen_by_a_seer(share: float, bars: int) -> list[ArmObservation]:
    """Return L1, and a desk that knows the sign of the next bars on a share of all ticks."""
    history, course, alone = walk_of_l1(bars)
    frame = history.frames["M15"]
    closes = frame["close"].to_numpy()
    future = np.sign(np.append(closes[AHEAD:], np.full(AHEAD, closes[-1])) - closes)
    rng = Generator(PCG64(5))
    right = np.where(rng.random(len(frame)) < share, future, rng.choice((-1.0, 1.0), len(frame)))
    words = {
        ("M15", iso(time.to_pydatetime())): ArmWords((0.3 * s, 0.3 * s, 0.3 * s, 0.3 * s))
        for time, s in zip(frame.index, right.tolist(), strict=True)
    }
    seer = Arm("budget", "a desk that sees", "placebo")
    return [alone, run_arm(course, seer, profile(), AgentSource(debater=arm_words.speaking(words)))]


@pytest.mark.journey
@pytest.mark.parametrize(("share", "found"), [(0.6, True), (0.0, False)], ids=["seer", "blind"])
def test_a_desk_that_knows_the_future_is_found_and_a_blind_one_is_not(
    share: float, found: bool, scaled: Scale
) -> None:
    bars = scaled(1300, least=800)
    seen, frames = seen_by_a_seer(share, bars), walk_of_l1(bars)[0].frames
    told = by_name(scorecard.exhibits(seen, {"XAUUSD": frames}, profile=profile()))
    arm, _, changed, counted, *_ = told["discordant"].rows[0]
    assert arm == "budget"
    assert int(str(changed)) >= int(str(counted)) > 20
    p = told["discordant"].figures["budget.p"]
    assert p is not None
    assert (p < LEVEL) == found


@pytest.mark.journey
def test_a_market_that_trends_gives_l1_an_edge_that_is_claimed() -> None:
    """L1 buys strength; in a market whose strength lasts, that must pay and be said."""
    history = trending(1800, 5)
    plan = plan_of(history, ("l1",), **OFTEN)
    seen = run(plan, voices.rules_voice)
    told = by_name(
        scorecard.exhibits(seen, {"XAUUSD": history.frames}, profile=plan.profile, trials=1)
    )
    assert told["claims"].figures["l1.edge"] == 1.0, told["claims"].rows


def trending(bars: int, seed: int) -> History:
    """Return a walk whose direction lasts for days: the drift is half of a bar's move."""
    history = random_walk(bars, seed)
    frame = history.frames["M15"].copy()
    rng = Generator(PCG64(seed))
    sign = np.repeat(rng.choice((-1.0, 1.0), bars // 150 + 1), 150)[:bars]
    lift = np.cumsum(sign * 0.8).round(2)
    before = np.append(0.0, lift[:-1])
    moved = frame.copy()
    moved["open"], moved["close"] = frame["open"] + before, frame["close"] + lift
    top, low = np.maximum(before, lift), np.minimum(before, lift)
    moved["high"] = np.maximum(frame["high"] + top, moved[["open", "close"]].max(axis=1))
    moved["low"] = np.minimum(frame["low"] + low, moved[["open", "close"]].min(axis=1))
    moved[["open", "high", "low", "close"]] += 3000.0
    return History(history.symbol, {"M15": moved.round(2)}, history.sources)


# --- where nothing can be known -------------------------------------------------------------------

ARMS_ON_WALKS = ("l1", "budget", "placebo")
BARS_BY_DAY, BARS_BY_NIGHT = 330, 700
EVERY_FIFTH = 1200
"""Bars of every fifth walk of a night, which has all scores and a desk's limits: more than the 750
that a tick reads.
"""


def walk(seed: int, *, by_night: bool) -> dict[str, Any]:
    """Return what is run of a walk, as the values of a job."""
    short = by_night and seed % 5
    bars = BARS_BY_NIGHT if short else EVERY_FIFTH if by_night else BARS_BY_DAY
    return {"seed": seed, "bars": bars, "settings": TURNING if short else OFTEN}


def claimed_on_a_walk(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run every arm on one random walk; return which arms were said to have an edge."""
    history = random_walk(spec["bars"], spec["seed"])
    plan = plan_of(history, ARMS_ON_WALKS, spec["seed"], **spec["settings"])
    seen = run(plan, voices.rules_voice)
    told = by_name(
        scorecard.exhibits(
            seen, {"XAUUSD": history.frames}, profile=plan.profile, seed=spec["seed"]
        )
    )
    rows = told["claims"].rows
    alone = [
        one for arm in seen for one in claims([arm_figures(arm, _rng(spec))], {arm.name: True})
    ]
    return {
        "claims": {str(row[0]): bool(row[6]) for row in rows},
        "without_placebos": {one.arm: one.edge for one in alone},
        "trades": {arm.name: len(arm.trades) for arm in seen},
    }


def _rng(spec: Mapping[str, Any]) -> Generator:
    return Generator(PCG64(spec["seed"]))


def test_on_random_walks_no_arm_shows_an_edge(
    scaled: Callable[..., int], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """The share of false claims is within the nominal level, and within it without placebos too."""
    seeds = scaled(200) // 2 * 2 if scaled(200) > 2 else 1
    by_night = seeds > 1
    walks = [walk(seed, by_night=by_night) for seed in range(seeds)]
    jobs = [shards.Job(f"walk {one['seed']}", one) for one in walks]
    workers = executors.processes(2) if by_night else executors.synchronous_executor()
    with workers as executor:
        found = shards.run_all(jobs, claimed_on_a_walk, executor, keep=tmp_path)
    for kind in ("claims", "without_placebos"):
        claimed = [edge for one in found for edge in one[kind].values()]
        told = f"{sum(claimed)} {kind} of {len(claimed):,} arms on {seeds} walks"
        record_property("seen", told.replace("_", " "))
        assert binomial_tail(sum(claimed), len(claimed), LEVEL) > 0.01
    for one, ran in zip(found, walks, strict=True):
        assert one["trades"]["l1"] > ran["bars"] / 50
    judged = [count >= LEAST_TRADES for one in found for count in one["trades"].values()]
    assert not by_night or sum(judged) > 0.9 * len(judged), "who trades too little is safe"


def results_on_a_free_walk(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each trade of L1 came to on a random walk that costs nothing, and their p."""
    history = random_walk(spec["bars"], spec["seed"])
    plan = plan_of(history, ("l1",), spec["seed"], spread=0.0, **TURNING)
    (seen,) = run(plan, voices.rules_voice)
    return {"r": [trade.r for trade in seen.trades], "p": arm_figures(seen, _rng(spec)).net.p}


@pytest.mark.journey
def test_on_random_walks_without_costs_nothing_is_won_or_lost(
    scaled: Callable[..., int], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """The fills favour no side, and a p below 0.05 is as frequent as it says.

    With costs every arm loses a little, which hides a test that claims too easily.
    """
    seeds = scaled(200, least=2)
    bars = BARS_BY_NIGHT if seeds > 2 else 2 * BARS_BY_DAY
    jobs = [
        shards.Job(f"walk {seed}", {"seed": seed, "bars": bars})
        for seed in range(1000, 1000 + seeds)
    ]
    with executors.processes(2) if seeds > 2 else executors.synchronous_executor() as executor:
        found = shards.run_all(jobs, results_on_a_free_walk, executor, keep=tmp_path)
    results = np.concatenate([one["r"] for one in found])
    deviation = results.mean() / (results.std() / np.sqrt(len(results)))
    low = sum(one["p"] < LEVEL for one in found)
    record_property(
        "seen",
        f"without costs {results.mean():+.3f} R on average of {len(results):,} trades, "
        f"p < {LEVEL} on {low} of {seeds} walks",
    )
    assert abs(deviation) < 4.0, results.mean()
    assert binomial_tail(low, seeds, LEVEL) > 0.001

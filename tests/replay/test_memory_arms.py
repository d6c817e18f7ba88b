"""Arms that remember, their twins that do not, and the placebo that is told lessons by lot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from tests.cases import cases
from tests.examples import examples
from tests.replay.test_replay_runner import Stopped, same, stopping_at
from tests.worlds import remembering
from torra.config import ROOT, Profile
from torra.errors import ConfigError
from torra.evaluation.observations import ArmObservation
from torra.lessons.by_lot import PARTS, by_lot
from torra.lessons.hashed import hashed
from torra.lessons.recall import LessonQuery, LessonRetriever, RetrievedLessons
from torra.replay import arms, voices
from torra.replay.arms import ARMS, BY_LOT
from torra.replay.replaying import ReplayPlan, TradingCosts, run, run_on
from torra.replay.shards import arm_lessons, executors
from torra.replay.shards.history import History, cut, load
from torra.store.memory import MemoryStore

pytestmark = pytest.mark.usefixtures("scored_once")

BEGIN = datetime.fromisoformat("2021-11-10T08:00:00+00:00")
HOURS = examples(40, 28)
"""The first lesson is told after 24."""
END = BEGIN + timedelta(hours=HOURS)
NAMES = ("memory",)
FEW = NAMES if examples.whole else ("budget", BY_LOT)
"""Who runs again: by day not the twin that is told nothing."""
UNBOUND = {"max_signals_per_hour": 100, "daily_loss_cap_pct": 50.0, "capital": 1e6}
"""Limits that stop nobody: there must be trades to learn from."""


@pytest.fixture(scope="module")
def history() -> History:
    files = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]
    return cut(load(Path("nowhere"), "BTCUSD", files), None, END)


def plan_of(history: History, names: tuple[str, ...] = NAMES, use: str = "auto") -> ReplayPlan:
    profile = remembering.profile(use, risk=UNBOUND)
    costs = TradingCosts(15.0, 0.0, 0.0)
    return ReplayPlan("trial", history, profile, arms.chosen(names), costs, BEGIN, END, seed=7)


@pytest.fixture(scope="module")
def whole(history: History) -> list[ArmObservation]:
    return run(plan_of(history), voices.rules_voice)


# --- which arms there are -------------------------------------------------------------------------


@cases(
    ("name", "message"),
    [
        ("l1_no_memory", "nobody in l1 is told lessons, so it would be l1 itself"),
        ("analysts_no_memory", "nobody in analysts is told lessons"),
        ("outage_no_memory", "with such a twin are budget, full, firm, swarm, pivotal, outside"),
        ("nobody_no_memory", "known are"),
        (BY_LOT, "add budget"),
    ],
)
def test_arms_that_would_say_nothing_are_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        arms.chosen([name])


def test_an_arm_about_memory_lets_the_others_remember(history: History) -> None:
    plan = plan_of(history, use="off")
    told = {arm.name: arm.profile(plan.profile).agents.remembers() for arm in plan.arms}
    twin = told.pop("budget_no_memory")
    assert not twin and all(told.values())


def test_without_such_an_arm_the_profile_decides(history: History) -> None:
    for use in ("auto", "off", "on"):
        plan = plan_of(history, ("budget",), use)
        (_, arm) = plan.arms
        assert arm.profile(plan.profile).agents.memory.use == use


# --- what they are told ---------------------------------------------------------------------------


@pytest.mark.journey
def test_the_desk_is_told_and_its_twin_is_not(whole: list[ArmObservation]) -> None:
    named = {arm.name: arm for arm in whole}
    told = {name: [t.lessons_r for t in arm.ticks] for name, arm in named.items()}
    assert not any(told["l1"]) and not any(told["budget_no_memory"])
    assert any(told["budget"]) and any(told["placebo_memory"])
    assert told["budget"] != told["placebo_memory"]
    moved = {name: [t.adjustments for t in arm.ticks] for name, arm in named.items()}
    assert moved["budget"] != moved["budget_no_memory"]


@pytest.mark.journey
def test_a_twin_is_a_desk_that_does_not_remember(
    history: History, whole: list[ArmObservation]
) -> None:
    (_, desk) = run(plan_of(history, ("budget",), "off"), voices.rules_voice)
    twin = next(arm for arm in whole if arm.name == "budget_no_memory")
    assert same(dataclasses.replace(desk, name=twin.name), twin)


@pytest.mark.journey
def test_arms_on_an_executor_and_gone_on_with_are_the_same(
    history: History, whole: list[ArmObservation], tmp_path: Path
) -> None:
    named = {arm.name: arm for arm in whole}
    elsewhere = run_on(plan_of(history, FEW), executors.Inline())
    assert all(same(one, named[one.name]) for one in elsewhere)
    assert run_interrupted(history, tmp_path) > 1
    again = run(plan_of(history, FEW), voices.rules_voice, folder=tmp_path, chunk=20)
    assert all(same(one, named[one.name]) for one in again)


def run_interrupted(history: History, folder: Path) -> int:
    """Stop a replay a few times in each arm; return how often."""
    stops = 0
    for number in (6 * HOURS, 11 * HOURS):
        plan, stop = plan_of(history, FEW), stopping_at(number)
        try:
            run(plan, voices.rules_voice, folder=folder, chunk=20, on_ticks=stop)
        except Stopped:
            stops += 1
    return stops


@pytest.mark.journey
def test_another_seed_draws_other_lessons_for_the_placebo_alone(
    history: History, whole: list[ArmObservation]
) -> None:
    plan = dataclasses.replace(plan_of(history), seed=8)
    identities = [(plan.identity(arm), plan_of(history).identity(arm)) for arm in plan.arms]
    assert [one == other for one, other in identities] == [True, True, True, False]
    few = dataclasses.replace(plan, arms=arms.chosen(["budget", BY_LOT]))
    _, desk, placebo = run(few, voices.rules_voice)
    named = {arm.name: arm for arm in whole}
    assert same(desk, named[desk.name]) and not same(placebo, named[placebo.name])


# --- by lot ---------------------------------------------------------------------------------------


def test_a_draw_has_as_many_lessons_of_the_same_ages(scaled: Callable[..., int]) -> None:
    rng = np.random.default_rng(4)
    for number in range(scaled(10_000)):
        known = rng.permutation(500)[: rng.integers(1, 80)].tolist()
        told = rng.permutation(known)[: rng.integers(0, 21)].tolist()
        drawn = by_lot(known, told, Generator(PCG64(number)))
        assert len(drawn) == len(set(drawn)) == len(told)
        part = {one: at * PARTS // len(known) for at, one in enumerate(known)}
        assert [part[one] for one in drawn] == [part[one] for one in told]


def test_each_lesson_of_an_age_is_drawn_as_often_as_another() -> None:
    known = list(range(50))
    counts = np.zeros(50)
    for seed in range(4000):
        counts[by_lot(known, [0, 1, 2, 49], Generator(PCG64(seed)))] += 1
    assert counts[10:40].sum() == 0
    # 3 of 10, and 1 of 10: five standard errors
    assert np.abs(counts[:10] / 4000 - 0.3).max() < 5 * (0.21 / 4000) ** 0.5
    assert np.abs(counts[40:] / 4000 - 0.1).max() < 5 * (0.09 / 4000) ** 0.5


@pytest.mark.journey
def test_a_placebo_is_told_as_much_as_a_memory_would_be() -> None:
    """On the lessons of one store: as many notes and trades, and none that was not known."""
    settings = remembering.profile()
    store = MemoryStore({remembering.BTC: settings}, remembering.ranges)
    pairs: list[tuple[LessonQuery, RetrievedLessons, RetrievedLessons]] = []
    own = LessonRetriever(store.lessons_since, hashed)
    lot = arm_lessons.lessons_of(store, ARMS[BY_LOT], settings, 7)
    assert lot is not None

    def both(asked: LessonQuery) -> RetrievedLessons:
        told, drawn = own.recall(asked), lot(asked)
        assert drawn == lot(asked), "the same question has the same draw"
        pairs.append((asked, told, drawn))
        return told

    remembering.run(store, settings, remembering.keys(examples(200, 96)), both)
    facts = {one.number: one.facts for one in store.lessons_since(0, 0).lessons}
    assert any(told.notes for _, told, _ in pairs)
    for asked, told, drawn in pairs:
        assert (len(told.notes), len(told.nearest)) == (len(drawn.notes), len(drawn.nearest))
        assert (told.corpus, told.digest) == (drawn.corpus, drawn.digest)
        assert told.numbers.get("similar") == drawn.numbers.get("similar")
        assert all(
            facts[one].known_at < asked.as_of for one in (*drawn.nearest, *drawn.note_numbers)
        )
        assert all(facts[one].kind == "trade" for one in drawn.nearest)
    assert any(told.nearest != drawn.nearest for _, told, drawn in pairs)


def test_an_arm_that_is_not_asked_needs_no_shelf() -> None:
    store, settings = MemoryStore(), remembering.profile()
    for name in ("l1", "outage", "placebo_flipped", "legacy"):
        assert arm_lessons.lessons_of(store, ARMS[name], settings, 0) is None
    assert arm_lessons.lessons_of(store, ARMS["budget"], Profile(), 0) is None


def test_an_embedder_that_is_gone_is_refused_before_the_first_tick(tmp_path: Path) -> None:
    memory = {"use": "on", "embedder": str(tmp_path / "gone")}
    settings = remembering.profile(agents={"memory": memory})
    with pytest.raises(ConfigError, match="gone"):
        arm_lessons.lessons_of(MemoryStore(), ARMS["budget"], settings, 0)

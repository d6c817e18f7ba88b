"""A replay's arm learns as the live desk does: the same lessons, each from the same moment on."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.worlds import desks, remembering
from torra.clock import duration
from torra.config import ROOT, Profile
from torra.desk.memory import shelves as desk_lessons
from torra.evaluation.observations import ArmObservation, same_but_time
from torra.lessons.lesson import LessonFacts
from torra.lessons.recall import LessonQuery, LessonRetriever, RetrievedLessons
from torra.providers.rules.provider import RulesProvider
from torra.replay.arms import ARMS
from torra.replay.rerun.edges_then import FrozenClock
from torra.replay.runner import AgentSource, Schedule, run_arm
from torra.replay.shards import arm_lessons
from torra.replay.shards.history import History, load
from torra.replay.shards.seen import tick_seen
from torra_trader import TickOutcome

BEGIN = datetime.fromisoformat("2021-11-05T09:30:00+00:00")
"""So that a night of closes ends before the hole in the sample of 2021-11-27."""

CLOSES = 1600
SECOND = timedelta(seconds=1)


class Question(NamedTuple):
    """What a tick was told, and all lessons that it could have been told of."""

    asked: LessonQuery
    told: RetrievedLessons
    visible: list[LessonFacts]


class Watched(LessonRetriever):
    """A shelf that notes each question."""

    questions: list[Question]

    def recall(self, asked: LessonQuery) -> RetrievedLessons:
        told = super().recall(asked)
        known = self._index(asked.asset, asked.as_of).known(asked.as_of)
        self.questions.append(Question(asked, told, [self._lessons[n].facts for n in known]))
        return told


class Lived(NamedTuple):
    """A desk and a replay over the same closes, and what each of their ticks was told."""

    history: History
    outcomes: list[TickOutcome]
    live: list[Question]
    arm: ArmObservation
    replayed: list[Question]


def watched(patch: pytest.MonkeyPatch, room: Any) -> list[Question]:
    questions: list[Question] = []
    patch.setattr(room, "LessonRetriever", type("Noted", (Watched,), {"questions": questions}))
    return questions


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, scaled: Callable[..., int]) -> Lived:
    files = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]
    history = load(Path("nowhere"), "BTCUSD", files)
    agents = {"memory": {"use": "on"}, "timeout_seconds": 900.0, "influence": "full"}
    profile = remembering.profile(agents=agents)
    with pytest.MonkeyPatch.context() as patch:
        live, replayed = watched(patch, desk_lessons), watched(patch, arm_lessons)
        folder = tmp_path_factory.mktemp("lived")
        outcomes = lived_through(folder, profile, history, scaled(CLOSES, 100))
        keys = tuple(one.key for one in outcomes)
        course = dataclasses.replace(Schedule.of(history), keys=keys)
        voice = RulesProvider()
        mode = dataclasses.replace(ARMS["budget"], agents={})
        assert mode.profile(profile) == profile
        arm = run_arm(course, mode, profile, AgentSource(voice.submit, voice.name))
    return Lived(history, outcomes, live, arm, replayed)


def lived_through(
    folder: Path, profile: Profile, history: History, closes: int
) -> list[TickOutcome]:
    """Let a desk live through so many closes; it knows the bars before as a replay does."""
    desk = desks.open_desk(folder, profile=profile, make_clock=lambda at: FrozenClock(at or BEGIN))
    desks.open_for_work(desk)
    for name, frame in history.frames.items():
        with desk.database.transaction():
            known = frame[frame.index <= BEGIN - duration(name)]
            desk.database.store_bars("BTCUSD", name, known)
    outcomes = list(desk.wake("BTCUSD"))
    for number in range(1, closes + 1):
        # A second later: a desk that stands at a close is in its warm-up, and not told of it.
        desks.clock_of(desk).set(BEGIN + number * desks.QUARTER + SECOND)
        outcomes += desk.wake("BTCUSD")
    desk.database.close()
    return outcomes


@pytest.mark.journey
def test_a_lesson_counts_live_and_in_a_replay_from_the_same_moment(lived: Lived) -> None:
    sizes = [len(one.visible) for one in lived.live]
    assert sizes[-1] >= 4 and sizes == sorted(sizes)
    for one, other in zip(lived.live, lived.replayed, strict=True):
        mine, theirs = (
            [(facts.sid, facts.kind, facts.known_at) for facts in each.visible]
            for each in (one, other)
        )
        assert mine == theirs, one.asked.as_of
        assert all(facts.known_at < one.asked.as_of for facts in one.visible)


@pytest.mark.journey
def test_the_facts_are_the_same_to_the_bit(lived: Lived) -> None:
    """How far a price went too: a desk reads it off stored bars, an arm off its history."""
    live, replayed = lived.live[-1].visible, lived.replayed[-1].visible
    assert live == replayed
    assert any(facts.mae_r < min(0.0, facts.r) for facts in live)
    assert any(facts.mfe_r > max(0.0, facts.r) for facts in live)


@pytest.mark.journey
def test_what_is_told_is_the_same(lived: Lived) -> None:
    assert any(one.told.notes for one in lived.live)
    for one, other in zip(lived.live, lived.replayed, strict=True):
        assert one.told.numbers == other.told.numbers
        mine, theirs = ([note.text for note in each.told.notes] for each in (one, other))
        assert mine == theirs


def test_the_ticks_are_the_same(lived: Lived) -> None:
    then = [tick_seen(one.result, 0.0) for one in lived.outcomes if one.result is not None]
    assert len(then) == len(lived.arm.ticks)
    for one, other in zip(then, lived.arm.ticks, strict=True):
        assert same_but_time(one, other), one.key
    # By the close: of two timeframes the shorter asks first, and the longer is stored first.
    told = Counter(
        (one.asked.as_of, one.told.numbers.get("mean_r") is None) for one in lived.replayed
    )
    assert Counter((tick.close_time, tick.lessons_r is None) for tick in lived.arm.ticks) == told

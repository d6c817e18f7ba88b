"""`torra tick` and `torra lookahead` tell a tick of lessons, and of none that was known later."""

from __future__ import annotations

import functools
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.examples import examples
from tests.worlds import desks, remembering
from torra.clock import iso
from torra.config import Profile
from torra.lessons.lesson import Lesson
from torra.lessons.ranking import LessonIndex
from torra.replay.rerun import lookahead, trial_tick
from torra.replay.rerun.edges_then import FrozenClock
from torra.replay.shards.history import History
from torra.store import lessons as lesson_table
from torra.store.memory import MemoryStore

pytestmark = pytest.mark.usefixtures("lessons_come_in_time")

PATIENT = {"memory": {"use": "on"}, "timeout_seconds": 900.0}
SECOND = timedelta(seconds=1)
CLOSES = examples(90, 40)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a desk that has traded, and learnt of it."""
    folder = tmp_path_factory.mktemp("home")
    desk = desks.open_desk(
        folder,
        profile=remembering.profile(agents=PATIENT),
        make_clock=lambda at: FrozenClock(at or desks.START),
    )
    desks.open_for_work(desk)
    for number in range(1, CLOSES + 1):
        desks.clock_of(desk).set(desks.START + number * desks.QUARTER + SECOND)
        desk.wake("BTCUSD")
    assert lesson_table.lesson_count(desk.database) >= 4
    desk.database.close()
    return folder


def stored(home: Path) -> list[Lesson]:
    database = desks.open_database(home)
    try:
        return database.lessons_since(0, 0).lessons
    finally:
        database.close()


def trial(home: Path, as_of: Any, use: str = "on") -> dict[str, Any]:
    agents = {**PATIENT, "memory": {"use": use}}
    settings = remembering.profile(use, agents=agents)
    return dict(trial_tick.run(home, "BTCUSD", "M15", as_of=iso(as_of), settings=settings))


# --- a trial --------------------------------------------------------------------------------------


def test_a_trial_is_told_of_what_was_known_then(home: Path) -> None:
    lessons = stored(home)
    as_of = lessons[-1].facts.known_at
    earlier = [one for one in lessons if one.facts.known_at < as_of]
    record = trial(home, as_of)
    told = record["lessons"]
    assert 0 < told["corpus"] == len(earlier) < len(lessons)
    assert told["newest"] == earlier[-1].number and told["notes"]
    assert trial_tick.document(record)["lessons"] == told
    shown = trial_tick.table(record)
    assert f"lessons    {len(earlier)} lessons known, {len(told['notes'])} note" in shown


@pytest.mark.journey
def test_a_trial_of_a_profile_without_memory_says_nothing(home: Path) -> None:
    record = trial(home, stored(home)[-1].facts.known_at, "off")
    assert "lessons" not in record and "lessons" not in trial_tick.document(record)
    assert "lessons" not in trial_tick.table(record)


# --- another future -------------------------------------------------------------------------------


@functools.cache
def learnt() -> tuple[Lesson, ...]:
    """Return the lessons of a desk that lived through half of the bars and was told of none."""
    settings = remembering.profile()
    store = MemoryStore({remembering.BTC: settings}, remembering.ranges)
    remembering.run(store, settings, remembering.keys(260)[: examples(200, 100)], None)
    lessons = store.lessons_since(0, 0).lessons
    assert len(lessons) >= 3
    return tuple(lessons)


def subject(use: str = "on", lessons: tuple[Lesson, ...] = ()) -> lookahead.LookaheadSubject:
    """Bars, and what is known of earlier trades."""
    bars = remembering.frames()["M15"].iloc[-560:]
    return lookahead.LookaheadSubject.of(
        History("BTCUSD", {"M15": bars}, {}), remembering.profile(use), lessons=list(lessons)
    )


def probed(subject: lookahead.LookaheadSubject) -> lookahead.Findings:
    return lookahead.probe(subject, points=3, seed=3, kinds=("noise",), modes=("budget",))


@pytest.mark.journey
def test_a_planted_later_lesson_moves_nothing() -> None:
    found = probed(subject(lessons=learnt()))
    assert found.clean, found.moved[:3]
    assert "lessons.corpus" in found.columns["tick"], "no tick was told of a lesson"


@pytest.mark.journey
def test_without_a_lesson_one_is_planted_and_moves_nothing() -> None:
    found = probed(subject())
    assert found.clean, found.moved[:3]


@pytest.mark.journey
def test_a_memory_that_knows_the_future_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, far = LessonIndex._visible, timedelta(days=365)
    monkeypatch.setattr(LessonIndex, "_visible", lambda self, as_of: whole(self, as_of + far))
    moved = {one.column for one in probed(subject(lessons=learnt())).moved}
    assert "lessons.corpus" in moved
    assert any(name.startswith("features.lessons.") for name in moved)


@pytest.mark.journey
def test_a_profile_that_does_not_remember_is_told_of_none(home: Path) -> None:
    assert lookahead.lessons_of(home, Profile()) == []
    assert len(lookahead.lessons_of(home, remembering.profile())) == len(stored(home))
    assert "lessons.corpus" not in probed(subject("off", learnt())).columns["tick"]

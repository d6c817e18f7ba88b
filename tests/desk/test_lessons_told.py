"""A desk says how many lessons it has and whose ticks are told of them: torra doctor, Health."""

from __future__ import annotations

from pathlib import Path

from tests.worlds import desks, told_lessons
from tests.worlds.homes import profile_file
from torra.config import Profile, validate
from torra.desk.checks import stored
from torra.desk.checks.result import Context
from torra.desk.memory import shelves

ON = validate(Profile, {"agents": {"memory": {"use": "on"}}}, "a test")


def test_the_sentence_counts_lessons_and_names_whose_ticks_are_told(tmp_path: Path) -> None:
    with told_lessons.desk(tmp_path) as made:
        off = Profile()
        told = shelves.standing(made.database, [(desks.BTC, off)])
        assert told == "no lesson yet; no tick is told of lessons (agents.memory.use)"
        told_lessons.write(made.database)
        told = shelves.standing(made.database, [(desks.BTC, ON), (desks.EUR, off)])
        assert told == (
            "3 lessons, 1 review by a model; ticks of BTCUSD are told (agents.memory.use)"
        )


def test_torra_doctor_counts_lessons_and_finds_an_embedder_that_is_gone(tmp_path: Path) -> None:
    memory = {"use": "on", "embedder": str(tmp_path / "nowhere")}
    profile_file(tmp_path, {"agents": {"memory": memory}})
    with told_lessons.desk(tmp_path) as made:
        told_lessons.write(made.database)
        found = list(stored.lessons(Context(tmp_path, {}), made.database))
    assert [(one.name, one.level) for one in found] == [("lessons", "ok"), ("lessons", "alert")]
    assert found[0].detail.startswith("3 lessons, 1 review by a model; ticks of BTCUSD are told")
    assert "nowhere" in found[1].detail and "agents.memory.embedder" in found[1].remedy

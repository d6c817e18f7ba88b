"""A tick that was told of earlier trades runs again with what it was told then."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from instance_database import Database
from tests.worlds import desks, journals
from tests.worlds.journals import again, change
from torra.config import Profile
from torra.replay.rerun.journal_replay import Comparison
from torra.store import replay_queries

pytestmark = pytest.mark.usefixtures("lessons_come_in_time")

TOLD: Final = ("technical", "bull_researcher", "bear_researcher")
"""Agents that are told lessons in words: an analyst too."""


def remembering() -> Profile:
    """A profile that trades often, and remembers what came of it."""
    return journals.a_profile(
        thresholds={"buy": 0.05, "sell": 0.05},
        agents={"memory": {"use": "on", "roles": list(TOLD)}},
    )


@pytest.fixture(scope="module")
def lived(
    tmp_path_factory: pytest.TempPathFactory,
    scaled: Callable[..., int],
    lessons_come_in_time: None,
) -> Path:
    """The file of a desk with so many ticks that were told of lessons."""
    folder = tmp_path_factory.mktemp("remembers")
    wanted = scaled(500, 40)
    desk = desks.open_desk(folder, journals.BOTH, profile=remembering(), provider=journals.Moody())
    desks.open_for_work(desk)
    for name, setup in desk.setups.items():
        desk.database.apply_profile(name, setup.profile.model_dump_json(), setup.profile.digest())
    while told(desk.database) < wanted:
        desks.step(desk)
    desk.close()
    return folder / "torra.db"


def told(database: Database) -> int:
    sql = "SELECT count(*) AS n FROM journal WHERE json_extract(record, '$.lessons.corpus') > 0"
    return int(next(database.connection().query(sql))["n"])


def rows(source: Database, sql: str) -> list[tuple[Any, ...]]:
    return source.connection().execute(sql).fetchall()


@pytest.fixture(scope="module")
def whole(lived: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Comparison]:
    """Every tick again, nothing altered."""
    folder = tmp_path_factory.mktemp("whole")
    with journals.copied(lived, folder / "source") as source:
        return again(source, folder)


def with_notes(source: Database) -> list[str]:
    """Return the keys of the ticks that were told lessons in words, in the order of their bars."""
    told = rows(source, "SELECT torra_key, record FROM journal ORDER BY rowid")
    return [key for key, record in told if notes(json.loads(record))]


def notes(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list((record.get("lessons") or {}).get("notes", ()))


def without_guards(source: Database, table: str) -> None:
    """Take away what keeps a table's rows as they are."""
    sql = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?"
    for (name,) in source.connection().execute(sql, (table,)).fetchall():
        change(source, f"DROP TRIGGER {name}")


# --- the same again -------------------------------------------------------------------------------


@pytest.mark.journey
def test_every_tick_with_lessons_runs_again_to_the_same_record(
    source: Database, whole: dict[str, Comparison], scaled: Callable[..., int]
) -> None:
    found = whole
    assert told(source) >= scaled(500, 40)
    assert len(with_notes(source)) > 10
    unlike = [
        (one.key, one.state, dict(one.differences)) for one in found.values() if one.state != "same"
    ]
    assert unlike == []
    looked = [((one.record or {}).get("lessons") or {}).get("corpus") for one in found.values()]
    assert sum(bool(corpus) for corpus in looked) == told(source)
    assert all(not one.misses for one in found.values())


@pytest.mark.journey
def test_a_tick_without_a_lesson_is_asked_for_none(whole: dict[str, Comparison]) -> None:
    without = [one for one in whole.values() if "lessons" not in one.then]
    assert without
    assert all("lessons" not in (one.record or {}) for one in without)


@pytest.mark.journey
def test_lessons_that_came_since_move_no_tick(source: Database, tmp_path: Path) -> None:
    """They are read by number, and nobody ranks them anew."""
    keys = with_notes(source)
    with source.transaction():
        change(source, "INSERT INTO lesson_words SELECT number + 100000, lesson, 'a-model', "
               "'2100-01-01T00:00:00Z', 'New words.', outcome, rule, request_hash, cost_usd, flags "
               "FROM lesson_words")  # fmt: skip
    found = again(source, tmp_path, *keys)
    assert [found[key].state for key in keys] == ["same"] * len(keys)


# --- what is gone, and what was altered -----------------------------------------------------------


@pytest.mark.journey
def test_a_tick_whose_lesson_is_gone_is_told_and_left_out(source: Database, tmp_path: Path) -> None:
    key = with_notes(source)[-1]
    record, _ = replay_queries.journal_row(source, key)
    without_guards(source, "lesson_words")
    gone = notes(record)[0]["lesson"]
    assert change(source, "DELETE FROM lesson_words WHERE lesson = ?", gone) == 1
    keys = [key for (key,) in rows(source, "SELECT torra_key FROM journal ORDER BY rowid")]
    found = again(source, tmp_path, *keys[keys.index(with_notes(source)[0]) :])
    assert found[key].state == "no_lessons"
    assert found[key].detail == f"1 of the {len(notes(record))} lessons that it was told are gone"
    left = {name for name, one in found.items() if one.state == "no_lessons"}
    asked = {name: notes(one.then) for name, one in found.items()}
    assert left == {name for name in asked if any(n["lesson"] == gone for n in asked[name])}
    assert {one.state for name, one in found.items() if name not in left} == {"same"}


def test_altered_words_are_noticed(source: Database, tmp_path: Path) -> None:
    key = next(key for key in with_notes(source) if asked_of(source, key))
    record, _ = replay_queries.journal_row(source, key)
    without_guards(source, "lesson_words")
    sql = "UPDATE lesson_words SET rule = 'Altered.' WHERE lesson = ?"
    assert change(source, sql, notes(record)[0]["lesson"]) == 1
    found = again(source, tmp_path, key)[key]
    assert found.state == "different"
    assert "calls.technical.1.1" in found.differences


def asked_of(source: Database, key: str) -> bool:
    """Tell whether a tick asked anybody."""
    debate = replay_queries.debate_of(source, key)
    return bool(debate and debate.calls)

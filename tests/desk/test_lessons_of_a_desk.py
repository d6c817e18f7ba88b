"""What a running desk tells its ticks of lessons: its own trades, of this pass of the sample."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.examples import examples
from tests.worlds import desks, remembering
from torra.clock import parse
from torra.desk.memory.shelves import DeskLessons
from torra.desk.timers import next_close
from torra.replay.rerun.edges_then import FrozenClock
from torra.store import lessons as lesson_table


def told_by(desk: Any) -> list[dict[str, Any]]:
    """Return the records of M15 that have lessons, the oldest first."""
    rows = desks.rows(desk, "SELECT record FROM journal ORDER BY torra_key")
    records = [json.loads(row["record"]) for row in rows]
    return [record for record in records if record.get("lessons")]


def step(desk: Any) -> None:
    """Wake the desk a second past the next close: one that stands at a close is warming up."""
    clock = desks.clock_of(desk)
    clock.set(next_close(clock.now(), ["M15"]) + timedelta(seconds=1))
    desk.wake(remembering.BTC)


def open_desk(folder: Path, start: Any, profile: Any) -> Any:
    return desks.working_desk(
        folder, profile=profile, make_clock=lambda at: FrozenClock(at or start)
    )


def patient(use: str = "on") -> Any:
    return remembering.profile(agents={"memory": {"use": use}, "timeout_seconds": 900.0})


def test_the_second_pass_of_the_demo_recalls_nothing_of_the_first(tmp_path: Path) -> None:
    _, end = desks.sample().period()
    desk = open_desk(tmp_path, end - timedelta(hours=examples(9, 7)), patient())
    for _ in range(examples(84, 62)):
        step(desk)
    lap = desks.sample().lap
    facts = {one.number: one.facts for one in desk.database.lessons_since(0, 0).lessons}
    seen: dict[int, int] = {}
    for record in told_by(desk):
        told = record["lessons"]
        now = lap(parse(record["as_of"]))
        numbers = {*told["nearest"], *(note["lesson"] for note in told["notes"])}
        assert {lap(facts[number].bar_time) for number in numbers} <= {now}
        assert all(facts[number].known_at < parse(record["as_of"]) for number in numbers)
        assert told["corpus"] == sum(
            lap(one.known_at) == lap(one.bar_time) == now and one.known_at < parse(record["as_of"])
            for one in facts.values()
        )
        seen[now] = seen.get(now, 0) + len(numbers)
    assert len(seen) >= 2 and all(seen.values()), seen


def test_trades_of_the_warm_up_are_never_told(tmp_path: Path) -> None:
    desk = open_desk(tmp_path, desks.START, patient())
    for _ in desk.warm_up(desks.START, examples(100, 80)):
        pass
    warm = lesson_table.lesson_count(desk.database)
    assert warm >= 3
    for _ in range(examples(40, 26)):
        step(desk)
    assert lesson_table.lesson_count(desk.database) > warm
    told = told_by(desk)
    assert told
    facts = {one.number: one.facts for one in desk.database.lessons_since(0, 0).lessons}
    for record in told:
        numbers = {*record["lessons"]["nearest"]}
        numbers |= {note["lesson"] for note in record["lessons"]["notes"]}
        assert all(facts[number].bar_time >= desks.START for number in numbers)
        assert record["lessons"]["corpus"] < len(facts) - warm + 1


@pytest.mark.journey
def test_a_profile_that_wants_none_is_told_none(tmp_path: Path) -> None:
    desk = open_desk(tmp_path, desks.START, patient("off"))
    for _ in range(examples(40, 20)):
        step(desk)
    assert lesson_table.lesson_count(desk.database) and not told_by(desk)


def test_an_embedder_that_is_gone_is_replaced_and_fails_no_tick(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = desks.open_database(tmp_path)
    memory = {"use": "on", "embedder": str(tmp_path / "gone")}
    profile = remembering.profile(agents={"memory": memory})
    assert DeskLessons(database).of(profile, desks.sample()) is not None
    assert "hashed words until the next start" in caplog.text

"""A tick's page says which lessons it was told of, with rank and reason; else nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agent_config import AgentSettings, MemorySettings
from tests.doubles.page_reader import Page
from tests.worlds import demo_orders, desks, told_lessons
from tests.worlds.records import tick_record
from torra.config import DeskSettings, Profile
from torra.dashboard.record import lessons_used
from torra.dashboard.record.lessons_used import GONE, LessonsUsed
from torra.dashboard.view.backing import PageContext
from torra.desk.schedule import Desk
from torra.lessons.lesson import Lesson
from torra.lessons.recall import BROKEN, LATE

pytestmark = pytest.mark.usefixtures("lessons_come_in_time")

REMEMBERS = Profile(agents=AgentSettings(memory=MemorySettings(use="on")))
HOUR = timedelta(hours=1)


@pytest.fixture
def backing(tmp_path: Path) -> Iterator[PageContext]:
    desk = desks.open_desk(tmp_path, (desks.BTC,), profile=REMEMBERS)
    desks.open_for_work(desk)
    yield PageContext(tmp_path, desk.database, DeskSettings(instances=(desks.BTC,)), desk, {})
    desk.close()


def newest(backing: PageContext) -> str:
    """The page of the newest tick after one step of the desk."""
    desks.step(cast("Desk", backing.desk))
    (row,) = backing.database.connection().query(
        "SELECT torra_key FROM journal ORDER BY rowid DESC LIMIT 1"
    )
    return demo_orders.text_of(backing, "/symbol/" + row["torra_key"].replace("|", "/"), "read")


def test_a_tick_that_was_told_of_a_lesson_says_which_and_why(
    backing: PageContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torra.tick.look.situation_of", lambda *_: told_lessons.MARKET)
    known = desks.START - 5 * HOUR
    facts = replace(
        told_lessons.LOST, instance="BTCUSD", symbol="BTCUSD", asset="crypto", known_at=known,
        closed_at=known, bar_time=known - HOUR,
    )  # fmt: skip
    backing.database.write_lesson(facts, told_lessons.words(facts))
    page = Page(told := newest(backing))
    text = " ".join(page.words).replace("\u00a0", " ")
    assert "Lessons used: 1 similar trade, 1 note" in text
    assert "1 lesson was known at this close and looked at, the newest of them lesson 1." in text
    assert "LONG BTCUSD H1 range LONDON, loss -1.02 R" in text and "market (rank 1)" in text
    assert 'href="/lessons?before=2#lesson-1"' in told


def test_a_tick_without_lessons_has_no_such_part(backing: PageContext) -> None:
    told = newest(backing)
    assert "esson" not in told.replace('href="/lessons"', "").partition("<main")[2]


def used(lessons: tuple[Lesson, ...] = (), **part: Any) -> LessonsUsed:
    told = {
        "numbers": {}, "notes": [], "corpus": 0, "newest": None, "digest": "", "nearest": [],
        "flags": [], **part,
    }  # fmt: skip
    close = (told_lessons.CLOSED + 48 * HOUR).isoformat()
    record = tick_record({"as_of": close, "lessons": told})
    found = lessons_used.used(record, lessons)
    assert found is not None
    return found


def test_numbers_are_told_with_their_side_and_units() -> None:
    numbers = {"side": "SHORT", "similar": 11.0, "win_share": 0.3333, "mean_r": -0.2143}
    facts = {one.name: one.value.replace("\u00a0", " ") for one in used(numbers=numbers).facts}
    assert facts == {
        "Seen from the side": "▼ SHORT", "Similar trades": "11", "Won": "3 of 11",
        "Share that won, as told": "33 %, pulled towards half",
        "Mean result, as told": "−0.21 R, pulled towards 0",
    }  # fmt: skip


def test_a_note_stands_as_it_was_told_with_the_rankings_that_it_passed() -> None:
    lesson = Lesson(7, told_lessons.LOST, (told_lessons.words(told_lessons.LOST),))
    ranks = {"words": 2, "situation": 1}
    note = {"lesson": 7, "author": "rules", "score": 0.0325, "ranks": ranks}
    numbers = {"side": "LONG", "similar": 11.0, "win_share": 0.3333, "mean_r": -0.2}
    (told,) = used((lesson,), notes=[note], numbers=numbers, corpus=9, newest=12).notes
    assert told.number == 7 and told.author == "the rules"
    assert told.text.startswith("(rules, 2 days ago) LONG EURUSD H1 range LONDON, loss -1.02 R")
    assert told.text.endswith("3 of 11 similar won")
    assert told.why == "like this tick by words (rank 2) and market (rank 1); score 0.0325"


def test_what_the_store_has_no_more_is_said_to_be_gone() -> None:
    note = {"lesson": 7, "author": "rules", "score": 0.03, "ranks": {"text": 1}}
    (told,) = used(notes=[note]).notes
    assert (told.number, told.headline, told.text) == (0, "Lesson 7", GONE)
    other = Lesson(7, told_lessons.LOST, (replace(told_lessons.words(told_lessons.LOST),
                                                  author="a model"),))  # fmt: skip
    (told,) = used((other,), notes=[note]).notes
    assert told.number == 7 and told.text == GONE


def test_a_late_or_broken_recall_is_said_in_plain_words() -> None:
    late = used(flags=[LATE])
    assert late.brief == "none, they came too late"
    assert late.states[0].startswith("Finding the lessons took longer than 20 ms")
    note = {"lesson": 7, "author": "rules", "score": 0.0, "ranks": {}}
    broken = used(flags=[BROKEN], notes=[note])
    assert broken.states[0].startswith("The lessons could not be ranked.")
    assert broken.notes[0].why == "the newest of its symbol, by no ranking"

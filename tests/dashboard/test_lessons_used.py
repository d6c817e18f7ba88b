"""A tick's page says which lessons it was told of, with rank and reason; else nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agent_config import AgentSettings, MemorySettings
from tests.doubles.page_reader import Page, tick_text
from tests.worlds import demo_orders, desks, told_lessons
from tests.worlds.records import quiet, tick_record
from torra.clock import iso
from torra.config import DeskSettings, Profile
from torra.dashboard.record import lessons_used
from torra.dashboard.record.lessons_used import GONE
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


def recalled(**part: Any) -> dict[str, Any]:
    """The record of a tick that was told of earlier trades."""
    told = {
        "numbers": {}, "notes": [], "corpus": 0, "newest": None, "digest": "", "nearest": [],
        "flags": [], **part,
    }  # fmt: skip
    return quiet(as_of=iso(told_lessons.CLOSED + 48 * HOUR), lessons=told)


def page_of(**part: Any) -> str:
    text = Page(tick_text(recalled(**part))).text.replace("\u00a0", " ")
    return text.partition("Lessons used: ")[2].partition("Everything the agents saw")[0]


NOTE = {"lesson": 7, "author": "rules", "score": 0.0325, "ranks": {"words": 2, "situation": 1}}


def test_numbers_are_told_with_their_side_and_units() -> None:
    numbers = {"side": "SHORT", "similar": 11.0, "win_share": 0.3333, "mean_r": -0.2143}
    text = page_of(numbers=numbers, corpus=9, newest=12)
    assert text.startswith("11 similar trades, 0 notes ")
    for words in (
        "Seen from the side ▼ SHORT", "Similar trades 11", "Won 3 of 11",
        "Share that won, as told 33 %, pulled towards half",
        "Mean result, as told −0.21 R, pulled towards 0",
        "9 lessons were known at this close and looked at, the newest of them lesson 12.",
    ):  # fmt: skip
        assert words in text
    few = page_of(numbers={"side": "LONG", "similar": 1.0})
    assert few.startswith("1 similar trade, 0 notes ") and "Won not told below" in few


def test_a_note_stands_as_it_was_told() -> None:
    lesson = Lesson(7, told_lessons.LOST, (told_lessons.words(told_lessons.LOST),))
    numbers = {"side": "LONG", "similar": 11.0, "win_share": 0.3333, "mean_r": -0.2}
    record = tick_record(recalled(notes=[NOTE], numbers=numbers))
    ((_, known, text),) = lessons_used.notes(record, [lesson])
    assert known is lesson
    assert text.startswith("(rules, 2 days ago) LONG EURUSD H1 range LONDON, loss -1.02 R")
    assert text.endswith("3 of 11 similar won")
    words = replace(told_lessons.words(told_lessons.LOST), author="a model")
    ((_, known, text),) = lessons_used.notes(record, [Lesson(7, told_lessons.LOST, (words,))])
    assert known and text == GONE


def test_a_note_names_its_rankings_and_that_the_store_has_it_no_more() -> None:
    text = page_of(notes=[NOTE])
    assert f"Lesson 7 {GONE} Words of the rules; like this tick by words (rank 2) and" in text
    assert "and market (rank 1); score 0.0325." in text


def test_a_late_or_broken_recall_is_said_in_plain_words() -> None:
    late = page_of(flags=[LATE])
    assert late.startswith("none, they came too late ")
    assert "Finding the lessons took longer than 20 ms" in late
    broken = page_of(flags=[BROKEN], notes=[{**NOTE, "ranks": {}}])
    assert "The lessons could not be ranked." in broken
    assert "Words of the rules; the newest of its symbol, by no ranking." in broken

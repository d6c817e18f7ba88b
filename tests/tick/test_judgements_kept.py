"""The lesson of a swarm's trade has the judge's side, its counter and its chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.page_reader import Page, check_structure
from tests.worlds import demo_orders, told_lessons
from tests.worlds.hostile_texts import MARKUP
from tests.worlds.lessons import RISING, facts
from torra.dashboard.view.backing import PageContext
from torra.exhibits import lesson_words
from torra.lessons.figures import evidence
from torra.lessons.lesson import Judgement, Lesson, LessonFacts
from torra.lessons.reviews import rules_words

SAID = Judgement("SHORT", "Buyers hold the mean at 1,861.", 0.42)
SENTENCE = "Judge: short, 42 % to win; against it: Buyers hold the mean at 1,861."


def judged(told: Judgement | None = SAID, **more: Any) -> LessonFacts:
    return facts(situation=replace(RISING, judgement=told), **more)


def test_the_terminal_tells_the_judgement_and_no_agent_is_told() -> None:
    lesson = Lesson(1, judged(), (rules_words(judged(), judged().known_at),))
    assert SENTENCE in lesson_words.whole(lesson)
    assert SENTENCE in lesson_words.table([lesson])
    assert evidence(judged()) == evidence(judged(None))
    assert lesson_words.judge_sentence(judged(Judgement("NONE", "", 0.3))) == (
        "Judge: neither side, 30 % to win"
    )
    assert (
        lesson_words.judge_sentence(judged(None))
        == lesson_words.judge_sentence(facts(situation=None))
        == ""
    )


@pytest.fixture
def backing(tmp_path: Path) -> Iterator[PageContext]:
    with told_lessons.desk(tmp_path) as made:
        yield made


def test_the_page_tells_the_judgement_and_escapes_it(backing: PageContext) -> None:
    ended = judged(replace(SAID, counter=f"{SAID.counter} {MARKUP['script']}"), sid="TJUDGED")
    number = backing.database.write_lesson(ended, rules_words(ended, ended.known_at)) or 0
    pages = demo_orders.open_pages(backing, "read").test_client()
    page = pages.get(f"/lessons?before={number + 1}").get_data(as_text=True)
    check_structure(Page(page))
    assert SENTENCE in page
    assert MARKUP["script"] not in page
    listed = pages.get("/api/v1/lessons").get_json()["lessons"]
    (told,) = [one for one in listed if one["number"] == number]
    assert told["situation"]["judgement"]["chance"] == SAID.chance

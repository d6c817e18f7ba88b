"""What comes later changes no earlier answer by a bit, nor does the order in which lessons come."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.worlds.lesson_entries import HOUR, entries, kinds, query
from torra.lessons.content_words import content_words
from torra.lessons.hashed import hashed
from torra.lessons.ranking import IndexedLesson, LessonIndex, Query

LESSONS = 300
LATER_WORDS = "A model says: thin volume behind the break, wait for the retest."

Change = tuple[datetime, IndexedLesson | int]
"""When something was known, and what: a lesson, or words on the lesson of that number."""


def history(chance: random.Random) -> tuple[list[Change], list[Query]]:
    """Return lessons and the words on every third that come a little later, and questions."""
    among = kinds(chance)
    lessons = [lesson for _, lesson in entries(chance, LESSONS, among)]
    changes: list[Change] = [(lesson.known_at, lesson) for lesson in lessons]
    changes += [
        (lesson.known_at + chance.randrange(1, 40) * HOUR, lesson.number) for lesson in lessons[::3]
    ]
    changes.sort(key=lambda change: (change[0], isinstance(change[1], int)))
    return changes, [query(chance, chance.choice(among)) for _ in range(5)]


def take(index: LessonIndex, change: Change) -> None:
    known_at, what = change
    if isinstance(what, IndexedLesson):
        index.add(what)
    else:
        index.reword(what, known_at, content_words(LATER_WORDS), LATER_WORDS)


def answers(index: LessonIndex, questions: list[Query], as_of: datetime) -> list[Any]:
    return [
        (index.rank(asked, as_of), index.nearest(asked.vector, as_of), index.corpus(as_of))
        for asked in questions
    ]


def test_later_lessons_change_no_earlier_answer(scaled: Callable[..., int]) -> None:
    chance = random.Random(4)
    changes, questions = history(chance)
    whole = LessonIndex(hashed)
    for change in changes:
        take(whole, change)
    told = 0
    for _ in range(scaled(1_000)):
        end = chance.randrange(len(changes))
        as_of = changes[end][0]
        prefix = LessonIndex(hashed)
        for change in changes:
            if change[0] < as_of:
                take(prefix, change)
        then = answers(prefix, questions, as_of)
        assert answers(whole, questions, as_of) == then
        told += sum(len(ranked) for ranked, _, _ in then)
    assert told, "nothing was recalled: nothing was shown"


def test_the_order_of_coming_changes_nothing(scaled: Callable[..., int]) -> None:
    chance = random.Random(5)
    changes, questions = history(chance)
    as_of = changes[-40][0]
    first = LessonIndex(hashed)
    for change in changes:
        take(first, change)
    for _ in range(scaled(500)):
        mixed = [*changes]
        chance.shuffle(mixed)
        # A lesson comes before its words; else in any order.
        mixed.sort(key=lambda change: isinstance(change[1], int))
        index = LessonIndex(hashed)
        for change in mixed:
            take(index, change)
        assert answers(index, questions, as_of) == answers(first, questions, as_of)

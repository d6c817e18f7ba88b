"""Lessons of another subject are told to nobody; those of the same kind of market are found."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from statistics import mean

from tests.worlds.lesson_entries import HOUR, START, entries, garden, kinds, query
from torra.lessons.hashed import hashed
from torra.lessons.ranking import LessonIndex

LESSONS = 600
NOW = START + (LESSONS + 1) * HOUR


def test_a_corpus_of_another_subject_gives_no_note(scaled: Callable[..., int]) -> None:
    chance = random.Random(10)
    among = kinds(chance)
    index = LessonIndex(hashed)
    for number in range(1, LESSONS + 1):
        index.add(garden(chance, number, START + number * HOUR))
    assert index.corpus(NOW).size == LESSONS
    for _ in range(scaled(10_000, 200)):
        assert index.rank(query(chance, chance.choice(among)), NOW) == ()


def test_lessons_that_share_one_common_word_and_the_tags_give_no_note(
    scaled: Callable[..., int],
) -> None:
    chance = random.Random(11)
    one, *_ = kinds(chance)
    index = LessonIndex(hashed)
    for number in range(1, LESSONS + 1):
        lesson = garden(chance, number, START + number * HOUR)
        index.add(replace(lesson, terms=(*lesson.terms, one.regime)))
    for _ in range(scaled(10_000, 200)):
        assert index.rank(query(chance, one, noise=0.0), NOW) == ()


def test_lessons_of_the_same_kind_of_market_are_found(scaled: Callable[..., int]) -> None:
    chance = random.Random(12)
    among = kinds(chance)
    index, kind_of = LessonIndex(hashed), {}
    for at, lesson in entries(chance, LESSONS, among):
        index.add(lesson)
        kind_of[lesson.number] = at
    hits = []
    for _ in range(scaled(2_000, 100)):
        at = chance.randrange(len(among))
        ranked = index.rank(query(chance, among[at]), NOW)
        assert len(ranked) == 3
        hits += [kind_of[one.number] == at for one in ranked]
    assert mean(hits) > 0.95

"""The index answers as the same rules written plainly do, and keeps its floors, ties and window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.examples import examples
from tests.worlds.lesson_entries import START
from torra.lessons import ranking
from torra.lessons.hashed import DIMENSIONS, hashed
from torra.lessons.lesson import SCALES
from torra.lessons.ranking import (
    Directions,
    IndexedLesson,
    LessonIndex,
    Near,
    Postings,
    Query,
)

MINUTE = timedelta(minutes=1)
LATE = START + timedelta(days=1)
WORDS = ("range", "quiet", "spike", "breakout", "momentum", "retest")
NOWHERE = (0.0,) * len(SCALES)


def towards(cosine: float) -> tuple[float, ...]:
    """Return a situation that has this cosine with that of `towards(1.0)`."""
    return (cosine, math.sqrt(1.0 - cosine * cosine), *NOWHERE[2:])


AHEAD = towards(1.0)


# --- the same rules, written plainly --------------------------------------------------------------


@dataclass(frozen=True)
class Later:
    """Words on a lesson that come after it."""

    number: int
    known_at: datetime
    terms: tuple[str, ...]
    text: str


def visible(
    changes: Sequence[IndexedLesson | Later], as_of: datetime, window: int
) -> list[IndexedLesson]:
    lessons = [one for one in changes if isinstance(one, IndexedLesson) and one.known_at < as_of]
    lessons.sort(key=lambda one: (one.known_at, one.number))
    seen = []
    for lesson in lessons[-window:]:
        words = [
            (max(one.known_at, lesson.known_at), one.known_at, one.text, one.terms)
            for one in changes
            if isinstance(one, Later) and one.number == lesson.number and one.known_at < as_of
        ]
        *_, text, terms = max(words, default=(lesson.text, lesson.terms))
        seen.append(replace(lesson, text=text, terms=terms))
    return seen


def cosine(one: Sequence[float] | None, other: Sequence[float] | None, width: int) -> float:
    rows = Directions(width)
    rows.append(rows.point(one))
    return float(rows.cosines(other, np.arange(1))[0])


def bm25(lessons: list[IndexedLesson], asked: Sequence[str]) -> list[tuple[float, bool]]:
    """Return how lessons alone answer: test_bm25 holds that to bm25s."""
    words = Postings()
    for lesson in lessons:
        words.append(lesson.terms)
    scores, passing = words.answers(asked, np.ones(len(lessons), np.bool_))
    return [*zip(scores.tolist(), passing.tolist(), strict=True)]


def plain_rank(lessons: list[IndexedLesson], query: Query, limit: int) -> list[Any]:
    texts = [cosine(hashed(one.text), hashed(query.text), DIMENSIONS) for one in lessons]
    situations = [cosine(one.vector, query.vector, len(SCALES)) for one in lessons]
    rankings = {
        "words": bm25(lessons, query.terms),
        "text": [(score, round(score, 6) >= 0.35) for score in texts],
        "situation": [(score, round(score, 6) >= 0.6) for score in situations],
    }
    ranks: dict[int, dict[str, int]] = {}
    for name, scored in rankings.items():
        passing = [
            (-round(score, 6), -one.number)
            for one, (score, passes) in zip(lessons, scored, strict=True)
            if passes
        ]
        for place, (_, number) in enumerate(sorted(passing), 1):
            ranks.setdefault(-number, {})[name] = place
    fused = [
        (-round(sum(1 / (60 + place) for place in places.values()), 6), -number, places)
        for number, places in ranks.items()
    ]
    fused.sort(key=lambda one: one[:2])
    return [(-number, -score, places) for score, number, places in fused[:limit]]


def plain_nearest(lessons: list[IndexedLesson], vector: Any, limit: int) -> list[Any]:
    found = [
        (-round(cosine(one.vector, vector, len(SCALES)), 6), -one.number)
        for one in lessons
        if one.counts
    ]
    return [(-number, -score) for score, number in sorted(found) if -score >= 0.6][:limit]


minutes = st.integers(0, 12).map(lambda at: START + at * MINUTE)
some_words = st.lists(st.sampled_from(WORDS), max_size=6).map(tuple)
texts = some_words.map(" ".join)
vectors = st.none() | st.tuples(*[st.sampled_from((-1.0, 0.0, 0.5, 1.0))] * 3).map(
    lambda first: (*first, *NOWHERE[3:])
)


@st.composite
def histories(draw: st.DrawFn) -> list[IndexedLesson | Later]:
    numbers = draw(st.lists(st.integers(1, 30), min_size=1, max_size=14, unique=True))
    lessons: list[IndexedLesson | Later] = [
        draw(
            st.builds(
                IndexedLesson, st.just(number), minutes, some_words, texts, vectors, st.booleans()
            )
        )
        for number in numbers
    ]
    later = st.builds(Later, st.sampled_from(numbers), minutes, some_words, texts)
    return [*draw(st.permutations(lessons)), *draw(st.lists(later, max_size=8))]


def index_of(changes: Sequence[IndexedLesson | Later]) -> LessonIndex:
    index = LessonIndex(hashed)
    for one in changes:
        if isinstance(one, IndexedLesson):
            index.add(one)
        else:
            index.reword(one.number, one.known_at, one.terms, one.text)
    return index


@pytest.fixture
def small_window(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(ranking, "WINDOW", 6)
    return 6


@pytest.mark.journey
def test_the_index_answers_as_the_plain_rules_do(small_window: int) -> None:
    @settings(max_examples=examples(2_000, 60))
    @given(histories(), st.builds(Query, some_words, texts, vectors), st.lists(minutes, min_size=1))
    def holds(changes: list[IndexedLesson | Later], query: Query, moments: list[datetime]) -> None:
        index = index_of(changes)
        for as_of in moments:
            seen = visible(changes, as_of, small_window)
            told = index.rank(query, as_of, limit=30)
            assert [tuple(one) for one in told] == plain_rank(seen, query, 30)
            assert index.rank(query, as_of) == told[:3]
            near = index.nearest(query.vector, as_of, limit=4)
            assert [tuple(one) for one in near] == plain_nearest(seen, query.vector, 4)
            size, newest, _ = index.corpus(as_of)
            assert (size, newest) == (len(seen), seen[-1].number if seen else None)

    holds()


# --- floors, ties, words that come later, the window ----------------------------------------------


def lesson(number: int, **changed: Any) -> IndexedLesson:
    usual: dict[str, Any] = {"terms": (), "text": "", "vector": None}
    return IndexedLesson(number, START + number * MINUTE, **usual | changed)


def told(index: LessonIndex, as_of: datetime = LATE, **asked: Any) -> list[int]:
    query = Query(**{"terms": (), "text": "", "vector": None} | asked)
    return [one.number for one in index.rank(query, as_of)]


@cases(
    ("cosine", "passes"), [(0.61, True), (0.6005, True), (0.5995, False), (0.0, False), (-1, False)]
)
def test_a_situation_is_told_from_its_floor_on(cosine: float, passes: bool) -> None:
    index = index_of([lesson(1, vector=towards(cosine))])
    assert bool(told(index, vector=AHEAD)) is passes
    assert bool(index.nearest(AHEAD, LATE)) is passes


def test_scores_are_equal_when_their_sixth_decimal_is() -> None:
    """The second situation lies two points of the grid beside the first: its cosine is 1 - 5e-7."""
    beside = (1.0, 0.0009, *NOWHERE[2:])
    assert 1e-7 < 1.0 - cosine(AHEAD, beside, len(SCALES)) < 5e-7
    index = index_of([lesson(1, vector=AHEAD), lesson(2, vector=beside)])
    assert index.nearest(AHEAD, LATE) == (Near(2, 1.0), Near(1, 1.0))
    assert told(index, vector=AHEAD) == [2, 1]


def test_later_words_stand_from_their_own_moment_on() -> None:
    index = index_of([lesson(1, terms=("range", "spike"))])
    index.reword(1, START + 9 * MINUTE, ("quiet", "retest"), "")
    early, late = START + 9 * MINUTE, START + 9 * MINUTE + timedelta(microseconds=1)
    assert told(index, early, terms=("range", "spike")) == [1]
    assert told(index, early, terms=("quiet", "retest")) == []
    assert told(index, late, terms=("range", "spike")) == []
    assert told(index, late, terms=("quiet", "retest")) == [1]
    assert index.corpus(early).size == index.corpus(late).size == 1
    assert index.corpus(early).digest != index.corpus(late).digest


def test_words_on_an_unknown_lesson_are_refused_and_leave_nothing() -> None:
    index = index_of([lesson(1, vector=AHEAD)])
    before = index.corpus(LATE)
    with pytest.raises(KeyError):
        index.reword(2, LATE, WORDS, "a text")
    assert index.corpus(LATE) == before


def test_a_lesson_that_comes_twice_is_there_once() -> None:
    index = index_of([lesson(1, vector=AHEAD), lesson(1, vector=towards(0.0), counts=False)])
    assert index.corpus(LATE).size == 1
    assert index.nearest(AHEAD, LATE) == (Near(1, 1.0),)


def test_an_embedder_that_fails_leaves_the_index_as_it_was() -> None:
    def embed(text: str) -> tuple[float, ...]:
        if text == "bad":
            raise OSError("gone")
        return (1.0,) if text == "narrow" else (1.0, 0.0)

    index = LessonIndex(embed)
    index.add(lesson(1, vector=AHEAD, text="good"))
    for number, text, error in ((2, "bad", OSError), (3, "narrow", ValueError)):
        with pytest.raises(error):
            index.add(lesson(number, vector=AHEAD, text=text))
    with pytest.raises(ValueError, match="a vector of 3 numbers among those of 16"):
        index.add(lesson(4, vector=(1.0, 0.0, 0.0)))
    index.add(lesson(5, vector=AHEAD, text="good"))
    assert told(index, vector=AHEAD) == [5, 1]


def test_what_comes_between_two_questions_of_one_moment_is_seen() -> None:
    index = index_of([lesson(1, terms=("range", "spike"))])
    assert told(index, terms=("range", "spike")) == [1]
    index.add(lesson(2, terms=("range", "spike")))
    assert told(index, terms=("range", "spike")) == [2, 1]
    index.reword(2, START + 3 * MINUTE, (), "")
    assert told(index, terms=("range", "spike")) == [1]

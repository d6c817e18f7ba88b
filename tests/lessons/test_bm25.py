"""BM25 equals bm25s to 1e-6 on whatever is visible, and its floor asks for more than one word."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cases import cases
from tests.later import Later
from torra.lessons.ranking import Postings

bm25s: Any = Later("bm25s")

WORDS = tuple(f"word{at}" for at in range(40))


def theirs(texts: list[list[str]], asked: list[str]) -> np.ndarray[Any, Any]:
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75, dtype="float64")
    index.index(texts, show_progress=False)
    known = sorted(set(asked) & {word for text in texts for word in text})
    return np.asarray(index.get_scores(known)) if known else np.zeros(len(texts))


def postings(texts: list[list[str]]) -> Postings:
    found = Postings()
    for text in texts:
        found.append(text)
    return found


def everything(texts: list[list[str]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.ones(len(texts), np.bool_)


def test_scores_equal_bm25s_on_random_texts(scaled: Callable[..., int]) -> None:
    chance = random.Random(33)
    for _ in range(scaled(1_000)):
        texts = [
            chance.choices(WORDS, k=chance.randrange(1, 30)) for _ in range(chance.randrange(1, 60))
        ]
        asked = chance.choices((*WORDS, "unheard"), k=chance.randrange(1, 9))
        visible = np.array([chance.random() < 0.7 for _ in texts])
        visible[chance.randrange(len(texts))] = True
        seen = [text for text, known in zip(texts, visible, strict=True) if known]
        found = postings(texts).answers(asked, visible)[0]
        assert found[visible] == pytest.approx(theirs(seen, asked), abs=1e-6)
        assert not found[~visible].any()


MANY = [["range", "wick", "swing"], *([["range", "body"]] * 5), *([["quiet", "pivot"]] * 4)]
"""`range` is common, `wick` and `swing` stand in the first text alone."""


@cases(
    ("asked", "passes"),
    [
        (["range", "wick"], True),
        (["wick", "swing", "pivot"], True),
        (["wick", "swing", "never_heard"], True),
        (["range", "wick", "never_heard"], False),
        (["wick", "swing", "unheard", "never_heard"], False),
        (["wick"], False),
        (["wick", "pivot"], False),
        (["unheard"], False),
        ([], False),
    ],
)
def test_the_floor_asks_for_two_words_and_half_of_what_is_said(
    asked: list[str], passes: bool
) -> None:
    assert postings(MANY).answers(asked, everything(MANY))[1][0] == passes


def test_exactly_half_passes_in_whatever_order_it_is_added() -> None:
    texts = [["one", "four"], ["two", "three"], ["one", "two"], ["three", "four"]]
    _, passing = postings(texts).answers(["one", "two", "three", "four"], everything(texts))
    assert passing.all()


@cases("texts", [[], [[], []]])
def test_what_has_no_words_answers_nothing(texts: list[list[str]]) -> None:
    scores, passing = postings(texts).answers(["gap", "spike"], everything(texts))
    assert not scores.any() and not passing.any()

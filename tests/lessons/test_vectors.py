"""A text is always the same 256 numbers, and a cosine the same bits, however many threads add."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import ROOT
from tests.cases import cases
from tests.examples import examples
from torra.lessons.hashed import DIMENSIONS, hashed
from torra.lessons.ranking import GRID, TEXT_FLOOR, Directions

FIRST = np.arange(1)


def cosine(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    rows = Directions(len(one))
    rows.append(rows.point(one))
    return float(rows.cosines(other, FIRST)[0])


@given(st.text(max_size=200))
def test_any_text_has_length_one_or_none(text: str) -> None:
    vector = hashed(text)
    assert len(vector) == DIMENSIONS
    assert math.hypot(*vector) == pytest.approx(1.0) or not any(vector)


PROSE = (
    "Short BTCUSD H1 with the trend, London session; price against its retracements spoke against "
    "it; volume heavy. Lost 1.99 R in 7.2 days by a close; it was 0.5 R ahead at best. One trade, "
    "not a rule: it had no plan to measure it by."
)


@cases(
    ("terms", "passes"),
    [
        ("with_trend mo_rsi_for pa_body_for pa_wicks_against", True),
        ("with_trend mo_rsi_for kl_cloud_for kl_lines_for", True),
        ("with_trend kl_trend_for kl_cloud_for kl_lines_for", False),
        ("against_trend mo_rsi_against pa_body_against pa_wicks_for", False),
        ("against_trend mo_macd_for pa_bars_for pa_gaps_against", False),
    ],
)
def test_two_of_four_names_of_code_are_a_likeness_and_their_letters_are_none(
    terms: str, passes: bool
) -> None:
    lesson = hashed(f"with_trend mo_rsi_for pa_body_for pa_wicks_against {PROSE}")
    assert (cosine(hashed(terms), lesson) >= TEXT_FLOOR) is passes


def test_texts_of_other_words_are_not_alike() -> None:
    chance = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    texts = [
        hashed(" ".join("".join(chance.choices(letters, k=7)) for _ in range(12)))
        for _ in range(60)
    ]
    found = [cosine(a, b) for at, a in enumerate(texts) for b in texts[:at]]
    assert max(found) < TEXT_FLOOR
    assert abs(sum(found) / len(found)) < 0.01, "a sign for each place: no two are alike by length"


@settings(max_examples=examples(2_000, 100))
@given(st.lists(st.tuples(*[st.floats(-1, 1)] * 2), min_size=1, max_size=300))
def test_the_grid_moves_a_cosine_by_less_than_a_hundredth(
    pairs: list[tuple[float, float]],
) -> None:
    one, other = (tuple(values) for values in zip(*pairs, strict=True))
    lengths = math.hypot(*one) * math.hypot(*other)
    if math.hypot(*one) < 1e-6 or math.hypot(*other) < 1e-6:
        return
    exact = math.fsum(a * b for a, b in pairs) / lengths
    assert cosine(one, other) == pytest.approx(exact, abs=0.01)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=4096))
def test_every_sum_of_products_is_a_whole_number_that_is_known(values: list[float]) -> None:
    point = Directions(len(values)).point(values).astype(np.int64)
    assert int((point * point).sum()) < 2**24
    assert not values or math.sqrt((point * point).sum()) <= GRID + math.sqrt(len(values)) / 2 + 1


def test_what_has_no_direction_is_like_nothing() -> None:
    nothing = (0.0, 0.0)
    assert cosine(nothing, (1.0, 0.0)) == cosine((1.0, 0.0), nothing) == 0.0
    assert cosine((math.nan, 1.0), (1.0, 0.0)) == cosine((math.inf, 1.0), (1.0, 0.0)) == 0.0
    assert cosine((1e-300, 0.0), (1.0, 0.0)) == 1.0


LESSONS, ASKED = examples(3000, 1000), examples(40, 16)
RANKED = f"""
import hashlib, random
import numpy as np
from tests.worlds.lesson_entries import HOUR, START, entries, kinds, query
from torra.lessons.hashed import hashed
from torra.lessons.ranking import LessonIndex
chance = random.Random(3)
among = kinds(chance)
index = LessonIndex(hashed)
for _, lesson in entries(chance, {LESSONS}, among, noise=0.3):
    index.add(lesson)
told = []
for _ in range({ASKED}):
    asked = query(chance, chance.choice(among), noise=0.3)
    as_of = START + chance.randrange({LESSONS}) * HOUR
    cosines = index._texts.cosines(hashed(asked.text), np.arange({LESSONS})).tobytes().hex()
    told.append((index.rank(asked, as_of, 50), index.nearest(asked.vector, as_of), cosines))
print(hashlib.sha256(repr(told).encode()).hexdigest())
"""


@pytest.mark.journey
def test_one_and_two_threads_give_the_same_bits() -> None:
    found = set()
    for threads in ("1", "2"):
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads), "PYTHONHASHSEED": threads}
        done = subprocess.run(
            [sys.executable, "-c", RANKED],
            cwd=ROOT,
            env={**environment, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1

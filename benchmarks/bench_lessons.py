"""What it takes to recall lessons in a tick: one whole retrieval, and one lesson more."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import Final

import numpy as np

from benchmarks.rows import Part, Row, at_most, ready
from tests.worlds.lesson_entries import HOUR, START, entries, kinds, query
from torra.lessons.hashed import hashed
from torra.lessons.ranking import LessonIndex

SIZES: Final = (2_000, 5_000)
ASKED: Final = 500
TRIAL_ASKED: Final = 50
NOISE: Final = 0.3
OFTEN: Final = 95
"""Percentile of the retrievals that a tick may count on."""


def measure(trial: bool) -> dict[str, float]:
    """Return the 95th percentile of a retrieval in ms by size, and the mean of an added lesson."""
    found: dict[str, float] = {}
    for size in SIZES:
        chance = random.Random(size)
        among = kinds(chance)
        lessons = [lesson for _, lesson in entries(chance, size, among, NOISE)]
        index = LessonIndex(hashed)
        begin = time.perf_counter()
        for lesson in lessons:
            index.add(lesson)
        found["add_us"] = 1e6 * (time.perf_counter() - begin) / size
        spent = []
        for number in range(TRIAL_ASKED if trial else ASKED):
            asked = query(chance, chance.choice(among), NOISE)
            # Another moment each time: what is visible is looked for anew.
            as_of = START + (size + 1) * HOUR + timedelta(seconds=number)
            begin = time.perf_counter()
            index.rank(asked, as_of)
            index.nearest(asked.vector, as_of)
            index.corpus(as_of)
            spent.append(time.perf_counter() - begin)
        found[f"at_{size}_ms"] = 1e3 * float(np.percentile(spent, OFTEN))
    return found


PART: Final = Part(
    "lessons",
    "Lessons recalled",
    ready(measure),
    (
        Row(
            "at_2000_ms",
            "one retrieval among 2,000 lessons, 95th percentile",
            "{:.2f} ms",
            at_most(3),
        ),
        Row("at_5000_ms", "among 5,000", "{:.2f} ms", at_most(10)),
        Row("add_us", "one lesson more", "{:.0f} us"),
    ),
    "A retrieval is all that a tick asks: the three rankings and their fusion, the lessons of the "
    "same situation, and the digest of what was looked at. Each is of another moment. An index "
    "looks at 5,000 lessons at most.",
)

if __name__ == "__main__":
    print(measure(trial=True))

"""Lessons by lot: the placebo of a memory.

It tells as many lessons as a memory would, and of the same ages, but drawn from all that were
known: neither words nor situation choose them. A desk that does no better with its own lessons than
with these is not helped by what they say of a market like this one. The numbers are made of the
drawn trades, by the same arithmetic.

Ages are compared by PARTS: what is known is cut into so many parts of equal number, the oldest
first, and each lesson is replaced by one of its own part. The draw hangs on the seed and the
question alone, so a replay that goes on from a checkpoint draws as one that never stopped.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from numpy.random import PCG64, Generator

from torra.clock import iso
from torra.lessons.ranking import Embed, LessonIndex, Query, Ranked
from torra.lessons.recall import Fetch, LessonQuery, LessonRetriever

PARTS: Final = 5
"""Parts of equal number into which what is known is cut by age."""

TRADES, NOTES = 0, 1
"""What is drawn: each has a generator of its own, so that neither moves the other's draw."""


class LotShelf(LessonRetriever):
    """A shelf that tells lessons by lot."""

    def __init__(self, fresh: Fetch, embed: Embed, seed: int) -> None:
        """Begin empty; `seed` fixes the draws."""
        super().__init__(fresh, embed)
        self._seed = seed

    def _nearest(
        self, index: LessonIndex, question: LessonQuery, vector: Sequence[float]
    ) -> Sequence[int]:
        near = super()._nearest(index, question, vector)
        known = [n for n in index.known(question.as_of) if self._lessons[n].facts.kind == "trade"]
        return by_lot(known, near, self._rng(question, TRADES))

    def _best(self, index: LessonIndex, question: LessonQuery, query: Query) -> Sequence[Ranked]:
        best = super()._best(index, question, query)
        numbers = [one.number for one in best]
        drawn = by_lot(index.known(question.as_of), numbers, self._rng(question, NOTES))
        return [Ranked(number, 0.0, {}) for number in drawn]

    def _rng(self, question: LessonQuery, purpose: int) -> Generator:
        numbers = question.situation.vector(question.side)
        text = f"{question.symbol} {iso(question.as_of)} {question.side} {numbers}"
        return Generator(PCG64([self._seed, zlib.crc32(text.encode()), purpose]))


def by_lot(known: Sequence[int], numbers: Sequence[int], rng: Generator) -> list[int]:
    """Return for each number of `numbers` one of `known` of its age, none twice.

    `known` are in the order of their age and hold those of `numbers`.
    """
    part = {number: at * PARTS // len(known) for at, number in enumerate(known)}
    drawn: dict[int, Iterator[int]] = {}
    for name in sorted({part[number] for number in numbers}):
        members = [number for number in known if part[number] == name]
        drawn[name] = iter([members[at] for at in rng.permutation(len(members))])
    return [next(drawn[part[number]]) for number in numbers]

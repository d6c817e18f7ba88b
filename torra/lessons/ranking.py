"""Which lessons are like the market of now: three rankings of what was known then, and their sum.

Visible to a question at `as_of` is what was known before it: of each lesson the newest words, and
of all lessons the newest WINDOW. Every count is of those alone, so that no lesson that comes later
moves an earlier answer by a bit, and neither does the order in which lessons were added.

A lesson is ranked by its words (torra.lessons.bm25), by its text as a vector of `embed`, and by its
situation (cosines; torra.lessons.directions). Each ranking has a floor, and a lesson that passes
none is not told. The sum over the rankings is of 1 / (RRF_K + rank) (reciprocal rank fusion,
Cormack et al. 2009). Scores are rounded to DECIMALS before they are compared, and of equals the one
with the greater number comes first.

An index knows neither disk nor clock, and one thread at a time may use it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torra.clock import EPOCH
from torra.lessons.bm25 import Postings
from torra.lessons.columns import Column
from torra.lessons.directions import Directions
from torra.lessons.lesson import SCALES

Embed = Callable[[str], Sequence[float]]
"""Makes a vector of a text, always of the same width; zeros where it says nothing."""

WINDOW: Final = 5_000
"""Lessons that are looked at, the newest."""

TEXT_FLOOR: Final = 0.35
SITUATION_FLOOR: Final = 0.60
"""Least cosines of a lesson that is told."""

RRF_K: Final = 60
DECIMALS: Final = 6

FOREVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class IndexedLesson:
    """A lesson as an index takes it.

    `terms` are the content words of its situation and of its text; `vector` is that of its
    situation, None without one. `counts`: a trade, not a vetoed opening.
    """

    number: int
    known_at: datetime
    terms: Sequence[str]
    text: str
    vector: Sequence[float] | None
    counts: bool = True


class Query(NamedTuple):
    """What is asked: words and text of code alone, and the vector of the situation of now."""

    terms: Sequence[str]
    text: str
    vector: Sequence[float] | None


class Ranked(NamedTuple):
    """A lesson that is told; `ranks` has its rank, from 1, in each of RANKINGS that it passed."""

    number: int
    score: float
    ranks: Mapping[str, int]


class Near(NamedTuple):
    """A lesson of a situation like this one, and the cosine."""

    number: int
    cosine: float


class Corpus(NamedTuple):
    """What was looked at: how many lessons, the newest of them, and a hash of which versions."""

    size: int
    newest: int | None
    digest: str


RANKINGS: Final = ("words", "text", "situation")


class _Version(NamedTuple):
    """A text of a lesson, in the order in which texts follow one another."""

    since: int
    reworded: bool
    known: int
    text: str
    terms: tuple[str, ...]
    row: int


class _View(NamedTuple):
    """What is visible: as a mask of all rows, as rows, and the stretch in which those lie."""

    as_of: int
    rows_in_all: int
    mask: NDArray[np.bool_]
    rows: NDArray[np.int64]
    stretch: slice


class LessonIndex:
    """Lessons in memory, by what was known when."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._order: list[tuple[int, int]] = []
        self._lessons: dict[int, IndexedLesson] = {}
        self._versions = defaultdict[int, list[_Version]](list)
        self._numbers, self._known = Column(np.int64), Column(np.int64)
        self._since, self._until = Column(np.int64), Column(np.int64)
        self._counts = Column(np.bool_)
        self._words = Postings()
        self._texts = Directions(len(embed("")))
        self._situations = Directions(len(SCALES))
        self._view: _View | None = None

    def add(self, entry: IndexedLesson) -> None:
        """Take a lesson, in any order of time; one that is there already stays as it is."""
        if entry.number not in self._lessons:
            self._append(entry, entry.known_at)

    def reword(self, number: int, known_at: datetime, terms: Sequence[str], text: str) -> None:
        """Take words that stand in the place of a lesson's from their own `known_at` on.

        Of two that are known at once the greater text stands. Raises KeyError for a lesson that is
        not there.
        """
        self._append(replace(self._lessons[number], terms=terms, text=text), known_at)

    def rank(self, query: Query, as_of: datetime, limit: int = 3) -> tuple[Ranked, ...]:
        """Return the lessons that answer a question best, the best first."""
        view = self._visible(as_of)
        numbers = self._numbers.rows[view.rows]
        ranks = [_ranks(scores, floors, numbers) for scores, floors in self._scored(query, view)]
        fused = np.zeros(len(numbers))
        for places in ranks:
            fused += np.where(places > 0, 1.0 / (RRF_K + places), 0.0)
        ranked = []
        for at in _best_first(_rounded(fused), numbers, fused > 0.0)[:limit]:
            own = {name: int(places[at]) for name, places in zip(RANKINGS, ranks, strict=True)}
            score = round(float(fused[at]), DECIMALS)
            passed = {name: place for name, place in own.items() if place}
            ranked.append(Ranked(int(numbers[at]), score, passed))
        return tuple(ranked)

    def nearest(
        self, vector: Sequence[float] | None, as_of: datetime, limit: int = 20
    ) -> tuple[Near, ...]:
        """Return the trades whose situation is most like this one, whatever their words say."""
        view = self._visible(as_of)
        numbers = self._numbers.rows[view.rows]
        cosines = _rounded(self._cosines(self._situations, vector, view))
        passing = self._counts.rows[view.rows] & (cosines >= _floor(SITUATION_FLOOR))
        best = _best_first(cosines, numbers, passing)[:limit]
        return tuple(Near(int(numbers[at]), int(cosines[at]) / 10**DECIMALS) for at in best)

    def corpus(self, as_of: datetime) -> Corpus:
        """Return what a question at `as_of` looks at."""
        view = self._visible(as_of)
        numbers, since = self._numbers.rows[view.rows], self._since.rows[view.rows]
        by_number = np.argsort(numbers, kind="stable")
        versions = np.column_stack((numbers, since))[by_number].astype("<i8")
        count = bisect_left(self._order, (view.as_of,))
        newest = self._order[count - 1][1] if count else None
        return Corpus(len(view.rows), newest, hashlib.sha256(versions.tobytes()).hexdigest())

    def known(self, as_of: datetime) -> list[int]:
        """Return the lessons that a question at `as_of` looks at, the oldest first."""
        rows = self._visible(as_of).rows
        numbers = self._numbers.rows[rows]
        oldest_first: list[int] = numbers[np.lexsort((numbers, self._known.rows[rows]))].tolist()
        return oldest_first

    def _append(self, entry: IndexedLesson, known_at: datetime) -> None:
        """Add the row of a text, and note with those before it until when they stand.

        What may raise comes first: a row stands in every column or in none.
        """
        number, row = entry.number, len(self._numbers)
        vector = self._texts.point(self._embed(entry.text))
        situation = self._situations.point(entry.vector)
        lesson, known = _microseconds(entry.known_at), _microseconds(known_at)
        reworded = number in self._lessons
        if not reworded:
            insort(self._order, (lesson, number))
            self._lessons[number] = entry
        self._numbers.append(number)
        self._known.append(lesson)
        self._since.append(max(known, lesson))
        self._until.append(FOREVER)
        self._counts.append(entry.counts)
        self._words.append(entry.terms)
        self._texts.append(vector)
        self._situations.append(situation)
        terms = tuple(entry.terms)
        versions = self._versions[number]
        insort(versions, _Version(max(known, lesson), reworded, known, entry.text, terms, row))
        for version, following in pairwise(versions):
            self._until.rows[version.row] = following.since

    def _visible(self, as_of: datetime) -> _View:
        """Return what is visible; a tick asks several times of one moment."""
        moment, rows_in_all = _microseconds(as_of), len(self._numbers)
        view = self._view
        if view is not None and (view.as_of, view.rows_in_all) == (moment, rows_in_all):
            return view
        mask = (self._since.rows < moment) & (self._until.rows >= moment)
        count = bisect_left(self._order, (moment,))
        if count > WINDOW:
            known, number = self._order[count - WINDOW]
            later = self._known.rows > known
            mask &= later | ((self._known.rows == known) & (self._numbers.rows >= number))
        rows = np.flatnonzero(mask)
        stretch = slice(int(rows[0]), int(rows[-1]) + 1) if len(rows) else slice(0, 0)
        self._view = _View(moment, rows_in_all, mask, rows, stretch)
        return self._view

    def _scored(
        self, query: Query, view: _View
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
        """Yield for each of RANKINGS the scores of what is visible, and what passes its floor."""
        answers = self._words.answers(query.terms, view.mask)
        yield answers.scores[view.rows], answers.passing[view.rows]
        texts = self._cosines(self._texts, self._embed(query.text), view)
        yield texts, _rounded(texts) >= _floor(TEXT_FLOOR)
        situations = self._cosines(self._situations, query.vector, view)
        yield situations, _rounded(situations) >= _floor(SITUATION_FLOOR)

    @staticmethod
    def _cosines(
        directions: Directions, vector: Sequence[float] | None, view: _View
    ) -> NDArray[np.float64]:
        stretch = directions.cosines(vector, view.stretch)
        cosines: NDArray[np.float64] = stretch[view.rows - view.stretch.start]
        return cosines


def _ranks(
    scores: NDArray[np.float64], passing: NDArray[np.bool_], numbers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rank from 1 of each row that passes, 0 of the others."""
    best = _best_first(_rounded(scores), numbers, passing)
    ranks = np.zeros(len(scores), np.int64)
    ranks[best] = np.arange(1, len(best) + 1)
    return ranks


def _best_first(
    rounded: NDArray[np.int64], numbers: NDArray[np.int64], passing: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the places of those that pass: the greatest score first, of equals the newest."""
    places = np.flatnonzero(passing)
    return places[np.lexsort((-numbers[places], -rounded[places]))]


def _rounded(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return scores in units of the last decimal that counts."""
    return np.rint(scores * 10**DECIMALS).astype(np.int64)


def _floor(value: float) -> int:
    return round(value * 10**DECIMALS)


def _microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)

"""Which lessons are like the market of now: three rankings of what was known then, and their sum.

Visible to a question at `as_of` is what was known before it: of each lesson the newest words, and
of all lessons the newest WINDOW. Every count is of those alone, so that no lesson that comes later
moves an earlier answer by a bit, and neither does the order in which lessons were added.

A lesson is ranked by its words (`Postings`), by its text as a vector of `embed`, and by its
situation (cosines: `Directions`). Each ranking has a floor, and a lesson that passes none is not
told. The sum over the rankings is of 1 / (RRF_K + rank) (reciprocal rank fusion, Cormack et al.
2009). Scores are rounded to DECIMALS before they are compared, and of equals the one with the
greater number comes first.

An index knows neither disk nor clock, and one thread at a time may use it.
"""

from __future__ import annotations

import hashlib
import math
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torra.clock import EPOCH
from torra.lessons.lesson import SCALES

Embed = Callable[[str], Sequence[float]]
"""Makes a vector of a text, always of the same width; zeros where it says nothing."""

Numbers = NDArray[np.int64]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]

WINDOW: Final = 5_000
"""Lessons that are looked at, the newest."""

TEXT_FLOOR: Final = 0.35
SITUATION_FLOOR: Final = 0.60
"""Least cosines of a lesson that is told."""

RRF_K: Final = 60
DECIMALS: Final = 6

FOREVER: Final = np.iinfo(np.int64).max

FIRST_ROOM: Final = 64
"""Rows for which a column has room at first; it doubles."""

K1: Final = 1.5
B: Final = 0.75
"""The parameters of BM25."""

WORDS: Final = 2
SHARE: Final = 0.5
"""Least words of a question, and least share of its weight, that a lesson of its kind has."""

ROUNDING: Final = 1e-9
"""More than sums of a few weights can be off by: half is half in whatever order they are added."""

GRID: Final = 2048
"""Length of a vector on the grid. Its square, 2 ** 22, leaves room below 2 ** 24, up to which
single precision knows every whole number: no partial sum of products is larger (Cauchy-Schwarz).
"""


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
    """A lesson that is told; `ranks` has its rank, from 1, in each ranking that it passed."""

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


class LessonIndex:
    """Lessons in memory, by what was known when."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._lessons: dict[int, IndexedLesson] = {}
        self._versions = defaultdict[int, list[tuple[Any, ...]]](list)
        columns = (Column(np.int64) for _ in range(4))
        self._numbers, self._known, self._since, self._until = columns
        self._counts = Column(np.bool_)
        self._words = Postings()
        self._texts = Directions(len(embed("")))
        self._situations = Directions(len(SCALES))
        self._view: tuple[tuple[int, int], Mask, Numbers] | None = None

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
        mask, rows = self._visible(as_of)
        numbers = self._numbers.rows[rows]
        words, shared = self._words.answers(query.terms, mask)
        texts = _rounded(self._texts.cosines(self._embed(query.text), rows))
        situations = _rounded(self._situations.cosines(query.vector, rows))
        rankings = {
            "words": (_rounded(words[rows]), shared[rows]),
            "text": (texts, texts >= _floor(TEXT_FLOOR)),
            "situation": (situations, situations >= _floor(SITUATION_FLOOR)),
        }
        ranks: dict[str, Numbers] = {}
        fused = np.zeros(len(numbers))
        for name, (scores, passing) in rankings.items():
            best = _best_first(scores, numbers, passing)
            ranks[name] = np.zeros(len(numbers), np.int64)
            ranks[name][best] = np.arange(1, len(best) + 1)
            fused += np.where(ranks[name] > 0, 1.0 / (RRF_K + ranks[name]), 0.0)
        return tuple(
            Ranked(
                int(numbers[at]),
                round(float(fused[at]), DECIMALS),
                {name: int(places[at]) for name, places in ranks.items() if places[at]},
            )
            for at in _best_first(_rounded(fused), numbers, fused > 0.0)[:limit]
        )

    def nearest(
        self, vector: Sequence[float] | None, as_of: datetime, limit: int = 20
    ) -> tuple[Near, ...]:
        """Return the trades whose situation is most like this one, whatever their words say."""
        _, rows = self._visible(as_of)
        numbers = self._numbers.rows[rows]
        cosines = _rounded(self._situations.cosines(vector, rows))
        passing = self._counts.rows[rows] & (cosines >= _floor(SITUATION_FLOOR))
        best = _best_first(cosines, numbers, passing)[:limit]
        return tuple(Near(int(numbers[at]), int(cosines[at]) / 10**DECIMALS) for at in best)

    def corpus(self, as_of: datetime) -> Corpus:
        """Return what a question at `as_of` looks at."""
        _, rows = self._visible(as_of)
        numbers, since = self._numbers.rows[rows], self._since.rows[rows]
        by_number = np.argsort(numbers, kind="stable")
        versions = np.column_stack((numbers, since))[by_number].astype("<i8")
        known = self._known.rows[rows]
        newest = int(numbers[known == known.max()].max()) if len(rows) else None
        return Corpus(len(rows), newest, hashlib.sha256(versions.tobytes()).hexdigest())

    def known(self, as_of: datetime) -> list[int]:
        """Return the lessons that a question at `as_of` looks at, the oldest first."""
        _, rows = self._visible(as_of)
        numbers = self._numbers.rows[rows]
        oldest_first: list[int] = numbers[np.lexsort((numbers, self._known.rows[rows]))].tolist()
        return oldest_first

    def _append(self, entry: IndexedLesson, known_at: datetime) -> None:
        """Add the row of a text, and note with those before it until when they stand.

        What may raise comes first: a row stands in every column or in none.
        """
        number, row = entry.number, len(self._numbers.rows)
        vector = self._texts.point(self._embed(entry.text))
        situation = self._situations.point(entry.vector)
        lesson, since = _microseconds(entry.known_at), _microseconds(known_at)
        reworded = number in self._lessons
        self._lessons.setdefault(number, entry)
        self._numbers.append(number)
        self._known.append(lesson)
        self._since.append(max(since, lesson))
        self._until.append(FOREVER)
        self._counts.append(entry.counts)
        self._words.append(entry.terms)
        self._texts.append(vector)
        self._situations.append(situation)
        versions = self._versions[number]
        # In this order texts follow one another.
        insort(versions, (max(since, lesson), reworded, since, entry.text, (*entry.terms,), row))
        for (*_, at), (following, *_) in pairwise(versions):
            self._until.rows[at] = following

    def _visible(self, as_of: datetime) -> tuple[Mask, Numbers]:
        """Return what is visible, as a mask of all rows and as rows.

        A tick asks several times of one moment.
        """
        moment = _microseconds(as_of)
        key = moment, len(self._numbers.rows)
        if self._view is None or self._view[0] != key:
            mask = (self._since.rows < moment) & (self._until.rows >= moment)
            rows = np.flatnonzero(mask)
            if len(rows) > WINDOW:
                known, numbers = self._known.rows[rows], self._numbers.rows[rows]
                oldest = np.partition(known, -WINDOW)[-WINDOW]
                newest, tied = known > oldest, np.flatnonzero(known == oldest)
                # Of those that were known at once the greater numbers stay.
                newest[tied[np.argsort(numbers[tied])[np.count_nonzero(newest) - WINDOW :]]] = True
                mask[rows[~newest]] = False
                rows = rows[newest]
            self._view = key, mask, rows
        return self._view[1:]


class Column:
    """Values, or rows of `width` values, that are added one by one and read all at once."""

    def __init__(self, dtype: type[Any], *width: int) -> None:
        self._room: NDArray[Any] = np.zeros((FIRST_ROOM, *width), dtype)
        self._count = 0

    def append(self, value: Any) -> None:
        """Add a row."""
        if self._count == len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
        self._room[self._count] = value
        self._count += 1

    @property
    def rows(self) -> NDArray[Any]:
        """All rows; a view, which later rows do not reach."""
        return self._room[: self._count]


class Postings:
    """Which words stand in which row, and how often: BM25 over what is visible alone.

    The sum over the words of a question that stand in a lesson of

        ln(1 + (N - df + 0.5) / (df + 0.5)) x tf / (tf + K1 (1 - B + B length / mean length))

    (Robertson's BM25 as Lucene has it; Kamphuis et al. 2020). N, df and the mean length are counted
    among the visible rows of each question anew: what comes later moves no score.

    The floor: a lesson shares at least WORDS words with the question, and these weigh at least
    SHARE of all that the question says (by the logarithm above). Two words that half of all lessons
    have are not enough beside three rare ones; two rare words are enough beside a common one; one
    word never is. Of 600 lessons of eight kinds of market about one in eight passes, as many as are
    of the kind.
    """

    def __init__(self) -> None:
        self._words: dict[str, tuple[Column, Column]] = {}
        self._lengths = Column(np.int64)

    def append(self, terms: Sequence[str]) -> None:
        """Add a row of these words."""
        row = len(self._lengths.rows)
        for term in dict.fromkeys(terms):
            rows, counts = self._words.setdefault(term, (Column(np.int64), Column(np.int64)))
            rows.append(row)
            counts.append(terms.count(term))
        self._lengths.append(len(terms))

    def answers(self, terms: Collection[str], visible: Mask) -> tuple[Scores, Mask]:
        """Return the score of every row, and whether it passes the floor.

        It is 0 and no for those that are not visible.
        """
        scores, shared = np.zeros((2, len(visible)))
        words = np.zeros(len(visible), np.int64)
        lengths, count = self._lengths.rows, int(np.count_nonzero(visible))
        total, mean = 0.0, float(lengths[visible].sum()) / count if count else 1.0
        nowhere = Column(np.int64), Column(np.int64)
        for term in sorted(set(terms)):
            rows, counts = (column.rows for column in self._words.get(term, nowhere))
            chosen = visible[rows]
            rows, counts = rows[chosen], counts[chosen]
            weight = math.log(1.0 + (count - len(rows) + 0.5) / (len(rows) + 0.5))
            total += weight
            shared[rows] += weight
            words[rows] += 1
            saturation = K1 * (1.0 - B + B * lengths[rows] / mean)
            scores[rows] += weight * (counts / (counts + saturation))
        return scores, (words >= WORDS) & (shared >= SHARE * total - ROUNDING)


class Directions(Column):
    """Vectors of one width, of which only the direction counts: their cosines are exact.

    A sum of products depends in its last bits on the order in which a BLAS adds, and so on threads
    and on how many rows there are. Each vector is therefore turned into whole numbers on a grid:
    products and sums of those are exact in single precision, in any order. A cosine is then one
    division.
    """

    def __init__(self, width: int) -> None:
        super().__init__(np.float32, width)
        self._width = width
        self._lengths = Column(np.float64)

    def point(self, vector: Sequence[float] | None) -> NDArray[np.float32]:
        """Return a vector as whole numbers, about GRID long; zeros where it has no direction.

        Raises ValueError for one of another width.
        """
        values = [0.0] * self._width if vector is None else [float(value) for value in vector]
        if len(values) != self._width:
            raise ValueError(f"a vector of {len(values)} numbers among those of {self._width}")
        length = math.hypot(*values)
        if not math.isfinite(length) or length == 0.0:
            return np.zeros(self._width, np.float32)
        return np.rint(np.array(values) / length * GRID).astype(np.float32)

    def append(self, value: NDArray[np.float32]) -> None:
        """Add a point."""
        super().append(value)
        self._lengths.append(_length(value))

    def cosines(self, vector: Sequence[float] | None, rows: Numbers) -> Scores:
        """Return the cosine of each row with a vector; 0 where one of both has no direction."""
        point = self.point(vector)
        first, end = (rows[0], rows[-1] + 1) if len(rows) else (0, 0)
        # Row by row: a product of a matrix wakes the threads of a BLAS, and where others work on
        # the same cores it waits for them, for milliseconds.
        products = np.vecdot(self.rows[first:end], point).astype(np.float64)
        lengths = self._lengths.rows[first:end] * _length(point)
        cosines: Scores = (products / np.maximum(lengths, 1.0))[rows - first]
        return cosines


def _length(point: NDArray[np.float32]) -> float:
    return math.sqrt(float(point @ point))


def _best_first(rounded: Numbers, numbers: Numbers, passing: Mask) -> Numbers:
    """Return the places of those that pass: the greatest score first, of equals the newest."""
    places = np.flatnonzero(passing)
    return places[np.lexsort((-numbers[places], -rounded[places]))]


def _rounded(scores: Scores) -> Numbers:
    """Return scores in units of the last decimal that counts."""
    return np.rint(scores * 10**DECIMALS).astype(np.int64)


def _floor(value: float) -> int:
    return round(value * 10**DECIMALS)


def _microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)

"""BM25 over what is visible alone: how well a lesson's words answer a question's.

The sum over the words of a question that stand in a lesson of

    ln(1 + (N - df + 0.5) / (df + 0.5)) x tf / (tf + K1 (1 - B + B length / mean length))

(Robertson's BM25 as Lucene has it; Kamphuis et al. 2020). N, df and the mean length are counted
among the visible rows of each question anew: what comes later moves no score.

The floor: a lesson shares at least WORDS words with the question, and these weigh at least SHARE of
all that the question says (by the logarithm above). Two words that half of all lessons have are
not enough beside three rare ones; two rare words are enough beside a common one; one word never is.
Of 600 lessons of eight kinds of market about one in eight passes, as many as are of the kind.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torra.lessons.columns import Column

K1: Final = 1.5
B: Final = 0.75
WORDS: Final = 2
SHARE: Final = 0.5
"""Least words of a question, and least share of its weight, that a lesson of its kind has."""

ROUNDING: Final = 1e-9
"""More than sums of a few weights can be off by: half is half in whatever order they are added."""


class Answers(NamedTuple):
    """For each row: the BM25 score, and whether it passes the floor."""

    scores: NDArray[np.float64]
    passing: NDArray[np.bool_]


class _Posting:
    """The rows in which a word stands, and how often."""

    def __init__(self) -> None:
        self.rows = Column(np.int64)
        self.counts = Column(np.int64)


class Postings:
    """Which words stand in which row."""

    def __init__(self) -> None:
        self._words: dict[str, _Posting] = {}
        self._lengths = Column(np.int64)

    def append(self, terms: Sequence[str]) -> None:
        """Add a row of these words."""
        row = len(self._lengths)
        for term in dict.fromkeys(terms):
            posting = self._words.setdefault(term, _Posting())
            posting.rows.append(row)
            posting.counts.append(terms.count(term))
        self._lengths.append(len(terms))

    def answers(self, terms: Collection[str], visible: NDArray[np.bool_]) -> Answers:
        """Return how every row answers a question; 0 and no for those that are not visible."""
        scores, shared = np.zeros(len(visible)), np.zeros(len(visible))
        words = np.zeros(len(visible), np.int64)
        total, mean = 0.0, self._mean_length(visible)
        rows_in_all = int(np.count_nonzero(visible))
        for term in sorted(set(terms)):
            rows, counts = self._of(term, visible)
            weight = math.log(1.0 + (rows_in_all - len(rows) + 0.5) / (len(rows) + 0.5))
            total += weight
            shared[rows] += weight
            words[rows] += 1
            saturation = K1 * (1.0 - B + B * self._lengths.rows[rows] / mean)
            scores[rows] += weight * (counts / (counts + saturation))
        return Answers(scores, (words >= WORDS) & (shared >= SHARE * total - ROUNDING))

    def _of(
        self, term: str, visible: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the visible rows in which a word stands, and how often it does."""
        posting = self._words.get(term)
        if posting is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        seen = visible[posting.rows.rows]
        return posting.rows.rows[seen], posting.counts.rows[seen]

    def _mean_length(self, visible: NDArray[np.bool_]) -> float:
        lengths = self._lengths.rows[visible]
        return float(lengths.sum()) / len(lengths) if len(lengths) else 1.0

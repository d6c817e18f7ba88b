"""What a tick is told of earlier trades: three numbers, and at most three notes.

`LessonRetriever` holds the lessons of a store in memory, by asset class, and answers one question a
tick. It looks at what was known before `as_of` alone (torra.lessons.ranking), so the same question
has the same answer at any later time. The numbers come from the situations of closed trades and
from nothing that anybody wrote:

    similar    n of the NEAREST trades whose situation is like this one
    win_share  (wins + 2) / (n + 4)                      Beta(2, 2): a few trades say little
    mean_r     mean R x n / (n + 10)                     pulled towards 0 likewise

Below LEAST similar trades the last two are None. Words rank notes only. Without a lesson nothing is
told at all: no number, no note, not a byte of a prompt.

A shelf that fails tells the newest lessons of the symbol, or none, with a flag; a tick never fails
for it. Any thread may ask.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from math import fsum
from typing import Any, Final

from torra.lessons.content_words import content_words
from torra.lessons.lesson import Fresh, Lesson, LessonFacts, LessonText, Situation
from torra.lessons.ranking import Embed, IndexedLesson, LessonIndex, Query, Ranked
from torra.lessons.reviews import AUTHOR, ONE
from torra.verdict.risk_engine import PositionSide

log = logging.getLogger("torra")

NEAREST: Final = 20
"""Trades whose situations are compared with that of now."""

LEAST: Final = 5
"""Similar trades from which on a share of wins and a mean are told."""

PRIOR_WINS: Final = 2
PRIOR_TRADES: Final = 4
"""Beta(2, 2), as wins and trades that are counted before the first."""

PRIOR_R: Final = 10
"""Trades of 0 R that a mean is weighed against."""

SECONDS: Final = 0.020
"""A recall that took longer is not told: the tick has other work."""

NOTE_BYTES: Final = 180
"""Longest note (scoring_rubric.LESSON_BYTES)."""

LATE: Final = "memory:late"
BROKEN: Final = "memory:newest"
"""Flags: a recall that took too long, and one that failed: the newest lessons stand in."""

DAY: Final = timedelta(days=1)
HOUR: Final = timedelta(hours=1)
Numbers = Mapping[str, float | str | None]


@dataclass(frozen=True, slots=True)
class LessonQuery:
    """The question of a tick: which market, seen from which side, known until when.

    `notes` is how many lessons may be told in words.
    """

    symbol: str
    asset: str
    side: PositionSide
    situation: Situation
    as_of: datetime
    notes: int


@dataclass(frozen=True, slots=True)
class RetrievedLesson:
    """A lesson that is told: its number, the author of its words, its score, and the text.

    `ranks` has its place in each of the rankings that it passed.
    """

    lesson: int
    author: str
    score: float
    ranks: Mapping[str, int]
    text: str


@dataclass(frozen=True, slots=True)
class RetrievedLessons:
    """What a tick was told: features by the part of the id after `lessons.`, and notes.

    `corpus` is how many lessons were looked at, `newest` the newest of them, `digest` a hash of
    which they were. `nearest` are the trades behind the numbers.
    """

    numbers: Numbers = field(default_factory=dict)
    notes: tuple[RetrievedLesson, ...] = ()
    corpus: int = 0
    newest: int | None = None
    digest: str = ""
    nearest: tuple[int, ...] = ()
    flags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is anything to put on record."""
        return bool(self.corpus or self.flags)

    @property
    def note_numbers(self) -> tuple[int, ...]:
        """The numbers of the lessons that were told in words, the best first."""
        return tuple(note.lesson for note in self.notes)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON: what was told, by number and never by its words."""
        return {
            "numbers": dict(self.numbers),
            "notes": [
                {name: getattr(note, name) for name in ("lesson", "author", "score", "ranks")}
                for note in self.notes
            ],
            "corpus": self.corpus,
            "newest": self.newest,
            "digest": self.digest,
            "nearest": [*self.nearest],
            "flags": [*self.flags],
        }


NOTHING: Final = RetrievedLessons()
"""What is told where there is no lesson."""

TOO_LATE: Final = RetrievedLessons(flags=(LATE,))

Recall = Callable[[LessonQuery], RetrievedLessons]

Fetch = Callable[[int, int], Fresh]
"""Gives what is newer than two row numbers (TickStore.lessons_since)."""


class LessonRetriever:
    """The lessons of a store, in memory."""

    def __init__(
        self,
        fresh: Fetch,
        embed: Embed,
        *,
        leave_out: Callable[[LessonFacts], bool] = lambda _facts: False,
        lap: Callable[[datetime], int] = lambda _moment: 0,
    ) -> None:
        """Begin empty; `fresh` gives what is new in the store.

        Lessons that `leave_out` names are never told: those of a warm-up. `lap` numbers the passes
        of a sample that comes again: a tick is told of lessons of its own pass alone.
        """
        self._fresh, self._embed = fresh, embed
        self._leave_out, self._lap = leave_out, lap
        self._lock = threading.Lock()
        self._read = (0, 0)
        self._lessons: dict[int, Lesson] = {}
        self._indexes: dict[tuple[str, int], LessonIndex] = {}

    def recall(self, question: LessonQuery) -> RetrievedLessons:
        """Return what a tick is told; TOO_LATE while the shelf is being filled."""
        if not self._lock.acquire(timeout=SECONDS):
            return TOO_LATE
        try:
            self._refresh()
            return self._recalled(question)
        except Exception:
            log.exception("lessons of %s could not be ranked", question.symbol)
            return self._stand_in(question)
        finally:
            self._lock.release()

    def fill(self) -> None:
        """Take in what is stored: thousands of lessons take a second. Never raises."""
        with self._lock:
            try:
                self._refresh()
            except Exception:
                log.exception("lessons could not be read; the next tick tries again")

    def _refresh(self) -> None:
        """Take in what is new in the store."""
        fresh = self._fresh(*self._read)
        # Before they are taken in: one that cannot be is not tried again at each tick.
        self._read = fresh.facts, fresh.words_number
        steps = [(lesson.number, partial(self._add, lesson)) for lesson in fresh.lessons]
        steps += [(number, partial(self._reword, number, words)) for number, words in fresh.words]
        for number, step in steps:
            try:
                step()
            except Exception:  # it is left out, and no other
                log.exception("lesson %s cannot be told", number)

    # --- what is held ---------------------------------------------------------------------------

    def _add(self, lesson: Lesson) -> None:
        facts = lesson.facts
        if self._leave_out(facts) or not lesson.words:
            return
        if self._lap(facts.bar_time) != self._lap(facts.known_at):
            return  # it was opened in a pass of a sample, of which this one knows nothing
        first, *later = lesson.words
        vector = None if facts.situation is None else facts.situation.vector(facts.side)
        counts, number = facts.kind == "trade", lesson.number
        index = self._index(facts.asset, facts.known_at)
        index.add(IndexedLesson(number, facts.known_at, *_indexed(facts, first), vector, counts))
        for words in later:
            index.reword(number, words.known_at, *_indexed(facts, words))
        self._lessons[number] = lesson  # last: one that cannot be ranked is not told at all

    def _reword(self, number: int, words: LessonText) -> None:
        if lesson := self._lessons.get(number):
            facts = lesson.facts
            self._lessons[number] = Lesson(number, facts, (*lesson.words, words))
            index = self._index(facts.asset, facts.known_at)
            index.reword(number, words.known_at, *_indexed(facts, words))

    def _index(self, asset: str, moment: datetime) -> LessonIndex:
        key = asset, self._lap(moment)
        if key not in self._indexes:
            self._indexes[key] = LessonIndex(self._embed)
        return self._indexes[key]

    # --- what is told ---------------------------------------------------------------------------

    def _recalled(self, question: LessonQuery) -> RetrievedLessons:
        index = self._index(question.asset, question.as_of)
        corpus = index.corpus(question.as_of)
        if not corpus.size:
            return NOTHING
        terms, vector = (
            question.situation.terms(question.side),
            question.situation.vector(question.side),
        )
        near = self._nearest(index, question, vector)
        trades = [self._lessons[number].facts for number in near]
        count, share, mean = len(trades), None, None
        if count >= LEAST:
            wins = sum(facts.outcome == "win" for facts in trades)
            share = round((wins + PRIOR_WINS) / (count + PRIOR_TRADES), 4)
            mean = round(fsum(facts.r for facts in trades) / (count + PRIOR_R), 4)
        numbers = {
            "side": question.side, "similar": float(count), "win_share": share, "mean_r": mean
        }  # fmt: skip
        query = Query(terms, " ".join(terms), vector)
        best = self._best(index, question, query) if question.notes else ()
        notes = self._notes(best, question.as_of, numbers)
        return RetrievedLessons(
            numbers, notes, corpus.size, corpus.newest, corpus.digest, tuple(near)
        )

    def _nearest(
        self, index: LessonIndex, question: LessonQuery, vector: Sequence[float]
    ) -> Sequence[int]:
        """Return the trades that the numbers are made of."""
        return [lesson.number for lesson in index.nearest(vector, question.as_of, NEAREST)]

    def _best(self, index: LessonIndex, question: LessonQuery, query: Query) -> Sequence[Ranked]:
        """Return the lessons that are told in words."""
        return index.rank(query, question.as_of, question.notes)

    def _notes(
        self, best: Sequence[Ranked], as_of: datetime, numbers: Numbers
    ) -> tuple[RetrievedLesson, ...]:
        """Return lessons with the words that were known of them."""
        notes = []
        for number, score, ranks in best:
            lesson = self._lessons[number]
            if words := lesson.words_at(as_of):
                text = note_text(lesson.facts, words, as_of, numbers)
                notes.append(RetrievedLesson(number, words.author, score, ranks, text))
        return tuple(notes)

    def _stand_in(self, query: LessonQuery) -> RetrievedLessons:
        """Return the newest lessons of the symbol that were known then, or none."""
        try:
            lap = self._lap(query.as_of)
            candidates = [
                (lesson.facts.known_at, number)
                for number, lesson in self._lessons.items()
                if lesson.facts.symbol == query.symbol
                and lesson.facts.known_at < query.as_of
                and self._lap(lesson.facts.known_at) == lap
            ]
            newest = sorted(candidates, reverse=True)[: query.notes]
            notes = self._notes([Ranked(number, 0.0, {}) for _, number in newest], query.as_of, {})
            return RetrievedLessons(notes=notes, corpus=len(candidates), flags=(BROKEN,))
        except Exception:
            log.exception("lessons of %s could not be told", query.symbol)
            return RetrievedLessons(flags=(BROKEN,))


def note_text(facts: LessonFacts, words: LessonText, as_of: datetime, numbers: Numbers) -> str:
    """Return a lesson as an agent is told it, in NOTE_BYTES at most.

    `numbers` are those that the tick was told beside it.
    """
    by_rules, vetoed = words.author == AUTHOR, facts.kind == "vetoed"
    whose = "vetoed" if vetoed else "rules" if by_rules else "review"
    age, market = as_of - facts.known_at, facts.situation
    ago = f"{age // DAY} days" if age >= 2 * DAY else f"{max(1, age // HOUR)} h"
    where = "" if market is None else f" {market.regime} {market.session}".rstrip()
    result = f"{facts.outcome} {facts.r:+.2f} R, {facts.evolution.lower()}"
    if vetoed:
        result = f"no trade: it would have made {facts.r:+.2f} R"
    head = f"({whose}, {ago} ago) {facts.side} {facts.symbol} {facts.timeframe}{where}, {result}"
    similar, share = numbers.get("similar"), numbers.get("win_share")
    support = "one trade, not a rule"
    if isinstance(similar, float) and isinstance(share, float):
        support = f"{wins_of(similar, share)} of {similar:.0f} similar won"
    text = words.rule or words.setup
    if by_rules:  # the support says so too
        text = text.removeprefix(ONE[facts.kind])
    room = NOTE_BYTES - len(f"{head}; ; {support}".encode())
    while text and len(text.encode()) > room:  # whole words alone
        text = text.rpartition(" ")[0]
    return "; ".join(part for part in (head, text.rstrip(". "), support) if part)


def wins_of(similar: float, share: float) -> int:
    """Return how many of so many similar trades won, by the share that was told."""
    return round(share * (similar + PRIOR_TRADES) - PRIOR_WINS)


def _indexed(facts: LessonFacts, words: LessonText) -> tuple[tuple[str, ...], str]:
    """Return the terms and the text of a lesson: its market's words, and what was written."""
    terms = () if facts.situation is None else facts.situation.terms(facts.side)
    content = content_words(words.text, (facts.symbol,))
    return (*terms, *content), " ".join((*terms, words.text))

"""Which lessons of earlier trades a tick was told of, with rank and reason, for its page.

The record holds numbers alone; the words come from the store, as they were told at that close. A
lesson that is not in the store any more says so. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from torra.clock import parse
from torra.exhibits import figures, lesson_words
from torra.exhibits.lesson_words import FactShown
from torra.lessons.lesson import Lesson
from torra.lessons.recall import BROKEN, LATE, LEAST, SECONDS, note_text, wins_of
from torra.tick.tick_record import LessonNote, LessonsRecord, TickRecord, Value

RANKED_BY: Final = {"words": "words", "text": "text", "situation": "market"}
"""By what a lesson is like the tick, by the name of the ranking."""

GONE: Final = "It is not in the store any more."

STATES: Final[Mapping[str, str]] = {
    LATE: f"Finding the lessons took longer than {1000 * SECONDS:.0f} ms, so this tick was told of "
    "none.",
    BROKEN: "The lessons could not be ranked. The newest of the symbol stood in for the best, and "
    "no number was told.",
}
"""What a flag of the record means."""

LONGEST: Final = 400


@dataclass(frozen=True, slots=True)
class NoteUsed:
    """A lesson that was told in words: its place, the words as told, and why it was found.

    `number` is 0 where the store does not have it; `author` says who wrote the words.
    """

    number: int
    headline: str
    text: str
    author: str
    why: str


@dataclass(frozen=True, slots=True)
class LessonsUsed:
    """What a tick was told of earlier trades."""

    brief: str
    states: tuple[str, ...]
    facts: tuple[FactShown, ...]
    notes: tuple[NoteUsed, ...]
    looked_at: str


def used(record: TickRecord, lessons: Iterable[Lesson]) -> LessonsUsed | None:
    """Return what a tick was told of lessons; None where its record has no such part.

    `lessons` are those of its notes, as far as the store has them.
    """
    told = record.lessons
    if told is None:
        return None
    known = {lesson.number: lesson for lesson in lessons}
    notes = tuple(_note(one, known.get(one.lesson or 0), record) for one in told.notes)
    return LessonsUsed(
        brief=_brief(told),
        states=tuple(STATES.get(flag, figures.sanitize(flag, 60)) for flag in told.flags),
        facts=tuple(_facts(told.numbers)),
        notes=notes,
        looked_at=_looked_at(told),
    )


def _brief(told: LessonsRecord) -> str:
    if LATE in told.flags:
        return "none, they came too late"
    similar = figures.number(told.numbers.get("similar"))
    notes = len(told.notes)
    parts = [f"{notes} {'note' if notes == 1 else 'notes'}"]
    if similar is not None:
        trades = "trade" if similar == 1 else "trades"
        parts.insert(0, f"{similar:.0f} similar {trades}")
    return ", ".join(parts)


def _facts(numbers: Mapping[str, Value]) -> Iterator[FactShown]:
    """Yield the numbers that were told, with the side from which the market was seen."""
    similar, share, mean = (
        figures.number(numbers.get(name)) for name in ("similar", "win_share", "mean_r")
    )
    if similar is None:
        return
    side = figures.mark(numbers.get("side"))
    yield FactShown("Seen from the side", side.text, side.tone)
    yield FactShown("Similar trades", figures.plain(similar, 0), term="Similar trades")
    if share is None or mean is None:
        yield FactShown("Won", f"not told below {LEAST} trades")
        return
    yield FactShown("Won", f"{wins_of(similar, share)} of {similar:.0f}")
    yield FactShown("Share that won, as told", f"{100 * share:.0f} %, pulled towards half")
    yield FactShown("Mean result, as told", f"{lesson_words.of_r(mean)}, pulled towards 0")


def _note(told: LessonNote, lesson: Lesson | None, record: TickRecord) -> NoteUsed:
    author = "the rules" if told.author == lesson_words.RULES else figures.sanitize(told.author, 80)
    if lesson is None:
        name = f"Lesson {told.lesson}" if told.lesson else figures.DASH
        return NoteUsed(0, name, GONE, author, _why(told))
    words = next((one for one in lesson.words[::-1] if one.author == told.author), None)
    numbers = record.lessons.numbers if record.lessons else {}
    # as the agents read it
    text = note_text(lesson.facts, words, parse(record.as_of), numbers) if words else GONE
    headline = lesson_words.headline(lesson.facts)
    return NoteUsed(lesson.number, headline, figures.sanitize(text, LONGEST), author, _why(told))


def _why(told: LessonNote) -> str:
    """Return in which rankings a note stood, and where."""
    ranks = [
        f"{RANKED_BY.get(name, figures.sanitize(name, 20))} (rank {rank:.0f})"
        for name, rank in told.ranks.items()
    ]
    if not ranks:
        return "the newest of its symbol, by no ranking"
    return f"like this tick by {' and '.join(ranks)}; score {figures.plain(told.score, 4)}"


def _looked_at(told: LessonsRecord) -> str:
    if not told.corpus:
        return ""
    lessons = "1 lesson was" if told.corpus == 1 else f"{told.corpus:,} lessons were"
    newest = f", the newest of them lesson {told.newest}" if told.newest else ""
    return f"{lessons} known at this close and looked at{newest}."

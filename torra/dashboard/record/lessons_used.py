"""Which lessons of earlier trades a tick was told of, for its page.

The record holds numbers alone; the words come from the store, as they were told at that close. A
lesson that is not in the store any more says so. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from torra.clock import parse
from torra.exhibits import figures, lesson_words
from torra.exhibits.lesson_words import FactShown
from torra.lessons.lesson import Lesson
from torra.lessons.recall import BROKEN, LATE, LEAST, SECONDS, note_text, wins_of
from torra.tick.tick_record import LessonNote, LessonsRecord, TickRecord

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


def brief(recalled: LessonsRecord) -> str:
    """Return how many similar trades and notes a tick was told of."""
    if LATE in recalled.flags:
        return "none, they came too late"
    similar, notes = figures.number(recalled.numbers.get("similar")), len(recalled.notes)
    trades = "" if similar is None else f"{similar:.0f} similar trade{'' if similar == 1 else 's'}"
    return ", ".join(filter(None, [trades, f"{notes} note{'' if notes == 1 else 's'}"]))


def facts(recalled: LessonsRecord) -> Iterator[FactShown]:
    """Yield the numbers that were told, with the side from which the market was seen."""
    similar, share, mean = (
        figures.number(recalled.numbers.get(name)) for name in ("similar", "win_share", "mean_r")
    )
    if similar is None:
        return
    side = figures.mark(recalled.numbers.get("side"))
    yield FactShown("Seen from the side", side.text, side.tone)
    yield FactShown("Similar trades", figures.plain(similar, 0), term="Similar trades")
    if share is None or mean is None:
        yield FactShown("Won", f"not told below {LEAST} trades")
        return
    yield FactShown("Won", f"{wins_of(similar, share)} of {similar:.0f}")
    yield FactShown("Share that won, as told", f"{100 * share:.0f} %, pulled towards half")
    yield FactShown("Mean result, as told", f"{lesson_words.of_r(mean)}, pulled towards 0")


def notes(
    record: TickRecord, lessons: Iterable[Lesson]
) -> list[tuple[LessonNote, Lesson | None, str]]:
    """Return each note with its lesson, None where the store has it no more, and its words.

    `lessons` are those of the notes, as far as the store has them.
    """
    stored, recalled = {lesson.number: lesson for lesson in lessons}, record.lessons
    if recalled is None:
        return []
    rows = []
    for note in recalled.notes:
        lesson = stored.get(note.lesson)
        texts = lesson.words[::-1] if lesson else ()
        words = next((text for text in texts if text.author == note.author), None)
        text = GONE
        if lesson and words:
            # as the agents read it
            text = note_text(lesson.facts, words, parse(record.as_of), recalled.numbers)
        rows.append((note, lesson, figures.sanitize(text, LONGEST)))
    return rows

"""Lessons in memory: those that an arm of a replay makes by itself.

It does what torra.store.lessons does, without a database: facts with the words of the rules, the
markets of openings, vetoed openings on their way. Nobody writes other words here, and nothing is
searched. Only the newest lessons are kept, as many as a tick may be told of, so a long replay needs
no more memory than a short one. A transaction that raises leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from torra.config import Profile
from torra.lessons.facts import PriceRange
from torra.lessons.lesson import Fresh, Kind, Lesson, LessonFacts, LessonText, Situation
from torra.store.trade.memory_signals import MemorySignals
from torra.verdict.vetoed import VetoedOpening

KEPT: Final = 5_000
"""Newest lessons that are kept: those of which a tick may be told."""

SITUATIONS: Final = 200
"""Markets of openings that are kept; those of openings that never came about go first."""

Ranges = Callable[[str, datetime, datetime], PriceRange | None]
"""Gives the range of an instance's bars that lie wholly between two moments."""


def no_ranges(instance: str, opened: datetime, closed: datetime) -> PriceRange | None:
    """Return None: no bar is known."""
    del instance, opened, closed
    return None


class MemoryLessons(MemorySignals):
    """Lessons of one instance, or of one desk, in memory."""

    def __init__(
        self, profiles: Mapping[str, Profile] | None = None, ranges: Ranges = no_ranges
    ) -> None:
        """Begin without a lesson; `ranges` knows the bars of the replay."""
        super().__init__(profiles)
        self._ranges = ranges
        self._situations: dict[str, Situation] = {}
        self._lessons: dict[int, Lesson] = {}
        self._learnt: dict[tuple[str, str], int] = {}
        self._newest_lesson = 0
        self._vetoed: dict[str, VetoedOpening] = {}
        self._stretches: dict[str, str] = {}

    # --- lessons --------------------------------------------------------------------------------

    def keep_situation(self, sid: str, situation: Situation) -> None:
        """Keep the market of an opening; the first one of an id stands."""
        if sid in self._situations:
            return
        self._put(self._situations, sid, situation)
        if len(self._situations) > SITUATIONS:
            self._drop(self._situations, next(iter(self._situations)))

    def situation(self, sid: str) -> Situation | None:
        """Return the market of an opening; None where none was kept."""
        return self._situations.get(sid)

    def write_lesson(self, facts: LessonFacts, words: LessonText) -> int | None:
        """Write a lesson and return its number; None where there is one of its trade already."""
        key = facts.sid, facts.kind
        if key in self._learnt:
            return None
        number, before = self._newest_lesson + 1, self._newest_lesson
        self._undoing(lambda: setattr(self, "_newest_lesson", before))
        self._newest_lesson = number
        self._put(self._lessons, number, Lesson(number, facts, (words,)))
        self._put(self._learnt, key, number)
        if len(self._lessons) > KEPT:
            oldest = self._lessons[next(iter(self._lessons))]
            self._drop(self._lessons, oldest.number)
            self._drop(self._learnt, (oldest.facts.sid, oldest.facts.kind))
        return number

    def note_lesson_uses(self, torra_key: str, numbers: Sequence[int]) -> None:
        """Drop which lessons a tick was told of."""

    def lesson(self, sid: str, kind: Kind = "trade") -> Lesson | None:
        """Return the lesson of an opening; None where there is none."""
        number = self._learnt.get((sid, kind))
        return None if number is None else self._lessons[number]

    def lessons_since(self, facts: int, words: int) -> Fresh:
        """Return what is newer than a lesson's number; no words come later here."""
        if facts == self._newest_lesson:
            return Fresh([], [], facts, words)
        fresh = [one for number, one in self._lessons.items() if number > facts]
        return Fresh(fresh, [], self._newest_lesson, self._newest_lesson)

    def price_range(self, instance: str, opened: datetime, closed: datetime) -> PriceRange | None:
        """Return the range of the bars that lie wholly between two moments; None without any."""
        return self._ranges(instance, opened, closed)

    # --- vetoed openings ------------------------------------------------------------------------

    def vetoed_openings(self, instance: str) -> list[VetoedOpening]:
        """Return the vetoed openings of an instance that have not ended, oldest first."""
        if not self._vetoed:
            return []
        found = (one for one in self._vetoed.values() if one.instance == instance)
        return sorted(found, key=lambda one: (one.decided_at, one.sid))

    def keep_vetoed(self, opening: VetoedOpening) -> None:
        """Keep a vetoed opening as it stands now."""
        self._put(self._vetoed, opening.sid, opening)

    def end_vetoed(self, sid: str) -> None:
        """Forget a vetoed opening that has ended: its lesson tells of it."""
        if sid in self._vetoed:
            self._drop(self._vetoed, sid)

    def veto_stretch(self, instance: str) -> str | None:
        """Return the side whose openings are being vetoed now, tick after tick; None for none."""
        return self._stretches.get(instance)

    def set_veto_stretch(self, instance: str, side: str | None) -> None:
        """Begin a stretch of vetoes of a side, or end the one that stands."""
        if side is not None:
            self._put(self._stretches, instance, side)
        elif instance in self._stretches:
            self._drop(self._stretches, instance)

    def _drop(self, table: dict[Any, Any], key: object) -> None:
        """Take an entry out of a table so that the transaction can put it back in its place."""
        before = dict(table)

        def put_back() -> None:
            table.clear()
            table.update(before)

        self._undoing(put_back)
        del table[key]

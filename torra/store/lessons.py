"""Lessons of closed trades: their facts, the words about them, and openings that were vetoed.

Facts and words only grow: neither is ever changed or taken away. A lesson's facts, and the words of
the rules, are written in the transaction that ends the trade, so there is one lesson for each end
and none without. The market at an opening is kept when it is decided (`keep_situation`), for its
end may come months later. The words can be searched (FTS5). `note_lesson_uses` says which ticks
were told of a lesson.

A vetoed opening is followed until its end in a table of its own, whose rows do change
(torra.tick.vetoed).

A part of instance_database.Database. A database that fails raises StoreUnavailable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from torra.clock import duration
from torra.lessons.facts import PriceRange
from torra.lessons.lesson import Fresh, Kind, Lesson, LessonFacts, LessonText, Situation
from torra.store.bars import NEWEST_REVISIONS
from torra.store.connection import Store, TickKey, stamp, to_json
from torra.verdict.vetoed import VetoedOpening

LISTED: Final = ("instance", "symbol", "asset", "side", "outcome", "kind", "timeframe")
"""Columns by which a list of lessons can be narrowed; `author` is one of the words."""

TERM: Final = re.compile(r"[^\W_]+")
"""A word of a search: what FTS5 could take for its own language is left out."""

UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError)
"""What a damaged row of JSON raises."""

MOST_TERMS: Final = 20
"""Words of a search that count."""

EVERY: Final = 2**62
"""A number that no row reaches."""

COLUMNS: Final = tuple(one.name for one in fields(LessonText))


class LessonStore(Store):
    """The tables of lessons."""

    # --- what is written ------------------------------------------------------------------------

    def keep_situation(self, sid: str, situation: Situation) -> None:
        """Keep the market of an opening; the first one of an id stands."""
        self.change(
            "INSERT INTO situations (sid, situation) VALUES (?, ?) ON CONFLICT (sid) DO NOTHING",
            sid, to_json(situation.as_dict()),
        )  # fmt: skip

    def situation(self, sid: str) -> Situation | None:
        """Return the market of an opening; None where none was kept."""
        row = self.row("SELECT situation FROM situations WHERE sid = ?", sid)
        try:
            return None if row is None else Situation.of(json.loads(row["situation"]))
        except UNREADABLE:
            return None  # a damaged row is no market, and no reason to keep a trade open

    def write_lesson(self, facts: LessonFacts, words: LessonText) -> int | None:
        """Write a lesson and return its number; None where there is one of its trade already.

        None too where the opening was decided on invented evidence, as in the demo. Joins the
        transaction that ends the trade.
        """
        key = TickKey(facts.instance, facts.timeframe, facts.bar_time).text
        with self.transaction():
            if self.row(
                "SELECT 1 AS found FROM lesson_facts WHERE sid = ? AND kind = ? UNION ALL "
                "SELECT 1 FROM journal WHERE torra_key = ? AND json_valid(record) "
                "AND json_extract(record, '$.invented') IS NOT NULL",
                facts.sid, facts.kind, key,
            ):  # fmt: skip
                return None
            values = {name: getattr(facts, name) for name in ("sid", *LISTED)}
            times = {name: stamp(getattr(facts, name)) for name in ("closed_at", "known_at")}
            row = {**values, **times, "r": facts.r, "facts": to_json(facts.as_dict())}
            number = self.add("lesson_facts", row)
            _add_words(self, number, words, facts)
            return number

    def note_lesson_uses(self, torra_key: str, numbers: Sequence[int]) -> None:
        """Note which lessons a tick was told of, the first ones first; joins its transaction."""
        for place, number in enumerate(numbers):
            row = {"lesson": number, "torra_key": torra_key, "place": place}
            self.add("lesson_uses", row)

    # --- what is read ---------------------------------------------------------------------------

    def lesson(self, sid: str, kind: Kind = "trade") -> Lesson | None:
        """Return the lesson of an opening; None where there is none."""
        numbers = self.column(
            "SELECT number FROM lesson_facts WHERE sid = ? AND kind = ?", sid, kind
        )
        return _lessons(self, numbers)[0] if numbers else None

    def lessons_since(self, facts: int, words: int) -> Fresh:
        """Return what is newer than two row numbers (0 for all)."""
        rows = self.rows("SELECT * FROM lesson_words WHERE number > ? ORDER BY number", words)
        newest = int(rows[-1]["number"]) if rows else words
        # Of facts those alone that these words are of, and no later words: a lesson that is written
        # between the two looks is whole at the next.
        fresh = {int(row["lesson"]) for row in rows if row["lesson"] > facts}
        lessons = _lessons(self, sorted(fresh), newest)
        return Fresh(
            lessons,
            [(int(row["lesson"]), _words(row)) for row in rows if row["lesson"] <= facts],
            lessons[-1].number if lessons else facts,
            newest,
        )

    def price_range(self, instance: str, opened: datetime, closed: datetime) -> PriceRange | None:
        """Return the range of the bars that lie wholly between two moments; None without any."""
        ranges: list[tuple[float, float]] = []
        timeframe = ""
        # One look for each timeframe: the key of the table leads from each to the next.
        sql = "SELECT min(timeframe) FROM bars WHERE instance = ? AND timeframe > ?"
        while timeframe := self.value(sql, instance, timeframe):
            ranges += self.tuples(
                "SELECT min(low), max(high) FROM "  # noqa: S608
                f"({NEWEST_REVISIONS}) HAVING min(low) IS NOT NULL",
                instance, timeframe, opened, closed - duration(timeframe),
            )  # fmt: skip
        if not ranges:
            return None
        lows, highs = zip(*ranges, strict=True)
        return PriceRange(min(lows), max(highs))

    # --- vetoed openings ------------------------------------------------------------------------

    def vetoed_openings(self, instance: str) -> list[VetoedOpening]:
        """Return the vetoed openings of an instance that have not ended, oldest first."""
        rows = self.tuples("SELECT told FROM vetoed_openings WHERE instance = ?", instance)
        openings = []
        for (text,) in rows:
            with suppress(*UNREADABLE):  # of a damaged row nothing is followed
                openings.append(VetoedOpening.of(json.loads(text)))
        return sorted(openings, key=lambda one: (one.decided_at, one.sid))

    def keep_vetoed(self, opening: VetoedOpening) -> None:
        """Keep a vetoed opening as it stands now."""
        text = to_json(opening.as_dict())
        row = {"sid": opening.sid, "instance": opening.instance, "told": text}
        self.upsert("vetoed_openings", row)

    def end_vetoed(self, sid: str) -> None:
        """Forget a vetoed opening that has ended: its lesson tells of it."""
        self.change("DELETE FROM vetoed_openings WHERE sid = ?", sid)

    def veto_stretch(self, instance: str) -> str | None:
        """Return the side whose openings are being vetoed now, tick after tick; None for none."""
        side = self.value("SELECT side FROM veto_stretches WHERE instance = ?", instance)
        return None if side is None else str(side)

    def set_veto_stretch(self, instance: str, side: str | None) -> None:
        """Begin a stretch of vetoes of a side, or end the one that stands."""
        if side is None:
            self.change("DELETE FROM veto_stretches WHERE instance = ?", instance)
        else:
            self.upsert("veto_stretches", {"instance": instance, "side": side})


def write_words(store: Store, number: int, words: LessonText) -> bool:
    """Add words to a lesson; False where that author wrote of it already."""
    with store.transaction():
        (lesson,) = lessons_by(store, [number])
        if any(one.author == words.author for one in lesson.words):
            return False
        _add_words(store, number, words, lesson.facts)
        return True


def lessons_by(store: Store, numbers: Collection[int]) -> list[Lesson]:
    """Return lessons by their numbers, in that order; unknown ones are left out."""
    return _lessons(store, sorted(numbers))


def lesson_list(
    store: Store,
    only: Mapping[str, str],
    *,
    search: str = "",
    before: int | None = None,
    limit: int,
) -> list[Lesson]:
    """Return lessons, newest first, with numbers below `before`.

    `only` has values of LISTED and `author` by name; `search` are words that must all stand in
    what was written or in what it is about.
    """
    tests, values = ["number < ?"], [EVERY if before is None else before]
    for name, value in only.items():
        if name == "author":
            tests.append(
                "EXISTS (SELECT 1 FROM lesson_words w WHERE w.lesson = f.number AND w.author = ?)"
            )
        elif name == "symbol":  # a broker's name has small letters in it
            tests.append("symbol = ? COLLATE NOCASE")
        elif name in LISTED:
            tests.append(f"{name} = ?")
        else:
            raise ValueError(f"lessons cannot be narrowed by {name}; use {', '.join(LISTED)}")
        values.append(value)  # type: ignore[arg-type]
    if search:
        terms = [f'"{term}"*' for term in TERM.findall(search)][:MOST_TERMS]
        if not terms:
            return []
        # Word by word: the rules may have written one of them and a model another.
        tests += [
            "number IN (SELECT w.lesson FROM lesson_search s JOIN lesson_words w "
            "ON w.number = s.rowid WHERE lesson_search MATCH ?)"
        ] * len(terms)
        values += terms  # type: ignore[arg-type]
    numbers = store.column(
        f"SELECT number FROM lesson_facts f WHERE {' AND '.join(tests)} "  # noqa: S608
        "ORDER BY number DESC LIMIT ?",
        *values, limit,
    )  # fmt: skip
    return _lessons(store, numbers)


def lesson_ticks(store: Store, number: int, limit: int = 100) -> list[str]:
    """Return the keys of the ticks that were told of a lesson, newest first."""
    return store.column(
        "SELECT torra_key FROM lesson_uses WHERE lesson = ? ORDER BY rowid DESC LIMIT ?",
        number, limit,
    )  # fmt: skip


def lesson_count(store: Store) -> int:
    """Return how many lessons there are."""
    # Numbered without a gap, and none is ever taken away.
    return int(store.tuples("SELECT coalesce(max(number), 0) FROM lesson_facts")[0][0])


def review_count(store: Store) -> int:
    """Return how often a model wrote of a lesson; the rules wrote once of each."""
    words = int(store.tuples("SELECT coalesce(max(number), 0) FROM lesson_words")[0][0])
    return words - lesson_count(store)


def about(facts: LessonFacts) -> str:
    """Return the words under which a lesson is found beside what was written of it."""
    situation = facts.situation
    words = (
        *(facts.symbol, facts.timeframe, facts.side, facts.outcome),
        *(facts.evolution, facts.kind, facts.reason),
    )
    if situation is None:
        return " ".join(words)
    return " ".join((*words, situation.regime, situation.session, *situation.triage))


def _words(row: Mapping[str, Any]) -> LessonText:
    values = {name: row[name] for name in COLUMNS}
    return LessonText.of({**values, "flags": json.loads(row["flags"])})


def _add_words(store: Store, number: int, words: LessonText, facts: LessonFacts) -> None:
    values = {"known_at": stamp(words.known_at), "flags": to_json([*words.flags])}
    row = {"lesson": number, **words.as_dict(), **values}
    place = store.add("lesson_words", row)
    entry = {"rowid": place, "words": words.text, "about": about(facts)}
    store.add("lesson_search", entry)


def _lessons(store: Store, numbers: Sequence[int], newest: int = EVERY) -> list[Lesson]:
    """Return lessons in the order of their numbers, with their words up to the newest of those."""
    rows = store.rows(
        "SELECT k.key AS place, f.number AS facts_number, facts, w.* FROM json_each(?) k "
        "JOIN lesson_facts f ON f.number = k.value "
        "LEFT JOIN lesson_words w ON w.lesson = f.number AND w.number <= ?",
        json.dumps(numbers), newest,
    )  # fmt: skip
    rows = sorted(rows, key=lambda row: (row["place"], row["number"] or 0))
    lessons = (list(group) for _, group in groupby(rows, itemgetter("facts_number")))
    return [
        Lesson(
            int(group[0]["facts_number"]),
            LessonFacts.of(json.loads(group[0]["facts"])),
            tuple(_words(row) for row in group if row["lesson"] is not None),
        )
        for group in lessons
    ]

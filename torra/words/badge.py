"""A value as people see it: the rows of words.csv, which pages, notices, commands and docs show.

A row has its table, the value as it is stored, and the words for it. A table without glyphs is of
meanings, or of meanings with an advice.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Final, NamedTuple

from agents.features import rows_of

_TABLES: Final[defaultdict[str, list[dict[str, str]]]] = defaultdict(list)
for _row in rows_of(Path(__file__).with_name("words.csv")):
    _TABLES[_row["table"]].append(_row)


class Badge(NamedTuple):
    """A glyph, a word and a tone for the colour; what it means, and what to do about it.

    Every glyph has a word beside it, so that colour only repeats what is already there.
    """

    glyph: str
    word: str
    tone: str
    meaning: str = ""
    advice: str = ""

    @property
    def text(self) -> str:
        """Glyph and word."""
        return f"{self.glyph} {self.word}"

    @property
    def ink(self) -> Badge:
        """The badge without a colour: beside money that alone has one, by its own sign."""
        return self._replace(tone="")


class Remedy(NamedTuple):
    """What is wrong, as a clause, and what to do about it, in sentences."""

    meaning: str
    advice: str = ""

    @property
    def text(self) -> str:
        """Both, in sentences."""
        return f"{capital(self.meaning)}. {self.advice}".rstrip()


def capital(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def badges(table: str) -> dict[str, Badge]:
    """Return the badges of a table by value."""
    return {row["value"]: Badge(*(row[part] for part in Badge._fields)) for row in _TABLES[table]}


def remedies(table: str) -> dict[str, Remedy]:
    """Return the meanings of a table with their advice, by value."""
    return {row["value"]: Remedy(row["meaning"], row["advice"]) for row in _TABLES[table]}


def texts(table: str) -> dict[str, str]:
    """Return the meanings of a table by value."""
    return {row["value"]: row["meaning"] for row in _TABLES[table]}

"""A value as people see it: the row of every table of words that pages show."""

from __future__ import annotations

from typing import NamedTuple


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

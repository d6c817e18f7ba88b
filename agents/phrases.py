"""How readings of the evidence are put into words: a half-sentence with one number, and its reason.

`phrases.csv` has a row for what one or several features together say. Only the bullish wording is
written down. The bearish one is its mirror, word by word (`mirror.csv`), so the mirrored market is
described in mirrored words. What is not clear is not said. The columns are the fields of `Phrase`;
`features` are the ids whose values are read, `number` is a key of `NUMBERS` and `about` one of
`ABOUT`. A `*` makes a row for each feature of a family, with its name for {name}.

Pure values and functions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from .features import FEATURES, UP, rows_of

_PAIRS: Final = {
    row["bullish"]: row["bearish"] for row in rows_of(Path(__file__).with_name("mirror.csv"))
}
_MIRROR: Final = _PAIRS | {bear: bull for bull, bear in _PAIRS.items()}
_LONG: Final = "|".join(rf"\b{text}\b" for text in _MIRROR if " " in text)
_WORD: Final = re.compile(rf"{_LONG}|[+−]?[A-Za-z]+")


@lru_cache(maxsize=512)  # the table's own halves, over and over
def mirrored(text: str) -> str:
    """Return the words for the other side: above for below, buyers for sellers."""
    return _WORD.sub(_swap, text)


def _swap(match: re.Match[str]) -> str:
    word = match[0]
    if word[:1].isupper() and word not in _MIRROR:  # the first of a sentence
        other = _MIRROR.get(word[:1].lower() + word[1:], word)
        return other[:1].upper() + other[1:]
    return _MIRROR.get(word, word)


class Phrase(BaseModel, frozen=True):
    """What features read, for the bullish side: a half-sentence with one number {n}, and why.

    `number` is a key of NUMBERS, `format` writes the number. `faded` and `faded_why` argue for
    lower prices from the same high value. `line` is the place, among the values, of the price that
    would end it, and `line_name` its name. `about` is a key of ABOUT; without it the phrase is
    about the first feature that is not the close. A number is not clear that lies less than `least`
    from its `middle` (`least_faded` where it is faded), that would be written as its middle, or
    that reaches `most`: no market has 1e6. `begun` describes a shape that no close has completed:
    its last value is 0.
    """

    half: str
    why: str
    number: str
    format: str
    faded: str = ""
    faded_why: str = ""
    middle: float = 0.0
    least: float = 0.0
    least_faded: float = 0.0
    most: float = 1e6
    about: str = ""
    line: int | None = None
    line_name: str = ""
    begun: str = ""

    def fits(self, values: tuple[float, ...], *, fades: bool = False) -> bool:
        """Return whether the number can be said: finite, not monstrous, and clear enough."""
        number = NUMBERS[self.number](*values)
        least = self.least_faded if fades and self.faded else self.least
        return abs(number) < self.most and abs(number - self.middle) >= max(
            least, _visible_from(self.format)
        )

    def words(
        self, values: tuple[float, ...], side: int, *, fades: bool = False
    ) -> tuple[str, str]:
        """Return the half-sentence for a side, and why it matters for the next bars.

        `fades`: the value itself leans the other way.
        """
        half, why = self.half, self.why
        if fades:
            half, why = self.faded, self.faded_why
        elif self.begun and not values[-1]:
            half = self.begun
        # A high value that is faded argues for lower prices: that is how it is written down.
        if (side == UP) is fades:
            half, why = mirrored(half), mirrored(why)
        return half.replace("{n}", self.format.format(NUMBERS[self.number](*values) + 0.0)), why


@lru_cache(maxsize=64)
def _visible_from(form: str) -> float:
    """Return the least number that a format does not write as 0."""
    decimals, per_cent = re.search(r"\.(\d)", form), "%}" in form
    places = (int(decimals[1]) if decimals else 0) + 2 * per_cent
    return 0.5 * 10.0**-places


def _in_atr(distance: float, atr: float) -> float:
    return distance / atr if atr > 0.0 else 0.0


def _outside(close: float, edge: float, other: float, atr: float) -> float:
    return _in_atr(max(close - max(edge, other), min(edge, other) - close, 0.0), atr)


def _stretch(close: float, low: float, mid: float, high: float) -> float:
    half = (high - low) / 2.0
    return abs(close - mid) / half if half > 0.0 else 0.0


NUMBERS: Final[Mapping[str, Callable[..., float]]] = {
    "1": lambda *_: 1.0,
    "2": lambda *_: 2.0,
    "3": lambda *_: 3.0,
    "itself": lambda value, *_: value,
    "second": lambda _, value: value,
    "size": lambda value, *_: abs(value),
    "size of second": lambda _, value: abs(value),
    "in ATR": lambda value, atr: _in_atr(abs(value), atr),
    "gap in ATR": lambda value, other, atr: _in_atr(abs(value - other), atr),
    "outside in ATR": _outside,
    "difference": lambda *values: abs(values[-2] - values[-1]),
    "difference in %": lambda value, other: 100.0 * abs(value - other),
    "larger of two": max,
    "larger share": lambda share, *_: max(share, 1.0 - share),
    "stretch": _stretch,
    "bars": lambda _low, _high, age: max(2.0, age + 1.0),
    "never": lambda *_: math.inf,
}
"""How the number of a half-sentence is made of the values read."""

ABOUT: Final[Mapping[str, Callable[..., int]]] = {
    "larger": lambda value, other, *_: 0 if value >= other else 1,
    "leader": lambda _, plus, minus: 1 if plus >= minus else 2,
    "band": lambda close, _low, mid, _high: 3 if close > mid else 1,
}
"""The place of the feature that a half-sentence is about."""


def _read() -> Iterator[tuple[tuple[str, ...], Phrase]]:
    for row in rows_of(Path(__file__).with_name("phrases.csv")):
        family, star, _ = row["features"].partition("*")
        phrase = Phrase.model_validate({name: cell for name, cell in row.items() if cell})
        if not star:
            yield tuple(row["features"].split()), phrase
            continue
        for feature, words in FEATURES.items():
            if feature.startswith(family):
                half = phrase.half.replace("{name}", words.name)
                yield (feature,), phrase.model_copy(update={"half": half})


PHRASES: Final[Mapping[tuple[str, ...], Phrase]] = dict(_read())
"""What can be said of readings, by the features that they read."""

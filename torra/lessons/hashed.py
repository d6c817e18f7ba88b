"""A text as 256 numbers: which words and which letters stand in it, without a table of words.

Each content word, and each three letters in a row of it, is counted in one of 256 places, which
its CRC-32 names, with a sign that it names too: what meets in a place by chance cancels out, where
counts without a sign would make any two long texts alike (feature hashing, Weinberger et al. 2009).
The same text gives the same numbers in every process and on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from torra.lessons.content_words import content_words

DIMENSIONS: Final = 256
LETTERS: Final = 3
SIGN_BIT: Final = 1 << 31
"""Of the 32 bits of a CRC; the lowest eight name the place."""


def hashed(text: str) -> tuple[float, ...]:
    """Return 256 numbers whose squares sum to 1; all are 0 for a text without a content word."""
    counts = [0] * DIMENSIONS
    for piece in _pieces(text):
        name = crc32(piece.encode())
        counts[name % DIMENSIONS] += -1 if name & SIGN_BIT else 1
    length = math.sqrt(sum(count * count for count in counts)) or 1.0
    return tuple(count / length for count in counts)


def _pieces(text: str) -> Iterator[str]:
    """Yield words and groups of letters; a space marks a word's ends and the word itself."""
    for word in content_words(text):
        yield f"  {word}"
        bounded = f" {word} "
        yield from (bounded[at : at + LETTERS] for at in range(len(bounded) - LETTERS + 1))

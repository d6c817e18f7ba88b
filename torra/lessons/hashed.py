"""A text as 256 numbers: which words and which letters stand in it, without a table of words.

Each content word, and each three letters in a row of it, is counted in one of 256 places, which
its CRC-32 names, with a sign that it names too: what meets in a place by chance cancels out, where
counts without a sign would make any two long texts alike (feature hashing, Weinberger et al. 2009).
The same text gives the same numbers in every process and on every machine.

A name of code, a word with an underscore, counts whole and NAME times: `mo_rsi_for` shares most of
its letters with `mo_rsi_against`, which says the opposite, and with other names its ending.
"""

from __future__ import annotations

import math
from typing import Final
from zlib import crc32

from torra.lessons.content_words import content_words

DIMENSIONS: Final = 256
LETTERS: Final = 3
NAME: Final = 12
"""How often a name of code counts: about as a word of its length does with its letters."""

SIGN_BIT: Final = 1 << 31
"""Of the 32 bits of a CRC; the lowest eight name the place."""


def hashed(text: str) -> tuple[float, ...]:
    """Return 256 numbers whose squares sum to 1; all are 0 for a text without a content word."""
    counts = [0] * DIMENSIONS
    for word in content_words(text):
        bounded, is_name = f" {word} ", "_" in word  # a space marks a word's ends
        pieces = [(bounded, NAME if is_name else 1)]
        if not is_name:
            pieces += [(bounded[at : at + LETTERS], 1) for at in range(len(word))]
        for piece, times in pieces:
            name = crc32(piece.encode())
            counts[name % DIMENSIONS] += -times if name & SIGN_BIT else times
    length = math.sqrt(sum(count * count for count in counts)) or 1.0
    return tuple(count / length for count in counts)

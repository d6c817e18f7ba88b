"""What of a model's own words a person may see.

Pure. A comment is dropped as a whole where it holds a figure in digits or in words, another market,
or a word of direction or advice (words.csv).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from torra.ask.reading import WORDS, request_of, symbols_of

MOST_WORDS: Final = 25
"""Words of a comment."""

LETTERS: Final = re.compile(r"[a-zA-Z ,.;:'’\"()\-–—?!/&%\n]*")
"""What a comment is written in: no digit of any script, and no script that no word list knows."""


def comment_of(text: object, symbols: Collection[str]) -> str:
    """Return a comment where it may be shown beside facts on canonical symbols; else ""."""
    if not isinstance(text, str) or not 0 < len(text.split()) <= MOST_WORDS:
        return ""
    if not LETTERS.fullmatch(text) or any(cue.search(text) for cue in WORDS["comment"].values()):
        return ""
    if request_of(text, ()):
        return ""
    named, _ = symbols_of(text)
    return "" if {*named} - {*symbols} else " ".join(text.split())

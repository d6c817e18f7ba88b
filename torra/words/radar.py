"""The codes of the radar, each with its word and meaning: radar.csv.

Page, command, notices and docs read these rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agents.features import rows_of


class CodeWords(NamedTuple):
    """A code in words: the word of a badge, and what it means as a clause."""

    word: str
    meaning: str


CODES: Final[Mapping[str, dict[str, CodeWords]]] = defaultdict(dict)
"""Every code by its table: the three buckets, failures, triggers of a fallback, facts."""

for _row in rows_of(Path(__file__).with_name("radar.csv")):
    CODES[_row["table"]][_row["code"]] = CodeWords(_row["word"], _row["meaning"])

BUCKET_WORDS: Final[Mapping[Literal["act", "exit_radar", "watch"], str]] = {
    "act": "Would open", "exit_radar": "Look at what is held", "watch": "Watch",
}  # fmt: skip
"""The heading of each bucket, in the order of a page."""


def words_of(code: str) -> CodeWords:
    """Return the words of a code of any table; KeyError for one that there is not."""
    return next(codes[code] for codes in CODES.values() if code in codes)

"""The codes of the radar, each with its word and meaning: radar.csv.

Page, command, notices and docs read these rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from agents.features import rows_of
from torra.words.badge import capital


class CodeWords(NamedTuple):
    """A code in words: the word of a badge, and what it means as a clause."""

    word: str
    meaning: str


def code_tables(path: Path) -> dict[str, dict[str, CodeWords]]:
    """Return the codes of a file with the columns table, code, word and meaning, by their table."""
    tables: dict[str, dict[str, CodeWords]] = {}
    for row in rows_of(path):
        words = CodeWords(row["word"], row["meaning"])
        tables.setdefault(row["table"], {})[row["code"]] = words
    return tables


CODES: Final = code_tables(Path(__file__).with_name("radar.csv"))
"""Every code by its table: the three buckets, failures, triggers of a fallback, facts."""

BUCKET_WORDS: Final[Mapping[Literal["act", "exit_radar", "watch"], str]] = {
    "act": "Would open", "exit_radar": "Look at what is held", "watch": "Watch",
}  # fmt: skip
"""The heading of each bucket, in the order of a page."""


def words_of(code: str) -> CodeWords:
    """Return the words of a code of any table; KeyError for one that there is not."""
    return next(codes[code] for codes in CODES.values() if code in codes)


def mode_sentence(run: Mapping[str, Any]) -> str:
    """Return by whom a run was made, and where another was wanted, why it is not by that."""
    by = {"ai": "Agents went over this scan.", "cached": "These rows are of an earlier scan."}
    sentence = by.get(run["mode"], "This scan is by the rules alone.")
    if not run["fallback_trigger"]:
        return sentence
    return (
        f"{capital(words_of(run['fallback_trigger']).word)}: {run['fallback_reason']}. {sentence}"
    )


def worth_sentence(worth: Mapping[str, Any]) -> str:
    """Return what demotions were worth: the mean move the way of the verdict within 24 bars."""
    first = "Demoted rows, 24 bars later, by the side that was demoted"
    if worth["low"] is None:
        return f"{first}: not measured yet ({worth['count']} of them are that old)."
    ends = f"{worth['low']:+.2f} to {worth['high']:+.2f}"
    return f"{first}: {worth['mean']:+.2f} ATR ({ends}), {worth['count']} rows."

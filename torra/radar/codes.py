"""The codes of the radar, each with its word and meaning: codes.csv, which page and docs show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agents.features import rows_of
from torra.radar.result import Bucket, RadarRow


class CodeWords(NamedTuple):
    """A code in words: the word of a badge, and what it means as a clause."""

    word: str
    meaning: str


_ROWS: Final = rows_of(Path(__file__).with_name("codes.csv"))

CODES: Final[Mapping[str, Mapping[str, CodeWords]]] = {
    table: {
        row["code"]: CodeWords(row["word"], row["meaning"])
        for row in _ROWS
        if row["table"] == table
    }
    for table in ("act", "watch", "exit_radar", "failed", "trigger", "fact")
}
"""Every code by its table: the three buckets, failures, triggers of a fallback, facts."""


def words_of(code: str) -> CodeWords:
    """Return the words of a code of any table; KeyError for one that there is not."""
    return next(codes[code] for codes in CODES.values() if code in codes)


def headline(buckets: Mapping[Bucket, Sequence[RadarRow]]) -> str:
    """Return in one clause what deserves a look; rows that move together count as one."""
    counts = (
        (_moves(buckets["act"]), "would open"),
        (_moves(row for row in buckets["watch"] if "NEAR_THRESHOLD" in row.codes), "near"),
        (
            _moves(row for row in buckets["exit_radar"] if "NEAR_STOP" in row.codes),
            "close to its stop",
        ),
    )
    parts = [f"{count} {word}" for count, word in counts if count]
    return f"Deserves a look now: {', '.join(parts)}" if parts else "Nothing deserves a look now"


def _moves(rows: Iterable[RadarRow]) -> int:
    return len({frozenset((row.stream, *row.moves_with)) for row in rows})

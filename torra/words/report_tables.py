"""What the tables of a replay ask, in a trader's words, and what the heads of their columns mean.

A table's own title and sentence are exact, and stand behind "How this is computed"; in front of
them stands the question of this module. A table that it does not know is another program's, and is
shown as that program wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from torra.words.badge import texts

QUESTIONS: Final = texts("report")
"""The question of each table, by its name."""

OPEN: Final = frozenset(("sweep",))
"""Tables that are the result itself, and stand unfolded."""

MEANT: Final = texts("column")
"""What a column's head means, where the head alone does not say it."""


def meant(columns: Iterable[str]) -> list[tuple[str, str]]:
    """Return the columns that want a word, each with it."""
    return [(name, MEANT[name]) for name in columns if name in MEANT]

"""What counts of a table's words, and what is merely the wording of whoever wrote them down."""

from __future__ import annotations

import pytest
import sqlite_utils

from torra.store.migrations import SchemaRow, compare, schema_rows

MADE = SchemaRow("table", "prices", "prices", "CREATE TABLE prices (at TEXT NOT NULL, usd REAL)")


SAME = (
    "CREATE TABLE prices (at TEXT NOT NULL, usd REAL)",
    'CREATE TABLE "prices" (at TEXT NOT NULL, [usd] REAL)',
    "CREATE TABLE `prices` (at  TEXT NOT NULL,\n usd\tREAL)",
)
OTHER = (
    "CREATE TABLE prices (at TEXT, usd REAL)",
    "CREATE TABLE prices (at TEXT NOT NULL, usd REAL, lots REAL)",
)


def refused(words: str) -> tuple[str, ...]:
    db = sqlite_utils.Database(memory=True)
    db.execute(words)
    found = compare(schema_rows(db), [MADE], [MADE]).refused
    db.close()
    return found


@pytest.mark.parametrize("words", SAME)
def test_quotes_and_spaces_are_no_change(words: str) -> None:
    assert refused(words) == ()


@pytest.mark.parametrize("words", OTHER)
def test_every_other_word_is_one(words: str) -> None:
    assert refused(words) == ("the table prices is not as Torra made it",)

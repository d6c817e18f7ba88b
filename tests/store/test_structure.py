"""What counts of a table's words, and what is merely the wording of whoever wrote them down."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlite_utils

from torra.store.migrations import SchemaRow, Structure, altered, compare, schema_rows

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


def compared(*more: str, without: str = "") -> Structure:
    """Compare a database of these statements with one that has a table and an index of ours."""
    index = SchemaRow("index", "prices_at", "prices", "CREATE INDEX prices_at ON prices (at)")
    made = [MADE, index, SchemaRow("table", "sentiment", "sentiment", "CREATE TABLE sentiment")]
    db = sqlite_utils.Database(memory=True)
    for row in (MADE, index):
        if row.name != without:
            db.execute(row.sql)
    for words in ("CREATE TABLE sentiment (theirs)", "CREATE TABLE mine (x)", *more):
        db.execute(words)
    found = compare(schema_rows(db), made, made)
    db.close()
    return found


def test_a_table_of_a_host_is_foreign_and_its_sentiment_table_may_be_its_own() -> None:
    assert compared() == ((), ("the table mine",))
    assert compared("CREATE VIEW seen AS SELECT 1", "CREATE INDEX theirs ON mine (x)") == (
        (), ("the table mine", "the view seen", "the index theirs on mine"),
    )  # fmt: skip


def test_what_is_gone_is_refused() -> None:
    assert compared(without="prices_at").refused == ("the index prices_at is gone",)


@pytest.mark.parametrize(
    ("on", "does", "is_refused"),
    [
        ("prices", "SELECT 1", True),
        ("PRICES", "SELECT 1", True),
        ("mine", "SELECT 1", False),
        ("mine", "DELETE FROM Prices", True),
        ("mine", "DELETE FROM sentiment", False),
        ("sentiment", "INSERT INTO mine VALUES (new.theirs)", False),
        ("sentiment", "INSERT INTO mine SELECT at FROM prices", True),
        ("sentiment", "UPDATE sentiment SET theirs = 1", True),
    ],
)
def test_a_foreign_trigger_may_touch_no_table_of_ours(on: str, does: str, is_refused: bool) -> None:
    found = compared(f"CREATE TRIGGER theirs AFTER INSERT ON {on} BEGIN {does}; END")
    touches = f"the trigger theirs on {on} is not Torra's and touches Torra's tables"
    assert found.refused == ((touches,) if is_refused else ())
    assert (f"the trigger theirs on {on}" in found.foreign) is not is_refused


def test_what_was_altered_is_told_with_how_much_more() -> None:
    path = Path("torra.db")
    one = "torra.db was altered: the table a is gone. It could change orders"
    assert altered(path, ["the table a is gone"]) == one
    two = altered(path, ["the table a is gone", "b", "c"])
    assert two == one.replace("gone.", "gone (and 2 more).")

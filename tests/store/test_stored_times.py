"""A time of a database that passes the look at a start can be read by whoever needs it later."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from torra.clock import iso, parse
from torra.store.stored_times import unreadable

TABLE = "CREATE TABLE desk_run (seen_at TEXT)"

WRITTEN = (
    "2021-11-30T20:00:00Z",
    "2020-02-29T14:59:59.083057Z",
    "2024-12-31T23:59:59.999999Z",
    "2000-01-08T08:19:37.000011Z",
)


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(TABLE)
        yield connection


def found(database: sqlite3.Connection, text: str) -> list[str]:
    database.execute("DELETE FROM desk_run")
    database.execute("INSERT INTO desk_run VALUES (?)", (text,))
    return list(unreadable(database, ["desk_run"]))


def turned(text: str) -> Iterator[str]:
    """Yield a text with each of its bits turned once, as far as it is a text then."""
    data = text.encode()
    for at in range(len(data)):
        for bit in range(7):
            yield (data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]).decode()


@pytest.mark.parametrize("text", WRITTEN)
def test_no_bit_that_turned_leaves_a_text_that_cannot_be_read(
    text: str, database: sqlite3.Connection
) -> None:
    assert iso(parse(text)) == text
    passed = [other for other in turned(text) if not found(database, other)]
    assert [iso(parse(other)) for other in passed] == passed
    assert len(passed) > 20, "a digit that turned into another one is a time"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("2021-11-31T20:00:00Z", id="short-month"),
        pytest.param("2021-02-29T20:00:00Z", id="no-leap-year"),
        pytest.param("2021-11-30T24:15:00Z", id="hour-24"),
        pytest.param("2021-11-30T20:15:60Z", id="second-60"),
        pytest.param("0000-11-30T20:00:00Z", id="year-0"),
        pytest.param("2021-11-30T20:00:00.08305 Z", id="space"),
        pytest.param("2021-11-30T20:00:00.08Z057Z", id="letter"),
        pytest.param("2021-11-30T20:00:00.Z", id="no-digit"),
        pytest.param("2021-11-30T20:00:00.083057", id="no-zone"),
        pytest.param("2021-11-30T20:00:00+00:00", id="another-form"),
        pytest.param("2021-11-30", id="day"),
    ],
)
def test_a_text_that_is_no_time_is_named(text: str, database: sqlite3.Connection) -> None:
    said = found(database, text)
    assert said == [f"desk_run.seen_at holds {text.encode()!r}, which is no time"]


def test_what_a_desk_writes_is_a_time(database: sqlite3.Connection) -> None:
    first = datetime(1, 1, 1, tzinfo=UTC)
    moments = [
        datetime.max.replace(tzinfo=UTC),
        *(first + timedelta(days=97 * n, seconds=86_399 * n, microseconds=n) for n in range(7_000)),
    ]
    rows = [(iso(moment),) for moment in moments]
    database.executemany("INSERT INTO desk_run VALUES (?)", [*rows, ("",), (None,)])
    assert not list(unreadable(database, ["desk_run"]))

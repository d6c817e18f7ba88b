"""Stores what people asked the desk, each question with its reading and its answer.

A session belongs to the person who began it: nobody else's name finds it. Old rows go with the
writing of a new one. Every failure raises StoreUnavailable and leaves no trace.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from torra.store.connection import RowDict, Store

MOST: Final = 5_000
"""Newest questions that are kept."""

HOUR: Final = timedelta(hours=1)
UNDER_WAY: Final = timedelta(minutes=1)
"""Real time within which answers by a model are counted, and within which one is given."""


def begin_question(store: Store, row: RowDict, keep_days: int) -> int:
    """Store a question and return its number; those older than `keep_days` or beyond MOST go.

    Needs person, session and reading (a JSON text). It has no answer yet.
    """
    with store.transaction():
        more = {"at": store.moment(), "document": "", "asked_model": 0}
        number = store.add("chats", {**row, **more})
        store.change(
            "DELETE FROM chats WHERE id <= ? OR at < ?",
            number - MOST, store.now() - timedelta(days=keep_days),
        )  # fmt: skip
    return number


def end_question(store: Store, number: int, document: str, *, asked_model: bool) -> None:
    """Store the answer to a question, a JSON text, and whether a model was asked."""
    sql = "UPDATE chats SET document = ?, asked_model = ? WHERE id = ?"
    store.change(sql, document, asked_model, number)


def reserve_model(store: Store, number: int, hourly: int, at_once: int) -> str:
    """Count a question as one that a model is asked about; else return why not.

    NO_ROOM: its person has had `hourly` within the hour. CROWDED: `at_once` of anybody, in any
    process, have no answer yet. One that got none within UNDER_WAY was killed, and is past.
    """
    now = store.now()
    with store.transaction():
        (of_person,) = store.column(
            "SELECT count(*) FROM chats WHERE asked_model AND at >= ? "
            "AND person = (SELECT person FROM chats WHERE id = ?)",
            now - HOUR, number,
        )  # fmt: skip
        (under_way,) = store.column(
            "SELECT count(*) FROM chats WHERE asked_model AND at >= ? AND document = ''",
            now - UNDER_WAY,
        )
        if of_person >= hourly:
            return "NO_ROOM"
        if under_way >= at_once:
            return "CROWDED"
        store.change("UPDATE chats SET asked_model = 1 WHERE id = ?", number)
    return ""


def questions(store: Store, person: str, session: str, limit: int = 20) -> list[RowDict]:
    """Return the newest questions of a person's session, newest first."""
    return store.rows(
        "SELECT * FROM chats WHERE person = ? AND session = ? ORDER BY id DESC LIMIT ?",
        person, session, limit,
    )  # fmt: skip

"""Stores what people asked the desk, each question with its reading and its answer.

A session belongs to the person who began it: nobody else's name finds it. Old rows go with the
writing of a new one. Every failure raises StoreUnavailable and leaves no trace.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from torra.store.connection import RowDict, Store

MOST: Final = 5_000
"""Newest questions that are kept."""


def add_question(store: Store, row: RowDict, keep_days: int) -> int:
    """Store a question and return its number; those older than `keep_days` or beyond MOST go.

    Needs person, session, reading and document (JSON texts), and asked_model (0 or 1).
    """
    with store.transaction():
        number = store.add("chats", {**row, "at": store.moment()})
        store.change(
            "DELETE FROM chats WHERE id <= ? OR at < ?",
            number - MOST, store.now() - timedelta(days=keep_days),
        )  # fmt: skip
    return number


def questions(store: Store, person: str, session: str, limit: int = 20) -> list[RowDict]:
    """Return the newest questions of a person's session, newest first."""
    return store.rows(
        "SELECT * FROM chats WHERE person = ? AND session = ? ORDER BY id DESC LIMIT ?",
        person, session, limit,
    )  # fmt: skip


def model_questions(store: Store, person: str, since: datetime) -> int:
    """Return how many questions of a person a model was asked about since a moment (real time)."""
    sql = "SELECT count(*) FROM chats WHERE person = ? AND at >= ? AND asked_model"
    return int(store.value(sql, person, since))

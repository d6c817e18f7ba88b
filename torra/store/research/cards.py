"""Stores the cards of the committee: the document of each, by what was asked of which evidence.

A document holds numbers and sentences of code, no words of a model. Every failure raises
StoreUnavailable and leaves no trace.
"""

from __future__ import annotations

from datetime import datetime

from torra.clock import iso
from torra.store.connection import RowDict, Store


def add_card(store: Store, row: RowDict) -> None:
    """Store a card; one of the same id gives way: a seat that had failed was asked again.

    Needs card_id, asked, instance, evidence_until and document (JSON text).
    """
    store.change(
        "INSERT OR REPLACE INTO cards (card_id, asked, symbol, evidence_until, at, document) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        row["card_id"], row["asked"], row["instance"], row["evidence_until"], store.moment(),
        row["document"],
    )  # fmt: skip


def card(store: Store, card_id: str) -> RowDict | None:
    """Return a card; None where there is none of that id."""
    return store.row("SELECT * FROM cards WHERE card_id = ?", card_id)


def card_of_asked(store: Store, asked: str) -> RowDict | None:
    """Return the newest card of what was asked; None where nobody asked it yet."""
    sql = "SELECT * FROM cards WHERE asked = ? ORDER BY id DESC LIMIT 1"
    return store.row(sql, asked)


def cards(store: Store, limit: int = 50) -> list[RowDict]:
    """Return the newest cards, newest first."""
    return store.rows("SELECT * FROM cards ORDER BY id DESC LIMIT ?", limit)


def cards_since(store: Store, instance: str, since: datetime, limit: int = 50) -> list[RowDict]:
    """Return the newest cards of an instance whose evidence ends after a moment, newest first."""
    return store.rows(
        "SELECT * FROM cards WHERE symbol = ? AND evidence_until > ? ORDER BY id DESC LIMIT ?",
        instance, iso(since), limit,
    )  # fmt: skip

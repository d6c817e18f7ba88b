"""Reads stored sentiment rows by their key, for a host's own file (torra.store.host_files)."""

from __future__ import annotations

from typing import Final

from torra.store.connection import RowDict, Store

FED: Final = (
    "timestamp", "timeframe", "price_action", "key_levels", "momentum", "structure", "ath",
    "composite", "consensus", "verdict", "source_type", "agent_deliberation", "torra_key",
)  # fmt: skip
"""Columns of a row besides its number: what a scorer's table has, and the two that Torra adds."""

KEY_END: Final = "}"
"""The character after the | that follows an instance's name in a torra_key."""


def sentiment_page(store: Store, instance: str, after: str, limit: int) -> list[RowDict]:
    """Return an instance's rows in the order of their keys, those above `after`.

    `after` is "" for the first page. The columns are FED.
    """
    return store.rows(
        f"SELECT {', '.join(FED)} FROM sentiment "  # noqa: S608 - names of ours
        "WHERE torra_key > ? AND torra_key < ? ORDER BY torra_key LIMIT ?",
        after or f"{instance}|", f"{instance}{KEY_END}", limit,
    )  # fmt: skip


def sentiment_row(store: Store, torra_key: str) -> RowDict | None:
    """Return the row of a tick, None when there is none."""
    return store.row(
        f"SELECT {', '.join(FED)} FROM sentiment WHERE torra_key = ?",  # noqa: S608
        torra_key,
    )

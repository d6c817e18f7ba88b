"""What a person wrote to a trade: a note of a few lines, and tags by which trades are found again.

Each trade has at most one note with its tags; whoever writes it names the revision that they saw,
so that two people do not overwrite each other. An empty note without tags is none. Nothing here
touches an order. A part of instance_database.Database.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from torra.store.connection import Store
from torra.store.trade.signals import RESULT_COLUMNS


class TradeNote(NamedTuple):
    """A person's note to a trade; `revision` counts its changes, 0 before the first."""

    note: str = ""
    tags: tuple[str, ...] = ()
    revision: int = 0
    actor: str = ""
    at: str = ""


def trade_note(store: Store, sid: str) -> TradeNote:
    """Return what is written to a trade; an empty note of revision 0 where nothing is."""
    return trade_notes(store, [sid]).get(sid, TradeNote())


def trade_notes(store: Store, sids: Collection[str]) -> Mapping[str, TradeNote]:
    """Return what is written to some trades, by their ids."""
    rows = store.tuples(
        "SELECT n.sid, n.note, n.tags, n.revision, n.actor, n.at "
        "FROM json_each(?) k JOIN trade_notes n ON n.sid = k.value",
        json.dumps([*sids]),
    )
    return {
        sid: TradeNote(note, tuple(tags.split()), revision, actor, at)
        for sid, note, tags, revision, actor, at in rows
    }


def write_trade_note(
    store: Store, sid: str, note: str, tags: Sequence[str], *, revision: int, actor: str
) -> bool:
    """Write the note and the tags of a trade, words without space; True when it was done.

    False when the stored revision is not `revision`: somebody wrote meanwhile. Joins the open
    transaction.
    """
    with store.transaction():
        if trade_note(store, sid).revision != revision:
            return False
        row = {"sid": sid, "note": note, "tags": " ".join(tags), "revision": revision + 1}
        store.upsert("trade_notes", {**row, "actor": actor, "at": store.moment()})
        store.change("DELETE FROM trade_tags WHERE sid = ?", sid)
        for tag in dict.fromkeys(tags):
            store.add("trade_tags", {"tag": tag, "sid": sid})
        return True


def tagged_results(store: Store) -> list[tuple[Any, ...]]:
    """Return each tag of each closed trade, and what that trade came to (RESULT_COLUMNS)."""
    return store.tuples(
        f"SELECT t.tag, {RESULT_COLUMNS} FROM trade_tags t "  # noqa: S608 - names of ours
        "CROSS JOIN signals s ON s.sid = t.sid WHERE s.kind = 'open' AND s.state = 'CLOSED'"
    )


def tag_names(store: Store) -> list[str]:
    """Return every tag that a trade has, in order."""
    # one look a tag: the index leads from each to the next
    sql = "SELECT min(tag) FROM trade_tags WHERE tag > ?"
    tags: list[str] = []
    while tag := store.value(sql, tags[-1] if tags else ""):
        tags.append(str(tag))
    return tags

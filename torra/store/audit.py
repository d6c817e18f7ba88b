"""The audit log: what people did to the desk, append-only, each entry sealed to the one before it.

An entry says who did what to which thing, from where and with what outcome, and what the thing was
before and after. Its hash covers all of that and the hash of the entry before. So a line that was
changed or taken out breaks the chain, and `broken_entry` finds it. The schema refuses updates,
deletions and replacements. The hash has no key: who can write the file can also rewrite the newest
entries with hashes that fit. Callers pass settings and ids: no secret belongs in here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from torra.store.connection import RowDict, Store, to_json

SEALED: Final = (
    "seq", "at", "actor", "address", "action", "target", "outcome", "before", "after", "previous",
)  # fmt: skip
"""Columns that the hash of an entry covers, in this order."""

PAGE: Final = 500
"""Entries that are in memory at a time while all are read."""

PROVES: Final = "no entry before the newest was changed, added or taken out alone"
"""What a whole chain shows."""

PROVES_NOT: Final = (
    "It cannot show that somebody who may write the file cut the newest entries off, or wrote an "
    "entry and all after it anew with hashes that fit: an export kept elsewhere (/audit.csv, torra "
    "audit --json) has the hash that the newest entry had then"
)

ENDS_OF_TOKENS: Final = ("new tokens", "token taken back")
"""Actions of `torra token` that end tokens: all of them, and those of the target's name."""

NEVER: Final = 1 << 62
"""A number that no entry reaches."""


@dataclass(frozen=True, slots=True)
class Break:
    """Where the chain is broken: the number of an entry, and why it cannot be trusted."""

    seq: int
    why: str


class AuditStore(Store):
    """The audit log."""

    def audit(
        self,
        *,
        actor: str,
        action: str,
        target: str = "",
        outcome: str = "done",
        address: str = "",
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> int:
        """Append an entry and return its number; part of a transaction that is open."""
        with self.transaction():
            last = self.row("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
            row: RowDict = {
                # Numbered here and not by SQLite: the number is under the hash, and a gap shows a
                # deletion.
                "seq": last["seq"] + 1 if last else 1,
                "at": self.moment(),
                "actor": actor,
                "address": address,
                "action": action,
                "target": target,
                "outcome": outcome,
                "before": to_json(before or {}),
                "after": to_json(after or {}),
                "previous": last["hash"] if last else "",
            }
            return self.add("audit", {**row, "hash": seal(row)})


def audit_entries(
    store: Store, *, before: int | None = None, limit: int = 100, action: str = "", actor: str = ""
) -> list[RowDict]:
    """Return entries, newest first; `before` is the number above the first of them.

    Only those of an action or an actor where one is given.
    """
    filters = {"action": action, "actor": actor}
    named = {name: value for name, value in filters.items() if value}
    chosen = "".join(f" AND {name} = ?" for name in named)
    return store.rows(
        f"SELECT * FROM audit WHERE seq < ?{chosen} ORDER BY seq DESC LIMIT ?",  # noqa: S608 - names of ours
        # `before` comes from an address; SQLite refuses a number of more than 64 bits.
        NEVER if before is None else min(max(before, 0), NEVER),
        *named.values(),
        limit,
    )


def audit_page(
    store: Store, *, before: int | None = None, limit: int = 100, action: str = "", actor: str = ""
) -> dict[str, Any]:
    """Return `entries` as `audit_entries` does, with their values before and after read.

    `next` is what to name as `before` then, None on the last page. `broken` is the first break of
    the chain within them; None where it holds, and where the filter leaves links out. What somebody
    broke stays the text that it is.
    """
    # One more than is wanted, to know whether there are older ones.
    rows = audit_entries(store, before=before, limit=limit + 1, action=action, actor=actor)
    more, rows, broken = len(rows) > limit, rows[:limit], None
    if rows and not (action or actor):
        # The entry before the oldest is not at hand: the hash that the oldest claims stands for it.
        last = {"seq": rows[-1]["seq"] - 1, "hash": rows[-1]["previous"]}
        broken = first_break(rows[::-1], last)
    for row in rows:
        for side in ("before", "after"):
            with suppress(ValueError):
                row[side] = json.loads(row[side])
    return {
        "entries": rows,
        "next": rows[-1]["seq"] if more else None,
        "broken": asdict(broken) if broken else None,
    }


def has_asker(store: Store, job: int) -> bool:
    """Return whether a job has an asker whose token still is what it was when they asked.

    The command line needs no token, and a job that the desk asked for by itself has no entry. By
    the order of entries and not by their times: a clock may have been put back.
    """
    askers = store.rows(
        "SELECT seq, actor FROM audit WHERE action = 'job' AND json_extract(after, '$.job') = ?",
        job,
    )
    ends = store.rows("SELECT seq, target FROM audit WHERE action IN (?, ?)", *ENDS_OF_TOKENS)
    return not askers or any(
        not kind or all(
            end["seq"] < asker["seq"] or end["target"].casefold() not in ("", name.casefold())
            for end in ends
        )
        for asker in askers
        for name, kind, _ in [asker["actor"].partition(":")]
    )  # fmt: skip


def every_audit_entry(store: Store, page: int = PAGE) -> Iterator[list[RowDict]]:
    """Yield all entries, oldest first, a page at a time; entries written meanwhile come too."""
    last = 0
    sql = "SELECT * FROM audit WHERE seq > ? ORDER BY seq LIMIT ?"
    while rows := store.rows(sql, last, page):
        last = rows[-1]["seq"]
        yield rows


def broken_entry(store: Store, page: int = PAGE) -> Break | None:
    """Return the first entry whose chain is broken, None when it holds from first to last.

    What that proves, and what it cannot, is PROVES and PROVES_NOT.
    """
    last: Mapping[str, Any] = {"seq": 0, "hash": ""}
    for rows in every_audit_entry(store, page):
        broken = first_break(rows, last)
        if broken:
            return broken
        last = rows[-1]
    return None


def first_break(rows: Sequence[Mapping[str, Any]], last: Mapping[str, Any]) -> Break | None:
    """Return the first broken entry among entries that follow `last`, oldest first."""
    for row in rows:
        if row["seq"] != last["seq"] + 1:
            return Break(row["seq"], f"entry {last['seq'] + 1} is missing before it")
        # Before the link: a changed entry is named itself, and not the one after it.
        if row["hash"] != seal(row):
            return Break(row["seq"], "it was changed: its hash is another")
        if row["previous"] != last["hash"]:
            return Break(row["seq"], "it does not follow the entry before it")
        last = row
    return None


def seal(row: Mapping[str, Any]) -> str:
    """Return the hash of an entry, given everything that it covers."""
    return hashlib.sha256(to_json([row[name] for name in SEALED]).encode()).hexdigest()

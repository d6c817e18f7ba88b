"""The log of what people did to the desk: append-only, each entry sealed to the one before it.

An entry says who did what to which thing, from where, with what outcome, and what it was before
and after. Its hash covers all of that and the hash of the entry before, so that a line which was
changed or taken out breaks the chain (`broken_entry`). The schema refuses updates and deletions.
No secret belongs in here: callers pass settings and ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from torra.store_connection import Store, to_json

SEALED: Final = (
    "seq", "at", "actor", "address", "action", "target", "outcome", "before", "after", "previous",
)  # fmt: skip
"""What the hash of an entry covers, in this order."""


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
            last = self._row("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
            row: dict[str, Any] = {
                "seq": last["seq"] + 1 if last else 1,
                "at": self._moment(),
                "actor": actor,
                "address": address,
                "action": action,
                "target": target,
                "outcome": outcome,
                "before": to_json(before or {}),
                "after": to_json(after or {}),
                "previous": last["hash"] if last else "",
            }
            return self._add("audit", {**row, "hash": seal(row)})

    def audit_entries(self, *, before: int | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Return entries, newest first; `before` is the number above the first of them."""
        return self._rows(
            "SELECT * FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT ?",
            (1 << 62) if before is None else before, limit,
        )  # fmt: skip


def seal(row: Mapping[str, Any]) -> str:
    """Return the hash of an entry, given everything that it covers."""
    return hashlib.sha256(to_json([row[name] for name in SEALED]).encode()).hexdigest()

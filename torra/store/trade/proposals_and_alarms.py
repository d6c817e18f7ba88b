"""Stores proposals that wait for a person, alarms, and the last known state of each bridge.

A proposal is no signal. It is written in the transaction of the tick that would have sent the
signal. The first decision about it ends it: the step is a compare-and-set, so a second click, an
expiry and an approval at the same moment have one winner. An alarm has a key; raising it again
while it stands changes nothing. What alarms and bridges tell is kept in 500 characters. Pages read
signals in bounded pieces, by columns that have an index. A database that fails raises
StoreUnavailable and keeps nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from torra.errors import MALFORMED, bounded
from torra.store.connection import Store, TickKey, stamp, to_json

WAITING: Final = "WAITING"
DECIDED: Final = ("APPROVED", "REJECTED", "EXPIRED", "DENIED")
"""States in which a proposal ends."""


DUE: Final = "state = 'WAITING' AND expires <= ?"
"""Which proposals have run out."""

WAITS: Final = "state = 'WAITING' AND expires > ?"
"""Which proposals can still be approved."""

FIRST: Final = 1 << 62
"""A number above that of every signal."""


class ExecutionStore(Store):
    """Proposals, alarms and bridges."""

    # --- proposals ------------------------------------------------------------------------------

    def propose(self, row: Mapping[str, Any]) -> bool:
        """Write a proposal; False when there is one under its id.

        Needs sid, torra_key, instance, symbol, timeframe, bar_time, verdict, action, drafts (plain
        JSON), price, atr, multiplier, created_at and expires.
        """
        with self.transaction():
            if self.proposal(row["sid"]):
                return False
            known = {
                name: stamp(value) if isinstance(value, datetime) else value
                for name, value in row.items()
            }
            known["drafts"] = to_json(known["drafts"])
            self._add("proposals", {**known, "state": WAITING, "reason": ""})
            return True

    def proposal(self, sid: str) -> dict[str, Any] | None:
        """Return one proposal; None when there is none of that id."""
        return self._row("SELECT * FROM proposals WHERE sid = ?", sid)

    def proposals(self, state: str | None = WAITING, limit: int = 100) -> list[dict[str, Any]]:
        """Return the proposals in a state, all with None, newest first."""
        where = "" if state is None else "WHERE state = ? "
        return self._rows(
            f"SELECT * FROM proposals {where}ORDER BY created_at DESC, sid LIMIT ?",  # noqa: S608
            *([] if state is None else [state]), limit,
        )  # fmt: skip

    def decided_proposals(self, limit: int = 20) -> list[dict[str, Any]]:
        """Return the newest proposals that have ended, newest expiry first."""
        rows = [
            row
            for state in DECIDED  # each by its index, so that no look at them reads them all
            for row in self._rows(
                "SELECT * FROM proposals WHERE state = ? ORDER BY expires DESC LIMIT ?",
                state, limit,
            )
        ]  # fmt: skip
        return sorted(rows, key=lambda row: (row["expires"], row["sid"]), reverse=True)[:limit]

    def decide_proposal(self, sid: str, state: str, reason: str) -> bool:
        """End a proposal that waits; False when it does not wait any more."""
        if state not in DECIDED:
            raise ValueError(f"a proposal ends {', '.join(DECIDED)}, not {state}")
        changed = self._change(
            "UPDATE proposals SET state = ?, reason = ?, decided_at = ? "
            "WHERE sid = ? AND state = 'WAITING'",
            state, bounded(reason), self._moment(), sid,
        )  # fmt: skip
        return bool(changed)

    def proposal_waits(self, key: TickKey, now: datetime) -> bool:
        """Return whether a proposal of an earlier tick of the stream still waits at a moment."""
        where = f"{WAITS} AND instance = ? AND timeframe = ? AND torra_key <> ?"
        return bool(
            self._count("proposals", where, stamp(now), key.instance, key.timeframe, key.text)
        )

    def close_waits(self, closes: str, now: datetime) -> bool:
        """Return whether a proposal waits at a moment that would close the position of an opening.

        One whose orders cannot be read closes nothing.
        """
        sql = f"SELECT drafts FROM proposals WHERE {WAITS}"  # noqa: S608
        return any(closes in _closed(row["drafts"]) for row in self._rows(sql, stamp(now)))

    def proposals_due(self, now: datetime) -> int:
        """Return how many proposals wait whose time has run out."""
        return self._count("proposals", DUE, stamp(now))

    def expire_proposals(self, now: datetime, reason: str) -> int:
        """End every proposal whose time has run out; return how many."""
        return self._change(
            f"UPDATE proposals SET state = 'EXPIRED', reason = ?, decided_at = ? WHERE {DUE}",  # noqa: S608
            reason, self._moment(), stamp(now),
        )  # fmt: skip

    # --- signals, a page at a time --------------------------------------------------------------

    def signal_page(
        self,
        *,
        before: int | None = None,
        state: str | None = None,
        instance: str | None = None,
        limit: int = 50,
    ) -> list[dict[str, Any]]:
        """Return signals, newest first, of one state and one instance where they are given.

        `before` is the number (seq) above the first of them.
        """
        asked = {"state": state, "instance": instance}
        wanted = {name: value for name, value in asked.items() if value is not None}
        where = "".join(f"{name} = ? AND " for name in wanted)
        return self._rows(
            f"SELECT * FROM signals WHERE {where}seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608
            *wanted.values(), FIRST if before is None else before, limit,
        )  # fmt: skip

    # --- alarms ---------------------------------------------------------------------------------

    def raise_alarm(self, key: str, kind: str, detail: str) -> bool:
        """Put an alarm on record; False while one of that key stands."""
        standing = "key = ? AND ended_at IS NULL"
        # As below: what stands for long is raised again and again, and a look needs no write lock.
        if self._count("alarms", standing, key):
            return False
        with self.transaction():
            if self._count("alarms", standing, key):
                return False
            told = {"key": key, "kind": kind, "detail": bounded(detail)}
            self._upsert("alarms", {**told, "at": self._moment(), "ended_at": None})
            return True

    def alarm(self, key: str) -> dict[str, Any] | None:
        """Return the newest alarm of a key, whether or not it stands; None when there was none."""
        return self._row("SELECT * FROM alarms WHERE key = ?", key)

    def end_alarm(self, key: str) -> bool:
        """End an alarm that stands; False when none does."""
        standing = "key = ? AND ended_at IS NULL"
        # As above: mostly there is none, and a look needs no write lock.
        if not self._count("alarms", standing, key):
            return False
        sql = f"UPDATE alarms SET ended_at = ? WHERE {standing}"  # noqa: S608
        return bool(self._change(sql, self._moment(), key))

    def end_alarms(self) -> int:
        """End every alarm that stands: a person has seen them."""
        return self._change("UPDATE alarms SET ended_at = ? WHERE ended_at IS NULL", self._moment())

    def alarms(self, *, standing: bool = True, limit: int = 100) -> list[dict[str, Any]]:
        """Return alarms (those that stand), newest first: key, kind, detail, at, ended_at."""
        where = "WHERE ended_at IS NULL " if standing else ""
        sql = f"SELECT * FROM alarms {where}ORDER BY at DESC, key LIMIT ?"  # noqa: S608
        return self._rows(sql, limit)

    # --- bridges --------------------------------------------------------------------------------

    def note_bridge(
        self,
        name: str,
        *,
        deny: str,
        detail: str,
        facts: Mapping[str, Any],
        reconciled_at: datetime | None = None,
    ) -> None:
        """Store the state of a bridge, for the pages and for `torra signals`.

        Without `reconciled_at` that of before stays.
        """
        row = {"name": name, "deny": deny, "detail": bounded(detail), "facts": to_json(facts)}
        told = {"reconciled_at": stamp(reconciled_at)} if reconciled_at else {}
        self._upsert("bridges", {**row, **told, "at": self._moment()})

    def bridges(self) -> list[dict[str, Any]]:
        """Return every bridge: name, deny, detail, facts (JSON text), at, reconciled_at."""
        return self._rows("SELECT * FROM bridges ORDER BY name")


def _closed(drafts: str) -> list[Any]:
    """Return which openings' positions the stored orders of a proposal would close."""
    try:
        return [one["closes"] for one in json.loads(drafts) if one["kind"] == "close"]
    except MALFORMED:
        return []

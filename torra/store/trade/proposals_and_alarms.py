"""Stores proposals that wait for a person, alarms, and the last known state of each bridge.

A proposal is no signal. It is written in the transaction of the tick that would have sent the
signal. The first decision about it ends it: the step is a compare-and-set, so a second click, an
expiry and an approval at the same moment have one winner. An alarm has a key; raising it again
while it stands changes nothing. What alarms and bridges tell is kept in 500 characters. Pages read
signals in bounded pieces, by columns that have an index. A database that fails raises
StoreUnavailable and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from torra.errors import bounded
from torra.store.connection import Store, TickKey, stamp, to_json
from torra.store.trade.rows import AlarmRow, BridgeRow, ProposalRow, SignalRow

WAITING: Final = "WAITING"
REFUSED: Final = ("REJECTED", "EXPIRED", "DENIED")
"""States in which a proposal ends without an order."""

DECIDED: Final = ("APPROVED", *REFUSED)
"""States in which a proposal ends."""


DUE: Final = "state = 'WAITING' AND expires <= ?"
"""Which proposals have run out."""

WAITS: Final = "state = 'WAITING' AND expires > ?"
"""Which proposals can still be approved."""

STANDING: Final = "SELECT 1 FROM alarms WHERE key = ? AND ended_at IS NULL"

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
            known = {**row, "drafts": to_json(row["drafts"]), "state": WAITING, "reason": ""}
            self.add("proposals", known)
            return True

    def proposal(self, sid: str) -> ProposalRow | None:
        """Return one proposal; None when there is none of that id."""
        return self.model(ProposalRow, "SELECT * FROM proposals WHERE sid = ?", sid)

    def proposals(self, state: str | None = WAITING, limit: int = 100) -> list[ProposalRow]:
        """Return the proposals in a state, all with None, newest first."""
        where = "" if state is None else "WHERE state = ? "
        return self.models(
            ProposalRow,
            f"SELECT * FROM proposals {where}ORDER BY created_at DESC, sid LIMIT ?",  # noqa: S608
            *([] if state is None else [state]), limit,
        )  # fmt: skip

    def proposal_waits(self, key: TickKey, now: datetime) -> bool:
        """Return whether a proposal of an earlier tick of the stream still waits at a moment."""
        return bool(
            self.value(
                f"SELECT 1 FROM proposals WHERE {WAITS} "  # noqa: S608
                "AND instance = ? AND timeframe = ? AND torra_key <> ? LIMIT 1",
                now, key.instance, key.timeframe, key.text,
            )
        )  # fmt: skip

    def close_waits(self, closes: str, now: datetime) -> bool:
        """Return whether a proposal waits at a moment that would close the position of an opening.

        One whose orders cannot be read closes nothing.
        """
        sql = f"SELECT drafts FROM proposals WHERE {WAITS}"  # noqa: S608
        rows = self.models(ProposalRow, sql, now)
        return any(
            draft.closes == closes for row in rows for draft in row.orders if draft.kind == "close"
        )

    # --- signals as they are shown --------------------------------------------------------------

    def order(self, sid: str) -> SignalRow | None:
        """Return a signal as it is shown; None when there is none of that id."""
        return self.model(SignalRow, "SELECT * FROM signals WHERE sid = ?", sid)

    # --- alarms ---------------------------------------------------------------------------------

    def raise_alarm(self, key: str, kind: str, detail: str) -> bool:
        """Put an alarm on record; False while one of that key stands."""
        # As below: what stands for long is raised again and again, and a look needs no write lock.
        if self.value(STANDING, key):
            return False
        with self.transaction():
            if self.value(STANDING, key):
                return False
            values = {"key": key, "kind": kind, "detail": bounded(detail)}
            self.upsert("alarms", {**values, "at": self.moment(), "ended_at": None})
            return True

    def end_alarm(self, key: str) -> bool:
        """End an alarm that stands; False when none does."""
        # As above: mostly there is none, and a look needs no write lock.
        if not self.value(STANDING, key):
            return False
        sql = "UPDATE alarms SET ended_at = ? WHERE key = ? AND ended_at IS NULL"
        return bool(self.change(sql, self.moment(), key))

    def alarms(self, *, standing: bool = True, limit: int = 100) -> list[AlarmRow]:
        """Return alarms (those that stand), newest first."""
        where = "WHERE ended_at IS NULL " if standing else ""
        sql = f"SELECT * FROM alarms {where}ORDER BY at DESC, key LIMIT ?"  # noqa: S608
        return self.models(AlarmRow, sql, limit)

    # --- bridges --------------------------------------------------------------------------------

    def bridges(self) -> list[BridgeRow]:
        """Return every bridge."""
        return self.models(BridgeRow, "SELECT * FROM bridges ORDER BY name")


def decide_proposal(store: Store, sid: str, state: str, reason: str) -> bool:
    """End a proposal that waits; False when it does not wait any more."""
    changed = store.change(
        "UPDATE proposals SET state = ?, reason = ?, decided_at = ? "
        "WHERE sid = ? AND state = 'WAITING'",
        state, bounded(reason), store.moment(), sid,
    )  # fmt: skip
    return bool(changed)


def expire_proposals(store: Store, now: datetime, reason: str) -> int:
    """End every proposal whose time has run out; return how many."""
    return store.change(
        f"UPDATE proposals SET state = 'EXPIRED', reason = ?, decided_at = ? WHERE {DUE}",  # noqa: S608
        reason, store.moment(), now,
    )  # fmt: skip


def end_alarms(store: Store) -> int:
    """End every alarm that stands: a person has seen them."""
    return store.change("UPDATE alarms SET ended_at = ? WHERE ended_at IS NULL", store.moment())


def note_bridge(
    store: Store,
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
    times = {"reconciled_at": stamp(reconciled_at)} if reconciled_at else {}
    store.upsert("bridges", {**row, **times, "at": store.moment()})


def decided_proposals(
    store: Store, limit: int = 20, states: Collection[str] = DECIDED
) -> list[ProposalRow]:
    """Return the newest proposals that have ended in some states, newest expiry first."""
    rows = [
        row
        for state in states  # each by its index, so that no look at them reads them all
        for row in store.models(
            ProposalRow,
            "SELECT * FROM proposals WHERE state = ? ORDER BY expires DESC LIMIT ?",
            state, limit,
        )
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row.expires, row.sid), reverse=True)[:limit]


def proposals_due(store: Store, now: datetime) -> int:
    """Return how many proposals wait whose time has run out."""
    return int(store.value(f"SELECT count(*) FROM proposals WHERE {DUE}", now))  # noqa: S608


def signal_page(
    store: Store,
    *,
    before: int | None = None,
    state: str | None = None,
    instance: str | None = None,
    limit: int = 50,
) -> list[SignalRow]:
    """Return signals, newest first, of one state and one instance where they are given.

    `before` is the number (seq) above the first of them.
    """
    filters = {"state": state, "instance": instance}
    wanted = {name: value for name, value in filters.items() if value is not None}
    where = "".join(f"{name} = ? AND " for name in wanted)
    return store.models(
        SignalRow,
        f"SELECT * FROM signals WHERE {where}seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608
        *wanted.values(), FIRST if before is None else before, limit,
    )  # fmt: skip


def alarm(store: Store, key: str) -> AlarmRow | None:
    """Return the newest alarm of a key, whether or not it stands; None when there was none."""
    return store.model(AlarmRow, "SELECT * FROM alarms WHERE key = ?", key)


def waiting(store: Store) -> list[str]:
    """Return the instance of every proposal that waits for a person."""
    return store.column("SELECT instance FROM proposals WHERE state = 'WAITING'")

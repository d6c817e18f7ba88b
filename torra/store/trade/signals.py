"""The outbox and what came of it: signals, positions, closed trades, latches, paper cursor.

A signal is written once under its id, in the transaction of the tick that decided it. It moves only
along torra.verdict.signal_states, and every step is on record. A position is not stored: it is an
opening that is not finished (torra.store.trade.positions), and the schema lets an instance have one
at a time. So the books cannot disagree with the signals.

A wrong step or a second opening raises ValueError and leaves everything as it was; a database that
fails raises StoreUnavailable. Sending is the bridges' part.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import sqlite_utils

from torra.clock import parse
from torra.config import Profile, SymbolSpec
from torra.errors import bounded
from torra.store.connection import RowDict, Store, stamp
from torra.store.trade.positions import PositionStore
from torra.store.trade.rows import SignalRow, SignalStep
from torra.verdict import order_seal
from torra.verdict.risk_engine import OPENS
from torra.verdict.signal_states import (
    EXECUTED,
    POSITION_STATES,
    SENT,
    UNDER_WAY,
    check_transition,
)

WRITTEN: Final = (
    "sid",
    "instance",
    "symbol",
    "timeframe",
    "bar_time",
    "kind",
    "side",
    "lots",
    "entry",
    "stop",
    "target",
    "atr",
    "decided_at",
    "expires",
    "state",
    "detail",
    "after",
    "closes",
    "bridge",
    "authority",
)
"""Columns that a signal is born with, beside its seal; `after` and `closes` name other signals by
id."""

LEARNED: Final = (
    "opened_at",
    "price",
    "ticket",
    "closed_at",
    "close_price",
    "profit",
    "r_multiple",
    "close_reason",
    "filled_lots",
    "deal",
    "misses",
    "missed_at",
    "broker_stop",
    "outcome",
    "evolution",
    "thesis",
)
"""Columns that later steps fill: those of the fill, then those of the end of the trade."""


BORN: Final = {"state": "PENDING", "detail": "", "bridge": "paper"}
"""What a signal is born with unless its row says otherwise."""

OPENINGS: Final = frozenset(POSITION_STATES)
"""States of an opening that is not finished."""

UNFINISHED: Final = (
    "SELECT * FROM signals INDEXED BY signals_one_opening WHERE kind = 'open' AND state IN "
    "('PENDING', 'PUBLISHED', 'CLAIMED', 'PLACED', 'UNKNOWN', 'FILLED', 'PARTIAL')"
)
"""In the words of that index (signals_one_opening in torra.store.schema)."""

WAITING_OPENINGS: Final = "SELECT * FROM signals WHERE state = 'WAITING' AND kind = 'open'"

CLOSED_OPENING: Final = "kind = 'open' AND state = 'CLOSED'"
"""A closed trade, in the words of the index signals_closed."""

CLOSED: Final = f"FROM signals INDEXED BY signals_closed WHERE {CLOSED_OPENING}"
"""Closed trades by when they were closed: that index has them in order, and no other signal."""

RESULT_COLUMNS: Final = (
    "closed_at, seq, instance, timeframe, bar_time, symbol, side, close_reason, bridge, profit, "
    "r_multiple"
)
"""What is read of many closed trades."""

CLOSED_FILTERS: Final = {
    "instance": "instance = ?",
    "side": "side = ?",
    "reason": "ifnull(close_reason, 'unknown') = ?",
    "begin": "closed_at >= ?",
    "end": "closed_at < ?",
    "tag": "EXISTS (SELECT 1 FROM trade_tags t WHERE t.tag = ? AND t.sid = signals.sid)",
}
"""What a list of closed trades can be narrowed to, each in SQL."""

BY_RESULT: Final = {"won": "profit > 0", "lost": "profit < 0"}


class SignalStore(Store, PositionStore):
    """Signals and positions of every instance."""

    # --- the outbox -----------------------------------------------------------------------------

    def enqueue_signal(self, row: Mapping[str, Any]) -> bool:
        """Write a signal, PENDING unless `state` says WAITING; False when its id is there already.

        Needs sid, instance, symbol, timeframe, bar_time, kind, side, lots, decided_at and authority
        (torra.verdict.order_seal), an opening also entry, stop and target; times are aware or ISO
        text. Raises ValueError for an unknown column or authority and for an opening while the
        instance has one.
        """
        known = newborn(row)
        with self.transaction():
            # The id comes from the decision: the same decision again writes nothing.
            if self.row("SELECT 1 AS found FROM signals WHERE sid = ?", known["sid"]):
                return False
            # The unique index decides, not a look beforehand: two writers cannot both pass it.
            self._one_opening(known["instance"], lambda: self.add("signals", known))
            self._note(known["sid"], None, known["state"], known["detail"])
            return True

    def move_signal(
        self, sid: str, state: str, *, detail: str = "", fields: Mapping[str, Any] | None = None
    ) -> bool:
        """Take a signal to another state, on record; False when it is in that state already.

        `fields` fill what the step taught (LEARNED). Raises ValueError for an unknown signal or
        column, for a step that torra.verdict.signal_states does not allow, and for a second
        opening.
        """
        learned, detail = columns(fields or {}, LEARNED), bounded(detail)
        with self.transaction():
            row = self.row("SELECT instance, state FROM signals WHERE sid = ?", sid)
            if row is None:
                raise ValueError(f"there is no signal {sid}")
            # A bridge may report the same end twice: that is no second step.
            if row["state"] == state:
                return False
            check_transition(row["state"], state)
            values = {"state": state, "detail": detail, **learned}
            names = ", ".join(f"{name} = ?" for name in values)
            sql = f"UPDATE signals SET {names} WHERE sid = ?"  # noqa: S608
            self._one_opening(row["instance"], lambda: self.change(sql, *values.values(), sid))
            self._note(sid, row["state"], state, detail)
            return True

    def signal(self, sid: str) -> RowDict | None:
        """Return one signal; None when there is none of that id."""
        return self.row("SELECT * FROM signals WHERE sid = ?", sid)

    def closes_of(self, instance: str, sid: str) -> list[RowDict]:
        """Return the closes of one position, and the openings that waited for its end."""
        sql = (
            "SELECT * FROM signals INDEXED BY signals_closes "
            "WHERE instance = ? AND closes = ? ORDER BY seq"
        )
        return self.rows(sql, instance, sid)

    def last_state(self, sid: str) -> str | None:
        """Return the state that a signal's last step on record led to; None without a step."""
        sql = "SELECT to_state FROM signal_events WHERE sid = ? ORDER BY id DESC LIMIT 1"
        state = self.value(sql, sid)
        return None if state is None else str(state)

    def signals(
        self, states: Sequence[str] | None = None, instance: str | None = None, limit: int = 100
    ) -> list[RowDict]:
        """Return signals by state and instance, newest first; times are ISO text."""
        wanted: dict[str, Sequence[str]] = {}
        if states is not None:
            wanted["state"] = tuple(states)
        if instance is not None:
            wanted["instance"] = (instance,)
        tests = [f"{name} IN ({_marks(values)})" for name, values in wanted.items()]
        where = f"WHERE {' AND '.join(tests)} " if tests else ""
        values = [value for some in wanted.values() for value in some]
        few = states is not None and OPENINGS.issuperset(states) and not set(states) & set(EXECUTED)
        # The + keeps SQLite from walking all signals by seq: it finds the few by state and sorts
        # them.
        order = "+seq" if few else "seq"  # of few, so none is looked for among all that ended
        sql = f"SELECT * FROM signals {where}ORDER BY {order} DESC LIMIT ?"  # noqa: S608
        return self.rows(sql, *values, limit)

    def note_signal(self, sid: str, detail: str) -> None:
        """Store the reason why a signal waits; its state stays what it is."""
        detail = bounded(detail)
        sql = "UPDATE signals SET detail = ? WHERE sid = ? AND detail <> ?"
        # The courier notes the same reason again and again: only a new one is worth a write.
        if self.value("SELECT 1 FROM signals WHERE sid = ? AND detail <> ?", sid, detail):
            self.change(sql, detail, sid, detail)

    def learn(self, sid: str, **fields: Any) -> None:
        """Fill columns of a signal (LEARNED) that are known now, without a step."""
        known = columns(fields, LEARNED)
        names = ", ".join(f"{name} = ?" for name in known)
        self.change(f"UPDATE signals SET {names} WHERE sid = ?", *known.values(), sid)  # noqa: S608

    def unsettled(self, instances: Sequence[str], *, ended_after: datetime) -> list[RowDict]:
        """Return the signals that reconciliation looks at, oldest first.

        These are the signals that were sent and are not finished. Those decided at `ended_after`
        or later are among them even if they ended, so that a late position is recognised.
        `changed_at` is the time of the last step.
        """
        if not instances:
            return []
        return self.rows(
            "SELECT s.*, (SELECT max(at) FROM signal_events e WHERE e.sid = s.sid) AS changed_at "  # noqa: S608
            f"FROM signals s WHERE s.instance IN ({_marks(instances)}) AND "
            f"(s.state IN ({_marks(SENT)}) OR s.decided_at >= ? "
            f"OR (s.kind = 'open' AND s.state IN ({_marks(EXECUTED)}))) ORDER BY s.seq",
            *instances, *SENT, ended_after, *EXECUTED,
        )  # fmt: skip

    # --- positions and trades -------------------------------------------------------------------

    def win_rates(self, instance: str, timeframe: str) -> dict[str, list[int]]:
        """Return [wins, trades] by side, as the newest replay found them; empty when none did."""
        rows = self.tuples(
            "SELECT side, wins, trades FROM win_rates WHERE instance = ? AND timeframe = ?",
            instance, timeframe,
        )  # fmt: skip
        return {side: counts for side, *counts in rows}

    # --- latches, paper -------------------------------------------------------------------------

    def latches(self, instance: str) -> frozenset[str]:
        """Return the sides on which a veto of openings is latched."""
        return frozenset(self.column("SELECT side FROM latches WHERE instance = ?", instance))

    def set_latch(self, instance: str, side: str, latched: bool = True) -> None:
        """Latch a veto, or clear it when `latched` is False."""
        if not latched:
            self.change("DELETE FROM latches WHERE instance = ? AND side = ?", instance, side)
        elif side not in self.latches(instance):
            self.add("latches", {"instance": instance, "side": side, "at": self.moment()})

    def paper_cursor(self, instance: str) -> datetime | None:
        """Return the bar time up to which the paper bridge has lived."""
        at = self.value("SELECT bar_time FROM paper_cursor WHERE instance = ?", instance)
        return parse(at) if at else None

    def set_paper_cursor(self, instance: str, bar_time: datetime) -> None:
        """Remember how far the paper bridge has come."""
        sql = "INSERT OR REPLACE INTO paper_cursor (instance, bar_time) VALUES (?, ?)"
        self.change(sql, instance, bar_time)

    # --- details --------------------------------------------------------------------------------

    def live_signals(
        self, states: Collection[str], instance: str | None, kind: str
    ) -> list[RowDict]:
        """Return the signals of a kind in one of the states, of one instance or of all."""
        if kind == "open" and OPENINGS.issuperset(states):
            return self._openings(states, instance)
        which = "" if instance is None else "AND instance = ?"
        return self.rows(
            f"SELECT * FROM signals WHERE state IN ({_marks(states)}) "  # noqa: S608
            f"AND kind = ? {which}",
            *states, kind, *([instance] if instance is not None else []),
        )  # fmt: skip

    def _openings(self, states: Collection[str], instance: str | None) -> list[RowDict]:
        """Return openings that are not finished, by the index of the one that there may be.

        An index by state would read every close that was ever filled.
        """
        # instance > '' holds for every row, and lets SQLite use the same index.
        which, name = ("instance > ?", "") if instance is None else ("instance = ?", instance)
        rows = self.rows(f"{UNFINISHED} AND {which}", name)
        if "WAITING" in states:
            rows += self.rows(f"{WAITING_OPENINGS} AND {which}", name)
        return [row for row in rows if row["state"] in states]

    def _closed_since(self, moment: str) -> list[RowDict]:
        rows = self.rows(
            f"SELECT * FROM signals WHERE {CLOSED_OPENING} AND closed_at >= ?",  # noqa: S608
            moment,
        )
        return sorted(rows, key=lambda row: (row["closed_at"], row["seq"]))

    def _sent_between(self, instance: str, after: str, upto: str) -> list[tuple[str, str]]:
        return self.tuples(
            "SELECT kind, side FROM signals WHERE instance = ? "
            "AND decided_at > ? AND decided_at <= ? AND authority <> 'person'",
            instance, after, upto,
        )  # fmt: skip

    def _last_losses(self, instance: str, before: str) -> dict[str, str]:
        sql = (
            f"SELECT closed_at FROM signals WHERE {CLOSED_OPENING} AND instance = ? AND side = ? "  # noqa: S608
            "AND profit < 0 AND closed_at < ? ORDER BY closed_at DESC LIMIT 1"
        )
        losses = {side: self.value(sql, instance, side, before) for side in OPENS}
        return {side: str(closed) for side, closed in losses.items() if closed is not None}

    def _spec(self, instance: str, symbol: str) -> SymbolSpec:
        sql = "SELECT profile FROM trading_config WHERE instance = ? ORDER BY id DESC LIMIT 1"
        return _profile(self.value(sql, instance)).symbol(symbol)

    def _one_opening(self, instance: str, write: Any) -> None:
        try:
            write()
        except sqlite3.IntegrityError as error:
            # SQLite names the columns of the unique index, here signals_one_opening.
            if "signals.instance" not in str(error):
                raise
            raise ValueError(f"{instance} has an opening or an open position already") from error

    def _note(self, sid: str, before: str | None, after: str, detail: str) -> None:
        row = {"sid": sid, "from_state": before, "to_state": after, "detail": detail}
        self.add("signal_events", {**row, "at": self.moment()})


def set_win_rate(
    store: Store, instance: str, timeframe: str, side: str, *, wins: int, trades: int, source: str
) -> None:
    """Keep what a replay found for the openings of one side; `source` names the replay."""
    key = {"instance": instance, "timeframe": timeframe, "side": side}
    values = {"wins": wins, "trades": trades, "source": source, "at": store.moment()}
    store.upsert("win_rates", {**key, **values})


def signal_events(store: Store, sid: str) -> list[SignalStep]:
    """Return every step of a signal, oldest first."""
    return store.models(
        SignalStep,
        "SELECT from_state, to_state, detail, at FROM signal_events WHERE sid = ? ORDER BY id",
        sid,
    )


def foreign_signals(store: SignalStore, routes: Mapping[str, str]) -> list[RowDict]:
    """Return unfinished signals whose bridge is not the one that their instance uses now.

    `routes` maps each instance of the desk to its bridge. Signals on paper of an instance that
    is gone harm nobody and are left out.
    """
    rows = [
        *store.live_signals((*EXECUTED, *UNDER_WAY, "WAITING"), None, "open"),
        *store.live_signals((*UNDER_WAY, "WAITING"), None, "close"),
        *store.live_signals(UNDER_WAY, None, "modify"),
    ]
    return [row for row in rows if routes.get(row["instance"], "paper") != row["bridge"]]


def closed_trades(
    store: Store, instance: str | None = None, limit: int = 100, *, as_of: datetime | None = None
) -> list[SignalRow]:
    """Return closed trades (of one instance), newest first, that were closed before `as_of`.

    The end of a trade at a bar's open is known when that bar has closed, hence before.
    """
    # "~" sorts after every time.
    known = "~" if as_of is None else stamp(as_of)
    which, values = ("", []) if instance is None else ("AND instance = ? ", [instance])
    return store.models(
        SignalRow,
        f"SELECT * FROM signals WHERE {CLOSED_OPENING} AND closed_at < ? {which}"  # noqa: S608
        "ORDER BY closed_at DESC, seq DESC LIMIT ?",
        known, *values, limit,
    )  # fmt: skip


def closed_results(store: Store, since: str = "") -> list[tuple[Any, ...]]:
    """Return what each trade came to that was closed at `since` (ISO) or later, oldest first.

    The columns are RESULT_COLUMNS, as stored.
    """
    sql = f"SELECT {RESULT_COLUMNS} {CLOSED} AND closed_at >= ? ORDER BY closed_at, seq"
    return store.tuples(sql, since)


def closed_between(store: Store, after: int, upto: int) -> list[tuple[Any, ...]]:
    """Return the same of each trade whose end was put on record by a step in (after, upto].

    Steps are numbers of signal_events; the trades come in no order.
    """
    return store.tuples(
        # CROSS: the steps first, of which there are few
        f"SELECT {RESULT_COLUMNS} FROM signal_events e CROSS JOIN signals s ON s.sid = e.sid "  # noqa: S608
        "WHERE e.id > ? AND e.id <= ? AND e.to_state = 'CLOSED' "
        "AND s.kind = 'open' AND s.state = 'CLOSED' AND s.closed_at >= ''",
        after, upto,
    )  # fmt: skip


def next_closed(store: Store, instance: str, after: str) -> RowDict | None:
    """Return the trade of an instance that was the first to close after a moment (ISO)."""
    return store.row(
        "SELECT * FROM signals INDEXED BY signals_instance WHERE instance = ? "
        "AND state = 'CLOSED' AND closed_at > ? AND kind = 'open' ORDER BY closed_at LIMIT 1",
        instance, after,
    )  # fmt: skip


def closed_at(store: Store, moment: str) -> SignalRow | None:
    """Return a trade that closed at a moment (ISO); None where none did."""
    return store.model(SignalRow, f"SELECT * {CLOSED} AND closed_at = ? LIMIT 1", moment)


def newest_step(store: Store) -> int:
    """Return the number of the newest step of any signal, 0 before the first."""
    return int(store.value("SELECT max(id) FROM signal_events") or 0)


def closed_list(
    store: Store,
    only: Mapping[str, str],
    *,
    came_to: str = "",
    before: tuple[str, int] | None = None,
    limit: int,
) -> list[SignalRow]:
    """Return rows of closed trades, newest first, that lie before (closed_at, seq).

    `only` has values of CLOSED_FILTERS by name; `came_to` is won, lost or "" for any.
    """
    place = before or ("~", 0)  # "~" sorts after every time
    which = [CLOSED_FILTERS[name] for name in only] + ([BY_RESULT[came_to]] if came_to else [])
    sql = " AND ".join([f"SELECT * {CLOSED} AND (closed_at, seq) < (?, ?)", *which])
    return store.models(
        SignalRow,
        f"{sql} ORDER BY closed_at DESC, seq DESC LIMIT ?",
        *place, *only.values(), limit,
    )  # fmt: skip


@lru_cache(maxsize=16)
def _profile(text: str | None) -> Profile:
    """Read an applied profile; every tick with a position asks for it."""
    return Profile() if text is None else Profile.model_validate_json(text)


def altered_orders(db: sqlite_utils.Database) -> list[str]:
    """Return the ids of orders and positions of a file that are not as they were decided.

    Looked at are those that are not finished, as any connection reads them.
    """
    states = (*POSITION_STATES, *UNDER_WAY)
    rows = db.query(f"SELECT * FROM signals WHERE state IN ({_marks(states)})", states)  # noqa: S608
    return [str(row["sid"]) for row in rows if order_seal.altered(row)]


def newborn(row: Mapping[str, Any]) -> RowDict:
    """Return the columns of a new signal as they are stored, with its seal.

    Raises ValueError for a state or an authority that is none.
    """
    known = {**dict.fromkeys(WRITTEN), **BORN, **columns(row, WRITTEN)}
    if known["state"] not in ("PENDING", "WAITING"):
        raise ValueError(f"a signal is born PENDING or WAITING, not {known['state']}")
    if known["authority"] not in order_seal.AUTHORITIES:
        raise ValueError(f"nobody decided the signal {known['sid']}: {known['authority']}")
    return {**known, "seal": order_seal.of_row(known)}


def columns(row: Mapping[str, Any], allowed: Sequence[str]) -> RowDict:
    """Return columns of a signal as they are stored; ValueError for one that is not `allowed`."""
    unknown = sorted(set(row) - set(allowed))
    if unknown:
        raise ValueError(f"a signal has no column {', '.join(unknown)}")
    return {
        name: stamp(value) if isinstance(value, datetime) else value for name, value in row.items()
    }


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" for _ in values)

"""Stores which tick is whose, and what a desk is: claims, signs of life, trading state, profiles.

A tick has at most one row: claimed, then done or skipped; released where the desk that claimed it
gave it back, or died. Of two threads that want the same tick one gets it. One desk at a time works
on a home, which is the lock's part (torra.desk_lock): `require_desk` asks it inside a transaction,
so that a desk that has lost it writes nothing. The signs of life run on real time (`now` of the
store), the bars' times on the desk's.

Every failure raises StoreUnavailable and leaves no trace. torra.desk.schedule decides when to
claim, to wait or to give up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, cast

from torra.clock import closes, duration, iso, parse
from torra.desk_lock import is_locked
from torra.errors import StoreUnavailable, bounded
from torra.store.connection import RowDict, Store, TickKey, stamp
from torra.store.trade.rows import TradingStateRow
from torra.verdict.risk_engine import TradingState

CLOCK_SET_BACK: Final = timedelta(seconds=60)
"""A sign of life this far in the future was given under a clock that has been corrected."""

LOOK_BACK: Final = 3_000
"""How many bars before the newest finished tick are looked through for closes without a row: two
days of M1, a month of M15. A machine may sleep as long, and closes after it are run before those of
its sleep have their rows.
"""


class ClaimStore(Store):
    """Claims, the desk's signs of life and its lock, its trading state and its profiles."""

    fence: Callable[[], bool] = staticmethod(lambda: True)
    """Whether this process may write as the desk: its lock's `is_owned`, where it runs a desk."""

    # --- the desk's process ---------------------------------------------------------------------

    def require_desk(self) -> None:
        """Raise StoreUnavailable when this desk does not hold its home's lock any more.

        Called first in a transaction: a desk may have stood still since it looked last.
        """
        if not self.fence():
            raise StoreUnavailable("this desk has lost the lock of its home: nothing is written")

    def desk_runs(self) -> bool:
        """Return whether a desk, of any process, works on this database's home now."""
        return is_locked(self.path.parent)

    def show_life(self, desk_time: datetime | None) -> None:
        """Give a sign of life, and note where the desk's clock stands, where it runs."""
        with self.transaction():
            self.require_desk()
            self.change(
                "UPDATE desk_run SET seen_at = ?, desk_time = coalesce(?, desk_time) WHERE id = 1",
                iso(self.now()), iso(desk_time) if desk_time else None,
            )  # fmt: skip

    def desk_time(self) -> datetime | None:
        """Return where the desk's clock goes on: at its last sign of life, or a later close."""
        stored = (
            self.value("SELECT desk_time FROM desk_run WHERE id = 1"),
            self.value("SELECT max(close_time) FROM ticks"),
        )
        # A kill may come between a tick and the next sign: the later of both counts.
        return max((parse(text) for text in stored if text), default=None)

    # --- claims ---------------------------------------------------------------------------------

    def claim_tick(self, key: TickKey) -> bool:
        """Claim a tick for this desk: True when it had no claim, or one that was released.

        False when it is done, skipped or being worked on.
        """
        with self.transaction():
            self.require_desk()
            if self._tick_state(key) not in (None, "released"):
                return False
            self.change(
                "INSERT OR REPLACE INTO ticks (instance, timeframe, bar_time, close_time, state, "
                "reason, detail, at) VALUES (?, ?, ?, ?, 'claimed', '', '', ?)",
                *key, key.close_time, self.moment(),
            )  # fmt: skip
            return True

    def release_claim(self, key: TickKey) -> None:
        """Give a claim back; without effect when there is none or the tick is finished."""
        with self.transaction():
            self.require_desk()
            self._leave_claim(key, "released")

    def skip_tick(self, key: TickKey, reason: str, detail: str) -> bool:
        """Record why a tick is not run; False when it is done or skipped."""
        return self.skip_ticks({key: (reason, detail)}) == 1

    def skip_ticks(self, reasons: Mapping[TickKey, tuple[str, str]]) -> int:
        """Record why ticks are not run (a word and a sentence each); return how many got a row.

        All of it is one transaction. What is done or skipped stays as it is.
        """
        with self.transaction():
            self.require_desk()
            return sum(self._skip(key, *reason) for key, reason in reasons.items())

    def _skip(self, key: TickKey, reason: str, detail: str) -> int:
        return self.change(
            "INSERT INTO ticks (instance, timeframe, bar_time, close_time, state, reason, "
            "detail, at) VALUES (?, ?, ?, ?, 'skipped', ?, ?, ?) "
            "ON CONFLICT (instance, timeframe, bar_time) DO UPDATE SET state = excluded.state, "
            "reason = excluded.reason, detail = excluded.detail, "
            "at = excluded.at WHERE ticks.state IN ('claimed', 'released')",
            *key, key.close_time, reason, bounded(detail), self.moment(),
        )  # fmt: skip

    def require_claim(self, key: TickKey) -> None:
        """Raise StoreUnavailable unless lock and claim are ours, before anything is written."""
        self.require_desk()
        if self._tick_state(key) != "claimed":
            raise claim_lost(key)

    def finish_tick(self, key: TickKey) -> None:
        """Set our claim done, inside the transaction that stores the tick.

        Raises StoreUnavailable when claim or lock are not ours any more: then nothing of it is
        kept.
        """
        self.require_desk()
        if not self._leave_claim(key, "done"):
            raise claim_lost(key)

    def due(
        self, instance: str, timeframe: str, *, upto: datetime, start: datetime
    ) -> list[datetime]:
        """Return the bar times that the desk still owes a row, oldest first.

        These are the closes up to `upto` since the stream's newest finished tick (since `start`
        while there is none), the closes of the bars just before it that have no row at all, and
        every earlier one whose claim was released. What the desk is working on is not listed.
        """
        step = duration(timeframe)
        newest = _newest_finished(self, instance, timeframe, upto)
        after = start if newest is None else newest + step
        owed = {close - step for close in closes(timeframe, after, upto)}
        if newest is not None:
            owed |= self._holes(instance, timeframe, newest)
        for bar_time, state in _unfinished(self, instance, timeframe):
            if state == "released" and bar_time + step <= upto:
                owed.add(bar_time)
            else:
                # The desk works on it, or it closes later than `upto`.
                owed.discard(bar_time)
        return sorted(owed)

    def _holes(self, instance: str, timeframe: str, newest: datetime) -> set[datetime]:
        """Return the bar times shortly before the newest finished tick that have no row.

        A bar that was late, or a close that nobody could claim, must not be passed over because a
        later one is done. Nothing before the stream's first row is a hole.
        """
        step = duration(timeframe)
        rows = "FROM ticks WHERE instance = ? AND timeframe = ? AND bar_time BETWEEN ? AND ?"
        place = (instance, timeframe, stamp(newest - LOOK_BACK * step), stamp(newest))
        ((begun, count),) = self.tuples(f"SELECT min(bar_time), count(*) {rows}", *place)
        # A stream that has just begun owes nothing from before its first row.
        first = parse(begun)
        if first + (count - 1) * step == newest:
            return set()  # nearly always, and no row is read
        there = {parse(bar_time) for (bar_time,) in self.tuples(f"SELECT bar_time {rows}", *place)}
        return {close - step for close in closes(timeframe, first, newest)} - there

    def _tick_state(self, key: TickKey) -> str | None:
        state = self.value(
            "SELECT state FROM ticks WHERE instance = ? AND timeframe = ? AND bar_time = ?", *key
        )
        return None if state is None else str(state)

    def _leave_claim(self, key: TickKey, state: str) -> int:
        """Turn a claim into another state; return how many there were."""
        return self.change(
            "UPDATE ticks SET state = ?, at = ? WHERE instance = ? AND timeframe = ? "
            "AND bar_time = ? AND state = 'claimed'",
            state, self.moment(), *key,
        )  # fmt: skip

    # --- the desk -------------------------------------------------------------------------------

    def trading_state(self) -> TradingState:
        """Return ACTIVE, REDUCING or HALTED."""
        state = self.value("SELECT state FROM desk_state ORDER BY id DESC LIMIT 1")
        return cast(TradingState, state or "ACTIVE")

    def _note_state(self, state: str, reason: str) -> None:
        self.add("desk_state", {"state": state, "reason": bounded(reason), "at": self.moment()})

    def apply_profile(self, instance: str, profile_json: str, digest: str) -> bool:
        """Keep the profile that an instance runs from now on; False when it already did."""
        with self.transaction():
            now = applied_profile(self, instance)
            if now is not None and now["digest"] == digest:
                return False
            row = {"instance": instance, "digest": digest, "profile": profile_json}
            self.add("trading_config", {**row, "applied_at": self.moment()})
            return True


def end_run(store: ClaimStore) -> None:
    """Note that the desk ends in order."""
    with store.transaction():
        store.require_desk()
        sql = "UPDATE desk_run SET process = 0, seen_at = ? WHERE id = 1"
        store.change(sql, iso(store.now()))


def newest_claim(store: Store, instance: str, timeframe: str) -> datetime | None:
    """Return the newest bar time that is done, skipped or being worked on."""
    claims = _unfinished(store, instance, timeframe)
    working = [bar_time for bar_time, state in claims if state == "claimed"]
    return max(filter(None, [*working, _newest_finished(store, instance, timeframe)]), default=None)


def _unfinished(store: Store, instance: str, timeframe: str) -> list[tuple[datetime, str]]:
    """Return bar time and state of what is claimed or released, oldest first."""
    rows = store.tuples(
        "SELECT bar_time, state FROM ticks WHERE instance = ? AND timeframe = ? "
        "AND state IN ('claimed', 'released') ORDER BY bar_time",
        instance, timeframe,
    )  # fmt: skip
    return [(parse(bar_time), state) for bar_time, state in rows]


def _newest_finished(
    store: Store, instance: str, timeframe: str, upto: datetime | None = None
) -> datetime | None:
    """Return the newest bar time that is done or skipped and closed at `upto`, if given."""
    # "~" sorts after every time.
    last = "~" if upto is None else stamp(upto - duration(timeframe))
    newest = store.value(
        "SELECT bar_time FROM ticks WHERE instance = ? AND timeframe = ? "
        "AND state IN ('done', 'skipped') AND bar_time <= ? ORDER BY bar_time DESC LIMIT 1",
        instance, timeframe, last,
    )  # fmt: skip
    return parse(newest) if newest else None


def begin_run(store: ClaimStore, run: str, process: int) -> None:
    """Note that a desk begins to work in a process, and release the claims of the one before.

    `run` is its name alone. Where the clock of the one before stood is kept.
    """
    with store.transaction():
        store.require_desk()
        store.change(
            "INSERT INTO desk_run (id, run, process, started_at, seen_at) "
            "VALUES (1, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET run = excluded.run, process = excluded.process, "
            "started_at = excluded.started_at, seen_at = excluded.seen_at",
            run, process, iso(store.now()), iso(store.now()),
        )  # fmt: skip
        release_claims(store)


def desk_run(store: Store) -> RowDict | None:
    """Return run, process (0 once it ended in order), started_at, seen_at and desk_time.

    None before the first desk.
    """
    return store.row(
        "SELECT run, process, started_at, seen_at, desk_time FROM desk_run WHERE id = 1"
    )


def release_claims(store: Store) -> None:
    """Release every claim: those of a desk that is dead, at the start of the next."""
    # Both conditions: the first is that of the index which has no other tick.
    store.change(
        "UPDATE ticks SET state = 'released' "
        "WHERE state IN ('claimed', 'released') AND state = 'claimed'"
    )


def trading_states(store: Store, limit: int = 20) -> list[TradingStateRow]:
    """Return the newest changes of the trading state."""
    sql = "SELECT state, reason, at FROM desk_state ORDER BY id DESC LIMIT ?"
    return store.models(TradingStateRow, sql, limit)


def applied_profile(store: Store, instance: str) -> RowDict | None:
    """Return the digest, profile (JSON text) and applied_at of an instance's newest profile."""
    return store.row(
        "SELECT digest, profile, applied_at FROM trading_config WHERE instance = ? "
        "ORDER BY id DESC LIMIT 1",
        instance,
    )  # fmt: skip


def claim_lost(key: TickKey) -> StoreUnavailable:
    """Return what a tick raises whose claim is not there any more."""
    return StoreUnavailable(f"claim lost: {key.text} is not claimed any more")

"""Stores who works on the desk and which tick is whose: lease, claims, trading state, profiles.

The lease gives one desk at a time the right to work. Its epoch grows with every new holder and is
written into every claim. So a claim that an earlier desk left unfinished differs from one that a
living desk works on. A tick has at most one row: claimed, then done or skipped. Of two processes
that want the same tick one gets it. The lease runs on real time (`now` of the store), the bars'
times on the desk's.

Every failure raises StoreUnavailable and leaves no trace. torra.desk.schedule decides when to
claim, to wait or to give up.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

from torra.clock import closes, duration, iso, parse
from torra.errors import StoreUnavailable, bounded
from torra.store.connection import Store, TickKey, stamp
from torra.store.trade.rows import TradingStateRow
from torra.verdict.risk_engine import TradingState

RELEASED: Final = -1
"""Epoch of a claim that its tick gave back: earlier than every desk's, so any desk may take it."""

CLOCK_SET_BACK: Final = timedelta(seconds=60)
"""A lease renewed this far in the future was renewed under a clock that has been corrected."""

LONGEST_LEASE: Final = timedelta(hours=12)
"""The longest lease ever given; a row with a longer one is damaged, and no desk holds it."""

MUCH_LONGER: Final = 10
"""A lease of another desk that is so many times as long as one's own is damaged too."""

LOOK_BACK: Final = 3_000
"""How many bars before the newest finished tick are looked through for closes without a row: two
days of M1, a month of M15. A machine may sleep as long, and closes after it are run before those of
its sleep have their rows.
"""


class ClaimStore(Store):
    """Lease, claims, the desk's trading state and its profiles."""

    # --- the lease ------------------------------------------------------------------------------

    def acquire_lease(self, owner: str, ttl_seconds: float) -> int | None:
        """Take the lease for `owner` if it is free, run out or already theirs.

        Returns its epoch, or None while another owner holds it.
        """
        # A damaged end far in the future would keep every desk out until then.
        longest = max(timedelta(seconds=ttl_seconds) * MUCH_LONGER, CLOCK_SET_BACK)
        with self.transaction():
            row = self._row("SELECT * FROM lease WHERE id = 1")
            held = row is not None and lives(row, self._now(), min(longest, LONGEST_LEASE))
            if row and held:
                if row["owner"] != owner:
                    return None
                self._write_lease(owner, row["epoch"], ttl_seconds, row["desk_time"])
                return int(row["epoch"])
            epoch = int(row["epoch"]) + 1 if row else 1
            # The new holder goes on where the clock of the last one stood.
            self._write_lease(owner, epoch, ttl_seconds, row["desk_time"] if row else None)
            return epoch

    def renew_lease(
        self, owner: str, epoch: int, ttl_seconds: float, desk_time: datetime | None = None
    ) -> bool:
        """Keep the lease for `ttl_seconds` from now; False when it is no longer this owner's.

        `desk_time` is stored with it: where the desk's clock stands.
        """
        with self.transaction():
            row = self._row("SELECT * FROM lease WHERE id = 1")
            if row is None or (row["owner"], row["epoch"]) != (owner, epoch):
                return False
            # Late is lost: another desk may already believe that the lease is free.
            if not self._alive(row):
                return False
            told = iso(desk_time) if desk_time else row["desk_time"]
            self._write_lease(owner, epoch, ttl_seconds, told)
            return True

    def release_lease(self, owner: str, epoch: int) -> None:
        """Give the lease back, if it is this owner's; the epoch stays on record."""
        # Not deleted: without the row the same epoch would be given twice.
        sql = "UPDATE lease SET owner = '', expires_at = renewed_at WHERE owner = ? AND epoch = ?"
        self._change(sql, owner, epoch)

    def lease(self) -> dict[str, Any] | None:
        """Return owner, epoch, expires_at, renewed_at, desk_time, alive; None before the first."""
        row = self._row(
            "SELECT owner, epoch, expires_at, renewed_at, desk_time FROM lease WHERE id = 1"
        )
        return None if row is None else {**row, "alive": self._alive(row)}

    def desk_time(self) -> datetime | None:
        """Return where the desk's clock goes on: at the last renewal's time, or a later close."""
        row = self.lease()
        newest = self._row("SELECT max(close_time) AS close_time FROM ticks")
        told = [row["desk_time"] if row else None, newest["close_time"] if newest else None]
        # A kill may come between a tick and the next renewal: the later of both counts.
        return max((parse(text) for text in told if text), default=None)

    def _alive(self, row: dict[str, Any]) -> bool:
        return lives(row, self._now())

    def _write_lease(self, owner: str, epoch: int, ttl: float, desk_time: str | None) -> None:
        now = self._now()
        self._change(
            "INSERT OR REPLACE INTO lease (id, owner, epoch, expires_at, renewed_at, desk_time) "
            "VALUES (1, ?, ?, ?, ?, ?)",
            owner, epoch, iso(now + timedelta(seconds=ttl)), iso(now), desk_time,
        )  # fmt: skip

    # --- claims ---------------------------------------------------------------------------------

    def claim_tick(self, key: TickKey, epoch: int) -> bool:
        """Claim a tick for this desk: True when it had no claim, or an earlier epoch's.

        False when it is done, skipped, or being worked on, be it by this very desk.
        """
        with self.transaction():
            # Inside the transaction: the lease cannot be taken over between this look and the
            # write.
            self.require_lease(epoch)
            row = self._claim(key)
            if row is not None and (row["state"] != "claimed" or row["epoch"] >= epoch):
                return False
            self._write_claim(key, epoch)
            return True

    def require_lease(self, epoch: int) -> None:
        """Raise StoreUnavailable when another desk has taken the lease over.

        Called first in a transaction: a desk may have stood still since it looked last, and inside
        the lease cannot be taken over any more.
        """
        row = self._row("SELECT epoch FROM lease WHERE id = 1")
        if row is not None and row["epoch"] > epoch:
            raise StoreUnavailable(f"the lease is epoch {row['epoch']}'s, not epoch {epoch}'s")

    def release_claim(self, key: TickKey, epoch: int) -> None:
        """Give a claim of ours back; without effect when it is not ours or the tick is finished."""
        self._change(
            "UPDATE ticks SET epoch = ?, at = ? WHERE instance = ? AND timeframe = ? "
            "AND bar_time = ? AND state = 'claimed' AND epoch = ?",
            RELEASED, self._moment(), key.instance, key.timeframe, stamp(key.bar_time), epoch,
        )  # fmt: skip

    def skip_tick(self, key: TickKey, reason: str, detail: str, epoch: int) -> bool:
        """Record why a tick is not run; False when it is done, skipped or a later epoch's."""
        return self.skip_ticks({key: (reason, detail)}, epoch) == 1

    def skip_ticks(self, reasons: Mapping[TickKey, tuple[str, str]], epoch: int) -> int:
        """Record why ticks are not run (a word and a sentence each); return how many got a row.

        All of it is one transaction. What is done, skipped or a later epoch's stays as it is.
        """
        with self.transaction():
            self.require_lease(epoch)
            return sum(self._skip(key, epoch, *told) for key, told in reasons.items())

    def _skip(self, key: TickKey, epoch: int, reason: str, detail: str) -> int:
        return self._change(
            "INSERT INTO ticks (instance, timeframe, bar_time, close_time, state, epoch, reason, "
            "detail, at) VALUES (?, ?, ?, ?, 'skipped', ?, ?, ?, ?) "
            "ON CONFLICT (instance, timeframe, bar_time) DO UPDATE SET state = excluded.state, "
            "epoch = excluded.epoch, reason = excluded.reason, detail = excluded.detail, "
            "at = excluded.at WHERE ticks.state = 'claimed' AND ticks.epoch <= excluded.epoch",
            key.instance, key.timeframe, stamp(key.bar_time),
            stamp(key.close_time), epoch, reason, bounded(detail), self._moment(),
        )  # fmt: skip

    def require_claim(self, key: TickKey, epoch: int) -> None:
        """Raise StoreUnavailable unless lease and claim are ours, before anything is written.

        Without this look a desk that was deposed would meet the rows of the one that ran the tick.
        """
        self.require_lease(epoch)
        if self._claim(key) != {"state": "claimed", "epoch": epoch}:
            raise claim_lost(key, epoch)

    def finish_tick(self, key: TickKey, epoch: int) -> None:
        """Set our claim done, inside the transaction that stores the tick.

        Raises StoreUnavailable when the claim or the lease is not ours any more: then nothing of
        it is kept.
        """
        self.require_lease(epoch)
        changed = self._change(
            "UPDATE ticks SET state = 'done', at = ? WHERE instance = ? AND timeframe = ? "
            "AND bar_time = ? AND state = 'claimed' AND epoch = ?",
            self._moment(), key.instance, key.timeframe, stamp(key.bar_time), epoch,
        )  # fmt: skip
        if not changed:
            raise claim_lost(key, epoch)

    def due(
        self, instance: str, timeframe: str, *, upto: datetime, epoch: int, start: datetime
    ) -> list[datetime]:
        """Return the bar times that a desk of this epoch still owes a row, oldest first.

        These are the closes up to `upto` since the stream's newest finished tick (since `start`
        while there is none), the closes of the bars just before it that have no row at all, and
        every earlier one whose claim was left or given back. What this desk is working on is not
        listed.
        """
        step = duration(timeframe)
        newest = self._newest_finished(instance, timeframe, upto)
        after = start if newest is None else newest + step
        owed = {close - step for close in closes(timeframe, after, upto)}
        if newest is not None:
            owed |= self._holes(instance, timeframe, newest)
        for bar_time, holder in self._claims(instance, timeframe):
            if holder < epoch and bar_time + step <= upto:
                owed.add(bar_time)
            else:
                # This desk works on it, or it closes later than `upto`.
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
        ((begun, count),) = self._tuples(f"SELECT min(bar_time), count(*) {rows}", *place)
        # A stream that has just begun owes nothing from before its first row.
        first = parse(begun)
        if first + (count - 1) * step == newest:
            return set()  # nearly always, and no row is read
        there = {parse(bar_time) for (bar_time,) in self._tuples(f"SELECT bar_time {rows}", *place)}
        return {close - step for close in closes(timeframe, first, newest)} - there

    def newest_claim(self, instance: str, timeframe: str) -> datetime | None:
        """Return the newest bar time that is done, skipped or being worked on by a living desk."""
        row = self.lease()
        living = row["epoch"] if row and row["alive"] else None
        found = [time for time, epoch in self._claims(instance, timeframe) if epoch == living]
        finished = self._newest_finished(instance, timeframe)
        return max([*found, *([finished] if finished else [])], default=None)

    def unfinished(self, instance: str, timeframe: str, epoch: int) -> list[datetime]:
        """Return the bar times that an earlier epoch claimed, or gave back, and did not finish."""
        claims = self._claims(instance, timeframe)
        return [bar_time for bar_time, holder in claims if holder < epoch]

    def tick_states(self, instance: str, timeframe: str, limit: int = 100) -> list[dict[str, Any]]:
        """Return the newest ticks' bar_time, close_time, state, epoch, reason, detail and at."""
        return self._rows(
            "SELECT bar_time, close_time, state, epoch, reason, detail, at FROM ticks "
            "WHERE instance = ? AND timeframe = ? ORDER BY bar_time DESC LIMIT ?",
            instance, timeframe, limit,
        )  # fmt: skip

    def _claim(self, key: TickKey) -> dict[str, Any] | None:
        return self._row(
            "SELECT state, epoch FROM ticks WHERE instance = ? AND timeframe = ? AND bar_time = ?",
            key.instance, key.timeframe, stamp(key.bar_time),
        )  # fmt: skip

    def _claims(self, instance: str, timeframe: str) -> list[tuple[datetime, int]]:
        rows = self._rows(
            "SELECT bar_time, epoch FROM ticks WHERE instance = ? AND timeframe = ? "
            "AND state = 'claimed' ORDER BY bar_time",
            instance, timeframe,
        )  # fmt: skip
        return [(parse(row["bar_time"]), int(row["epoch"])) for row in rows]

    def _newest_finished(
        self, instance: str, timeframe: str, upto: datetime | None = None
    ) -> datetime | None:
        """Return the newest bar time that is done or skipped and closed at `upto`, if given."""
        # "~" sorts after every time.
        last = "~" if upto is None else stamp(upto - duration(timeframe))
        row = self._row(
            "SELECT bar_time FROM ticks WHERE instance = ? AND timeframe = ? "
            "AND state <> 'claimed' AND bar_time <= ? ORDER BY bar_time DESC LIMIT 1",
            instance, timeframe, last,
        )  # fmt: skip
        return parse(row["bar_time"]) if row else None

    def _write_claim(self, key: TickKey, epoch: int) -> None:
        self._change(
            "INSERT OR REPLACE INTO ticks (instance, timeframe, bar_time, close_time, state, "
            "epoch, reason, detail, at) VALUES (?, ?, ?, ?, 'claimed', ?, '', '', ?)",
            key.instance, key.timeframe, stamp(key.bar_time),
            stamp(key.close_time), epoch, self._moment(),
        )  # fmt: skip

    # --- the desk -------------------------------------------------------------------------------

    def trading_state(self) -> TradingState:
        """Return ACTIVE, REDUCING or HALTED."""
        row = self._row("SELECT state FROM desk_state ORDER BY id DESC LIMIT 1")
        return cast(TradingState, row["state"]) if row else "ACTIVE"

    def _note_state(self, state: str, reason: str) -> None:
        self._add("desk_state", {"state": state, "reason": bounded(reason), "at": self._moment()})

    def trading_states(self, limit: int = 20) -> list[TradingStateRow]:
        """Return the newest changes of the trading state."""
        sql = "SELECT state, reason, at FROM desk_state ORDER BY id DESC LIMIT ?"
        return self._all(TradingStateRow, sql, limit)

    def apply_profile(self, instance: str, profile_json: str, digest: str) -> bool:
        """Keep the profile that an instance runs from now on; False when it already did."""
        with self.transaction():
            now = self.applied_profile(instance)
            if now is not None and now["digest"] == digest:
                return False
            row = {"instance": instance, "digest": digest, "profile": profile_json}
            self._add("trading_config", {**row, "applied_at": self._moment()})
            return True

    def knows_profile(self, instance: str, digest: str) -> bool:
        """Return whether an instance was ever given a profile."""
        return (
            self._row(
                "SELECT 1 FROM trading_config WHERE instance = ? AND digest = ?", instance, digest
            )
            is not None
        )

    def applied_profile(self, instance: str) -> dict[str, Any] | None:
        """Return the digest, profile (JSON text) and applied_at of an instance's newest profile."""
        return self._row(
            "SELECT digest, profile, applied_at FROM trading_config WHERE instance = ? "
            "ORDER BY id DESC LIMIT 1",
            instance,
        )  # fmt: skip


def claim_lost(key: TickKey, epoch: int) -> StoreUnavailable:
    """Return what a tick raises whose claim another desk has taken over."""
    return StoreUnavailable(f"claim lost: {key.text} is not epoch {epoch}'s any more")


def lives(row: Mapping[str, Any], now: datetime, longest: timedelta = LONGEST_LEASE) -> bool:
    """Return whether the holder of a lease still has it (owner, expires_at, renewed_at).

    A lease that would last longer than `longest` is damaged: nobody waits for its end.
    """
    renewed, expires = parse(row["renewed_at"]), parse(row["expires_at"])
    ahead = renewed > now + CLOCK_SET_BACK  # by a clock that was wrong then
    return bool(row["owner"]) and now < expires <= renewed + longest and not ahead

"""Signals in memory: the outbox of a replay, and how each signal ended.

It does what torra.store.trade.signals does, without a database: the same columns, states and
errors, the same rule of one opening. A transaction that raises leaves no trace. No lock is waited
for and nothing is written to a disk.

Signals that no later tick can ask for are forgotten; `take_trades` hands out the row of every trade
that ended before that. torra.store.trade.positions reads the books from the signals.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, Final

from torra.clock import parse
from torra.config import Profile, SymbolSpec
from torra.errors import bounded
from torra.store.connection import RowDict, stamp
from torra.store.trade.positions import HOUR, PositionStore
from torra.store.trade.signals import LEARNED, columns, newborn
from torra.verdict.risk_engine import OPENS
from torra.verdict.sentiment_rules import RECENT_TRADES
from torra.verdict.signal_states import EXECUTED, POSITION_STATES, UNDER_WAY, check_transition

SHIPPED: Final = Profile()
"""Values a position of an instance without a profile."""

SPARE: Final = 256
"""Signals beyond those that count before the others are forgotten."""

DAY: Final = timedelta(days=1)

ONE_OPENING: Final = frozenset((*UNDER_WAY, *EXECUTED))
"""States of which an instance may have one opening (signals_one_opening in torra.store.schema)."""

CLOSES_LIVE: Final = frozenset((*UNDER_WAY, "WAITING"))
"""States of a close whose end is not known yet."""

Stream = tuple[str, str]
"""Instance and timeframe, or instance and side."""


class MemorySignals(PositionStore):
    """Signals, latches and the paper cursor of every instance. Any thread may use it, in turn."""

    def __init__(self, profiles: Mapping[str, Profile] | None = None) -> None:
        """Begin without a signal; `profiles` by instance have what values a position."""
        self._profiles = dict(profiles or {})
        self._lock = threading.RLock()
        self._undo: list[Callable[[], object]] = []
        self._marks: list[int] = []
        self._signals: dict[str, RowDict] = {}
        self._live_sids: dict[str, None] = {}
        self._closes: dict[str, list[str]] = {}
        self._trades: dict[str, list[tuple[str, int, str]]] = {}
        self._losses: dict[Stream, str] = {}
        self._seq = self._step_number = self._kept = 0
        self._latches: set[Stream] = set()
        self._cursors: dict[str, str] = {}
        self._ended: list[RowDict] = []

    # --- transactions ---------------------------------------------------------------------------

    def transaction(self, wait_seconds: float | None = None) -> AbstractContextManager[None]:
        """Run what is inside as one unit: all of it is kept, or, after any exception, nothing.

        A transaction inside another joins it; when the inner one raises and the outer goes on, only
        the inner one's part is undone. Nobody is waited for.
        """
        # The store is its own context manager: a tick has eight transactions, most of them empty.
        del wait_seconds
        return self

    def __enter__(self) -> None:
        self._lock.acquire()
        self._marks.append(len(self._undo))

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        begun = self._marks.pop()
        try:
            # Backwards, and only to our own mark: an outer transaction may go on.
            while kind is not None and len(self._undo) > begun:
                self._undo.pop()()
            # Only the outermost one: until then an outer transaction may still take everything
            # back.
            if not self._marks:
                self._undo.clear()
                if kind is None and len(self._signals) > self._kept + SPARE:
                    self._forget_signals()
        finally:
            self._lock.release()

    def _undoing(self, *steps: Callable[[], object]) -> None:
        """Remember the steps that take a change back; they run last to first."""
        if self._marks:
            self._undo.extend(steps)

    def _put(self, table: dict[Any, Any], key: object, value: object) -> None:
        """Set an entry of a table so that the transaction can take it back."""
        if key in table:
            former = table[key]
            self._undoing(lambda: table.__setitem__(key, former))
        else:
            self._undoing(lambda: table.pop(key, None))
        table[key] = value

    # --- signals --------------------------------------------------------------------------------

    def enqueue_signal(self, row: Mapping[str, Any]) -> bool:
        """Write a signal, as torra.store.trade.signals does; False when its id is there already."""
        known = newborn(row)
        if known["sid"] in self._signals:
            return False
        self._check_finite(known)
        self._one_opening(known, known["state"])
        seq = self._seq + 1
        # The default of the table, as the schema gives it.
        row = {"seq": seq, **dict.fromkeys(LEARNED), "misses": 0, **known}
        self._undoing(lambda: setattr(self, "_seq", seq - 1))
        self._seq = seq
        self._write(row)
        self._name_close(row)
        self._count_step()
        return True

    def move_signal(
        self, sid: str, state: str, *, detail: str = "", fields: Mapping[str, Any] | None = None
    ) -> bool:
        """Take a signal to another state, on record, as torra.store.trade.signals does."""
        learned = columns(fields or {}, LEARNED)
        row = self._signals.get(sid)
        if row is None:
            raise ValueError(f"there is no signal {sid}")
        if row["state"] == state:
            return False
        check_transition(row["state"], state)
        self._one_opening(row, state)
        after = {**row, "state": state, "detail": bounded(detail), **learned}
        self._check_finite(after)
        self._write(after)
        self._count_step()
        if state == "CLOSED" and after["kind"] == "open":
            self._end_trade(after)
        return True

    def signal(self, sid: str) -> RowDict | None:
        """Return one signal; None when there is none of that id."""
        row = self._signals.get(sid)
        return None if row is None else dict(row)

    def closes_of(self, instance: str, sid: str) -> list[RowDict]:
        """Return the closes of one position, and the openings that waited for its end."""
        rows = (self._signals[order] for order in self._closes.get(sid, ()))
        return [dict(row) for row in rows if row["instance"] == instance]

    def last_state(self, sid: str) -> str | None:
        """Return a signal's state: nobody else can change what is in memory."""
        row = self._signals.get(sid)
        return None if row is None else str(row["state"])

    def signals(
        self, states: Sequence[str] | None = None, instance: str | None = None, limit: int = 100
    ) -> list[RowDict]:
        """Return signals by state and instance, newest first; times are ISO text."""
        # Signals in these states are live: the many that ended need not be looked through.
        live = states is not None and CLOSES_LIVE.issuperset(states)
        rows = (
            dict(row)
            for row in map(
                self._signals.__getitem__, reversed(self._live_sids if live else self._signals)
            )
            if (states is None or row["state"] in states) and instance in (None, row["instance"])
        )
        return [*islice(rows, limit)]

    def note_signal(self, sid: str, detail: str) -> None:
        """Store the reason why a signal waits; its state stays what it is."""
        if sid in self._signals:
            self._put(self._signals, sid, {**self._signals[sid], "detail": bounded(detail)})

    def learn(self, sid: str, **fields: Any) -> None:
        """Fill columns of a signal that are known now, without a step."""
        self._put(self._signals, sid, {**self._signals[sid], **columns(fields, LEARNED)})

    def take_trades(self) -> list[RowDict]:
        """Return, once, the rows of the trades that closed since the last call, in order."""
        trades, self._ended = self._ended, []
        return trades

    def _write(self, row: RowDict) -> None:
        sid = row["sid"]
        self._put(self._signals, sid, row)
        live = CLOSES_LIVE if row["kind"] != "open" else POSITION_STATES
        finished = row["state"] not in live
        if finished and sid in self._live_sids:
            # A copy: put back alone, the signal would come last, and their order is that of their
            # births.
            before = dict(self._live_sids)
            del self._live_sids[sid]
            self._undoing(lambda: setattr(self, "_live_sids", before))
        elif not finished and sid not in self._live_sids:
            self._put(self._live_sids, sid, None)

    def _name_close(self, row: RowDict) -> None:
        """Remember which orders name an opening."""
        if row["closes"]:
            named = self._closes.get(row["closes"], [])
            self._put(self._closes, row["closes"], [*named, row["sid"]])

    def _count_step(self) -> None:
        number = self._step_number = self._step_number + 1
        self._undoing(lambda: setattr(self, "_step_number", number - 1))

    def _end_trade(self, row: RowDict) -> None:
        trades, ended = self._trades.setdefault(row["instance"], []), self._ended
        place = (row["closed_at"], row["seq"], row["sid"])
        insort(trades, place)
        ended.append(dict(row))
        self._undoing(lambda: trades.remove(place), ended.pop)

    def _one_opening(self, row: RowDict, state: str) -> None:
        if row["kind"] == "open" and state in ONE_OPENING:
            for other in self.live_signals(ONE_OPENING, row["instance"], "open"):
                if other["sid"] != row["sid"]:
                    raise ValueError(
                        f"{row['instance']} has an opening or an open position already"
                    )

    @staticmethod
    def _check_finite(row: RowDict) -> None:
        for name, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(
                    f"a number that is not finite may not be stored: {value} in {name}"
                )

    # --- what the books are made of -------------------------------------------------------------

    def live_signals(
        self, states: Collection[str], instance: str | None, kind: str
    ) -> list[RowDict]:
        """Return the signals of a kind in one of the states, of one instance or of all."""
        return [
            row
            for row in map(self._signals.__getitem__, self._live_sids)
            if row["kind"] == kind
            and row["state"] in states
            and (instance is None or row["instance"] == instance)
        ]

    def _recent_trades(self, instance: str, as_of: datetime) -> Sequence[RowDict]:
        trades = self._trades.get(instance, [])
        end = bisect_left(trades, (stamp(as_of),))
        newest = trades[max(0, end - RECENT_TRADES) : end][::-1]
        return [self._signals[sid] for _, _, sid in newest]

    def _closed_since(self, moment: str) -> list[RowDict]:
        ended = (trades[bisect_left(trades, (moment,)) :] for trades in self._trades.values())
        return [self._signals[sid] for _, _, sid in sorted(chain.from_iterable(ended))]

    def _sent_between(self, instance: str, after: str, upto: str) -> list[tuple[str, str]]:
        sent = []
        for row in reversed(self._signals.values()):
            if row["instance"] != instance:
                continue
            # Signals come in the order of their decisions: all others are older.
            if row["decided_at"] <= after:
                break
            if row["decided_at"] <= upto:
                sent.append((row["kind"], row["side"]))
        return sent

    def _last_losses(self, instance: str, before: str) -> dict[str, str]:
        # Of the trades that were forgotten the newest loss is kept.
        losses = {side: self._losses.get((instance, side)) for side in OPENS}
        trades = self._trades.get(instance, [])
        for closed, _, sid in trades[: bisect_left(trades, (before,))]:
            if _lost(self._signals[sid]):
                losses[self._signals[sid]["side"]] = closed
        return {side: closed for side, closed in losses.items() if closed is not None}

    def _spec(self, instance: str, symbol: str) -> SymbolSpec:
        return self._profiles.get(instance, SHIPPED).symbol(symbol)

    def win_rates(self, instance: str, timeframe: str) -> dict[str, list[int]]:
        """Return nothing: what a replay found is for a desk."""
        del instance, timeframe
        return {}

    def _forget_signals(self) -> None:
        """Forget the finished signals that no later tick can ask for.

        What counts: the newest trades of each instance and those of the newest UTC day, what was
        decided within the last hour, and whatever a live signal names.
        """
        newest = parse(next(reversed(self._signals.values()))["decided_at"])
        today = stamp(newest.replace(hour=0, minute=0, second=0) - DAY)
        recent, kept = stamp(newest - HOUR), set(self._live_sids)
        for sid in self._live_sids:
            kept |= {self._signals[sid][name] for name in ("after", "closes")}
        for instance, trades in self._trades.items():
            first = min(len(trades) - RECENT_TRADES, bisect_left(trades, (today,)))
            gone = trades[: max(0, first)]
            for closed, _, sid in gone:
                if _lost(self._signals[sid]):
                    self._losses[instance, self._signals[sid]["side"]] = closed
            del trades[: len(gone)]
            kept |= {sid for _, _, sid in trades}
        self._signals = {
            sid: row
            for sid, row in self._signals.items()
            if sid in kept or row["decided_at"] > recent
        }
        # Built anew: it still names closes that are gone.
        self._closes = {}
        for row in self._signals.values():
            self._name_close(row)
        self._kept = len(self._signals)

    # --- latches, paper -------------------------------------------------------------------------

    def latches(self, instance: str) -> frozenset[str]:
        """Return the sides on which a veto of openings is latched."""
        return frozenset([side for name, side in self._latches if name == instance])

    def set_latch(self, instance: str, side: str, latched: bool = True) -> None:
        """Latch a veto, or clear it when `latched` is False."""
        if latched == ((instance, side) in self._latches):
            return
        change = (self._latches.add, self._latches.discard)
        change[not latched]((instance, side))
        self._undoing(lambda: change[latched]((instance, side)))

    def paper_cursor(self, instance: str) -> datetime | None:
        """Return the bar time up to which the paper bridge has lived."""
        at = self._cursors.get(instance)
        return parse(at) if at else None

    def set_paper_cursor(self, instance: str, bar_time: datetime) -> None:
        """Remember how far the paper bridge has come."""
        self._put(self._cursors, instance, stamp(bar_time))


def _lost(trade: Mapping[str, Any]) -> bool:
    return trade["profit"] is not None and trade["profit"] < 0

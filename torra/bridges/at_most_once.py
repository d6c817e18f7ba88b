"""The steps of a bridge that has no Expert Advisor of Torra's: an order goes out once at most.

`AtMostOnce.submit` writes an order into the journal before the order can reach the market, and an
order of the journal is never handed over again, in this life or a later one. An opening that the
account shows although no journal knows it is adopted. What became of an order is then read from
the account: `Mark` recognises what the broker made of it. A bridge adds how it looks at its market
and how it hands over.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from torra.bridges.order_journal import OrderEntry, OrderJournal, halt_in
from torra.bridges.protocol import STOOD_STILL, Order, Recall, Report, Status
from torra.clock import Clock
from torra.errors import BridgeUnavailable
from torra.home import HALT

CONFIRM_SECONDS: Final = 15.0
"""Seconds after which an order that has not shown in the account is UNKNOWN."""

HISTORY: Final = timedelta(days=7)
"""How far back the deals of the books reach."""

LOTS_SLACK: Final = 1e-6
"""Lots that differ by less are the same."""

EARLIEST: Final = timedelta(seconds=-5)
LATEST: Final = timedelta(seconds=120)
"""How far a time of the broker may lie from the order's own where only the time tells."""

SIGNAL_ID: Final = re.compile(r"T[A-Z2-7]{12}")

Market = TypeVar("Market")


class OrderMarks(NamedTuple):
    """The marks of an order on what the broker makes of it; `since` is when it was sent."""

    sid: str
    magic: int
    symbol: str
    since: datetime

    def on(self, row: Any, at: Callable[[], datetime | None]) -> bool:
        """Return whether a row of the account (magic, symbol, comment) is this order's.

        `at` tells the row's time, None where none proves anything; it counts without a comment.
        """
        if row.magic != self.magic or row.symbol != self.symbol:
            return False
        if self.sid in row.comment:
            return True
        # A comment with another signal's id is that signal's, however well the time fits.
        if SIGNAL_ID.search(row.comment) or (made := at()) is None:
            return False
        return EARLIEST <= made - self.since <= LATEST


def opened(row: Any, order: Order) -> bool:
    """Return whether a position is the one that an order is about, by its opening's id."""
    return bool(order.closes and row.magic == order.magic and order.closes in row.comment)


def stands(stop: float, order: Order) -> bool:
    """Return whether a stop is where an order moves it: to half a point."""
    return abs(stop - order.stop) < 0.5 * 10.0**-order.digits


def moved(order: Order, ticket: str, now: datetime, *, adopted: bool = False) -> Report:
    """Return the report of a stop that stands where it was to go."""
    return Report(order.sid, "FILLED", now, position=ticket, adopted=adopted)


def executed_as(order: Order, lots: float) -> Status:
    """Return the status of an order of which so many lots were executed."""
    return "FILLED" if lots >= order.lots - LOTS_SLACK else "PARTIAL"


class AtMostOnce(ABC, Generic[Market]):
    """What such bridges do alike; `Market` is what one sees of its market before an order."""

    def __init__(self, name: str, journal: Path, clock: Clock, halts: Sequence[Path]) -> None:
        """Read the journal; a HALT beside it and each of `halts` stop sending. ConfigError."""
        self._name = name
        self._clock = clock
        self._halts = (journal.parent / HALT, *halts)
        self._journal = OrderJournal(journal, clock.now())
        self._lock = threading.RLock()

    def submit(self, order: Order) -> None:
        """Hand an order over, once; the same id again changes nothing. Raises BridgeUnavailable."""
        with self._lock:
            if self._journal.get(order.sid):
                return
            entry, market = self._begin(order)
            # A journal that was lost must not lead to a second order.
            if found := self._adopted(entry, market):
                self._keep(found)
            elif reason := self._objection(order, market):
                self._refuse(entry, reason)
            else:
                self._send(entry, market)

    def recall(self, sid: str, seq: int) -> Recall:
        """Take an order back: only one that was never handed over can be."""
        del seq
        with self._lock:
            return Recall.TAKEN if self._journal.get(sid) else Recall.NEVER_SENT

    def settle(self, report: Report) -> None:
        """Forget a report: it is committed."""
        with self._lock:
            self._journal.settle(report)

    def heartbeat(self, state: str) -> None:
        """Do nothing: no Expert Advisor of Torra's listens."""

    @abstractmethod
    def _begin(self, order: Order) -> tuple[OrderEntry, Market]:
        """Return an order's entry, not kept yet, and the market; BridgeUnavailable for not now."""

    @abstractmethod
    def _adopted(self, entry: OrderEntry, market: Market) -> OrderEntry | None:
        """Return the entry of an order that the account shows already; None when it does not."""

    @abstractmethod
    def _objection(self, order: Order, market: Market) -> str:
        """Return the reason of the first guard that objects; "" when none does."""

    @abstractmethod
    def _send(self, entry: OrderEntry, market: Market) -> None:
        """Hand an order over that nothing stands against: `_intend`, then the market."""

    def _intend(self, entry: OrderEntry, stood_still: Callable[[], bool]) -> OrderEntry:
        """Return the entry of an order that goes out now: kept, so that no later life sends it.

        Raises BridgeUnavailable, with nothing left to look for, when it must not go out any more.
        """
        entry = replace(entry, intent=self._clock.now())
        self._keep(entry)
        # Once more: the checks and the disk took their time.
        fault = halt_in(self._halts)
        # Last of all: the lease may be another desk's by now.
        if not fault and stood_still():
            fault = STOOD_STILL
        if fault:
            self._journal.withdraw(entry.order.sid)
            raise BridgeUnavailable(fault)
        return entry

    def _keep(self, entry: OrderEntry) -> None:
        try:
            self._journal.put(entry)
        except OSError as error:
            raise BridgeUnavailable(f"cannot write the journal of orders: {error}") from error

    def _refuse(self, entry: OrderEntry, reason: str, retcode: int = 0) -> None:
        self._keep(replace(entry, report=self._refusal(entry.order, reason, retcode)))

    def _refusal(self, order: Order, reason: str, retcode: int = 0) -> Report:
        status: Status = "EXPIRED" if reason == "stale" else "REJECTED"
        return Report(order.sid, status, self._clock.now(), reason, retcode)

    def _open_orders(self) -> list[OrderEntry]:
        """Return every order that may have gone out and whose end is not known."""
        return [item for item in self._journal.entries if item.intent and not item.ended]

    def _wrong_account(self, found: int, meant: int) -> str:
        return (
            f"the terminal is on account {found}, not {meant}: log in there, or set "
            f"channels.{self._name}.account"
        )

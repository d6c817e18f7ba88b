"""Looks at the account behind the MetaTrader5 package: what became of an order, and the books.

An order is known in three ways: by its magic number and the signal's id in the comment (of
positions, pending orders, past orders and deals alike), by the numbers that the server gave when it
was sent, and, where the broker rewrites comments, by magic number, symbol, side and time. The
package's times are the server's wall clock and become UTC here. A question without an answer raises
BridgeUnavailable: not answered is never "nothing there".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from torra.bridges.mt5.terminal import Terminal
from torra.bridges.order_journal import OrderEntry
from torra.bridges.plausible import LOTS_SLACK
from torra.bridges.protocol import BrokerDeal, BrokerPosition, Order, OrderReport, Status
from torra.errors import BridgeUnavailable
from torra.market.broker_clock import ServerClock
from torra.verdict.risk_engine import PositionSide, Side

MARGIN: Final = 86_400
"""Seconds by which history is asked for beyond both ends: the server's clock may be misjudged."""

BUY_TYPE: Final = 0
SELL_TYPE: Final = 1
"""POSITION_TYPE_, ORDER_TYPE_ and DEAL_TYPE_BUY and _SELL."""

ENTRY_IN: Final = 0
DEAD_STATES: Final = frozenset({2, 5, 6})
"""ORDER_STATE_CANCELED, _REJECTED and _EXPIRED."""

REASONS: Final[Mapping[int, str]] = {
    0: "client",
    1: "client",
    2: "client",
    3: "expert",
    4: "sl",
    5: "tp",
    6: "stop_out",
}
"""DEAL_REASON_: by hand at a desk, on a telephone, on the web; expert; and what the server does."""

EARLIEST: Final = timedelta(seconds=-5)
LATEST: Final = timedelta(seconds=120)
"""How far a time of the broker may lie from the order's own where only the time tells."""

SIGNAL_ID: Final = re.compile(r"T[A-Z2-7]{12}")


def is_opened_by(row: Any, order: Order) -> bool:
    """Return whether a position is the one that an order is about, by its opening's id."""
    return bool(order.closes and row.magic == order.magic and order.closes in row.comment)


def stop_is_at(stop: float, order: Order) -> bool:
    """Return whether a stop is where an order moves it: to half a point."""
    return abs(stop - order.stop) < 0.5 * 10.0**-order.digits


def stop_move_report(
    order: Order, ticket: str, now: datetime, *, adopted: bool = False
) -> OrderReport:
    """Return the report of a stop that stands where it was to go."""
    return OrderReport(order.sid, "FILLED", now, position=ticket, adopted=adopted)


def executed_status(order: Order, lots: float) -> Status:
    """Return the status of an order of which so many lots were executed."""
    return "FILLED" if lots >= order.lots - LOTS_SLACK else "PARTIAL"


@dataclass(frozen=True, slots=True)
class Mt5Account:
    """The account as the package shows it, with the clock of its server."""

    terminal: Terminal
    server: ServerClock

    def find(self, entry: OrderEntry, now: datetime) -> OrderReport | None:
        """Return what became of an order, None when nothing of it is to be seen."""
        order = entry.order
        positions = self.terminal.demand("positions_get", symbol=order.broker_symbol)
        if order.kind == "modify":
            ticket = entry.notes.get("ticket", "")
            there = [item for item in positions if str(item.ticket) == ticket]
            moved = any(stop_is_at(item.sl, order) for item in there)
            return stop_move_report(order, ticket, now, adopted=True) if moved else None
        pending = self.terminal.demand("orders_get", symbol=order.broker_symbol)
        past = self._history("history_orders_get", order, now)
        deals = self._history("history_deals_get", order, now)
        known = _Known(entry, self.server)
        numbers = {item.ticket for item in (*pending, *past) if known.order(item)}
        # Pending before deals: a part of it may be filled while the rest still waits.
        if any(item.ticket in numbers for item in pending):
            return OrderReport(order.sid, "PLACED", now, ticket=str(min(numbers)))
        # Deals before positions: the position may have been closed again since.
        if mine := [item for item in deals if known.deal(item, numbers)]:
            return self._executed(entry, mine, now)
        if own := [item for item in positions if known.position(item)]:
            return self._position_report(entry, own[0], now)
        if any(item.ticket in numbers and item.state in DEAD_STATES for item in past):
            return OrderReport(order.sid, "REJECTED", now, "retcode", ticket=str(min(numbers)))
        return None

    def is_open(self, ticket: str) -> bool:
        """Return whether a position of this number is open."""
        return any(str(item.ticket) == ticket for item in self.terminal.demand("positions_get"))

    def position_of(self, order: Order, learned: str) -> Any | None:
        """Return the position that an order is about: by its number, else by its opening's id."""
        positions = self.terminal.demand("positions_get", symbol=order.broker_symbol)
        for number in filter(None, (order.ticket, learned)):
            for item in positions:
                # The ticket may change while a position is open, its identifier does not.
                if number in (str(item.ticket), str(item.identifier)):
                    return item
        return next((item for item in positions if is_opened_by(item, order)), None)

    def deal(self, number: int) -> Any | None:
        """Return one deal, None when it is not told (yet). Never raises."""
        try:
            deals = self.terminal.ask("history_deals_get", ticket=number).value if number else None
        except BridgeUnavailable:
            return None
        return deals[0] if deals else None

    def positions(self) -> tuple[BrokerPosition, ...]:
        """Return every open position of the account."""
        return tuple(self._position(item) for item in self.terminal.demand("positions_get"))

    def deals(self, since: datetime, now: datetime) -> tuple[BrokerDeal, ...]:
        """Return every deal since a moment that bought or sold something."""
        history = self.terminal.demand("history_deals_get", *self._range(since, now))
        # Deposits and corrections are deals of the history too.
        trades = [item for item in history if item.type in (BUY_TYPE, SELL_TYPE)]
        deals = [self._deal(item) for item in trades]
        # The question reached MARGIN further back.
        return tuple(deal for deal in deals if deal.time >= since)

    def moment(self, wall: int, otherwise: datetime) -> datetime:
        """Return a time of the server in UTC; `otherwise` for one that it never shows."""
        try:
            return self.server.to_utc(int(wall))
        except ValueError:
            return otherwise

    def _range(self, since: datetime, now: datetime) -> tuple[int, int]:
        return self.server.from_utc(since) - MARGIN, self.server.from_utc(now) + MARGIN

    def _history(self, name: str, order: Order, now: datetime) -> list[Any]:
        items = self.terminal.demand(name, *self._range(order.created, now))
        return [item for item in items if item.symbol == order.broker_symbol]

    def _executed(self, entry: OrderEntry, deals: Sequence[Any], now: datetime) -> OrderReport:
        lots = round(sum(item.volume for item in deals), 8)
        value = sum(item.volume * item.price for item in deals)
        return OrderReport(
            entry.order.sid,
            executed_status(entry.order, lots),
            self.moment(deals[0].time, now),
            ticket=str(deals[0].order),
            deal=str(deals[0].ticket),
            position=str(deals[0].position_id),
            # The mean of several deals lies between two ticks.
            price=round(value / lots, entry.order.digits + 2) if lots else 0.0,
            volume=lots,
            adopted=True,
        )

    def _position_report(self, entry: OrderEntry, position: Any, now: datetime) -> OrderReport:
        return OrderReport(
            entry.order.sid,
            executed_status(entry.order, position.volume),
            self.moment(position.time, now),
            ticket=str(position.identifier),
            position=str(position.ticket),
            price=position.price_open,
            volume=position.volume,
            adopted=True,
        )

    def _position(self, item: Any) -> BrokerPosition:
        side: PositionSide = "LONG" if item.type == BUY_TYPE else "SHORT"
        return BrokerPosition(
            ticket=str(item.ticket),
            broker_symbol=item.symbol,
            side=side,
            lots=item.volume,
            entry=item.price_open,
            stop=item.sl,
            target=item.tp,
            magic=item.magic,
            comment=item.comment,
            profit=item.profit + item.swap,
            opened_at=self.server.to_utc(int(item.time)),
        )

    def _deal(self, item: Any) -> BrokerDeal:
        entry: Literal["in", "out"] = "in" if item.entry == ENTRY_IN else "out"
        side: Side = "BUY" if item.type == BUY_TYPE else "SELL"
        return BrokerDeal(
            deal=str(item.ticket),
            position=str(item.position_id),
            broker_symbol=item.symbol,
            entry=entry,
            side=side,
            lots=item.volume,
            price=item.price,
            profit=item.profit + item.swap + item.commission + item.fee,
            magic=item.magic,
            comment=item.comment,
            time=self.server.to_utc(int(item.time)),
            reason=REASONS.get(item.reason, ""),
        )


@dataclass(frozen=True, slots=True)
class _Known:
    """Recognises one order among all others."""

    entry: OrderEntry
    server: ServerClock

    def order(self, item: Any) -> bool:
        """Return whether an order of the server is this one."""
        if str(item.ticket) == self.entry.notes.get("order"):
            return True
        if item.type != self._type or not self._ours(item, item.time_setup):
            return False
        return self._opens or str(item.position_id) == self.entry.notes.get("ticket")

    def deal(self, item: Any, numbers: set[int]) -> bool:
        """Return whether a deal is this order's: into a position, or out of the one that it ends.

        `numbers` are those that the server gave the order.
        """
        if item.type != self._type or (item.entry == ENTRY_IN) != self._opens:
            return False
        if not self._opens and str(item.position_id) != self.entry.notes.get("ticket"):
            return False
        return item.order in numbers or self._ours(item, item.time)

    def position(self, item: Any) -> bool:
        """Return whether a position is what this opening became."""
        if not self._opens or item.type != self._type:
            return False
        return str(item.identifier) == self.entry.notes.get("order") or self._ours(item, item.time)

    @property
    def _opens(self) -> bool:
        return self.entry.order.kind == "open"

    @property
    def _type(self) -> int:
        return BUY_TYPE if self.entry.order.side == "BUY" else SELL_TYPE

    def _ours(self, item: Any, wall: int) -> bool:
        """Return whether an item of this server time bears the order's marks.

        These are magic number, symbol, and the id in the comment. Without a comment the time
        counts, of what an Expert Advisor or the package has made.
        """
        order = self.entry.order
        if (item.magic, item.symbol) != (order.magic, order.broker_symbol):
            return False
        if order.sid in item.comment:
            return True
        # A comment with another signal's id is that signal's, however well the time fits.
        if SIGNAL_ID.search(item.comment) or REASONS.get(item.reason) != "expert":
            return False
        try:
            made = self.server.to_utc(int(wall))
        except ValueError:
            return False
        return EARLIEST <= made - (self.entry.intent or order.created) <= LATEST

"""The paper bridge: what the market would have done with a signal, one bar at a time.

Pure functions over values: orders, a position and one bar go in, what is left of them and the
events come out; the same input gives the same output, so a bar that is computed twice by mistake
harms nobody who keeps the first answer. Booking the events is left to `signal_bridge`, fetching
bars and remembering the last one to the caller.

How a bar is read. Its prices are bid. A long enters at open + spread and leaves at the bid; a short
enters at the open and leaves at the ask, bid + spread, which is also what its stop and target are
compared with. A signal decided at T fills at the open of the first bar that starts at T or later.
Inside a bar: closes fill at the open, then openings; a bar that opens beyond the stop or the target
ends the position at the open; after that the stop comes before the target where both lie in it.
Stop and target keep the prices of the signal, so they lie at their planned distance from the
decided entry, not from the fill: that is what a terminal does with them, and the spread and a gap
at the open are a cost of the trade. One R is that planned distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple

from torra.config import SymbolSpec
from torra.risk_engine import OPENS, TARGET_R, Kind, Position, PositionSide, Side

EventKind = Literal["FILLED", "STOPPED", "TARGET", "CLOSED", "CANCELLED"]

MONEY_DECIMALS: Final = 8
"""Profits, prices and R multiples are rounded to this many decimals."""


class Bar(NamedTuple):
    """One closed bar of bid prices; `time` is its open time."""

    time: datetime
    open: float
    high: float
    low: float
    close: float


@dataclass(frozen=True, slots=True)
class PaperOrder:
    """A signal that waits for its bar.

    `decided_at` is the close time of the tick that decided it. An opening with `after` waits until
    the close of that id is no longer among the orders.
    """

    sid: str
    kind: Kind
    side: Side
    lots: float
    stop: float | None
    target: float | None
    decided_at: datetime
    after: str | None = None


@dataclass(frozen=True, slots=True)
class PaperPosition:
    """An open position; `sid` is its opening's, `entry` the price of the fill."""

    sid: str
    side: PositionSide
    lots: float
    entry: float
    stop: float
    target: float
    opened_at: datetime

    @classmethod
    def of(cls, position: Position) -> PaperPosition:
        """Return what this bridge needs to know of a stored position."""
        return cls(
            position.signal_id,
            position.side,
            position.lots,
            position.entry,
            position.stop,
            position.target,
            position.opened_at,
        )


@dataclass(frozen=True, slots=True)
class PaperEvent:
    """What happened to a signal.

    FILLED: the signal of an opening or of a close was executed. STOPPED, TARGET, CLOSED: the
    position that `sid` opened has ended, with its profit in account currency and in R. CANCELLED:
    a close that found no position, or an opening that found one. `time` is the bar's open time.
    """

    kind: EventKind
    sid: str
    price: float
    time: datetime
    profit: float = 0.0
    r_multiple: float = 0.0


class Advanced(NamedTuple):
    """What a bar left behind."""

    orders: tuple[PaperOrder, ...]
    position: PaperPosition | None
    events: tuple[PaperEvent, ...]


def advance(
    orders: Sequence[PaperOrder],
    position: PaperPosition | None,
    bar: Bar,
    spread: float,
    spec: SymbolSpec,
) -> Advanced:
    """Live through one bar; `spread` is in price units."""
    market = _Market(bar, spread, spec)
    left = [order for order in orders if order.decided_at > bar.time]
    later = {order.sid for order in left}
    events: list[PaperEvent] = []
    for order in _due(orders, position, bar.time):
        if order.after in later:
            left.append(order)
        elif order.kind == "close":
            events += market.close(order, position)
            position = None
        else:
            events.append(market.open(order, position))
            position = position or market.position(order)
    ended = market.end(position) if position and position.opened_at <= bar.time else None
    if ended:
        return Advanced(tuple(left), None, (*events, ended))
    return Advanced(tuple(left), position, tuple(events))


def advance_all(
    orders: Sequence[PaperOrder],
    position: PaperPosition | None,
    bars: Iterable[Bar],
    *,
    cursor: datetime | None,
    spread: float,
    spec: SymbolSpec,
) -> tuple[Advanced, datetime | None]:
    """Live through the bars after `cursor`, oldest first, each once; return the new cursor too."""
    events: list[PaperEvent] = []
    for bar in bars:
        if cursor is not None and bar.time <= cursor:
            continue
        orders, position, happened = advance(orders, position, bar, spread, spec)
        events += happened
        cursor = bar.time
    return Advanced(tuple(orders), position, tuple(events)), cursor


def _due(
    orders: Sequence[PaperOrder], position: PaperPosition | None, time: datetime
) -> list[PaperOrder]:
    """Return the orders that this bar executes, in their order: what ends comes before what begins.

    A close that finds no position yet is meant for an opening of the same bar.
    """
    due = [order for order in orders if order.decided_at <= time]
    closes = [order for order in due if order.kind == "close"]
    opens = [order for order in due if order.kind == "open" and order.after is None]
    released = [order for order in due if order.kind == "open" and order.after is not None]
    return [*(closes + opens if position else opens + closes), *released]


class _Market(NamedTuple):
    """One bar as the two sides of the spread see it."""

    bar: Bar
    spread: float
    spec: SymbolSpec

    def close(self, order: PaperOrder, position: PaperPosition | None) -> list[PaperEvent]:
        """Close the position at the open."""
        if position is None:
            return [PaperEvent("CANCELLED", order.sid, 0.0, self.bar.time)]
        price = self._exit_side(position.side, self.bar.open)
        filled = PaperEvent("FILLED", order.sid, price, self.bar.time)
        return [filled, self._ended("CLOSED", position, price)]

    def open(self, order: PaperOrder, position: PaperPosition | None) -> PaperEvent:
        """Open at the open, unless a position is in the way."""
        if position is not None:
            return PaperEvent("CANCELLED", order.sid, 0.0, self.bar.time)
        return PaperEvent("FILLED", order.sid, self._entry(order.side), self.bar.time)

    def position(self, order: PaperOrder) -> PaperPosition:
        """Return the position that an opening makes."""
        if order.stop is None or order.target is None:
            raise ValueError(f"the opening {order.sid} has no stop or no target")
        return PaperPosition(
            order.sid,
            OPENS[order.side],
            order.lots,
            self._entry(order.side),
            order.stop,
            order.target,
            self.bar.time,
        )

    def end(self, position: PaperPosition) -> PaperEvent | None:
        """Return how the position ends inside this bar, the stop before the target; None: not."""
        opened, high, low = (
            self._exit_side(position.side, price)
            for price in (self.bar.open, self.bar.high, self.bar.low)
        )
        worst, best = (low, high) if position.side == "LONG" else (high, low)
        if _beyond(position.side, opened, position.stop):
            return self._ended("STOPPED", position, opened)
        if _beyond(position.side, position.target, opened):
            return self._ended("TARGET", position, opened)
        if _beyond(position.side, worst, position.stop):
            return self._ended("STOPPED", position, position.stop)
        if _beyond(position.side, position.target, best):
            return self._ended("TARGET", position, position.target)
        return None

    def _entry(self, side: Side) -> float:
        return self._ask(self.bar.open) if side == "BUY" else self.bar.open

    def _exit_side(self, side: PositionSide, bid: float) -> float:
        return bid if side == "LONG" else self._ask(bid)

    def _ask(self, bid: float) -> float:
        return round(bid + self.spread, MONEY_DECIMALS)

    def _ended(self, kind: EventKind, position: PaperPosition, price: float) -> PaperEvent:
        gain = price - position.entry if position.side == "LONG" else position.entry - price
        risk = abs(position.target - position.stop) / (1 + TARGET_R)
        money = gain / self.spec.tick_size * self.spec.tick_value * position.lots
        return PaperEvent(
            kind,
            position.sid,
            price,
            self.bar.time,
            round(money, MONEY_DECIMALS),
            round(gain / risk, MONEY_DECIMALS) if risk else 0.0,
        )


def _beyond(side: PositionSide, price: float, border: float) -> bool:
    """Return whether a price is at the border or on its losing side."""
    return price <= border if side == "LONG" else price >= border

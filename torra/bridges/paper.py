"""The paper bridge: what the market would have done with a signal, one bar at a time.

Pure functions over values. Orders, a position and one bar go in; what is left of them and the
events come out. The same input gives the same output, so a bar that is computed twice by mistake
does no harm as long as the first answer is kept. An order that a guard of `torra.bridges.guards`
objects to is refused with that guard's reason, as the Expert Advisor would refuse it. `acceptance`
asks the guards of message, clock and connection when the order is published; `advance` asks those
of symbol, quote and account at the open that would fill it. `signal_bridge` books the events; the
caller fetches the bars and remembers the last one.

How a bar is read. Its prices are bid. A long enters at open + spread and leaves at the bid. A short
enters at the open and leaves at the ask, bid + spread; its stop and target are compared with the
ask too. A signal decided at T fills at the open of the first bar that starts at T or later. Inside
a bar closes fill first, at the open, then openings. A bar that opens beyond the stop or the target
ends the position at the open; after that the stop comes before the target where the bar holds both.

Stop and target keep the prices of the signal, as in a terminal. So they lie at their planned
distance from the decided entry, not from the fill, and the spread and a gap at the open are a cost
of the trade. One R is that planned distance.

Entries, closes and stops slip by the symbol's slippage against the trader. Targets do not: they are
limit orders. An opening fills `fill_lots` at most and the rest is cancelled; what ends a position
ends all of it. docs/paper.md says what this cannot know.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, NamedTuple

from torra.bridges.guards import REASONS, GuardRequest, View, first_objection
from torra.config import SymbolSpec
from torra.verdict.position_size import worth
from torra.verdict.risk_engine import CLOSES, OPENS, Kind, Position, PositionSide, Side
from torra.verdict.trade_outcome import gain, planned_risk

EventKind = Literal["FILLED", "PARTIAL", "REJECTED", "CANCELLED", "STOPPED", "TARGET", "CLOSED"]

MONEY_DECIMALS: Final = 8
"""Profits, prices and R multiples are rounded to this many decimals."""

STEP_TOLERANCE: Final = 1e-6
"""Share of a lot step that binary fractions may be off, as in the guards."""

AT_FILL: Final = REASONS[REASONS.index("symbol") :]
"""Guards that need the quote of the fill."""

AT_ACCEPTANCE: Final = REASONS[: REASONS.index("symbol")]
"""Guards that are asked when an order is published.

An accepted order waits for its bar and does not expire meanwhile.
"""

BROKERS_NO: Final = "retcode"
"""Reason of an opening that passes the guards and that a broker would still refuse.

Its stop lies between bid and ask, or the market takes nothing of it. The advisor uses this word.
"""

FREE: Final = View(now=0, bid=0.0, ask=0.0, digits=0)
"""Conditions that restrict nothing."""


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
    the close of that id is no longer among the orders. `entry` is the decided price; the limits are
    in points (10 ** -digits), None = no limit. `closes` names the opening whose position a close
    ends, None = whichever is open.
    """

    sid: str
    kind: Kind
    side: Side
    lots: float
    stop: float | None
    target: float | None
    decided_at: datetime
    after: str | None = None
    entry: float | None = None
    max_spread_pts: int | None = None
    max_dev_pts: int | None = None
    closes: str | None = None


@dataclass(frozen=True, slots=True)
class PaperPosition:
    """An open position; `sid` is its opening's, `entry` and `lots` those of the fill.

    `moved_from` is the stop that was decided, where a person has moved it since.
    """

    sid: str
    side: PositionSide
    lots: float
    entry: float
    stop: float
    target: float
    opened_at: datetime
    moved_from: float | None = None

    @classmethod
    def of(cls, position: Position) -> PaperPosition:
        """Return a stored position as this bridge needs it."""
        return cls(
            position.signal_id,
            position.side,
            position.lots,
            position.entry,
            position.stop,
            position.target,
            position.opened_at,
            position.moved_from,
        )


@dataclass(frozen=True, slots=True)
class PaperEvent:
    """What happened to a signal.

    FILLED: the signal of an opening, of a close or of a stop's move was executed. PARTIAL: an
    opening, with `volume` lots of it; the rest is gone. REJECTED: a guard objected, `reason` says
    which. CANCELLED: an opening whose close was refused. STOPPED, TARGET, CLOSED: the position that
    `sid` opened has ended, with its profit in account currency and in R. `volume` is what was
    executed, in lots; `time` is the bar's open time.
    """

    kind: EventKind
    sid: str
    price: float
    time: datetime
    profit: float = 0.0
    r_multiple: float = 0.0
    volume: float = 0.0
    reason: str = ""


class Advanced(NamedTuple):
    """The result of one bar: the orders and the position that are left, and the events."""

    orders: tuple[PaperOrder, ...]
    position: PaperPosition | None
    events: tuple[PaperEvent, ...]


NOTHING_LEFT: Final = Advanced((), None, ())


def acceptance(ask: GuardRequest, now: datetime, conditions: View = FREE) -> str:
    """Return why an order is not accepted at `now`, "" when it is.

    "stale" means that it has expired, every other reason that it is refused. Of `conditions` only
    channel, account, halt and connection are looked at.
    """
    view = replace(conditions, now=int(now.timestamp()))
    return first_objection(ask, view, only=AT_ACCEPTANCE)


def advance(
    orders: Sequence[PaperOrder],
    position: PaperPosition | None,
    bar: Bar,
    spread: float,
    spec: SymbolSpec,
    conditions: View = FREE,
) -> Advanced:
    """Advance the orders and the position by one bar; `spread` is in price units.

    `conditions` give what neither bar nor symbol do: trade mode, session, the account's limits, and
    the positions and trades of today that are not among these orders. Raises ValueError for an
    opening without stop or target.
    """
    if not orders and position is None:
        return NOTHING_LEFT
    market = _Market(bar, spread, spec)
    # A bar that began before the decision cannot fill it.
    left = [order for order in orders if order.decided_at > bar.time]
    later = {order.sid for order in left}
    refused: set[str] = set()
    opened = 0
    events: list[PaperEvent] = []
    for order in _due(orders, position, bar.time):
        # Its close is of a later bar, so the position is still there.
        if order.after in later:
            left.append(order)
            continue
        objection = market.refusal(order, position, conditions, refused, opened)
        if objection:
            refused.add(order.sid)
            events.append(objection)
        elif order.kind == "close" and position:
            events += market.close(order, position)
            position = None
        elif order.kind == "modify" and position:
            position, moved = market.move(order, position)
            events.append(moved)
        else:
            position, filled = market.open(order)
            events.append(filled)
            opened += 1
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
    """Advance by the bars after `cursor`, oldest first, each once; return the new cursor too."""
    events: list[PaperEvent] = []
    for bar in bars:
        # A bar that was lived through already must not fill anything twice.
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

    A close that finds no position yet is meant for an opening of the same bar. Stops are moved
    first: a close of the same bar ends the position whatever its stop is.
    """
    due = [order for order in orders if order.decided_at <= time]
    moves = [order for order in due if order.kind == "modify"]
    closes = [order for order in due if order.kind == "close"]
    opens = [order for order in due if order.kind == "open" and order.after is None]
    released = [order for order in due if order.kind == "open" and order.after is not None]
    return [*moves, *(closes + opens if position else opens + closes), *released]


class _Market(NamedTuple):
    """One bar as the two sides of the spread see it."""

    bar: Bar
    spread: float
    spec: SymbolSpec

    def refusal(
        self,
        order: PaperOrder,
        position: PaperPosition | None,
        conditions: View,
        refused: set[str],
        opened: int,
    ) -> PaperEvent | None:
        """Return the event of an order that is not executed; None when nothing stands against it.

        An opening goes with its close: where that was refused, the position is still there.
        """
        if order.after in refused:
            return PaperEvent("CANCELLED", order.sid, 0.0, self.bar.time, reason="close REJECTED")
        view = self._view(order, position, conditions, opened)
        reason = first_objection(_ask(order), view, only=_guards_of(order))
        if not reason and not self._taken(order, position):
            reason = BROKERS_NO
        if not reason:
            return None
        return PaperEvent("REJECTED", order.sid, 0.0, self.bar.time, reason=reason)

    def close(self, order: PaperOrder, position: PaperPosition) -> list[PaperEvent]:
        """Close the position at the open."""
        price = self._worse(CLOSES[position.side], self._exit_side(position.side, self.bar.open))
        filled = PaperEvent("FILLED", order.sid, price, self.bar.time, volume=position.lots)
        return [filled, self._ended("CLOSED", position, price)]

    def open(self, order: PaperOrder) -> tuple[PaperPosition, PaperEvent]:
        """Open at the open, as many lots as the market takes."""
        stop, target = _levels(order)
        quote = self._ask(self.bar.open) if order.side == "BUY" else self.bar.open
        price = self._worse(order.side, quote)
        lots = self._volume(order)
        kind: EventKind = "PARTIAL" if lots < order.lots else "FILLED"
        return (
            PaperPosition(order.sid, OPENS[order.side], lots, price, stop, target, self.bar.time),
            PaperEvent(kind, order.sid, price, self.bar.time, volume=lots),
        )

    def move(self, order: PaperOrder, position: PaperPosition) -> tuple[PaperPosition, PaperEvent]:
        """Move the stop of the position at the open."""
        stop = position.stop if order.stop is None else order.stop
        first = position.stop if position.moved_from is None else position.moved_from
        moved = replace(position, stop=stop, moved_from=first)
        return moved, PaperEvent("FILLED", order.sid, stop, self.bar.time)

    def end(self, position: PaperPosition) -> PaperEvent | None:
        """Return how the position ends inside this bar, the stop before the target; None: not."""
        opened, high, low = (
            self._exit_side(position.side, price)
            for price in (self.bar.open, self.bar.high, self.bar.low)
        )
        worst, best = (low, high) if position.side == "LONG" else (high, low)
        # The open comes first, then the stop: nobody knows the way of the price inside a bar.
        if _beyond(position.side, opened, position.stop):
            return self._stopped(position, opened)
        if _beyond(position.side, position.target, opened):
            return self._ended("TARGET", position, opened)
        if _beyond(position.side, worst, position.stop):
            return self._stopped(position, position.stop)
        if _beyond(position.side, position.target, best):
            return self._ended("TARGET", position, position.target)
        return None

    def _view(
        self, order: PaperOrder, position: PaperPosition | None, conditions: View, opened: int
    ) -> View:
        """Return what the guards may know at the open, after so many openings of this bar."""
        # A close finds its own position only: another opening may have taken its place.
        own = position if position and order.closes in (None, position.sid) else None
        return replace(
            conditions,
            bid=self.bar.open,
            ask=self._ask(self.bar.open),
            digits=self.spec.digits,
            stops_level=self.spec.stops_level,
            lot_min=self.spec.lot_min,
            lot_step=self.spec.lot_step,
            lot_max=self.spec.lot_max,
            positions=conditions.positions + (1 if position else 0),
            # A second opening of the same bar must meet the first in the limit of the day.
            trades_today=conditions.trades_today + opened,
            has_position=conditions.has_position or position is not None,
            is_open=own is not None,
            position_lots=own.lots if own else 0.0,
        )

    def _taken(self, order: PaperOrder, position: PaperPosition | None) -> bool:
        """Return whether a broker takes an order that the guards let pass.

        A stop must not be reached at the open, a move must bring it nearer.
        """
        if order.kind == "open":
            stop, _ = _levels(order)
            side = OPENS[order.side]
            opened = self._exit_side(side, self.bar.open)
            return self._volume(order) > 0 and not _beyond(side, opened, stop)
        if order.kind != "modify" or position is None:
            return True
        opened = self._exit_side(position.side, self.bar.open)
        if order.stop is None or _beyond(position.side, opened, order.stop):
            return False
        return gain(position.side, position.stop, order.stop) > 0

    def _volume(self, order: PaperOrder) -> float:
        """Return how many lots of an opening are filled, in whole steps."""
        # 0 means no limit.
        if not 0 < self.spec.fill_lots < order.lots:
            return order.lots
        steps = math.floor(self.spec.fill_lots / self.spec.lot_step + STEP_TOLERANCE)
        return round(steps * self.spec.lot_step, MONEY_DECIMALS)

    def _exit_side(self, side: PositionSide, bid: float) -> float:
        return bid if side == "LONG" else self._ask(bid)

    def _ask(self, bid: float) -> float:
        return round(bid + self.spread, MONEY_DECIMALS)

    def _worse(self, side: Side, price: float) -> float:
        """Return what an order of this side gets at a price, after slippage."""
        slip = self.spec.slippage if side == "BUY" else -self.spec.slippage
        return round(price + slip, MONEY_DECIMALS)

    def _stopped(self, position: PaperPosition, price: float) -> PaperEvent:
        return self._ended("STOPPED", position, self._worse(CLOSES[position.side], price))

    def _ended(self, kind: EventKind, position: PaperPosition, price: float) -> PaperEvent:
        won = gain(position.side, position.entry, price)
        first = position.stop if position.moved_from is None else position.moved_from
        risk = planned_risk(first, position.target)
        money = worth(won, position.lots, self.spec)
        return PaperEvent(
            kind,
            position.sid,
            price,
            self.bar.time,
            round(money, MONEY_DECIMALS),
            round(won / risk, MONEY_DECIMALS) if risk else 0.0,
            position.lots,
        )


def _guards_of(order: PaperOrder) -> tuple[str, ...]:
    """Return the guards of the fill, without those that this order sets no limit for."""
    free = set() if order.max_spread_pts is not None else {"spread"}
    if order.max_dev_pts is None or order.entry is None:
        free.add("deviation")
    return tuple(reason for reason in AT_FILL if reason not in free)


def _ask(order: PaperOrder) -> GuardRequest:
    """Return the order as the guards see it."""
    stop, target = _levels(order) if order.kind == "open" else (0.0, 0.0)
    return GuardRequest(
        order.kind,
        order.side,
        order.lots,
        order.entry or 0.0,
        stop,
        target,
        max_spread_pts=order.max_spread_pts or 0,
        max_dev_pts=order.max_dev_pts or 0,
    )


def _levels(order: PaperOrder) -> tuple[float, float]:
    if order.stop is None or order.target is None:
        raise ValueError(f"the opening {order.sid} has no stop or no target")
    return order.stop, order.target


def _beyond(side: PositionSide, price: float, border: float) -> bool:
    """Return whether a price is at the border or on its losing side."""
    return price <= border if side == "LONG" else price >= border

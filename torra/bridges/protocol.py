"""The interface of every bridge, and the values that cross it: orders in, reports out.

A bridge is the way to one market account. `submit` may be called again with the same order after
any crash and leads to one order at most. `poll` returns what became of an order as reports, and
repeats each one until it is settled. A bridge that cannot reach its market raises
BridgeUnavailable. A bridge that does not know answers None or UNKNOWN, never "flat" and never
"rejected".

`books` returns the broker's positions and deals as of a moment; `torra.trading.reconciliation`
compares them with the database. The states of a signal are those of torra.verdict.signal_states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final, Literal, Protocol

from torra.verdict import order_seal
from torra.verdict.risk_engine import DenyReason, Kind, PositionSide, Side, TradingState
from torra.verdict.signal_states import EXECUTED

OFFSET_TOLERANCE: Final = 5.0
"""Seconds by which the clocks of the two sides may differ."""

ALIVE_SECONDS: Final = 5.0
"""Seconds without an advance of its heartbeat after which a peer counts as dead."""


LOOK_SECONDS: Final = 3.0
"""Seconds for which a look at the market is fresh enough to send on.

After a longer stand-still, for instance on a computer that slept, the market may have moved, the
order may have expired, and where the lock's file was deleted another desk may have booked its end.
"""

STOOD_STILL: Final = "this process stood still in the middle of sending; it looks anew"

QUOTE_SECONDS: Final = 30.0
"""An older quote is not the price of now."""


Number = float | Decimal


class Recall(StrEnum):
    """What became of an attempt to take an order back."""

    RECALLED = "RECALLED"
    """The other side can not execute it any more."""
    NEVER_SENT = "NEVER_SENT"
    """It has never been handed over."""
    TAKEN = "TAKEN"
    """The other side has it, or may have it: its report decides."""


@dataclass(frozen=True, slots=True)
class Order:
    """A signal as a bridge sends it. Prices are whole ticks, lots whole steps, times UTC.

    `closes` is the id of the opening whose position a close ends, or a `modify` moves the stop of,
    `ticket` that position's number at the broker ("" when it is not known). Of a `modify` only
    `stop` counts; the target stays as it is at the broker. `origin` and `seal` are those of its
    decision (torra.verdict.order_seal). Distances are in points (10 ** -digits).
    """

    sid: str
    seq: int
    kind: Kind
    instance: str
    symbol: str
    broker_symbol: str
    timeframe: str
    bar_time: datetime
    side: Side
    lots: float
    entry: float
    stop: float
    target: float
    created: datetime
    expires: datetime
    magic: int
    max_spread_pts: int
    max_dev_pts: int
    digits: int
    closes: str = ""
    ticket: str = ""
    origin: str = ""
    seal: str = ""

    @property
    def as_decided(self) -> bool:
        """Whether the order is the one that was decided: its seal fits."""
        return self.seal == self.computed_seal

    @property
    def computed_seal(self) -> str:
        """The seal of what the order says now."""
        return order_seal.seal({name: getattr(self, name) for name in order_seal.FIELDS})


Status = Literal[
    "CLAIMED", "PLACED", "FILLED", "PARTIAL", "REJECTED", "EXPIRED", "UNKNOWN", "UNKNOWN_NOT_SENT"
]


@dataclass(frozen=True, slots=True)
class OrderReport:
    """What became of one order, as the other side reports it.

    `reason` is the guard that refused it (torra.bridges.guards) or "retcode"; `price` and `volume`
    are those of the execution; `position` is the broker's number of the position; `adopted` means
    that the order was found at the broker rather than sent now.
    """

    sid: str
    status: Status
    at: datetime
    reason: str = ""
    retcode: int = 0
    ticket: str = ""
    deal: str = ""
    position: str = ""
    price: float = 0.0
    volume: float = 0.0
    adopted: bool = False

    @property
    def detail(self) -> str:
        """What a signal's row says of it: its reason, and the broker's code of a refusal."""
        if self.retcode and self.status not in EXECUTED:
            return f"{self.reason or 'retcode'} {self.retcode}".strip()
        return self.reason or ("adopted" if self.adopted else "")


@dataclass(frozen=True, slots=True)
class Health:
    """Whether orders may be handed over now; `deny` and a sentence say why not.

    `facts` are shown as they are: account, offset, version, age of the heartbeat and the like.
    """

    deny: DenyReason | None
    detail: str
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing stands in the way."""
        return self.deny is None

    @property
    def clocks_agree(self) -> bool:
        """Whether the clocks of the two sides do not stand in the way."""
        return self.deny is not DenyReason.CLOCK_SKEW


@dataclass(frozen=True, slots=True)
class BrokerPosition:
    """One open position as the broker reports it; the broker may have changed `comment`."""

    ticket: str
    broker_symbol: str
    side: PositionSide
    lots: float
    entry: float
    stop: float
    target: float
    magic: int
    comment: str
    profit: float
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class BrokerDeal:
    """One execution of the account's history; `entry` says whether it opened or closed.

    `profit` includes swap and commission, in account currency; `reason` is the broker's word for
    it: sl, tp, stop_out, expert, client (by hand) or "".
    """

    deal: str
    position: str
    broker_symbol: str
    entry: Literal["in", "out"]
    side: Side
    lots: float
    price: float
    profit: float
    magic: int
    comment: str
    time: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BrokerBooks:
    """The broker's truth as of `at`: every open position, and the deals since `since`."""

    positions: tuple[BrokerPosition, ...]
    deals: tuple[BrokerDeal, ...]
    at: datetime
    since: datetime


@dataclass(frozen=True, slots=True)
class Quote:
    """The prices of now; `at` is when they were read, UTC."""

    bid: float
    ask: float
    at: datetime


@dataclass(frozen=True, slots=True)
class SymbolTerms:
    """How the broker quotes and trades one symbol, in its own words."""

    broker_symbol: str
    digits: int
    tick_size: float
    tick_value: float
    contract_size: float
    lot_min: float
    lot_step: float
    lot_max: float
    stops_level: int
    trade_mode: Literal["disabled", "long_only", "short_only", "close_only", "full"]
    currency: str = ""
    quote: Quote | None = None


class Bridge(Protocol):
    """The way to one account."""

    @property
    def name(self) -> str:
        """What pages and messages call it, such as "torra_files main"."""
        ...

    def submit(self, order: Order) -> None:
        """Hand an order over; the same id again changes nothing. Raises BridgeUnavailable."""
        ...

    def recall(self, sid: str, seq: int) -> Recall:
        """Take an order back; raises BridgeUnavailable when that cannot even be tried."""
        ...

    def poll(self) -> Sequence[OrderReport]:
        """Return every report that is not settled yet, oldest first; never raises."""
        ...

    def settle(self, report: OrderReport) -> None:
        """Forget a report because it is committed. Safe to repeat; never raises."""
        ...

    def health(self) -> Health:
        """Return whether orders may be handed over now; never raises."""
        ...

    def books(self) -> BrokerBooks | None:
        """Return positions and deals; None when they are not known. Never raises."""
        ...

    def terms(self) -> Mapping[str, SymbolTerms]:
        """Return what the broker trades, by broker symbol; empty when it is not known."""
        ...

    def heartbeat(self, state: TradingState) -> None:
        """Tell the other side that the desk lives, and its trading state. Never raises."""
        ...

    def close(self) -> None:
        """Release what is held; orders and reports stay where they are."""
        ...

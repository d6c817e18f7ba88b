"""Turns a verdict into an action: what is asked for, and every check before an opening is sent.

Everything here is pure and gives the same answer twice. Denying is a value: `review` returns HOLD
with its reasons, and never raises over a bad number, a zero ATR or an account that is full. Veto,
halt and risk act per leg: they take openings away, and only HALTED takes a close away. Every limit
can shrink or deny an opening, and none can raise one. `review` plans an opening and then checks its
own plan like anybody's, with `check`.

An opening that would have gone out but for the caps of messages and of repeated openings asks the
caller to halt the desk. A halted desk sends nothing, so the close of the same action stays behind
too.

Prices are torra.verdict.order_levels' part, lots torra.verdict.position_size's, checks
torra.verdict.ticket_checks'. `signal_bridge` writes the drafts down; the caller knows account,
clock and market.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol

from torra.config import Profile, SymbolSpec
from torra.verdict.order_levels import LARGEST_PRICE, STOP_ATR, TARGET_R, Levels, Side, levels
from torra.verdict.position_size import lot_denial, notional, size
from torra.verdict.ticket_checks import Account, Ticket, check, in_order, objections
from torra.words.deny_reasons import DenyReason

__all__ = [
    "LARGEST_PRICE",
    "STOP_ATR",
    "TARGET_R",
    "Account",
    "DenyReason",
    "Levels",
    "Side",
    "Ticket",
    "check",
    "levels",
    "lot_denial",
    "notional",
    "size",
]
"""What other modules of this room have, and everybody takes from here."""

PositionSide = Literal["LONG", "SHORT"]
Kind = Literal["open", "close", "modify"]
"""What an order does: `modify` moves the stop of a position."""
ActionName = Literal["OPEN_BUY", "OPEN_SELL", "CLOSE", "REVERSE", "HOLD"]
TradingState = Literal["ACTIVE", "REDUCING", "HALTED"]

CLOSING: Final = "CLOSING"
"""`Position.state` while a close of it is under way; any other state is that of its signal."""

OPENS: Final[Mapping[Side, PositionSide]] = {"BUY": "LONG", "SELL": "SHORT"}
CLOSES: Final[Mapping[PositionSide, Side]] = {"LONG": "SELL", "SHORT": "BUY"}

HALTING: Final = (DenyReason.REPEATED_EXECUTION, DenyReason.MESSAGE_RATE)
"""Reasons that halt the desk (RTS 6 Art. 15), the first one to be named first."""


class Holding(Protocol):
    """What of a position decides which orders a verdict asks for."""

    @property
    def side(self) -> PositionSide:
        """Which side it is on."""
        ...

    @property
    def state(self) -> str:
        """CLOSING, or the state of its signal."""
        ...


class OpenSide(NamedTuple):
    """That much of a position, and no more."""

    side: PositionSide
    state: str


@dataclass(frozen=True, slots=True)
class Position:
    """An open position, or an opening that is under way."""

    instance: str
    symbol: str
    side: PositionSide
    lots: float
    entry: float
    stop: float
    target: float
    opened_at: datetime
    signal_id: str
    state: str
    moved_from: float | None = None
    """The stop that was decided, where a person has moved it since."""

    @property
    def planned_stop(self) -> float:
        """The stop that was decided: one R is measured from it."""
        return self.stop if self.moved_from is None else self.moved_from


@dataclass(frozen=True, slots=True)
class SignalDraft:
    """A signal to be written; `side` is that of the order, so SELL opens a short or closes a long.

    `closes` names the signal of a position: a close closes it, an opening waits until it is closed.
    """

    kind: Kind
    side: Side
    lots: float
    levels: Levels | None = None
    closes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A verdict, and what is known of the opening that it asks for; see `Ticket` for the rest.

    `price` is where the opening would enter, `last_price` the market's when that is another one.
    `multiplier`, in [0, 1], scales the size. `declined`: the trader would not make the opening.
    """

    verdict: str
    price: float
    atr: float
    multiplier: float
    veto: bool
    opening_stands: bool
    last_price: float | None = None
    bar_age: float = 0.0
    score_age: float = 0.0
    duplicate: bool = False
    declined: bool = False


class Leg(NamedTuple):
    """One order of an intent."""

    kind: Kind
    side: Side


class Intent(NamedTuple):
    """What verdict and position ask for, before any check; `reason` is a word for the record."""

    name: ActionName
    legs: tuple[Leg, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Action:
    """The action: its name, one word why, the signals to write, every reason that denied a leg.

    `reason` of HOLD is THRESHOLD (the verdict is HOLD), POSITION_HELD (the position stays) or the
    first deny reason. A CLOSE that was a REVERSE carries the reason that took its opening away.
    `halt` is set when nothing but one of HALTING denied an opening: the caller halts the desk for
    that reason, in the same transaction. Such an action has no drafts.
    """

    name: ActionName
    reason: str
    drafts: tuple[SignalDraft, ...] = ()
    denied: tuple[DenyReason, ...] = ()
    halt: DenyReason | None = None


def review(
    decision: Decision,
    position: Position | None,
    account: Account,
    spec: SymbolSpec,
    profile: Profile,
) -> Action:
    """Return the action for a verdict: the intent, less every leg that a check denies.

    The figures of `account` are the whole desk's and include `position`. Every check is asked at
    the size sent and at the full size, so that a lower multiplier never lets an opening through.
    """
    wanted = intent(decision.verdict, position, profile.on_opposite)
    if wanted.name == "HOLD":
        # THRESHOLD and POSITION_HELD are no deny reasons.
        reason = DenyReason.__members__.get(wanted.reason)
        return Action("HOLD", wanted.reason, denied=(reason,) if reason else ())
    # An unknown word counts as halted: a broken state must never trade.
    halted = account.trading_state not in ("ACTIVE", "REDUCING")
    opening = next((leg.side for leg in wanted.legs if leg.kind == "open"), None)
    leaving = position if any(leg.kind == "close" for leg in wanted.legs) else None
    closing = (_close(leaving),) if leaving and not halted else ()
    if opening is None:
        if halted:
            return _hold((DenyReason.TRADING_HALTED,))
        return Action(wanted.name, wanted.reason, closing)
    ticket = Ticket(
        side=opening,
        # NaN until `_plan` fills in levels and lots: a ticket without them must not pass a check.
        lots=math.nan,
        levels=Levels(math.nan, math.nan, math.nan, decision.atr),
        price=decision.price if decision.last_price is None else decision.last_price,
        bar_age=decision.bar_age,
        score_age=decision.score_age,
        veto=decision.veto,
        opening_stands=decision.opening_stands,
        duplicate=decision.duplicate,
        declined=decision.declined,
    )
    # The close goes out first: the opening meets the account that it leaves behind.
    if leaving:
        account = _without(leaving, account, spec)
    planned, denied = _plan(ticket, decision, account, spec, profile)
    if denied:
        return _hold(denied, closing)
    after = leaving.signal_id if leaving else None
    draft = SignalDraft("open", opening, planned.lots, planned.levels, closes=after)
    return Action(wanted.name, wanted.reason, (*closing, draft))


def intent(verdict: str, position: Holding | None, on_opposite: str) -> Intent:
    """Return what a verdict asks for, given the position; REVERSE is a close, then an opening."""
    if verdict not in ("BUY", "SELL"):
        return Intent("HOLD", (), "THRESHOLD")
    side: Side = "BUY" if verdict == "BUY" else "SELL"
    opening = Leg("open", side)
    if position is None:
        return Intent("OPEN_BUY" if side == "BUY" else "OPEN_SELL", (opening,), "VERDICT")
    if position.side == OPENS[side] or on_opposite == "hold":
        return Intent("HOLD", (), "POSITION_HELD")
    if position.state == CLOSING:
        return Intent("HOLD", (), DenyReason.DUPLICATE_SIGNAL.value)
    closing = Leg("close", CLOSES[position.side])
    if on_opposite == "reverse":
        return Intent("REVERSE", (closing, opening), "OPPOSITE_VERDICT")
    return Intent("CLOSE", (closing,), "OPPOSITE_VERDICT")


# --- details: the plan ----------------------------------------------------------------------------


def _plan(
    ticket: Ticket, decision: Decision, account: Account, spec: SymbolSpec, profile: Profile
) -> tuple[Ticket, tuple[DenyReason, ...]]:
    """Return the ticket with levels and lots, and every reason against it."""
    prices = levels(ticket.side, decision.price, ticket.levels.atr, spec)
    if isinstance(prices, DenyReason):
        return ticket, in_order((prices, *objections(ticket, account, spec, profile)))
    full = replace(ticket, levels=prices, lots=size(prices, spec, profile.risk))
    sent = replace(full, lots=size(prices, spec, profile.risk, decision.multiplier))
    # At the full size too, so that a lower multiplier never lets an opening through.
    looks = (sent,) if sent.lots == full.lots else (sent, full)
    return sent, in_order(reason for one in looks for reason in check(one, account, spec, profile))


def _without(leaving: Position, account: Account, spec: SymbolSpec) -> Account:
    """Return the account as it is after the closing leg of the same action."""
    left = account.gross_notional - notional(leaving.lots, leaving.entry, spec)
    return replace(
        account,
        positions_open=account.positions_open - 1,
        # Rounding may leave less than nothing, which would count as a broken account; one that was
        # negative before stays so and is denied.
        gross_notional=0.0 if account.gross_notional >= 0 > left else left,
        signals_last_hour=account.signals_last_hour + 1,
    )


def _hold(denied: Sequence[DenyReason], closing: tuple[SignalDraft, ...] = ()) -> Action:
    halting = [reason for reason in HALTING if reason in denied]
    # With any other reason the opening would not have gone out: that is no runaway.
    if halting and len(halting) == len(denied):
        return Action("HOLD", halting[0].value, (), tuple(denied), halting[0])
    return Action("CLOSE" if closing else "HOLD", denied[0].value, closing, tuple(denied))


def _close(position: Position) -> SignalDraft:
    return SignalDraft("close", CLOSES[position.side], position.lots, closes=position.signal_id)

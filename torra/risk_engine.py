"""From verdict to action: intent, levels, size and the checks before a trade.

Everything here is pure and gives the same answer twice. Denying is a value: `review` returns HOLD
with its reasons and never raises over a bad number, a zero ATR or an account that is full. Veto,
halt and risk act per leg: they take openings away, and only HALTED takes a close away. Levels and
size are the code's own, never a model's; every limit can shrink a size and none can raise it.
Prices and lots are computed as exact fractions of what the profile says in decimals, so that no
binary rounding lifts the loss at the stop above its budget. Writing the drafts down is left to
`signal_bridge`, knowing the account to the caller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from torra.config import Profile, Risk, SymbolSpec

Side = Literal["BUY", "SELL"]
PositionSide = Literal["LONG", "SHORT"]
Kind = Literal["open", "close"]
ActionName = Literal["OPEN_BUY", "OPEN_SELL", "CLOSE", "REVERSE", "HOLD"]
TradingState = Literal["ACTIVE", "REDUCING", "HALTED"]

STOP_ATR: Final = 2
"""The stop lies this many ATR(14) from the entry."""

TARGET_R: Final = 2
"""The target lies this many times the stop distance from the entry (document 000)."""

LARGEST_PRICE: Final = 10**12
"""A price above this is a broken number: a double could no longer hold its ticks."""

CLOSING: Final = "CLOSING"
"""`Position.state` while a close of it is under way; any other state is that of its signal."""

OPENS: Final[Mapping[Side, PositionSide]] = {"BUY": "LONG", "SELL": "SHORT"}
CLOSES: Final[Mapping[PositionSide, Side]] = {"LONG": "SELL", "SHORT": "BUY"}


class DenyReason(StrEnum):
    """Why an order is not sent (docs/deny_reasons.md, which `deny_table` writes)."""

    TRADING_HALTED = "TRADING_HALTED"
    TRADING_REDUCING = "TRADING_REDUCING"
    DUPLICATE_SIGNAL = "DUPLICATE_SIGNAL"
    COOLDOWN = "COOLDOWN"
    STALE_BAR = "STALE_BAR"
    STALE_SCORE = "STALE_SCORE"
    CLOCK_SKEW = "CLOCK_SKEW"
    MARKET_CLOSED = "MARKET_CLOSED"
    BAD_NUMBER = "BAD_NUMBER"
    PRICE_COLLAR = "PRICE_COLLAR"
    STOP_WRONG_SIDE = "STOP_WRONG_SIDE"
    STOP_TOO_CLOSE = "STOP_TOO_CLOSE"
    STOP_TOO_FAR = "STOP_TOO_FAR"
    TARGET_WRONG_SIDE = "TARGET_WRONG_SIDE"
    SIZE_ZERO = "SIZE_ZERO"
    LOT_BELOW_MIN = "LOT_BELOW_MIN"
    LOT_ABOVE_MAX = "LOT_ABOVE_MAX"
    LOT_STEP = "LOT_STEP"
    RISK_PER_TRADE = "RISK_PER_TRADE"
    MAX_NOTIONAL = "MAX_NOTIONAL"
    EXPOSURE_CAP = "EXPOSURE_CAP"
    MARGIN = "MARGIN"
    MAX_POSITIONS = "MAX_POSITIONS"
    DAILY_LOSS_CAP = "DAILY_LOSS_CAP"
    MESSAGE_RATE = "MESSAGE_RATE"
    REPEATED_EXECUTION = "REPEATED_EXECUTION"
    NEGATIVE_EV = "NEGATIVE_EV"
    GATE_VETO = "GATE_VETO"
    GATE_CANNOT_OPEN = "GATE_CANNOT_OPEN"
    SPREAD = "SPREAD"
    BRIDGE_DEAD = "BRIDGE_DEAD"
    VERSION_MISMATCH = "VERSION_MISMATCH"
    SIGNAL_EXPIRED = "SIGNAL_EXPIRED"


class Denial(NamedTuple):
    """A deny reason's row in the docs; `given_by` is empty when this version never gives it."""

    meaning: str
    source: str
    given_by: str = ""


_ENGINE: Final = "risk_engine"
_SECOND_LOOK: Final = "risk_engine, a second look at its own size"
_R = DenyReason
DENIALS: Final[Mapping[DenyReason, Denial]] = {
    _R.TRADING_HALTED: Denial(
        "the desk is halted: nothing opens and nothing closes",
        "RTS 6 Art. 12",
        "risk_engine, signal_bridge",
    ),
    _R.TRADING_REDUCING: Denial("the desk only closes", "nautilus", _ENGINE),
    _R.DUPLICATE_SIGNAL: Denial(
        "the position is being closed already", "15c3-5, duplicates", _ENGINE
    ),
    _R.COOLDOWN: Denial("too soon after the last trade", "freqtrade"),
    _R.STALE_BAR: Denial("the newest bar is too old", "freqtrade"),
    _R.STALE_SCORE: Denial("the verdict is too old", "freqtrade"),
    _R.CLOCK_SKEW: Denial("the clocks of the two sides differ", "freqtrade"),
    _R.MARKET_CLOSED: Denial("the symbol is not traded now", "freqtrade"),
    _R.BAD_NUMBER: Denial(
        "a price, an ATR, a level or an account figure is not a usable number", "nautilus", _ENGINE
    ),
    _R.PRICE_COLLAR: Denial("the entry is too far from the last price", "RTS 6 Art. 15(1)(a)"),
    _R.STOP_WRONG_SIDE: Denial("the stop is on the wrong side of the entry", "document 000"),
    _R.STOP_TOO_CLOSE: Denial(
        "the ATR is below one tick, or the stop nearer than spread + one tick",
        "document 000",
        _ENGINE,
    ),
    _R.STOP_TOO_FAR: Denial("the stop is more than 4 ATR away", "document 000"),
    _R.TARGET_WRONG_SIDE: Denial("the target is on the wrong side of the entry", "document 000"),
    _R.SIZE_ZERO: Denial(
        "risk, notional and lot limits, the gate's multiplier and the desk's conviction leave less "
        "than the smallest order",
        "document 000",
        _ENGINE,
    ),
    _R.LOT_BELOW_MIN: Denial("below the symbol's smallest order", "broker", _SECOND_LOOK),
    _R.LOT_ABOVE_MAX: Denial("above the symbol's largest order", "broker", _SECOND_LOOK),
    _R.LOT_STEP: Denial("no multiple of the symbol's lot step", "broker", _SECOND_LOOK),
    _R.RISK_PER_TRADE: Denial("the loss at the stop is above its budget", "document 000"),
    _R.MAX_NOTIONAL: Denial("one position is worth too much", "document 000"),
    _R.EXPOSURE_CAP: Denial(
        "with it the desk's gross notional is above exposure_cap_pct or account_leverage_cap",
        "document 000; 15c3-5, capital",
        _ENGINE,
    ),
    _R.MARGIN: Denial("the account lacks the margin", "document 000"),
    _R.MAX_POSITIONS: Denial("the desk holds max_positions already", "document 000", _ENGINE),
    _R.DAILY_LOSS_CAP: Denial(
        "the UTC day has lost daily_loss_cap_pct, or this trade alone could",
        "document 000",
        _ENGINE,
    ),
    _R.MESSAGE_RATE: Denial(
        "the instance has sent its signals of the hour; closes still pass",
        "RTS 6 Art. 15(1)(d)",
        _ENGINE,
    ),
    _R.REPEATED_EXECUTION: Denial(
        "the same opening again and again; halts the desk", "RTS 6 Art. 15(3)"
    ),
    _R.NEGATIVE_EV: Denial("its expected value is negative", "document 003"),
    _R.GATE_VETO: Denial(
        "the gate vetoes the opening, or a veto of this side still holds",
        "document 001; docs/debate.md",
        _ENGINE,
    ),
    _R.GATE_CANNOT_OPEN: Denial(
        "the opening would stand only because the gate lowered an adjustment",
        "design, section 5",
        _ENGINE,
    ),
    _R.SPREAD: Denial("the spread is too wide at the moment of sending", "design, section 8"),
    _R.BRIDGE_DEAD: Denial("the other side gives no sign of life", "SEC on Knight"),
    _R.VERSION_MISMATCH: Denial("the two sides speak different versions", "SEC on Knight"),
    _R.SIGNAL_EXPIRED: Denial(
        "the signal was not taken before its expiry", "cancel on disconnect", "signal_bridge"
    ),
}
"""What every deny reason means."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The prices of an opening, each a whole number of ticks; `atr` is the one they came from."""

    entry: float
    stop: float
    target: float
    atr: float


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


class Leg(NamedTuple):
    """One order of an intent."""

    kind: Kind
    side: Side


class Intent(NamedTuple):
    """What verdict and position ask for, before any check; `reason` is one word for the record."""

    name: ActionName
    legs: tuple[Leg, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Action:
    """What is done: its name, one word why, the signals to write, every reason that denied a leg.

    `reason` of HOLD is THRESHOLD (the verdict is HOLD), POSITION_HELD (the position stays) or the
    first deny reason. A CLOSE that was a REVERSE carries the reason that took its opening away.
    """

    name: ActionName
    reason: str
    drafts: tuple[SignalDraft, ...] = ()
    denied: tuple[DenyReason, ...] = ()


def review(
    *,
    verdict: str,
    position: Position | None,
    positions_open: int,
    gross_notional: float,
    day_loss: float,
    price: float,
    atr: float,
    spec: SymbolSpec,
    profile: Profile,
    trading_state: str,
    veto: bool,
    opening_stands: bool,
    multiplier: float,
    signals_last_hour: int = 0,
) -> Action:
    """Return the action for a verdict: the intent, less every leg that a check denies.

    `positions_open` and `gross_notional` (the sum of `notional` at entry prices) are the whole
    desk's and include `position`; `day_loss` is this UTC day's loss, in account currency, a gain
    negative; `signals_last_hour` counts the instance's own signals. `veto` is the gate's or the
    latch's. `multiplier`, in [0, 1], scales the size; the limits of the account are checked at the
    full size, so that a lower multiplier never lets an opening through. A trading state other than
    ACTIVE and REDUCING counts as HALTED.
    """
    wanted = intent(verdict, position, profile.on_opposite)
    if wanted.name == "HOLD":
        reason = DenyReason.__members__.get(wanted.reason)
        return Action("HOLD", wanted.reason, denied=(reason,) if reason else ())
    halted = trading_state not in ("ACTIVE", "REDUCING")
    opening = next((leg.side for leg in wanted.legs if leg.kind == "open"), None)
    leaving = position if len(wanted.legs) > (opening is not None) else None
    closing = (_close(leaving),) if leaving and not halted else ()
    if opening is None:
        if halted:
            return _held((DenyReason.TRADING_HALTED,))
        return Action(wanted.name, wanted.reason, closing)
    gate = {
        DenyReason.TRADING_HALTED: halted,
        DenyReason.TRADING_REDUCING: trading_state == "REDUCING",
        DenyReason.GATE_VETO: veto,
        DenyReason.GATE_CANNOT_OPEN: not opening_stands,
    }
    account = _Account(
        positions_open - (1 if leaving else 0),
        gross_notional - (notional(leaving.lots, leaving.entry, spec) if leaving else 0.0),
        day_loss,
        signals_last_hour + (1 if leaving else 0),
    )
    plan = _plan(opening, (price, atr), spec, profile.risk, multiplier=multiplier, account=account)
    denied = (*(name for name, holds in gate.items() if holds), *plan.denied)
    if denied:
        return _held(denied, closing)
    after = leaving.signal_id if leaving else None
    draft = SignalDraft("open", opening, plan.lots, plan.levels, closes=after)
    return Action(wanted.name, wanted.reason, (*closing, draft))


def intent(verdict: str, position: Position | None, on_opposite: str) -> Intent:
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


def levels(side: str, price: float, atr: float, spec: SymbolSpec) -> Levels | DenyReason:
    """Return entry, stop (2 ATR away) and target (2R away) in whole ticks, or why there are none.

    BAD_NUMBER: the price, the ATR or a level is not a positive number. STOP_TOO_CLOSE: the ATR is
    below one tick, or the stop nearer than spread and one tick.
    """
    if not all(math.isfinite(number) and number > 0 for number in (price, atr)):
        return DenyReason.BAD_NUMBER
    tick = _exact(spec.tick_size)
    distance = round(STOP_ATR * _exact(atr) / tick)
    if _exact(atr) < tick or distance * tick < _exact(spec.spread) + tick:
        return DenyReason.STOP_TOO_CLOSE
    entry = round(_exact(price) / tick)
    towards = 1 if side == "BUY" else -1
    prices = (entry, entry - towards * distance, entry + towards * TARGET_R * distance)
    if min(prices) <= 0 or max(prices) * tick > LARGEST_PRICE:
        return DenyReason.BAD_NUMBER
    at_entry, at_stop, at_target = (float(ticks * tick) for ticks in prices)
    return Levels(at_entry, at_stop, at_target, atr)


def size(levels: Levels, spec: SymbolSpec, risk: Risk, multiplier: float = 1.0) -> float:
    """Return the lots of an opening, 0.0 when the account is too small for one.

    floor((capital x risk_per_trade_pct / 100) / value of the stop distance) in steps of the symbol
    (document 000, Stage 7), at most `max_notional_pct` of the capital, at most `lot_max`. The
    multiplier, cut to [0, 1], scales what is left before the floor; NaN counts as zero.
    """
    scale = max(0.0, min(multiplier, 1.0)) if not math.isnan(multiplier) else 0.0
    distance = _distance(levels)
    if not distance:
        return 0.0
    allowed = min(
        _percent(risk.capital, risk.risk_per_trade_pct) / (distance * _value_of_one(spec)),
        _percent(risk.capital, risk.max_notional_pct)
        / (_exact(levels.entry) * _value_of_one(spec)),
        _exact(spec.lot_max),
    )
    step = _exact(spec.lot_step)
    lots = step * (allowed * _exact(scale) // step)
    return float(lots) if lots >= _exact(spec.lot_min) else 0.0


def notional(lots: float, price: float, spec: SymbolSpec) -> float:
    """Return what a position is worth in account currency; NaN for a broken number."""
    if not (math.isfinite(lots) and math.isfinite(price)):
        return math.nan
    return float(_exact(lots) * _exact(price) * _value_of_one(spec))


def lot_denial(lots: float, spec: SymbolSpec) -> DenyReason | None:
    """Return why a symbol's lot rules refuse a size; None when they accept it."""
    if not math.isfinite(lots):
        return DenyReason.BAD_NUMBER
    exact = _exact(lots)
    if exact <= 0:
        return DenyReason.SIZE_ZERO
    if exact < _exact(spec.lot_min):
        return DenyReason.LOT_BELOW_MIN
    if exact > _exact(spec.lot_max):
        return DenyReason.LOT_ABOVE_MAX
    return DenyReason.LOT_STEP if exact % _exact(spec.lot_step) else None


def deny_table() -> str:
    """Return docs/deny_reasons.md."""
    rows = "\n".join(
        f"| `{reason}` | {row.meaning} | {row.source} | {row.given_by or '-'} |"
        for reason, row in DENIALS.items()
    )
    return _DENY_PAGE.format(rows=rows)


_DENY_PAGE: Final = """\
# Deny reasons

Why Torra does not send an order. A reason is a value that is stored with the tick; none of them is
an error. A veto, REDUCING and the limits take openings away, never a close; only HALTED stops both.
Where several apply, all are stored, and the first of them is the reason that the pages show.

The last column names the part that gives the reason in this version; "-" marks a name reserved for
a later one: no tick of this version carries it.

| reason | meaning | source | given by |
|---|---|---|---|
{rows}

This page is written by `deny_table` in torra/risk_engine.py from the enum `DenyReason`; a test
compares the two.
"""


class _Account(NamedTuple):
    """The desk as an opening would meet it, after the closing leg of the same action."""

    positions: int
    gross: float
    day_loss: float
    signals: int


class _Plan(NamedTuple):
    levels: Levels | None
    lots: float
    denied: tuple[DenyReason, ...]


def _plan(
    side: Side,
    market: tuple[float, float],
    spec: SymbolSpec,
    risk: Risk,
    *,
    multiplier: float,
    account: _Account,
) -> _Plan:
    price, atr = market
    found = levels(side, price, atr, spec)
    if isinstance(found, DenyReason):
        return _Plan(None, 0.0, (found, *_limits(account, risk, Fraction(0), Fraction(0))))
    full = size(found, spec, risk)
    lots = size(found, spec, risk, multiplier)
    worth = _value_of_one(spec) * _exact(full)
    loss, added = _distance(found) * worth, _exact(found.entry) * worth
    refused = lot_denial(lots, spec)
    denied = _limits(account, risk, added, loss)
    return _Plan(found, lots, (refused, *denied) if refused else denied)


def _limits(
    account: _Account, risk: Risk, added: Fraction, loss: Fraction
) -> tuple[DenyReason, ...]:
    if not (math.isfinite(account.gross) and math.isfinite(account.day_loss)):
        return (DenyReason.BAD_NUMBER,)
    capital = _exact(risk.capital)
    ceiling = min(
        _percent(risk.capital, risk.exposure_cap_pct), capital * _exact(risk.account_leverage_cap)
    )
    daily = _percent(risk.capital, risk.daily_loss_cap_pct)
    checks = {
        DenyReason.MAX_POSITIONS: account.positions >= risk.max_positions,
        DenyReason.EXPOSURE_CAP: _exact(account.gross) + added > ceiling,
        DenyReason.DAILY_LOSS_CAP: _exact(account.day_loss) >= daily or loss > daily,
        DenyReason.MESSAGE_RATE: account.signals >= risk.max_signals_per_hour,
    }
    return tuple(reason for reason, broken in checks.items() if broken)


def _held(denied: Iterable[DenyReason], closing: tuple[SignalDraft, ...] = ()) -> Action:
    reasons = tuple(dict.fromkeys(denied))
    return Action("CLOSE" if closing else "HOLD", reasons[0].value, closing, reasons)


def _close(position: Position) -> SignalDraft:
    return SignalDraft("close", CLOSES[position.side], position.lots, closes=position.signal_id)


def _distance(levels: Levels) -> Fraction:
    return abs(_exact(levels.entry) - _exact(levels.stop))


def _exact(number: float) -> Fraction:
    """Return the decimal number that a float was written as: 0.1 is one tenth."""
    return Fraction(repr(float(number)))


def _percent(amount: float, percent: float) -> Fraction:
    return _exact(amount) * _exact(percent) / 100


def _value_of_one(spec: SymbolSpec) -> Fraction:
    """Return what a move by one whole price unit is worth for one lot, in account currency."""
    return _exact(spec.tick_value) / _exact(spec.tick_size)

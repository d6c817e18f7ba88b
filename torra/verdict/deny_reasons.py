"""Every reason for which an order is not sent: its meaning, its source and the part that gives it.

Words only: a deny reason is a value that is stored with a tick, a signal or a proposal, never an
exception. docs/deny_reasons.md and docs/guards.md are written from these tables. The parts that
give the reasons decide what is denied, and when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, Protocol


class DenyReason(StrEnum):
    """Why an order is not sent (docs/deny_reasons.md), in the order in which reasons are told."""

    TRADING_HALTED = "TRADING_HALTED"
    TRADING_REDUCING = "TRADING_REDUCING"
    GATE_VETO = "GATE_VETO"
    GATE_CANNOT_OPEN = "GATE_CANNOT_OPEN"
    TRADER_DECLINED = "TRADER_DECLINED"
    DUPLICATE_SIGNAL = "DUPLICATE_SIGNAL"
    COOLDOWN = "COOLDOWN"
    STALE_BAR = "STALE_BAR"
    STALE_SCORE = "STALE_SCORE"
    CLOCK_SKEW = "CLOCK_SKEW"
    MARKET_CLOSED = "MARKET_CLOSED"
    VENUE_SIDE = "VENUE_SIDE"
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
    LEVERAGE_CAP = "LEVERAGE_CAP"
    MAX_POSITIONS = "MAX_POSITIONS"
    DAILY_LOSS_CAP = "DAILY_LOSS_CAP"
    MESSAGE_RATE = "MESSAGE_RATE"
    REPEATED_EXECUTION = "REPEATED_EXECUTION"
    NEGATIVE_EV = "NEGATIVE_EV"
    SPREAD = "SPREAD"
    BRIDGE_DEAD = "BRIDGE_DEAD"
    VERSION_MISMATCH = "VERSION_MISMATCH"
    SIGNAL_EXPIRED = "SIGNAL_EXPIRED"
    ORDER_ALTERED = "ORDER_ALTERED"


class Denial(NamedTuple):
    """A deny reason's row in the docs; `given_by` names the parts that give it."""

    meaning: str
    source: str
    given_by: str


ENGINE: Final = "risk_engine"
_R = DenyReason
DENIALS: Final[Mapping[DenyReason, Denial]] = {
    _R.TRADING_HALTED: Denial(
        "the desk or its channel is halted: nothing opens and nothing closes",
        "RTS 6 Art. 12",
        "risk_engine, signal_bridge, bridge",
    ),
    _R.TRADING_REDUCING: Denial("the desk only closes", "nautilus", "risk_engine, signal_bridge"),
    _R.GATE_VETO: Denial(
        "the gate vetoes the opening, or a veto of this side still holds",
        "document 001; docs/debate.md",
        ENGINE,
    ),
    _R.GATE_CANNOT_OPEN: Denial(
        "the opening would stand only because the gate lowered an adjustment",
        "design, section 5",
        ENGINE,
    ),
    _R.TRADER_DECLINED: Denial(
        "the trader declines the opening that it was asked about",
        "document 000; docs/debate.md",
        ENGINE,
    ),
    _R.DUPLICATE_SIGNAL: Denial(
        "the position is being closed already, or the decision has its signal",
        "15c3-5, duplicates",
        ENGINE,
    ),
    _R.COOLDOWN: Denial(
        "fewer than cooldown_bars bars since this side's last losing trade", "freqtrade", ENGINE
    ),
    _R.STALE_BAR: Denial(
        "the deciding bar closed more than gate.max_bar_age bars ago", "freqtrade", ENGINE
    ),
    _R.STALE_SCORE: Denial(
        "the verdict has outlived its signal, or its proposal", "freqtrade", ENGINE
    ),
    _R.CLOCK_SKEW: Denial(
        "the clocks of the two sides differ, or the desk's was set back while the signal waited",
        "freqtrade",
        "risk_engine, signal_bridge, bridge",
    ),
    _R.MARKET_CLOSED: Denial("the symbol is not traded now", "freqtrade", ENGINE),
    _R.VENUE_SIDE: Denial(
        "the channel (`sides`, `max_notional` in desk.json) or the broker takes no opening of this "
        "side, or of this worth",
        "document 003, exchange routing",
        ENGINE,
    ),
    _R.BAD_NUMBER: Denial(
        "a price, an ATR, a level, a size or an account figure is not a usable number",
        "nautilus",
        ENGINE,
    ),
    _R.PRICE_COLLAR: Denial(
        "the entry is more than price_collar_atr ATRs from the last price, or the price has left "
        "the proposal behind",
        "RTS 6 Art. 15(1)(a)",
        "risk_engine, approval",
    ),
    _R.STOP_WRONG_SIDE: Denial(
        "the stop is on the wrong side of the entry, or on it", "document 000", ENGINE
    ),
    _R.STOP_TOO_CLOSE: Denial(
        "the ATR is below one tick, or the stop nearer than spread + one tick (or the broker's "
        "stops level, when that is more)",
        "document 000",
        ENGINE,
    ),
    _R.STOP_TOO_FAR: Denial("the stop is more than 4 ATR away", "document 000", ENGINE),
    _R.TARGET_WRONG_SIDE: Denial(
        "the target is on the wrong side of the entry, or on it", "document 000", ENGINE
    ),
    _R.SIZE_ZERO: Denial(
        "risk, notional and lot limits, the gate's multiplier and the desk's conviction leave less "
        "than the smallest order",
        "document 000",
        ENGINE,
    ),
    _R.LOT_BELOW_MIN: Denial("below the symbol's smallest order", "broker", ENGINE),
    _R.LOT_ABOVE_MAX: Denial("above the symbol's largest order", "broker", ENGINE),
    _R.LOT_STEP: Denial("no multiple of the symbol's lot step", "broker", ENGINE),
    _R.RISK_PER_TRADE: Denial(
        "the loss at the stop is above risk_per_trade_pct of the capital", "document 000", ENGINE
    ),
    _R.MAX_NOTIONAL: Denial(
        "the position is worth more than max_notional_pct of the capital", "document 000", ENGINE
    ),
    _R.EXPOSURE_CAP: Denial(
        "with it the desk's gross notional is above exposure_cap_pct",
        "document 000; 15c3-5, capital",
        ENGINE,
    ),
    _R.MARGIN: Denial(
        "with it the desk's gross notional is above account_leverage_cap times the capital, or the "
        "broker's free margin does not carry it",
        "documents 000, 003",
        ENGINE,
    ),
    _R.LEVERAGE_CAP: Denial(
        "with it the gross notional of its timeframe, or of all, at this account is above its cap "
        "of risk.leverage_caps times the capital, or the equity where that is lower, or it alone "
        "above the channel's `leverage` times that",
        "document 003, max leverage",
        ENGINE,
    ),
    _R.MAX_POSITIONS: Denial("the desk holds max_positions already", "document 000", ENGINE),
    _R.DAILY_LOSS_CAP: Denial(
        "the UTC day has lost daily_loss_cap_pct, or this trade alone could",
        "document 000",
        ENGINE,
    ),
    _R.MESSAGE_RATE: Denial(
        "the instance has sent its signals of the hour; one opening more halts the desk",
        "RTS 6 Art. 15(1)(d)",
        ENGINE,
    ),
    _R.REPEATED_EXECUTION: Denial(
        "the instance has opened this side max_same_openings_per_hour times within the hour; one "
        "more halts the desk",
        "RTS 6 Art. 15(3)",
        ENGINE,
    ),
    _R.NEGATIVE_EV: Denial(
        "with the replayed win rate the trade is worth nothing or less after the spread",
        "document 003",
        ENGINE,
    ),
    _R.SPREAD: Denial(
        "the spread of now is above gate.max_spread_atr of the ATR", "design, section 8", ENGINE
    ),
    _R.BRIDGE_DEAD: Denial(
        "the other side gives no sign of life, or cannot trade",
        "SEC on Knight",
        "signal_bridge, bridge",
    ),
    _R.VERSION_MISMATCH: Denial(
        "the two sides speak different versions", "SEC on Knight", "bridge"
    ),
    _R.SIGNAL_EXPIRED: Denial(
        "the signal was not taken, the proposal not decided, before its expiry",
        "cancel on disconnect",
        "signal_bridge, approval",
    ),
    _R.ORDER_ALTERED: Denial(
        "the order in the database is not the one that was decided; the desk halts",
        "orders are compared with decisions",
        "signal_bridge",
    ),
}
"""The row of every deny reason in the docs."""


class GuardRow(Protocol):
    """The part of a guard that the docs show (torra.bridges.guards.Guard fits)."""

    @property
    def reason(self) -> str:
        """Its name, as an acknowledgement carries it."""
        ...

    @property
    def scope(self) -> str:
        """Which kinds of signal it looks at."""
        ...

    @property
    def meaning(self) -> str:
        """The condition that it objects to."""
        ...


def deny_table() -> str:
    """Return docs/deny_reasons.md."""
    rows = "\n".join(
        f"| `{reason}` | {row.meaning} | {row.source} | {row.given_by} |"
        for reason, row in DENIALS.items()
    )
    return _DENY_PAGE.format(rows=rows)


def guard_table(guards: Iterable[GuardRow]) -> str:
    """Return docs/guards.md, the guards in the order in which they are asked."""
    rows = "\n".join(
        f"| {number} | `{guard.reason}` | {_SCOPES[guard.scope]} | {guard.meaning} |"
        for number, guard in enumerate(guards, 1)
    )
    return _GUARDS_PAGE.format(rows=rows)


_DENY_PAGE: Final = """\
# Deny reasons

Why Torra does not send an order. A reason is a value that is stored with the tick, the signal or
the proposal; none of them is an error. A veto, REDUCING and the limits take openings away, never a
close; only HALTED stops both. Where several apply, all are stored, in the order of this table, and
the first of them is the reason that the pages show.

`MESSAGE_RATE` and `REPEATED_EXECUTION` halt the desk until a person resumes, when nothing else
would have kept the opening back. A halted desk sends nothing, so the closing leg of the same
reversal is not sent either; stop and target of the position lie with the broker. A plain close that
comes while the rate is used up is sent, and halts nothing.

The last column names the part that gives the reason: the risk engine while a verdict becomes an
action, and again when a proposal is approved; the signal bridge and the bridge to the market when a
signal is handed over; the approval when a person decides. What the executing side refuses in its
last look has other names: [guards.md](guards.md).

| reason | meaning | source | given by |
|---|---|---|---|
{rows}

This page is written by `deny_table` in torra/verdict/deny_reasons.py from the enum `DenyReason`; a
test compares the two.
"""

_SCOPES: Final[Mapping[str, str]] = {
    "all": "everything",
    "trade": "all but ping",
    "open": "openings",
}

_GUARDS_PAGE: Final = """\
# Guards

The last look before an order goes to the market. The Expert Advisor and the paper bridge ask the
same questions in this order; the first that objects is the reason of the refusal, and what passes
all of them is executed. `stale` ends a signal EXPIRED, every other guard ends it REJECTED.
Distances are counted in points. What Torra does not even send: [deny_reasons.md](deny_reasons.md).

| | reason | asked of | objects when |
|---|---|---|---|
{rows}

This page is written by `guard_table` in torra/verdict/deny_reasons.py from torra/bridges/guards.py;
a test compares the two.
"""

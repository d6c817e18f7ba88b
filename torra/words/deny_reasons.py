"""Every reason for which an order is not sent: its words, its source and the part that gives it.

A deny reason is a value that is stored with a tick, a signal or a proposal, never an exception.
Its words are members of the enumeration, so no reason is without them. docs/deny_reasons.md and
docs/guards.md are written from here. The parts that give the reasons decide what is denied, and
when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from torra.bridges.guards import Guard

ENGINE: Final = "risk_engine"


class DenyReason(StrEnum):
    """Why an order is not sent, in the order in which reasons are shown.

    `cause` is the half-sentence after "as", at most seven words; `meaning` the condition; `source`
    the rule behind it; `given_by` the parts that give it.
    """

    cause: str
    meaning: str
    source: str
    given_by: str

    def __new__(  # noqa: D102  the class says what each part is
        cls, code: str, cause: str, meaning: str, source: str, given_by: str = ENGINE
    ) -> Self:
        reason = str.__new__(cls, code)
        reason._value_ = code
        reason.cause, reason.meaning, reason.source = cause, meaning, source
        reason.given_by = given_by
        return reason

    TRADING_HALTED = (
        "TRADING_HALTED",
        "trading is halted",
        "the desk or its channel is halted: nothing opens and nothing closes",
        "RTS 6 Art. 12",
        "risk_engine, signal_bridge, bridge",
    )
    TRADING_REDUCING = (
        "TRADING_REDUCING",
        "the desk may only close",
        "the desk only closes",
        "nautilus",
        "risk_engine, signal_bridge",
    )
    GATE_VETO = (
        "GATE_VETO",
        "the gate's veto of this side holds",
        "the gate vetoes the opening, or a veto of this side still holds",
        "document 001; docs/debate.md",
    )
    GATE_CANNOT_OPEN = (
        "GATE_CANNOT_OPEN",
        "only the gate's cut would open it",
        "the opening would stand only because the gate lowered an adjustment",
        "design, section 5",
    )
    TRADER_DECLINED = (
        "TRADER_DECLINED",
        "the trader declined it",
        "the trader declines the opening that it was asked about",
        "document 000; docs/debate.md",
    )
    DUPLICATE_SIGNAL = (
        "DUPLICATE_SIGNAL",
        "its order is out already",
        "the position is being closed already, or the decision has its signal",
        "15c3-5, duplicates",
    )
    COOLDOWN = (
        "COOLDOWN",
        "this side rests after a losing trade",
        "fewer than cooldown_bars bars since this side's last losing trade",
        "freqtrade",
    )
    STALE_BAR = (
        "STALE_BAR",
        "the bar is too old",
        "the deciding bar closed more than gate.max_bar_age bars ago",
        "freqtrade",
    )
    STALE_SCORE = (
        "STALE_SCORE",
        "the verdict is too old",
        "the verdict has outlived its signal, or its proposal",
        "freqtrade",
    )
    CLOCK_SKEW = (
        "CLOCK_SKEW",
        "the clocks of both sides differ",
        "the clocks of the two sides differ, or the desk's was set back while the signal waited",
        "freqtrade",
        "risk_engine, signal_bridge, bridge",
    )
    MARKET_CLOSED = (
        "MARKET_CLOSED",
        "the market is closed",
        "the symbol is not traded now",
        "freqtrade",
    )
    VENUE_SIDE = (
        "VENUE_SIDE",
        "its account takes no such order",
        "the channel (`sides`, `max_notional` in desk.json) or the broker takes no opening of "
        "this side, or of this worth",
        "document 003, exchange routing",
    )
    BAD_NUMBER = (
        "BAD_NUMBER",
        "a price or account figure is unusable",
        "a price, an ATR, a level, a size or an account figure is not a usable number",
        "nautilus",
    )
    PRICE_COLLAR = (
        "PRICE_COLLAR",
        "the price has moved too far",
        "the entry is more than price_collar_atr ATRs from the last price, or the price has left "
        "the proposal behind",
        "RTS 6 Art. 15(1)(a)",
        "risk_engine, approval",
    )
    STOP_WRONG_SIDE = (
        "STOP_WRONG_SIDE",
        "the stop lies on the wrong side",
        "the stop is on the wrong side of the entry, or on it",
        "document 000",
    )
    STOP_TOO_CLOSE = (
        "STOP_TOO_CLOSE",
        "the stop is too close",
        "the ATR is below one tick, or the stop nearer than spread + one tick (or the broker's "
        "stops level, when that is more)",
        "document 000",
    )
    STOP_TOO_FAR = (
        "STOP_TOO_FAR",
        "the stop is too far away",
        "the stop is more than 4 ATR away",
        "document 000",
    )
    TARGET_WRONG_SIDE = (
        "TARGET_WRONG_SIDE",
        "the target lies on the wrong side",
        "the target is on the wrong side of the entry, or on it",
        "document 000",
    )
    SIZE_ZERO = (
        "SIZE_ZERO",
        "its size is below the smallest order",
        "risk, notional and lot limits, the gate's multiplier and the desk's conviction leave "
        "less than the smallest order",
        "document 000",
    )
    LOT_BELOW_MIN = (
        "LOT_BELOW_MIN",
        "its size is below the smallest order",
        "below the symbol's smallest order",
        "broker",
    )
    LOT_ABOVE_MAX = (
        "LOT_ABOVE_MAX",
        "its size is above the largest order",
        "above the symbol's largest order",
        "broker",
    )
    LOT_STEP = (
        "LOT_STEP",
        "its size fits no lot step",
        "no multiple of the symbol's lot step",
        "broker",
    )
    RISK_PER_TRADE = (
        "RISK_PER_TRADE",
        "its stop could lose too much",
        "the loss at the stop is above risk_per_trade_pct of the capital",
        "document 000",
    )
    MAX_NOTIONAL = (
        "MAX_NOTIONAL",
        "the position would be worth too much",
        "the position is worth more than max_notional_pct of the capital",
        "document 000",
    )
    EXPOSURE_CAP = (
        "EXPOSURE_CAP",
        "the desk would hold too much",
        "with it the desk's gross notional is above exposure_cap_pct",
        "document 000; 15c3-5, capital",
    )
    MARGIN = (
        "MARGIN",
        "the margin is too small",
        "with it the desk's gross notional is above account_leverage_cap times the capital, or "
        "the broker's free margin does not carry it",
        "documents 000, 003",
    )
    LEVERAGE_CAP = (
        "LEVERAGE_CAP",
        "the leverage would be too high",
        "with it the gross notional of its timeframe, or of all, at this account is above its cap "
        "of risk.leverage_caps times the capital, or the equity where that is lower, or it alone "
        "above the channel's `leverage` times that",
        "document 003, max leverage",
    )
    MAX_POSITIONS = (
        "MAX_POSITIONS",
        "the desk holds all its positions",
        "the desk holds max_positions already",
        "document 000",
    )
    DAILY_LOSS_CAP = (
        "DAILY_LOSS_CAP",
        "the day's loss limit is reached",
        "the UTC day has lost daily_loss_cap_pct, or this trade alone could",
        "document 000",
    )
    MESSAGE_RATE = (
        "MESSAGE_RATE",
        "the hour's orders are used up",
        "the instance has sent its signals of the hour; one opening more halts the desk",
        "RTS 6 Art. 15(1)(d)",
    )
    REPEATED_EXECUTION = (
        "REPEATED_EXECUTION",
        "the hour's openings are used up",
        "the instance has opened this side max_same_openings_per_hour times within the hour; one "
        "more halts the desk",
        "RTS 6 Art. 15(3)",
    )
    NEGATIVE_EV = (
        "NEGATIVE_EV",
        "such trades have not paid",
        "with the replayed win rate the trade is worth nothing or less after the spread",
        "document 003",
    )
    SPREAD = (
        "SPREAD",
        "the spread is too wide",
        "the spread of now is above gate.max_spread_atr of the ATR",
        "design, section 8",
    )
    BRIDGE_DEAD = (
        "BRIDGE_DEAD",
        "the broker's side does not answer",
        "the other side gives no sign of life, or cannot trade",
        "SEC on Knight",
        "signal_bridge, bridge",
    )
    VERSION_MISMATCH = (
        "VERSION_MISMATCH",
        "the versions of both sides differ",
        "the two sides speak different versions",
        "SEC on Knight",
        "bridge",
    )
    SIGNAL_EXPIRED = (
        "SIGNAL_EXPIRED",
        "its time has passed",
        "the signal was not taken, the proposal not decided, before its expiry",
        "cancel on disconnect",
        "signal_bridge, approval",
    )
    ORDER_ALTERED = (
        "ORDER_ALTERED",
        "the stored order was altered",
        "the order in the database is not the one that was decided; the desk halts",
        "orders are compared with decisions",
        "signal_bridge",
    )


def deny_table() -> str:
    """Return docs/deny_reasons.md."""
    rows = "\n".join(
        f"| `{reason}` | {reason.meaning} | {reason.source} | {reason.given_by} |"
        for reason in DenyReason
    )
    return _DENY_PAGE.format(rows=rows)


def guard_table(guards: Iterable[Guard]) -> str:
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

This page is written by `deny_table` in torra/words/deny_reasons.py from the enum `DenyReason`; a
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

This page is written by `guard_table` in torra/words/deny_reasons.py from torra/bridges/guards.py;
a test compares the two.
"""

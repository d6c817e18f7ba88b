"""Every reason for which an order is not sent: its words, its source and the part that gives it.

A deny reason is a value that is stored with a tick, a signal or a proposal, never an exception.
Its words are its row of deny_reasons.csv. docs/deny_reasons.md and docs/guards.md are written from
here. The parts that give the reasons decide what is denied, and
when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from agents.features import rows_of

ENGINE: Final = "risk_engine"
"""The part that gives most reasons."""


class DenyReason(StrEnum):
    """Why an order is not sent, in the order in which reasons are shown."""

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

    @property
    def cause(self) -> str:
        """The half-sentence after "as", at most seven words."""
        return WORDS[self]["cause"]

    @property
    def meaning(self) -> str:
        """The condition."""
        return WORDS[self]["meaning"]

    @property
    def source(self) -> str:
        """The rule behind it."""
        return WORDS[self]["source"]

    @property
    def issuers(self) -> str:
        """The parts that give it."""
        return WORDS[self]["issuers"]


WORDS: Final = {
    DenyReason(row["reason"]): row for row in rows_of(Path(__file__).with_name("deny_reasons.csv"))
}
"""What each reason is called; none is without words."""


def deny_table() -> str:
    """Return docs/deny_reasons.md."""
    rows = "\n".join(
        f"| `{reason}` | {reason.meaning} | {reason.source} | {reason.issuers} |"
        for reason in DenyReason
    )
    return _DENY_PAGE.format(rows=rows)


def guard_table(guards: Iterable[tuple[str, str, str]]) -> str:
    """Return docs/guards.md of guards in their order: the reason, the scope and the meaning."""
    rows = "\n".join(
        f"| {number} | `{reason}` | {_SCOPES[scope]} | {meaning} |"
        for number, (reason, scope, meaning) in enumerate(guards, 1)
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

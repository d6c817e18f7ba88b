"""MetaTrader 5's answers to a trade request, and what each allows one to conclude.

Numbers and names are those of the MQL5 reference, "Return Codes of the Trade Server". An answer is
final only where the server says that it has not done anything. A time-out, a lost connection, a
processing error and no answer at all say nothing: the account must be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Meaning = Literal["done", "partial", "placed", "ambiguous", "transient", "final"]

DONE: Final = 10009
PARTIAL: Final = 10010
PLACED: Final = 10008
INVALID_FILL: Final = 10030
"""The order was not accepted because of its filling mode; another mode may be."""

EXECUTED: Final[Mapping[int, Meaning]] = {DONE: "done", PARTIAL: "partial", PLACED: "placed"}
# No code at all, a processing error, a time-out, no connection: it may be in the market.
AMBIGUOUS: Final = frozenset({0, 10011, 10012, 10031})
TRANSIENT: Final = frozenset({10004, 10020, 10021, 10024, 10028})
"""Not accepted now; the same request may be sent again."""

CHECKED: Final = frozenset({0, DONE})
"""What order_check answers when nothing is wrong."""

WORDS: Final[Mapping[int, str]] = {
    10004: "requote",
    10006: "rejected",
    10007: "cancelled by the trader",
    10008: "placed",
    10009: "done",
    10010: "done in part",
    10011: "processing error",
    10012: "cancelled by time-out",
    10013: "invalid request",
    10014: "invalid volume",
    10015: "invalid price",
    10016: "invalid stops",
    10017: "trading is disabled",
    10018: "the market is closed",
    10019: "not enough money",
    10020: "the price changed",
    10021: "no quotes",
    10022: "invalid expiration",
    10023: "the order's state changed",
    10024: "too many requests",
    10025: "no changes",
    10026: "the server forbids algo trading",
    10027: "the terminal forbids algo trading",
    10028: "locked for processing",
    10029: "order or position is frozen",
    10030: "invalid filling",
    10031: "no connection to the trade server",
    10032: "for real accounts only",
    10033: "too many pending orders",
    10034: "too much volume in the symbol",
    10035: "invalid or forbidden order type",
    10036: "the position is closed already",
    10038: "more than the position's volume",
    10039: "a closing order is there already",
    10040: "too many positions",
    10041: "the pending order was cancelled",
    10042: "long positions only",
    10043: "short positions only",
    10044: "closing only",
    10045: "first in, first out only",
    10046: "opposite positions are forbidden",
}


def meaning(retcode: int) -> Meaning:
    """Return what an answer of order_send means; a number that is not known is final."""
    if retcode in AMBIGUOUS:
        return "ambiguous"
    if retcode in TRANSIENT:
        return "transient"
    return EXECUTED.get(retcode, "final")

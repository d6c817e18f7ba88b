"""The life of a signal as a table: its states, which may follow which, and how long it waits.

Pure and without memory: the outbox that keeps signals and the bridges that move them read one
table. A terminal state never changes again (facts of the MT5 bridge, 6.5). FILLED and PARTIAL are
not terminal: a filled opening is a position until it is CLOSED; a filled close stays FILLED.
UNKNOWN says that an order may or may not have reached the market. It counts as a position until
reconciliation or a person finds out, so that nothing is opened beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from torra.clock import duration

SIGNAL_LIFE: Final = timedelta(seconds=180)
SIGNAL_LIFE_SHARE: Final = 0.2
"""A signal lives for the shorter of 180 s and this share of its bar."""

TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    "WAITING": frozenset({"PENDING", "EXPIRED", "CANCELLED"}),
    "PENDING": frozenset({"PUBLISHED", "REJECTED", "EXPIRED", "CANCELLED"}),
    "PUBLISHED": frozenset(
        {
            "CLAIMED",
            "PLACED",
            "FILLED",
            "PARTIAL",
            "REJECTED",
            "EXPIRED",
            "CANCELLED",
            "UNKNOWN",
            "UNKNOWN_NOT_SENT",
        }
    ),
    "CLAIMED": frozenset(
        {"PLACED", "FILLED", "PARTIAL", "REJECTED", "EXPIRED", "UNKNOWN", "UNKNOWN_NOT_SENT"}
    ),
    "PLACED": frozenset({"FILLED", "PARTIAL", "REJECTED", "EXPIRED", "UNKNOWN"}),
    "UNKNOWN": frozenset({"FILLED", "PARTIAL", "NOT_SENT"}),
    "PARTIAL": frozenset({"CLOSED"}),
    "FILLED": frozenset({"CLOSED"}),
    "CLOSED": frozenset(),
    "REJECTED": frozenset(),
    "EXPIRED": frozenset(),
    "CANCELLED": frozenset(),
    "UNKNOWN_NOT_SENT": frozenset(),
    "NOT_SENT": frozenset(),
}
"""WAITING is an opening that waits until the position before it is closed, or a person's close that
waits until it is known what became of its opening."""

SENT: Final = ("PUBLISHED", "CLAIMED", "PLACED", "UNKNOWN")
"""Handed over, and its end is not known yet."""

UNDER_WAY: Final = ("PENDING", *SENT)
"""Sent or about to be, not answered yet."""

EXECUTED: Final = ("FILLED", "PARTIAL")
"""The market has taken it: for an opening, a position."""

POSITION_STATES: Final = (*EXECUTED, *UNDER_WAY, "WAITING")
"""States of an opening that counts as a position, the surest first."""

ENDING: Final = ("WAITING", *UNDER_WAY, "FILLED")
"""States of a close that ends its position: one that is executed too, until the books show it."""

UNEXECUTED: Final = ("REJECTED", "EXPIRED", "CANCELLED", "UNKNOWN_NOT_SENT", "NOT_SENT")
"""States in which a signal ends without having been executed."""


def is_closing(orders: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether one of the orders about a position is a close that ends it."""
    return any(row["kind"] == "close" and row["state"] in ENDING for row in orders)


def check_transition(state: str, following: str) -> None:
    """Raise ValueError when a signal in `state` may not become `following`."""
    if following not in TRANSITIONS.get(state, frozenset()):
        raise ValueError(f"a signal that is {state} cannot become {following}")


def signal_life(timeframe: str) -> timedelta:
    """Return how long a signal of a bar of this timeframe may wait for the market."""
    return min(SIGNAL_LIFE, duration(timeframe) * SIGNAL_LIFE_SHARE)

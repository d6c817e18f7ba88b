"""The life of a signal as a table: its states and which may follow which.

Pure and without memory, so that the outbox that keeps signals and the bridges that move them read
one table. A terminal state never changes again (facts of the MT5 bridge, 6.5). FILLED is not
terminal: a filled opening is a position until it is CLOSED; a filled close stays FILLED.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    "WAITING": frozenset({"PENDING", "EXPIRED", "CANCELLED"}),
    "PENDING": frozenset({"PUBLISHED", "REJECTED", "EXPIRED", "CANCELLED"}),
    "PUBLISHED": frozenset({"FILLED", "REJECTED", "EXPIRED", "CANCELLED"}),
    "FILLED": frozenset({"CLOSED"}),
    "CLOSED": frozenset(),
    "REJECTED": frozenset(),
    "EXPIRED": frozenset(),
    "CANCELLED": frozenset(),
}
"""WAITING is an opening that waits until the position before it is closed."""

UNDER_WAY: Final = ("PENDING", "PUBLISHED")
"""Sent or about to be, not answered yet."""

HELD: Final = ("FILLED", *UNDER_WAY, "WAITING")
"""States of an opening that counts as a position, the surest first."""


def check_transition(state: str, following: str) -> None:
    """Raise ValueError when a signal in `state` may not become `following`."""
    if following not in TRANSITIONS.get(state, frozenset()):
        raise ValueError(f"a signal that is {state} cannot become {following}")

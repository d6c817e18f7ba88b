"""The interface of an outbox: the signals of a desk as whoever moves them needs them.

signal_bridge works on an `Outbox`. torra.store.tick_store.TickStore, the interface of a whole
store, is one; it adds what a tick needs. It lies here, below both, because a bridge may not import
a store. Nothing is done here: the methods are the stores'.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any


class Outbox(ABC):
    """Signals, with the alarms and the halt that they may cause.

    Rows are dicts, times ISO text in UTC. A method that returns a bool returns whether it changed
    anything. A wrong step and a second opening raise ValueError.
    """

    @abstractmethod
    def transaction(self, wait_seconds: float | None = None) -> AbstractContextManager[None]:
        """Begin a transaction, waiting so long for another writer, or join the open one."""

    @abstractmethod
    def require_desk(self) -> None:
        """Raise StoreUnavailable unless this process may write as the desk (torra.desk_lock)."""

    @abstractmethod
    def enqueue_signal(self, row: Mapping[str, Any]) -> bool:
        """Write a new signal; False when its id is there already."""

    @abstractmethod
    def signal(self, sid: str) -> dict[str, Any] | None:
        """Return one signal; None when there is none of that id."""

    @abstractmethod
    def signals(
        self, states: Sequence[str] | None = None, instance: str | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Return signals by state and instance, newest first."""

    @abstractmethod
    def closes_of(self, instance: str, sid: str) -> list[dict[str, Any]]:
        """Return the closes of one position, and the openings that wait for its end, as decided."""

    @abstractmethod
    def last_state(self, sid: str) -> str | None:
        """Return the state that a signal's last step on record led to; None without a step."""

    @abstractmethod
    def move_signal(
        self, sid: str, state: str, *, detail: str = "", fields: Mapping[str, Any] | None = None
    ) -> bool:
        """Take a signal along torra.verdict.signal_states and put the step on record.

        `fields` are columns that the step filled. False when the signal is in that state already.
        """

    @abstractmethod
    def note_signal(self, sid: str, detail: str) -> None:
        """Store the reason why a signal waits; its state stays what it is."""

    @abstractmethod
    def learn(self, sid: str, **fields: Any) -> None:
        """Fill columns of a signal that are known now, without a step."""

    @abstractmethod
    def close_position(
        self,
        sid: str,
        *,
        price: float,
        time: datetime,
        profit: float,
        r_multiple: float,
        reason: str,
        known_at: datetime | None = None,
    ) -> bool:
        """Move the opening of a position to CLOSED with the outcome of its trade."""

    @abstractmethod
    def raise_alarm(self, key: str, kind: str, detail: str) -> bool:
        """Put an alarm on record; False while one of that key stands."""

    @abstractmethod
    def end_alarm(self, key: str) -> bool:
        """End an alarm that stands; False when none does."""

    @abstractmethod
    def reduce(self, reason: str) -> bool:
        """Let nothing open any more (REDUCING); False when that is so already."""

    @abstractmethod
    def halt(self, reason: str) -> bool:
        """Let nothing go out any more (HALTED); False when that is so already."""

"""The store interface of a tick: the desk's database, or memory alone in a replay.

`Keeper` names every method that `run_tick` and what it calls use, and no other, so that one tick is
the same code over either store. instance_database.Database and torra.store.memory.MemoryStore both
implement it; their own docstrings say what each method does and raises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

import signal_bridge
from agents.contracts import CallRecord
from instance_database import Saved, TickKey
from torra.config import Profile
from torra.evidence.news_digest import NewsItem
from torra.verdict.risk_engine import Position, TradingState


class Keeper(signal_bridge.OutboxStore, Protocol):
    """A store in which ticks are kept."""

    def transaction(self, wait_seconds: float | None = None) -> AbstractContextManager[Any]:
        """Begin a transaction, waiting so long for another writer, or join the open one."""
        ...

    # --- the tick -------------------------------------------------------------------------------

    def claim_tick(self, key: TickKey, epoch: int) -> bool:
        """Claim a tick; False when another desk has claimed it or it is finished."""
        ...

    def release_claim(self, key: TickKey, epoch: int) -> None:
        """Give a claim back."""
        ...

    def skip_tick(self, key: TickKey, reason: str, detail: str, epoch: int) -> bool:
        """Record why a tick is not run."""
        ...

    def finish_tick(self, key: TickKey, epoch: int) -> None:
        """Set our claim done, inside the transaction that stores the tick."""
        ...

    # --- the brain ------------------------------------------------------------------------------

    def save_sentiment(
        self,
        scores: Mapping[str, Any],
        *,
        key: TickKey,
        close_time: datetime,
        ath: float,
        l1: Mapping[str, Any],
        ungated: Mapping[str, Any],
        source_type: str,
        profile: Profile,
        deliberation: Mapping[str, Any] | None,
        timeframes: Sequence[str],
    ) -> Saved:
        """Weigh the scores of a tick, store them, return the verdict."""
        ...

    def foresee(
        self,
        key: TickKey,
        close_time: datetime,
        *,
        l1: Mapping[str, Any],
        ath: float,
        profile: Profile,
        timeframes: Sequence[str],
    ) -> tuple[float, float]:
        """Return the L1 and the final consensus if the tick kept its L1 scores."""
        ...

    def memory_context(
        self,
        instance: str,
        timeframe: str,
        *,
        as_of: datetime,
        profile: Profile,
        symbol: str,
        price: float | None = None,
    ) -> dict[str, Any]:
        """Return what the stream remembers before this tick is stored."""
        ...

    # --- the account ----------------------------------------------------------------------------

    def position(self, instance: str) -> Position | None:
        """Return what an instance holds or is opening."""
        ...

    def exposure(self, instance: str, timeframe: str, *, as_of: datetime) -> dict[str, Any]:
        """Return the account as an opening of this instance would meet it."""
        ...

    def latches(self, instance: str) -> Collection[str]:
        """Return the sides on which a veto of openings is latched."""
        ...

    def set_latch(self, instance: str, side: str, held: bool = True) -> None:
        """Latch a veto, or clear it."""
        ...

    def trading_state(self) -> TradingState:
        """Return ACTIVE, REDUCING or HALTED."""
        ...

    def halt(self, reason: str) -> bool:
        """Let nothing happen any more."""
        ...

    def propose(self, row: Mapping[str, Any]) -> bool:
        """Write down what a person is to decide about."""
        ...

    # --- paper ----------------------------------------------------------------------------------

    def standing(self, instance: str) -> dict[str, Any]:
        """Return how an instance stands before a tick."""
        ...

    def paper_cursor(self, instance: str) -> datetime | None:
        """Return the bar time up to which the paper bridge has lived."""
        ...

    def set_paper_cursor(self, instance: str, bar_time: datetime) -> None:
        """Remember how far the paper bridge has come."""
        ...

    def paper_orders(self, instance: str) -> list[dict[str, Any]]:
        """Return the orders that the paper bridge has."""
        ...

    def paper_position(self, instance: str) -> Position | None:
        """Return what the paper bridge holds."""
        ...

    # --- what is kept of it ---------------------------------------------------------------------

    def bar_revision(
        self, instance: str, timeframe: str, first: datetime, last: datetime
    ) -> int | None:
        """Return the highest revision among the bars of a range; None where none is stored."""
        ...

    def write_journal(self, key: TickKey, record: Mapping[str, Any]) -> None:
        """Store the record of a tick."""
        ...

    def write_calls(self, key: TickKey, calls: Sequence[CallRecord]) -> None:
        """Store what was asked and answered."""
        ...

    def record_late(self, key: TickKey, call: CallRecord) -> bool:
        """Add an answer to a call that its tick gave up."""
        ...

    def store_picture(self, picture: bytes) -> str:
        """Store a picture that a model was shown."""
        ...

    def store_news(self, items: Iterable[NewsItem]) -> int:
        """Store the headlines that a tick saw."""
        ...

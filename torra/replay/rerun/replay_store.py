"""A database in which journalled ticks run again, one after the other, each in its own moment.

What an instance itself did (its chains, signals, position, paper trades, latches) happens here
anew. What the rest of the desk meant to a tick (trading state, exposure, positions elsewhere) is
read from the tick's record, because it is not in this database. A signal that was taken back
between two ticks (by a halt that was lifted again, or at its expiry) is taken back here too.
Nothing else is overridden, so a replay goes the way of every tick.

An instance that this database knows already raises ValueError.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

from instance_database import MARKOV_HISTORY, Database, Saved
from torra.clock import Simulated, System, parse
from torra.config import Profile
from torra.store.migrations import LEGACY_COLUMNS
from torra.verdict.risk_engine import TradingState

SENTIMENT: Final = (*LEGACY_COLUMNS[1:], "torra_key")
"""Columns of a sentiment row that are copied: all but the id, given anew, and the debate."""

NUMBERS: Final = ("seq", "id")
"""Columns of signals and their steps that are numbered anew."""


class JournalDatabase(Database):
    """The database of a replay. `enter` names the tick that runs next."""

    _told: Mapping[str, Any]
    _clock: Simulated
    _event: int

    @classmethod
    def at(cls, path: Path) -> JournalDatabase:
        """Open the database of a replay, and make it if need be; errors are those of `open`."""
        return cast(JournalDatabase, cls.open(path, now=System().real_now))

    def enter(self, record: Mapping[str, Any], clock: Simulated, source: Database) -> None:
        """Go to the moment of a tick: `clock` shows its start, and later its time of decision."""
        self._told, self._clock = record, clock
        clock.set(parse(record["now"]))
        event = int(record["before"]["signal_event"])
        for step in source.signals_ended(record["instance"], self._event, event):
            signal = self.signal(step["sid"])
            # A replay that differs may not have sent this signal, or not be in this step.
            if signal is not None and signal["state"] == step["from_state"]:
                self.move_signal(step["sid"], step["to_state"], detail=step["detail"])
        self._event = event

    def begin(self, source: Database, instance: str, torra_key: str) -> None:
        """Copy the state that an instance had before one of its ticks in `source`.

        Raises ValueError when this database knows the instance already.
        """
        record, _ = source.journal_row(torra_key)
        before = record["before"]
        with self.transaction():
            if self._row("SELECT 1 AS found FROM chains WHERE instance = ?", instance):
                raise ValueError(f"{self.path} holds ticks of {instance}; replay into another file")
            rows = source.state_before(
                instance, torra_key, before["signal_event"], MARKOV_HISTORY + 1
            )
            for sentiment, chain in zip(rows["sentiment"], rows["chains"], strict=True):
                number = self._add("sentiment", {name: sentiment[name] for name in SENTIMENT})
                self._add("chains", {**chain, "sentiment_id": number})
            for table in ("signals", "signal_events"):
                for row in rows[table]:
                    self._add(table, {k: v for k, v in row.items() if k not in NUMBERS})
            for side in before["latches"]:
                self.set_latch(instance, side)
            if before["paper_cursor"]:
                self.set_paper_cursor(instance, parse(before["paper_cursor"]))
        self._event = before["signal_event"]

    # --- what the record tells -------------------------------------------------------------------

    def trading_state(self) -> TradingState:
        """Return the trading state under which the tick decided."""
        return cast(TradingState, self._told["desk"]["trading_state"])

    def exposure(self, instance: str, timeframe: str, *, as_of: datetime) -> dict[str, Any]:
        """Return the desk's exposure as the tick met it."""
        del instance, timeframe, as_of
        return dict(self._told["desk"]["exposure"])

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
        """Return what the stream remembers, and how many positions there were elsewhere."""
        found = super().memory_context(
            instance, timeframe, as_of=as_of, profile=profile, symbol=symbol, price=price
        )
        return {**found, "open_elsewhere": self._told["memory"]["open_elsewhere"]}

    def save_sentiment(self, *args: Any, **values: Any) -> Saved:
        """Store the scores of the tick; from here on it decides, so the clock moves on."""
        self._clock.set(parse(self._told["desk"]["decided"]))
        return super().save_sentiment(*args, **values)

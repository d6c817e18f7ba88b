"""The store interface of a tick: the desk's database, or memory alone in a replay.

`run_tick` and what it calls work on a `TickDatabase`, so that one tick is the same code over either
store: instance_database.Database and torra.store.memory.MemoryStore. Both inherit `TickStore`: what
follows from other methods of a store alone is written once, here for the trading state, in
torra.store.brain for scores and memory, in torra.store.trade.positions for the account. The signals
on their way to a bridge are torra.verdict.outbox's part.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, get_args

from torra.clock import duration
from torra.store.brain import MOMENT, Brain, Composites
from torra.store.connection import RowDict, TickKey
from torra.verdict import sentiment_rules
from torra.verdict.risk_engine import OpenSide, TradingState


class OpeningContext(NamedTuple):
    """What a verdict and its action hang on beside the scores of their tick.

    `latest` has, by timeframe, close time and composites by chain of the instance's other streams;
    `latched` are the sides whose openings an earlier veto still denies.
    """

    latest: Composites
    position: OpenSide | None
    latched: frozenset[str]

    def as_dict(self) -> RowDict:
        """Return, as plain JSON, what no composite tells."""
        return {"held": self.position and list(self.position), "latched": sorted(self.latched)}


class TickStore(Brain):
    """The part of a store of ticks that follows from its other methods."""

    # --- the trading state ----------------------------------------------------------------------

    @abstractmethod
    def trading_state(self) -> TradingState:
        """Return ACTIVE (all may be done), REDUCING (closes only) or HALTED (nothing)."""

    @abstractmethod
    def _note_state(self, state: str, reason: str) -> None:
        """Put a change of the trading state on record."""

    def set_trading_state(self, state: str, reason: str) -> None:
        """Enter a trading state, with its history; ValueError for a word that is none."""
        states = get_args(TradingState)
        if state not in states:
            raise ValueError(f"{state} is no trading state; use {', '.join(states)}")
        self._note_state(state, reason)

    def reduce(self, reason: str) -> bool:
        """Stop openings (REDUCING); False when the desk is not ACTIVE."""
        with self.transaction():
            if self.trading_state() != "ACTIVE":
                return False
            self.set_trading_state("REDUCING", reason)
            return True

    def halt(self, reason: str) -> bool:
        """Stop all trading (HALTED); False when it is halted already."""
        with self.transaction():
            if self.trading_state() == "HALTED":
                return False
            self.set_trading_state("HALTED", reason)
            return True

    # --- latches, proposals ---------------------------------------------------------------------

    def company(
        self,
        key: TickKey,
        close_time: datetime,
        timeframes: Sequence[str],
        together: Mapping[str, float],
    ) -> OpeningContext | None:
        """Return what a verdict and its action hang on beside the scores of the tick itself.

        None where nothing may open now. `together` has the L1 composites of what closed with it:
        the longer timeframes are stored before it, and theirs stand for what their agents will have
        said. What debated beside the tick and is stored already, as after a crash, tells by its
        record what stood before it.
        """
        if self.trading_state() != "ACTIVE":
            return None
        latest = self._latest_composites(key, close_time, timeframes)
        latest.pop(key.timeframe, None)
        live = self.position(key.instance)
        position = None if live is None else OpenSide(live.side, live.state)
        latched = self.latches(key.instance)
        stored = self._same_close_records(key, close_time, latest)
        if stored:
            together = {name: latest[name][1]["l1"] for name in stored} | dict(together)
            before = self._latest_composites(key, close_time - MOMENT, timeframes)
            latest = {name: row for name, row in latest.items() if name not in stored}
            latest |= {name: before[name] for name in stored if name in before}
            records = list(stored.values())
            context = next((one["company"] for one in records if "company" in one), None)
            latched = frozenset(context["latched"] if context else records[0]["before"]["latches"])
            # Where they sent nothing, what is held now is not their doing.
            if context and any(one["signals"] for one in records):
                position = context["held"] and OpenSide(*context["held"])
        length = duration(key.timeframe)
        latest |= {
            name: (close_time, dict.fromkeys(sentiment_rules.CHAINS, value))
            for name, value in together.items()
            if duration(name) > length
        }
        return OpeningContext(latest, position, latched)

    def _same_close_records(
        self, key: TickKey, close_time: datetime, latest: Composites
    ) -> dict[str, Mapping[str, Any]]:
        """Return by timeframe the records of the stored ticks that debated beside a tick."""
        stored = [name for name, (close, _) in latest.items() if close == close_time]
        records = {}
        for name in stored:
            record = self.record(TickKey(key.instance, name, close_time - duration(name)).text)
            # A bar that came late is a close of its own: nothing that ran before debated beside it.
            if key.timeframe in record.get("together", ()):
                records[name] = record
        return records

    @abstractmethod
    def record(self, torra_key: str) -> Mapping[str, Any]:
        """Return the record of a stored tick; an empty one where none is kept or can be read."""

    @abstractmethod
    def latches(self, instance: str) -> frozenset[str]:
        """Return the sides on which a veto of openings is latched."""

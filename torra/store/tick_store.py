"""The store interface of a tick: the desk's database, or memory alone in a replay.

`TickStore` has every method that `run_tick` and what it calls use, so that one tick is the same
code over either store. instance_database.Database and torra.store.memory.MemoryStore both inherit
it. What follows from other methods of a store alone is written once: here for the trading state, in
torra.store.brain for scores and memory, in torra.store.trade.positions for the account. The signals
on their way to a bridge are torra.verdict.outbox's part.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, get_args

from agents.contracts import CallRecord
from torra.clock import duration
from torra.evidence.news_digest import NewsItem
from torra.lessons.lesson import Fresh, Situation
from torra.store.brain import MOMENT, Brain, Composites
from torra.store.connection import TickKey
from torra.verdict import sentiment_rules
from torra.verdict.risk_engine import HeldSide, TradingState
from torra.verdict.vetoed import VetoedOpening


class OpeningContext(NamedTuple):
    """What a verdict and its action hang on beside the scores of their tick.

    `latest` has, by timeframe, close time and composites by chain of the instance's other streams;
    `latched` are the sides whose openings an earlier veto still denies.
    """

    latest: Composites
    held: HeldSide | None
    latched: frozenset[str]

    def as_dict(self) -> dict[str, Any]:
        """Return, as plain JSON, what no composite tells."""
        return {"held": self.held and list(self.held), "latched": sorted(self.latched)}


class TickStore(Brain):
    """A store in which ticks are kept. Errors of the store are StoreUnavailable."""

    # --- claims ---------------------------------------------------------------------------------

    @abstractmethod
    def claim_tick(self, key: TickKey, epoch: int) -> bool:
        """Claim a tick for this desk: True when it had no claim, or an earlier epoch's."""

    @abstractmethod
    def release_claim(self, key: TickKey, epoch: int) -> None:
        """Give a claim of ours back; without effect when it is not ours or the tick is finished."""

    @abstractmethod
    def skip_tick(self, key: TickKey, reason: str, detail: str, epoch: int) -> bool:
        """Record why a tick is not run; False when it is done, skipped or a later epoch's."""

    @abstractmethod
    def require_lease(self, epoch: int) -> None:
        """Raise StoreUnavailable when another desk holds the lease: first in a transaction."""

    @abstractmethod
    def require_claim(self, key: TickKey, epoch: int) -> None:
        """Raise StoreUnavailable unless lease and claim are ours: first in a tick's transaction."""

    @abstractmethod
    def finish_tick(self, key: TickKey, epoch: int) -> None:
        """Set our claim done, inside the transaction that stores the tick.

        Raises StoreUnavailable when the claim is not ours any more.
        """

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
        position = self.position(key.instance)
        held = None if position is None else HeldSide(position.side, position.state)
        latched = self.latches(key.instance)
        beside = self._stored_beside(key, close_time, latest)
        if beside:
            together = {name: latest[name][1]["l1"] for name in beside} | dict(together)
            before = self._latest_composites(key, close_time - MOMENT, timeframes)
            latest = {name: row for name, row in latest.items() if name not in beside}
            latest |= {name: before[name] for name in beside if name in before}
            records = list(beside.values())
            told = next((one["company"] for one in records if "company" in one), None)
            latched = frozenset(told["latched"] if told else records[0]["before"]["latches"])
            # Where they sent nothing, what is held now is not their doing.
            if told and any(one["signals"] for one in records):
                held = told["held"] and HeldSide(*told["held"])
        length = duration(key.timeframe)
        latest |= {
            name: (close_time, dict.fromkeys(sentiment_rules.CHAINS, value))
            for name, value in together.items()
            if duration(name) > length
        }
        return OpeningContext(latest, held, latched)

    def _stored_beside(
        self, key: TickKey, close_time: datetime, latest: Composites
    ) -> dict[str, Mapping[str, Any]]:
        """Return by timeframe the records of the stored ticks that debated beside a tick."""
        stored = [name for name, (close, _) in latest.items() if close == close_time]
        found = {}
        for name in stored:
            record = self.record(TickKey(key.instance, name, close_time - duration(name)).text)
            # A bar that came late is a close of its own: nothing that ran before debated beside it.
            if key.timeframe in record.get("together", ()):
                found[name] = record
        return found

    @abstractmethod
    def record(self, torra_key: str) -> Mapping[str, Any]:
        """Return the record of a stored tick; an empty one where none is kept or can be read."""

    @abstractmethod
    def latches(self, instance: str) -> frozenset[str]:
        """Return the sides on which a veto of openings is latched."""

    @abstractmethod
    def set_latch(self, instance: str, side: str, held: bool = True) -> None:
        """Latch a veto, or clear it when `held` is False."""

    @abstractmethod
    def propose(self, row: Mapping[str, Any]) -> bool:
        """Write down what a person is to decide about; False when it is there already."""

    @abstractmethod
    def proposal_waits(self, key: TickKey, now: datetime) -> bool:
        """Return whether a proposal of an earlier tick of the stream still waits at a moment."""

    @abstractmethod
    def close_waits(self, closes: str, now: datetime) -> bool:
        """Return whether a proposal still waits that would close the position of an opening."""

    # --- lessons --------------------------------------------------------------------------------

    @abstractmethod
    def keep_situation(self, sid: str, situation: Situation) -> None:
        """Keep the market of an opening; the first one of an id stands."""

    @abstractmethod
    def note_lesson_uses(self, torra_key: str, numbers: Sequence[int]) -> None:
        """Note which lessons a tick was told of, the first ones first."""

    @abstractmethod
    def lessons_since(self, facts: int, words: int) -> Fresh:
        """Return what is newer than two row numbers (0 for all)."""

    @abstractmethod
    def vetoed_openings(self, instance: str) -> list[VetoedOpening]:
        """Return the vetoed openings of an instance that have not ended, oldest first."""

    @abstractmethod
    def keep_vetoed(self, opening: VetoedOpening) -> None:
        """Keep a vetoed opening as it stands now."""

    @abstractmethod
    def end_vetoed(self, sid: str) -> None:
        """Forget a vetoed opening that has ended: its lesson tells of it."""

    @abstractmethod
    def veto_stretch(self, instance: str) -> str | None:
        """Return the side whose openings are being vetoed now, tick after tick; None for none."""

    @abstractmethod
    def set_veto_stretch(self, instance: str, side: str | None) -> None:
        """Begin a stretch of vetoes of a side, or end the one that stands."""

    # --- paper ----------------------------------------------------------------------------------

    @abstractmethod
    def standing(self, instance: str) -> dict[str, Any]:
        """Return what an instance has before a tick: paper_cursor, latches, signal_event."""

    @abstractmethod
    def paper_cursor(self, instance: str) -> datetime | None:
        """Return the bar time up to which the paper bridge has lived."""

    @abstractmethod
    def set_paper_cursor(self, instance: str, bar_time: datetime) -> None:
        """Remember how far the paper bridge has come."""

    # --- what is kept of a tick -----------------------------------------------------------------

    @abstractmethod
    def bar_revision(
        self, instance: str, timeframe: str, first: datetime, last: datetime
    ) -> int | None:
        """Return the highest revision among the bars of a range; None where none is stored."""

    @abstractmethod
    def write_journal(self, key: TickKey, record: Mapping[str, Any]) -> None:
        """Store the record of a tick."""

    @abstractmethod
    def write_calls(self, key: TickKey, calls: Sequence[CallRecord]) -> None:
        """Store what was asked and answered."""

    @abstractmethod
    def record_late(self, key: TickKey, call: CallRecord) -> bool:
        """Add an answer to a call that its tick gave up; False when no such call waits."""

    @abstractmethod
    def store_picture(self, picture: bytes) -> str:
        """Store a picture that a model was shown; return its hash."""

    @abstractmethod
    def store_news(self, items: Iterable[NewsItem]) -> int:
        """Store the headlines that a tick saw; return how many were new."""

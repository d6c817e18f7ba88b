"""A database in which journalled ticks run again, one after the other, each in its own moment.

What an instance itself did (its chains, signals, position, paper trades) happens here anew. What
its moment brought with it (latches, paper cursor, trading state, exposure, positions elsewhere) is
read from the tick's record. `begin` sets an instance to how it stood before a tick, whatever stood
here. What others did to its signals is taken over: `follow` does so after a tick, and what came
between its look and its decision is done in between. Others are a bridge, a person (a yes, a close
by hand), a halt. Nothing else is overridden, so a replay goes the way of every tick.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

from instance_database import MARKOV_HISTORY, ConsensusResult, Database, TickKey
from torra.clock import Simulated, System, parse
from torra.config import Profile
from torra.lessons.lesson import LessonFacts, LessonText
from torra.store import replay_queries
from torra.store.migrations import LEGACY_COLUMNS
from torra.store.tick_store import OpeningContext
from torra.tick.tick_record import JournalRecord
from torra.verdict.risk_engine import DenyReason, TradingState
from torra.verdict.signal_states import EXECUTED
from torra.verdict.vetoed import VetoedOpening

SENTIMENT: Final = (*LEGACY_COLUMNS[1:], "torra_key")
"""Columns of a sentiment row that are copied: all but the id, given anew, and the debate."""

NUMBERS: Final = ("seq", "id")
"""Columns of signals and their steps that are numbered anew."""

SIGNAL_TABLES: Final = ("signals", "signal_events")

STOPS: Final[Mapping[str, TradingState]] = {
    DenyReason.TRADING_HALTED.value: "HALTED",
    DenyReason.TRADING_REDUCING.value: "REDUCING",
}
"""The trading state that took a waiting signal back, by the detail of that step."""

Step = tuple[str, str | None, str]
"""A step of a signal: its id, the state before and the one after."""


class JournalDatabase(Database):
    """The database of a replay. `enter` names the tick that runs next."""

    _then: JournalRecord
    _clock: Simulated
    _looks_under: TradingState | None
    _mark: int
    _source: Database
    _stood: Mapping[str, Any] | None

    @classmethod
    def at(cls, path: Path) -> JournalDatabase:
        """Open the database of a replay, and make it if need be; errors are those of `open`."""
        return cast(JournalDatabase, cls.open(path, now=System().real_now))

    def knows(self, instance: str) -> bool:
        """Return whether ticks of an instance have run here."""
        return self.row("SELECT 1 AS found FROM chains WHERE instance = ?", instance) is not None

    def begin(self, source: Database, instance: str, torra_key: str) -> None:
        """Set an instance to the state that it had before one of its ticks in `source`."""
        stored, _ = replay_queries.journal_row(source, torra_key)
        event = stored["before"]["signal_event"]
        rows = replay_queries.state_before(source, instance, torra_key, event, MARKOV_HISTORY + 1)
        with self.transaction():
            self._forget(instance)
            for sentiment, chain in zip(rows["sentiment"], rows["chains"], strict=True):
                number = self.add("sentiment", {name: sentiment[name] for name in SENTIMENT})
                self.add("chains", {**chain, "sentiment_id": number})
            self._put_signals(rows)

    def enter(
        self,
        source: Database,
        record: JournalRecord,
        clock: Simulated,
        after: Sequence[Mapping[str, Any]] = (),
        stored_at: str = "",
    ) -> None:
        """Go to the moment of a tick: `clock` shows its start, and later its time of decision.

        `after` are the steps that its instance's signals took from that moment on to the next tick,
        `stored_at` is the real time at which it was stored.
        """
        self._source, self._then, self._clock = source, record, clock
        self._stood = None
        clock.set(parse(record.now))
        instance, before = record.instance, record.before
        with self.transaction():
            for side in ("BUY", "SELL"):
                self.set_latch(instance, side, side in before.latches)
            cursor = parse(before.paper_cursor) if before.paper_cursor else None
            if cursor is None:
                self.change("DELETE FROM paper_cursor WHERE instance = ?", instance)
            elif cursor != self.paper_cursor(instance):
                self.set_paper_cursor(instance, cursor)
        self._looks_under = self._stopped(after, stored_at)
        self._mark = self._newest_step()

    def steps(self, instance: str) -> list[Step]:
        """Return the steps of an instance's signals since `enter`."""
        return steps_of(replay_queries.signal_steps(self, instance, self._mark, None))

    def follow(self, source: Database, instance: str, event: int | None) -> None:
        """Take over an instance's signals as they were after a step of `source` (None: the newest).

        What the tick did here stays where it is the same there.
        """
        newest = event if event is not None else source.standing(instance)["signal_event"]
        rows = replay_queries.state_before(source, instance, "", newest, 0)
        with self.transaction():
            self._forget_signals_of(instance)
            self._put_signals(rows)

    # --- what the record tells -------------------------------------------------------------------

    def trading_state(self) -> TradingState:
        """Return the trading state under which the tick looked, and later decided."""
        return self._looks_under or cast(TradingState, self._then.desk.trading_state)

    def exposure(self, instance: str, timeframe: str, *, as_of: datetime) -> dict[str, Any]:
        """Return the desk's exposure as the tick met it."""
        del instance, timeframe, as_of
        return dict(self._then.desk.exposure)

    def memory_context(
        self,
        instance: str,
        timeframe: str,
        *,
        as_of: datetime,
        profile: Profile,
        symbol: str,
        price: float,
    ) -> dict[str, Any]:
        """Return what the stream remembers, and how many positions there were elsewhere.

        All of it is the record's where others changed signals between look and decision.
        """
        if self._saw_other_signals():  # the schema has no room for them beside those of now
            return dict(self._then.memory)
        found = super().memory_context(
            instance, timeframe, as_of=as_of, profile=profile, symbol=symbol, price=price
        )
        return {**found, "open_elsewhere": self._then.memory["open_elsewhere"]}

    def save_sentiment(self, *args: Any, **values: Any) -> ConsensusResult:
        """Store the scores of the tick; from here on it decides, so the clock moves on."""
        self._clock.set(parse(self._then.desk.decided))
        self._looks_under = None
        self._catch_up()
        return super().save_sentiment(*args, **values)

    def company(
        self,
        key: TickKey,
        close_time: datetime,
        timeframes: Sequence[str],
        together: Mapping[str, float],
    ) -> OpeningContext | None:
        """Return what the tick hung on; what its close has done here already it did not see.

        None where nothing could open then, or nobody was to be asked.
        """
        context = self._then.company
        found = super().company(key, close_time, timeframes, together)
        if context is None or found is None:
            return None
        latest = self._latest_composites(key, close_time, timeframes)
        if not self._same_close_records(key, close_time, latest):
            self._stood = found.as_dict()
        return found._replace(position=context.held, latched=frozenset(context.latched))

    def record(self, torra_key: str) -> dict[str, Any]:
        """Return the record of a tick of then: those that run here anew write none."""
        return self._source.record(torra_key)

    def company_unlike(self) -> tuple[Any, Any] | None:
        """Return what openings were foreseen by as the record has it, and what stood here instead.

        None where the two are the same, and where that cannot be known: of a tick that was not the
        first of its close, or that a crash parted from it, or during which a signal took a step.
        """
        before, company = self._then.before, self._then.company
        moved = before.signal_event != self._then.desk.signal_event
        if self._stood is None or company is None or before.looked is not None or moved:
            return None
        then = company.as_json()
        return None if then == self._stood else (then, self._stood)

    # --- lessons: no tick learns here, each is told what it was told then -------------------------

    def write_lesson(self, facts: LessonFacts, words: LessonText) -> None:
        """Write no lesson of a trade that ended again."""
        del facts, words

    def note_lesson_uses(self, torra_key: str, numbers: Sequence[int]) -> None:
        """Note nothing: the lessons of then lie in the source."""

    def vetoed_openings(self, instance: str) -> list[VetoedOpening]:
        """Return none: a record has no bars for them."""
        del instance
        return []

    # --- details --------------------------------------------------------------------------------

    def _saw_other_signals(self) -> bool:
        """Return whether others changed signals between a tick's look and where it stood.

        A tick that was stored behind others of its close stood behind what came between the two.
        What was born meanwhile it did not see: that was decided at its close or later.
        """
        before = self._then.before
        if before.looked is None:
            return False
        steps = replay_queries.signal_steps(
            self._source, self._then.instance, before.looked, before.signal_event
        )
        born = {step["sid"] for step in steps if step["from_state"] is None}
        return any(step["sid"] not in born and not _on_paper(step) for step in steps)

    def _catch_up(self) -> None:
        """Do what others did to the instance's signals while the tick was debated.

        What happens on paper happens at the look, and here anew: it is not taken over.
        """
        instance, upto = self._then.instance, self._then.desk.signal_event or 0
        before = self._then.before
        since = before.signal_event if before.looked is None else before.looked
        ends = {
            step["sid"]: step
            for step in replay_queries.signal_steps(self._source, instance, since, upto)
        }
        others = {
            sid
            for sid, step in ends.items()
            if self.last_state(sid) != step["to_state"] and not _on_paper(step)
        }
        self._take_over(others, instance, upto)

    def _take_over(self, sids: Collection[str], instance: str, event: int) -> None:
        """Let some signals be here what they were in the source after a step."""
        if sids:
            rows = replay_queries.state_before(self._source, instance, "", event, 0)
            theirs = {
                name: [row for row in rows[name] if row["sid"] in sids] for name in SIGNAL_TABLES
            }
            for sid in sids:
                self.change("DELETE FROM signal_events WHERE sid = ?", sid)
                self.change("DELETE FROM signals WHERE sid = ?", sid)
            self._put_signals(theirs)

    def _put_signals(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        for table in SIGNAL_TABLES:
            for row in rows[table]:
                self.add(table, {k: v for k, v in row.items() if k not in NUMBERS})

    def _forget(self, instance: str) -> None:
        """Forget an instance's scores and signals."""
        known = self.rows("SELECT sentiment_id AS id FROM chains WHERE instance = ?", instance)
        self.change("DELETE FROM chains WHERE instance = ?", instance)
        for row in known:
            self.change("DELETE FROM sentiment WHERE id = ?", row["id"])
        self._forget_signals_of(instance)

    def _forget_signals_of(self, instance: str) -> None:
        self.change(
            "DELETE FROM signal_events WHERE sid IN (SELECT sid FROM signals WHERE instance = ?)",
            instance,
        )
        self.change("DELETE FROM signals WHERE instance = ?", instance)

    def _stopped(self, after: Sequence[Mapping[str, Any]], stored_at: str) -> TradingState:
        """Return the state under which a tick looked: the record has that of its decision.

        A halt, or its end, may have come in between. At the look it counted if it took back a
        signal that was there, before the tick was stored. Times are whole seconds: of the same one
        the record's own state is believed.
        """
        state = self._then.desk.trading_state
        for step in after:
            in_time = step["at"] < stored_at or (step["at"] == stored_at and state != "ACTIVE")
            if in_time and step["detail"] in STOPS and self.signal(step["sid"]):
                return STOPS[step["detail"]]
        return "ACTIVE"

    def _newest_step(self) -> int:
        row = self.row("SELECT max(id) AS id FROM signal_events")
        return int(row["id"] or 0) if row else 0


def _on_paper(step: Mapping[str, Any]) -> bool:
    """Return whether a step is one that the paper bridge alone makes."""
    return step["bridge"] == "paper" and step["to_state"] in (*EXECUTED, "CLOSED", "REJECTED")


def steps_of(rows: Sequence[Mapping[str, Any]]) -> list[Step]:
    """Return rows of signal steps without what only one database knows of them."""
    return [(row["sid"], row["from_state"], row["to_state"]) for row in rows]

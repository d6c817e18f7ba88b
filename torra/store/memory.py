"""The store in memory: what a running instance needs of a database, without a file.

`MemoryStore` takes the place of the desk's database in `run_tick`, for ticks whose record nobody
keeps: the arms of a replay. It holds what the next tick depends on: claims, the newest chains of
each stream, signals, latches, the paper cursor, the trading state, and the lessons that an arm
makes by itself: facts with the words of the rules, the newest as many as a tick may be told of.
Journal, calls, pictures, news and proposals are dropped as they come. The brain, the books and the
steps of a signal are the database's own code (torra.store.brain, torra.store.trade.positions,
torra.verdict.signal_states).

A transaction that raises leaves no trace, as in the database. A broken score, a wrong step and a
second opening raise ValueError. Ticks of one stream come in the order of their closes. What no
later tick can ask for is forgotten, so a long replay needs no more memory than a short one.
`as_json` and `of` carry the whole state through a checkpoint unchanged. There is no lock, no clock
and no disk.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from pydantic import TypeAdapter

from torra.config import Profile
from torra.errors import bounded
from torra.evidence.news_digest import NewsItem
from torra.lessons.facts import PriceRange
from torra.lessons.lesson import Fresh, Kind, Lesson, LessonFacts, LessonText, Situation
from torra.store.brain import Composites, History, StoredTick
from torra.store.connection import RowDict, TickKey, stamp
from torra.store.tick_store import TickStore
from torra.store.ticks import claim_lost
from torra.store.trade.memory_signals import MemorySignals, Stream
from torra.verdict.risk_engine import TradingState
from torra.verdict.sentiment_rules import (
    CHAINS,
    MARKOV_HISTORY,
    MarkovMoves,
    MarkovView,
)
from torra.verdict.vetoed import VetoedOpening

VERSION: Final = 5
"""Of the JSON state; another one is refused."""

CLAIMS: Final = 500
"""Newest claims of a stream that are kept; an older tick counts as done."""

LESSONS: Final = 5_000
"""Newest lessons that are kept: those of which a tick may be told."""

SITUATIONS: Final = 200
"""Markets of openings that are kept; those of openings that never came about go first."""

Ranges = Callable[[str, datetime, datetime], PriceRange | None]
"""Gives the range of an instance's bars that lie wholly between two moments."""

UNFINISHED: Final = ("claimed", "released")


class ScoredTick(NamedTuple):
    """One tick as the brain remembers it; the times are the same moment, the text ISO."""

    close_text: str
    close_time: datetime
    composites: tuple[float, float, float, float]
    consensus: float
    verdict: str


STATE: Final[Mapping[str, Any]] = {
    "signals": list[tuple[str, RowDict]],
    "live_sids": list[tuple[str, None]],
    "closes": list[tuple[str, list[str]]],
    "trades": list[tuple[str, list[tuple[str, int, str]]]],
    "losses": list[tuple[Stream, str]],
    "seq": int,
    "step_number": int,
    "kept": int,
    "latches": list[Stream],
    "cursors": list[tuple[str, str]],
    "ended": list[RowDict],
    "situations": list[tuple[str, Situation]],
    "lessons": list[tuple[int, Lesson]],
    "learnt": list[tuple[tuple[str, str], int]],
    "newest_lesson": int,
    "vetoed": list[tuple[str, VetoedOpening]],
    "stretches": list[tuple[str, str]],
    "claims": list[tuple[Stream, dict[str, list[Any]]]],
    "forgotten": list[tuple[Stream, str]],
    "chains": list[tuple[Stream, list[ScoredTick]]],
    "states": list[RowDict],
    "alarms": list[tuple[str, RowDict]],
}
"""The parts of the state: a dict as its pairs. Moves are counted anew."""


class MemoryStore(MemorySignals, TickStore):
    """One instance's, or one desk's, store in memory. Any thread may use it, one at a time."""

    def __init__(
        self, profiles: Mapping[str, Profile] | None = None, ranges: Ranges = lambda *_: None
    ) -> None:
        """Begin empty; `profiles` maps an instance's id to the profile that it runs.

        A profile has the trading conditions that value a position. An instance without one has the
        shipped conditions. `ranges` knows how far prices went while a trade was held.
        """
        super().__init__(profiles)
        self._ranges = ranges
        self._situations: dict[str, Situation] = {}
        self._lessons: dict[int, Lesson] = {}
        self._learnt: dict[tuple[str, str], int] = {}
        self._newest_lesson = 0
        self._vetoed: dict[str, VetoedOpening] = {}
        self._stretches: dict[str, str] = {}
        self._claims: dict[Stream, dict[str, list[Any]]] = {}
        self._forgotten: dict[Stream, str] = {}
        self._chains: dict[Stream, list[ScoredTick]] = {}
        self._moves: dict[Stream, MarkovMoves] = {}
        self._states: list[RowDict] = []
        self._alarms: dict[str, RowDict] = {}

    # --- claims ---------------------------------------------------------------------------------

    def claim_tick(self, key: TickKey) -> bool:
        """Claim a tick: True when it had no claim, or one that was released.

        False when it is done, skipped, being worked on, or older than any that is kept.
        """
        claims, at = self._stream_claims(key)
        row = claims.get(at)
        # Its row was forgotten: it was done or skipped, and must not run twice.
        if row is None and at <= self._forgotten.get(key[:2], ""):
            return False
        if row is not None and row[0] != "released":
            return False
        self._put(claims, at, ["claimed", "", ""])
        # Only at twice the bound, so that sorting is rare.
        if len(claims) > 2 * CLAIMS:
            self._forget_claims(key[:2])
        return True

    def release_claim(self, key: TickKey) -> None:
        """Give a claim back; without effect when there is none or the tick is finished."""
        claims, at = self._stream_claims(key)
        if claims.get(at, [""])[0] == "claimed":
            self._put(claims, at, ["released", "", ""])

    def skip_tick(self, key: TickKey, reason: str, detail: str) -> bool:
        """Record why a tick is not run; False when it is done or skipped."""
        claims, at = self._stream_claims(key)
        if claims.get(at, ["released"])[0] not in UNFINISHED:
            return False
        self._put(claims, at, ["skipped", reason, bounded(detail)])
        return True

    def require_claim(self, key: TickKey) -> None:
        """Raise StoreUnavailable unless the tick is claimed."""
        claims, at = self._stream_claims(key)
        if claims.get(at, [""])[0] != "claimed":
            raise claim_lost(key)

    def finish_tick(self, key: TickKey) -> None:
        """Set a claim done; StoreUnavailable when there is none."""
        self.require_claim(key)
        claims, at = self._stream_claims(key)
        self._put(claims, at, ["done", "", ""])

    def _stream_claims(self, key: TickKey) -> tuple[dict[str, list[Any]], str]:
        return self._claims.setdefault(key[:2], {}), stamp(key.bar_time)

    def _forget_claims(self, stream: Stream) -> None:
        claims = self._claims[stream]
        old = sorted(at for at, row in claims.items() if row[0] not in UNFINISHED)[:-CLAIMS]
        if not old:
            return
        # The transaction may still raise: then they are put back.
        gone = {at: claims.pop(at) for at in old}
        self._undoing(lambda: claims.update(gone))
        self._put(self._forgotten, stream, old[-1])

    # --- what the brain reads -------------------------------------------------------------------

    def _latest_composites(
        self, key: TickKey, close_time: datetime, timeframes: Sequence[str]
    ) -> Composites:
        latest: Composites = {}
        for timeframe in timeframes:
            for row in reversed(self._chains.get((key.instance, timeframe), ())):
                if row.close_time <= close_time:
                    composites = dict(zip(CHAINS, row.composites, strict=True))
                    latest[timeframe] = (row.close_time, composites)
                    break
        return latest

    def _history(self, instance: str, timeframe: str, as_of: datetime, limit: int) -> History:
        rows = self._chains.get((instance, timeframe), [])
        known = rows[: bisect_left(rows, as_of, key=lambda row: row.close_time)]
        return [(row.close_text, row.consensus, row.verdict) for row in known[-limit:]]

    def _keep_tick(self, tick: StoredTick) -> None:
        key, close_time, saved = tick[:3]
        stream = key[:2]
        composites = (
            saved.l1_composite,
            saved.low_composite,
            saved.high_composite,
            saved.composite,
        )
        row = ScoredTick(stamp(close_time), close_time, composites, saved.consensus, saved.verdict)
        if stream not in self._chains:
            self._put(self._chains, stream, [])
        rows, moves = self._chains[stream], self._moves.get(stream)
        if rows and rows[-1].close_time >= close_time:
            # The moves are counted as ticks come: one out of order would be counted wrong for ever.
            raise ValueError(f"{key.text} is not newer than the newest tick of its stream")
        rows.append(row)
        if moves is not None:
            moves.add(close_time, saved.consensus)
        # Moves cannot be taken out of a count: without them the next tick counts anew.
        self._undoing(lambda: self._moves.pop(stream, None), lambda: rows.remove(row))
        if len(rows) > 2 * MARKOV_HISTORY:
            self._put(self._chains, stream, rows[-MARKOV_HISTORY:])

    def _markov(
        self, instance: str, timeframe: str, as_of: datetime, profile: Profile
    ) -> tuple[MarkovView, History]:
        """Return the same from moves that are counted as ticks come, not anew each time."""
        stream, lookback = (instance, timeframe), profile.agents.history_lookback
        rows, moves = self._chains.get(stream, []), self._moves.get(stream)
        if rows and rows[-1].close_time >= as_of:
            # A question about the past: the running count knows too much.
            return super()._markov(instance, timeframe, as_of, profile)
        # Other cut points make other states: they are counted anew.
        if moves is None or (
            moves.settings is not profile.markov and moves.settings != profile.markov
        ):
            moves = self._moves[stream] = MarkovMoves(timeframe, profile.markov, MARKOV_HISTORY)
            for row in rows[-MARKOV_HISTORY:]:
                moves.add(row.close_time, row.consensus)
        newest = rows[-min(lookback, MARKOV_HISTORY) :]
        return moves.view(), [(row.close_text, row.consensus, row.verdict) for row in newest]

    # --- the desk ---------------------------------------------------------------------------------

    def record(self, torra_key: str) -> RowDict:
        """Return an empty one: no record is kept."""
        del torra_key
        return {}

    def standing(self, instance: str) -> RowDict:
        """Return what an instance has before a tick: paper_cursor, latches, signal_event."""
        return {
            "paper_cursor": self._cursors.get(instance),
            "latches": sorted(side for name, side in self._latches if name == instance),
            "signal_event": self._step_number,
        }

    def trading_state(self) -> TradingState:
        """Return ACTIVE, REDUCING or HALTED."""
        return cast(TradingState, self._states[-1]["state"]) if self._states else "ACTIVE"

    def _note_state(self, state: str, reason: str) -> None:
        self._states.append({"state": state, "reason": reason})
        self._undoing(self._states.pop)

    def raise_alarm(self, key: str, kind: str, detail: str) -> bool:
        """Put an alarm on record; False while one of that key stands."""
        if key in self._alarms:
            return False
        self._put(self._alarms, key, {"kind": kind, "detail": bounded(detail)})
        return True

    def end_alarm(self, key: str) -> bool:
        """End an alarm that stands; False when none does."""
        gone = self._alarms.pop(key, None)
        if gone is not None:
            self._undoing(lambda: self._alarms.__setitem__(key, gone))
        return gone is not None

    # --- lessons --------------------------------------------------------------------------------

    def keep_situation(self, sid: str, situation: Situation) -> None:
        """Keep the market of an opening; the first one of an id stands."""
        if sid in self._situations:
            return
        self._put(self._situations, sid, situation)
        if len(self._situations) > SITUATIONS:
            self._drop(self._situations, next(iter(self._situations)))

    def situation(self, sid: str) -> Situation | None:
        """Return the market of an opening; None where none was kept."""
        return self._situations.get(sid)

    def write_lesson(self, facts: LessonFacts, words: LessonText) -> int | None:
        """Write a lesson and return its number; None where there is one of its trade already."""
        key = facts.sid, facts.kind
        if key in self._learnt:
            return None
        number, before = self._newest_lesson + 1, self._newest_lesson
        self._undoing(lambda: setattr(self, "_newest_lesson", before))
        self._newest_lesson = number
        self._put(self._lessons, number, Lesson(number, facts, (words,)))
        self._put(self._learnt, key, number)
        if len(self._lessons) > LESSONS:
            oldest = self._lessons[next(iter(self._lessons))]
            self._drop(self._lessons, oldest.number)
            self._drop(self._learnt, (oldest.facts.sid, oldest.facts.kind))
        return number

    def lesson(self, sid: str, kind: Kind = "trade") -> Lesson | None:
        """Return the lesson of an opening; None where there is none."""
        number = self._learnt.get((sid, kind))
        return None if number is None else self._lessons[number]

    def lessons_since(self, facts: int, words: int) -> Fresh:
        """Return what is newer than a lesson's number; no words come later here."""
        if facts == self._newest_lesson:
            return Fresh([], [], facts, words)
        fresh = [one for number, one in self._lessons.items() if number > facts]
        return Fresh(fresh, [], self._newest_lesson, self._newest_lesson)

    def price_range(self, instance: str, opened: datetime, closed: datetime) -> PriceRange | None:
        """Return the range of the bars that lie wholly between two moments; None without any."""
        return self._ranges(instance, opened, closed)

    # --- vetoed openings ------------------------------------------------------------------------

    def vetoed_openings(self, instance: str) -> list[VetoedOpening]:
        """Return the vetoed openings of an instance that have not ended, oldest first."""
        if not self._vetoed:
            return []
        openings = (one for one in self._vetoed.values() if one.instance == instance)
        return sorted(openings, key=lambda one: (one.decided_at, one.sid))

    def keep_vetoed(self, opening: VetoedOpening) -> None:
        """Keep a vetoed opening as it stands now."""
        self._put(self._vetoed, opening.sid, opening)

    def end_vetoed(self, sid: str) -> None:
        """Forget a vetoed opening that has ended: its lesson tells of it."""
        if sid in self._vetoed:
            self._drop(self._vetoed, sid)

    def veto_stretch(self, instance: str) -> str | None:
        """Return the side whose openings are being vetoed now, tick after tick; None for none."""
        return self._stretches.get(instance)

    def set_veto_stretch(self, instance: str, side: str | None) -> None:
        """Begin a stretch of vetoes of a side, or end the one that stands."""
        if side is not None:
            self._put(self._stretches, instance, side)
        elif instance in self._stretches:
            self._drop(self._stretches, instance)

    def _drop(self, table: dict[Any, Any], key: object) -> None:
        """Take an entry out of a table so that the transaction can put it back in its place."""
        before = dict(table)

        def put_back() -> None:
            table.clear()
            table.update(before)

        self._undoing(put_back)
        del table[key]

    # --- what is not kept -----------------------------------------------------------------------

    def _nothing(self, *_: object) -> None:
        """Drop what is handed over; nothing is there to be read."""

    def _no(self, *_: object) -> bool:
        """Return False: what is handed over is dropped, and nothing waits."""
        return False

    bar_revision = write_journal = write_calls = require_desk = note_lesson_uses = _nothing
    record_late = propose = proposal_waits = close_waits = _no

    def store_picture(self, picture: bytes) -> str:
        """Drop a picture."""
        del picture
        return ""

    def store_news(self, items: Iterable[NewsItem]) -> int:
        """Drop headlines."""
        del items
        return 0

    # --- checkpoints ----------------------------------------------------------------------------

    def as_json(self) -> RowDict:
        """Return the whole state as JSON values; `of` makes the same store of it again."""
        state: RowDict = {"version": VERSION}
        for name, kind in STATE.items():
            value = getattr(self, f"_{name}")
            pairs = [*value.items()] if isinstance(value, dict) else value
            pairs = sorted(value) if isinstance(value, set) else pairs
            state[name] = TypeAdapter(kind).dump_python(pairs, mode="json")
        return state

    @classmethod
    def of(
        cls,
        state: Mapping[str, Any],
        profiles: Mapping[str, Profile] | None = None,
        ranges: Ranges = lambda *_: None,
    ) -> MemoryStore:
        """Return the store that `as_json` described; ValueError for another version's state."""
        if state.get("version") != VERSION:
            raise ValueError(f"the state is of version {state.get('version')}, not {VERSION}")
        store = cls(profiles, ranges)
        for name, kind in STATE.items():
            empty = getattr(store, f"_{name}")
            setattr(store, f"_{name}", type(empty)(TypeAdapter(kind).validate_python(state[name])))
        return store

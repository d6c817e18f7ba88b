"""The event streams of a desk: what ticks report while they run, written down for any follower.

The desk hands `on_event` to its ticks as their listener. It runs on the threads of ticks, so it
only shapes an event and puts it into a bounded queue. One thread of its own writes the queue in
short transactions and wakes the followers. Each attempt at a tick has its own stream, numbered from
1 without a gap; its last event, the only terminal one, is `decision` or `error`. A stream whose
desk was killed gets its `error` from the next desk (`start`). The stream `desk` says what
changed, so that pages need not poll; for that the writer also looks, once a second, for what others
changed.

When something fails no tick notices. Events that find the queue full are left out and the terminal
one counts them; an attempt that begins then has no stream. While the database cannot be written
events wait. torra.store.envelopes shapes events, torra.store.streams has the tables, the dashboard
informs browsers.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from torra.clock import System, token
from torra.errors import StoreUnavailable
from torra.services import Service
from torra.store import envelopes
from torra.store import streams as stream_table
from torra.store.connection import Store
from torra.store.envelopes import DESK_STREAM, Shaped, StreamEvent

log = logging.getLogger("torra")

CAPACITY: Final = 2000
"""Events that may wait to be written; terminal ones come on top."""

BATCH: Final = 500
"""Events that are written in one transaction."""

GATHER_SECONDS: Final = 0.1
"""How long the writer gathers before it writes: a tick of many events costs few transactions."""

RETRY_SECONDS: Final = 0.5
"""Time between two looks of the writer, and before it tries a failed database again."""

PATIENCE_SECONDS: Final = 2.0
"""How long a transaction of the writer waits for others."""

PULSE_SECONDS: Final = 1.0
"""Time between two looks for what others have changed, while the desk works."""

CLOSE_SECONDS: Final = 2.0
"""How long closing waits for what is not written yet."""

PULSES: Final = {"audit": "state"}
"""The word for a change, where the pulse of the database uses another."""

MONOTONIC: Final = System().monotonic

WHERE: Final = ("instance", "timeframe", "bar_time")

Change = Mapping[str, Any]
Listener = Callable[[Change], None]
"""Hears what changed: {what, instance?, timeframe?, bar_time?, stream_id?}."""


@dataclass(slots=True)
class Attempt:
    """One attempt at a tick, while it runs; `dropped` counts what found the queue full."""

    stream_id: str
    where: Mapping[str, Any]
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """An event that waits to be written; `opens` is the key of the tick whose stream it begins."""

    stream_id: str
    event: Shaped
    opens: str | None = None


class EventStream(Service):
    """The streams of one desk: takes events from ticks, writes them, wakes followers.

    `owner` names this process in the database, by default a random name. `written` grows with every
    batch that can be read.
    """

    def __init__(
        self,
        database: Store,
        *,
        owner: str = "",
        monotonic: Callable[[], float] = MONOTONIC,
        capacity: int = CAPACITY,
        gather: float = GATHER_SECONDS,
    ) -> None:
        super().__init__("events", RETRY_SECONDS, self._turn)
        self.owner = owner or token(8)
        self.written = 0
        self._database = database
        self._monotonic = monotonic
        self._capacity = capacity
        self._gather = gather
        self._queue: deque[PendingEvent] = deque()
        self._attempts: dict[str, Attempt] = {}
        # Two locks: followers who wait for events may not hold up the ticks that bring them.
        self._queue_lock = threading.Lock()
        self._news = threading.Condition()
        self._closing = threading.Event()
        self._active = False
        self._orphans = False
        self._pulse: Mapping[str, Any] = {}
        self._pulse_at = -math.inf
        self._listeners: list[Listener] = []

    # --- hearing ----------------------------------------------------------------------------------

    def on_event(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Take an event of a tick; never waits, never raises."""
        try:
            with self._queue_lock:
                if not self.closed:
                    self._take(kind, payload)
        except Exception:
            log.exception("an event of the kind %s was left out", kind)

    def changed(self, what: str, **where: str) -> None:
        """Report a change: of tick, running, signals, proposals, state, profile or jobs."""
        with self._queue_lock:
            if not self.closed:
                self._put(DESK_STREAM, Shaped("changed", {"what": what, **where}))

    def _take(self, kind: str, payload: Mapping[str, Any]) -> None:
        event = envelopes.shaped(kind, payload)
        if event is None:
            return
        key = str(payload.get("torra_key"))
        if kind == "tick_start":
            self._begin(key, event)
        elif (attempt := self._attempts.get(key)) is None:
            return  # told too late, or of an attempt that has no stream
        elif event.terminal:
            del self._attempts[key]
            self._end(attempt, event)
        elif not self._put(attempt.stream_id, event):
            attempt.dropped += 1

    def _begin(self, key: str, event: Shaped) -> None:
        # The tick is tried again before its first attempt reported an end.
        if (left := self._attempts.pop(key, None)) is not None:
            self._end(left, envelopes.failure(*envelopes.REPLACED))
        attempt = Attempt(f"tick_{token()}", {name: event.payload[name] for name in WHERE})
        if self._put(attempt.stream_id, event, opens=key):
            self._attempts[key] = attempt
        self._tell_desk("running", attempt)

    def _end(self, attempt: Attempt, event: Shaped) -> None:
        if attempt.dropped:
            event.payload["dropped"] = attempt.dropped
        self._put(attempt.stream_id, event)
        self._tell_desk("tick", attempt)

    def _tell_desk(self, what: str, attempt: Attempt) -> None:
        payload = {"what": what, **attempt.where, "stream_id": attempt.stream_id}
        self._put(DESK_STREAM, Shaped("changed", payload))

    def _put(self, stream_id: str, event: Shaped, opens: str | None = None) -> bool:
        """Queue an event; one that is not terminal only while there is room."""
        # A terminal event always gets in: a stream without one would look alive for ever.
        if len(self._queue) >= self._capacity and not event.terminal:
            return False
        self._queue.append(PendingEvent(stream_id, event, opens))
        self._start_writer()
        return True

    # --- life -------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether the desk of this process works, so that followers are woken."""
        return self._active and not self.closed

    @property
    def closed(self) -> bool:
        """Whether nothing will be heard any more."""
        return self._closing.is_set()

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every change that was written, on the writer's thread.

        What it raises is logged. It should return at once: events are written after it.
        """
        self._listeners.append(listener)

    def start(self) -> None:
        """Set to work: end what earlier desks left open, look for changes."""
        with self._queue_lock:
            if not self.closed:
                self._active = self._orphans = True
                # The first look only remembers: against nothing, everything would have changed.
                self._pulse = {}
                self._start_writer()

    def close(self, within: float = CLOSE_SECONDS) -> None:
        """Write what waits, for `within` seconds at most, and end; those who follow are woken.

        An attempt that is still open ends in an error. What is not written in time is left as by a
        crash: the next desk ends those streams.
        """
        with self._queue_lock:
            for attempt in self._attempts.values():
                self._end(attempt, envelopes.failure(*envelopes.LOST))
            self._attempts.clear()
            self._closing.set()
        self.wake()
        with self._news:
            self._news.wait_for(lambda: not self._queue, within)
        # The writer may be inside a transaction, which waits this long at most.
        super().close(PATIENCE_SECONDS)
        self._tell_followers()

    def _start_writer(self) -> None:
        super().start()
        self.wake()

    # --- for those who follow ---------------------------------------------------------------------

    def wait(self, written: int, seconds: float) -> None:
        """Wait, `seconds` at most, until more is written than when `written` was read."""
        with self._news:
            self._news.wait_for(lambda: self.written != written or self.closed, seconds)

    def _tell_followers(self) -> None:
        with self._news:
            self.written += 1
            self._news.notify_all()

    # --- the writer -------------------------------------------------------------------------------

    def _turn(self) -> float | None:
        """Write a batch of what waits; return 0 where more is there to be written."""
        if self._queue and not self.closed:
            # Waits on closing, so that a desk that stops need not sit the pause out.
            self._closing.wait(self._gather)
        if self.ending:
            return None
        with self._queue_lock:
            # Copied, not taken: what is not written yet stays in the queue for the next try.
            batch = [*islice(self._queue, BATCH)]
        self._end_orphans()
        self._settle(batch)
        self._look()
        return 0.0 if self._queue else None

    def _end_orphans(self) -> None:
        with self._queue_lock:
            wanted, self._orphans = self._orphans, False
        last = envelopes.written(envelopes.failure(*envelopes.LOST))
        try:
            # A few at a time, each in its own transaction, so that ticks get in between.
            while wanted and stream_table.end_orphans(self._database, self.owner, last):
                self._tell_followers()
        except StoreUnavailable:
            self._orphans = wanted
            raise
        except Exception:  # what is wrong with others' streams may not keep ours from being told
            log.exception("streams that others left open stay so until the next start")

    def _settle(self, batch: list[PendingEvent]) -> None:
        """Write a batch and pass its changes on; raises StoreUnavailable."""
        if not batch:
            return
        changes: list[Change] = []
        try:
            changes = self._store(batch)
        # Another time may do: the batch stays queued. Anything else would fail for ever.
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("%s events could not be written", len(batch))
            self._give_up(batch)
        with self._queue_lock:
            for _ in batch:  # what came meanwhile stands behind it
                self._queue.popleft()
        self._tell_followers()
        for change in changes:
            for listener in self._listeners:
                try:
                    listener(change)
                except Exception:
                    log.exception("a listener failed")

    def _store(self, batch: list[PendingEvent]) -> list[Change]:
        """Write a batch, all of it or nothing; return the changes in it."""
        changes = _last_of_each(item for item in batch if item.stream_id == DESK_STREAM)
        opens = {item.stream_id: item.opens for item in batch if item.opens is not None}
        rows: dict[str, list[StreamEvent]] = {}
        for item in batch:
            if item.stream_id != DESK_STREAM:
                rows.setdefault(item.stream_id, []).append(envelopes.written(item.event))
        if changes:
            opens[DESK_STREAM] = ""
            rows[DESK_STREAM] = [
                envelopes.written(Shaped("changed", dict(change))) for change in changes
            ]
        with self._database.transaction(PATIENCE_SECONDS):
            for stream_id, events in rows.items():
                self._append(stream_id, opens.get(stream_id), events)
        return changes

    def _append(self, stream_id: str, opens: str | None, events: list[StreamEvent]) -> None:
        if opens is not None:
            kind = DESK_STREAM if stream_id == DESK_STREAM else "tick"
            stream_table.open_stream(self._database, stream_id, kind, opens, self.owner)
        stream_table.append_events(self._database, stream_id, self.owner, events)

    def _give_up(self, batch: list[PendingEvent]) -> None:
        """End the streams of a batch that nobody could have written, each as far as it goes."""
        last = envelopes.written(envelopes.failure(*envelopes.UNWRITABLE))
        # Reversed: of each stream its first event stays, the only one that may open it.
        opened = {item.stream_id: item.opens for item in reversed(batch)}
        for stream_id, key in opened.items():
            if stream_id == DESK_STREAM:
                continue
            try:
                with self._database.transaction(PATIENCE_SECONDS):
                    self._append(stream_id, key, [last])
            except Exception:
                log.exception("the stream %s stays open", stream_id)

    def _look(self) -> None:
        """Look, once in a while, for what was changed by others or beside the ticks."""
        if not self._active or self._monotonic() < self._pulse_at + PULSE_SECONDS:
            return
        self._pulse_at = self._monotonic()
        before, self._pulse = self._pulse, stream_table.pulse(self._database)
        if before:
            for name in {
                PULSES.get(name, name)
                for name, value in self._pulse.items()
                if value != before[name]
            }:
                self.changed(name)


def _last_of_each(items: Iterable[PendingEvent]) -> list[Change]:
    """Return the changes of a batch: of several of one sort at one place only the last.

    Every tick that ended is kept: a follower that copies its row elsewhere must not miss one.
    """
    changes: dict[tuple[Any, ...], Change] = {}
    for item in items:
        change = item.event.payload
        which = change.get("bar_time") if change.get("what") == "tick" else None
        changes[change.get("what"), change.get("instance"), change.get("timeframe"), which] = change
    return list(changes.values())

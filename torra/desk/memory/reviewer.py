"""The desk's reviewer: the thread that has closed trades reviewed.

It works where the desk has its lock. It looks for trades that ended within a day and
sends one call in SPACING seconds at most. One call is under way at a time, on the vendors' loop and
with a provider of its own, so a vendor that hangs holds this thread alone: no worker, no list of
vendors that are down, and no connection that a tick could be short of. Nothing here raises into the
desk, no tick waits for it, and whoever closes the desk does not wait for an answer.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Final

from instance_database import Database
from torra.clock import Clock, duration
from torra.config import Instance, Profile
from torra.desk.memory.reviews import (
    ANSWERED,
    GARBAGE,
    Paying,
    Reviewed,
    ReviewRequest,
    Vendors,
    refused,
    review_now,
)
from torra.errors import StoreUnavailable
from torra.lessons.lesson import Lesson
from torra.store import lessons as lesson_table
from torra.store.standings import WarmUps

SPACING: Final = 30.0
"""Real seconds from one call to the next, and from the start of the thread to the first."""

PAUSE: Final = 600.0
"""Real seconds without a call after a vendor gave no answer."""

LOOK_SECONDS: Final = 5.0
"""Real seconds after which the thread looks by itself, woken or not."""

CATCH_UP: Final = timedelta(days=1)
"""Age of a trade's end up to which it is reviewed by itself: calls are kept for a day at least
(DeskSettings.keep_calls_days), and without them nobody knows how often it was tried.
"""

LISTED: Final = 50
"""Newest lessons among which trades to be reviewed are looked for."""

REST_SECONDS: Final = 0.5
"""Real seconds that `rest` waits for the thread."""

log = logging.getLogger("torra")


class Reviewer:
    """Reviews what a desk's instances closed."""

    def __init__(
        self,
        database: Database,
        vendors: Vendors,
        watched: Callable[[], Iterable[tuple[Instance, Profile]]],
        clock: Callable[[], Clock],
    ) -> None:
        """Begin at rest; `watched` and `clock` are those of now."""
        self._database, self._vendors = database, vendors
        self._watched, self._clock = watched, clock
        self._roused, self._ended = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._next = 0.0
        self._told = ""
        self._complained = False
        self._broken: set[str] = set()

    def start(self) -> None:
        """Review closed trades from now on, in a thread of its own."""
        self.rest()
        self._roused, self._ended = threading.Event(), threading.Event()
        self._next = self._clock().monotonic() + SPACING
        self._thread = threading.Thread(
            target=self._walk, args=(self._roused, self._ended), name="reviewer", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Look now: something may have closed. Returns at once."""
        self._roused.set()

    def rest(self) -> None:
        """Stop: this desk closes; a call is left behind."""
        self._ended.set()
        self._roused.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=REST_SECONDS)

    def _walk(self, roused: threading.Event, ended: threading.Event) -> None:
        while not ended.is_set():
            try:
                self.turn(ended)
            except StoreUnavailable as error:
                self._complain("reviews wait: %s", error)
            except Exception as error:  # noqa: BLE001 - a desk goes on whatever happens here
                self._complain("reviews: %s", type(error).__name__)
            else:
                self._complained = False
            roused.wait(LOOK_SECONDS)
            roused.clear()

    def _complain(self, text: str, why: object) -> None:
        if not self._complained:
            log.warning(text, why)
        self._complained = True

    def turn(self, ended: threading.Event) -> Reviewed | None:
        """Review the oldest trade that is due, if it is time; return what became of it."""
        clock = self._clock()
        if clock.monotonic() < self._next or ended.is_set():
            return None
        asking = ReviewRequest(self._database, self._vendors, clock, ended.is_set)
        found: Reviewed | None = None
        passed: set[str] = set()
        for lesson, paying in self._due(asking):
            if paying.name in passed:
                continue
            if not self._database.fence():
                break
            found = review_now(lesson, paying, asking)
            self._tell(lesson, found)
            if found.status:
                break
            if found.broken:
                self._broken.add(lesson.facts.sid)  # of this one alone nobody knows why
                continue
            passed.add(paying.name)  # what keeps one review of a profile keeps the others too
        unanswered = found is not None and found.status not in ("", ANSWERED, GARBAGE)
        self._next = clock.monotonic() + (PAUSE if unanswered else SPACING)
        return found

    def _tell(self, lesson: Lesson, found: Reviewed) -> None:
        if found.why != self._told and not self._ended.is_set():
            log.info("review of %s: %s", lesson.facts.sid, found.why or "written")
        self._told = found.why

    def _due(self, asking: ReviewRequest) -> Iterator[tuple[Lesson, Paying]]:
        """Yield the trades that a model may write of and who pays for it, the oldest first."""
        payers = {
            instance.id: Paying(instance.profile, profile.agents)
            for instance, profile in self._watched()
            if profile.agents.memory.review == "model"
        }
        if not payers:
            return  # nearly every desk
        since, warm_ups = asking.clock.now() - CATCH_UP, WarmUps(self._database)
        for lesson in reversed(
            lesson_table.lesson_list(self._database, {"kind": "trade"}, limit=LISTED)
        ):
            facts = lesson.facts
            paying = payers.get(facts.instance)
            if paying is None or facts.known_at <= since or facts.sid in self._broken:
                continue
            if refused(lesson, paying, asking):
                continue
            close = facts.bar_time + duration(facts.timeframe)
            if not warm_ups.has(facts.instance, facts.timeframe, close):
                yield lesson, paying

"""The desk's reviewer: the thread that has closed trades reviewed.

It works where the desk has its lock. It looks for trades that ended within a day and
sends one call in SPACING seconds at most. One call is under way at a time, on the vendors' loop and
with a provider of its own, so a vendor that hangs holds this thread alone: no worker, no list of
vendors that are down, and no connection that a tick could be short of. Nothing here raises into the
desk, no tick waits for it, and whoever closes the desk does not wait for an answer.
"""

from __future__ import annotations

import logging
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
from torra.lessons.lesson import Lesson
from torra.services import Service
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

CLOSE_SECONDS: Final = 0.5
"""Real seconds that `close` waits for the thread: a call may last much longer."""

log = logging.getLogger("torra")


class Reviewer(Service):
    """Reviews what a desk's instances closed."""

    def __init__(
        self,
        database: Database,
        vendors: Vendors,
        watched: Callable[[], Iterable[tuple[Instance, Profile]]],
        clock: Callable[[], Clock],
    ) -> None:
        """Begin at rest; `watched` and `clock` are those of now."""
        super().__init__("reviews", LOOK_SECONDS, self._turn, at_once=True, private=True)
        self._database, self._vendors = database, vendors
        self._watched, self._clock = watched, clock
        self._next = 0.0
        self._told = ""
        self._broken: set[str] = set()

    def close(self, within: float = CLOSE_SECONDS) -> None:
        """End; a call that is under way is left behind."""
        super().close(min(within, CLOSE_SECONDS))

    def open(self) -> None:
        """Let the first call wait as long as any other one."""
        self._next = self._clock().monotonic() + SPACING

    def _turn(self) -> None:
        self.review_due(lambda: self.ending)

    def review_due(self, ended: Callable[[], bool] = lambda: False) -> Reviewed | None:
        """Review the oldest trade that is due, if it is time; return what became of it."""
        clock = self._clock()
        if clock.monotonic() < self._next or ended():
            return None
        asking = ReviewRequest(self._database, self._vendors, clock, ended)
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
        if found.why != self._told and not self.ending:
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

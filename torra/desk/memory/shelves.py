"""The lessons of a desk: which shelf an instance's ticks ask, and what no tick is told.

One shelf stands for each embedder that the profiles name; most desks have one. It is filled when
the desk starts, beside the ticks, and takes in what is new at each question; a tick that comes
before it is full is told nothing. Lessons of the warm-up are never told:
nobody ran those trades. Neither are, of the shipped sample, those of an earlier pass: its weeks
come again, and what was learnt of them would be the future.

An embedder that cannot be opened is refused where a profile is checked; in a tick the hashed one
takes its place.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Final

from instance_database import Database
from torra.clock import duration
from torra.config import Instance, Profile
from torra.desk.models.embedders import open_embedder
from torra.errors import ConfigError
from torra.feeds.protocol import Feed
from torra.feeds.sample import SampleFeed
from torra.lessons.hashed import hashed
from torra.lessons.lesson import LessonFacts
from torra.lessons.recall import LessonRetriever, Recall
from torra.services import in_background
from torra.store import lessons as lesson_table
from torra.store.standings import WarmUps

FIRST_SECONDS: Final = 0.25
"""Longest wait for a shelf that is new: some hundreds of lessons are read in it. It is at a start,
or once in a tick whose profile has begun to remember.
"""

log = logging.getLogger("torra")


class DeskLessons:
    """The shelves of a desk."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._shelves: dict[str, LessonRetriever] = {}

    def of(self, profile: Profile, feed: Feed) -> Recall | None:
        """Return what tells an instance's ticks of lessons; None where its profile wants none."""
        if not profile.agents.remembers():
            return None
        name = profile.agents.memory.embedder
        with self._lock:
            if name not in self._shelves:
                try:
                    embed = open_embedder(name)
                except ConfigError as error:  # it is gone since the profile was checked
                    log.warning(
                        "%s; lessons are compared by hashed words until the next start", error
                    )
                    embed = hashed
                shelf = self._shelves[name] = LessonRetriever(
                    self._database.lessons_since,
                    embed,
                    leave_out=self._of_warm_up,
                    lap=lap_of(feed),
                )
                # Beside the ticks; a small one is full at once. Where the system has no thread left
                # the next tick fills it.
                with suppress(RuntimeError):
                    in_background("lessons", shelf.fill).join(FIRST_SECONDS)
            return self._shelves[name].recall

    def prepare(self, setups: Iterable[tuple[Profile, Feed]]) -> None:
        """Fill the shelves of some instances before their ticks ask."""
        for profile, feed in setups:
            self.of(profile, feed)

    def _of_warm_up(self, facts: LessonFacts) -> bool:
        """Tell whether a trade was opened in the warm-up."""
        close = facts.bar_time + duration(facts.timeframe)
        # Anew each time: a warm-up may still be on its way.
        return WarmUps(self._database).has(facts.instance, facts.timeframe, close)


def standing(database: Database, setups: Iterable[tuple[Instance, Profile]]) -> str:
    """Return in a sentence how many lessons there are, and whose ticks are told of them."""
    count, reviewed = lesson_table.lesson_count(database), lesson_table.review_count(database)
    lessons = "no lesson yet" if not count else f"{count:,} {'lesson' if count == 1 else 'lessons'}"
    words = (
        f", {reviewed:,} {'review' if reviewed == 1 else 'reviews'} by a model" if reviewed else ""
    )
    readers = [instance.id for instance, profile in setups if profile.agents.remembers()]
    use = f"ticks of {', '.join(readers)} are told" if readers else "no tick is told of lessons"
    return f"{lessons}{words}; {use} (agents.memory.use)"


def lap_of(feed: Feed | None) -> Callable[[datetime], int]:
    """Return what numbers the passes of a feed whose bars come again; 0 for any other feed."""
    return feed.lap if isinstance(feed, SampleFeed) else lambda _moment: 0

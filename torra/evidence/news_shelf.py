"""Keeps files of headlines as a tick may see them: read and scored already, whole, unchanging.

A thread refreshes the files from time to time; that may take seconds, and may hang with a drive. A
tick takes the result of the last refresh and waits for nothing. Where nothing refreshes, as for a
single tick, the files are as they were opened, and the few items that count are scored when they
are asked for.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

from torra.evidence.news_digest import (
    COUNTED,
    READ_ITEMS,
    NewsItem,
    NewsStatus,
    NewsSubject,
    concerns,
    counting,
)

LATE_FILE_S: Final = 120.0
"""A file that was not refreshed for so long counts as gone: a reading takes seconds."""


_arrival: Final = attrgetter("first_seen")


class StoredNews(NamedTuple):
    """Headlines as they stood in a file, the first seen first.

    `status` and `detail` say whether the file could be read at the last refresh, and if not, why.
    """

    items: Sequence[NewsItem]
    status: NewsStatus = NewsStatus.AVAILABLE
    detail: str = ""

    def between(self, since: datetime, as_of: datetime) -> Sequence[NewsItem]:
        """Return what was first seen in (since, as_of], at most the newest READ_ITEMS."""
        first, last = (bisect_right(self.items, at, key=_arrival) for at in (since, as_of))
        return self.items[max(first, last - READ_ITEMS) : last]


class Headlines(Protocol):
    """A file of headlines (torra.news.source.HeadlineFile), or those of a replay."""

    @property
    def topic(self) -> str:
        """The topic of its items."""
        ...

    @property
    def reading(self) -> StoredNews:
        """The last reading."""
        ...

    def look(self) -> None:
        """Read the file again if it has changed; may take seconds."""
        ...


class _Scored(NamedTuple):
    """A reading with its scored items by id, None for an item that concerns no subject.

    `scored` is None before the first refresh; `at` is the time of the last one.
    """

    reading: StoredNews
    at: float
    subjects: tuple[NewsSubject, ...] = ()
    scored: Mapping[str, NewsItem | None] | None = None


class Shelves:
    """The files by name. `read` scores an item; one thread refreshes at a time, any thread asks."""

    def __init__(
        self,
        files: Mapping[str, Headlines],
        read: Callable[[NewsItem], NewsItem],
        monotonic: Callable[[], float],
    ) -> None:
        self._files = dict(files)
        self._monotonic = monotonic
        self._read = read
        self._read_now = lru_cache(maxsize=2 * COUNTED)(read)
        self._refreshing = threading.Lock()
        self._scored = {
            name: _Scored(file.reading, monotonic()) for name, file in self._files.items()
        }

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._files))

    def topic(self, name: str) -> str:
        """Return the topic of a file's items."""
        return self._files[name].topic

    def look(self, wanted: Callable[[str], Sequence[NewsSubject]]) -> None:
        """Read the files that have changed, score what is new, and replace each result as a whole.

        `wanted` returns the subjects that a file is read for; nothing else is scored. While another
        thread does so, this does nothing.
        """
        # A drive may hang for minutes: nobody may queue behind it.
        if not self._refreshing.acquire(blocking=False):
            return
        try:
            for name, file in self._files.items():
                file.look()
                subjects = tuple(wanted(name))
                scored = self._scores(self._scored[name], file.reading, subjects)
                self._scored[name] = _Scored(file.reading, self._monotonic(), subjects, scored)
        finally:
            self._refreshing.release()

    def _scores(
        self, last: _Scored, reading: StoredNews, subjects: tuple[NewsSubject, ...]
    ) -> Mapping[str, NewsItem | None]:
        """Return the scored items of a reading; for the same subjects what was decided stays."""
        decided = (last.scored or {}) if subjects == last.subjects else {}
        # By identity: a file that was not read again has the very same items.
        if decided and reading.items is last.reading.items:
            return decided
        return {
            item.id: decided[item.id]
            if item.id in decided
            else self._read(item)
            if any(concerns(item, subject) for subject in subjects)
            else None
            for item in reading.items
        }

    def known(
        self,
        name: str,
        subject: NewsSubject,
        *,
        since: datetime,
        as_of: datetime,
        max_age_hours: float,
        refreshed: bool,
    ) -> tuple[list[NewsItem], NewsStatus]:
        """Return the items of a file that count, scored, and the status of the file.

        `refreshed` says that a thread refreshes from time to time; before it has once there is
        nothing yet.
        """
        if name not in self._scored:
            return [], NewsStatus.NO_FILE
        # Taken once: `look` may replace it at any moment.
        now = self._scored[name]
        status = self.state(name, refreshed=refreshed)[0]
        if now.scored is None and refreshed:
            return [], NewsStatus.NOT_YET if status is NewsStatus.AVAILABLE else status
        rows = counting(
            now.reading.between(since, as_of), subject, as_of=as_of, max_age_hours=max_age_hours
        )
        scored = now.scored or {}
        return [scored.get(item.id) or self._read_now(item) for item in rows], status

    def state(self, name: str, *, refreshed: bool) -> tuple[NewsStatus, str, int]:
        """Return the status of a file, the reason for it, and the number of its headlines."""
        now = self._scored[name]
        late, count = self._monotonic() - now.at, len(now.reading.items)
        if refreshed and late > LATE_FILE_S:
            return NewsStatus.UNREACHABLE, f"nobody could look at it for {late:.0f} s", count
        return now.reading.status, now.reading.detail, count

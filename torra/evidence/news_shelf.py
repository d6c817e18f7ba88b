"""Keeps files of headlines as a tick may see them: read and scored already, whole, unchanging.

A thread looks at the files from time to time; that may take seconds, and may hang with a drive. A
tick takes the result of the last look and waits for nothing. Where nothing looks, as for a single
tick, the files stand as they were opened, and the few items that count are scored when they are
asked for.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, Protocol

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
"""A file that could not be looked at for so long counts as gone: a reading takes seconds."""


@dataclass(frozen=True)
class ShelvedNews:
    """Headlines as they stood in a file, oldest sight first; it never changes.

    `status` and `told` say whether the file could be read when somebody looked last, and if not,
    why.
    """

    items: Sequence[NewsItem]
    seen: Sequence[datetime]
    status: NewsStatus = NewsStatus.AVAILABLE
    told: str = ""

    def between(self, since: datetime, as_of: datetime) -> Sequence[NewsItem]:
        """Return what was first seen in (since, as_of], at most the newest READ_ITEMS."""
        first, last = bisect_right(self.seen, since), bisect_right(self.seen, as_of)
        return self.items[max(first, last - READ_ITEMS) : last]


class Headlines(Protocol):
    """A file of headlines (torra.news.source.HeadlineFile)."""

    @property
    def topic(self) -> str:
        """The topic of its items."""
        ...

    @property
    def reading(self) -> ShelvedNews:
        """The last reading."""
        ...

    def look(self) -> None:
        """Read the file again if it has changed; may take seconds."""
        ...


@dataclass(frozen=True, slots=True)
class _Finished:
    """A reading with its scored items by id, None for an item that concerns no subject.

    It never changes. `scored` is None before the first look; `at` is the time of the last look.
    """

    reading: ShelvedNews
    at: float
    subjects: tuple[NewsSubject, ...] = ()
    scored: Mapping[str, NewsItem | None] | None = None


class Shelves:
    """The files by name. `read` scores an item; one thread looks at a time, any thread asks."""

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
        self._looking = threading.Lock()
        self._finished = {
            name: _Finished(file.reading, monotonic()) for name, file in self._files.items()
        }

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._files))

    def topic(self, name: str) -> str:
        """Return the topic of a file's items."""
        return self._files[name].topic

    def look(self, wanted: Callable[[str], Sequence[NewsSubject]]) -> None:
        """Read the files that have changed, score what is new, and replace each result as a whole.

        `wanted` returns the subjects that a file is read for; nothing else is scored. While another
        thread looks, this does nothing.
        """
        # A drive may hang for minutes: nobody may queue behind it.
        if not self._looking.acquire(blocking=False):
            return
        try:
            for name, file in self._files.items():
                file.look()
                self._finished[name] = self._scored(file.reading, tuple(wanted(name)), name)
        finally:
            self._looking.release()

    def _scored(
        self, reading: ShelvedNews, subjects: tuple[NewsSubject, ...], name: str
    ) -> _Finished:
        """Return a reading with its scores; items that are scored already keep their score."""
        last = self._finished[name]
        scored = last.scored if subjects == last.subjects else None
        # By identity: a file that was not read again has the very same items.
        if scored is None or reading.items is not last.reading.items:
            known, decided = last.scored or {}, scored or {}
            scored = {
                item.id: decided[item.id]
                if item.id in decided
                # A score holds for any subject; that an item concerned nobody holds for the old
                # subjects alone.
                else known.get(item.id) or self._judged(item, subjects)
                for item in reading.items
            }
        return _Finished(reading, self._monotonic(), subjects, scored)

    def _judged(self, item: NewsItem, subjects: tuple[NewsSubject, ...]) -> NewsItem | None:
        return self._read(item) if any(concerns(item, one) for one in subjects) else None

    def known(
        self,
        name: str,
        subject: NewsSubject,
        *,
        since: datetime,
        as_of: datetime,
        max_age_hours: float,
        looked_at: bool,
    ) -> tuple[list[NewsItem], NewsStatus]:
        """Return the items of a file that count, scored, and the status of the file.

        `looked_at` says that a thread looks from time to time; before its first look is finished
        there is nothing yet.
        """
        # Taken once: `look` may replace it at any moment.
        now = self._finished.get(name)
        if now is None:
            return [], NewsStatus.NO_FILE
        status = self.told(name, looked_at=looked_at)[0]
        if now.scored is None and looked_at:
            return [], NewsStatus.NOT_YET if status is NewsStatus.AVAILABLE else status
        scored = now.scored or {}
        rows = counting(
            now.reading.between(since, as_of), subject, as_of=as_of, max_age_hours=max_age_hours
        )
        return [scored.get(item.id) or self._read_now(item) for item in rows], status

    def told(self, name: str, *, looked_at: bool) -> tuple[NewsStatus, str, int]:
        """Return the status of a file, the reason for it, and the number of its headlines."""
        now = self._finished[name]
        old = self._monotonic() - now.at
        if looked_at and old > LATE_FILE_S:
            said = f"nobody could look at it for {old:.0f} s"
            return NewsStatus.UNREACHABLE, said, len(now.reading.items)
        return now.reading.status, now.reading.told, len(now.reading.items)

"""The news source of somebody else, as the collector may ask it.

A plug-in has `topics(subject)`, `every(topic)`, `spacing` and `fetch(topic, now, seconds)`, which
returns rows as docs/news.md has them for a file: headline and published, perhaps summary, url,
source and tickers. Rows are read at the same door as any vendor's: what cannot be read is dropped
and counted, texts are cleaned and cut. What a call raises is an answer that says so, and never its
words, which may hold a key. torra.collecting.asking gives a question its time and no longer; topics
and paces of a subject are asked for within SHARE_SECONDS, again until they are known, never on the
way of a tick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from torra.clock import parse
from torra.config import NewsSettings
from torra.errors import ConfigError
from torra.evidence.news_digest import NewsAnswer, NewsItem, NewsStatus, NewsSubject
from torra.news.reading import PUBLISHER, cleaned, finite, item_of, listed
from torra.time_limit import SHARE_SECONDS, TimeLimit

LEAST_SPACING: Final = 1.0
LEAST_EVERY: Final = 60.0
"""Seconds: a plug-in is not asked more often, whatever it says."""

MOST_TOPICS: Final = 8


@dataclass(frozen=True, slots=True)
class NewsPlace:
    """What a news source is opened with; its key, if it needs one, is in the environment."""

    settings: NewsSettings
    environment: Mapping[str, str]
    home: Path


OpenSource = Callable[[NewsPlace], Any]


class PlugInSource:
    """A plug-in among the vendors."""

    def __init__(self, source: Any, name: str) -> None:
        calls = ("topics", "every", "fetch")
        if missing := [call for call in calls if not callable(getattr(source, call, None))]:
            lacks = " and no ".join(missing)
            raise ConfigError(f"the plug-in {name} is no news source: it has no {lacks}")
        self._source = source
        self._name = name
        self._limit = TimeLimit(f"the plug-in {name}", SHARE_SECONDS)
        self._topics: dict[NewsSubject, tuple[str, ...] | None] = {}
        self._every: dict[str, float] = {}
        self.where = f", at the plug-in {name.partition(':')[0]}"

    @property
    def spacing(self) -> float:
        """Seconds between two questions of any kind."""
        return max(LEAST_SPACING, finite(getattr(self._source, "spacing", None)) or 0.0)

    def topics(self, subject: NewsSubject) -> tuple[str, ...]:
        """Return what to ask about a subject: nothing while the plug-in fails or hangs.

        The plug-in is asked at the first call alone, and by `ask_again`.
        """
        if subject not in self._topics:
            self._ask(subject)
        return self._topics[subject] or ()

    def ask_again(self) -> bool:
        """Ask about the subjects of which nothing is known yet; return whether there were any."""
        unknown = [subject for subject, topics in self._topics.items() if topics is None]
        for subject in unknown:
            self._ask(subject)
        return bool(unknown)

    def _ask(self, subject: NewsSubject) -> None:
        self._topics[subject] = None
        with suppress(Exception):  # somebody else's code: it is asked again
            self._topics[subject] = self._limit.run(partial(self._ask_topics, subject))

    def _ask_topics(self, subject: NewsSubject) -> tuple[str, ...]:
        topics = [cleaned(topic, PUBLISHER) for topic in self._source.topics(subject)]
        wanted = tuple(filter(None, topics[:MOST_TOPICS]))
        for topic in wanted:
            with suppress(Exception):  # somebody else's code: LEAST_EVERY stands
                self._every[topic] = finite(self._source.every(topic)) or 0.0
        return wanted

    def every(self, topic: str) -> float:
        """Return the seconds between two questions about a topic."""
        return max(LEAST_EVERY, self._every.get(topic, 0.0))

    def fetch(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        """Ask about a topic; `seconds` is what the plug-in may take. Never raises."""
        try:
            # A generator does its work as it is read.
            rows = [*self._source.fetch(topic, now, seconds)]
        except Exception as error:  # noqa: BLE001 - somebody else's code
            detail = f"the plug-in failed ({type(error).__name__})"
            return NewsAnswer(NewsStatus.BROKEN, detail=detail)
        return listed(None, rows, partial(_item, topic=topic, feed=self._name))


def _item(row: Mapping[str, Any], topic: str, feed: str) -> NewsItem | None:
    published = row.get("published")
    moment = published if isinstance(published, datetime) else parse(str(published))
    if moment.tzinfo is None:
        raise ValueError("a time without a zone")
    moment = moment.astimezone(UTC).replace(microsecond=0)
    return item_of(row, feed=feed, topic=topic, published=moment, source=row.get("source"))

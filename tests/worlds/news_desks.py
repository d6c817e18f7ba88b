"""A collector of news with clocks that are set by hand, and a source that answers from a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from news_collector import Collector
from tests.worlds.stores import NOON, Hand
from torra.collecting.asking import FETCH_SECONDS
from torra.config import NewsSettings
from torra.evidence.news_digest import NewsAnswer, NewsItem, NewsSubject, NewsView
from torra.news.lexicon import score

GOLD = NewsSubject("XAUUSD", "gold")
APPLE = NewsSubject("AAPL", "stock", ticker="AAPL")
FINNHUB = NewsSettings(sources=("finnhub",))


class ScriptedSource:
    """A source that gives the answers of a list; the last one repeats."""

    def __init__(
        self, *answers: Any, topics: tuple[str, ...] = ("news",), spacing: float = 1.0
    ) -> None:
        self.answers = list(answers)
        self.spacing = spacing
        self.questions: list[str] = []
        self._topics = topics

    def topics(self, subject: NewsSubject) -> tuple[str, ...]:
        return self._topics

    def every(self, topic: str) -> float:
        return 120.0

    def fetch(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        self.questions.append(topic)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer


class MemoryTables:
    """The tables of items and figures in memory; `broken` makes them fail."""

    def __init__(self) -> None:
        self.items: dict[str, NewsItem] = {}
        self.figures: dict[str, dict[str, float]] = {}
        self.broken: Exception | None = None

    def store_news(self, items: Any) -> int:
        if self.broken:
            raise self.broken
        return sum(self.items.setdefault(item.id, item) is item for item in items)

    def news(self, *, since: datetime, as_of: datetime) -> list[NewsItem]:
        if self.broken:
            raise self.broken
        return [item for item in self.items.values() if since < item.first_seen <= as_of]

    def store_fundamentals(
        self, ticker: str, figures: Any, first_seen: datetime, part: str = ""
    ) -> bool:
        self.figures[ticker] = dict(figures)
        return True

    def fundamentals(self, ticker: str, *, as_of: datetime) -> dict[str, float]:
        return self.figures.get(ticker, {})


class NewsDesk:
    """A collector of one subject or more; `now` and `seconds` are its clocks."""

    def __init__(
        self,
        vendors: Mapping[str, Any] | None = None,
        *subjects: NewsSubject,
        store: Any = None,
        files: Mapping[str, Any] | None = None,
        settings: NewsSettings | None = None,
        scorer: Callable[[str], float] = score,
        fetch_seconds: float = FETCH_SECONDS,
        now: datetime = NOON,
        step: float | None = None,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self.store: Any = MemoryTables() if store is None else store
        self.now, self.seconds = Hand(now), 1000.0
        self.subjects, self._step = subjects or (GOLD,), step
        self.collector = Collector(
            vendors or {}, files or {}, self.store, now=self.now, score=scorer,
            monotonic=monotonic or (lambda: self.seconds), fetch_seconds=fetch_seconds,
        )  # fmt: skip
        for subject in self.subjects:
            self.collector.watch(subject, settings)

    def later(self, seconds: float, step: float | None = None) -> NewsDesk:
        """Let time pass, in steps or at once, and ask what is due after each."""
        end, passed = self.seconds + seconds, step or self._step or seconds
        while True:
            self.seconds += passed
            self.now.pass_by(passed)
            self.collector.file_look.turn()
            self.collector.turn()
            if self.seconds >= end:
                return self

    def view(self, settings: NewsSettings = FINNHUB, after: float = 1.0) -> NewsView:
        """Return what a tick would know so many seconds from now."""
        moment = self.now() + timedelta(seconds=after)
        return self.collector.latest(self.subjects[0], moment, settings)

    def figures(self, ticker: str = "AAPL", **back: float) -> dict[str, float]:
        """Return a company's figures as they were known so long ago."""
        return self.store.fundamentals(ticker, as_of=self.now() - timedelta(**back))

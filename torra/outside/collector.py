"""Collects series: threads ask their publishers, and a tick only reads what is stored.

`SeriesCollector.start` runs a thread that asks for each series, at first for its history and later
for what is about the last OVERLAP days before the newest that is stored, so that a revision is
seen. What comes is stored with the moment at which it was first seen, rounded up to a whole second.

A row says when it was known by the rule of its publisher. Where the publisher was asked after that
moment and did not have it yet, it came late: then it is known when it was first seen. So a
postponement that no table has is noticed by every desk that was running.

Two desks may collect at once: what is stored stays as it is. Nothing here raises, and nothing here
is for a tick. `OutsideCollector` is what this collector and that of filings have in common.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Final

from torra.collecting.asking import TROUBLES, WORKING, Place, Poller
from torra.evidence.news_digest import NewsStatus, rounded_up
from torra.evidence.outside_numbers import Row, SeriesRow
from torra.outside.answers import Answer, SeriesAnswer
from torra.outside.publisher import Publisher

logger = logging.getLogger(__name__)

FETCH_SECONDS: Final = 20.0
"""An answer that is not whole after this time is given up: ten years come at once."""

OVERLAP: Final = timedelta(days=42)
"""How far back a later question reaches."""

NOWHERE: Final = ("", "")
"""The place of a series that nobody here publishes."""


class OutsideCollector(Poller[Answer[Row]]):
    """Collects rows in its own threads; any thread may look at the status."""

    def trouble(self, source: str) -> str:
        """Return why a source brings nothing; "" when it answers, and when it is not asked."""
        with self._lock:
            statuses: dict[str, NewsStatus] = {
                state.topic: self._shown(state).status
                for state in self._states.values()
                if state.source == source
            }
        telling = {statuses[topic] for topic in statuses if self._brings_rows(topic)}
        if (telling or {*statuses.values()}) & WORKING:
            return ""
        order = (NewsStatus.NO_KEY, *TROUBLES)
        return next((str(trouble) for trouble in order if trouble in statuses.values()), "")

    def _brings_rows(self, topic: str) -> bool:  # noqa: ARG002 - of filings some bring none
        """Return whether what is known of a topic is rows."""
        return True

    def _without(self, status: NewsStatus, detail: str) -> Answer[Row]:
        return Answer(status, detail)

    def _store_answer(self, source: str, topic: str, answer: Answer[Row]) -> Answer[Row]:
        try:
            return self._stored((source, topic), answer, rounded_up(self._now()))
        except Exception as error:  # noqa: BLE001 - the desk's own loop says why; the next try is soon
            self._log.warning("%s cannot be stored (%s)", self._about, type(error).__name__)
            return Answer(NewsStatus.BROKEN, "what came could not be stored")

    def _stored(self, place: Place, answer: Answer[Row], moment: datetime) -> Answer[Row]:
        """Store what was first seen at a moment, and return the answer; what fails may raise."""
        raise NotImplementedError


class SeriesCollector(OutsideCollector[SeriesRow]):
    """Collects series from their publishers.

    `store` is torra.store.series.SeriesStore.store_series, `now` the desk's clock; `monotonic`
    counts real seconds.
    """

    def __init__(
        self,
        publishers: Mapping[str, Publisher],
        store: Callable[[Iterable[SeriesRow], datetime], int],
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        fetch_seconds: float = FETCH_SECONDS,
    ) -> None:
        super().__init__(
            publishers, now=now, monotonic=monotonic, fetch_seconds=fetch_seconds,
            about="series", log=logger,
        )  # fmt: skip
        self._publishers = publishers
        self._store = store
        self._places = {
            name: (source, topic)
            for source, publisher in publishers.items()
            for name, topic in publisher.topics.items()
        }
        self._since: dict[Place, date] = {}
        self._last_answers: dict[Place, tuple[datetime, frozenset[tuple[str, datetime]]]] = {}

    def watch(self, names: Iterable[str]) -> None:
        """Ask for these series from now on; those that nobody here publishes are let pass."""
        with self._lock:
            self._watch(self._places[name] for name in names if name in self._places)
        self.wake()

    def status_of(self, name: str) -> NewsStatus:
        """Return the status of a series; `off` when it is not watched."""
        with self._lock:
            state = self._states.get(self._places.get(name, NOWHERE))
            return NewsStatus.OFF if state is None else self._shown(state).status

    def _question(self, source: str, topic: str) -> SeriesAnswer:
        since = self._since.get((source, topic))
        return self._publishers[source].fetch(topic, self._now(), self._fetch_seconds, since)

    def _stored(self, place: Place, answer: SeriesAnswer, moment: datetime) -> SeriesAnswer:
        if not answer.items:
            return answer
        rows = tuple(self._stamped(place, row, moment) for row in answer.items)
        self._store(rows, moment)
        self._last_answers[place] = moment, frozenset((row.name, row.at) for row in rows)
        since = (rows[-1].at - OVERLAP).date()
        self._since[place] = max(since, self._since.get(place, since))
        return replace(answer, items=rows)

    def _stamped(self, place: Place, row: SeriesRow, moment: datetime) -> SeriesRow:
        """Return a row as it is stored: one that came late is known when it was first seen."""
        last = self._last_answers.get(place)
        if last is None or last[0] < row.known_at or (row.name, row.at) in last[1]:
            return row
        return row._replace(known_at=max(row.known_at, moment))

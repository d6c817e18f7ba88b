"""Collects series: threads ask their publishers, and a tick only reads what is stored.

`SeriesCollector.start` runs a thread that asks for each series, at first for its history and later
for what is about the last OVERLAP days before the newest that is stored, so that a revision is
seen. What comes is stored with the moment at which it was first seen, rounded up to a whole second.

A row says when it was known by the rule of its publisher. Where the publisher was asked after that
moment and did not have it yet, it came late: then it is known when it was first seen. So a
postponement that no table has is noticed by every desk that was running.

Two desks may collect at once: what is stored stays as it is. Nothing here raises, and nothing here
is for a tick.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Final

from torra.collecting.asking import TROUBLES, WORKING, Place, Poller
from torra.evidence.news_digest import NewsStatus, rounded_up
from torra.evidence.outside_numbers import SeriesRow
from torra.outside.answers import SeriesAnswer, without
from torra.outside.publisher import Publisher

logger = logging.getLogger(__name__)

FETCH_SECONDS: Final = 20.0
"""An answer that is not whole after this time is given up: ten years come at once."""

OVERLAP: Final = timedelta(days=42)
"""How far back a later question reaches."""


class SeriesCollector(Poller[SeriesAnswer]):
    """Collects in its own threads; any thread may look at the status.

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
        self._since: dict[Place, date] = {}
        self._last_answers: dict[Place, tuple[datetime, frozenset[tuple[str, datetime]]]] = {}
        self._left_out: dict[Place, int] = {}

    def watch(self, names: Iterable[str]) -> None:
        """Ask for these series from now on; those that nobody here publishes are let pass."""
        with self._lock:
            self._watch(place for name in names if (place := self._place(name)) is not None)
        self._wake.set()

    def status_of(self, name: str) -> NewsStatus:
        """Return the status of a series; `off` when it is not watched."""
        with self._lock:
            state = self._states.get(self._place(name) or ("", ""))
            return NewsStatus.OFF if state is None else self._shown(state).status

    def trouble(self, source: str) -> str:
        """Return why a publisher brings nothing; "" when it answers, and when it is not asked."""
        with self._lock:
            states = [state for state in self._states.values() if state.source == source]
            statuses = {self._shown(state).status for state in states}
        if statuses & WORKING:
            return ""
        return next((str(trouble) for trouble in TROUBLES if trouble in statuses), "")

    def left_out(self, name: str) -> int:
        """Return how many rows have no known release; they are not stored."""
        return self._left_out.get(self._place(name) or ("", ""), 0)

    def _place(self, name: str) -> Place | None:
        for source, publisher in self._publishers.items():
            topic = publisher.topic_of(name)
            if topic is not None:
                return source, topic
        return None

    def _question(self, source: str, topic: str) -> SeriesAnswer:
        since = self._since.get((source, topic))
        return self._publishers[source].fetch(topic, self._now(), self._fetch_seconds, since)

    def _without(self, status: NewsStatus, detail: str) -> SeriesAnswer:
        return without(status, detail)

    def _kept(self, source: str, topic: str, answer: SeriesAnswer) -> SeriesAnswer:
        place, moment = (source, topic), rounded_up(self._now())
        # The first answer reaches back for years, later ones do not.
        self._left_out[place] = max(answer.left_out, self._left_out.get(place, 0))
        if not answer.items:
            return answer
        rows = tuple(self._stamped(place, row, moment) for row in answer.items)
        try:
            self._store(rows, moment)
        except Exception as error:  # noqa: BLE001 - the desk's own loop says why; the next try is soon
            logger.warning("series cannot be stored (%s)", type(error).__name__)
            return without(NewsStatus.BROKEN, "what came could not be stored")
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

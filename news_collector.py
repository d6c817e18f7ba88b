"""Collects headlines and fundamentals: threads ask for them, a tick only reads what they found.

`Collector.start` runs a thread that asks each source about each topic at that source's pace. It
stores what is new with the moment at which it was first seen, rounded up to a whole second, so that
nothing is known earlier than it was. Where there is a file of headlines, a second thread looks at
it every few seconds. Two desks may collect at once: what is stored stays as it is. `latest` reads
the store and the last finished reading of the file, and returns in milliseconds however much there
is. Without the threads, as for a single tick, the file stands as it was opened.

torra.collecting.asking says when a source is asked, given up and left alone for a while. Nothing
here raises: what went wrong is the status of the news, and the agents abstain.

torra.news.source has the sources, torra.evidence.news_digest the meaning of headlines; scores come
from the function that is handed in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from torra.collecting.asking import (
    FETCH_SECONDS,
    TROUBLES,
    WORKING,
    Place,
    Poller,
    SourceSettings,
    TopicState,
)
from torra.config import NewsSettings
from torra.evidence import vendor_figures
from torra.evidence.news_digest import (
    EARLY,
    FIGURES,
    PARTS,
    PEER_FIGURES,
    PEERS,
    RATIOS,
    NewsAnswer,
    NewsItem,
    NewsStatus,
    NewsSubject,
    NewsView,
    in_time,
    rated,
    rounded_up,
    view,
)
from torra.evidence.news_shelf import Headlines, Shelves
from torra.news.plug_in import PlugInSource
from torra.services import CLOSE_SECONDS, Service

logger = logging.getLogger(__name__)

FILE_LOOK_S: Final = 5.0
"""Between two looks at the file of headlines."""

PLUG_IN_LOOK_S: Final = 60.0
"""Between two questions to a plug-in that has not said yet what to ask about a subject."""

OLDEST: Final = timedelta(days=30)
"""Items older than this are not stored: no setting lets them count."""

ALL_LATER: Final = "all items are later than the desk's clock"
ALL_OLD: Final = f"all items are older than {OLDEST.days} days"


class Vendor(SourceSettings, Protocol):
    """A source that is asked: a vendor (torra.news.source), or a plug-in (torra.news.plug_in)."""

    def topics(self, subject: NewsSubject) -> tuple[str, ...]:
        """Return what to ask about a subject."""
        ...

    def fetch(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        """Ask; never raises."""
        ...


class NewsTables(Protocol):
    """The tables of items and figures (torra.store.news.NewsStore)."""

    def store_news(self, items: Iterable[NewsItem]) -> int:
        """Store the items that are not known yet."""
        ...

    def news(self, *, since: datetime, as_of: datetime) -> list[NewsItem]:
        """Return what was first seen in (since, as_of]."""
        ...

    def store_fundamentals(
        self, ticker: str, figures: Mapping[str, float], first_seen: datetime, part: str = ""
    ) -> bool:
        """Store a part of a company's figures."""
        ...

    def fundamentals(self, ticker: str, *, as_of: datetime) -> dict[str, float]:
        """Return a company's figures as they were known."""
        ...


class Collector(Poller[NewsAnswer]):
    """Collects in its own threads; any thread may read.

    `vendors` by name, `files` by their name in the settings (torra.news.source.Sources). `now` is
    the desk's clock, `monotonic` counts real seconds.
    """

    def __init__(
        self,
        vendors: Mapping[str, Vendor],
        files: Mapping[str, Headlines],
        store: NewsTables,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        score: Callable[[str], float],
        fetch_seconds: float = FETCH_SECONDS,
    ) -> None:
        super().__init__(
            vendors, now=now, monotonic=monotonic, fetch_seconds=fetch_seconds,
            about="news", log=logger,
        )  # fmt: skip
        self._vendors = vendors
        self._store = store
        self._score = score
        self._files = Shelves(files, lambda item: rated(item, score), monotonic)
        self.file_look = Service(
            "news-file", FILE_LOOK_S, self._look_at_files, at_once=True, private=True
        )
        self._plug_ins = [v for v in vendors.values() if isinstance(v, PlugInSource)]
        self.plug_in_look = Service(
            "news-plug-ins", PLUG_IN_LOOK_S, self._ask_plug_ins, private=True
        )
        self._watched: list[tuple[NewsSubject, NewsSettings | None]] = []
        self._subjects: dict[tuple[NewsSubject, str | None], None] = {}
        self._peers: dict[tuple[str, str], tuple[str, ...]] = {}

    def watch(self, subject: NewsSubject, settings: NewsSettings | None = None) -> None:
        """Ask about a subject from now on: the sources of these settings, or all."""
        topics = self._topics(subject, settings)  # not with the lock: a plug-in says them
        with self._lock:
            self._watch(topics)
            self._watched.append((subject, settings))
            if settings is None or "file" in settings.sources:
                self._subjects[subject, None if settings is None else settings.file] = None
        self.wake()

    def start(self) -> None:
        """Begin to ask, and to look at the files and at plug-ins where there are some."""
        looks = [(self.file_look, [*self._files]), (self.plug_in_look, self._plug_ins)]
        for look, of in looks:
            try:
                if of:
                    look.start()
            except RuntimeError as error:  # the system has no thread left: news go on without it
                logger.warning("%s does not begin: %s", look.name, error)
        super().start()

    def close(self, within: float = CLOSE_SECONDS) -> None:
        """Stop asking and looking for ever."""
        self.file_look.close(0.0)
        self.plug_in_look.close(0.0)
        super().close(within)

    def latest(self, subject: NewsSubject, as_of: datetime, settings: NewsSettings) -> NewsView:
        """Return what was known at `as_of`. Reads only; never raises."""
        try:
            items, status = self._items_and_status(subject, as_of, settings)
            news = view(
                items,
                subject,
                as_of=as_of,
                status=NewsStatus.AVAILABLE,
                max_age_hours=settings.max_age_hours,
                half_life_hours=settings.half_life_hours,
                max_items=settings.max_items,
            )
            figures, figures_status = self._figures_and_status(subject, as_of, settings)
        except Exception as error:  # noqa: BLE001 - a tick goes on without news
            logger.warning("the news cannot be read (%s)", type(error).__name__)
            return NewsView(NewsStatus.BROKEN)
        if news.unique:
            status = NewsStatus.AVAILABLE
        return replace(
            news, status=status, fundamentals=figures, fundamentals_status=figures_status
        )

    def status(self) -> tuple[TopicState, ...]:
        """Return the state of every topic and file; `due` is in seconds from now.

        Reads nothing but memory.
        """
        states = [*super().status()]
        for name in self._files:
            status, detail, count = self._files.state(name, refreshed=self.running)
            topic = self._files.topic(name)
            states.append(TopicState("file", topic, status, detail, items=count))
        return tuple(states)

    # --- reading ----------------------------------------------------------------------------------

    def _items_and_status(
        self, subject: NewsSubject, as_of: datetime, settings: NewsSettings
    ) -> tuple[list[NewsItem], NewsStatus]:
        """Return the items that may count, and the status if none does."""
        since = as_of - timedelta(hours=settings.max_age_hours) - 2 * EARLY
        stored = self._store.news(since=since, as_of=as_of)
        # A store keeps news of sources that the settings no longer name.
        feeds = {*settings.sources} - {"file"}
        items = {item.id: item for item in stored if item.topic.partition(":")[0] in feeds}
        statuses = self._statuses(subject, settings, figures=False)
        if "file" in settings.sources:
            rows, status = self._files.known(
                settings.file, subject, since=since, as_of=as_of,
                max_age_hours=settings.max_age_hours, refreshed=self.running,
            )  # fmt: skip
            # The stored item wins: a record names items by id, so they must stay as they counted.
            items = {**{item.id: item for item in rows}, **items}
            statuses.append(status)
        return [*items.values()], _merged(statuses)

    def _figures_and_status(
        self, subject: NewsSubject, as_of: datetime, settings: NewsSettings
    ) -> tuple[dict[str, float], NewsStatus]:
        """Return a company's figures and why there are some, or none."""
        if subject.asset != "stock":
            return {}, NewsStatus.OFF
        known = self._store.fundamentals(subject.ticker, as_of=as_of)
        peers = {
            peer: self._store.fundamentals(peer, as_of=as_of)
            for peer in vendor_figures.peers_of(known)
        }
        figures = {name: value for name, value in known.items() if name in RATIOS}
        figures |= vendor_figures.read(known, peers, as_of)
        if figures:
            return figures, NewsStatus.AVAILABLE
        return {}, _merged(self._statuses(subject, settings, figures=True))

    def _statuses(
        self, subject: NewsSubject, settings: NewsSettings, *, figures: bool
    ) -> list[NewsStatus]:
        topics = self._topics(subject, settings)
        with self._lock:
            return [
                self._shown(self._states.get(place, TopicState(*place))).status
                for place in topics
                if (place[1].startswith(FIGURES) if figures else not about_company(place[1]))
            ]

    def _topics(self, subject: NewsSubject, settings: NewsSettings | None) -> list[Place]:
        return [
            (name, topic)
            for name, vendor in self._vendors.items()
            if settings is None or name in settings.sources
            for topic in vendor.topics(subject)
        ]

    # --- asking -----------------------------------------------------------------------------------

    def _ask_plug_ins(self) -> None:
        """Ask plug-ins again that have not said yet what to ask about a subject."""
        renewed = [plug_in.ask_again() for plug_in in self._plug_ins]
        if not any(renewed):
            return
        with self._lock:
            watched = [*self._watched]
        topics = [place for subject in watched for place in self._topics(*subject)]
        with self._lock:
            self._watch(topics)
        self.wake()

    def _look_at_files(self) -> None:
        self._files.look(self._wanted)

    def _wanted(self, file: str) -> list[NewsSubject]:
        with self._lock:
            return [subject for subject, name in self._subjects if name in {None, file}]

    def _question(self, source: str, topic: str) -> NewsAnswer:
        return self._vendors[source].fetch(topic, self._now(), self._fetch_seconds)

    def _without(self, status: NewsStatus, detail: str) -> NewsAnswer:
        return NewsAnswer(status, detail=detail)

    def _store_answer(self, source: str, topic: str, answer: NewsAnswer) -> NewsAnswer:
        """Store what an answer brought; return it without what was refused at the door."""
        try:
            moment = self._now()
            young = [item.with_arrival(moment) for item in answer.items
                     if moment - item.published <= OLDEST]  # fmt: skip
            good = tuple(rated(item, self._score) for item in young if in_time(item))
            self._store.store_news(good)
            if answer.figures is not None:
                self._keep_figures(source, topic, answer.figures, rounded_up(moment))
        except Exception as error:  # noqa: BLE001 - the desk's own loop says why; the next try is soon
            logger.warning("headlines cannot be stored (%s)", type(error).__name__)
            return NewsAnswer(NewsStatus.BROKEN, detail="what came could not be stored")
        status, detail = answer.status, answer.detail
        if status is NewsStatus.AVAILABLE and not good and not answer.figures:
            status = NewsStatus.EMPTY
            detail = ALL_LATER if young else ALL_OLD
        dropped = answer.dropped + len(young) - len(good)
        return replace(answer, status=status, detail=detail, items=good, dropped=dropped)

    def _keep_figures(
        self, source: str, topic: str, figures: Mapping[str, float], moment: datetime
    ) -> None:
        """Store a company's figures, and ask for the figures of its peers as well."""
        kind = next((kind for kind in PARTS if topic.startswith(kind)), FIGURES)
        ticker = topic.removeprefix(kind)
        self._store.store_fundamentals(ticker, figures, moment, PARTS[kind])
        if kind != PEERS:
            return
        with self._lock:
            self._peers[source, ticker] = tuple(name.partition(".")[2] for name in figures)
            wanted = {
                (where, f"{PEER_FIGURES}{peer}")
                for (where, _), peers in self._peers.items()
                for peer in peers
                # A peer that is a symbol of the desk is asked for as such.
                if (where, f"{FIGURES}{peer}") not in self._states
            }
            for place in [*self._states]:
                if place[1].startswith(PEER_FIGURES) and place not in wanted:
                    del self._states[place]
            self._watch(sorted(wanted))


def about_company(topic: str) -> bool:
    """Return whether a topic brings numbers of a company, and no headlines."""
    return topic.startswith(tuple(PARTS))


def _merged(statuses: Sequence[NewsStatus]) -> NewsStatus:
    """Return why there are no news: a working source has none, or the trouble of those that fail.

    With no source to ask, the answer is that there is no key.
    """
    if WORKING & {*statuses}:
        return NewsStatus.EMPTY
    return next((trouble for trouble in TROUBLES if trouble in statuses), NewsStatus.NO_KEY)

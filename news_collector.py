"""Collects headlines and fundamentals: threads ask for them, a tick only reads what they found.

`Collector.start` runs a thread that asks each source about each topic at that source's pace. It
stores what is new with the moment at which it was first seen, rounded up to a whole second, so that
nothing is known earlier than it was. Where there is a file of headlines, a second thread looks at
it every few seconds. Two desks may collect at once: what is stored stays as it is. `latest` reads
the store and the last finished reading of the file, and returns in milliseconds however much there
is. Without the threads, as for a single tick, the file stands as it was opened.

Every question is asked by a thread of its own and given up after FETCH_SECONDS, however slowly the
answer drips in. While MAX_ABANDONED given-up questions of a source are still alive, that source is
not asked. After a failure the next question waits longer. Nothing here raises: what went wrong is
the status of the news, and the agents abstain.

torra.news.source has the sources, torra.evidence.news_digest the meaning of headlines; scores come
from the function that is handed in.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from torra.config import NewsSettings
from torra.evidence.news_digest import (
    EARLY,
    FIGURES,
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

logger = logging.getLogger(__name__)

FETCH_SECONDS: Final = 10.0
"""An answer that is not whole after this time is given up."""

MAX_ABANDONED: Final = 2
"""Given-up questions of a source that may be alive: one that hangs does not fill the process."""

CLOSE_SECONDS: Final = 1.5
"""How long `close` waits for the threads."""

FILE_LOOK_S: Final = 5.0
"""Between two looks at the file of headlines."""

LATE_PACES: Final = 5
"""A source that has not answered for this many of its paces counts as unreachable."""

SHORTEST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 30.0
"""Bounds of the pause between two looks at what is due."""

OLDEST: Final = timedelta(days=30)
"""Items older than this are not stored: no setting lets them count."""

WAITS_S: Final[Mapping[NewsStatus, tuple[float, float]]] = {
    NewsStatus.RATE_LIMITED: (60.0, 3600.0),
    NewsStatus.UNREACHABLE: (30.0, 900.0),
    NewsStatus.BROKEN: (60.0, 900.0),
    NewsStatus.REFUSED: (3600.0, 3600.0),
}
"""Seconds to the next question after a first failure, doubled with every further one, and at most.
"""

WHOLE_SOURCE: Final = frozenset((NewsStatus.RATE_LIMITED, NewsStatus.UNREACHABLE))
"""Failures that concern all topics of a source."""

TROUBLES: Final = (
    NewsStatus.REFUSED,
    NewsStatus.RATE_LIMITED,
    NewsStatus.UNREACHABLE,
    NewsStatus.BROKEN,
    NewsStatus.NO_FILE,
    NewsStatus.NOT_YET,
)
"""The status when no source works: the first of these that was found."""

ALL_LATER: Final = "all items are later than the desk's clock"
ALL_OLD: Final = f"all items are older than {OLDEST.days} days"

WORKING: Final = frozenset((NewsStatus.AVAILABLE, NewsStatus.EMPTY))


class Vendor(Protocol):
    """A source that is asked (torra.news.source)."""

    @property
    def spacing(self) -> float:
        """Seconds between two questions of any kind."""
        ...

    def topics(self, subject: NewsSubject) -> tuple[str, ...]:
        """Return what to ask about a subject."""
        ...

    def every(self, topic: str) -> float:
        """Return the seconds between two questions about a topic."""
        ...

    def fetch(self, topic: str, now: datetime, seconds: float) -> NewsAnswer:
        """Ask; never raises."""
        ...


class NewsSources(Protocol):
    """The sources that can be asked (torra.news.source.Sources)."""

    @property
    def vendors(self) -> Mapping[str, Vendor]:
        """Vendors by name."""
        ...

    @property
    def files(self) -> Mapping[str, Headlines]:
        """Files by their name in the settings."""
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
        self, ticker: str, figures: Mapping[str, float], first_seen: datetime
    ) -> bool:
        """Store a company's figures."""
        ...

    def fundamentals(self, ticker: str, *, as_of: datetime) -> dict[str, float]:
        """Return a company's figures as they were known."""
        ...


@dataclass(slots=True)
class _SourceState:
    """The state of a source as a whole: no question before `opens`."""

    opens: float = 0.0
    failures: int = 0
    trouble: NewsStatus | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TopicState:
    """The state of one topic of one source, to be shown.

    `asked` is the desk's time of the last question; `items` and `dropped` count the last answer;
    `detail` is in our words. A status without an answer for LATE_PACES is `unreachable`.
    """

    source: str
    topic: str
    status: NewsStatus = NewsStatus.NOT_YET
    detail: str = ""
    asked: datetime | None = None
    items: int = 0
    dropped: int = 0
    failures: int = 0
    due: float = 0.0


class Collector:
    """Collects in its own threads; any thread may read.

    `now` is the desk's clock, `monotonic` counts real seconds.
    """

    def __init__(
        self,
        sources: NewsSources,
        store: NewsTables,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        score: Callable[[str], float],
        fetch_seconds: float = FETCH_SECONDS,
    ) -> None:
        self._vendors: dict[str, Vendor] = dict(sources.vendors)
        self._store = store
        self._now = now
        self._monotonic = monotonic
        self._fetch_seconds = fetch_seconds
        self._score = score
        self._shelves = Shelves(sources.files, lambda item: rated(item, score), monotonic)
        self._lock = threading.Lock()
        self._round = threading.Lock()
        self._states: dict[tuple[str, str], TopicState] = {}
        self._sources = {name: _SourceState() for name in sources.vendors}
        self._subjects: dict[tuple[NewsSubject, str | None], None] = {}
        self._abandoned: dict[str, list[threading.Thread]] = {}
        self._asking = threading.Event()
        self._wake = threading.Event()
        self._closed = False
        self._rest: threading.Event | None = None
        self._threads: list[threading.Thread] = []

    def watch(self, subject: NewsSubject, settings: NewsSettings | None = None) -> None:
        """Ask about a subject from now on: the sources of these settings, or all."""
        with self._lock:
            for place in self._topics(subject, settings):
                # Two subjects may share a topic, which is asked once.
                self._states.setdefault(place, TopicState(*place))
            if settings is None or "file" in settings.sources:
                self._subjects[subject, None if settings is None else settings.file] = None
        self._wake.set()

    def start(self) -> None:
        """Begin to ask, or again after a rest; the threads end with `close` or the process."""
        with self._lock:
            if self._closed or self._rest is not None:
                return
            rest = self._rest = threading.Event()
            self._threads = []
            try:
                self._begin("news", self._ask_on, rest)
                if [*self._shelves]:
                    self._begin("news-file", self._look_on, rest)
            except RuntimeError:
                logger.warning("no news are collected: the machine starts no more threads")
                rest.set()
                self._rest = None

    def _begin(
        self, name: str, loop: Callable[[threading.Event], None], rest: threading.Event
    ) -> None:
        thread = threading.Thread(target=loop, args=(rest,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def rest(self) -> None:
        """Stop asking at once: give up the open question, and do not store its answer.

        The collected news can still be read, and `start` asks again.
        """
        with self._lock:
            rest, self._rest = self._rest, None
        if rest is not None:
            rest.set()
            self._wake.set()
            self._asking.set()

    def close(self) -> None:
        """Stop asking for ever, and wait a moment for the threads."""
        self._closed = True
        self.rest()
        self._asking.set()
        end = self._monotonic() + CLOSE_SECONDS
        for thread in self._threads:
            # All threads share one wait.
            thread.join(max(0.0, end - self._monotonic()))

    def poll(self) -> None:
        """Look at the files and ask every topic that is due, once at most; never raises."""
        with _going_on():
            self._shelves.look(self._wanted)
        with _going_on():
            self._ask_round(self._rest or threading.Event())

    def latest(self, subject: NewsSubject, as_of: datetime, settings: NewsSettings) -> NewsView:
        """Return what was known at `as_of`. Reads only; never raises."""
        try:
            found, working = self._held(subject, as_of, settings)
            seen = view(
                found,
                subject,
                as_of=as_of,
                status=NewsStatus.AVAILABLE,
                max_age_hours=settings.max_age_hours,
                half_life_hours=settings.half_life_hours,
                max_items=settings.max_items,
            )
            known = self._known(subject, as_of, settings)
        except Exception as error:  # noqa: BLE001 - a tick goes on without news
            logger.warning("the news cannot be read (%s)", type(error).__name__)
            return NewsView(NewsStatus.BROKEN)
        status = NewsStatus.AVAILABLE if seen.unique else working
        return replace(seen, status=status, fundamentals=known[0], fundamentals_status=known[1])

    def status(self) -> tuple[TopicState, ...]:
        """Return the state of every topic and file; `due` is in seconds from now.

        Reads nothing but memory.
        """
        with self._lock:
            now = self._monotonic()
            asked = [
                replace(self._shown(state), due=max(0.0, self._opens(state) - now))
                for _, state in sorted(self._states.items())
            ]
        return (*asked, *(self._of_file(name) for name in self._shelves))

    # --- reading ----------------------------------------------------------------------------------

    def _held(
        self, subject: NewsSubject, as_of: datetime, settings: NewsSettings
    ) -> tuple[list[NewsItem], NewsStatus]:
        """Return the items that may count, and the status if none does."""
        since = as_of - timedelta(hours=settings.max_age_hours) - 2 * EARLY
        feeds = {name for name in settings.sources if name != "file"}
        stored = self._store.news(since=since, as_of=as_of)
        # A store keeps news of sources that the settings no longer name.
        items = {item.id: item for item in stored if item.topic.partition(":")[0] in feeds}
        statuses = self._statuses(subject, settings, figures=False)
        if "file" in settings.sources:
            rows, status = self._shelves.known(
                settings.file, subject, since=since, as_of=as_of,
                max_age_hours=settings.max_age_hours, looked_at=self._rest is not None,
            )  # fmt: skip
            # The stored item wins: a record names items by id, so they must stay as they counted.
            items = {**{item.id: item for item in rows}, **items}
            statuses.append(status)
        return [*items.values()], _told(statuses)

    def _known(
        self, subject: NewsSubject, as_of: datetime, settings: NewsSettings
    ) -> tuple[dict[str, float], NewsStatus]:
        """Return a company's figures and why there are some, or none."""
        if subject.asset != "stock":
            return {}, NewsStatus.OFF
        figures = self._store.fundamentals(subject.ticker, as_of=as_of)
        if figures:
            return figures, NewsStatus.AVAILABLE
        return {}, _told(self._statuses(subject, settings, figures=True))

    def _statuses(
        self, subject: NewsSubject, settings: NewsSettings, *, figures: bool
    ) -> list[NewsStatus]:
        with self._lock:
            places = self._topics(subject, settings)
            return [
                self._shown(self._states.get(place, TopicState(*place))).status
                for place in places
                if place[1].startswith(FIGURES) == figures
            ]

    def _topics(self, subject: NewsSubject, settings: NewsSettings | None) -> list[tuple[str, str]]:
        wanted = self._vendors if settings is None else settings.sources
        return [
            (name, topic)
            for name, vendor in self._vendors.items()
            if name in wanted
            for topic in vendor.topics(subject)
        ]

    def _of_file(self, name: str) -> TopicState:
        status, detail, items = self._shelves.told(name, looked_at=self._rest is not None)
        topic = self._shelves.topic(name)
        return TopicState("file", topic, status=status, detail=detail, items=items)

    # --- asking -----------------------------------------------------------------------------------

    def _ask_on(self, rest: threading.Event) -> None:
        while not rest.is_set():
            # Before the round: what is asked for meanwhile shortens the next pause.
            self._wake.clear()
            pause = LONGEST_PAUSE_S
            with _going_on():
                self._ask_round(rest)
                pause = self._pause()
            if not rest.is_set():
                self._wake.wait(pause)

    def _look_on(self, rest: threading.Event) -> None:
        while not rest.is_set():
            pause = LONGEST_PAUSE_S
            with _going_on():
                self._shelves.look(self._wanted)
                pause = FILE_LOOK_S
            rest.wait(pause)

    def _ask_round(self, rest: threading.Event) -> None:
        # `poll` and the thread must not ask the same topic at the same time.
        with self._round:
            for place in self._due():
                # An answer of this very round may have closed the source.
                if self._monotonic() < self._sources[place[0]].opens:
                    continue
                answer = self._ask(*place, rest)
                if self._closed or rest.is_set() or answer is None:
                    return
                self._settle(place, self._kept(place[1], answer))

    def _wanted(self, file: str) -> list[NewsSubject]:
        with self._lock:
            return [subject for subject, name in self._subjects if name in {None, file}]

    def _pause(self) -> float:
        with self._lock:
            now = self._monotonic()
            waits = [self._opens(state) - now for state in self._states.values()]
        return min(max(min(waits, default=LONGEST_PAUSE_S), SHORTEST_PAUSE_S), LONGEST_PAUSE_S)

    def _opens(self, state: TopicState) -> float:
        return max(state.due, self._sources[state.source].opens)

    def _shown(self, state: TopicState) -> TopicState:
        """Return a topic's state as it is shown: without an answer for long, it is unreachable."""
        last = self._last(state)
        if last.status not in WORKING or self._monotonic() <= state.due + self._patience(state):
            return last
        return replace(state, status=NewsStatus.UNREACHABLE, detail="no answer for a long time")

    def _last(self, state: TopicState) -> TopicState:
        """Return how a topic's last question ended, or its source's."""
        whole = self._sources[state.source]
        if whole.trouble is None:
            return state
        return replace(state, status=whole.trouble, detail=whole.detail)

    def _patience(self, state: TopicState) -> float:
        """Return the seconds that a topic's next answer may be late; topics take turns."""
        vendor = self._vendors[state.source]
        # Topics take turns: twelve of them, at one question an hour, take half a day.
        turns = sum(1 for source, _ in self._states if source == state.source)
        return LATE_PACES * max(vendor.every(state.topic), vendor.spacing * turns)

    def _due(self) -> list[tuple[str, str]]:
        """Return what is due, the longest overdue first."""
        with self._lock:
            now = self._monotonic()
            due = [place for place, state in self._states.items() if self._opens(state) <= now]
            return sorted(due, key=lambda place: (self._states[place].due, place))

    def _ask(self, source: str, topic: str, rest: threading.Event) -> NewsAnswer | None:
        """Return a source's answer; None when collecting ends before it comes."""
        hanging = [thread for thread in self._abandoned.get(source, ()) if thread.is_alive()]
        self._abandoned[source] = hanging
        # A thread cannot be ended from outside: rather ask no more than fill the process.
        if len(hanging) >= MAX_ABANDONED:
            return NewsAnswer(NewsStatus.UNREACHABLE, detail="too many questions hang")
        box: list[NewsAnswer] = []
        # `rest` sets this event too, and so ends the wait at once.
        done = self._asking = threading.Event()
        thread = threading.Thread(
            target=self._fetch, args=(source, topic, box, done), name="news-fetch", daemon=True
        )
        # A rest from before this event was in place could not set it.
        if self._closed or rest.is_set():
            return None
        try:
            thread.start()
        except RuntimeError:
            return NewsAnswer(NewsStatus.UNREACHABLE, detail="the machine starts no more threads")
        done.wait(self._fetch_seconds)
        if box:
            return box[0]
        hanging.append(thread)
        if self._closed or rest.is_set():
            return None
        return NewsAnswer(
            NewsStatus.UNREACHABLE, detail=f"no whole answer in {self._fetch_seconds:g} s"
        )

    def _fetch(self, source: str, topic: str, box: list[NewsAnswer], done: threading.Event) -> None:
        try:
            box.append(self._vendors[source].fetch(topic, self._now(), self._fetch_seconds))
        except Exception as error:  # noqa: BLE001 - the words of an exception may hold a URL
            box.append(NewsAnswer(NewsStatus.BROKEN, detail=f"it failed ({type(error).__name__})"))
        finally:
            done.set()

    def _kept(self, topic: str, answer: NewsAnswer) -> NewsAnswer:
        """Store what an answer brought; return it without what was refused at the door."""
        try:
            seen = self._now()
            young = [item.seen(seen) for item in answer.items if seen - item.published <= OLDEST]
            good = tuple(rated(item, self._score) for item in young if in_time(item))
            self._store.store_news(good)
            if answer.figures is not None:
                ticker = topic.removeprefix(FIGURES)
                self._store.store_fundamentals(ticker, answer.figures, rounded_up(seen))
        except Exception as error:  # noqa: BLE001 - the desk's own loop says why; the next try is soon
            logger.warning("headlines cannot be stored (%s)", type(error).__name__)
            return NewsAnswer(NewsStatus.BROKEN, detail="what came could not be stored")
        status, detail = answer.status, answer.detail
        if status is NewsStatus.AVAILABLE and not good and not answer.figures:
            status = NewsStatus.EMPTY
            detail = ALL_LATER if young else ALL_OLD
        dropped = answer.dropped + len(young) - len(good)
        return replace(answer, status=status, detail=detail, items=good, dropped=dropped)

    def _settle(self, place: tuple[str, str], answer: NewsAnswer) -> None:
        """Note how a question ended, and when the next one may be asked."""
        source, topic = place
        vendor = self._vendors[source]
        moment, asked = self._monotonic(), self._now()
        of_all = answer.status in WHOLE_SOURCE
        with self._lock:
            old, whole = self._states[place], self._sources[source]
            before, where = _health(self._last(old)), source if whole.trouble else ""
            failed = answer.status not in WORKING
            failures = old.failures + 1 if failed else 0
            wait = vendor.every(topic)
            whole.opens = moment + vendor.spacing
            if of_all:
                whole.failures += 1
                wait = _wait(answer.status, whole.failures)
                whole.opens = moment + max(vendor.spacing, wait)
                whole.trouble, whole.detail = answer.status, answer.detail
            else:
                wait = _wait(answer.status, failures) if failed else wait
                whole.failures, whole.trouble, whole.detail = 0, None, ""
            self._states[place] = TopicState(
                source,
                topic,
                # The trouble is the source's: the topic keeps what it last said itself.
                status=old.status if of_all else answer.status,
                detail=old.detail if of_all else answer.detail,
                asked=asked,
                items=len(answer.items),
                dropped=answer.dropped,
                failures=failures,
                due=moment + wait,
            )
            after = _health(self._last(self._states[place]))
        if after != before:
            where = source if of_all else where or f"{source}, {topic}"
            said = f"{answer.status}, {answer.detail}" if answer.detail else answer.status
            logger.warning("news of %s: %s", where, said)


def _health(state: TopicState) -> tuple[NewsStatus | None, str]:
    """Return what is worth a line in the log when it changes."""
    if state.status in WORKING:
        return None, state.detail
    return (None, "") if state.status is NewsStatus.NOT_YET else (state.status, "")


@contextmanager
def _going_on() -> Iterator[None]:
    """Let nothing end a thread; the words of an exception may hold a URL."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        logger.warning("collecting news stumbled (%s) and goes on", type(error).__name__)


def _wait(status: NewsStatus, failures: int) -> float:
    first, longest = WAITS_S[status]
    # Bounded: a power of 1,024 or more is no float any more.
    return min(longest, first * 2.0 ** min(failures - 1, 20))


def _told(statuses: Sequence[NewsStatus]) -> NewsStatus:
    """Return why there are no news: a working source has none, or the trouble of those that fail.

    With no source to ask, the answer is that there is no key.
    """
    if any(status in WORKING for status in statuses):
        return NewsStatus.EMPTY
    return next((trouble for trouble in TROUBLES if trouble in statuses), NewsStatus.NO_KEY)

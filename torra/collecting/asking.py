"""When sources are asked: at their own pace, on threads of their own, and not again for a while.

`Poller` is what collectors have in common: who collects says what an answer is (`_without`), what
becomes of it (`_store_answer`), and how a question is put (`_question`). It is a service
(torra.services) that asks each source about each topic at that source's pace. Every question is
asked by a thread of its own and given up after `fetch_seconds`, however slowly the answer drips in.
While MAX_ABANDONED given-up questions of a source are still alive, that source is not asked. After
a failure the next question waits longer. Nothing here raises: what went wrong is a status.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Generic, Protocol, TypeVar

from torra.evidence.news_digest import NewsStatus
from torra.services import CLOSE_SECONDS, Service, in_background

FETCH_SECONDS: Final = 10.0
"""An answer that is not whole after this time is given up."""

MAX_ABANDONED: Final = 2
"""Given-up questions of a source that may be alive: one that hangs does not fill the process."""

LATE_PACES: Final = 5
"""A source that has not answered for this many of its paces counts as unreachable."""

SHORTEST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 30.0
"""Bounds of the pause between two looks at what is due."""

WAITS_S: Final = {
    NewsStatus.RATE_LIMITED: (60.0, 3600.0),
    NewsStatus.UNREACHABLE: (30.0, 900.0),
    NewsStatus.BROKEN: (60.0, 900.0),
    NewsStatus.REFUSED: (3600.0, 3600.0),
}
"""Seconds to the next question after a first failure, doubled with every further one, and at most.
"""

WHOLE_SOURCE: Final = frozenset((NewsStatus.RATE_LIMITED, NewsStatus.UNREACHABLE))
"""Failures that concern all topics of a source."""

WORKING: Final = frozenset((NewsStatus.AVAILABLE, NewsStatus.EMPTY))

TROUBLES: Final = (
    NewsStatus.REFUSED,
    NewsStatus.RATE_LIMITED,
    NewsStatus.UNREACHABLE,
    NewsStatus.BROKEN,
    NewsStatus.NO_FILE,
    NewsStatus.NOT_YET,
)
"""The status when no source works: the first of these that was found."""

Place = tuple[str, str]
"""A source and one of its topics, by name."""


class SourceAnswer(Protocol):
    """What came of a question."""

    @property
    def status(self) -> NewsStatus:
        """How it went."""
        ...

    @property
    def detail(self) -> str:
        """More of it, in our words."""
        ...

    @property
    def items(self) -> Sized:
        """What it brought."""
        ...

    @property
    def dropped(self) -> int:
        """How much of it could not be used."""
        ...


A = TypeVar("A", bound=SourceAnswer)


class SourceSettings(Protocol):
    """Who is asked."""

    @property
    def spacing(self) -> float:
        """Seconds between two questions of any kind."""
        ...

    def every(self, topic: str) -> float:
        """Return the seconds between two questions about a topic."""
        ...


@dataclass(frozen=True, slots=True)
class TopicState:
    """The state of a topic of a source, to be shown; without a topic, of a source as a whole.

    No question is put before `due`. `polled_at` is the desk's time of the last one; `items` and
    `dropped` count its answer; `detail` is in our words. A status without an answer for LATE_PACES
    is `unreachable`.
    """

    source: str
    topic: str
    status: NewsStatus = NewsStatus.NOT_YET
    detail: str = ""
    polled_at: datetime | None = None
    items: int = 0
    dropped: int = 0
    failures: int = 0
    due: float = 0.0


class Poller(Service, Generic[A]):
    """Asks in its own threads; any thread may look at the status.

    `now` is the desk's clock, `monotonic` counts real seconds. `about` says in the log and in the
    names of threads what is collected.
    """

    def __init__(
        self,
        sources: Mapping[str, SourceSettings],
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        fetch_seconds: float,
        about: str,
        log: logging.Logger,
    ) -> None:
        super().__init__(about, LONGEST_PAUSE_S, self._ask_round, at_once=True, private=True)
        self._paces: Mapping[str, SourceSettings] = sources
        self._now = now
        self._monotonic = monotonic
        self._fetch_seconds = fetch_seconds
        self._about = about
        self._log = log
        self._lock = threading.Lock()
        self._round = threading.Lock()
        self._states: dict[Place, TopicState] = {}
        self._sources = {name: TopicState(name, "") for name in sources}
        self._abandoned: dict[str, list[threading.Thread]] = {}
        self._asking = threading.Event()

    # --- what a collector says of itself ----------------------------------------------------------

    def _question(self, source: str, topic: str) -> A:
        """Ask a source about a topic; runs on a thread of its own and may raise."""
        raise NotImplementedError

    def _store_answer(self, source: str, topic: str, answer: A) -> A:
        """Store what an answer brought; return it without what was refused. May not raise."""
        raise NotImplementedError

    def _without(self, status: NewsStatus, detail: str) -> A:
        """Return an answer that brings nothing."""
        raise NotImplementedError

    def _concerns_all(self, source: str, status: NewsStatus) -> bool:  # noqa: ARG002
        """Return whether a failure concerns all topics of a source."""
        return status in WHOLE_SOURCE

    def _wait_after(self, source: str, status: NewsStatus, failures: int) -> float:  # noqa: ARG002
        """Return the seconds to the next question after so many failures in a row."""
        first, longest = WAITS_S[status]
        # Bounded: a power of 1,024 or more is no float any more.
        return min(longest, first * 2.0 ** min(failures - 1, 20))

    # --- beginning and end ------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to ask; the thread ends with `close` or the process."""
        try:
            super().start()
        except RuntimeError:
            self._log.warning(
                "no %s are collected: the machine starts no more threads", self._about
            )

    def close(self, within: float = CLOSE_SECONDS) -> None:
        """Stop asking for ever: give up the open question, and do not store its answer."""
        self._ending.set()
        self._asking.set()
        super().close(within)

    def status(self) -> tuple[TopicState, ...]:
        """Return the state of every topic; `due` is in seconds from now.

        Reads nothing but memory.
        """
        with self._lock:
            now = self._monotonic()
            return tuple(
                replace(self._shown(state), due=max(0.0, self._opens(state) - now))
                for _, state in sorted(self._states.items())
            )

    def _watch(self, places: Iterable[Place]) -> None:
        """Ask about these from now on; the lock is held. Two who want the same share a topic."""
        for place in places:
            self._states.setdefault(place, TopicState(*place))

    def _hasten(self, places: Iterable[Place]) -> None:
        """Ask about these at once, whenever they were to be asked; the lock is held."""
        for place in places:
            if place in self._states:
                self._states[place] = replace(self._states[place], due=0.0)

    # --- asking -----------------------------------------------------------------------------------

    def _ask_round(self) -> float:
        """Ask every topic that is due, once at most; return the seconds until the next is."""
        # Two who take a turn must not ask the same topic at the same time.
        with self._round:
            for place in self._due():
                # An answer of this very round may have closed the source.
                if self._monotonic() < self._sources[place[0]].due:
                    continue
                # And one may have told that this is to be asked no more.
                if place not in self._states:
                    continue
                answer = self._ask(*place)
                if self.ending or answer is None:
                    break
                self._settle(place, self._store_answer(*place, answer))
        return self._pause()

    def _pause(self) -> float:
        with self._lock:
            now = self._monotonic()
            waits = [self._opens(state) - now for state in self._states.values()]
        return min(max(min(waits, default=LONGEST_PAUSE_S), SHORTEST_PAUSE_S), LONGEST_PAUSE_S)

    def _opens(self, state: TopicState) -> float:
        return max(state.due, self._sources[state.source].due)

    def _shown(self, state: TopicState) -> TopicState:
        """Return a topic's state as it is shown: without an answer for long, it is unreachable."""
        last = self._last(state)
        if last.status not in WORKING or self._monotonic() <= state.due + self._patience(state):
            return last
        return replace(state, status=NewsStatus.UNREACHABLE, detail="no answer for a long time")

    def _last(self, state: TopicState) -> TopicState:
        """Return how a topic's last question ended, or its source's."""
        whole = self._sources[state.source]
        if whole.status is NewsStatus.NOT_YET:
            return state
        return replace(state, status=whole.status, detail=whole.detail)

    def _patience(self, state: TopicState) -> float:
        """Return the seconds that a topic's next answer may be late; topics take turns."""
        pace = self._paces[state.source]
        # Topics take turns: twelve of them, at one question an hour, take half a day.
        turns = sum(1 for source, _ in self._states if source == state.source)
        return LATE_PACES * max(pace.every(state.topic), pace.spacing * turns)

    def _due(self) -> list[Place]:
        """Return what is due, the longest overdue first."""
        with self._lock:
            now = self._monotonic()
            due = [place for place, state in self._states.items() if self._opens(state) <= now]
            return sorted(due, key=lambda place: (self._states[place].due, place))

    def _ask(self, source: str, topic: str) -> A | None:
        """Return a source's answer; None when collecting ends before it comes."""
        hanging = [thread for thread in self._abandoned.get(source, ()) if thread.is_alive()]
        self._abandoned[source] = hanging
        # A thread cannot be ended from outside: rather ask no more than fill the process.
        if len(hanging) >= MAX_ABANDONED:
            return self._without(NewsStatus.UNREACHABLE, "too many questions hang")
        box: list[A] = []
        # `close` sets this event too, and so ends the wait at once.
        done = self._asking = threading.Event()

        def fetch() -> None:
            try:
                box.append(self._question(source, topic))
            except Exception as error:  # noqa: BLE001 - the words of an exception may hold a URL
                box.append(self._without(NewsStatus.BROKEN, f"it failed ({type(error).__name__})"))
            finally:
                done.set()

        # A close from before this event was in place could not set it.
        if self.ending:
            return None
        try:
            thread = in_background(f"{self._about}-fetch", fetch)
        except RuntimeError:
            return self._without(NewsStatus.UNREACHABLE, "the machine starts no more threads")
        done.wait(self._fetch_seconds)
        if box:
            return box[0]
        hanging.append(thread)
        detail = f"no whole answer in {self._fetch_seconds:g} s"
        return self._without(NewsStatus.UNREACHABLE, detail)

    def _settle(self, place: Place, answer: A) -> None:
        """Note how a question ended, and when the next one may be asked."""
        source, topic = place
        pace, moment = self._paces[source], self._monotonic()
        failed, of_all = answer.status not in WORKING, self._concerns_all(source, answer.status)
        with self._lock:
            last, whole = self._states[place], self._sources[source]
            before, of_source = _health(self._last(last)), whole.status is not NewsStatus.NOT_YET
            failures = last.failures + 1 if failed else 0
            wait, opens = pace.every(topic), moment + pace.spacing
            whole = TopicState(source, "", failures=whole.failures + 1 if of_all else 0, due=opens)
            if failed:
                wait = self._wait_after(source, answer.status, whole.failures or failures)
            # The trouble of a source leaves the topic what it last said itself.
            own: TopicState | A = answer
            if of_all:
                own, opens = last, max(opens, moment + wait)
                whole = replace(whole, status=answer.status, detail=answer.detail, due=opens)
            self._sources[source] = whole
            self._states[place] = TopicState(
                source, topic, own.status, own.detail, self._now(), len(answer.items),
                answer.dropped, failures, moment + wait,
            )  # fmt: skip
            after = _health(self._last(self._states[place]))
        if after != before:
            where = source if of_all or of_source else f"{source}, {topic}"
            words = ", ".join(filter(None, (answer.status, answer.detail)))
            self._log.warning("%s of %s: %s", self._about, where, words)


def _health(state: TopicState) -> tuple[NewsStatus | None, str]:
    """Return what is worth a line in the log when it changes."""
    if state.status in WORKING:
        return None, state.detail
    return (None, "") if state.status is NewsStatus.NOT_YET else (state.status, "")

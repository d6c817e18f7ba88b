"""The reviewer of closed trades: asks a model about one trade, beside the ticks and after them.

The rules have written of each closed trade already; where a profile wants it
(`agents.memory.review`), its deep model may say more, or the one that `agents.role_models` names
for the reviewer. `review_now` asks about one trade: it books the call as `review|SID` in the hour
of the trade's profile, from what its ticks can spare (torra.tick.spending). Of the reply the
sentences alone are kept whose numbers are facts (torra.lessons.checked_words). A trade is asked
about TRIES times at most, across restarts and whatever came of it; that a vendor rests, or that
there is no room in the hour, is no try.

`Reviewer` is the service of a desk that does so where the desk has its lock. It looks for trades
that ended within a day and sends one call in SPACING seconds at most. One call is under way at a
time, on the vendors' loop and with a provider of its own, so a vendor that hangs holds this thread
alone: no worker, no list of vendors that are down, and no connection that a tick could be short of.
A plug-in is not asked: nobody knows whose threads it uses. Nothing here raises into the desk, no
tick waits for it, and whoever closes the desk does not wait for an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent_config import VENDORS, AgentSettings, route
from agents.contracts import Completion, DebateContext, ModelUnavailable
from agents.debate import replies
from agents.debate.deliberation import Call
from agents.registry import REVIEWER
from instance_database import Database
from scoring_rubric import build_review_prompt
from torra.clock import Clock, System, duration, iso, token
from torra.config import Instance, Profile, load_profile
from torra.desk.models.access import Models, open_models
from torra.desk.models.off_tick import (
    ANSWERED,
    WARMING,
    OffTickKey,
    OffTickModel,
    alone,
    write_call,
)
from torra.errors import ConfigError, StoreUnavailable, TorraError
from torra.lessons.checked_words import checked
from torra.lessons.figures import evidence
from torra.lessons.lesson import Lesson, LessonText
from torra.lessons.reviews import AUTHOR
from torra.services import Service
from torra.store import ledger as ledger_table
from torra.store import lessons as lesson_table
from torra.store.standings import WarmUps
from torra.store.trade import notes as note_table
from torra.tick.spending import streams_of

STAGE: Final = "review"
"""Stage of its rows in the ledger and of its calls."""

TRIES: Final = 2
"""How often a model is asked about a trade, ever."""

ANSWER_SECONDS: Final = 60.0
"""Real seconds that a model has for a review."""

COUNTS_AFTER: Final = timedelta(minutes=1)
"""Desk time from writing a review until it is known: no tick of that moment can be in doubt whether
it was there, live or in a replay.
"""

WRITE_WAIT: Final = 1.0
"""Seconds that a review waits for the database's lock."""

GARBAGE: Final = "garbage"
BLOCKED: Final = "blocked"
"""Statuses of calls: no words that can be used, and a vendor that is not asked for a while."""

SPACING: Final = 30.0
"""Real seconds from one call to the next, and from the start of the thread to the first."""

PAUSE: Final = 600.0
"""Real seconds without a call after a vendor gave no answer."""

LOOK_SECONDS: Final = 5.0
"""Real seconds after which the thread looks by itself, woken or not."""

CATCH_UP: Final = timedelta(days=1)
"""Age of a trade's end up to which it is reviewed by itself: calls are kept for a day at least
(DeskSettings.keep_calls_days), and without them nobody knows how often it was tried.
"""

LISTED: Final = 50
"""Newest lessons among which trades to be reviewed are looked for."""

CLOSE_SECONDS: Final = 0.5
"""Real seconds that `close` waits for the thread: a call may last much longer."""

AHEAD: Final = timedelta(minutes=30)
"""Desk time that the clock of a sample may have run on since the desk last told it."""

UNUSABLE: Final = {
    "timeout": "the model did not answer in time",
    "blocked": "the vendor refused before and is not asked for an hour",
    "refused": "the model would not answer",
    "wrong_symbol": "the answer was about another symbol",
    "error": "the vendor gave no answer",
}
"""Why a call brought no words, by its status."""

log = logging.getLogger("torra")


class Paying(NamedTuple):
    """The profile that pays for a review, its name, and how many streams have it."""

    name: str
    agents: AgentSettings
    streams: int = 1


class Reviewed(NamedTuple):
    """What became of a review: its words, or `why` there are none.

    `status` is that of the call (agents.debate.deliberation.Call), "" where none was sent.
    `broken`: of this trade no question could be made, and nobody knows why.
    """

    words: LessonText | None
    why: str = ""
    status: str = ""
    broken: bool = False


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """What a review is asked with. `left` says that nobody waits for the answer any more."""

    database: Database
    vendors: Models
    clock: Clock
    left: Callable[[], bool] = lambda: False
    seconds: float = ANSWER_SECONDS


# --- one review -----------------------------------------------------------------------------------


def review_now(lesson: Lesson, paying: Paying, asking: ReviewRequest) -> Reviewed:
    """Ask a model about a closed trade and store what it says; never raises.

    The ceiling of the paying profile holds, and its ticks come first.
    """
    try:
        why = refused(lesson, paying, asking)
        return Reviewed(None, why) if why else _review(lesson, paying, asking)
    except ConfigError as error:
        return Reviewed(None, str(error))
    except StoreUnavailable as error:
        return Reviewed(None, f"the database cannot be used: {error}")
    except Exception as error:
        log.exception("review of %s", lesson.facts.sid)
        return Reviewed(None, f"it failed ({type(error).__name__})", broken=True)


def refused(lesson: Lesson, paying: Paying, asking: ReviewRequest) -> str:
    """Return why a trade is not to be reviewed; "" where it may be."""
    if lesson.facts.kind != "trade":
        return "it was vetoed, and a model is asked about trades alone"
    why = unaskable(paying)
    if paying.agents.memory.review != "model":
        why = (
            f"profile {paying.name} lets the rules alone write of closed trades: set "
            "agents.memory.review to model"
        )
    if why:
        return why
    authors = [words.author for words in lesson.words if words.author != AUTHOR]
    if authors:
        return f"{authors[-1]} wrote of it already"
    if ledger_table.is_under_way(asking.database, _key(lesson).text):
        return "it is being asked about now"
    used_up = _tries(lesson, paying, asking) >= TRIES
    return f"it was asked about {TRIES} times, and no answer could be used" if used_up else ""


def unaskable(paying: Paying) -> str:
    """Return why a profile that wants reviews by a model gets none; "" where it may."""
    settings = paying.agents
    vendor, _ = route(settings.model(REVIEWER.id, REVIEWER.tier), settings.provider)
    if settings.memory.review != "model" or vendor in VENDORS:
        return ""
    return (
        f"reviews are asked of {', '.join(VENDORS)}, and the reviewer's model of profile "
        f"{paying.name} is answered by {vendor}: set agents.role_models.reviewer to VENDOR:MODEL, "
        "or agents.memory.review to rules"
    )


def _tries(lesson: Lesson, paying: Paying, asking: ReviewRequest) -> int:
    facts = lesson.facts
    key = _key(lesson).text
    return ledger_table.count_rounds(asking.database, paying.name, key, facts.known_at)


def _review(lesson: Lesson, paying: Paying, asking: ReviewRequest) -> Reviewed:
    """Ask, and store what became of it."""
    facts, settings, clock = lesson.facts, paying.agents, asking.clock
    deadline = clock.monotonic() + asking.seconds
    context = DebateContext(
        facts.symbol, facts.timeframe, iso(facts.bar_time), iso(facts.known_at), {},
        features=evidence(facts), nonce=token(),
    )  # fmt: skip
    prompt = build_review_prompt(context, note_table.trade_note(asking.database, facts.sid).note)
    model = OffTickModel(
        models=asking.vendors, database=asking.database, profile=paying.name, agents=settings,
        settings=alone(settings, REVIEWER), kind=STAGE, key=_key(lesson), streams=paying.streams,
        clock=clock, is_over=asking.left,
    )  # fmt: skip
    reply = model.ask(
        prompt, replies.schema(prompt.shape), role=REVIEWER, deadline=deadline,
        symbol=facts.symbol, timeframe=facts.timeframe, bar_time=context.bar_time,
        round=_tries(lesson, paying, asking) + 1, nonce=context.nonce,
    )  # fmt: skip
    if reply.call is None:
        return Reviewed(None, reply.detail)
    call, words = reply.call, None
    if reply.document is not None:
        try:
            words = _words(reply.document, call.answer, lesson, clock)
        except ModelUnavailable as error:
            call = replace(call, status=error.reason, detail=error.detail)
    return _stored(lesson, words, call, asking)


def _key(lesson: Lesson) -> OffTickKey:
    return OffTickKey(STAGE, lesson.facts.sid)


def _words(
    document: dict[str, Any], completion: Completion, lesson: Lesson, clock: Clock
) -> LessonText:
    """Return what may stand of an answer; raises ModelUnavailable for garbage."""
    parts = replies.review(document)
    author = f"{completion.provider}:{completion.model}"[:100]
    words = checked(LessonText(*parts, author, clock.now()), lesson.facts)
    if not words.text:
        flags = ", ".join(words.flags) or "nothing was said"
        raise ModelUnavailable(GARBAGE, f"no sentence holds to the facts: {flags}")
    return words


def _stored(
    lesson: Lesson, words: LessonText | None, record: Call, asking: ReviewRequest
) -> Reviewed:
    """Store the call, and with it the words, if anybody still waits for them."""
    database, key = asking.database, _key(lesson)
    detail = f" ({record.detail})" if record.detail else ""
    why = f"{UNUSABLE.get(record.status, 'the answer could not be used')}{detail}"
    if record.status == BLOCKED:
        return Reviewed(None, why, record.status)
    with database.transaction(WRITE_WAIT):
        record = write_call(database, key, record)
        if words is None:
            return Reviewed(None, why, record.status)
        if asking.left():
            return Reviewed(None, "the desk is at rest", record.status)
        words = replace(
            words,
            # Of the moment in which it is written: the lock may have been waited for.
            known_at=asking.clock.now().replace(microsecond=0) + COUNTS_AFTER,
            request_hash=record.request_hash,
            cost_usd=record.cost_usd,
        )
        if not lesson_table.write_words(database, lesson.number, words):
            return Reviewed(None, f"{words.author} wrote of it meanwhile", record.status)
    return Reviewed(words, "", record.status)


# --- the service of a desk ------------------------------------------------------------------------


class Reviewer(Service):
    """Reviews what a desk's instances closed."""

    def __init__(
        self,
        database: Database,
        vendors: Models,
        watched: Callable[[], Iterable[tuple[Instance, Profile]]],
        clock: Callable[[], Clock],
    ) -> None:
        """Begin at rest; `watched` and `clock` are those of now."""
        super().__init__("reviews", LOOK_SECONDS, self._turn, at_once=True, private=True)
        self._database, self._vendors = database, vendors
        self._watched, self._clock = watched, clock
        self._next = 0.0
        self._last_why = ""
        self._broken: set[str] = set()

    def close(self, within: float = CLOSE_SECONDS) -> None:
        """End; a call that is under way is left behind."""
        super().close(min(within, CLOSE_SECONDS))

    def open(self) -> None:
        """Let the first call wait as long as any other one."""
        self._next = self._clock().monotonic() + SPACING

    def _turn(self) -> None:
        self.review_due(lambda: self.ending)

    def review_due(self, ended: Callable[[], bool] = lambda: False) -> Reviewed | None:
        """Review the oldest trade that is due, if it is time; return what became of it."""
        clock = self._clock()
        if clock.monotonic() < self._next or ended():
            return None
        asking = ReviewRequest(self._database, self._vendors, clock, ended)
        review: Reviewed | None = None
        passed: set[str] = set()
        for lesson, paying in self._due(asking):
            if paying.name in passed:
                continue
            if not self._database.fence():
                break
            review = review_now(lesson, paying, asking)
            if review.why != self._last_why and not self.ending:
                log.info("review of %s: %s", lesson.facts.sid, review.why or "written")
            self._last_why = review.why
            if review.status:
                break
            if review.broken:
                self._broken.add(lesson.facts.sid)  # of this one alone nobody knows why
                continue
            passed.add(paying.name)  # what keeps one review of a profile keeps the others too
        unanswered = review is not None and review.status not in ("", ANSWERED, GARBAGE)
        self._next = clock.monotonic() + (PAUSE if unanswered else SPACING)
        return review

    def _due(self, asking: ReviewRequest) -> Iterator[tuple[Lesson, Paying]]:
        """Yield the trades that a model may write of and who pays for it, the oldest first."""
        watched = [*self._watched()]
        instances = [instance for instance, _ in watched]
        payers = {
            instance.id: Paying(
                instance.profile, profile.agents, streams_of(instances, instance.profile)
            )
            for instance, profile in watched
            if profile.agents.memory.review == "model"
        }
        if not payers:
            return  # nearly every desk
        since, warm_ups = asking.clock.now() - CATCH_UP, WarmUps(self._database)
        for lesson in reversed(
            lesson_table.lesson_list(self._database, {"kind": "trade"}, limit=LISTED)
        ):
            facts = lesson.facts
            paying = payers.get(facts.instance)
            if paying is None or facts.known_at <= since or facts.sid in self._broken:
                continue
            if refused(lesson, paying, asking):
                continue
            close = facts.bar_time + duration(facts.timeframe)
            if not warm_ups.has(facts.instance, facts.timeframe, close):
                yield lesson, paying


# --- from outside the desk ------------------------------------------------------------------------


class DeskTime(System):
    """Real time, but for a desk on the sample: that one lives in the time which it told last."""

    def __init__(self, database: Database, instance: Instance) -> None:
        time = database.desk_time() if instance.feed == "sample" else None
        self._time = None if time is None else time + AHEAD

    def now(self) -> datetime:
        """Return the desk's time."""
        return self._time or super().now()


def ask_now(
    home: Path,
    database: Database,
    instances: Iterable[Instance],
    lesson: Lesson,
    environment: Mapping[str, str],
) -> Reviewed:
    """Ask the model of a trade's profile about it and store what it says; never raises.

    The desk may run meanwhile: both book in the same ledger, so the ceiling holds for both.
    """
    facts, instances = lesson.facts, [*instances]
    instance = next((one for one in instances if one.id == facts.instance), None)
    if instance is None:
        return Reviewed(None, f"the desk names {facts.instance} no more, so no profile would pay")
    try:
        name = instance.profile
        paying = Paying(name, load_profile(name, home).agents, streams_of(instances, name))
        models = open_models(home, database, environment, remember=False)
    except TorraError as error:
        return Reviewed(None, str(error))
    try:
        asking = ReviewRequest(database, models, DeskTime(database, instance))
        if not refused(lesson, paying, asking):
            # A cold SDK takes a second to import, which is not the model's.
            models.provider(alone(paying.agents, REVIEWER))
            models.clients.ready(WARMING)
        return review_now(lesson, paying, asking)
    except TorraError as error:
        return Reviewed(None, str(error))
    finally:
        models.close()

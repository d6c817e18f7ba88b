"""The reviewer of closed trades: asks a model about one trade, beside the ticks and after them.

The rules have written of each closed trade already; where a profile wants it
(`agents.memory.review`), its deep model may say more, or the one that `agents.role_models` names
for the reviewer. `review_now` asks about one trade: it books the call as `review|SID` in the hour
of the trade's profile, and only where two ticks of that profile at their worst case still fit
beside it; later ones of the same hour may meet what it cost. Of the reply the sentences alone are
kept whose numbers are facts (torra.lessons.checked_words). A trade is asked about TRIES times at
most, across restarts and whatever came of it; that a vendor rests, or that there is no room in the
hour, is no try.

The call is on the vendors' loop, through a provider that is opened for it. A plug-in is not asked:
nobody knows whose threads it uses. Nothing here raises.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

from agent_config import VENDORS, AgentSettings, route
from agents.contracts import (
    CallBound,
    Completion,
    DebateContext,
    ModelUnavailable,
    Request,
)
from agents.debate import replies
from agents.debate.deliberation import Call
from agents.registry import REVIEWER
from agents.texts import door
from instance_database import Database
from scoring_rubric import build_review_prompt
from torra.clock import Clock, iso, token
from torra.errors import ConfigError, StoreUnavailable
from torra.lessons.checked_words import checked
from torra.lessons.figures import evidence
from torra.lessons.lesson import Lesson, LessonText
from torra.lessons.reviews import AUTHOR
from torra.providers.prices import PriceList
from torra.providers.registry import Provider
from torra.store import ledger as ledger_table
from torra.store import lessons as lesson_table
from torra.store.trade import notes as note_table
from torra.tick.spending import Purse, SpendingAccount, tick_worst_case

STAGE: Final = "review"
"""Stage of its rows in the ledger and of its calls: no tick has one of that name."""

TRIES: Final = 2
"""How often a model is asked about a trade, ever."""

TICKS_FIRST: Final = 2
"""Ticks of the profile, at their worst case, for which a review leaves room in the hour."""

ANSWER_SECONDS: Final = 60.0
"""Real seconds that a model has for a review."""

LEAVE_SECONDS: Final = 0.2
"""Real seconds within which a wait for an answer sees that the desk rests."""

COUNTS_AFTER: Final = timedelta(minutes=1)
"""Desk time from writing a review until it is known: no tick of that moment can be in doubt whether
it was there, live or in a replay.
"""

WRITE_WAIT: Final = 1.0
"""Seconds that a review waits for the database's lock."""

ANSWERED: Final = "ok"
GARBAGE: Final = "garbage"
BLOCKED: Final = "blocked"
"""Statuses of calls: words, none that can be used, and a vendor that is not asked for a while."""

log = logging.getLogger("torra")


class Vendors(Protocol):
    """The way to the models (torra.desk.wiring.Models)."""

    @property
    def prices(self) -> PriceList:
        """The prices by which calls are booked."""
        ...

    def provider(self, settings: AgentSettings) -> Provider:
        """Open who answers; raises ConfigError."""
        ...

    def local(self, vendor: str) -> bool:
        """Return whether a vendor's server is one of one's own."""
        ...


class ReviewKey(NamedTuple):
    """What a review's calls and bookings are made for."""

    sid: str

    @property
    def text(self) -> str:
        """The key as the tables hold it."""
        return f"{STAGE}|{self.sid}"


class Paying(NamedTuple):
    """The profile that pays for a review, and its name."""

    name: str
    agents: AgentSettings


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
    vendors: Vendors
    clock: Clock
    left: Callable[[], bool] = lambda: False
    seconds: float = ANSWER_SECONDS


# --- one review -----------------------------------------------------------------------------------


def review_now(lesson: Lesson, paying: Paying, asking: ReviewRequest) -> Reviewed:
    """Ask a model about a closed trade and store what it says; never raises.

    The ceiling of the paying profile holds, and its ticks come first.
    """
    try:
        return refused(lesson, paying, asking) or _Review(lesson, paying, asking).run()
    except ConfigError as error:
        return Reviewed(None, str(error))
    except StoreUnavailable as error:
        return Reviewed(None, f"the database cannot be used: {error}")
    except Exception as error:
        log.exception("review of %s", lesson.facts.sid)
        return Reviewed(None, f"it failed ({type(error).__name__})", broken=True)


def refused(lesson: Lesson, paying: Paying, asking: ReviewRequest) -> Reviewed | None:
    """Return why a trade is not to be reviewed; None where it may be."""
    settings = paying.agents
    if lesson.facts.kind != "trade":
        return Reviewed(None, "it was vetoed, and a model is asked about trades alone")
    if settings.memory.review != "model":
        return Reviewed(
            None,
            f"profile {paying.name} lets the rules alone write of closed trades: set "
            "agents.memory.review to model",
        )
    if why := unaskable(paying):
        return Reviewed(None, why)
    if authors := [words.author for words in lesson.words if words.author != AUTHOR]:
        return Reviewed(None, f"{authors[-1]} wrote of it already")
    if ledger_table.is_asked(asking.database, ReviewKey(lesson.facts.sid).text):
        why = "it is being asked about now"
    elif tried(lesson, paying, asking.database) >= TRIES:
        why = f"it was asked about {TRIES} times, and no answer could be used"
    return Reviewed(None, why) if why else None


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


def tried(lesson: Lesson, paying: Paying, database: Database) -> int:
    """Return how often a model was asked about a trade."""
    key = ReviewKey(lesson.facts.sid).text
    return ledger_table.rounds_asked(database, paying.name, key, lesson.facts.known_at)


class _Review:
    """One question about one trade."""

    def __init__(self, lesson: Lesson, paying: Paying, asking: ReviewRequest) -> None:
        self._lesson, self._paying, self._asking = lesson, paying, asking
        self._key = ReviewKey(lesson.facts.sid)
        self._clock, self._database = asking.clock, asking.database
        self._deadline = self._clock.monotonic() + asking.seconds

    def run(self) -> Reviewed:
        """Ask, and store what became of it."""
        request = self._request()
        most, _ = self._paying.agents.caps(REVIEWER.id, REVIEWER.tier)
        if _bytes(request) > most:
            return Reviewed(None, f"its facts take more than {most:,} bytes")
        purse = open_purse(self._paying, self._asking, self._key, self._deadline)
        bound = CallBound(
            REVIEWER.id,
            request.model,
            prompt_bytes=_bytes(request),
            output_tokens=request.max_output_tokens,
            requests=1,
            round=request.round,
            tier=REVIEWER.tier,
        )
        if not purse.reserve(STAGE, [bound]):
            return Reviewed(
                None,
                f"with the next {TICKS_FIRST} ticks it would pass the ceiling of "
                f"{self._paying.agents.max_api_cost_per_hour:.2f} USD an hour of profile "
                f"{self._paying.name}",
            )
        return self._answered(request, purse)

    def _request(self) -> Request:
        facts, settings = self._lesson.facts, self._paying.agents
        about = DebateContext(
            facts.symbol, facts.timeframe, iso(facts.bar_time), iso(facts.known_at), {},
            features=evidence(facts), nonce=token(),
        )  # fmt: skip
        prompt = build_review_prompt(about, note_table.trade_note(self._database, facts.sid).note)
        return Request(
            role=REVIEWER,
            round=tried(self._lesson, self._paying, self._database) + 1,
            attempt=1,
            symbol=facts.symbol,
            timeframe=facts.timeframe,
            bar_time=about.bar_time,
            model=settings.model(REVIEWER.id, REVIEWER.tier),
            prompt=prompt,
            schema=replies.schema(prompt.shape),
            features=about.features,
            reports=(),
            scores={},
            max_output_tokens=settings.caps(REVIEWER.id, REVIEWER.tier)[1],
            limit_s=self._asking.seconds,
            nonce=about.nonce,
        )

    def _answered(self, request: Request, purse: Purse) -> Reviewed:
        call = Call(request, STAGE, self._clock.monotonic())
        words: LessonText | None = None
        try:
            call.completion = self._completion(call, purse, request)
            words, call.status = self._words(call.completion, request), ANSWERED
        except ModelUnavailable as error:
            call.status, call.detail = error.reason, error.detail
        call.ended = self._clock.monotonic()
        record = replace(call.recorded(call.ended), paid_usd=purse.paid())
        return self._stored(words, record)

    def _completion(self, call: Call, purse: Purse, request: Request) -> Completion:
        """Send a request and wait for its answer, no longer than anybody does.

        Raises ModelUnavailable and only that, for a provider and its future may raise anything.
        """
        try:
            call.future = future = purse.submit(request)
            while (left := self._deadline - self._clock.monotonic()) > 0:
                if wait([future], min(LEAVE_SECONDS, left)).done or self._asking.left():
                    break
            completion = future.result() if future.done() else None
        except ModelUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - as said above
            raise ModelUnavailable("error", type(error).__name__) from None
        if completion is None:
            future.cancel()
            raise ModelUnavailable("timeout", "no answer in time", again=None)
        if not isinstance(completion, Completion):
            raise ModelUnavailable("error", f"{type(completion).__name__} is no completion")
        return completion

    def _words(self, completion: Completion, request: Request) -> LessonText:
        """Return what may stand of an answer; raises ModelUnavailable for garbage."""
        setup, outcome, rule = replies.review(door.answered(completion, request, request.symbol))
        author = f"{completion.provider}:{completion.model}"[:100]
        told = LessonText(setup, outcome, rule, author, self._clock.now())
        words = checked(told, self._lesson.facts)
        if not words.text:
            flags = ", ".join(words.flags) or "nothing was said"
            raise ModelUnavailable(GARBAGE, f"no sentence holds to the facts: {flags}")
        return words

    def _stored(self, words: LessonText | None, record: Call) -> Reviewed:
        """Store the call, and with it the words, if anybody still waits for them."""
        if record.status == BLOCKED:
            return Reviewed(None, said(record.status, record.detail), record.status)
        with self._database.transaction(WRITE_WAIT):
            # Another asker may have had an answer meanwhile: no call is written over it.
            last = ledger_table.last_round(self._database, self._key.text)
            record = replace(record, stored_round=max(record.round, last + 1))
            self._database.write_calls(self._key, [record])
            if words is None:
                return Reviewed(None, said(record.status, record.detail), record.status)
            if self._asking.left():
                return Reviewed(None, "the desk is at rest", record.status)
            words = replace(
                words,
                # Of the moment in which it is written: the lock may have been waited for.
                known_at=self._clock.now().replace(microsecond=0) + COUNTS_AFTER,
                request_hash=record.request_hash,
                cost_usd=record.cost_usd,
            )
            if not lesson_table.write_words(self._database, self._lesson.number, words):
                return Reviewed(None, f"{words.author} wrote of it meanwhile", record.status)
        return Reviewed(words, "", record.status)


def open_purse(paying: Paying, asking: ReviewRequest, key: ReviewKey, deadline: float) -> Purse:
    """Return what sends a review and pays for it: from what the profile's next ticks leave.

    Raises ConfigError for a desk that cannot be seated, and for a vendor that cannot be asked.
    """
    settings, vendors = paying.agents, asking.vendors
    asked = alone(settings)
    try:
        tick = tick_worst_case(vendors.prices, settings, vendors.local)
    except ValueError as error:
        raise ConfigError(f"profile {paying.name}: {error}") from error
    left = settings.max_api_cost_per_hour - TICKS_FIRST * tick
    account = SpendingAccount(
        asking.database, vendors.prices, paying.name, vendors.local, asking.clock.real_now
    )
    return account.purse(
        key,
        # A ceiling below 0 is none that a call could stay under, but one of 0 is for a free one.
        asked.model_copy(update={"max_api_cost_per_hour": max(0.0, left)}),
        vendors.provider(asked).submit,
        monotonic=asking.clock.monotonic,
        deadline=deadline,
    )


def alone(settings: AgentSettings) -> AgentSettings:
    """Return settings with which nobody but the reviewer's model is opened, and who stands in."""
    model = settings.model(REVIEWER.id, REVIEWER.tier)
    vendor, _ = route(model, settings.provider)
    only = {"quick_think_model": model, "deep_think_model": model, "role_models": {}}
    return settings.model_copy(update={"provider": vendor, **only})


def said(status: str, detail: str) -> str:
    """Return why a call brought no words, for a person."""
    known = {
        "timeout": "the model did not answer in time",
        "blocked": "the vendor refused before and is not asked for an hour",
        "refused": "the model would not answer",
        "wrong_symbol": "the answer was about another symbol",
    }
    if status == "error":
        return f"the vendor gave no answer ({detail})" if detail else "the vendor gave no answer"
    told = known.get(status, "the answer could not be used")
    return f"{told} ({detail})" if detail else told


def _bytes(request: Request) -> int:
    return len(f"{request.system}{request.user}".encode("utf-8", "backslashreplace"))

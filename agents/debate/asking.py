"""How an agent reaches a model: the one place that holds deadline, request cap, retry and log.

`Line.ask` makes the `ask` that an agent is handed. It turns a prompt into a request, waits for the
answer no longer than its stage lasts, parses it strictly and holds it to the role. Whatever goes
wrong becomes `ModelUnavailable`. An error or a garbage reply, never a timeout, is asked once more
if that can help (`ModelUnavailable.again` says when), as much time remains as the first attempt
took, and the request cap leaves room: the first requests of the later stages are set aside, so a
retry cannot starve the gate. This is the only retry there is: providers make none. A reply that was
cut off is asked again with twice the output limit, CAPS at most, under a reservation of its own
that is made at that moment; where nobody grants it, it is not asked again.

On the same terms an analyst or a researcher that answered at once, with low confidence, is asked to
look once more (`AgentSettings.second_look`). Its second answer counts if it is good; if not, for
whatever reason, the first one stands.

Where the desk's own agents ask a provider that answers at once and reads no prose (`Line.inline`),
texts are written only when somebody reads them, and a prompt's length, which is what may be sent,
is no matter.

Every request is kept as a `CallRecord`, also when its answer came late or never: a late answer is
recorded and not used. Of a foreign exception only the type is kept, because its text may hold a
key.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from agent_config import CAPS, MAX_REQUESTS, AgentSettings
from scoring_rubric import request_hash, second_look, shortened

from ..contracts import (
    SIDES,
    AgentReport,
    Ask,
    CallBound,
    CallRecord,
    Completion,
    DebateContext,
    ModelUnavailable,
    Prompt,
    Request,
    Reserve,
    Role,
    Submit,
)
from ..texts.door import MAX_REPLY_CHARS, about, answered
from ..texts.fence import without_nonce
from ..texts.lazy_text import lazy_text
from . import replies
from .shown_reports import ShownReports, with_prose

REASONS: Final = frozenset(
    (
        "timeout",
        "error",
        "garbage",
        "refused",
        "budget",
        "deadline",
        "wrong_symbol",
        "miss",
        "blocked",
    )
)
"""The words of `ModelUnavailable.reason`; any other is recorded as error."""

CUT_OFF: Final = "length"
"""Detail of a reply that ended at its output limit."""

REQUESTS_PER_AGENT: Final = 2
"""Requests of one agent in one stage: the first, and one retry or second look."""

LOOK_AGAIN: Final = frozenset(("analyst", "researcher"))
"""Kinds of agents whose reports may get a second look."""

DETAIL_KEPT: Final = 200
"""Characters kept of a failure's detail."""

T = TypeVar("T")


@dataclass(slots=True)
class Stage:
    """A stretch of a deliberation: until when its answers count, in monotonic seconds.

    `held` are the first reports of the agents that took a second look, as their models gave them.
    """

    name: str
    round: int
    until: float
    closed: bool = False
    held: dict[str, AgentReport] = field(default_factory=dict)


@dataclass(slots=True)
class AgentCall:
    """A request that was sent, and what is known of it so far. `look`: it is a second look."""

    request: Request
    stage: str
    started: float
    look: bool = False
    status: str = "timeout"
    detail: str = ""
    ended: float | None = None
    completion: Completion | None = None
    future: Future[Completion] | None = None


@dataclass(slots=True)
class ModelCalls:
    """The line from one desk to its provider, for one deliberation.

    `planned` is the number of requests that the desk makes when nothing goes wrong; what the cap
    leaves above it serves retries and second looks. `deadline` is the debate's, by `monotonic`.
    `reserve` grants what a reply that was cut off needs beyond its stage's reservation.
    `inline`: the desk's own agents ask on the caller's thread, and `submit` is immediate; `given`
    are then the reports that they were given, held to their roles already.
    """

    submit: Submit
    monotonic: Callable[[], float]
    settings: AgentSettings
    planned: int
    deadline: float = -math.inf
    reserve: Reserve | None = None
    inline: bool = False
    calls: list[AgentCall] = field(default_factory=list)
    given: dict[str, AgentReport] = field(default_factory=dict)
    bare: ShownReports = field(default_factory=ShownReports)
    _extra: int = 0
    _shortened: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, role: Role, context: DebateContext, stage: Stage) -> Ask:
        """Return the `ask` of one agent in one stage: a prompt in, a checked report out."""
        exchange = _Exchange(self, role, context, stage)

        def parse(reply: Mapping[str, Any], prompt: Prompt) -> AgentReport:
            told = replies.read(prompt.shape, reply, role, context.features)
            if told.rebuttals and not any(r.agent_id in SIDES for r in context.reports):
                return replace(told, rebuttals=())  # nobody has spoken yet
            return told

        return lambda prompt: exchange.considered(prompt, parse)

    def ask_once(
        self, role: Role, context: DebateContext, stage: Stage
    ) -> Callable[[Prompt], Mapping[str, Any]]:
        """Return how the fallback asks: one attempt a prompt, the JSON object of the reply out."""
        exchange = _Exchange(self, role, context, stage)

        def parse(reply: Mapping[str, Any], prompt: Prompt) -> Mapping[str, Any]:
            if prompt.shape == "scores":
                replies.scores(reply)  # a reply that holds none failed, and its call is to say so
            return reply

        return lambda prompt: exchange.once(prompt, parse)

    def open(self, request: Request, stage: Stage, *, look: bool = False) -> AgentCall:
        """Enter a request into the log.

        Raises ModelUnavailable: "budget" above the cap, "deadline" when the stage is over.
        """
        with self._lock:
            if stage.closed:
                raise ModelUnavailable("deadline", "no time is left")
            extra = int(request.attempt > 1)
            spare = MAX_REQUESTS - self.planned
            if len(self.calls) >= MAX_REQUESTS or (extra and self._extra >= spare):
                raise ModelUnavailable("budget", f"more than {MAX_REQUESTS} requests a tick")
            self._extra += extra
            call = AgentCall(request, stage.name, self.monotonic(), look)
            self.calls.append(call)
            return call

    def settle(self, call: AgentCall, stage: Stage, status: str, detail: str) -> None:
        """Note how a call ended; after the end of its stage it was in vain, whatever it brought."""
        with self._lock:
            call.status = "timeout" if stage.closed else status
            call.detail = detail[:DETAIL_KEPT]
            call.ended = self.monotonic()

    def hold(self, stage: Stage, role: Role, report: AgentReport) -> None:
        """Keep the report that stands should its second look not end in time."""
        with self._lock:
            if not stage.closed:
                stage.held[role.id] = report

    def close(self, stage: Stage, unheard: Collection[str]) -> dict[str, AgentReport]:
        """End a stage; `unheard` are the roles that were left behind.

        Returns the reports that stand all the same, of roles left in the middle of a second look.
        The record says what the debate says: of a role that was not heard no call is ok, and the
        last one timed out (late, when it was answered). Nothing that ends from here on changes it.
        """
        with self._lock:
            stage.closed = True
            standing = {name: stage.held[name] for name in unheard if name in stage.held}
            last: dict[str, AgentCall] = {}
            for call in self.calls:
                name = call.request.role.id
                if (call.stage, call.request.round) != (stage.name, stage.round):
                    continue
                if name in unheard and (call.look or name not in standing):
                    last[name] = call
                    call.status = "timeout" if call.status == "ok" else call.status
            for call in last.values():
                call.status = "timeout"
            return standing

    def looks(self) -> tuple[str, ...]:
        """Return what became of every second look, and whose prompt was cut short, as flags."""
        with self._lock:
            looks = [call for call in self.calls if call.look]
            cut = {f"shortened:{name}" for name in self._shortened}
        told = {True: "second_look", False: "first_look_stands"}
        found = {f"{told[call.status == 'ok']}:{call.request.role.id}" for call in looks}
        return tuple(sorted(found | cut))

    def shorten(self, role: str) -> None:
        """Note that an agent was shown less than there is: its prompt was too long."""
        with self._lock:
            self._shortened.add(role)

    def records(self) -> tuple[CallRecord, ...]:
        """Return what is known of every request by now, in a stable order."""
        with self._lock:
            calls = list(self.calls)
        now = self.monotonic()
        order = {name: place for place, name in enumerate(dict.fromkeys(c.stage for c in calls))}
        calls.sort(
            key=lambda call: (
                order[call.stage],
                call.request.round,
                call.request.role.id,
                call.request.attempt,
            )
        )
        return tuple(call_record(call, now) for call in calls)


class _Exchange:
    """The conversation of one agent in one stage."""

    def __init__(self, line: ModelCalls, role: Role, context: DebateContext, stage: Stage) -> None:
        self._line = line
        self._role = role
        self._context = context
        self._stage = stage
        self._attempts = 0
        self._output_tokens = self._caps[1]
        self._final = False

    def considered(
        self, prompt: Prompt, parse: Callable[[Mapping[str, Any], Prompt], AgentReport]
    ) -> AgentReport:
        """Ask, and have a first answer of low confidence looked at once more."""
        line, stage = self._line, self._stage
        started = line.monotonic()
        report = self.retried(prompt, parse)
        if line.inline:
            line.given[self._role.id] = report
        now = line.monotonic()
        if not self._doubtful(report) or stage.until - now < now - started:
            return report
        line.hold(stage, self._role, report)  # until the stage is over: it stands if nothing else
        try:
            return self.once(second_look(prompt, report), parse, look=True)
        except ModelUnavailable:
            return report

    def retried(self, prompt: Prompt, parse: Callable[[Mapping[str, Any], Prompt], T]) -> T:
        """Ask, and once more after an error or garbage if there is time and room."""
        started = self._line.monotonic()
        try:
            return self.once(prompt, parse)
        except ModelUnavailable as first:
            now = self._line.monotonic()
            wait = first.again
            if wait is None or self._stage.until - now <= now - started + wait:
                raise
            if first.detail.startswith(CUT_OFF) and not self._enlarged():
                raise
            try:
                return self.once(prompt, parse, delay=wait)
            except ModelUnavailable as second:
                raise first if second.reason == "budget" else second from None

    def _enlarged(self) -> bool:
        """Double the output limit of the next request; False where no more is granted."""
        line, tokens = self._line, min(2 * self._output_tokens, CAPS["output_tokens"][1])
        if tokens <= self._output_tokens:
            return False
        bound = replace(
            bound_of(line.settings, self._role, self._stage.round),
            output_tokens=tokens,
            requests=1,
            attempt=self._attempts + 1,
        )
        try:
            granted = line.reserve is None or line.reserve(self._stage.name, (bound,)) is True
        except Exception:  # noqa: BLE001 - a ledger that cannot be written grants nothing
            return False
        self._output_tokens = tokens
        return granted

    def once(
        self,
        prompt: Prompt,
        parse: Callable[[Mapping[str, Any], Prompt], T],
        *,
        delay: float = 0.0,
        look: bool = False,
    ) -> T:
        """Ask one model once, after `delay` seconds; raises ModelUnavailable and only that."""
        prompt = self._fitting(prompt)
        request = self._request(prompt, delay)
        call = self._line.open(request, self._stage, look=look)
        try:
            call.completion = self._completion(call, request)
            self._final = call.completion.final
            result = parse(self._reply(call.completion, request), prompt)
        except ModelUnavailable as error:
            reason = error.reason if error.reason in REASONS else "error"
            way = _word(call.completion.detail) if call.completion else ""
            told = "; ".join(filter(None, (error.detail, way)))
            self._line.settle(call, self._stage, reason, told)
            raise
        self._line.settle(call, self._stage, "ok", _word(call.completion.detail))
        return result

    def _doubtful(self, report: AgentReport) -> bool:
        """Tell whether a report is to be looked at once more, time and room aside."""
        return (
            self._line.settings.looks_again()
            and self._role.kind in LOOK_AGAIN
            and report.confidence == "low"
            and not report.abstained
            and not self._final
        )

    @property
    def _unread(self) -> bool:
        """Whether nobody reads the prompt's text."""
        return self._line.inline and self._role.kind != "scorer"

    @property
    def _caps(self) -> tuple[int, int]:
        return self._line.settings.caps(self._role.id, self._role.tier)

    def _fitting(self, prompt: Prompt) -> Prompt:
        """Return the prompt, or as much of it as may be sent."""
        if not isinstance(prompt, Prompt):
            raise ModelUnavailable("refused", f"{type(prompt).__name__} is no prompt")
        most, _ = self._caps
        if self._unread or _size(prompt) <= most:
            return prompt
        prompt = shortened(prompt, most)
        if _size(prompt) > most:
            raise ModelUnavailable("refused", f"a prompt of more than {most} bytes")
        self._line.shorten(self._role.id)
        return prompt

    def _request(self, prompt: Prompt, delay: float) -> Request:
        unread = self._unread
        if self._over():
            raise ModelUnavailable("deadline", "no time is left")
        if self._attempts >= REQUESTS_PER_AGENT:
            raise ModelUnavailable("budget", f"more than {REQUESTS_PER_AGENT} requests an agent")
        context, role = self._context, self._role
        features = context.features
        self._attempts += 1
        return Request(
            role=role,
            round=self._stage.round,
            attempt=self._attempts,
            symbol=context.symbol,
            timeframe=context.timeframe,
            bar_time=context.bar_time,
            model=self._line.settings.model(role.id, role.tier),
            system=lazy_text(lambda: prompt.system) if unread else prompt.system,
            user=lazy_text(lambda: prompt.user) if unread else prompt.user,
            schema=replies.schema(prompt.shape),
            features={name: features[name] for name in prompt.evidence if name in features},
            reports=(self._line.bare.of if unread else with_prose)(context, prompt.shape),
            scores=context.scores,
            max_output_tokens=self._output_tokens,
            limit_s=self._stage.until - self._line.monotonic(),
            nonce=context.nonce,
            picture=context.picture if role.picture else None,
            delay_s=delay,
            linger_s=max(0.0, self._line.deadline - self._stage.until),
        )

    def _completion(self, call: AgentCall, request: Request) -> Completion:
        try:
            call.future = self._line.submit(request)
            left = max(0.0, self._stage.until - self._line.monotonic())
            completion = call.future.result(timeout=left)
        except ModelUnavailable:
            raise
        except TimeoutError:
            raise ModelUnavailable("timeout") from None
        except BaseException as error:
            if self._line.inline and isinstance(error, KeyboardInterrupt):
                raise  # the user's, on the caller's thread; else any exception is a failed agent
            raise ModelUnavailable("error", type(error).__name__) from None
        if not isinstance(completion, Completion):
            raise ModelUnavailable("error", f"{type(completion).__name__} is no completion")
        return completion

    def _reply(self, completion: Completion, request: Request) -> Mapping[str, Any]:
        if self._over():
            raise ModelUnavailable("timeout", "the answer came late")
        if completion.reply is not None and completion.stop_reason == "end":
            return about(completion.reply, request.symbol)
        return answered(completion, request, request.symbol)

    def _over(self) -> bool:
        return self._stage.closed or self._line.monotonic() >= self._stage.until


def bound_of(settings: AgentSettings, role: Role, number: int = 1) -> CallBound:
    """Return the most that an agent may use in one round of its stage."""
    prompt_bytes, output_tokens = settings.caps(role.id, role.tier)
    return CallBound(
        role_id=role.id,
        model=settings.model(role.id, role.tier),
        prompt_bytes=prompt_bytes,
        output_tokens=output_tokens,
        requests=1 if role.kind == "scorer" else REQUESTS_PER_AGENT,
        round=number,
        tier=role.tier,
        picture=role.picture and settings.picture != "off",
    )


def call_record(call: AgentCall, now: float) -> CallRecord:
    """Return what is known of a call at `now`, in monotonic seconds."""
    request = call.request
    completion = call.completion or _late(call.future)
    late = call.status == "timeout" and completion is not None
    return CallRecord(
        role_id=request.role.id,
        stage=call.stage,
        round=request.round,
        attempt=request.attempt,
        status="late" if late else call.status,
        model=_word(completion.model) if completion else request.model,
        provider=_word(completion.provider) if completion else "",
        system=_later(lambda: without_nonce(request.system, request.nonce)),
        user=_later(lambda: without_nonce(request.user, request.nonce)),
        reply=_later(lambda: _storable(completion.text, request.nonce)) if completion else "",
        input_tokens=_count(completion.input_tokens) if completion else 0,
        output_tokens=_count(completion.output_tokens) if completion else 0,
        cost_usd=_cost(completion.cost_usd) if completion else 0.0,
        elapsed_ms=round(((now if call.ended is None else call.ended) - call.started) * 1000, 3),
        request_hash=_later(lambda: request_hash(request)),
        detail=_storable(call.detail, request.nonce),
        stop_reason=_word(completion.stop_reason) if completion else "",
        cached_tokens=_count(completion.cached_tokens) if completion else 0,
    )


def _later(write: Callable[[], str]) -> str:
    """Return a text of a record, written when it is read; one that cannot be written is empty.

    A record is read when the debate is over: nothing may raise there that could not in it.
    """

    def written() -> str:
        try:
            return write()
        except Exception:  # noqa: BLE001 - what a prompt or a reply is made of may be anything
            return ""

    return lazy_text(written)


def _size(prompt: Prompt) -> int:
    return _bytes(prompt.system) + _bytes(prompt.user)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))


def _late(future: Future[Completion] | None) -> Completion | None:
    """Return the answer of a call that nobody waited for, if it has come by now."""
    try:
        if future is None or not future.done() or future.exception(timeout=0) is not None:
            return None
        completion = future.result(timeout=0)
    except BaseException:  # noqa: BLE001 - a provider's future may be anything
        return None
    return completion if isinstance(completion, Completion) else None


def _storable(text: object, nonce: str) -> str:
    """Return text that any file and database can hold, the nonce as its placeholder."""
    if not isinstance(text, str):
        return ""
    kept = text[:MAX_REPLY_CHARS]
    if not kept.isascii():
        kept = kept.encode("utf-8", "backslashreplace").decode()
    return without_nonce(kept, nonce)


def _word(value: object) -> str:
    return _storable(value, "")[:DETAIL_KEPT]


MOST_TOKENS: Final = 10**9
"""A vendor that reports more tokens than this for one call is wrong; the number is cut here."""


def _count(value: object) -> int:
    return min(value, MOST_TOKENS) if type(value) is int and value >= 0 else 0


def _cost(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return max(0.0, float(value))

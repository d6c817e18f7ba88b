"""Calls to models: what an agent is handed as `ask`, and the log of every request.

A `Conversation` is one agent's in one stage. It turns a prompt into a request, waits for the answer
no longer than its stage lasts, and reads it strictly into a report within the role. Whatever goes
wrong becomes `ModelUnavailable`.

An error or a garbage reply, never a timeout, is asked once more if that can help
(`ModelUnavailable.again` says when), as much time remains as the first attempt took, and the
request cap leaves room: the first requests of the later stages are set aside, so a retry cannot
starve the gate. This is the only retry there is: providers make none. A reply that was cut off is
asked again with twice the output limit, CAPS at most, under a reservation of its own; where nobody
grants it, it is not asked again.

On the same terms an analyst or a researcher that answered at once, with low confidence, is asked to
look once more (`AgentSettings.second_look`). Its second answer counts if it is good; if not, the
first one counts.

Every request is kept as a `Call`, also when its answer came late or never: a late answer is
recorded and not used. Of a foreign exception only the type is kept: its text may hold a key.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, TypeVar

from agent_config import CAPS, MAX_REQUESTS, AgentSettings
from scoring_rubric import WHOLE, request_hash, second_look, shortened, visible

from ..contracts import (
    SIDES,
    AgentReport,
    CallBound,
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
from . import replies

REASONS: Final = frozenset(
    ("timeout", "error", "garbage", "refused", "budget", "deadline", "wrong_symbol", "miss")
) | {"blocked"}
"""The words of `ModelUnavailable.reason`; any other is recorded as error."""

CUT_OFF: Final = "length"
"""Detail of a reply that ended at its output limit."""

REQUESTS_PER_AGENT: Final = 2
"""Requests of one agent in one stage: the first, and one retry or second look."""

LOOK_AGAIN: Final = frozenset(("analyst", "researcher"))
"""Kinds of agents whose reports may get a second look."""

DETAIL_KEPT: Final = 200
"""Characters kept of a failure's detail."""

MOST_TOKENS: Final = 10**9
"""A vendor that reports more tokens than this for one call is wrong; the number is cut here."""

NO_ANSWER: Final = Completion("", "")
T = TypeVar("T")


@dataclass(slots=True)
class Stage:
    """A stretch of a debate: until when its answers count, in monotonic seconds.

    `kept` are the first reports of the agents that took a second look.
    """

    name: str
    round: int
    until: float
    closed: bool = False
    kept: dict[str, AgentReport] = field(default_factory=dict)


@dataclass(eq=False)
class Call:
    """One request and what became of it; times are monotonic seconds.

    `status` is ok, late, or a `ModelUnavailable` reason. `look`: it is a second look. `paid_usd` is
    its cost in the ledger, None where it has none, `stored_round` the round of its row where that
    is another than was asked. Texts carry the placeholder {NONCE} where the fence's random text
    was; they are written when they are first read, and "" where they cannot be.
    """

    request: Request
    stage: str
    started: float
    look: bool = False
    status: str = "timeout"
    detail: str = ""
    ended: float | None = None
    completion: Completion | None = None
    future: Future[Completion] | None = field(default=None, repr=False)
    paid_usd: float | None = None
    stored_round: int = 0

    def recorded(self, now: float) -> Call:
        """Return the call as it is known at `now`, for good."""
        completion = self.completion or _late(self.future)
        late = self.status == "timeout" and completion is not None
        return replace(
            self,
            status="late" if late else self.status,
            detail=_storable(self.detail, self.request.nonce),
            ended=now if self.ended is None else self.ended,
            completion=completion,
            future=None,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the call as JSON values."""
        return {name: getattr(self, name) for name in CALL_FIELDS}

    @property
    def role_id(self) -> str:
        """Who asked."""
        return self.request.role.id

    @property
    def round(self) -> int:
        """The round of its stage, from 1."""
        return self.stored_round or self.request.round

    @property
    def attempt(self) -> int:
        """1, or 2 for a retry or a second look."""
        return self.request.attempt

    @property
    def answer(self) -> Completion:
        """The completion, or an empty one."""
        return self.completion or NO_ANSWER

    @property
    def model(self) -> str:
        """The model that answered, or that was asked."""
        return short(self.completion.model) if self.completion else self.request.model

    @property
    def provider(self) -> str:
        """Who answered, "" for nobody."""
        return short(self.answer.provider)

    @cached_property
    def system(self) -> str:
        """The system text."""
        return _written(lambda: without_nonce(self.request.system, self.request.nonce))

    @cached_property
    def user(self) -> str:
        """The user text."""
        return _written(lambda: without_nonce(self.request.user, self.request.nonce))

    @cached_property
    def reply(self) -> str:
        """The text of the answer, as much of it as is read."""
        return _written(lambda: _storable(self.answer.text, self.request.nonce))

    @cached_property
    def request_hash(self) -> str:
        """The identity of the request (scoring_rubric.request_hash)."""
        return _written(lambda: request_hash(self.request))

    @property
    def input_tokens(self) -> int:
        """All input, cached too."""
        return _count(self.answer.input_tokens)

    @property
    def output_tokens(self) -> int:
        """All that is billed as output."""
        return _count(self.answer.output_tokens)

    @property
    def cached_tokens(self) -> int:
        """The part of the input that a cache supplied."""
        return _count(self.answer.cached_tokens)

    @property
    def cost_usd(self) -> float:
        """The cost in the ledger, else what the provider says, in USD."""
        cost = self.answer.cost_usd if self.paid_usd is None else self.paid_usd
        real = isinstance(cost, int | float) and not isinstance(cost, bool) and math.isfinite(cost)
        return max(0.0, float(cost)) if real else 0.0

    @property
    def stop_reason(self) -> str:
        """How the answer ended, "" without one."""
        return short(self.completion.stop_reason) if self.completion else ""

    @property
    def elapsed_ms(self) -> float:
        """From sending to the answer, or to the end of the debate."""
        return round(((self.ended or self.started) - self.started) * 1000, 3)


CALL_FIELDS: Final = (
    *("role_id", "stage", "round", "attempt", "status", "model", "provider", "system", "user"),
    *("reply", "input_tokens", "output_tokens", "cost_usd", "elapsed_ms", "request_hash"),
    *("detail", "stop_reason", "cached_tokens"),
)
"""The columns of a call in records."""


@dataclass(slots=True)
class ModelCalls:
    """The calls of one debate, and the terms of asking.

    `planned` is the number of requests that the desk makes when nothing goes wrong; what the cap
    leaves above it serves retries and second looks. `deadline` is the debate's, by `monotonic`.
    `synchronous`: the desk's own agents ask on the caller's thread, `submit` answers at once and
    reads no prose, so no prompt is written before somebody reads it.
    """

    submit: Submit
    monotonic: Callable[[], float]
    settings: AgentSettings
    planned: int
    deadline: float = -math.inf
    reserve: Reserve | None = None
    synchronous: bool = False
    calls: list[Call] = field(default_factory=list)
    shortened: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, request: Request, stage: Stage, *, look: bool = False) -> Call:
        """Enter a request into the log.

        Raises ModelUnavailable: "budget" above the cap, "deadline" when the stage is over.
        """
        with self.lock:
            if stage.closed:
                raise ModelUnavailable("deadline", "no time is left")
            repeats = sum(call.attempt > 1 for call in self.calls)
            spent = request.attempt > 1 and repeats >= MAX_REQUESTS - self.planned
            if len(self.calls) >= MAX_REQUESTS or spent:
                raise ModelUnavailable("budget", f"more than {MAX_REQUESTS} requests a tick")
            call = Call(request, stage.name, self.monotonic(), look)
            self.calls.append(call)
            return call

    def settle(self, call: Call, stage: Stage, status: str, detail: str) -> None:
        """Note how a call ended; after the end of its stage it was in vain, whatever it brought."""
        with self.lock:
            call.status = "timeout" if stage.closed else status
            call.detail = detail[:DETAIL_KEPT]
            call.ended = self.monotonic()

    def close(self, stage: Stage, unheard: Collection[str]) -> dict[str, AgentReport]:
        """End a stage; `unheard` are the roles that were left behind.

        Returns the first reports of roles that were left in a second look: these count. Every other
        call of an unheard role is a timeout, or late when its answer comes. Nothing changes it.
        """
        with self.lock:
            stage.closed = True
            kept = {name: stage.kept[name] for name in unheard if name in stage.kept}
            open_calls: dict[str, Call] = {}
            for call in self.calls if unheard else ():
                here = (call.stage, call.round) == (stage.name, stage.round)
                if here and call.role_id in unheard and (call.look or call.role_id not in kept):
                    open_calls[call.role_id] = call
                    call.status = "timeout" if call.status == "ok" else call.status
            for call in open_calls.values():
                call.status = "timeout"
            return kept

    def flags(self) -> tuple[str, ...]:
        """Return what became of every second look, and whose prompt was cut short."""
        with self.lock:
            cut = {f"shortened:{name}" for name in self.shortened}
            words = {True: "second_look", False: "first_look_stands"}
            looks = {f"{words[c.status == 'ok']}:{c.role_id}" for c in self.calls if c.look}
        return tuple(sorted(looks | cut))

    def records(self) -> tuple[Call, ...]:
        """Return what is known of every request by now, in a stable order."""
        with self.lock:
            calls = list(self.calls)
        now, stages = self.monotonic(), list(dict.fromkeys(call.stage for call in calls))
        calls.sort(key=lambda c: (stages.index(c.stage), c.round, c.role_id, c.attempt))
        return tuple(call.recorded(now) for call in calls)


class Conversation:
    """One agent's questions in one stage; called with a prompt, it returns a checked report.

    `report` is the last one, within its role.
    """

    def __init__(self, calls: ModelCalls, role: Role, context: DebateContext, stage: Stage) -> None:
        self._calls = calls
        self._role = role
        self._context = context
        self._stage = stage
        self._attempts = 0
        self._prompt_bytes, self._output_tokens = calls.settings.caps(role.id, role.tier)
        self.report: AgentReport | None = None
        self._final = False
        # A provider that reads no prose is sent none, but for the scorer of a host.
        self._unread = calls.synchronous and role.kind != "scorer"

    def __call__(self, prompt: Prompt) -> AgentReport:
        """Ask, once more after a failure that may pass, or for a second look at a weak answer."""
        now, started = self._calls.monotonic, self._calls.monotonic()
        try:
            report = self.once(prompt, self._report)
        except ModelUnavailable as first:
            left, wait = self._stage.until - now(), first.again
            if wait is None or left <= now() - started + wait:
                raise
            if first.detail.startswith(CUT_OFF) and not self._enlarged():
                raise
            try:
                report = self.once(prompt, self._report, delay=wait)
            except ModelUnavailable as second:
                raise first if second.reason == "budget" else second from None
        if not self._doubtful(report) or self._stage.until - now() < now() - started:
            return report
        with self._calls.lock:
            if not self._stage.closed:  # until the stage is over: it counts if nothing else does
                self._stage.kept[self._role.id] = report
        try:
            return self.once(second_look(prompt, report), self._report, look=True)
        except ModelUnavailable:
            return report

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
        call = self._calls.open(request, self._stage, look=look)
        try:
            call.completion = completion = self._completion(call)
            self._final = completion.final
            result = parse(self._reply(completion, request), prompt)
        except ModelUnavailable as error:
            way = short(call.completion.detail) if call.completion else ""
            detail = "; ".join(filter(None, (error.detail, way)))
            self._calls.settle(call, self._stage, reason_of(error), detail)
            raise
        self._calls.settle(call, self._stage, "ok", short(completion.detail))
        return result

    def _report(self, reply: Mapping[str, Any], prompt: Prompt) -> AgentReport:
        context = self._context
        report = replies.read(prompt.shape, reply, self._role, context.features)
        if report.rebuttals and not any(r.agent_id in SIDES for r in context.reports):
            report = replace(report, rebuttals=())  # nobody has argued yet
        self.report = report
        return report

    def _enlarged(self) -> bool:
        """Double the output limit of the next request; False where no more is granted."""
        calls, tokens = self._calls, min(2 * self._output_tokens, CAPS["output_tokens"][1])
        if tokens <= self._output_tokens:
            return False
        bound = replace(
            bound_of(calls.settings, self._role, self._stage.round),
            output_tokens=tokens,
            requests=1,
            attempt=self._attempts + 1,
        )
        try:
            granted = calls.reserve is None or calls.reserve(self._stage.name, (bound,)) is True
        except Exception:  # noqa: BLE001 - a ledger that cannot be written grants nothing
            return False
        self._output_tokens = tokens
        return granted

    def _doubtful(self, report: AgentReport) -> bool:
        """Tell whether a report is to be looked at once more, time and room aside."""
        return (
            self._calls.settings.looks_again()
            and self._role.kind in LOOK_AGAIN
            and report.confidence == "low"
            and not report.abstained
            and not self._final
        )

    def _fitting(self, prompt: Prompt) -> Prompt:
        """Return the prompt, or as much of it as may be sent."""
        if not isinstance(prompt, Prompt):
            raise ModelUnavailable("refused", f"{type(prompt).__name__} is no prompt")
        most = self._prompt_bytes
        if self._unread or _size(prompt) <= most:
            return prompt
        prompt = shortened(prompt, most)
        if _size(prompt) > most:
            raise ModelUnavailable("refused", f"a prompt of more than {most} bytes")
        with self._calls.lock:
            self._calls.shortened.add(self._role.id)
        return prompt

    def _request(self, prompt: Prompt, delay: float) -> Request:
        if self._over():
            raise ModelUnavailable("deadline", "no time is left")
        if self._attempts >= REQUESTS_PER_AGENT:
            raise ModelUnavailable("budget", f"more than {REQUESTS_PER_AGENT} requests an agent")
        self._attempts += 1
        calls, context, role, until = self._calls, self._context, self._role, self._stage.until
        features, whole = context.features, WHOLE.get(prompt.shape, ())
        return Request(
            role=role,
            round=self._stage.round,
            attempt=self._attempts,
            symbol=context.symbol,
            timeframe=context.timeframe,
            bar_time=context.bar_time,
            model=calls.settings.model(role.id, role.tier),
            prompt=prompt,
            schema=replies.schema(prompt.shape),
            features={name: features[name] for name in prompt.evidence if name in features},
            reports=tuple(
                visible(report, context, prose=not self._unread, whole=report.agent_id in whole)
                for report in context.reports
            ),
            scores=context.scores,
            max_output_tokens=self._output_tokens,
            limit_s=until - calls.monotonic(),
            nonce=context.nonce,
            picture=context.picture if role.picture else None,
            delay_s=delay,
            linger_s=max(0.0, calls.deadline - until),
        )

    def _completion(self, call: Call) -> Completion:
        try:
            call.future = self._calls.submit(call.request)
            left = max(0.0, self._stage.until - self._calls.monotonic())
            completion = call.future.result(timeout=left)
        except ModelUnavailable:
            raise
        except TimeoutError:
            raise ModelUnavailable("timeout") from None
        except BaseException as error:
            if self._calls.synchronous and isinstance(error, KeyboardInterrupt):
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
        return self._stage.closed or self._calls.monotonic() >= self._stage.until


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


def reason_of(error: ModelUnavailable) -> str:
    """Return the reason of a failure as one of the known words."""
    return error.reason if error.reason in REASONS else "error"


def short(value: object) -> str:
    """Return the beginning of a text as any file can hold it, "" for what is none."""
    return _storable(value, "")[:DETAIL_KEPT]


def _written(write: Callable[[], str]) -> str:
    """Return a text of a record, "" for one that cannot be written: the debate is over."""
    try:
        return write()
    except Exception:  # noqa: BLE001 - what a prompt or a reply is made of may be anything
        return ""


def _size(prompt: Prompt) -> int:
    texts = (prompt.system, prompt.user)
    return sum(len(text.encode("utf-8", "backslashreplace")) for text in texts)


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
    text = text[:MAX_REPLY_CHARS]
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return without_nonce(text, nonce)


def _count(value: object) -> int:
    return min(value, MOST_TOKENS) if type(value) is int and value >= 0 else 0

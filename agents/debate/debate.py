"""The state of one debate: asking agents at once, one conversation each, and keeping the reports.

A stage has a share of the time that remains, asks leave to spend once, runs its agents at once and
leaves every one of them with a report or a failure, whatever they do. After each stage the reports
so far are a valid basis for a result. Nothing raises.

A `Conversation` is what an agent is handed as `ask`. It turns a prompt into a request, waits for
the answer no longer than its stage lasts, and reads it strictly into a report within the role.
Whatever goes wrong becomes `ModelUnavailable`. Of a foreign exception only the type is kept: its
text may hold a key.

An error or a garbage reply, never a timeout, is asked once more if that can help
(`ModelUnavailable.again` says when), as much time remains as the first attempt took, and the
request cap leaves room: the first requests of the later stages are set aside, so a retry cannot
starve the gate. This is the only retry there is: providers make none. A reply that was cut off is
asked again with twice the output limit, CAPS at most, under a reservation of its own; where nobody
grants it, it is not asked again.

On the same terms an analyst or a researcher that answered at once, with low confidence, is asked to
look once more (`AgentSettings.second_look`). Its second answer counts if it is good; if not, the
first one counts.

A call that hangs cannot be cancelled, and a thread that waits for it cannot be killed. So each
agent has a daemon thread: it never blocks the end of the process, and when the stage is over
the desk goes on without it. Threads left behind are counted until they finish; while there are more
than MAX_ABANDONED, no further agent is asked. Where the desk is `synchronous` its agents neither
hang nor wait: they run one after the other on the caller's thread.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from agent_config import CAPS, FALLBACK_SHARE, MAX_REQUESTS, AgentSettings, StagePlan
from scoring_rubric import WHOLE, second_look, shortened, visible

from ..contracts import (
    OPINIONS,
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
from ..registry import Agent
from ..texts.door import about, answered
from ..texts.fence import has_nonce
from . import replies
from .deliberation import DETAIL_KEPT, Call, records, short
from .scoring import CountedReport

OnEvent = Callable[[str, dict[str, Any]], None]

MAX_ABANDONED: Final = 32
"""Threads left behind, in the whole process, above which no agent is asked: four ticks of eight."""

GRACE_SECONDS: Final = 0.05
"""How long past the end of a stage its threads may take to notice it."""

SUMMARY_CHARS: Final = 600
"""Characters of an agent's words that a listener gets."""

NONCE_CHARS: Final = 16
"""Hexadecimal characters of the nonce of one call: 64 bits, made of the tick's own."""

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

T = TypeVar("T")
_left_behind: set[Future[Any]] = set()


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


@dataclass(slots=True)
class DebateState:
    """What a debate knows while it lasts. Times are monotonic seconds.

    `planned` is the number of requests that the desk makes when nothing goes wrong; what the cap
    leaves above it serves retries and second looks. `own` seats are the registry's: their reports
    are within their roles as they are asked for. `synchronous`: they ask on the caller's thread,
    `submit` answers at once and reads no prose, so no prompt is written before somebody reads it.
    `degraded` says how many analysts gave a report where that was too few, "" where it was not.
    """

    desk: tuple[Agent, ...]
    settings: AgentSettings
    submit: Submit
    monotonic: Callable[[], float]
    deadline: float
    began: float
    planned: int = 1
    reserve: Reserve | None = None
    on_event: OnEvent | None = None
    own: bool = False
    synchronous: bool = False
    keep_for_fallback: bool = False
    answers: dict[str, CountedReport] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    earlier: list[AgentReport] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    unasked: dict[str, str] = field(default_factory=dict)
    degraded: str = ""
    shortened: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def seats(self, *kinds: str) -> tuple[Agent, ...]:
        """Return the agents of some kinds, in asking order."""
        return tuple(seat for seat in self.desk if seat.role.kind in kinds)

    def reported(self, *kinds: str) -> list[CountedReport]:
        """Return the reports of some kinds, abstentions too, in one order whatever the desk's."""
        answers = [answer for answer in self.answers.values() if answer.role.kind in kinds]
        return sorted(answers, key=lambda answer: answer.role.id)

    def opinions(self, *kinds: str) -> list[CountedReport]:
        """Return those reports that do not abstain."""
        return [answer for answer in self.reported(*kinds) if not answer.report.abstained]

    def report_of(self, *kinds: str) -> AgentReport | None:
        """Return the report of the one seat of some kinds, None without any."""
        answers = self.reported(*kinds)
        return answers[0].report if answers else None

    def failed(self, *kinds: str) -> tuple[str, ...]:
        """Return the ids of the agents of some kinds that were asked in vain, as they failed."""
        names = {seat.role.id for seat in self.seats(*kinds)}
        return tuple(name for name in self.failures if name in names)

    def ask(self, plan: StagePlan, number: int, contexts: Mapping[str, DebateContext]) -> None:
        """Ask the named agents at once and keep what they say; return when the stage is over."""
        if not contexts:
            return
        started, kept = self.monotonic(), 0.0
        if self.keep_for_fallback and not self.opinions(*OPINIONS):
            kept = FALLBACK_SHARE * max(0.0, self.deadline - self.began)
        until = started + plan.share_of(number) * (self.deadline - started)
        stage = Stage(plan.name, number, min(until, self.deadline - kept))
        seats = {seat.role.id: seat for seat in self.desk if seat.role.id in contexts}
        refused = self.refusal(stage, seats)
        outcome: dict[str, AgentReport | str] = dict.fromkeys(seats, refused or "timeout")
        if not refused:
            self._run(seats, contexts, stage, outcome)
        words: dict[str, str] = {}
        for name, result in outcome.items():
            self._keep(seats[name].role, result, stage)
            if isinstance(result, str):
                words[name] = result
            else:
                words[name] = "abstained" if result.abstained else "answered"
        good = sum(isinstance(result, AgentReport) for result in outcome.values())
        status = "ok" if good == len(outcome) else "partial" if good else "failed"
        self.note(stage, started, status, words)

    def leave_out(self, name: str, role_ids: Iterable[str], reason: str) -> None:
        """Ask nobody in a stage, for a reason that is no failure; the record says which."""
        words = dict.fromkeys(role_ids, reason)
        self.unasked |= words
        self.skip(name, words)

    def skip(self, name: str, words: Mapping[str, str]) -> None:
        """Enter a stage into the record in which nobody was to be asked, with the reasons."""
        if words:
            now = self.monotonic()
            self.note(Stage(name, 1, now), now, "skipped", words)

    def note(self, stage: Stage, started: float, status: str, agents: Mapping[str, str]) -> None:
        """Enter a stage into the record."""
        took = round((self.monotonic() - started) * 1000, 3)
        row = {"name": stage.name, "round": stage.round, "agents": dict(agents)}
        self.stages.append({**row, "ms": took, "status": status})

    def tell(self, kind: str, **payload: Any) -> None:
        """Send an event to the listener; a listener that fails is flagged and otherwise ignored."""
        if self.on_event is None:
            return
        try:
            self.on_event(kind, payload)
        except Exception:  # noqa: BLE001 - a listener must not break a tick
            self.flags.append("event_failed")

    def call_flags(self) -> tuple[str, ...]:
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
        return records(calls, self.monotonic())

    def refusal(self, stage: Stage, seats: Mapping[str, Agent]) -> str:
        """Return why a stage makes no call, "" when it may: no time, or no leave to spend."""
        if self.monotonic() >= stage.until:
            return "deadline"
        if self.reserve is None:
            return ""
        bounds = (bound_of(self.settings, seat.role, stage.round) for seat in seats.values())
        try:
            granted = self.reserve(stage.name, tuple(bounds))
        except ModelUnavailable as error:
            return reason_of(error)
        except Exception:  # noqa: BLE001 - a ledger that cannot be written grants nothing
            self.flags.append(f"reserve_failed:{stage.name}")
            return "budget"
        return "" if granted is True else "budget"

    def _run(
        self,
        seats: Mapping[str, Agent],
        contexts: Mapping[str, DebateContext],
        stage: Stage,
        outcome: dict[str, AgentReport | str],
    ) -> None:
        """Run the agents of a stage and enter what they say into the outcome."""
        started = self.monotonic()

        def finished(name: str, result: AgentReport | str) -> None:
            outcome[name] = result
            self._tell_outcome(name, result, stage, started)

        jobs: dict[str, Callable[[], AgentReport | str]] = {}
        for name, seat in seats.items():
            context = with_call_nonce(contexts[name], name, stage)
            jobs[name] = partial(self._analyzed, seat, context, stage)
            self.tell("agent_start", agent=name, stage=stage.name, round=stage.round)
        run = run_serial if self.synchronous else run_parallel
        unfinished = run(jobs, stage.until, self.monotonic, finished)
        outcome |= self._close(stage, unfinished)
        for name in unfinished:
            self._tell_outcome(name, outcome[name], stage, started)

    def _analyzed(self, seat: Agent, context: DebateContext, stage: Stage) -> AgentReport | str:
        """Return the report of one agent within its role, or why there is none."""
        ask = Conversation(self, seat.role, context, stage)
        try:
            report = seat.analyze(context, ask)
        except ModelUnavailable as error:
            return reason_of(error)
        except Exception:  # noqa: BLE001 - an agent costs only itself
            return "error"
        if self.own and report is ask.report and report:
            return report
        try:
            return replies.enforce_role(report, seat.role, context.features)
        except Exception:  # noqa: BLE001 - a handed-in agent may return anything
            return "garbage"

    def _close(self, stage: Stage, unheard: Collection[str]) -> dict[str, AgentReport]:
        """End a stage; `unheard` are the roles that were left behind.

        Returns the first reports of roles that were left in a second look: these count. Every other
        call of an unheard role is a timeout, or late when its answer comes. Nothing changes it.
        """
        with self.lock:
            stage.closed = True
            kept = {name: stage.kept[name] for name in unheard if name in stage.kept}
            last: dict[str, Call] = {}
            for call in self.calls if unheard else ():
                here = (call.stage, call.round) == (stage.name, stage.round)
                if here and call.role_id in unheard and (call.look or call.role_id not in kept):
                    last[call.role_id] = call
                    call.status = "timeout" if call.status == "ok" else call.status
            for call in last.values():
                call.status = "timeout"
            return kept

    def _keep(self, role: Role, result: AgentReport | str, stage: Stage) -> None:
        """Keep a report or a failure; of several rounds the last that brought a report counts."""
        former = self.answers.get(role.id)
        silent = isinstance(result, str) or (
            result.abstained and former and not former.report.abstained
        )
        if former is not None and silent:
            self.flags.append(f"round_{stage.round}_without:{role.id}")
        elif isinstance(result, str):
            self.failures[role.id] = result
        else:
            if former is not None:
                self.earlier.append(former.report)
            self.failures.pop(role.id, None)
            self.answers[role.id] = CountedReport(role, result)

    def _tell_outcome(
        self, role_id: str, result: AgentReport | str, stage: Stage, started: float
    ) -> None:
        """Send what became of an agent to the listener: its report, or why there is none."""
        if self.on_event is None:
            return
        where = {"agent": role_id, "stage": stage.name, "round": stage.round}
        ms = round((self.monotonic() - started) * 1000, 3)
        if isinstance(result, str):
            self.tell("agent_error", **where, reason=result, ms=ms)
            return
        self.tell(
            "agent_complete",
            **where,
            summary=summary(result),
            abstained=result.abstained,
            confidence=result.confidence,
            adjustments=dict(result.adjustments),
            evidence=[cited._asdict() for cited in result.evidence],
            ms=ms,
        )


@dataclass(slots=True)
class Conversation:
    """One agent's questions in one stage; called with a prompt, it returns a checked report.

    `report` is the last one, within its role.
    """

    debate: DebateState
    role: Role
    context: DebateContext
    stage: Stage
    report: AgentReport | None = None
    _attempts: int = 0
    _final: bool = False
    _prompt_bytes: int = field(init=False)
    _output_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        caps = self.debate.settings.caps(self.role.id, self.role.tier)
        self._prompt_bytes, self._output_tokens = caps

    def __call__(self, prompt: Prompt) -> AgentReport:
        """Ask, once more after a failure that may pass, or for a second look at a weak answer."""
        now, started = self.debate.monotonic, self.debate.monotonic()
        try:
            report = self.once(prompt, self._report)
        except ModelUnavailable as first:
            left, wait = self.stage.until - now(), first.again
            if wait is None or left <= now() - started + wait:
                raise
            if first.detail.startswith(CUT_OFF) and not self._enlarged():
                raise
            try:
                report = self.once(prompt, self._report, delay=wait)
            except ModelUnavailable as second:
                raise first if second.reason == "budget" else second from None
        if not self._doubtful(report) or self.stage.until - now() < now() - started:
            return report
        with self.debate.lock:
            if not self.stage.closed:  # until the stage is over: it counts if nothing else does
                self.stage.kept[self.role.id] = report
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
        call = self._open(self._request(prompt, delay), look=look)
        request, status, detail = call.request, "error", ""
        try:
            completion = self._completion(call)
            if completion.reply is not None and completion.stop_reason == "end":
                reply = about(completion.reply, request.symbol)
            else:
                reply = answered(completion, request, request.symbol)
            result = parse(reply, prompt)
            status = "ok"
        except ModelUnavailable as error:
            status, detail = reason_of(error), error.detail
            raise
        finally:
            way = short(call.answer.detail)
            with self.debate.lock:
                # after the end of its stage it was in vain, whatever it brought
                call.status = "timeout" if self.stage.closed else status
                call.detail = "; ".join(filter(None, (detail, way)))[:DETAIL_KEPT]
                call.ended = self.debate.monotonic()
        return result

    def _report(self, reply: Mapping[str, Any], prompt: Prompt) -> AgentReport:
        context = self.context
        report = replies.read(prompt.shape, reply, self.role, context.features)
        if report.rebuttals and not any(r.agent_id in SIDES for r in context.reports):
            report = replace(report, rebuttals=())  # nobody has argued yet
        self.report = report
        return report

    def _enlarged(self) -> bool:
        """Double the output limit of the next request; False where no more is granted."""
        debate, tokens = self.debate, min(2 * self._output_tokens, CAPS["output_tokens"][1])
        if tokens <= self._output_tokens:
            return False
        bound = replace(
            bound_of(debate.settings, self.role, self.stage.round),
            output_tokens=tokens,
            requests=1,
            attempt=self._attempts + 1,
        )
        try:
            granted = debate.reserve is None or debate.reserve(self.stage.name, (bound,)) is True
        except Exception:  # noqa: BLE001 - a ledger that cannot be written grants nothing
            return False
        self._output_tokens = tokens
        return granted

    def _doubtful(self, report: AgentReport) -> bool:
        """Tell whether a report is to be looked at once more, time and room aside."""
        return (
            report.confidence == "low"
            and not report.abstained
            and not self._final
            and self.role.kind in LOOK_AGAIN
            and self.debate.settings.looks_again()
        )

    def _fitting(self, prompt: Prompt) -> Prompt:
        """Return the prompt, or as much of it as may be sent."""
        if not isinstance(prompt, Prompt):
            raise ModelUnavailable("refused", f"{type(prompt).__name__} is no prompt")
        most = self._prompt_bytes
        if self.debate.synchronous or _size(prompt) <= most:
            return prompt
        prompt = shortened(prompt, most)
        if _size(prompt) > most:
            raise ModelUnavailable("refused", f"a prompt of more than {most} bytes")
        with self.debate.lock:
            self.debate.shortened.add(self.role.id)
        return prompt

    def _request(self, prompt: Prompt, delay: float) -> Request:
        if self._over():
            raise ModelUnavailable("deadline", "no time is left")
        if self._attempts >= REQUESTS_PER_AGENT:
            raise ModelUnavailable("budget", f"more than {REQUESTS_PER_AGENT} requests an agent")
        self._attempts += 1
        debate, context, role, until = self.debate, self.context, self.role, self.stage.until
        features, whole = context.features, WHOLE.get(prompt.shape, ())
        prose = not debate.synchronous  # who reads none is sent none
        return Request(
            role=role,
            round=self.stage.round,
            attempt=self._attempts,
            symbol=context.symbol,
            timeframe=context.timeframe,
            bar_time=context.bar_time,
            model=debate.settings.model(role.id, role.tier),
            prompt=prompt,
            schema=replies.schema(prompt.shape),
            features={name: features[name] for name in prompt.evidence if name in features},
            reports=tuple(
                visible(report, context, prose=prose, whole=report.agent_id in whole)
                for report in context.reports
            ),
            scores=context.scores,
            max_output_tokens=self._output_tokens,
            limit_s=until - debate.monotonic(),
            nonce=context.nonce,
            picture=context.picture if role.picture else None,
            delay_s=delay,
            linger_s=max(0.0, debate.deadline - until),
        )

    def _open(self, request: Request, *, look: bool) -> Call:
        """Enter a request into the log.

        Raises ModelUnavailable: "budget" above the cap, "deadline" when the stage is over.
        """
        debate = self.debate
        with debate.lock:
            if self.stage.closed:
                raise ModelUnavailable("deadline", "no time is left")
            repeats = sum(call.request.attempt > 1 for call in debate.calls)
            spent = request.attempt > 1 and repeats >= MAX_REQUESTS - debate.planned
            if len(debate.calls) >= MAX_REQUESTS or spent:
                raise ModelUnavailable("budget", f"more than {MAX_REQUESTS} requests a tick")
            call = Call(request, self.stage.name, debate.monotonic(), look)
            debate.calls.append(call)
            return call

    def _completion(self, call: Call) -> Completion:
        try:
            call.future = self.debate.submit(call.request)
            left = max(0.0, self.stage.until - self.debate.monotonic())
            completion = call.future.result(timeout=left)
        except ModelUnavailable:
            raise
        except TimeoutError:
            raise ModelUnavailable("timeout") from None
        except BaseException as error:
            if self.debate.synchronous and isinstance(error, KeyboardInterrupt):
                raise  # the user's, on the caller's thread; else any exception is a failed agent
            raise ModelUnavailable("error", type(error).__name__) from None
        if not isinstance(completion, Completion):
            raise ModelUnavailable("error", f"{type(completion).__name__} is no completion")
        call.completion = completion
        self._final = completion.final
        if self._over():
            raise ModelUnavailable("timeout", "the answer came late")
        return completion

    def _over(self) -> bool:
        return self.stage.closed or self.debate.monotonic() >= self.stage.until


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


def summary(report: AgentReport) -> str:
    """Return the beginning of what an agent says, or why it says nothing."""
    text = report.reason if report.abstained else report.claim or report.reasoning
    return text if len(text) <= SUMMARY_CHARS else text[: SUMMARY_CHARS - 1] + "…"


def with_call_nonce(context: DebateContext, role_id: str, stage: Stage) -> DebateContext:
    """Return the context with a nonce of this one call, so that no reply can know another's."""
    if not has_nonce(context):
        return context
    text = f"{context.nonce}|{stage.name}|{stage.round}|{role_id}"
    return replace(context, nonce=hashlib.sha256(text.encode()).hexdigest()[:NONCE_CHARS])


def _size(prompt: Prompt) -> int:
    texts = (prompt.system, prompt.user)
    return sum(len(text.encode("utf-8", "backslashreplace")) for text in texts)


# --- threads --------------------------------------------------------------------------------------


def run_parallel(
    jobs: Mapping[str, Callable[[], T | str]],
    until: float,
    monotonic: Callable[[], float],
    finished: Callable[[str, T | str], None],
) -> tuple[str, ...]:
    """Run the jobs at once and report each as it finishes; return when all have or the time is up.

    `until` is a moment of `monotonic`, in seconds. Returns the names of the jobs that were still
    running then: they are left behind and never reported.
    """
    names = {in_thread(job): name for name, job in jobs.items()}
    running = set(names)
    while running:
        left = max(0.0, until + GRACE_SECONDS - monotonic())
        done, running = wait(running, timeout=left, return_when=FIRST_COMPLETED)
        if not done:
            break
        # In the order of the jobs: two that finish at once are recorded alike on every run.
        for future in (future for future in names if future in done):
            finished(names[future], future.result())
    for future in running:
        # Added first: a future that has ended meanwhile calls back at once, and goes again.
        _left_behind.add(future)
        future.add_done_callback(_left_behind.discard)
    return tuple(name for future, name in names.items() if future in running)


def in_thread(job: Callable[[], T | str]) -> Future[T | str]:
    """Start a job on a daemon thread of its own; what it raises is the result "error"."""
    future: Future[T | str] = Future()
    # From here on cancel() fails: a thread that runs cannot be taken back.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = job()
        except BaseException:  # noqa: BLE001 - a thread has nobody else to tell
            result = "error"
        future.set_result(result)

    try:
        threading.Thread(target=run, name="torra-agent", daemon=True).start()
    # The system has no more threads: the agent failed, not the tick.
    except RuntimeError:
        future.set_result("error")
    return future


def run_serial(
    jobs: Mapping[str, Callable[[], T | str]],
    until: float,
    monotonic: Callable[[], float],
    finished: Callable[[str, T | str], None],
) -> tuple[str, ...]:
    """Run the jobs one after the other on this thread, and report each, until the time is up.

    Returns, as `run_parallel`, the names of the jobs that were not finished then; one that finishes
    too late is among them.
    """
    unfinished = dict.fromkeys(jobs)
    for name, job in jobs.items():
        if monotonic() >= until:
            break
        result = job()
        if monotonic() > until + GRACE_SECONDS:
            break
        del unfinished[name]
        finished(name, result)
    return tuple(unfinished)


def abandoned() -> int:
    """Return how many threads that were left behind are still running."""
    return len(_left_behind)


def too_many_abandoned() -> bool:
    """Return whether so many threads were left behind that no agent should be asked."""
    return abandoned() > MAX_ABANDONED

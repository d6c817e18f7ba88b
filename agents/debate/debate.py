"""The state of one debate, and its stages: asking agents at once, and keeping what they say.

A stage has a share of the time that remains, asks leave to spend once, runs its agents at once and
leaves every one of them with a report or a failure, whatever they do. After each stage the reports
so far are a valid basis for a result. Nothing raises.

A call that hangs cannot be cancelled, and a thread that waits for it cannot be killed. So each
agent has a daemon thread: it never blocks the end of the process, and when the stage is over
the desk goes on without it. Threads left behind are counted until they finish; while there are more
than MAX_ABANDONED, no further agent is asked. Where the desk is `synchronous` its agents neither
hang nor wait: they run one after the other on the caller's thread.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from agent_config import FALLBACK_SHARE, StagePlan

from ..contracts import OPINIONS, AgentReport, DebateContext, ModelUnavailable, Role
from ..registry import Agent
from ..texts.fence import has_nonce
from . import replies
from .calls import Conversation, ModelCalls, Stage, bound_of, reason_of
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

T = TypeVar("T")
_left_behind: set[Future[Any]] = set()


@dataclass(slots=True)
class DebateState:
    """What a debate knows while it lasts. Times are monotonic seconds.

    `own` seats are the registry's: their reports are within their roles as they are asked for.
    `degraded` says how many analysts gave a report where that was too few, "" where it was not.
    """

    desk: tuple[Agent, ...]
    calls: ModelCalls
    began: float
    on_event: OnEvent | None = None
    keep_for_fallback: bool = False
    own: bool = False
    answers: dict[str, CountedReport] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    earlier: list[AgentReport] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    not_asked: dict[str, str] = field(default_factory=dict)
    degraded: str = ""

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
        started = self.calls.monotonic()
        stage = Stage(plan.name, number, self._until(plan.share_of(number), started))
        seats = {seat.role.id: seat for seat in self.desk if seat.role.id in contexts}
        refused = self.refusal(stage, tuple(seat.role for seat in seats.values()))
        outcome: dict[str, AgentReport | str] = dict.fromkeys(seats, refused or "timeout")
        if not refused:
            jobs: dict[str, Callable[[], AgentReport | str]] = {}
            for name, seat in seats.items():
                context = with_call_nonce(contexts[name], name, stage)
                jobs[name] = partial(self._analyzed, seat, context, stage)
            self._run(jobs, stage, outcome)
        for name, result in outcome.items():
            self._keep(seats[name].role, result, stage)
        good = sum(isinstance(result, AgentReport) for result in outcome.values())
        status = "ok" if good == len(outcome) else "partial" if good else "failed"
        words = {
            name: result
            if isinstance(result, str)
            else ("abstained" if result.abstained else "answered")
            for name, result in outcome.items()
        }
        self.note(stage, started, status, words)

    def leave_out(self, name: str, number: int, role_ids: Sequence[str], reason: str) -> None:
        """Ask nobody in a stage, for a reason that is no failure; the record says which."""
        if not role_ids:
            return
        now = self.calls.monotonic()
        words = dict.fromkeys(role_ids, reason)
        self.not_asked |= words
        self.note(Stage(name, number, now), now, "skipped", words)

    def refusal(self, stage: Stage, roles: tuple[Role, ...]) -> str:
        """Return why a stage makes no call, "" when it may: no time, or no leave to spend."""
        if self.calls.monotonic() >= stage.until:
            return "deadline"
        if self.calls.reserve is None:
            return ""
        bounds = tuple(bound_of(self.calls.settings, role, stage.round) for role in roles)
        try:
            granted = self.calls.reserve(stage.name, bounds)
        except ModelUnavailable as error:
            return reason_of(error)
        except Exception:  # noqa: BLE001 - a ledger that cannot be written grants nothing
            self.flags.append(f"reserve_failed:{stage.name}")
            return "budget"
        return "" if granted is True else "budget"

    def note(self, stage: Stage, started: float, status: str, agents: Mapping[str, str]) -> None:
        """Enter a stage into the record."""
        took = round((self.calls.monotonic() - started) * 1000, 3)
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

    def tell_outcome(
        self, role_id: str, result: AgentReport | str, stage: Stage, started: float
    ) -> None:
        """Send what became of an agent to the listener: its report, or why there is none."""
        if self.on_event is None:
            return
        where = {"agent": role_id, "stage": stage.name, "round": stage.round}
        ms = round((self.calls.monotonic() - started) * 1000, 3)
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

    def _until(self, share: float, now: float) -> float:
        deadline, kept = self.calls.deadline, 0.0
        if self.keep_for_fallback and not self.opinions(*OPINIONS):
            kept = FALLBACK_SHARE * max(0.0, deadline - self.began)
        return min(now + share * (deadline - now), deadline - kept)

    def _analyzed(self, seat: Agent, context: DebateContext, stage: Stage) -> AgentReport | str:
        """Return the report of one agent within its role, or why there is none."""
        ask = Conversation(self.calls, seat.role, context, stage)
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

    def _run(
        self,
        jobs: Mapping[str, Callable[[], AgentReport | str]],
        stage: Stage,
        outcome: dict[str, AgentReport | str],
    ) -> None:
        started = self.calls.monotonic()

        def finished(name: str, result: AgentReport | str) -> None:
            outcome[name] = result
            self.tell_outcome(name, result, stage, started)

        for name in jobs:
            self.tell("agent_start", agent=name, stage=stage.name, round=stage.round)
        run = run_serial if self.calls.synchronous else run_parallel
        unfinished = run(jobs, stage.until, self.calls.monotonic, finished)
        outcome |= self.calls.close(stage, unfinished)
        for name in unfinished:
            self.tell_outcome(name, outcome[name], stage, started)

    def _keep(self, role: Role, result: AgentReport | str, stage: Stage) -> None:
        """Keep a report or a failure; of several rounds the last that brought a report counts."""
        former = self.answers.get(role.id)
        silent = isinstance(result, str) or result.abstained
        if (
            former is not None
            and silent
            and (isinstance(result, str) or not former.report.abstained)
        ):
            self.flags.append(f"round_{stage.round}_without:{role.id}")
        elif isinstance(result, str):
            self.failures[role.id] = result
        else:
            if former is not None:
                self.earlier.append(former.report)
            self.failures.pop(role.id, None)
            self.answers[role.id] = CountedReport(role, result)


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

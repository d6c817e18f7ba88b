"""One sitting of the desk: asking the agents of a stage, and keeping who said what.

A stage has a share of the time that remains, asks leave to spend once, runs its agents at once and
leaves every one of them with an answer or a failure, whatever they do. After each stage the answers
that were heard are a valid basis for a result. Nothing raises.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from agent_config import FALLBACK_SHARE, StagePlan

from ..contracts import (
    OPINIONS,
    AgentReport,
    DebateContext,
    ModelUnavailable,
    Reserve,
    Role,
)
from ..registry import Agent
from ..texts.fence import has_nonce
from . import replies
from .asking import REASONS, ModelCalls, Stage, bound_of
from .stages import FinishedJob, run_parallel, run_serial
from .synthesis import CountedReport

OnEvent = Callable[[str, dict[str, Any]], None]

UNGIVEN: Final = object()
"""Stands where an agent was given no report."""

SUMMARY_CHARS: Final = 600
"""Characters of an agent's reasoning that whoever listens is told."""

NONCE_CHARS: Final = 16
"""Hexadecimal characters of the nonce of one call: 64 bits, made of the tick's own."""


@dataclass(slots=True)
class DebateState:
    """What a deliberation knows while it lasts. Times are monotonic seconds.

    `degraded` says how many analysts were heard where that was too few, "" where it was not.
    """

    desk: tuple[Agent, ...]
    line: ModelCalls
    began: float
    deadline: float
    reserve: Reserve | None
    on_event: OnEvent | None
    keep_for_fallback: bool
    answers: dict[str, CountedReport] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    earlier: list[AgentReport] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    unasked: dict[str, str] = field(default_factory=dict)
    degraded: str = ""

    def __post_init__(self) -> None:
        self.line.reserve = self.reserve

    def seats(self, *kinds: str) -> tuple[Agent, ...]:
        """Return the agents of some kinds, in asking order."""
        return tuple(seat for seat in self.desk if seat.role.kind in kinds)

    def reported(self, *kinds: str) -> list[CountedReport]:
        """Return the answers of some kinds, abstentions too, in one order whatever the desk's."""
        found = [answer for answer in self.answers.values() if answer.role.kind in kinds]
        return sorted(found, key=lambda answer: answer.role.id)

    def heard(self, *kinds: str) -> list[CountedReport]:
        """Return those of them that did not abstain."""
        return [answer for answer in self.reported(*kinds) if not answer.report.abstained]

    def failed(self, *kinds: str) -> tuple[str, ...]:
        """Return the ids of the agents of some kinds that were asked in vain, as they failed."""
        names = {seat.role.id for seat in self.seats(*kinds)}
        return tuple(name for name in self.failures if name in names)

    def ask(self, plan: StagePlan, number: int, contexts: Mapping[str, DebateContext]) -> None:
        """Ask the named agents at once and keep what they say; return when the stage is over."""
        if not contexts:
            return
        started = self.line.monotonic()
        stage = Stage(plan.name, number, self._until(plan.share_of(number), started))
        contexts = {
            role_id: fenced(context, role_id, stage) for role_id, context in contexts.items()
        }
        seats = {seat.role.id: seat for seat in self.desk if seat.role.id in contexts}
        refused = self.refusal(stage, tuple(seat.role for seat in seats.values()))
        outcome: dict[str, CountedReport | str] = dict.fromkeys(seats, refused or "timeout")
        if not refused:
            self._run(stage, seats, contexts, outcome)
        for role_id, result in outcome.items():
            self._keep(role_id, result, stage)
        self._log(stage, outcome, started)

    def leave_out(self, name: str, number: int, role_ids: Sequence[str], reason: str) -> None:
        """Ask nobody in a stage, for a reason that is no failure; the record says which."""
        if not role_ids:
            return
        now = self.line.monotonic()
        words = dict.fromkeys(role_ids, reason)
        self.unasked |= words
        self.note(Stage(name, number, now), now, "skipped", words)

    def refusal(self, stage: Stage, roles: tuple[Role, ...]) -> str:
        """Return why a stage makes no call, "" when it may: no time, or no leave to spend."""
        if self.line.monotonic() >= stage.until:
            return "deadline"
        if self.reserve is None:
            return ""
        bounds = tuple(bound_of(self.line.settings, role, stage.round) for role in roles)
        try:
            granted = self.reserve(stage.name, bounds)
        except ModelUnavailable as error:
            return failure(error)
        except Exception:  # noqa: BLE001 - a ledger that cannot be written grants nothing
            self.flags.append(f"reserve_failed:{stage.name}")
            return "budget"
        return "" if granted is True else "budget"

    def note(self, stage: Stage, started: float, status: str, agents: Mapping[str, str]) -> None:
        """Enter a stage into the record."""
        took = round((self.line.monotonic() - started) * 1000, 3)
        self.stages.append(
            {
                "name": stage.name,
                "round": stage.round,
                "agents": dict(agents),
                "ms": took,
                "status": status,
            }
        )

    def tell(self, kind: str, **payload: Any) -> None:
        """Tell whoever listens; a listener that fails is flagged and otherwise ignored."""
        if self.on_event is None:
            return
        try:
            self.on_event(kind, payload)
        except Exception:  # noqa: BLE001 - whoever listens must not break a tick
            self.flags.append("event_failed")

    def tell_outcome(
        self, role_id: str, result: CountedReport | str, stage: Stage, started: float
    ) -> None:
        """Tell whoever listens what became of an agent: its answer, or why there is none."""
        if self.on_event is None:
            return
        where = {"agent": role_id, "stage": stage.name, "round": stage.round}
        ms = round((self.line.monotonic() - started) * 1000, 3)
        if isinstance(result, str):
            self.tell("agent_error", **where, reason=result, ms=ms)
            return
        report = result.report
        self.tell(
            "agent_complete",
            **where,
            summary=summary(report),
            abstained=report.abstained,
            confidence=report.confidence,
            adjustments=dict(report.adjustments),
            evidence=[{"id": item.id, "value": item.value} for item in report.evidence],
            ms=ms,
        )

    def _until(self, share: float, now: float) -> float:
        kept = 0.0
        if self.keep_for_fallback and not self.heard(*OPINIONS):
            kept = FALLBACK_SHARE * max(0.0, self.deadline - self.began)
        return min(now + share * (self.deadline - now), self.deadline - kept)

    def _run(
        self,
        stage: Stage,
        seats: Mapping[str, Agent],
        contexts: Mapping[str, DebateContext],
        outcome: dict[str, CountedReport | str],
    ) -> None:
        started = self.line.monotonic()

        def finished(role_id: str, ended: FinishedJob[AgentReport]) -> None:
            role = seats[role_id].role
            try:
                report = result_of(ended)
                if report is not self.line.given.get(role_id, UNGIVEN):
                    report = replies.enforce_role(report, role, contexts[role_id].features)
                outcome[role_id] = CountedReport(role, report)
            except ModelUnavailable as error:
                outcome[role_id] = failure(error)
            except Exception:  # noqa: BLE001 - a handed-in agent may return anything
                outcome[role_id] = "garbage"
            self.tell_outcome(role_id, outcome[role_id], stage, started)

        for role_id in seats:
            self.tell("agent_start", agent=role_id, stage=stage.name, round=stage.round)
        jobs: dict[str, Callable[[], AgentReport]] = {
            role_id: partial(
                seat.analyze,
                contexts[role_id],
                self.line.ask(seat.role, contexts[role_id], stage),
            )
            for role_id, seat in seats.items()
        }
        run = run_serial if self.line.inline else run_parallel
        unfinished = run(jobs, stage.until, self.line.monotonic, finished)
        standing = self.line.close(stage, unfinished)
        for role_id in unfinished:
            if role_id in standing:
                outcome[role_id] = CountedReport(seats[role_id].role, standing[role_id])
            self.tell_outcome(role_id, outcome[role_id], stage, started)

    def _keep(self, role_id: str, result: CountedReport | str, stage: Stage) -> None:
        """Keep an answer or a failure; of several rounds the last answered one counts."""
        former = self.answers.get(role_id)
        abstained = isinstance(result, CountedReport) and result.report.abstained
        if former is not None and (
            isinstance(result, str) or (abstained and not former.report.abstained)
        ):
            self.flags.append(f"round_{stage.round}_without:{role_id}")
        elif isinstance(result, str):
            self.failures[role_id] = result
        else:
            if former is not None:
                self.earlier.append(former.report)
            self.failures.pop(role_id, None)
            self.answers[role_id] = result

    def _log(
        self, stage: Stage, outcome: Mapping[str, CountedReport | str], started: float
    ) -> None:
        words = {
            role_id: result
            if isinstance(result, str)
            else ("abstained" if result.report.abstained else "answered")
            for role_id, result in outcome.items()
        }
        good = sum(isinstance(result, CountedReport) for result in outcome.values())
        status = "ok" if good == len(outcome) else "partial" if good else "failed"
        self.note(stage, started, status, words)


def summary(report: AgentReport) -> str:
    """Return the beginning of what an agent says, or why it says nothing."""
    text = report.reason if report.abstained else report.said
    return text if len(text) <= SUMMARY_CHARS else text[: SUMMARY_CHARS - 1] + "…"


def fenced(context: DebateContext, role_id: str, stage: Stage) -> DebateContext:
    """Return the context with a nonce of this one call, so that no reply can know another's."""
    if not has_nonce(context):
        return context
    text = f"{context.nonce}|{stage.name}|{stage.round}|{role_id}"
    return replace(context, nonce=hashlib.sha256(text.encode()).hexdigest()[:NONCE_CHARS])


def result_of(ended: FinishedJob[Any]) -> Any:
    """Return what a finished job returned; raises ModelUnavailable for whatever it raised."""
    error = ended.exception()
    if error is None:
        return ended.result()
    if isinstance(error, ModelUnavailable):
        raise error
    raise ModelUnavailable("error", type(error).__name__)


def failure(error: ModelUnavailable) -> str:
    """Return the reason of a failure as one of the known words."""
    return error.reason if error.reason in REASONS else "error"

"""Asking one agent alone, beside a debate: the trader, where an opening would stand.

It is asked on the same terms as a seat of the desk: leave to spend first, one stage with an end, at
most one repeat, a report that is held to its role, a record of every call. What it says moves no
score and enters no sum; what it may do is the host's to decide. Nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from agent_config import DebateSettings, StagePlan

from ..contracts import (
    AgentReport,
    CallRecord,
    DebateContext,
    Reserve,
    Submit,
    is_immediate,
)
from ..registry import TRADER, Agent
from .asking import ModelCalls
from .sitting import DebateState, OnEvent
from .stages import too_many_abandoned


@dataclass(frozen=True, slots=True)
class TraderReview:
    """What became of asking one agent: its report, or why there is none, and the calls."""

    report: AgentReport | None
    failure: str = ""
    calls: tuple[CallRecord, ...] = ()
    stages: tuple[dict[str, Any], ...] = ()
    flags: tuple[str, ...] = ()


def unasked(seat: Agent, reason: str, stage: str = "thesis") -> TraderReview:
    """Return the record of an agent that was not asked, for a reason."""
    told = {"name": stage, "round": 1, "agents": {seat.role.id: reason}, "ms": 0.0}
    return TraderReview(None, reason, stages=({**told, "status": "failed"},))


def consult_trader(
    seat: Agent,
    context: DebateContext,
    config: DebateSettings,
    submit: Submit,
    *,
    monotonic: Callable[[], float],
    deadline: float,
    reserve: Reserve | None = None,
    on_event: OnEvent | None = None,
    stage: str = "thesis",
) -> TraderReview:
    """Ask one agent and return what it said; arguments are those of `deliberate`.

    Its context is shown as it is: whoever asks has put reports and features into it.
    """
    if too_many_abandoned():
        return unasked(seat, "threads_exhausted", stage)
    line = ModelCalls(
        submit,
        monotonic,
        config.agents,
        1,
        deadline,
        inline=is_immediate(submit) and seat.analyze is TRADER.analyze,
    )
    sitting = DebateState(
        desk=(seat,),
        line=line,
        began=monotonic(),
        deadline=deadline,
        reserve=reserve,
        on_event=on_event,
        keep_for_fallback=False,
    )
    name, told = seat.role.id, config.agents.memory.roles
    if context.lessons and name not in told:
        context = replace(context, lessons=())
    sitting.ask(StagePlan(stage, (seat.role.kind,), 1.0), 1, {name: context})
    answer = sitting.answers.get(name)
    return TraderReview(
        None if answer is None else answer.report,
        sitting.failures.get(name, ""),
        line.records(),
        tuple(sitting.stages),
        (*sitting.flags, *line.looks()),
    )

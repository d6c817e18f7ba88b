"""A firm's trader, asked alone after the debate: where an opening would be made.

It is asked on the same terms as a seat of the desk: leave to spend first, one stage with an end, at
most one repeat, a report within its role, a record of every call. What it says moves no score; the
host decides what it may do. Nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from agent_config import DebateSettings, StagePlan

from ..contracts import AgentReport, DebateContext, Reserve, Submit, is_synchronous
from ..registry import TRADER, Agent
from .debate import DebateState, OnEvent, too_many_abandoned
from .deliberation import Call


@dataclass(frozen=True, slots=True)
class TraderReview:
    """The trader's report, or why there is none, and the calls."""

    report: AgentReport | None
    failure: str = ""
    calls: tuple[Call, ...] = ()
    stages: tuple[dict[str, Any], ...] = ()
    flags: tuple[str, ...] = ()


def not_asked(seat: Agent, reason: str, stage: str = "thesis") -> TraderReview:
    """Return the record of an agent that was not asked, for a reason."""
    agents = {seat.role.id: reason}
    row = {"name": stage, "round": 1, "agents": agents, "ms": 0.0, "status": "failed"}
    return TraderReview(None, reason, stages=(row,))


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

    Its context is shown as it is: the caller has put reports and features into it.
    """
    if too_many_abandoned():
        return not_asked(seat, "threads_exhausted", stage)
    own = is_synchronous(submit) and seat.analyze is TRADER.analyze
    debate = DebateState(
        (seat,),
        config.agents,
        submit,
        monotonic,
        deadline,
        monotonic(),
        reserve=reserve,
        on_event=on_event,
        own=own,
        synchronous=own,
    )
    name = seat.role.id
    if context.lessons and name not in config.agents.memory.roles:
        context = replace(context, lessons=())
    debate.ask(StagePlan(stage, (seat.role.kind,), 1.0), 1, {name: context})
    return TraderReview(
        debate.report_of(seat.role.kind),
        debate.failures.get(name, ""),
        debate.records(),
        tuple(debate.stages),
        (*debate.flags, *debate.call_flags()),
    )

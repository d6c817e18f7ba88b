"""A firm's trader, asked alone after the debate: where an opening would be made.

It is asked on the same terms as a seat of the desk: leave to spend first, one stage with an end, at
most one repeat, a report within its role, a record of every call. What it says moves no score; the
host decides what it may do. Nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agent_config import DebateSettings, StagePlan

from ..contracts import DebateContext, Reserve, Submit, is_synchronous
from ..registry import TRADER, Agent
from .debate import DebateState, OnEvent, Stage, too_many_abandoned


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
    refused: str = "",
) -> DebateState:
    """Ask one agent, or note why it is `refused`; return what was said, as that of a debate.

    Other arguments are those of `deliberate`. Its context is shown as it is: the caller has put
    reports and features into it.
    """
    own, name, plan = seat.analyze is TRADER.analyze, seat.role.id, StagePlan("thesis", (), 1.0)
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
        synchronous=own and is_synchronous(submit),
    )
    if refused := refused or ("threads_exhausted" if too_many_abandoned() else ""):
        debate.failures[name] = refused
        debate.note(Stage(plan.name, 1, deadline), debate.began, "failed", {name: refused})
        return debate
    if context.lessons and name not in config.agents.memory.roles:
        context = replace(context, lessons=())
    debate.ask(plan, 1, {name: context})
    return debate

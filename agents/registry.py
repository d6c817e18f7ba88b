"""Who can sit at the desk: one row per agent, and who sits there under given settings.

An agent is one file, its `ROLE`, and one row of `AGENTS`. It asks what its role asks, and abstains
before any call without the evidence that it needs; a file with a function `lacking` says itself
why it abstains. A desk that cannot be seated raises ValueError with a message for a person; a host
turns it into its own configuration error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

import scoring_rubric
from agent_config import GATE_ID, MAX_AGENTS, QUORUM_FROM, AgentSettings

from . import (
    bear_researcher,
    bull_researcher,
    fundamental_agent,
    key_levels_agent,
    momentum_agent,
    news_agent,
    research_manager,
    risk_gate,
    sentiment_agent,
    technical_agent,
    trader_agent,
)
from .contracts import (
    ADJUSTMENT_BOUND,
    SIDES,
    VECTORS,
    AgentReport,
    Analyze,
    Ask,
    DebateContext,
    Kind,
    Role,
)
from .evidence import missing
from .swarm import (
    geometry_agent,
    judge_agent,
    liquidity_agent,
    macro_agent,
    microstructure_agent,
    regime_reader,
)


@dataclass(frozen=True, slots=True)
class Agent:
    """One seat: who it is and the one function that it has."""

    role: Role
    analyze: Analyze


def seat(role: Role, lacking: Callable[[DebateContext], str] | None = None) -> Agent:
    """Return an agent that asks what its role asks.

    It abstains for the reason that `lacking` gives, by default for want of what the role needs.
    """
    lacks = lacking or partial(missing, role)

    def analyze(context: DebateContext, ask: Ask) -> AgentReport:
        if reason := lacks(context):
            return AgentReport.abstain(role.id, reason)
        return ask(scoring_rubric.build_interpretive_prompt(context, role))

    return Agent(role, analyze)


SEATS: Final = (
    technical_agent,
    sentiment_agent,
    news_agent,
    fundamental_agent,
    key_levels_agent,
    momentum_agent,
    bull_researcher,
    bear_researcher,
    research_manager,
    regime_reader,
    liquidity_agent,
    microstructure_agent,
    macro_agent,
    geometry_agent,
    judge_agent,
    risk_gate,
)
AGENTS: Final[Mapping[str, Agent]] = {
    file.ROLE.id: seat(file.ROLE, getattr(file, "lacking", None)) for file in SEATS
}

TRADER: Final = seat(trader_agent.ROLE)
"""Who is asked alone where an opening would stand; it has no seat at a desk."""

SCORER: Final = scoring_rubric.SCORER
REVIEWER: Final = scoring_rubric.REVIEWER

RUBRIC: Final = Path(str(scoring_rubric.__file__)).read_text(encoding="utf-8")
"""The source of the rubric as this process runs it, whatever is installed meanwhile."""

NAME: Final = re.compile(r"[a-z][a-z0-9_]*")

LONE: Final[Mapping[str, tuple[Kind, ...]]] = {
    "arbiter or judge": ("arbiter", "judge"),
    "reader of the regime": ("reader",),
}
"""Kinds of which a desk seats one at most."""

UNSEATED: Final = (SCORER, REVIEWER, TRADER.role)
"""Roles without a seat, which may have a model and caps of their own all the same."""


def seated(settings: AgentSettings, agents: Mapping[str, Agent] | None = None) -> tuple[Agent, ...]:
    """Return the desk in asking order, the gate last. Raises ValueError for a desk that cannot be.

    `agents` replaces the registry; Torra's own gate sits where it brings none.
    """
    known = AGENTS if agents is None else {GATE_ID: AGENTS[GATE_ID], **agents}
    names = settings.desk()
    if unknown := [name for name in names if name not in known]:
        place = "active_agents" if settings.active_agents else f"mode {settings.mode!r}"
        raise ValueError(
            f"{place} names agents that are not there: {', '.join(unknown)}; "
            f"known are {', '.join(sorted(known))}"
        )
    if len(names) > MAX_AGENTS:
        raise ValueError(f"a desk has at most {MAX_AGENTS} agents with its gate, not {len(names)}")
    if len(names) == 1:
        raise ValueError(f"a desk needs an agent beside its gate; known are {', '.join(known)}")
    kinds = {name: _kind(name, known[name].role) for name in names}
    for title, lone in LONE.items():
        rivals = [name for name, kind in kinds.items() if kind in lone]
        if len(rivals) > 1:
            raise ValueError(f"a desk has one {title} at most, not {', '.join(rivals)}")
    turns = {kind for stage in settings.row().stages for kind in stage.kinds}
    if idle := [name for name, kind in kinds.items() if kind not in turns]:
        raise ValueError(f"{idle[0]!r} has no turn at the desk of mode {settings.mode!r}")
    analysts = [*kinds.values()].count("analyst")
    if settings.quorum > analysts >= QUORUM_FROM:
        raise ValueError(
            f"quorum {settings.quorum} can never be reached: the desk seats {analysts} analysts"
        )
    return tuple(known[name] for name in names)


def _kind(name: str, role: Role) -> Kind:
    """Return the kind of a seat; raises ValueError for a role that cannot have one."""
    if role.id != name or not NAME.fullmatch(name):
        raise ValueError(f"agent {name!r} has the role id {role.id!r}; use one lower-case name")
    if role.kind in ("scorer", "trader") or (role.kind == "gate") != (name == GATE_ID):
        raise ValueError(f"agent {name!r} cannot sit at a desk as {role.kind}")
    if role.kind == "researcher" and name not in SIDES:
        raise ValueError(f"{name!r} is no side of the debate; the sides are {', '.join(SIDES)}")
    if unknown := [vector for vector in role.focus if vector not in VECTORS]:
        raise ValueError(f"agent {name!r} may touch unknown vectors: {', '.join(unknown)}")
    if not 0.0 <= role.bound <= ADJUSTMENT_BOUND:
        raise ValueError(
            f"agent {name!r} has the bound {role.bound}; a bound is 0 to {ADJUSTMENT_BOUND}"
        )
    return role.kind


def wording(settings: AgentSettings) -> str:
    """Return twelve hexadecimal digits that change with the prompts of a desk; kept with a tick.

    They cover what every seat of the desk, and of the desks below it on its ladder, is told, and
    scoring_rubric.py whole, which writes the evidence. An influence is earned under one wording.
    """
    desks = settings.ladder()
    return _digest(frozenset(name for desk in desks for name in (*desk.desk(), desk.consulted())))


@cache
def _digest(names: frozenset[str]) -> str:
    roles = [seat.role for seat in (*AGENTS.values(), TRADER) if seat.role.id in names]
    seats = (scoring_rubric.system_text(role, role.shape) for role in (*roles, SCORER))
    texts = "\0".join((RUBRIC, *scoring_rubric.REPLIES.values(), *seats))
    return hashlib.sha256(texts.encode()).hexdigest()[:12]

"""Who can sit at the desk: one row per agent, and who sits there under given settings.

An agent is one file and one row of `AGENTS`. A desk that cannot be seated raises
ValueError with a message for a person; a host turns it into its own configuration error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

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
from .contracts import SIDES, VECTORS, Analyze, Role
from .swarm import (
    geometry_agent,
    judge_agent,
    liquidity_agent,
    macro_agent,
    microstructure_agent,
    regime_reader,
)

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")


@dataclass(frozen=True, slots=True)
class Agent:
    """One seat: who it is and the one function that it has."""

    role: Role
    analyze: Analyze


AGENTS: Final[Mapping[str, Agent]] = {
    part.ROLE.id: Agent(part.ROLE, part.analyze)
    for part in (
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
}

SCORER: Final = Role(
    id="chart_scorer",
    title="chart scorer",
    kind="scorer",
    tier="deep",
    focus=dict.fromkeys(VECTORS, "primary"),
    needs=(),
    evidence=("",),
    picture=True,
)
"""The role of the single-model fallback; it has no seat at a desk."""

REVIEWER: Final = Role(
    id="reviewer",
    title="reviewer",
    kind="reviewer",
    tier="deep",
    focus={},
    needs=(),
    evidence=("lesson.",),
)
"""Who writes of a closed trade, beside the ticks; it has no seat at a desk either."""

TRADER: Final = Agent(trader_agent.ROLE, trader_agent.analyze)
"""Who is asked alone where an opening would stand; it has no seat at a desk."""

UNSEATED: Final = (SCORER, REVIEWER, TRADER.role)
"""Roles without a seat, which may have a model and caps of their own all the same."""


def seated(settings: AgentSettings, agents: Mapping[str, Agent] | None = None) -> tuple[Agent, ...]:
    """Return the desk in asking order, the gate last. Raises ValueError for a desk that cannot be.

    `agents` replaces the registry; Torra's own gate sits where it brings none.
    """
    known = AGENTS if agents is None else {GATE_ID: AGENTS[GATE_ID], **agents}
    names = settings.desk()
    if strangers := [name for name in names if name not in known]:
        asked = "active_agents" if settings.active_agents else f"mode {settings.mode!r}"
        raise ValueError(
            f"{asked} names agents that are not there: {', '.join(strangers)}; "
            f"known are {', '.join(sorted(known))}"
        )
    if len(names) > MAX_AGENTS:
        raise ValueError(f"a desk has at most {MAX_AGENTS} agents with its gate, not {len(names)}")
    if len(names) == 1:
        raise ValueError(f"a desk needs an agent beside its gate; known are {', '.join(known)}")
    judges = [name for name in names if known[name].role.kind in ("arbiter", "judge")]
    if len(judges) > 1:
        raise ValueError(f"a desk has one arbiter or judge at most, not {', '.join(judges)}")
    readers = [name for name in names if known[name].role.kind == "reader"]
    if len(readers) > 1:
        raise ValueError(f"a desk has one reader of the regime at most, not {', '.join(readers)}")
    turns = {kind for stage in settings.row().stages for kind in stage.kinds}
    for name in names:
        _check(name, known[name].role)
        if known[name].role.kind not in turns:
            raise ValueError(f"{name!r} has no turn at the desk of mode {settings.mode!r}")
    seats = sum(known[name].role.kind == "analyst" for name in names)
    if settings.quorum > seats >= QUORUM_FROM:
        raise ValueError(
            f"quorum {settings.quorum} can never be reached: the desk seats {seats} analysts"
        )
    return tuple(known[name] for name in names)


def _check(name: str, role: Role) -> None:
    if role.id != name or not _NAME.fullmatch(name):
        raise ValueError(f"agent {name!r} has the role id {role.id!r}; use one lower-case name")
    if role.kind in ("scorer", "trader") or (role.kind == "gate") != (name == GATE_ID):
        raise ValueError(f"agent {name!r} cannot sit at a desk as {role.kind}")
    if role.kind == "researcher" and name not in SIDES:
        raise ValueError(f"{name!r} is no side of the debate; the sides are {', '.join(SIDES)}")
    if unknown := [vector for vector in role.focus if vector not in VECTORS]:
        raise ValueError(f"agent {name!r} may touch unknown vectors: {', '.join(unknown)}")

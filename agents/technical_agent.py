"""The technical analyst: reads price action and structure, and the picture when there is one.

It abstains when the host supplies no indicator. It knows nothing of the other agents.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from .contracts import AgentReport, Ask, DebateContext, Role
from .evidence import COMPANIONS, SURROUNDINGS, missing

ROLE: Final = Role(
    id="technical",
    title="technical analyst",
    kind="analyst",
    tier="quick",
    focus={
        "price_action": "primary",
        "key_levels": "secondary",
        "momentum": "secondary",
        "structure": "primary",
    },
    needs=("technical",),
    evidence=(
        "scores.",
        "component.",
        "technical.",
        "forecast.",
        "spread.",
        COMPANIONS,
        *SURROUNDINGS,
        "host.",
    ),
    picture=True,
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the technical reading of the bar; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

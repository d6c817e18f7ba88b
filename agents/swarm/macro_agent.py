"""The macro and options expert: reads what other markets, yields and options say of this one.

It reads companions of the same feed, macro numbers, positions and derivatives, and abstains where
the host has none of them. It knows nothing of the other agents.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from ..contracts import AgentReport, Ask, DebateContext, Role
from ..evidence import COMPANIONS, MARKET_EVIDENCE, POSITIONS, missing

ROLE: Final = Role(
    id="macro",
    title="macro and options expert",
    kind="analyst",
    tier="quick",
    focus={"momentum": "secondary", "structure": "primary"},
    needs=("macro.", COMPANIONS, *POSITIONS),
    evidence=(
        *("scores.", "macro.", COMPANIONS, *POSITIONS),
        *("technical.close", "technical.sma50", "technical.sma200"),
        *MARKET_EVIDENCE,
        *("standing.macro_", "host."),
    ),
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the reading of other markets; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

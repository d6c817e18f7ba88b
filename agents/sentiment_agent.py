"""The sentiment analyst: reads the mood of the market for all four scores.

Mood is the tone of the news, what closes, volume and the desk's own consensus say of it, and how
others are positioned where that is known. It abstains when none of that is there. It knows nothing
of the other agents.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from .contracts import VECTORS, AgentReport, Ask, DebateContext, Role
from .evidence import FLOW, MARKET_EVIDENCE, POSITIONS, missing

ROLE: Final = Role(
    id="sentiment",
    title="sentiment analyst",
    kind="analyst",
    tier="quick",
    focus=dict.fromkeys(VECTORS, "secondary"),
    needs=(
        *(f"sentiment.{name}" for name in ("news", "up_bars", "up_volume", "streak")),
        *POSITIONS,
    ),
    evidence=(
        *("scores.", "sentiment.", *POSITIONS, "macro.vix_rank", FLOW, "memory."),
        *("technical.volume_ratio", *MARKET_EVIDENCE),
    ),
    ahead=("macro.",),
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the reading of the mood; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

"""The chart expert: reads channel, pattern, retracements and volume by price, and the picture.

Code measures the chart: the expert may name a pattern only where code found it, and a level only
where code has one. It alone of a swarm is shown the picture. It knows nothing of the other agents.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from ..contracts import AgentReport, Ask, DebateContext, Role
from ..evidence import SURROUNDINGS, missing

ROLE: Final = Role(
    id="geometry",
    title="chart geometry expert",
    kind="analyst",
    tier="quick",
    focus={"price_action": "secondary", "key_levels": "secondary", "structure": "primary"},
    needs=("geometry.channel_r2", "geometry.compression"),
    evidence=(
        *("scores.", "geometry."),
        *("technical.close", "technical.atr14", "technical.trend_state", "technical.bos"),
        *SURROUNDINGS,
        *("standing.geometry_", "host."),
    ),
    picture=True,
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the reading of the chart; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

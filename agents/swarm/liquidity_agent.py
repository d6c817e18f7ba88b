"""The liquidity expert: reads who was forced out where, swept stops, pools, volume and its price.

It reads bars, and order flow and derivatives where the host has them. It knows nothing of the other
agents, and abstains on fewer bars than its evidence needs.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from ..contracts import AgentReport, Ask, DebateContext, Role
from ..evidence import SURROUNDINGS, missing

ROLE: Final = Role(
    id="liquidity",
    title="liquidity expert",
    kind="analyst",
    tier="quick",
    focus={"price_action": "secondary", "key_levels": "primary", "structure": "secondary"},
    needs=("liquidity.vwap_atr", "liquidity.sweep_high"),
    evidence=(
        *("scores.", "liquidity.", "derivs.", "flow.ticks", "flow.up_share"),
        *("technical.close", "technical.atr14", "technical.volume_ratio", "technical.swing_"),
        *("technical.support", "technical.resistance"),
        *SURROUNDINGS,
        *("standing.liquidity_", "host."),
    ),
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the reading of the liquidity; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

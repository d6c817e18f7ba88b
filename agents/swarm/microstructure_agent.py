"""The microstructure expert: reads spread, ticks and order book, where the market is thin or leans.

Most brokers send no order book and many files no spread: without either and without order flow it
abstains. It knows nothing of the other agents.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from ..contracts import AgentReport, Ask, DebateContext, Role
from ..evidence import FLOW, SURROUNDINGS, missing

ROLE: Final = Role(
    id="microstructure",
    title="microstructure expert",
    kind="analyst",
    tier="quick",
    focus={"price_action": "primary", "momentum": "secondary"},
    needs=("micro.spread_percentile", "flow.ticks", "flow.book_imbalance"),
    evidence=(
        *("scores.", "micro.", FLOW, "spread."),
        *("technical.close", "technical.atr14", "technical.body_atr", "technical.volume_ratio"),
        *("technical.upper_wick", "technical.lower_wick"),
        *SURROUNDINGS,
        *("standing.microstructure_", "host."),
    ),
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the reading of spread and ticks; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

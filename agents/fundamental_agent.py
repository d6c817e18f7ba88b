"""The fundamental analyst: reads what the market's worth and its money say, beside the chart.

A stock reads its company's figures, gold and an index read yields, the dollar and VIX, a currency
pair the gap of its two yields, oil its stocks. Where none of that is known it abstains, before any
call, and says why. It knows nothing of the other agents.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from .contracts import VECTORS, AgentReport, Ask, DebateContext, Role
from .evidence import COMPANIONS, FUNDAMENTALS, MARKET_EVIDENCE, VENDOR_FIGURES, missing

ROLE: Final = Role(
    id="fundamental",
    title="fundamental analyst",
    kind="analyst",
    tier="quick",
    focus=dict.fromkeys(VECTORS, "secondary"),
    needs=("company.", *FUNDAMENTALS, *VENDOR_FIGURES, "macro."),
    evidence=(
        *("scores.", "company.", *FUNDAMENTALS, *VENDOR_FIGURES, "macro.", COMPANIONS),
        *MARKET_EVIDENCE,
    ),
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the reading of the worth; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

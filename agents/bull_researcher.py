"""The bull researcher: argues for higher prices from the evidence and the analysts' reports.

Its adjustment of a score is never below 0. In a further round its context also holds the other
side's case. It abstains when there is no score to argue about.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from .contracts import RESEARCHER_BOUND, VECTORS, AgentReport, Ask, DebateContext, Role
from .evidence import CASE_EVIDENCE, missing

ROLE: Final = Role(
    id="bull_researcher",
    title="bull researcher",
    kind="researcher",
    tier="deep",
    focus=dict.fromkeys(VECTORS, "primary"),
    needs=("scores",),
    evidence=CASE_EVIDENCE,
    bound=RESEARCHER_BOUND,
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the bull case; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

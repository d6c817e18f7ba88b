"""The research manager: reads the analysts and both cases, and says which case is the better one.

It moves no score. It names a winner, LONG, SHORT or NONE, how sure it is, and how much each of the
two cases is worth, 0 to 1: its weights lessen what bull and bear have asked for, and its word can
only lower the conviction in an opening. It sits beside the gate and does not see it.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from .contracts import SIDES, AgentReport, Ask, DebateContext, Role
from .evidence import JUDGED_EVIDENCE

ROLE: Final = Role(
    id="research_manager",
    title="research manager",
    kind="arbiter",
    tier="deep",
    focus={},
    needs=(),
    evidence=JUDGED_EVIDENCE,
)

NO_CASE: Final = "no case was made that could be judged"
"""Why it abstains where neither researcher was heard."""


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the judgement; raises ModelUnavailable when no model answers."""
    cases = [report for report in context.reports if report.agent_id in SIDES]
    if all(case.abstained for case in cases):
        return AgentReport.abstain(ROLE.id, NO_CASE)
    return ask(build_interpretive_prompt(context, ROLE))

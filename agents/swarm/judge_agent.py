"""The judge of a swarm: reads the board of what the experts say, decides, argues against itself.

It moves scores by at most 0.15, names a side or none, and says what would prove it wrong. Its
chance of a win is weighed by code against what the trade costs (agents.debate.swarm); what
it says can lower a size and veto its own side, never make, turn or enlarge an opening.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from ..contracts import RESEARCHER_BOUND, VECTORS, AgentReport, Ask, DebateContext, Role
from ..evidence import MARKET_EVIDENCE

ROLE: Final = Role(
    id="judge",
    title="judge",
    kind="judge",
    tier="deep",
    focus=dict.fromkeys(VECTORS, "primary"),
    needs=(),
    evidence=(
        *("scores.", "board.", "stakes.", "memory.", "lessons."),
        *("technical.close", "technical.atr14", "technical.ema20", "technical.sma50"),
        *("technical.support", "technical.resistance", "technical.swing_", "technical.rsi14"),
        *("technical.trend_state", "technical.bos"),
        *("liquidity.sweep_", "liquidity.pool_", "geometry.level."),
        *MARKET_EVIDENCE,
        *("standing.judge_", "host."),
    ),
    bound=RESEARCHER_BOUND,
)

NOTHING_TO_JUDGE: Final = "no expert was heard"
"""Why it abstains where nobody spoke whom it could judge."""


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the decision; raises ModelUnavailable when no model answers."""
    if all(report.abstained or report.regime for report in context.reports):
        return AgentReport.abstain(ROLE.id, NOTHING_TO_JUDGE)
    return ask(build_interpretive_prompt(context, ROLE))

"""The reader of the regime: says what kind of market this is, beside the code's own word.

It moves no score. It may lower the budget of an opening, and have one expert go first; where it
names another regime than the code, the code's word stays and the lower budget of the two counts. It
is asked at once with the experts, and none of them sees it.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from ..contracts import AgentReport, Ask, DebateContext, Role
from ..evidence import COMPANIONS, MARKET_EVIDENCE, missing

ROLE: Final = Role(
    id="regime_reader",
    title="reader of the regime",
    kind="reader",
    tier="quick",
    focus={},
    needs=("market.regime",),
    evidence=(
        *("scores.", "derivs.", "macro.", COMPANIONS, "events."),
        *("technical.close", "technical.atr14", "technical.sma50", "technical.sma200"),
        *("technical.trend_state", "technical.bos", "technical.volume_ratio", "technical.rsi14"),
        *("memory.", "news.score", "news.items"),
        *MARKET_EVIDENCE,
        *("standing.regime_reader_", "host."),
    ),
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the regime as a model reads it; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

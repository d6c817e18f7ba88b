"""The key levels analyst: support and resistance, Fibonacci, Bollinger bands, Ichimoku.

It abstains when the host supplies none of these levels. It knows nothing of the other agents.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from .contracts import AgentReport, Ask, DebateContext, Role
from .evidence import MARKET_EVIDENCE, missing

LEVELS: Final = tuple(
    f"technical.{name}"
    for name in ("support", "resistance", "fib_", "bb_", "tenkan", "kijun", "span_")
)

ROLE: Final = Role(
    id="key_levels",
    title="key levels analyst",
    kind="analyst",
    tier="quick",
    focus={"key_levels": "primary", "structure": "secondary"},
    needs=(*LEVELS, "technical.support_", "technical.resistance_"),
    evidence=(
        "scores.",
        "component.kl_",
        *LEVELS,
        "technical.close",
        "technical.atr14",
        "technical.swing_",
        *MARKET_EVIDENCE,
    ),
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the reading of the levels; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

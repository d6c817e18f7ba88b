"""The momentum analyst: RSI, MACD, stochastic and CCI, read by the strength of the trend (ADX).

It abstains when the host supplies no oscillator. It knows nothing of the other agents.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from .contracts import AgentReport, Ask, DebateContext, Role
from .evidence import COMPANIONS, MARKET_EVIDENCE, missing

OSCILLATORS: Final = tuple(
    f"technical.{name}"
    for name in ("rsi14", "macd", "macd_signal", "macd_hist", "stoch_k", "stoch_d", "cci20")
)

ROLE: Final = Role(
    id="momentum",
    title="momentum analyst",
    kind="analyst",
    tier="quick",
    focus={"momentum": "primary", "structure": "secondary"},
    needs=OSCILLATORS,
    evidence=(
        "scores.",
        "component.mo_",
        *OSCILLATORS,
        "technical.atr14",
        "technical.volume_ratio",
        COMPANIONS,
        *MARKET_EVIDENCE,
    ),
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the reading of momentum; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))

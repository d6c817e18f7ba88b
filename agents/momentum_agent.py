"""The momentum analyst: RSI, MACD, stochastic and CCI, read by the strength of the trend (ADX).

It abstains when the host supplies no oscillator. It knows nothing of the other agents.
"""

from .contracts import Role
from .evidence import COMPANIONS, MARKET_EVIDENCE

OSCILLATORS = tuple(
    f"technical.{name}"
    for name in ("rsi14", "macd", "macd_signal", "macd_hist", "stoch_k", "stoch_d", "cci20")
)

ROLE = Role(
    id="momentum",
    title="momentum analyst",
    kind="analyst",
    task="""
        Read RSI, MACD, stochastic and CCI by what ADX and the DI lines say of the trend: in
        a trend they confirm it, in a range their extremes are faded. Where one diverges
        from the others, say which you follow.
    """,
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

"""The key levels analyst: support and resistance, Fibonacci, Bollinger bands, Ichimoku.

It abstains when the host supplies none of these levels. It knows nothing of the other agents.
"""

from .contracts import Role
from .evidence import MARKET_EVIDENCE

LEVELS = tuple(
    f"technical.{name}"
    for name in ("support", "resistance", "fib_", "bb_", "tenkan", "kijun", "span_")
)

ROLE = Role(
    id="key_levels",
    title="key levels analyst",
    kind="analyst",
    task="""
        Read where price stands among its levels: support and resistance and their distance,
        Fibonacci retracements, Bollinger bands, the Ichimoku cloud and its lines. Levels
        that lie together count for more; in a range they hold, in a trend they break.
    """,
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

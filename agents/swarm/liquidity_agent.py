"""The liquidity expert: reads who was forced out where, swept stops, pools, volume and its price.

It reads bars, and order flow and derivatives where the host has them. It knows nothing of the other
agents, and abstains on fewer bars than its evidence needs.
"""

from ..contracts import Role
from ..evidence import SURROUNDINGS

ROLE = Role(
    id="liquidity",
    title="liquidity expert",
    kind="analyst",
    task="""
        Read where orders were taken and where they rest: sweeps of swing highs and lows,
        pools of equal ones, volume's average price and most traded price, effort beside
        result, delta where ticks were counted. A sweep that closes back inside leans the
        other way; a pool draws price until it is taken.
    """,
    shape="finding",
    focus={"price_action": "secondary", "key_levels": "primary", "structure": "secondary"},
    needs=("liquidity.vwap_atr", "liquidity.sweep_high"),
    evidence=(
        "scores.",
        "liquidity.",
        "derivs.",
        "flow.ticks",
        "flow.up_share",
        "technical.close",
        "technical.atr14",
        "technical.volume_ratio",
        "technical.swing_",
        "technical.support",
        "technical.resistance",
        *SURROUNDINGS,
        "standing.liquidity_",
        "host.",
    ),
)

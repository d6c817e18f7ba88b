"""The microstructure expert: reads spread, ticks and order book, where the market is thin or leans.

Most brokers send no order book and many files no spread: without either and without order flow it
abstains. It knows nothing of the other agents.
"""

from ..contracts import Role
from ..evidence import FLOW, SURROUNDINGS

ROLE = Role(
    id="microstructure",
    title="microstructure expert",
    kind="analyst",
    task="""
        Read what it costs to trade now and who presses: the spread beside its own hour,
        ticks and their direction, the order book where there is one. A spread that jumps,
        or a lot that slips, says that the market is thin: then trust a move less, whichever
        way it goes.
    """,
    shape="finding",
    focus={"price_action": "primary", "momentum": "secondary"},
    needs=("micro.spread_percentile", "flow.ticks", "flow.book_imbalance"),
    evidence=(
        "scores.",
        "micro.",
        FLOW,
        "spread.",
        "technical.close",
        "technical.atr14",
        "technical.body_atr",
        "technical.volume_ratio",
        "technical.upper_wick",
        "technical.lower_wick",
        *SURROUNDINGS,
        "standing.microstructure_",
        "host.",
    ),
)

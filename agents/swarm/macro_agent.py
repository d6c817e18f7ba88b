"""The macro and options expert: reads what other markets, yields and options say of this one.

It reads companions of the same feed, macro numbers, positions and derivatives, and abstains where
the host has none of them. It knows nothing of the other agents.
"""

from ..contracts import Role
from ..evidence import COMPANIONS, MARKET_EVIDENCE, POSITIONS

ROLE = Role(
    id="macro",
    title="macro and options expert",
    kind="analyst",
    task="""
        Read what other markets say of this one: companions and how they moved with it,
        yields, the dollar, VIX, positions, funding, options. A change says more than a
        level; one that moves against this market while they move together is a divergence.
        What is not listed is not known: say so.
    """,
    shape="finding",
    focus={"momentum": "secondary", "structure": "primary"},
    needs=("macro.", COMPANIONS, *POSITIONS),
    evidence=(
        "scores.",
        "macro.",
        COMPANIONS,
        *POSITIONS,
        "technical.close",
        "technical.sma50",
        "technical.sma200",
        *MARKET_EVIDENCE,
        "standing.macro_",
        "host.",
    ),
)

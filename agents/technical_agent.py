"""The technical analyst: reads price action and structure, and the picture when there is one.

It abstains when the host supplies no indicator. It knows nothing of the other agents.
"""

from .contracts import Role
from .evidence import COMPANIONS, SURROUNDINGS

ROLE = Role(
    id="technical",
    title="technical analyst",
    kind="analyst",
    task="""
        Read price action and structure first: candles, wicks, gaps, swings, breaks of
        structure, slope and order of the averages; then key levels and momentum where they
        confirm or contradict them.
    """,
    focus={
        "price_action": "primary",
        "key_levels": "secondary",
        "momentum": "secondary",
        "structure": "primary",
    },
    needs=("technical",),
    evidence=(
        "scores.",
        "component.",
        "technical.",
        "forecast.",
        "spread.",
        COMPANIONS,
        *SURROUNDINGS,
        "host.",
    ),
    picture=True,
)

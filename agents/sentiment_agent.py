"""The sentiment analyst: reads the mood of the market for all four scores.

Mood is the tone of the news, what closes, volume and the desk's own consensus say of it, and how
others are positioned where that is known. It abstains when none of that is there. It knows nothing
of the other agents.
"""

from .contracts import VECTORS, Role
from .evidence import FLOW, MARKET_EVIDENCE, POSITIONS

ROLE = Role(
    id="sentiment",
    title="sentiment analyst",
    kind="analyst",
    task="""
        Read the mood: the tone of the news, how many recent closes rose and on what share
        of the volume, the streak, the desk's own consensus. A mood carries while it spreads
        and turns when it is stretched: say which it is. Where positions are listed, a
        crowded side is one that may turn; where none are, claim none.
    """,
    focus=dict.fromkeys(VECTORS, "secondary"),
    needs=(
        *(f"sentiment.{name}" for name in ("news", "up_bars", "up_volume", "streak")),
        *POSITIONS,
    ),
    evidence=(
        "scores.",
        "sentiment.",
        *POSITIONS,
        "macro.vix_rank",
        FLOW,
        "memory.",
        "technical.volume_ratio",
        *MARKET_EVIDENCE,
    ),
    ahead=("macro.",),
)

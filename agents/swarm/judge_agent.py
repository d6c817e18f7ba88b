"""The judge of a swarm: reads the board of what the experts say, decides, argues against itself.

It moves scores by at most 0.15, names a side or none, and says what would prove it wrong. Its
chance of a win is weighed by code against what the trade costs (agents.debate.swarm); what
it says can lower a size and veto its own side, never make, turn or enlarge an opening.
"""

from ..contracts import RESEARCHER_BOUND, VECTORS, DebateContext, Role
from ..evidence import MARKET_EVIDENCE

ROLE = Role(
    id="judge",
    title="judge",
    kind="judge",
    tier="deep",
    task="""
        Decide of what the experts say. board lines are code's: who leans where, who
        conflicts and what would settle it. side is where the evidence as a whole points,
        NONE where it does not; most ticks have none. win_share is the chance that a trade
        of your side reaches its target before its stop: stakes.reward_r to 1, so that below
        stakes.break_even it loses money; do not flatter it. Of NONE points_for are LONG's,
        points_against SHORT's. Argue against yourself: counter is the best case against
        your side, points_against cite it, falsifiers are closes that would prove it;
        without them your word counts for little. close true only where an open position of
        memory.position should end now; a person decides that. You set no size, price or
        stop.
    """,
    shape="decision",
    focus=dict.fromkeys(VECTORS, "primary"),
    evidence=(
        "scores.",
        "board.",
        "stakes.",
        "memory.",
        "lessons.",
        "technical.close",
        "technical.atr14",
        "technical.ema20",
        "technical.sma50",
        "technical.support",
        "technical.resistance",
        "technical.swing_",
        "technical.rsi14",
        "technical.trend_state",
        "technical.bos",
        "liquidity.sweep_",
        "liquidity.pool_",
        "geometry.level.",
        *MARKET_EVIDENCE,
        "standing.judge_",
        "host.",
    ),
    bound=RESEARCHER_BOUND,
)

NOTHING_TO_JUDGE = "no expert was heard"
"""Why it abstains where nobody spoke whom it could judge."""


def lacking(context: DebateContext) -> str:
    """Return why it abstains: no expert spoke, and a reader of the regime takes no side."""
    silent = all(report.abstained or report.regime for report in context.reports)
    return NOTHING_TO_JUDGE if silent else ""

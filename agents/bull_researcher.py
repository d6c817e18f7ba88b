"""The bull researcher: argues for higher prices from the evidence and the analysts' reports.

Its adjustment of a score is never below 0. In a further round its context also holds the other
side's case. It abstains when there is no score to argue about.
"""

from .contracts import RESEARCHER_BOUND, VECTORS, Role
from .evidence import CASE_EVIDENCE

ROLE = Role(
    id="bull_researcher",
    title="bull researcher",
    kind="researcher",
    tier="deep",
    task="""
        Make the bullish case: what in evidence and reports speaks for higher prices and is
        understated by the scores. An adjustment is positive where the evidence is more
        bullish than the score, 0 where it is not, never negative (that counts as 0), null
        with nothing to go on. Without a case say so: 0 and low confidence. Another argues
        the bearish case; that is no reason to weaken yours.
    """,
    shape="case",
    focus=dict.fromkeys(VECTORS, "primary"),
    needs=("scores",),
    evidence=CASE_EVIDENCE,
    bound=RESEARCHER_BOUND,
)

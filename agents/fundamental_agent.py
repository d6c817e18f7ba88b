"""The fundamental analyst: reads what the market's worth and its money say, beside the chart.

A stock reads its company's figures, gold and an index read yields, the dollar and VIX, a currency
pair the gap of its two yields, oil its stocks. Where none of that is known it abstains, before any
call, and says why. It knows nothing of the other agents.
"""

from .contracts import VECTORS, Role
from .evidence import COMPANIONS, FUNDAMENTALS, MARKET_EVIDENCE, VENDOR_FIGURES

ROLE = Role(
    id="fundamental",
    title="fundamental analyst",
    kind="analyst",
    task="""
        Read what money and worth say of this symbol beside its chart: a company's figures,
        yields, the dollar, VIX, stocks of oil, whichever are listed. A change says more
        than a level, a rank more than either; slow numbers move a score little within a
        day. What is not listed is not known: say so.
    """,
    focus=dict.fromkeys(VECTORS, "secondary"),
    needs=("company.", *FUNDAMENTALS, *VENDOR_FIGURES, "macro."),
    evidence=(
        "scores.",
        "company.",
        *FUNDAMENTALS,
        *VENDOR_FIGURES,
        "macro.",
        COMPANIONS,
        *MARKET_EVIDENCE,
    ),
)

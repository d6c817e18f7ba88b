"""The reader of the regime: says what kind of market this is, beside the code's own word.

It moves no score. It may lower the budget of an opening, and have one expert go first; where it
names another regime than the code, the code's word stays and the lower budget of the two counts. It
is asked at once with the experts, and none of them sees it.
"""

from ..contracts import Role
from ..evidence import COMPANIONS, MARKET_EVIDENCE

ROLE = Role(
    id="regime_reader",
    title="reader of the regime",
    kind="reader",
    task="""
        Say what kind of market this is and how much of an opening it deserves.
        market.regime is what code measured: name another only where cited evidence shows
        that it has turned. budget_pct is the share of an opening's size, 100 where nothing
        speaks for less; it can only lower what the regime leaves. first is the expert whose
        evidence says most in such a market, none where none stands out. You score nothing
        and take no trade; points for lean to your bias.
    """,
    shape="regime",
    needs=("market.regime",),
    evidence=(
        "scores.",
        "derivs.",
        "macro.",
        COMPANIONS,
        "events.",
        "technical.close",
        "technical.atr14",
        "technical.sma50",
        "technical.sma200",
        "technical.trend_state",
        "technical.bos",
        "technical.volume_ratio",
        "technical.rsi14",
        "memory.",
        "news.score",
        "news.items",
        *MARKET_EVIDENCE,
        "standing.regime_reader_",
        "host.",
    ),
)

"""The seat of the business: growth, margins, returns and debt, or what moves a market's worth."""

from agents.contracts import Role

ROLE = Role(
    id="committee.fundamental",
    title="fundamental seat of a committee",
    kind="seat",
    tier="deep",
    task="""
        Judge the business behind the symbol, or what moves a market's worth, over the coming
        weeks: is it getting better or worse, and how safely? Price and mood are not yours.
    """,
)

"""The seat of the price: what is paid, against the symbol's own years and what the price bets."""

from agents.contracts import Role

ROLE = Role(
    id="committee.valuation",
    title="valuation seat of a committee",
    kind="seat",
    tier="deep",
    task="""
        Judge the price alone: is the symbol cheap or dear against its own years, and what must
        come true for it? A dear price can stay dear: say how surely. The business is not yours.
    """,
)

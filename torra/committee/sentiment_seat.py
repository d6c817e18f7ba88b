"""The seat of the mood: headlines by class, positions, and how the market has moved."""

from agents.contracts import Role

ROLE = Role(
    id="committee.sentiment",
    title="sentiment seat of a committee",
    kind="seat",
    tier="deep",
    task="""
        Judge the mood around the symbol over the coming weeks: does it carry the price, or is
        it crowded and about to turn? Business and price are not yours.
    """,
)

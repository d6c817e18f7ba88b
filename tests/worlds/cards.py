"""Cards of the invented company, stored where a page finds them."""

from __future__ import annotations

from instance_database import Database
from torra.committee.card import DecisionCard
from torra.committee.deciding import example_card
from torra.store.research import cards as card_table


def stored(database: Database) -> DecisionCard:
    """Store the card of the invented company's good year, made within no time."""
    card = example_card("balanced").model_copy(update={"elapsed_ms": 0.0})
    card_table.add_card(database, {
        "card_id": card.card_id, "asked": "example", "instance": card.instance,
        "evidence_until": card.evidence_until, "document": card.model_dump_json(),
    })  # fmt: skip
    return card

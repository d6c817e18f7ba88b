"""Where other pages speak of the committee: Home, a symbol, an order that waits for a person."""

from __future__ import annotations

import functools
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import demo_orders
from torra.clock import iso
from torra.committee.deciding import example_card
from torra.dashboard.view.backing import PageContext
from torra.store.research import cards as card_table

LINE = "The committee leans to buy on BTCUSD, 0.65"


@pytest.fixture
def pages(tmp_path: Path) -> PageContext:
    return demo_orders.build(tmp_path)


good_year = functools.cache(partial(example_card, "balanced"))


def store(pages: PageContext, symbol: str, days: float = 1.0, **more: Any) -> None:
    """Store a card of an instance that has its symbol's name, of evidence so many days ago."""
    changes = {
        "symbol": symbol, "instance": symbol, "card_id": f"{symbol}-{len(more)}",
        "evidence_until": iso(pages.now() - timedelta(days=days)), **more,
    }  # fmt: skip
    card = good_year().model_copy(update=changes)
    card_table.add_card(pages.database, {
        "card_id": card.card_id, "asked": card.card_id, "instance": card.instance,
        "evidence_until": card.evidence_until, "document": card.model_dump_json(),
    })  # fmt: skip


def test_a_card_has_a_line_on_home_on_its_symbol_and_on_an_approval(pages: PageContext) -> None:
    addresses = ("/", "/symbol/BTCUSD/H1", f"/orders/{demo_orders.waiting(pages)}")
    for address in addresses:
        assert "The committee leans" not in demo_orders.text_of(pages, address)
    store(pages, "BTCUSD")
    for address in addresses:
        text = demo_orders.text_of(pages, address)
        assert LINE in text and 'href="/cards/BTCUSD-0"' in text
        assert "Decision hold" in text


def test_the_card_of_the_newest_evidence_is_shown_while_it_is_valid(
    pages: PageContext,
) -> None:
    store(pages, "BTCUSD", 2.0, lean="buy")
    store(pages, "BTCUSD", 3.0, lean="reduce", card_id="past")
    for number in range(60):
        store(pages, "BTCUSD", 100.0, card_id=f"long ago {number}")
    assert LINE in demo_orders.text_of(pages, "/symbol/BTCUSD/H1")
    for days, shown in ((7.1, False), (6.9, True)):
        pages.database.change("DELETE FROM cards")
        store(pages, "BTCUSD", days)
        text = demo_orders.text_of(pages, "/symbol/BTCUSD/H1")
        assert ("The committee leans" in text) == shown


def test_two_instances_of_one_symbol_have_a_card_each(pages: PageContext) -> None:
    store(pages, "BTCUSD", instance="another")
    assert "The committee leans" not in demo_orders.text_of(pages, "/symbol/BTCUSD/H1")
    assert ">another</a>" in demo_orders.text_of(pages, "/committee")


def test_cards_of_another_version_are_counted_and_not_shown(pages: PageContext) -> None:
    store(pages, "BTCUSD")
    store(pages, "BTCUSD", schema_version="1.0")
    text = demo_orders.text_of(pages, "/committee")
    assert text.count('href="/cards/') == 1
    assert "1 card of another version is not shown." in text


def test_a_card_of_another_symbol_of_hindsight_or_of_no_quorum_has_none(
    pages: PageContext,
) -> None:
    store(pages, "BTCUSD", hindsight=True)
    store(pages, "BTCUSD", why="NO_QUORUM", card_id="none")
    assert "The committee leans" not in demo_orders.text_of(pages, "/")
    store(pages, "XAUUSD")
    assert "The committee leans to buy on XAUUSD" in demo_orders.text_of(pages, "/")
    assert "The committee leans" not in demo_orders.text_of(pages, "/symbol/BTCUSD/H1")

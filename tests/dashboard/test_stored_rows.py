"""Rows of the trading tables as values: what cannot be read is its default, and the row says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import cases
from torra.dashboard.trade import trade_rows
from torra.store.trade.rows import BridgeRow, ProposalRow, SignalRow

LEVELS = {"entry": 1.0, "stop": 0.9, "target": 1.2, "atr": 0.05}


@cases("facts", ["no JSON", "[1]", "", None, 7, "[" * 100_000, b"\xff"])
def test_facts_that_cannot_be_read_are_none(facts: object) -> None:
    row = BridgeRow.load({"name": "main", "facts": facts, "deny": None, "reconciled_at": 5})
    assert (row.name, row.account, row.deny, row.reconciled_at) == ("main", {}, "", None)
    assert all(f"{name}: " in row.damaged for name in ("facts", "deny", "reconciled_at"))
    assert trade_rows.detail_of(row, 10_000) == f"damaged: {row.damaged}"


def test_a_whole_row_is_answered_as_it_is_stored() -> None:
    stored = {"name": "main", "facts": json.dumps({"account": 7, "algo": True})}
    row = BridgeRow.load(stored)
    assert row.account == {"account": 7, "algo": True}
    assert (row.as_json(), row.damaged) == (stored, "")


@pytest.mark.parametrize("lots", ["many", float("nan"), float("inf"), b"x", True])
def test_of_a_damaged_signal_the_rest_is_read(lots: object) -> None:
    row = SignalRow.load({"state": 5, "lots": lots, "thesis": "{", "side": "BUY"})
    assert (row.state, row.lots, row.plan, row.filled, row.side) == ("", None, {}, None, "BUY")
    assert "state: " in row.damaged and "thesis: " in row.damaged
    assert trade_rows.detail_of(row) == f"damaged: {row.damaged}"


def test_of_a_reversal_the_opening_counts() -> None:
    drafts: list[dict[str, Any]] = [
        {"kind": "close", "side": "SELL", "lots": 0.3, "closes": "T1", "levels": None},
        {"kind": "open", "side": "SELL", "lots": 0.2, "closes": "T1", "levels": LEVELS},
    ]
    first = ProposalRow.load({"drafts": json.dumps(drafts)}).first
    assert first.levels is not None
    assert (first.lots, first.levels.stop) == (0.2, 0.9)
    only = ProposalRow.load({"drafts": json.dumps(drafts[:1])}).first
    assert (only.lots, only.levels) == (0.3, None)


@cases("drafts", ["[}", "[]", "{}", '[{"kind": "odd"}]', '[{"kind": "open", "side": "UP"}]'])
def test_a_proposal_whose_orders_are_none_is_damaged(drafts: str) -> None:
    row = ProposalRow.load({"drafts": drafts})
    assert "drafts: " in row.damaged and row.orders == () and row.first.levels is None

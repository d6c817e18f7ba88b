"""Rows of the trading tables as values: what cannot be read is its default, and nothing raises."""

from __future__ import annotations

import json

import pytest

from tests.cases import cases
from torra.dashboard.trade.stored_rows import BridgeRow, ProposalRow, SignalRow

LEVELS = {"entry": 1.0, "stop": 0.9, "target": 1.2, "atr": 0.05}


@cases("facts", ["no JSON", "[1]", "", None, 7])
def test_facts_that_cannot_be_read_are_none(facts: object) -> None:
    row = BridgeRow.read({"name": "main", "facts": facts, "deny": None, "reconciled_at": 5})
    assert (row.name, row.facts, row.deny, row.reconciled_at) == ("main", {}, "", None)


def test_facts_are_what_the_column_holds() -> None:
    row = BridgeRow.read({"facts": json.dumps({"account": 7, "algo": True})})
    assert row.facts == {"account": 7, "algo": True}


@pytest.mark.parametrize("stored", [None, {}, {"state": 5, "lots": "many", "thesis": "{"}])
def test_a_signal_of_which_nothing_can_be_read_is_empty(stored: object) -> None:
    row = SignalRow.read(stored)
    assert (row.state, row.lots, row.thesis, row.filled) == ("", None, {}, None)


def test_of_a_reversal_the_opening_counts() -> None:
    drafts = [
        {"kind": "close", "lots": 0.3, "levels": None},
        {"kind": "open", "lots": 0.2, "levels": LEVELS},
    ]
    first = ProposalRow.read({"drafts": json.dumps(drafts)}).first
    assert first.levels is not None
    assert (first.lots, first.levels.stop) == (0.2, 0.9)
    only = ProposalRow.read({"drafts": json.dumps(drafts[:1])}).first
    assert (only.lots, only.levels) == (0.3, None)
    assert ProposalRow.read({"drafts": "[}"}).first.levels is None

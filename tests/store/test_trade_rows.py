"""Stored rows as values: what fits is read, and what does not is told."""

from __future__ import annotations

import json
from typing import Any

from tests.cases import cases
from torra.store.trade.rows import (
    EPOCH,
    NO_ORDER,
    AlarmRow,
    BridgeRow,
    DeskEvent,
    OrderRequest,
    ProposalRow,
    SignalRow,
)

OPEN = {"kind": "open", "side": "BUY", "lots": 0.5, "closes": None}
CLOSE = {"kind": "close", "side": "SELL", "lots": 0.5, "closes": "T1"}


def test_a_row_that_fits_is_that_row() -> None:
    columns = {"key": "a", "kind": "LOST", "detail": "why", "at": EPOCH, "unknown": 1}
    row = AlarmRow.load(columns)
    assert (row.key, row.ended_at, row.damaged) == ("a", None, "")
    assert row.as_json() == {name: columns[name] for name in ("key", "kind", "detail", "at")}


def test_a_row_that_does_not_fit_is_made_of_what_does() -> None:
    row = SignalRow.load({"sid": "T1", "lots": "many", "price": float("inf"), "seq": 7})
    assert (row.sid, row.seq, row.lots, row.price) == ("T1", 7, None, None)
    assert row.damaged.startswith("lots: Input should be a valid number; price: ")
    assert len(SignalRow.load(dict.fromkeys(SignalRow.model_fields, b"x" * 99)).damaged) == 500


@cases(
    ("columns", "filled"),
    [
        ({"filled_lots": 0.25, "state": "PARTIAL"}, 0.25),
        ({"state": "FILLED", "price": 1.0}, 0.5), ({"state": "CLOSED", "price": 1.0}, 0.5),
        ({"state": "FILLED"}, None), ({"state": "PARTIAL", "price": 1.0}, None),
        ({"state": "FILLED", "price": 1.0, "filled_lots": 0.25}, 0.25),
    ],
)  # fmt: skip
def test_a_fill_that_names_no_size_is_of_all_lots(columns: Any, filled: float | None) -> None:
    assert SignalRow.load({"lots": 0.5, **columns}).filled == filled


def test_the_bar_and_the_plan_of_a_signal() -> None:
    row = SignalRow.load(
        {"instance": "A", "timeframe": "M15", "bar_time": EPOCH, "thesis": '{"planned_r": 2.0}'}
    )
    assert row.bar == ("A", "M15", EPOCH) and row.plan == {"planned_r": 2.0}
    assert SignalRow.load({}).plan == {} and "thesis" in SignalRow.load({"thesis": "[]"}).damaged


def test_the_orders_of_a_proposal() -> None:
    by_agent = {**CLOSE, "asked_by": {"agent": "judge", "why": "late"}}
    row = ProposalRow.load({"drafts": json.dumps([by_agent, OPEN]), "expires": EPOCH})
    assert [order.kind for order in row.orders] == ["close", "open"]
    assert row.first.kind == "open", "the opening of a reversal"
    assert row.asked_by == OrderRequest("judge", "late")
    only = ProposalRow.load({"drafts": json.dumps([CLOSE])})
    assert (only.first.closes, only.asked_by) == ("T1", None)


@cases("drafts", ["", "no JSON", "[]", "{}", '[{"kind": "swap"}]'])
def test_orders_that_cannot_be_read_are_none(drafts: str) -> None:
    row = ProposalRow.load({"sid": "P1", "drafts": drafts, "expires": "soon"})
    assert (row.orders, row.first, row.asked_by) == ((), NO_ORDER, None)
    assert row.expires == EPOCH, "it waits no more"
    assert "drafts" in row.damaged and "expires" in row.damaged


def test_facts_of_a_bridge_and_of_an_event() -> None:
    assert BridgeRow.load({"facts": '{"balance": 1.0}'}).account == {"balance": 1.0}
    assert BridgeRow.load({"facts": "no JSON"}).account == {}
    assert DeskEvent.load({"payload": '{"what": "tick"}'}).body == {"what": "tick"}
    assert DeskEvent.load({"payload": "[]"}).body == {}

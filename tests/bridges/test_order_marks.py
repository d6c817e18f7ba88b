"""How an order is recognised in what the account of the MetaTrader5 package shows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from tests.cases import cases
from tests.doubles.hand_clock import START
from tests.worlds.mt5_package import MAGIC, SID, closing, order
from torra.bridges.mt5.lookup import BUY_TYPE, _Known, executed_status, is_opened_by
from torra.bridges.order_journal import OrderEntry
from torra.market.broker_clock import ServerClock

KNOWN = _Known(OrderEntry(order(), intent=START), ServerClock.parse("UTC"))
EXPERT, CLIENT = 3, 0


def row(**changes: Any) -> SimpleNamespace:
    """Return a position of the order's side, made a second after it."""
    values = {
        "ticket": 5, "identifier": 5, "magic": MAGIC, "symbol": "XAUUSD.m", "comment": "",
        "type": BUY_TYPE, "reason": EXPERT, "after": 1, **changes,
    }  # fmt: skip
    return SimpleNamespace(**values, time=int(START.timestamp()) + values["after"])


@cases(
    ("changes", "is_ours"),
    [
        ({"comment": SID, "reason": CLIENT}, True),
        ({"comment": f"{SID}[sl]", "reason": CLIENT}, True),
        ({"comment": SID, "magic": MAGIC + 1}, False),
        ({"comment": SID, "symbol": "EURUSD.m"}, False),
        ({"comment": SID, "type": BUY_TYPE + 1}, False),
        ({}, True),
        ({"reason": CLIENT}, False),
        ({"comment": "TBBBBBBBBBBBB"}, False),
        ({"after": -5}, True),
        ({"after": -6}, False),
        ({"after": 120}, True),
        ({"after": 121}, False),
    ],
)
def test_a_row_is_an_orders_by_its_comment_or_else_by_its_time(
    changes: dict[str, Any], is_ours: bool
) -> None:
    assert KNOWN.position(row(**changes)) is is_ours


def test_a_close_means_the_position_that_its_opening_made() -> None:
    close = closing()
    assert is_opened_by(row(comment=SID), close)
    assert not is_opened_by(row(comment=SID, magic=MAGIC + 1), close)
    assert not is_opened_by(row(comment="TBBBBBBBBBBBB"), close)
    assert not is_opened_by(row(), replace(close, closes=""))


def test_lots_are_whole_up_to_binary_rounding() -> None:
    assert executed_status(order(lots=0.3), 0.1 + 0.1 + 0.1) == "FILLED"
    assert executed_status(order(lots=0.3), 0.3 - 1e-9) == "FILLED"
    assert executed_status(order(lots=0.3), 0.29) == "PARTIAL"

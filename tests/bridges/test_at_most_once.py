"""The half that DWX Connect's bridge and the MetaTrader5 package's share, without either market."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cases import cases
from tests.doubles.fake_dwx import START, HandClock
from tests.worlds.dwx_channel import MAGIC, SID, closing, order
from torra.bridges.at_most_once import AtMostOnce, OrderMarks, executed_as, opened
from torra.bridges.order_journal import OrderEntry
from torra.bridges.protocol import STOOD_STILL, Order, Recall, Report
from torra.errors import BridgeUnavailable

MARK = OrderMarks(SID, MAGIC, "XAUUSD.m", START)
IN_TIME = START + timedelta(seconds=1)


class Row(NamedTuple):
    magic: int = MAGIC
    symbol: str = "XAUUSD.m"
    comment: str = ""


@cases(
    ("row", "at", "is_ours"),
    [
        (Row(comment=SID), None, True),
        (Row(comment=f"{SID}[sl]"), None, True),
        (Row(comment=SID, magic=MAGIC + 1), IN_TIME, False),
        (Row(comment=SID, symbol="EURUSD.m"), IN_TIME, False),
        (Row(), IN_TIME, True),
        (Row(), None, False),
        (Row(comment="TBBBBBBBBBBBB"), IN_TIME, False),
        (Row(), START - timedelta(seconds=5), True),
        (Row(), START - timedelta(seconds=6), False),
        (Row(), START + timedelta(seconds=120), True),
        (Row(), START + timedelta(seconds=121), False),
    ],
)
def test_a_row_is_an_orders_by_its_comment_or_else_by_its_time(
    row: Row, at: datetime | None, is_ours: bool
) -> None:
    assert MARK.on(row, lambda: at) is is_ours


def test_a_close_means_the_position_that_its_opening_made() -> None:
    close = closing(order())
    assert opened(Row(comment=SID), close)
    assert not opened(Row(comment=SID, magic=MAGIC + 1), close)
    assert not opened(Row(comment="TBBBBBBBBBBBB"), close)
    assert not opened(Row(comment=""), replace(close, closes=""))


def test_lots_are_whole_up_to_binary_rounding() -> None:
    assert executed_as(order(lots=0.3), 0.1 + 0.1 + 0.1) == "FILLED"
    assert executed_as(order(lots=0.3), 0.3 - 1e-9) == "FILLED"
    assert executed_as(order(lots=0.3), 0.29) == "PARTIAL"


class Bare(AtMostOnce[None]):
    """A bridge to a market that shows nothing: `sent` is what reached it."""

    def __init__(self, state: Path) -> None:
        super().__init__("main", state / "orders.jsonl", HandClock(), (state / "DESK_HALT",))
        self.sent: list[str] = []
        self.slow = False

    def open_orders(self) -> list[str]:
        return [entry.order.sid for entry in self._open_orders()]

    def _begin(self, order: Order) -> tuple[OrderEntry, None]:
        return OrderEntry(order), None

    def _adopted(self, entry: OrderEntry, market: None) -> OrderEntry | None:
        return None

    def _objection(self, order: Order, market: None) -> str:
        return "stale" if order.lots > 1 else ""

    def _send(self, entry: OrderEntry, market: None) -> None:
        self._intend(entry, lambda: self.slow)
        self.sent.append(entry.order.sid)


def test_an_order_goes_out_once_in_every_life(tmp_path: Path) -> None:
    bridge = Bare(tmp_path)
    bridge.submit(order())
    bridge.submit(order())
    later = Bare(tmp_path)
    later.submit(order())
    assert (bridge.sent, later.sent) == ([SID], [])
    assert later.open_orders() == [SID]
    assert later.recall(SID, 1) is Recall.TAKEN


@pytest.mark.parametrize("why", ["slow", "control/HALT", "DESK_HALT"])
def test_what_must_not_go_out_any_more_leaves_nothing_to_look_for(tmp_path: Path, why: str) -> None:
    bridge, halt = Bare(tmp_path), tmp_path / why
    bridge.slow = why == "slow"
    if not bridge.slow:
        halt.parent.mkdir(exist_ok=True)
        halt.touch()
    with pytest.raises(BridgeUnavailable, match=STOOD_STILL if bridge.slow else "torra resume"):
        bridge.submit(order())
    assert (bridge.sent, bridge.open_orders()) == ([], [])
    assert bridge.recall(SID, 1) is Recall.NEVER_SENT
    halt.unlink(missing_ok=True)
    bridge.slow = False
    bridge.submit(order())
    assert bridge.sent == [SID]


def test_a_refusal_is_kept_and_reported_until_it_is_settled(tmp_path: Path) -> None:
    bridge = Bare(tmp_path)
    bridge.submit(order(lots=2.0))
    [report] = bridge._journal.unsettled()
    assert report == Report(SID, "EXPIRED", START, "stale")
    assert (bridge.sent, bridge.open_orders()) == ([], [])
    bridge.settle(report)
    assert Bare(tmp_path)._journal.unsettled() == []


def test_an_order_that_the_journal_does_not_take_stays_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = Bare(tmp_path)

    def full(_entry: OrderEntry) -> None:
        raise OSError("no room")

    monkeypatch.setattr(bridge._journal, "put", full)
    with pytest.raises(BridgeUnavailable, match="no room"):
        bridge.submit(order())
    assert bridge.sent == []
